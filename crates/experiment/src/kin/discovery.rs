//! `kin.by = "rewards"`: a run of `PersFL` finds the clusters that the run itself then uses.

use super::input::numbered_alike;
use crate::error::Error;
use crate::plan::{Plan, Stage};
use crate::repeat::Control;
use fedkin_core::algorithm::{Algorithm, FoundKin, PersFl, PersFlSettings, Sampling};
use fedkin_core::privacy::Line;
use fedkin_core::round::Progress;
use fedkin_core::settings::Settings;
use fedkin_data::{DataError, World};

/// What a first stage has found, and what left the clients for it.
#[derive(Debug, Clone)]
pub(crate) struct Discovery {
    pub(crate) kin: FoundKin,
    pub(crate) ledger: Vec<Line>,
}

impl Plan {
    /// The first stage of a run that finds its clusters by rewards: the same data and model, another method.
    fn discovery(&self) -> Result<Plan, Error> {
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

/// Runs the first stage on a repeat's data, where there is one: the world in the clusters it found.
pub(crate) fn discover(
    plan: &Plan,
    world: World,
    repeat: u32,
    control: &Control<'_>,
) -> Result<(World, Option<Discovery>), Error> {
    if !plan.kin.by_rewards() {
        return Ok((world, None));
    }
    let search = plan.discovery()?;
    let Stage { mut live, .. } = search.start(&world, repeat)?;
    let named = |fault| Error::of(fault, &search.arranged(&world.federation));
    while live.step().map_err(named)? != Progress::Ended {
        if control.stopped() {
            let place =
                format!("round {} of the search for kin; the same command begins it again", live.rounds());
            return Err(Error::Interrupted(place));
        }
    }
    let clients = world.train.len();
    let Some(kin) = live.kin().filter(|kin| kin.clusters.len() == clients) else {
        return Err(Error::Usage(format!(
            "{} found no cluster for some of the {clients} clients: raise kin.search_rounds, or give the clusters as a file",
            PersFl::NAME
        )));
    };
    let mut names: Vec<u32> = kin.clusters.iter().map(|(_, cluster)| *cluster).collect();
    names.sort_unstable();
    names.dedup();
    let given: Vec<u32> =
        kin.clusters.iter().map(|(_, cluster)| names.partition_point(|name| name < cluster) as u32).collect();
    let called = super::output::Names::new(&kin);
    let words: Vec<String> = names.iter().map(|&cluster| called.of(cluster)).collect();
    let (given, words) = numbered_alike(&world.federation, &given, &words);
    let federation = world.federation.clustered(&given, words).map_err(DataError::from)?;
    // The clusters follow from the data and the config: to a resumed run the data are what they were.
    let fingerprint = world.fingerprint;
    let world = World { fingerprint, ..world.regrouped(federation) };
    Ok((world, Some(Discovery { ledger: live.ledger().lines.clone(), kin })))
}
