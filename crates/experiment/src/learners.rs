//! What each client of a run fits: `[model]`, or one of the tables `[learner.NAME]`.

use crate::config::{Config, LearnerKeys};
use crate::error::Error;
use crate::plan::Plan;
use crate::registry::Registry;
use fedkin_core::learner::{DEFAULT, Families, Family, Output};
use fedkin_core::params::{Values, suggest};
use fedkin_core::{Dataset, Federation};
use fedkin_data::{Task, World};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// The names of learners that records or a roster bring, by client id; nothing where they bring none.
pub(crate) type Named<'a> = Option<&'a [Option<String>]>;

/// Learners that a program brings as values, by their place: `model`, or the name of a learner that some clients have.
pub type Brought = BTreeMap<String, Arc<dyn Family>>;

/// What the clients of a config fit, `[model]` first and then the tables by name; the number of classes is the config's, or
/// the one its data source knows.
pub(crate) fn families_of(
    registry: &Registry,
    config: &Config,
    brought: &Brought,
) -> Result<Families, String> {
    let known = registry.data().about(&config.data_source, &config.data).known;
    let build = |place: &str, kind: &str, values: &Values| {
        if let Some(family) = brought.get(place) {
            return Ok(vec![Arc::clone(family)]);
        }
        let row = registry.core().learners.find(kind).map_err(|error| error.to_string())?;
        row.build(values, known)
    };
    let first = build(DEFAULT, &config.model_kind, &config.model)?;
    let mut all = Families::several(first).ok_or("the learner is empty")?;
    for (name, table) in &config.learners {
        if all.count() > 1 && all.placed().all(|(place, _)| place == DEFAULT) {
            return Err(format!(
                "model.kind = {:?} deals its kinds to all clients in turn, and [learner.{name}] gives some of them something \
                 else: leave the tables out; or write each kind as a table [learner.NAME] with `clients` or `clusters`, and \
                 set model.kind to what all others fit",
                config.model_kind
            ));
        }
        let place = format!("learner.{name}");
        // What a row says of its keys is said of those in `[model]`.
        let here = |message: String| {
            format!("{place}: {}", message.replace(&format!("`{DEFAULT}."), &format!("`{place}.")))
        };
        let built = build(name, &table.kind, &table.values).map_err(here)?;
        let [family] = &built[..] else {
            return Err(format!(
                "{place}.kind = {:?} is several kinds at once: write one table [learner.NAME] for each of them",
                table.kind
            ));
        };
        all = all.and(name, Arc::clone(family));
    }
    if all.count() > 1 && all.all().any(|family| family.output() == Output::Graph) {
        return Err("graphs are learnt by all clients alike: with a learner of graphs as model.kind leave the tables \
                    [learner.NAME] out, and name none in them"
            .into());
    }
    Ok(all)
}

/// What the targets of a run are. Where learners differ in that they are read as numbers, and each client's are compared
/// with what its own learner takes.
pub(crate) fn task_of(families: &Families) -> Task {
    let first = families.first().output();
    if families.all().any(|family| family.output().classes() != first.classes()) {
        return Task::Regression;
    }
    match first {
        // Squared differences have no target either, and are read as any other table.
        Output::Graph => Task::Signals,
        Output::Classes(classes) => Task::Classes(classes as u32),
        Output::Probability => Task::Classification,
        Output::Number => Task::Regression,
    }
}

impl Plan {
    fn misfit(&self, message: String) -> Error {
        Error::Conflict { place: self.place().to_string(), message }
    }

    /// The number of the learner that records or a roster name; nothing where the name leaves it to the tables.
    pub(crate) fn learner_named(&self, name: Option<&str>) -> Result<Option<u32>, String> {
        let Some(name) = name.filter(|name| !name.is_empty()) else { return Ok(None) };
        let known = || std::iter::once(DEFAULT).chain(self.config.learners.keys().map(String::as_str));
        if let Some(number) = known().position(|known| known == name) {
            return Ok(Some(number as u32));
        }
        let hint = suggest(name, known());
        let kind = self.registry.core().learners.get(name).is_some();
        let advice = if kind { format!(" with kind = {name:?}") } else { String::new() };
        Err(format!(
            "there is no learner {name:?}: write a table [learner.{name}]{advice}, or {DEFAULT:?} for what [{DEFAULT}] says{hint}"
        ))
    }

