//! The plan of a first stage that finds clusters by rewards.

use super::Plan;
use crate::error::Error;
use fedkin_method::{Algorithm, PersFl, PersFlSettings, Sampling};
use fedkin_settings::Settings;

impl Plan {
    /// The first stage of a run that finds its clusters by rewards: the same data and model, another method.
    pub(crate) fn discovery(&self) -> Result<Plan, Error> {
        let settings = PersFlSettings { sampling: Sampling::Graph, ..PersFlSettings::default() };
        let conflict = |message| Error::Conflict { place: self.place().into(), message };
        let finder =
            self.registry.methods().find(PersFl::NAME).map_err(|error| conflict(error.to_string()))?;
        let rounds = self.config.kin.search_rounds;
        let config = self.config.with_algorithm(finder, &settings.values(), rounds).map_err(conflict)?;
        Plan::with(&self.registry, config, &self.base, self.place(), self.families.clone())
    }

    /// Refuses a wish for a first stage that cannot be run.
    pub(crate) fn check_discovery(&self) -> Result<(), Error> {
        if !self.kin.by_rewards() {
            return Ok(());
        }
        if self.config.privacy.ledger.is_some() {
            let finder = PersFl::NAME;
            let message = format!(
                "kin.by = \"rewards\" runs {finder} first, whose releases privacy.ledger would not see: run {finder} by \
                 itself and give its file (kin.clusters = \"runs/.../clusters.csv\")"
            );
            return Err(Error::Conflict { place: self.place().into(), message });
        }
        self.discovery().map(|_| ())
    }
}
