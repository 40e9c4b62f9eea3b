//! What code that knows no method may ask of a method's settings.

use super::{Context, Method};
use fedkin_settings::{Kind, Param, Preset, Setting, Settings, Value, Values};
use std::collections::BTreeMap;

/// The clients that models are wanted for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Targets {
    /// All clients.
    All,
    /// The clients of these names.
    Named(Vec<String>),
}

/// `targets`, as every method that has the key declares it; the help is that of each.
pub(crate) const TARGETS: Param = Param {
    name: "targets",
    kind: Kind::Either(&[Kind::Text, Kind::List(&Kind::Text)]),
    preset: Preset::Text(ALL),
    help: "the clients that get a model: \"all\", a name, or a list of names; the others help",
};

/// The word that stands for all clients.
const ALL: &str = "all";

impl Setting for Targets {
    fn read(value: Option<&Value>) -> Result<Self, String> {
        match value {
            Some(Value::Text(word)) if word == ALL => Ok(Self::All),
            Some(Value::Text(name)) => Ok(Self::Named(vec![name.clone()])),
            other @ Some(Value::List(_)) => Vec::read(other).map(Self::Named),
            _ => Err("expected \"all\", a name, or a list of names".into()),
        }
    }

    fn write(&self) -> Option<Value> {
        Some(match self {
            Self::All => Value::Text(ALL.into()),
            Self::Named(names) if names.len() == 1 && names[0] != ALL => Value::Text(names[0].clone()),
            Self::Named(names) => Value::List(names.iter().cloned().map(Value::Text).collect()),
        })
    }
}

/// Functions on checked values, made where the type of a method's settings is known.
#[derive(Debug, Clone, Copy)]
pub struct Typed {
    /// The clients that models are wanted for.
    pub targets: fn(&Values) -> Result<Targets, String>,
    /// Whether the run is to bring a graph of clients.
    pub takes_client_graph: fn(&Values) -> Result<bool, String>,
    /// What to warn of before a run of so many rounds starts.
    pub caveat: fn(&Values, &Context, u32) -> Result<Option<&'static str>, String>,
    /// What the settings write after they have read the values: the same, which tests compare for every key.
    pub rewritten: fn(&Values) -> Result<BTreeMap<String, Value>, String>,
}

impl Typed {
    /// The functions of a method.
    pub const fn of<M: Method>() -> Self {
        Self {
            targets: |values| Ok(M::targets(&M::Settings::read(values)?)),
            takes_client_graph: |values| Ok(M::takes_client_graph(&M::Settings::read(values)?)),
            caveat: |values, context, rounds| Ok(M::caveat(&M::Settings::read(values)?, context, rounds)),
            rewritten: |values| Ok(M::Settings::read(values)?.values()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry::native;

    /// Some values that a kind accepts, both ends among them.
    fn accepted(kind: &Kind) -> Vec<Value> {
        let text = |word: &str| Value::Text(word.into());
        match kind {
            Kind::Number { least, most, open } => {
                let inner = if most.is_finite() { least.midpoint(*most) } else { least + 1.5 };
                let lower = (!open).then_some(*least);
                let all = [lower, Some(inner), most.is_finite().then_some(*most)];
                all.into_iter().flatten().map(Value::Number).collect()
            }
            Kind::Integer { least, most } => [*least, least + 1, *most].map(Value::Integer).into(),
            Kind::Flag => [false, true].map(Value::Flag).into(),
            Kind::Text | Kind::Path => ["one", "two"].map(text).into(),
            Kind::Choice(words) => words.iter().map(|word| text(word)).collect(),
            Kind::List(kind) => vec![Value::List(accepted(kind))],
            Kind::Table(params) => {
                let first = |param: &Param| (param.name.to_string(), accepted(&param.kind)[0].clone());
                vec![Value::Table(params.iter().map(first).collect())]
            }
            Kind::Either(kinds) => kinds.iter().flat_map(accepted).collect(),
        }
    }

    #[test]
    fn the_settings_of_every_method_have_the_defaults_of_its_table_and_lose_no_value() {
        for row in &native() {
            let as_read = |raw: &BTreeMap<String, Value>| {
                let values = Values::check(row.params, raw).unwrap();
                let all: BTreeMap<String, Value> =
                    values.iter().map(|(key, value)| (key.to_string(), value.clone())).collect();
                assert_eq!((row.typed.rewritten)(&values).unwrap(), all, "{}", row.name);
                all
            };
            let defaults = as_read(&BTreeMap::new());
            for (i, param) in row.params.iter().enumerate() {
                assert!(row.params[..i].iter().all(|other| other.name != param.name), "{}", param.name);
                let preset = param.preset.value();
                assert_eq!(defaults.get(param.name), preset.as_ref(), "{}.{}", row.name, param.name);
                for value in accepted(&param.kind) {
                    as_read(&BTreeMap::from([(param.name.to_string(), value)]));
                }
            }
        }
    }

    #[test]
    fn a_client_called_all_can_be_a_target() {
        for targets in [Targets::All, Targets::Named(vec!["all".into()]), Targets::Named(vec!["a".into()])] {
            assert_eq!(Targets::read(targets.write().as_ref()).unwrap(), targets);
        }
        assert!(Targets::read(None).is_err());
    }
}
