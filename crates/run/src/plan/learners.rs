//! Which client of a plan fits what, and whether its targets suit that.

use super::Plan;
use crate::error::Error;
use crate::learners::Named;
use fedkin_config::LearnerKeys;
use fedkin_data::World;
use fedkin_learner::{Dataset, Family};
use fedkin_method::{DEFAULT, Federation};
use fedkin_settings::suggest;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

impl Plan {
    fn misfit(&self, message: String) -> Error {
        Error::Conflict { place: self.place().to_string(), message }
    }

    /// The number of the learner that records or a roster name; nothing where the name leaves it to the tables.
    pub fn learner_named(&self, name: Option<&str>) -> Result<Option<u32>, String> {
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
    pub fn learners(&self, federation: &Federation, named: Named<'_>) -> Result<Option<Arc<[u32]>>, Error> {
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
    pub fn check_targets(
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
    pub fn check_all_targets(&self, world: &World, learners: Option<&[u32]>) -> Result<(), Error> {
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
