//! Typed settings: one declaration gives a struct and its table of parameters.
//!
//! A config is checked against tables of [`Param`]s; whoever works with the result sees a struct. [`settings!`](crate::settings!) declares
//! both at once, so a key has one name, one default and one meaning, and nothing behind the config layer reads a
//! setting by its name.
//!
//! ```
//! use fedkin_settings::{Kind, Preset};
//! use fedkin_settings::Settings;
//!
//! fedkin_settings::choice! {
//!     /// Which model the dual step uses.
//!     pub enum Dual { Served = "served", Aggregate = "aggregate" }
//! }
//!
//! fedkin_settings::settings! {
//!     /// The keys of a method.
//!     pub struct Keys {
//!         penalty: f64 => Kind::ABOVE_ZERO, Preset::Number(5.0), "weight of the proximal term";
//!         dual: Dual => Kind::Choice(Dual::WORDS), Preset::Text("served"), "which model the dual step uses";
//!         most: Option<u32> => Kind::COUNT, Preset::Absent, "how many; all where absent";
//!     }
//! }
//!
//! assert_eq!(Keys::default(), Keys { penalty: 5.0, dual: Dual::Served, most: None });
//! assert!(Keys { penalty: -1.0, ..Keys::default() }.validated().is_err());
//! ```

use crate::{Param, Problem, Value, Values};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// A type that one value of a config can have.
pub trait Setting: Sized {
    /// From an accepted value; `None` where the key is absent and its absence means something.
    fn read(value: Option<&Value>) -> Result<Self, String>;
    /// As a value of a config; `None` where the key is left out.
    fn write(&self) -> Option<Value>;
}

/// A struct that belongs to a table of parameters: made by [`settings!`](crate::settings!).
pub trait Settings: Sized + Clone + std::fmt::Debug + PartialEq + Send + Sync + 'static {
    /// The table: names, accepted values, defaults, help.
    const PARAMS: &'static [Param];
    /// From values that passed the table.
    fn read(values: &Values) -> Result<Self, String>;
    /// Writes every key that is there.
    fn write(&self, out: &mut BTreeMap<String, Value>);

    /// The values of a config that say the same.
    fn values(&self) -> BTreeMap<String, Value> {
        let mut out = BTreeMap::new();
        self.write(&mut out);
        out
    }

    /// Checks what a program has put together as a config would be checked: all problems, each with its key.
    fn validated(&self) -> Result<Values, Vec<Problem>> {
        Values::check(Self::PARAMS, &self.values())
    }
}

/// No settings at all.
impl Settings for () {
    const PARAMS: &'static [Param] = &[];
    fn read(_: &Values) -> Result<Self, String> {
        Ok(())
    }
    fn write(&self, _: &mut BTreeMap<String, Value>) {}
}

fn wrong<T>(expected: &str, value: Option<&Value>) -> Result<T, String> {
    match value {
        Some(value) => Err(format!("expected {expected}, found {value}")),
        None => Err(format!("expected {expected}, and the key is absent")),
    }
}

impl Setting for f64 {
    fn read(value: Option<&Value>) -> Result<Self, String> {
        match value {
            Some(Value::Number(x)) => Ok(*x),
            Some(Value::Integer(x)) => Ok(*x as f64),
            other => wrong("a number", other),
        }
    }
    fn write(&self) -> Option<Value> {
        Some(Value::Number(*self))
    }
}

macro_rules! whole {
    ($($type:ty),*) => {$(
        impl Setting for $type {
            fn read(value: Option<&Value>) -> Result<Self, String> {
                match value {
                    Some(Value::Integer(x)) => {
                        <$type>::try_from(*x).map_err(|_| format!("{x} is out of range"))
                    }
                    other => wrong("a whole number", other),
                }
            }
            fn write(&self) -> Option<Value> {
                Some(Value::Integer(i64::try_from(*self).unwrap_or(i64::MAX)))
            }
        }
    )*};
}
whole!(i64, u32, u64, usize);

impl Setting for bool {
    fn read(value: Option<&Value>) -> Result<Self, String> {
        match value {
            Some(Value::Flag(flag)) => Ok(*flag),
            other => wrong("true or false", other),
        }
    }
    fn write(&self) -> Option<Value> {
        Some(Value::Flag(*self))
    }
}

