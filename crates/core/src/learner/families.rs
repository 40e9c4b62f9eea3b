//! The families of a run: one for all clients, or several.

use super::{Abilities, Family, Space};
use crate::algorithm::Run;
use crate::federation::Federation;
use std::sync::Arc;

/// The families of a run. Which client has which is [`Run::learners`].
#[derive(Debug, Clone)]
pub struct Families(Arc<[Arc<dyn Family>]>);

impl Families {
    /// The same family for everybody.
    pub fn one(family: impl Family) -> Self {
        Self(Arc::from([Arc::new(family) as Arc<dyn Family>]))
    }

    /// Several; the first is the default. `None` where there is none.
    pub fn several(list: Vec<Arc<dyn Family>>) -> Option<Self> {
        (!list.is_empty()).then(|| Self(list.into()))
    }

    /// The default.
    pub fn first(&self) -> &dyn Family {
        &*self.0[0]
    }

    /// All of them.
    pub fn all(&self) -> impl ExactSizeIterator<Item = &dyn Family> {
        self.0.iter().map(|family| &**family)
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.0.len()
    }

    /// The family of this number, if there is one.
    pub fn get(&self, number: usize) -> Option<&dyn Family> {
        self.0.get(number).map(|family| &**family)
    }

    /// The family of a client.
    pub fn of(&self, run: &Run, client: u32) -> &dyn Family {
        self.get(run.learner(client)).unwrap_or_else(|| self.first())
    }

    /// The bound on one record's gradient that the default enforces, as a number; nothing where it enforces none.
    pub fn gradient_bound(&self) -> Option<f64> {
        crate::privacy::certify::step(self.first(), None).ok().map(crate::privacy::Bound::value)
    }

    /// What all of them can do, fallbacks counted.
    pub fn can(&self, needs: Abilities) -> bool {
        self.all().all(|family| family.has().lack(needs).is_empty())
    }

    /// Whether the models of all clients can be averaged: the first client whose parameters are others is named, with
    /// what it could have instead.
    pub fn one_space(&self, federation: &Federation, run: &Run) -> Result<(), String> {
        let Some(columns) = run.columns.filter(|_| self.count() > 1) else { return Ok(()) };
        let mut first: Option<(u32, Space)> = None;
        for member in federation.members() {
            let family = self.of(run, member.id);
            let space = family.space(columns);
            match &first {
                None => first = Some((member.id, space)),
                Some((other, known)) if *known != space => {
                    return Err(format!(
                        "models are averaged, and those of client {:?} ({}, {} parameters) and of client {:?} ({}, {} \
                         parameters) have no parameters in common: give them learners of equal parameters, or name a \
                         method that takes any model",
                        federation.client_name(*other),
                        self.of(run, *other).name(),
                        known.parameters,
                        federation.client_name(member.id),
                        family.name(),
                        space.parameters
                    ));
                }
                Some(_) => {}
            }
        }
        Ok(())
    }
}
