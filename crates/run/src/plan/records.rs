//! Whose the records of a plan are, and where a node finds its part of them.

use super::Plan;
use crate::error::Error;
use fedkin_data::DataError;
use fedkin_learner::Dataset;
use fedkin_settings::{Value, Values};
use std::collections::BTreeMap;

impl Plan {
    /// Whether the records are a user's own, which no other machine can draw or download.
    pub fn own_records(&self) -> bool {
        self.registry.data().sources.get(&self.config.data_source).is_some_and(|row| row.table.is_some())
    }

    /// The digest of a client's records, to which its ledger belongs. Of a user's own, test records are the client's as
    /// well: another seed divides the same records in another way, and must not begin another ledger.
    pub fn records(&self, train: &Dataset, test: Option<&Dataset>) -> [u8; 32] {
        if !self.own_records() {
            return train.fingerprint();
        }
        let sets: Vec<&Dataset> = [train].into_iter().chain(test).collect();
        Dataset::fingerprint_of_all(&sets)
    }

    /// `[data]` as it is on this node.
    pub fn data_here(&self, overrides: &BTreeMap<String, Value>) -> Result<(String, Values), Error> {
        let mut raw: BTreeMap<String, Value> =
            self.config.data.iter().map(|(key, value)| (key.to_string(), value.clone())).collect();
        let mut name = self.config.data_source.clone();
        for (key, value) in overrides {
            match (key.as_str(), value) {
                ("source", Value::Text(other)) if self.own_records() => name.clone_from(other),
                _ => {
                    raw.insert(key.clone(), value.clone());
                }
            }
        }
        let values = Values::check(&self.registry.data().params(self.registry.data().source(&name)?), &raw)
            .map_err(|problems| {
            let key = problems.first().map_or_else(String::new, |problem| problem.path.join("."));
            let message = problems.first().map_or_else(String::new, |problem| problem.message.clone());
            DataError::Config { key: format!("data.{key}"), message: format!("source {name:?}: {message}") }
        })?;
        Ok((name, values))
    }
}
