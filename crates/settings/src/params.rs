//! Parameters as data: one table serves validation, command-line help, documentation and error messages.

use std::collections::BTreeMap;
use std::fmt;

/// One parameter: where it is declared is where its default, range and meaning stand.
#[derive(Debug, Clone, Copy)]
pub struct Param {
    /// The key in the config: a word, not a paper's letter.
    pub name: &'static str,
    /// What values are accepted.
    pub kind: Kind,
    /// What holds when the key is absent.
    pub preset: Preset,
    /// What it does, in one sentence.
    pub help: &'static str,
}

/// The values a parameter accepts.
#[derive(Debug, Clone, Copy)]
pub enum Kind {
    /// A number from `least` to `most`; `open` leaves `least` itself out.
    Number {
        /// Lower end.
        least: f64,
        /// Upper end.
        most: f64,
        /// Whether the lower end is left out.
        open: bool,
    },
    /// A whole number.
    Integer {
        /// Lower end.
        least: i64,
        /// Upper end.
        most: i64,
    },
    /// true or false.
    Flag,
    /// Any text.
    Text,
    /// A path, relative to the config file.
    Path,
    /// One of these words.
    Choice(&'static [&'static str]),
    /// A list of such values.
    List(&'static Kind),
    /// A table with these keys.
    Table(&'static [Param]),
    /// The first kind that fits.
    Either(&'static [Kind]),
}

/// What holds when a key is absent.
#[derive(Debug, Clone, Copy)]
pub enum Preset {
    /// The key must be there.
    Required,
    /// Absence has a meaning of its own.
    Absent,
    /// A number.
    Number(f64),
    /// A whole number.
    Integer(i64),
    /// true or false.
    Flag(bool),
    /// A word.
    Text(&'static str),
    /// A default that a config written out in full leaves out. It is for keys whose default was not declared when the
    /// first configs were fingerprinted: those have to keep their fingerprints.
    Unwritten(&'static Preset),
    /// Several values.
    List(&'static [Preset]),
    /// A default that holds only where the key applies, which another key decides: an absent key stays absent, and
    /// whoever finds that it applies takes this.
    Conditional(&'static Preset),
}

/// A value as it came, or as it was accepted.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// A number.
    Number(f64),
    /// A whole number.
    Integer(i64),
    /// true or false.
    Flag(bool),
    /// A word.
    Text(String),
    /// Several values.
    List(Vec<Value>),
    /// Named values.
    Table(BTreeMap<String, Value>),
}

/// What is wrong with one key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// The path of keys from the table that was checked, such as `["inter_cluster", "decay"]`.
    pub path: Vec<String>,
    /// What is wrong and what was expected.
    pub message: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}`: {}", self.path.join("."), self.message)
    }
}

/// Values that passed their table: every declared key is there unless its absence means something.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Values {
    /// What was given, and the defaults that are written out.
    written: BTreeMap<String, Value>,
    /// The defaults that are not.
    unwritten: BTreeMap<String, Value>,
}

impl Values {
    /// Checks raw values against a table and fills in defaults; reports every problem, not only the first.
    pub fn check(params: &[Param], raw: &BTreeMap<String, Value>) -> Result<Self, Vec<Problem>> {
        let mut problems = Vec::new();
        let mut values = Self::default();
        for key in raw.keys().filter(|key| params.iter().all(|param| param.name != key.as_str())) {
            let message = format!("unknown key{}", suggest(key, params.iter().map(|param| param.name)));
            problems.push(Problem { path: vec![key.clone()], message });
        }
        for param in params {
            match raw.get(param.name) {
                Some(value) => match param.kind.accept(value) {
                    Ok(value) => {
                        values.written.insert(param.name.to_string(), value);
                    }
                    Err(found) => problems.extend(found.into_iter().map(|mut problem| {
                        problem.path.insert(0, param.name.to_string());
                        problem
                    })),
                },
                None => match param.preset.value() {
                    Some(value) => values.preset(param, value),
                    None if matches!(param.preset, Preset::Required) => problems.push(Problem {
                        path: vec![param.name.to_string()],
                        message: format!("this key is required: {} ({})", param.kind, param.help),
                    }),
                    None => {}
                },
            }
        }
        if problems.is_empty() { Ok(values) } else { Err(problems) }
    }

    fn preset(&mut self, param: &Param, value: Value) {
        let hidden = matches!(param.preset, Preset::Unwritten(_));
        let values = if hidden { &mut self.unwritten } else { &mut self.written };
        values.insert(param.name.to_string(), value);
    }

    /// The defaults of a table. A key without one that must be there has an empty or zero value of its kind: for a
    /// program that fills it in.
    pub fn presets(params: &[Param]) -> Self {
        let mut values = Self::default();
        for param in params {
            match param.preset.value() {
                Some(value) => values.preset(param, value),
                None if matches!(param.preset, Preset::Required) => values.preset(param, param.kind.blank()),
                None => {}
            }
        }
        values
    }

    /// Everything, as the value of a nested table.
    fn whole(mut self) -> BTreeMap<String, Value> {
        self.written.append(&mut self.unwritten);
        self.written
    }

    /// The values of a nested table that was accepted.
    pub fn of_table(value: Option<&Value>) -> Result<Self, String> {
        match value {
            Some(Value::Table(table)) => Ok(Self { written: table.clone(), ..Self::default() }),
            Some(other) => Err(format!("expected a table, found {other}")),
            None => Err("expected a table, and the key is absent".into()),
        }
    }

    /// A value, if the key is there.
    pub fn get(&self, name: &str) -> Option<&Value> {
        self.written.get(name).or_else(|| self.unwritten.get(name))
    }

    /// A number, if the key is there.
    pub fn number(&self, name: &str) -> Option<f64> {
        match self.get(name) {
            Some(Value::Number(x)) => Some(*x),
            Some(Value::Integer(x)) => Some(*x as f64),
            _ => None,
        }
    }

    /// A whole number, if the key is there.
    pub fn integer(&self, name: &str) -> Option<i64> {
        match self.get(name) {
            Some(Value::Integer(x)) => Some(*x),
            _ => None,
        }
    }

    /// Whether a flag is set.
    pub fn flag(&self, name: &str) -> bool {
        matches!(self.get(name), Some(Value::Flag(true)))
    }

    /// A word, if the key is there.
    pub fn text(&self, name: &str) -> Option<&str> {
        match self.get(name) {
            Some(Value::Text(text)) => Some(text),
            _ => None,
        }
    }

    /// The elements of a list; empty if the key is absent.
    pub fn list(&self, name: &str) -> &[Value] {
        match self.get(name) {
            Some(Value::List(list)) => list,
            _ => &[],
        }
    }

    /// A nested table, if the key is there.
    pub fn table(&self, name: &str) -> Option<Values> {
        match self.get(name) {
            Some(Value::Table(table)) => Some(Self { written: table.clone(), ..Self::default() }),
            _ => None,
        }
    }

    /// The keys and values that a config written out in full holds, by key.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Value)> {
        self.written.iter().map(|(key, value)| (key.as_str(), value))
    }
}

impl Preset {
    /// The value that stands for an absent key.
    pub fn value(&self) -> Option<Value> {
        match self {
            Preset::Required | Preset::Absent | Preset::Conditional(_) => None,
            Preset::List(items) => Some(Value::List(items.iter().filter_map(Preset::value).collect())),
            Preset::Number(x) => Some(Value::Number(*x)),
            Preset::Integer(x) => Some(Value::Integer(*x)),
            Preset::Flag(x) => Some(Value::Flag(*x)),
            Preset::Text(x) => Some(Value::Text((*x).to_string())),
            Preset::Unwritten(preset) => preset.value(),
        }
    }

    /// What a reader is told of it: the value, also of a default that holds only where the key applies.
    pub fn shown(&self) -> Option<Value> {
        match self {
            Preset::Conditional(preset) => preset.shown(),
            preset => preset.value(),
        }
    }
}

impl Kind {
    /// A number above 0.
    pub const ABOVE_ZERO: Self = Self::Number { least: 0.0, most: f64::INFINITY, open: true };
    /// A number from 0 on.
    pub const FROM_ZERO: Self = Self::Number { least: 0.0, most: f64::INFINITY, open: false };
    /// A number from 0 to 1.
    pub const SHARE: Self = Self::Number { least: 0.0, most: 1.0, open: false };
    /// A whole number from 1 on.
    pub const COUNT: Self = Self::Integer { least: 1, most: u32::MAX as i64 };

    /// The tables that a value of this kind may hold, for whoever lists all keys.
    pub fn tables(&self) -> Vec<&'static [Param]> {
        match self {
            Kind::Table(params) => vec![params],
            Kind::List(kind) => kind.tables(),
            Kind::Either(kinds) => kinds.iter().flat_map(Kind::tables).collect(),
            _ => Vec::new(),
        }
    }

    /// The value in its accepted form, or what is wrong with it.
    fn accept(&self, value: &Value) -> Result<Value, Vec<Problem>> {
        let wrong = |message: String| Err(vec![Problem { path: Vec::new(), message }]);
        match (self, value) {
            (Kind::Number { least, most, open }, Value::Number(_) | Value::Integer(_)) => {
                let x = match value {
                    Value::Integer(x) => *x as f64,
                    Value::Number(x) => *x,
                    _ => f64::NAN,
                };
                let low = if *open { x > *least } else { x >= *least };
                if low && x <= *most && x.is_finite() {
                    Ok(Value::Number(x))
                } else {
                    wrong(format!("{x} is out of range: expected {self}"))
                }
            }
            (Kind::Integer { least, most }, Value::Integer(x)) => {
                if x >= least && x <= most {
                    Ok(value.clone())
                } else {
                    wrong(format!("{x} is out of range: expected {self}"))
                }
            }
            (Kind::Flag, Value::Flag(_)) | (Kind::Text | Kind::Path, Value::Text(_)) => Ok(value.clone()),
            (Kind::Choice(words), Value::Text(text)) => {
                if words.contains(&text.as_str()) {
                    Ok(value.clone())
                } else {
                    wrong(format!(
                        "{text:?} is not known here: expected {self}{}",
                        suggest(text, words.iter().copied())
                    ))
                }
            }
            (Kind::List(kind), Value::List(items)) => {
                let mut accepted = Vec::with_capacity(items.len());
                for (i, item) in items.iter().enumerate() {
                    match kind.accept(item) {
                        Ok(item) => accepted.push(item),
                        Err(problems) => return wrong(format!("item {}: {}", i + 1, problems[0].message)),
                    }
                }
                Ok(Value::List(accepted))
            }
            (Kind::Table(params), Value::Table(table)) => {
                Values::check(params, table).map(|values| Value::Table(values.whole()))
            }
            (Kind::Either(kinds), _) => {
                // A kind of the right shape gives the better message than the list of all kinds.
                let near = kinds.iter().find(|kind| kind.same_shape(value));
                match kinds.iter().find_map(|kind| kind.accept(value).ok()) {
                    Some(value) => Ok(value),
                    None => match near {
                        Some(kind) => kind.accept(value),
                        None => wrong(format!("expected {self}, found {value}")),
                    },
                }
            }
            _ => wrong(format!("expected {self}, found {value}")),
        }
    }

    /// An empty or zero value of this kind.
    fn blank(&self) -> Value {
        match self {
            Kind::Number { .. } => Value::Number(0.0),
            Kind::Integer { .. } => Value::Integer(0),
            Kind::Flag => Value::Flag(false),
            Kind::Text | Kind::Path => Value::Text(String::new()),
            Kind::Choice(words) => Value::Text(words.first().copied().unwrap_or_default().into()),
            Kind::List(_) => Value::List(Vec::new()),
            Kind::Table(params) => Value::Table(Values::presets(params).whole()),
            Kind::Either(kinds) => kinds.first().map_or(Value::Flag(false), Kind::blank),
        }
    }

    fn same_shape(&self, value: &Value) -> bool {
        matches!(
            (self, value),
            (Kind::Number { .. } | Kind::Integer { .. }, Value::Number(_) | Value::Integer(_))
                | (Kind::Choice(_) | Kind::Text | Kind::Path, Value::Text(_))
                | (Kind::Table(_), Value::Table(_))
                | (Kind::List(_), Value::List(_))
                | (Kind::Flag, Value::Flag(_))
        )
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Kind::Number { least, most, open } => {
                let above = if *open { "above" } else { "at least" };
                match (least.is_finite(), most.is_finite()) {
                    (true, true) if *open => write!(f, "a number in ({least}, {most}]"),
                    (true, true) => write!(f, "a number in [{least}, {most}]"),
                    (true, false) => write!(f, "a number {above} {least}"),
                    (false, true) => write!(f, "a number up to {most}"),
                    (false, false) => write!(f, "a number"),
                }
            }
            Kind::Integer { least, most } if *most == i64::MAX => {
                write!(f, "a whole number of at least {least}")
            }
            Kind::Integer { least, most } => write!(f, "a whole number in {least}..{most}"),
            Kind::Flag => write!(f, "true or false"),
            Kind::Text => write!(f, "text"),
            Kind::Path => write!(f, "a path"),
            Kind::Choice(words) => {
                let quoted: Vec<String> = words.iter().map(|word| format!("\"{word}\"")).collect();
                write!(f, "{}", join_or(&quoted))
            }
            Kind::List(kind) => write!(f, "a list of {kind}"),
            Kind::Table(params) => {
                let names: Vec<&str> = params.iter().map(|param| param.name).collect();
                write!(f, "a table {{ {} }}", names.join(", "))
            }
            Kind::Either(kinds) => {
                let all: Vec<String> = kinds.iter().map(ToString::to_string).collect();
                write!(f, "{}", join_or(&all))
            }
        }
    }
}

fn join_or(items: &[String]) -> String {
    match items {
        [] => String::new(),
        [one] => one.clone(),
        [head @ .., last] => format!("{} or {last}", head.join(", ")),
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            // `{:?}` keeps the point of a round number, so that what is printed reads back as a number.
            Value::Number(x) => write!(f, "{x:?}"),
            Value::Integer(x) => write!(f, "{x}"),
            Value::Flag(x) => write!(f, "{x}"),
            Value::Text(x) => write!(f, "{x:?}"),
            Value::List(list) => {
                let all: Vec<String> = list.iter().map(ToString::to_string).collect();
                write!(f, "[{}]", all.join(", "))
            }
            Value::Table(table) => {
                let all: Vec<String> = table.iter().map(|(key, value)| format!("{key} = {value}")).collect();
                write!(f, "{{ {} }}", all.join(", "))
            }
        }
    }
}

/// `; did you mean ...?`, or the known words where nothing is near.
pub fn suggest<'a>(word: &str, known: impl Iterator<Item = &'a str>) -> String {
    let known: Vec<&str> = known.collect();
    let near = known
        .iter()
        .map(|candidate| (strsim::jaro_winkler(word, candidate), candidate))
        .filter(|(score, _)| *score > 0.8)
        .max_by(|a, b| a.0.total_cmp(&b.0));
    match near {
        Some((_, candidate)) => format!("; did you mean `{candidate}`?"),
        None if known.is_empty() || known.len() > 20 => String::new(),
        None => format!("; known here: {}", known.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &[Param] = &[
        Param {
            name: "penalty",
            kind: Kind::Number { least: 0.0, most: f64::INFINITY, open: true },
            preset: Preset::Number(5.0),
            help: "weight of the proximal term",
        },
        Param {
            name: "mode",
            kind: Kind::Either(&[
                Kind::Number { least: 0.0, most: 1.0, open: false },
                Kind::Choice(&["adaptive"]),
                Kind::Table(&[Param {
                    name: "decay",
                    kind: Kind::Number { least: 0.0, most: 1.0, open: false },
                    preset: Preset::Required,
                    help: "factor per round",
                }]),
            ]),
            preset: Preset::Absent,
            help: "how",
        },
    ];

    fn check(pairs: &[(&str, Value)]) -> Result<Values, Vec<Problem>> {
        let raw = pairs.iter().map(|(key, value)| (key.to_string(), value.clone())).collect();
        Values::check(TABLE, &raw)
    }

    fn message(pairs: &[(&str, Value)]) -> String {
        check(pairs).unwrap_err().iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn defaults_fill_in_and_whole_numbers_count_as_numbers() {
        let values = check(&[]).unwrap();
        assert_eq!(values.number("penalty"), Some(5.0));
        assert_eq!(values.get("mode"), None);
        assert_eq!(check(&[("penalty", Value::Integer(2))]).unwrap().number("penalty"), Some(2.0));
    }

    #[test]
    fn a_default_that_is_not_written_out_holds_all_the_same() {
        const LATER: &[Param] = &[Param {
            name: "limit",
            kind: Kind::COUNT,
            preset: Preset::Unwritten(&Preset::Integer(7)),
            help: "how many",
        }];
        let absent = Values::check(LATER, &BTreeMap::new()).unwrap();
        assert_eq!((absent.integer("limit"), absent.iter().count()), (Some(7), 0));
        assert_eq!(Values::presets(LATER), absent);
        let given = Values::check(LATER, &[("limit".to_string(), Value::Integer(7))].into()).unwrap();
        assert_eq!((given.integer("limit"), given.iter().count()), (Some(7), 1));
    }

    #[test]
    fn messages_name_the_key_the_range_and_the_likely_word() {
        assert_eq!(
            message(&[("penalti", Value::Number(1.0))]),
            "`penalti`: unknown key; did you mean `penalty`?"
        );
        assert_eq!(
            message(&[("penalty", Value::Number(0.0))]),
            "`penalty`: 0 is out of range: expected a number above 0"
        );
        assert_eq!(
            message(&[("penalty", Value::Text("x".into()))]),
            "`penalty`: expected a number above 0, found \"x\""
        );
        assert_eq!(
            message(&[("mode", Value::Number(1.5))]),
            "`mode`: 1.5 is out of range: expected a number in [0, 1]"
        );
        let table = Value::Table([("decai".to_string(), Value::Number(0.5))].into());
        assert!(message(&[("mode", table)]).contains("`mode.decai`: unknown key; did you mean `decay`?"));
        assert!(message(&[("mode", Value::Number(f64::NAN))]).contains("out of range"));
    }
}