impl Setting for String {
    fn read(value: Option<&Value>) -> Result<Self, String> {
        match value {
            Some(Value::Text(text)) => Ok(text.clone()),
            other => wrong("text", other),
        }
    }
    fn write(&self) -> Option<Value> {
        Some(Value::Text(self.clone()))
    }
}

impl Setting for PathBuf {
    fn read(value: Option<&Value>) -> Result<Self, String> {
        String::read(value).map(Into::into)
    }
    fn write(&self) -> Option<Value> {
        Some(Value::Text(self.to_string_lossy().into_owned()))
    }
}

/// A key whose absence means something.
impl<T: Setting> Setting for Option<T> {
    fn read(value: Option<&Value>) -> Result<Self, String> {
        value.map(|value| T::read(Some(value))).transpose()
    }
    fn write(&self) -> Option<Value> {
        self.as_ref().and_then(Setting::write)
    }
}

/// A list; an absent key is an empty one.
impl<T: Setting> Setting for Vec<T> {
    fn read(value: Option<&Value>) -> Result<Self, String> {
        match value {
            None => Ok(Vec::new()),
            Some(Value::List(items)) => items.iter().map(|item| T::read(Some(item))).collect(),
            other => wrong("a list", other),
        }
    }
    fn write(&self) -> Option<Value> {
        (!self.is_empty()).then(|| Value::List(self.iter().filter_map(Setting::write).collect()))
    }
}

/// Any value, for keys whose meaning their owner works out.
impl Setting for Value {
    fn read(value: Option<&Value>) -> Result<Self, String> {
        value.cloned().ok_or_else(|| "the key is absent".into())
    }
    fn write(&self) -> Option<Value> {
        Some(self.clone())
    }
}

/// The parameter of this name in a table, for another table that shares it. A name that is not there does not compile
/// where the table is a constant.
///
/// # Panics
/// Where the table has no such parameter.
pub const fn named(params: &[Param], name: &str) -> Param {
    let mut i = 0;
    while i < params.len() {
        if same(params[i].name.as_bytes(), name.as_bytes()) {
            return params[i];
        }
        i += 1;
    }
    panic!("the table has no parameter of this name")
}

/// `==` of bytes, for constants.
const fn same(a: &[u8], b: &[u8]) -> bool {
    let mut i = 0;
    while i < a.len() && i < b.len() && a[i] == b[i] {
        i += 1;
    }
    i == a.len() && i == b.len()
}

/// The sum of the lengths of several tables. For [`settings!`](crate::settings!).
#[doc(hidden)]
pub const fn length(parts: &[&[Param]]) -> usize {
    let (mut count, mut part) = (0, 0);
    while part < parts.len() {
        count += parts[part].len();
        part += 1;
    }
    count
}

/// Several tables as one. For [`settings!`](crate::settings!).
#[doc(hidden)]
pub const fn joined<const N: usize>(parts: &[&[Param]]) -> [Param; N] {
    let empty = Param { name: "", kind: crate::Kind::Flag, preset: crate::Preset::Absent, help: "" };
    let (mut all, mut count, mut part) = ([empty; N], 0, 0);
    while part < parts.len() {
        let mut i = 0;
        while i < parts[part].len() {
            all[count] = parts[part][i];
            count += 1;
            i += 1;
        }
        part += 1;
    }
    all
}

