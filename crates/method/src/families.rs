//! The families of a run: one for all clients, or several.

use crate::algorithm::Run;
use crate::federation::{Federation, Member};
use fedkin_learner::{Abilities, Family, Output, Space, proofs};
use fedkin_privacy::{Bound, Privacy, Trust};
use std::sync::Arc;

/// Where the keys of the default stand in a config.
pub const DEFAULT: &str = "model";

/// One of them, and where its keys stand in a config: `model`, or `learner.NAME`.
#[derive(Debug, Clone)]
struct Entry {
    place: Arc<str>,
    family: Arc<dyn Family>,
}

/// The families of a run. Which client has which is [`Run::learners`].
#[derive(Debug, Clone)]
pub struct Families(Arc<[Entry]>);

impl Families {
    /// The same family for everybody.
    pub fn one(family: impl Family) -> Self {
        Self(Arc::from([Entry { place: DEFAULT.into(), family: Arc::new(family) }]))
    }

    /// Several that one table of a config describes; the first is the default. `None` where there is none.
    pub fn several(list: Vec<Arc<dyn Family>>) -> Option<Self> {
        let place: Arc<str> = DEFAULT.into();
        let entry = |family| Entry { place: Arc::clone(&place), family };
        (!list.is_empty()).then(|| Self(list.into_iter().map(entry).collect()))
    }

    /// The same with one more, whose keys stand in the table `learner.NAME` of a config.
    #[must_use]
    pub fn and(&self, name: &str, family: Arc<dyn Family>) -> Self {
        let more = Entry { place: format!("learner.{name}").into(), family };
        Self(self.0.iter().cloned().chain([more]).collect())
    }

    /// The default.
    pub fn first(&self) -> &dyn Family {
        &*self.0[0].family
    }

    /// All of them.
    pub fn all(&self) -> impl ExactSizeIterator<Item = &dyn Family> {
        self.0.iter().map(|entry| &*entry.family)
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.0.len()
    }

    /// The family of this number, if there is one.
    pub fn get(&self, number: usize) -> Option<&dyn Family> {
        self.0.get(number).map(|entry| &*entry.family)
    }

    /// The family of a client.
    pub fn of(&self, run: &Run, client: u32) -> &dyn Family {
        self.get(run.learner(client)).unwrap_or_else(|| self.first())
    }

    /// All of them, each with the place of its keys in a config: `model`, or `learner.NAME`.
    pub fn placed(&self) -> impl Iterator<Item = (&str, &dyn Family)> {
        self.0.iter().map(|entry| (&*entry.place, &*entry.family))
    }

    /// What each is called beside the others: by its table where there are several tables, else by its kind.
    pub fn labels(&self) -> Vec<&str> {
        let tables = self.placed().any(|(place, _)| place != DEFAULT);
        self.0
            .iter()
            .map(|Entry { place, family }| match place.strip_prefix("learner.") {
                Some(name) => name,
                None if tables => place,
                None => family.name(),
            })
            .collect()
    }

    /// The bound on one record's gradient that the default enforces, as a number; nothing where it enforces none.
    pub fn gradient_bound(&self) -> Option<f64> {
        proofs::step(self.first(), None).ok().map(Bound::value)
    }

    /// Where the bound behind every price comes from, where there is one: assumed, or enforced by the learners or a clip.
    pub fn trust(&self, privacy: &Privacy) -> Option<Trust> {
        let bound = match privacy {
            // Of all families: one without a bound leaves the run without.
            Privacy::Zcdp(zcdp) => {
                let all = self.all().map(|family| proofs::step(family, zcdp.assumed));
                all.collect::<Result<Vec<Bound>, String>>().ok().and_then(|all| all.first().copied())
            }
            other => other.own_bound(),
        };
        bound.map(Bound::trust)
    }

    /// What all of them can do, fallbacks counted.
    pub fn can(&self, needs: Abilities) -> bool {
        self.all().all(|family| family.has().lack(needs).is_empty())
    }