    /// The numbers of the tables that claim clients or clusters, by the names of those.
    fn claims<'a>(
        &'a self,
        what: &str,
        known: &[String],
        of: fn(&LearnerKeys) -> &[String],
    ) -> Result<BTreeMap<&'a str, u32>, Error> {
        let known: BTreeSet<&str> = known.iter().map(String::as_str).collect();
        let mut claims = BTreeMap::new();
        for (number, (table, claimed)) in (1u32..).zip(&self.config.learners) {
            for name in of(&claimed.keys) {
                if !known.contains(name.as_str()) {
                    let hint = suggest(name, known.iter().copied());
                    let message = format!("learner.{table}.{what}s: no {what} is called {name:?}{hint}");
                    return Err(self.misfit(message));
                }
                claims.insert(name.as_str(), number);
            }
        }
        Ok(claims)
    }

    /// Which of the run's learners each client of a federation has, by id; nothing where there is one only. The federation
    /// is the one of the data or of the roster, with its own clusters.
    pub(crate) fn learners(
        &self,
        federation: &Federation,
        named: Named<'_>,
    ) -> Result<Option<Arc<[u32]>>, Error> {
        let count = self.families.count() as u32;
        if count == 1 && named.is_none() {
            return Ok(None);
        }
        let tables = &self.config.learners;
        let name_of = |id: u32| named.and_then(|all| all.get(id as usize)).and_then(Option::as_deref);
        let clients = self.claims("client", federation.client_names(), |keys| &keys.clients)?;
        let clusters = self.claims("cluster", federation.cluster_names(), |keys| &keys.clusters)?;
        let mut all = Vec::with_capacity(federation.members().len());
        for member in federation.members() {
            let client = federation.client_name(member.id);
            let given = self.learner_named(name_of(member.id));
            let given = given.map_err(|message| self.misfit(format!("client {client:?}: {message}")))?;
            let cluster = federation.cluster_names()[member.cluster as usize].as_str();
            let claimed = || clients.get(client).or_else(|| clusters.get(cluster)).copied();
            all.push(given.or_else(claimed).unwrap_or(0));
        }
        if tables.is_empty() {
            // Several kinds of one table are dealt in turn.
            return Ok((count > 1).then(|| (0..all.len() as u32).map(|id| id % count).collect()));
        }
        for (number, (place, _)) in (0u32..).zip(self.families.placed()) {
            if all.contains(&number) {
                continue;
            }
            return Err(self.misfit(if number == 0 {
                format!(
                    "no client fits what [{DEFAULT}] says, for all have a table of their own: move the keys of one table to \
                     [{DEFAULT}], and leave that table out"
                )
            } else {
                format!(
                    "no client fits what [{place}] says: name some of them in its `clients` or `clusters`, or in the column \
                     `data.learner`; or leave the table out"
                )
            }));
        }
        Ok(Some(all.into()))
    }

    /// The same of a world.
    pub fn learners_of(&self, world: &World) -> Result<Option<Arc<[u32]>>, Error> {
        self.learners(&world.federation, world.learners.as_deref())
    }

    /// The family of a client, by the numbers of [`Self::learners_of`].
    pub fn family_of(&self, learners: Option<&[u32]>, client: u32) -> &dyn Family {
        let number = learners.and_then(|all| all.get(client as usize)).map_or(0, |number| *number as usize);
        self.families.get(number).unwrap_or_else(|| self.families.first())
    }

    /// Whether the targets of a client's records are what its learner takes. The data are checked when they are read where
    /// all learners take the same.
    pub(crate) fn check_targets(
        &self,
        family: &dyn Family,
        client: &str,
        records: &[Option<&Arc<Dataset>>],
    ) -> Result<(), Error> {
        if self.config.learners.is_empty() && !self.is_in_memory() {
            return Ok(());
        }
        let (kind, output) = (family.name(), family.output());
        let targets = records.iter().flatten().flat_map(|data| data.targets());
        let Some(strange) = targets.copied().find(|target| !output.takes(*target)) else { return Ok(()) };
        Err(self.misfit(format!(
            "client {client:?} has the target {strange}, and its learner {kind:?} takes {output}: recode its targets, or give \
             it another learner"
        )))
    }

    /// The same of all clients of a world.
    pub(crate) fn check_all_targets(&self, world: &World, learners: Option<&[u32]>) -> Result<(), Error> {
        for member in world.federation.members() {
            let id = member.id as usize;
            let records = [
                world.train.get(id),
                world.test.get(id).and_then(Option::as_ref),
                world.validation.get(id).and_then(Option::as_ref),
            ];
            let client = world.federation.client_name(member.id);
            self.check_targets(self.family_of(learners, member.id), client, &records)?;
        }
        Ok(())
    }
}