/// Declares a struct of settings and its table of parameters: see [`Settings`](crate::Settings).
///
/// A field is `name: Type => kind, preset, "help";`, or `name: Type => param CONSTANT;` where several tables share a
/// parameter (a comment before it documents the field), or `flatten name: Type;` where the keys of other settings are
/// among these.
#[macro_export]
macro_rules! settings {
    ($(#[$meta:meta])* $vis:vis struct $name:ident { $($body:tt)* }) => {
        $crate::settings!(@each [$(#[$meta])*] [$vis] $name [] $($body)*);
    };
    (@each $meta:tt $vis:tt $name:ident [$($done:tt)*]
        flatten $field:ident : $type:ty ; $($rest:tt)*) => {
        $crate::settings!(@each $meta $vis $name [$($done)*
            { flatten $field ($type) (<$type as $crate::Settings>::PARAMS)
                (concat!("Keys of [`", stringify!($type), "`].")) }] $($rest)*);
    };
    (@each $meta:tt $vis:tt $name:ident [$($done:tt)*]
        $(#[doc = $doc:literal])+ $field:ident : $type:ty => param $param:expr ; $($rest:tt)*) => {
        $crate::settings!(@each $meta $vis $name [$($done)*
            { one $field ($type) (&[$crate::Param { name: stringify!($field), ..$param }])
                (concat!($($doc, "\n"),+)) }] $($rest)*);
    };
    (@each $meta:tt $vis:tt $name:ident [$($done:tt)*]
        $field:ident : $type:ty => param $param:expr ; $($rest:tt)*) => {
        $crate::settings!(@each $meta $vis $name [$($done)*
            { one $field ($type) (&[$crate::Param { name: stringify!($field), ..$param }])
                (concat!("The parameter `", stringify!($field), "`.")) }] $($rest)*);
    };
    (@each $meta:tt $vis:tt $name:ident [$($done:tt)*]
        $field:ident : $type:ty => $kind:expr, $preset:expr, $help:literal ; $($rest:tt)*) => {
        $crate::settings!(@each $meta $vis $name [$($done)*
            { one $field ($type) (&[$crate::Param {
                name: stringify!($field), kind: $kind, preset: $preset, help: $help,
            }]) ($help) }] $($rest)*);
    };
    (@each [$(#[$meta:meta])*] [$vis:vis] $name:ident
        [$({ $form:ident $field:ident ($type:ty) ($table:expr) ($doc:expr) })*]) => {
        // A help text documents its field as a terminal shows it.
        $(#[$meta])*
        #[allow(clippy::doc_markdown)]
        #[derive(Debug, Clone, PartialEq)]
        $vis struct $name { $(#[doc = $doc] pub $field: $type,)* }

        impl $crate::Settings for $name {
            const PARAMS: &'static [$crate::Param] = {
                const PARTS: &[&[$crate::Param]] = &[$($table),*];
                const COUNT: usize = $crate::length(PARTS);
                &$crate::joined::<COUNT>(PARTS)
            };
            #[allow(unused_variables)]
            fn read(values: &$crate::Values) -> ::std::result::Result<Self, ::std::string::String> {
                ::std::result::Result::Ok(Self { $($field: $crate::settings!(@read $form $field $type, values)),* })
            }
            #[allow(unused_variables)]
            fn write(
                &self,
                out: &mut ::std::collections::BTreeMap<::std::string::String, $crate::Value>,
            ) {
                $($crate::settings!(@write $form $field self, out);)*
            }
        }

        impl $crate::Setting for $name {
            fn read(
                value: ::std::option::Option<&$crate::Value>,
            ) -> ::std::result::Result<Self, ::std::string::String> {
                <Self as $crate::Settings>::read(&$crate::Values::of_table(value)?)
            }
            fn write(&self) -> ::std::option::Option<$crate::Value> {
                ::std::option::Option::Some($crate::Value::Table(
                    <Self as $crate::Settings>::values(self),
                ))
            }
        }

        /// The defaults of the table; an empty text, list or zero stands for a key without one.
        impl ::std::default::Default for $name {
            fn default() -> Self {
                let values =
                    $crate::Values::presets(<Self as $crate::Settings>::PARAMS);
                <Self as $crate::Settings>::read(&values).unwrap_or_else(|wrong| {
                    ::std::panic!("the table of {} and its types disagree: {wrong}", stringify!($name))
                })
            }
        }
    };
    (@read flatten $field:ident $type:ty, $values:ident) => {
        <$type as $crate::Settings>::read($values)?
    };
    (@read one $field:ident $type:ty, $values:ident) => {
        <$type as $crate::Setting>::read($values.get(stringify!($field)))
            .map_err(|wrong| ::std::format!("`{}`: {wrong}", stringify!($field)))?
    };
    (@write flatten $field:ident $self:ident, $out:ident) => {
        $crate::Settings::write(&$self.$field, $out)
    };
    (@write one $field:ident $self:ident, $out:ident) => {
        if let ::std::option::Option::Some(value) = $crate::Setting::write(&$self.$field) {
            $out.insert(stringify!($field).into(), value);
        }
    };
}

/// Declares an enum whose variants are words of a config; `WORDS` is for [`Kind::Choice`](crate::Kind::Choice).
#[macro_export]
macro_rules! choice {
    ($(#[$meta:meta])* $vis:vis enum $name:ident { $($(#[$doc:meta])* $variant:ident = $word:literal),* $(,)? }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        $vis enum $name { $($(#[$doc])* #[doc = concat!("`", $word, "`")] $variant),* }

        impl $name {
            /// All words, in the order of the variants.
            $vis const WORDS: &'static [&'static str] = &[$($word),*];

            /// Its word in a config.
            #[allow(dead_code)]
            $vis fn word(self) -> &'static str {
                match self { $(Self::$variant => $word),* }
            }
        }

        impl $crate::Setting for $name {
            fn read(
                value: ::std::option::Option<&$crate::Value>,
            ) -> ::std::result::Result<Self, ::std::string::String> {
                match value {
                    $(::std::option::Option::Some($crate::Value::Text(word)) if word == $word => {
                        ::std::result::Result::Ok(Self::$variant)
                    })*
                    _ => ::std::result::Result::Err(::std::format!("expected one of {}", Self::WORDS.join(", "))),
                }
            }
            fn write(&self) -> ::std::option::Option<$crate::Value> {
                ::std::option::Option::Some($crate::Value::Text(self.word().into()))
            }
        }
    };
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Kind, Preset};

    choice! {
        /// Two words.
        enum Mode { Fast = "fast", Exact = "exact" }
    }

    settings! {
        /// Keys that others share.
        struct Inner {
            rate: f64 => Kind::ABOVE_ZERO, Preset::Number(0.1), "how far";
        }
    }

    const SHARED: Param =
        Param { name: "steps", kind: Kind::COUNT, preset: Preset::Integer(3), help: "how many" };

    settings! {
        /// All forms of a field.
        struct Outer {
            name: String => Kind::Text, Preset::Required, "what it is called";
            flatten inner: Inner;
            /// How many steps.
            steps: u32 => param SHARED;
            mode: Mode => Kind::Choice(Mode::WORDS), Preset::Text("exact"), "how";
            most: Option<usize> => Kind::COUNT, Preset::Absent, "at most";
            words: Vec<String> => Kind::List(&Kind::Text), Preset::Absent, "some";
            table: Option<Inner> => Kind::Table(Inner::PARAMS), Preset::Absent, "nested";
        }
    }

    #[test]
    fn the_table_has_every_key_in_order() {
        let names: Vec<&str> = Outer::PARAMS.iter().map(|param| param.name).collect();
        assert_eq!(names, ["name", "rate", "steps", "mode", "most", "words", "table"]);
    }

    #[test]
    fn what_is_written_reads_back_and_defaults_are_the_tables() {
        let mut raw = BTreeMap::from([("name".to_string(), Value::Text("x".into()))]);
        let read = |raw: &BTreeMap<String, Value>| {
            <Outer as Settings>::read(&Values::check(Outer::PARAMS, raw).unwrap()).unwrap()
        };
        let preset = read(&raw);
        assert_eq!((preset.inner.rate, preset.steps, preset.mode), (0.1, 3, Mode::Exact));
        assert_eq!((preset.most, preset.words.len(), &preset.table), (None, 0, &None));
        let full = Outer {
            mode: Mode::Fast,
            most: Some(7),
            words: vec!["a".into()],
            table: Some(Inner { rate: 2.0 }),
            ..preset.clone()
        };
        assert_eq!(read(&full.values()), full);
        raw.insert("mode".into(), Value::Text("quick".into()));
        assert!(Values::check(Outer::PARAMS, &raw).is_err());
    }

    #[test]
    fn what_a_program_puts_together_is_checked_like_a_config() {
        assert_eq!(Inner::default().rate, 0.1);
        let problems = Inner { rate: -1.0 }.validated().unwrap_err();
        assert_eq!(problems[0].to_string(), "`rate`: -1 is out of range: expected a number above 0");
    }
}
