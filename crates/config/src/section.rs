//! A section that passed its table: typed for whoever reads it, and as it is written out.

use fedkin_settings::{Param, Problem, Settings, Value, Values};
use std::collections::BTreeMap;
use std::ops::Deref;

/// A section of a config. Its keys are the fields of `T`.
///
/// What is written out, and so the fingerprint, follows from the values that were checked: it knows which keys were given.
#[derive(Debug, Clone, PartialEq)]
pub struct Section<T> {
    values: Values,
    typed: T,
}

impl<T> Deref for Section<T> {
    type Target = T;
    fn deref(&self) -> &T {
        &self.typed
    }
}

impl<T: Settings> Section<T> {
    /// Checks raw values against the table of the section; all problems, not only the first.
    pub(super) fn check(raw: &BTreeMap<String, Value>) -> Result<Self, Vec<Problem>> {
        Self::read(Values::check(T::PARAMS, raw)?)
    }

    fn read(values: Values) -> Result<Self, Vec<Problem>> {
        match T::read(&values) {
            Ok(typed) => Ok(Self { values, typed }),
            Err(message) => Err(vec![Problem { path: Vec::new(), message }]),
        }
    }

    /// The defaults of the section.
    pub(super) fn presets() -> Result<Self, Vec<Problem>> {
        Self::read(Values::presets(T::PARAMS))
    }

    /// The same with one key set.
    pub(super) fn with(&self, key: &str, value: Value) -> Result<Self, Vec<Problem>> {
        let mut raw: BTreeMap<String, Value> =
            self.values.iter().map(|(key, value)| (key.to_string(), value.clone())).collect();
        raw.insert(key.to_string(), value);
        Self::check(&raw)
    }

    /// The keys alone.
    pub(super) fn into_keys(self) -> T {
        self.typed
    }

    /// Keys and values as they are written out.
    pub(super) fn values(&self) -> &Values {
        &self.values
    }

    /// Whether a key says something else than its default: a config written out in full has all of those.
    pub(super) fn changed(&self, key: &str) -> bool {
        let optional: Vec<Param> = T::PARAMS
            .iter()
            .filter(|param| !matches!(param.preset, fedkin_settings::Preset::Required))
            .copied()
            .collect();
        self.values.get(key) != Values::presets(&optional).get(key)
    }
}
