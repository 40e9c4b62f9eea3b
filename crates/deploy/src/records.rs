//! The records of the clients that a node hosts.

use super::Roster;
use fedkin_data::{Part, PartClient, load_part};
use fedkin_learner::Dataset;
use fedkin_run::{Error, Plan};
use fedkin_settings::Value;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

/// One client of a node, with its records.
#[derive(Debug, Clone)]
pub struct HostedRecords {
    /// Its id in the federation.
    pub id: u32,
    /// The training records.
    pub train: Arc<Dataset>,
    /// The test records, where there are any.
    pub test: Option<Arc<Dataset>>,
    /// How its features were standardised: means, then scales; empty where they were not.
    pub scaling: Vec<f64>,
    /// A digest of its records: the client's ledger belongs to it.
    pub fingerprint: [u8; 32],
}

impl HostedRecords {
    fn new(plan: &Plan, id: u32, train: Arc<Dataset>, test: Option<Arc<Dataset>>, scaling: Vec<f64>) -> Self {
        let fingerprint = plan.records(&train, test.as_deref());
        Self { id, train, test, scaling, fingerprint }
    }

    /// The records of some clients, by id. Drawn and public data are drawn as a whole, and the clients picked; of
    /// a user's own, a file with these clients is enough. Both are compared with the roster.
    ///
    /// `overrides` are keys of `[data]` that are different here, with a path that is complete.
    pub fn all(
        plan: &Plan,
        roster: &Roster,
        ids: &[u32],
        overrides: &BTreeMap<String, Value>,
        repeat: u32,
    ) -> Result<Vec<HostedRecords>, Error> {
        let mut ids = ids.to_vec();
        ids.sort_unstable();
        ids.dedup();
        let (source, values) = plan.data_here(overrides)?;
        let learners = plan.learners(&roster.federation()?, roster.learners().as_deref())?;
        // A path that a node gives is complete.
        let given = plan.registry.data().about(&source, &values).path != plan.about().path;
        let base = if given { Path::new("") } else { &plan.base };
        if plan.own_records() {
            let names: Vec<String> = roster.clients.iter().map(|client| client.name.clone()).collect();
            let part = load_part(&Part {
                registry: plan.registry.data(),
                source: &source,
                values: &values,
                base,
                task: plan.task(),
                seed: plan.seed(repeat),
                schema: &roster.schema,
                constants: &roster.constants,
                names: &names,
                wanted: &ids,
            })?;
            for client in &part {
                compare(roster, client, plan.kin.replaces())?;
                let records = [Some(&client.train), client.test.as_ref(), client.validation.as_ref()];
                let family = plan.family_of(learners.as_deref(), client.id);
                plan.check_targets(family, &roster.clients[client.id as usize].name, &records)?;
            }
            let hosted = |client: PartClient| {
                HostedRecords::new(plan, client.id, client.train, client.test, client.scaling)
            };
            return Ok(part.into_iter().map(hosted).collect());
        }
        let world = if plan.is_in_memory() {
            plan.world(repeat)?
        } else {
            plan.world_from(&source, &values, base, repeat)?
        };
        let mut drawn =
            Roster::new(plan, &world.federation, &hosts(roster, &world), world.schema.clone(), Vec::new());
        drawn.name_learners(world.learners.as_deref());
        // Compared when the deployment was opened.
        drawn.config.clone_from(&roster.config);
        drawn.take_kin(roster, plan.kin.replaces());
        if drawn != *roster {
            return Err(mismatch(differs(&drawn, roster)));
        }
        plan.check_all_targets(&world, learners.as_deref())?;
        let pick = |&id: &u32| {
            let at = id as usize;
            let scaling = world.scaling.get(at).cloned().unwrap_or_default();
            HostedRecords::new(plan, id, Arc::clone(&world.train[at]), world.test[at].clone(), scaling)
        };
        Ok(ids.iter().map(pick).collect())
    }
}

/// The roster's hosts for a world with the same number of clients: they are nothing a world knows.
fn hosts(roster: &Roster, world: &fedkin_data::World) -> Vec<String> {
    let count = world.federation.members().len();
    let known = roster.clients.iter().map(|client| client.host.clone());
    known.chain(std::iter::repeat(String::new())).take(count).collect()
}

fn mismatch(message: String) -> Error {
    Error::Deploy { place: "data".into(), message }
}

/// What a client's own file says against what the roster says.
fn compare(roster: &Roster, found: &PartClient, (clusters, servers): (bool, bool)) -> Result<(), Error> {
    let expected = &roster.clients[found.id as usize];
    let name = &expected.name;
    let rows = found.train.rows();
    if rows != expected.samples as usize {
        return Err(mismatch(format!(
            "client {name:?} has {rows} training records here but {} in the roster: correct one of them",
            expected.samples
        )));
    }
    // What `[kin]` has replaced in the roster stands nowhere in the records.
    for (what, here, there, replaced) in [
        ("server", &found.server, &expected.server, servers),
        ("cluster", &found.cluster, &expected.cluster, clusters),
    ] {
        if let Some(here) = here
            && here != there
            && !replaced
        {
            return Err(mismatch(format!(
                "client {name:?} has the {what} {here:?} here but {there:?} in the roster: correct one of them"
            )));
        }
    }
    if let Some(here) = &found.learner
        && expected.learner.as_ref() != Some(here)
    {
        let there = expected.learner.as_deref().unwrap_or_default();
        return Err(mismatch(format!(
            "client {name:?} has the learner {here:?} here but {there:?} in the roster: correct one of them"
        )));
    }
    Ok(())
}

/// The first thing in which a drawn world differs from the roster.
fn differs(drawn: &Roster, roster: &Roster) -> String {
    let advice = "use the experiment and the roster of one `fedkin provision`";
    if drawn.clients.len() != roster.clients.len() {
        return format!(
            "{} clients are drawn here but {} are in the roster: {advice}",
            drawn.clients.len(),
            roster.clients.len()
        );
    }
    if let Some((here, there)) = drawn.clients.iter().zip(&roster.clients).find(|(here, there)| here != there)
    {
        return format!(
            "client {:?} is drawn here as {here:?} but is {there:?} in the roster: {advice}",
            here.name
        );
    }
    if drawn.schema != roster.schema {
        return format!(
            "the features are {} here but {} in the roster: {advice}",
            drawn.schema.column_names().join(", "),
            roster.schema.column_names().join(", ")
        );
    }
    if drawn.dimension != roster.dimension {
        return format!(
            "models have {} parameters here but {} in the roster: {advice}",
            drawn.dimension, roster.dimension
        );
    }
    format!("the servers, clusters or edges drawn here are not those of the roster: {advice}")
}