    /// Whether the models of all clients can be averaged: the first client whose parameters are others is named, with
    /// what it could have instead.
    pub fn one_space(&self, federation: &Federation, run: &Run) -> Result<(), String> {
        self.one_space_of(federation, run, |_| true)
    }

    /// The same of some clients only.
    pub fn one_space_of(
        &self,
        federation: &Federation,
        run: &Run,
        wanted: impl Fn(&Member) -> bool,
    ) -> Result<(), String> {
        let Some(columns) = run.columns.filter(|_| self.count() > 1) else { return Ok(()) };
        let ids = federation.members().iter().filter(|member| wanted(member)).map(|member| member.id);
        let space = |id: u32| self.of(run, id).space(columns);
        let Some([one, other]) = differ(ids, space) else { return Ok(()) };
        let told = |(id, space): &(u32, Space)| {
            let (name, kind) = (federation.client_name(*id), self.of(run, *id).name());
            format!("client {name:?} ({kind}, {} parameters)", space.parameters)
        };
        Err(format!(
            "models are averaged, and those of {} and of {} have no parameters in common: give them learners of equal \
             parameters, or name a method that takes any model",
            told(&one),
            told(&other)
        ))
    }

    /// Whether clients whose records are fitted together have targets of one sort: `together` numbers the groups.
    pub fn one_output(
        &self,
        federation: &Federation,
        run: &Run,
        together: impl Fn(&Member) -> u32,
    ) -> Result<(), String> {
        if self.count() == 1 {
            return Ok(());
        }
        let mut groups: Vec<u32> = federation.members().iter().map(&together).collect();
        groups.sort_unstable();
        groups.dedup();
        for group in groups {
            let members = federation.members().iter().filter(|member| together(member) == group);
            let output = |id: u32| self.of(run, id).output();
            let Some([one, other]) = differ(members.map(|member| member.id), output) else { continue };
            let told = |(id, output): &(u32, Output)| {
                let (name, kind) = (federation.client_name(*id), self.of(run, *id).name());
                format!("client {name:?} ({kind}, {output})")
            };
            return Err(format!(
                "models are fitted to records of several clients, and {} and {} have targets of two sorts: give them learners \
                 of one sort, or name a method that leaves records where they are",
                told(&one),
                told(&other)
            ));
        }
        Ok(())
    }

    /// Whether the part of the regulariser that has kinks is the same at all clients, for methods whose server applies it.
    /// It is compared by what it does to a vector of falling numbers.
    pub fn one_shrinkage(&self, federation: &Federation, run: &Run) -> Result<(), String> {
        if self.count() == 1 {
            return Ok(());
        }
        let shrunk = |id: u32| {
            let mut w: Vec<f64> = (1..=run.dimension).map(|i| 1.0 / i as f64).collect();
            self.of(run, id).shrink(&mut w, 0.01);
            w
        };
        let ids = federation.members().iter().map(|member| member.id);
        let Some([(one, _), (other, _)]) = differ(ids, shrunk) else { return Ok(()) };
        Err(format!(
            "the server applies the regulariser, and clients {:?} ({}) and {:?} ({}) have different ones with kinks: give \
             them the same `regulariser` and `regularisation`, or the squared norm, which clients apply themselves",
            federation.client_name(one),
            self.of(run, one).name(),
            federation.client_name(other),
            self.of(run, other).name()
        ))
    }
}

/// The first two of some clients of whom `known` says different things.
fn differ<K: PartialEq>(
    clients: impl Iterator<Item = u32>,
    known: impl Fn(u32) -> K,
) -> Option<[(u32, K); 2]> {
    let mut first: Option<(u32, K)> = None;
    for id in clients {
        let here = (id, known(id));
        match first {
            None => first = Some(here),
            Some(other) if other.1 != here.1 => return Some([other, here]),
            Some(_) => {}
        }
    }
    None
}
