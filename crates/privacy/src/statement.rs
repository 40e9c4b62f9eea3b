//! What one client let out in one run, summed up by kind: what a ledger that spans runs is charged with.

use super::bound::Trust;
use super::chain::ChainLine;
use super::ledger::{Charge, Draws};
use super::refusal::Refusal;
use fedkin_numeric::codec::{Codec, Damaged, Reader, Sink};
use std::borrow::Cow;

/// Releases of one kind, or refusals for one reason.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    /// What was released, or why nothing was.
    pub what: Cow<'static, str>,
    /// By which mechanism; [`ChainLine::REFUSED`] for refusals.
    pub mechanism: Cow<'static, str>,
    /// `enforced`, `assumed, not enforced`, or empty where no bound is behind the price.
    pub bound: Cow<'static, str>,
    /// Least standard deviation of the noise.
    pub sigma_least: f64,
    /// Largest standard deviation.
    pub sigma_most: f64,
    /// How many numbers each.
    pub size: u32,
    /// How many.
    pub count: u64,
    /// Units of 1e-12 zCDP for all of them.
    pub units: u64,
    /// The releases from Poisson samples among them, all priced alike.
    pub draws: Draws,
    /// The step of the first.
    pub first: u32,
    /// The step of the last.
    pub last: u32,
}

/// One client's run in a few lines.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Statement {
    /// By kind, in the order they first came up.
    pub entries: Vec<Entry>,
}

impl Statement {
    /// Adds what a step released.
    pub fn pay(&mut self, step: u32, charges: &[Charge]) {
        for charge in charges {
            let kind = (charge.what, charge.mechanism, charge.trust.map_or("", Trust::words));
            let price = (charge.cost.units(), charge.draws().unwrap_or_default());
            self.add(kind, charge.sigma, charge.size, price, step);
        }
    }

    /// Adds a refusal.
    pub fn refuse(&mut self, step: u32, why: Refusal) {
        self.add((why.words(), ChainLine::REFUSED, ""), 0.0, 0, (0, Draws::default()), step);
    }

    /// Adds a line of a chain: of one release, one refusal or several.
    pub fn follow(&mut self, line: &ChainLine) {
        let text = |bytes: &[u8]| Cow::Owned(String::from_utf8_lossy(bytes).into_owned());
        self.join(Entry {
            what: text(&line.what),
            mechanism: text(&line.mechanism),
            bound: text(&line.bound),
            sigma_least: line.sigma,
            sigma_most: line.sigma,
            size: line.size,
            count: line.count,
            units: line.units,
            draws: line.draws.clone(),
            first: line.step,
            last: line.step,
        });
    }

    fn add(
        &mut self,
        (what, mechanism, bound): (&'static str, &'static str, &'static str),
        sigma: f64,
        size: u32,
        (units, draws): (u64, Draws),
        step: u32,
    ) {
        self.join(Entry {
            what: Cow::Borrowed(what),
            mechanism: Cow::Borrowed(mechanism),
            bound: Cow::Borrowed(bound),
            sigma_least: sigma,
            sigma_most: sigma,
            size,
            count: 1,
            units,
            draws,
            first: step,
            last: step,
        });
    }

    fn join(&mut self, entry: Entry) {
        let same = |known: &&mut Entry| {
            known.what == entry.what
                && known.mechanism == entry.mechanism
                && known.bound == entry.bound
                && known.draws.is_priced_like(&entry.draws)
        };
        let Some(known) = self.entries.iter_mut().find(same) else { return self.entries.push(entry) };
        known.sigma_least = known.sigma_least.min(entry.sigma_least);
        known.sigma_most = known.sigma_most.max(entry.sigma_most);
        known.size = known.size.max(entry.size);
        known.count += entry.count;
        known.units = known.units.saturating_add(entry.units);
        known.draws.steps = known.draws.steps.saturating_add(entry.draws.steps);
        known.first = known.first.min(entry.first);
        known.last = known.last.max(entry.last);
    }

    /// What was released; refusals and empty answers left out.
    pub fn releases(&self) -> impl Iterator<Item = &Entry> {
        self.entries.iter().filter(|entry| entry.is_release())
    }

    /// Units of all releases.
    pub fn units(&self) -> u64 {
        self.entries.iter().fold(0, |sum, entry| sum.saturating_add(entry.units))
    }

    /// How often the client refused, and in which step first.
    pub fn refusals(&self) -> Option<(u64, u32)> {
        let refused = self.entries.iter().filter(|entry| entry.mechanism == ChainLine::REFUSED);
        refused.map(|entry| (entry.count, entry.first)).reduce(|a, b| (a.0 + b.0, a.1.min(b.1)))
    }
}

impl Entry {
    /// Whether something that depends on the data left.
    pub fn is_release(&self) -> bool {
        self.mechanism != ChainLine::REFUSED && self.mechanism != ChainLine::NOTHING
    }

    /// The same as one line of a chain: its place, run and seals are left to the chain.
    pub fn line(&self) -> ChainLine {
        let several = |noun: &str| {
            format!("{}, {} {noun}{}", self.what, self.count, if self.count == 1 { "" } else { "s" })
        };
        let what = if self.is_release() { several("release") } else { several("refusal") };
        ChainLine {
            step: self.last,
            what: what.into_bytes().into(),
            mechanism: self.mechanism.as_bytes().into(),
            bound: self.bound.as_bytes().into(),
            // The least noise is what a reader must know.
            sigma: self.sigma_least,
            size: self.size,
            count: self.count,
            units: self.units,
            draws: self.draws.clone(),
            ..ChainLine::default()
        }
    }
}

fedkin_numeric::record! {
    /// An entry as it is kept.
    struct StoredEntry {
        what: Box<[u8]>,
        mechanism: Box<[u8]>,
        bound: Box<[u8]>,
        sigma_least: f64,
        sigma_most: f64,
        size: u32,
        count: u64,
        units: u64,
        draws: Draws,
        first: u32,
        last: u32,
    }
}

impl Codec for Statement {
    fn schema() -> String {
        Box::<[StoredEntry]>::schema()
    }

    fn put<S: Sink>(&self, sink: &mut S) {
        let kept = self.entries.iter().map(|entry| StoredEntry {
            what: entry.what.as_bytes().into(),
            mechanism: entry.mechanism.as_bytes().into(),
            bound: entry.bound.as_bytes().into(),
            sigma_least: entry.sigma_least,
            sigma_most: entry.sigma_most,
            size: entry.size,
            count: entry.count,
            units: entry.units,
            draws: entry.draws.clone(),
            first: entry.first,
            last: entry.last,
        });
        kept.collect::<Box<[StoredEntry]>>().put(sink);
    }

    fn get(reader: &mut Reader<'_>) -> Result<Self, Damaged> {
        let text = |bytes: Box<[u8]>| String::from_utf8(bytes.into()).map(Cow::Owned).map_err(|_| Damaged);
        let entry = |kept: StoredEntry| {
            Ok(Entry {
                what: text(kept.what)?,
                mechanism: text(kept.mechanism)?,
                bound: text(kept.bound)?,
                sigma_least: kept.sigma_least,
                sigma_most: kept.sigma_most,
                size: kept.size,
                count: kept.count,
                units: kept.units,
                draws: kept.draws,
                first: kept.first,
                last: kept.last,
            })
        };
        let entries =
            Box::<[StoredEntry]>::get(reader)?.into_iter().map(entry).collect::<Result<_, Damaged>>()?;
        Ok(Self { entries })
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Chain, Cost};
    use super::*;

    fn charge(what: &'static str, units: u64, sigma: f64) -> Charge {
        let trust = Some(Trust::Enforced);
        Charge {
            what,
            mechanism: "gaussian",
            trust,
            sigma,
            cost: Cost::from_units(units),
            size: 3,
            steps: 1,
            sampled: None,
        }
    }

    #[test]
    fn kinds_are_summed_apart_and_lines_of_a_chain_hold_the_same_sums() {
        let mut statement = Statement::default();
        statement.pay(1, &[charge("model", 5, 0.5), charge("loss", 1, 2.0)]);
        statement.pay(2, &[charge("model", 6, 0.25)]);
        statement.refuse(3, Refusal::Budget);
        statement.refuse(7, Refusal::Budget);
        assert_eq!(statement.units(), 12);
        assert_eq!(statement.refusals(), Some((2, 3)));
        let model = &statement.entries[0];
        assert_eq!((model.count, model.units, model.first, model.last), (2, 11, 1, 2));
        assert_eq!((model.sigma_least, model.sigma_most), (0.25, 0.5));
        let mut chain = Chain::start("a", &[1; 32]);
        let lines = chain.state(&statement, &[9; 32], &[8; 32]);
        assert_eq!(&*lines[0].what, b"model, 2 releases");
        assert_eq!(&*lines[2].what, b"the privacy budget is spent, 2 refusals");
        assert_eq!((chain.spent, chain.releases, chain.head.seq), (12, 3, 3));
        assert_eq!(Chain::start("a", &[1; 32]).verify(&lines), Ok(chain));
    }

    #[test]
    fn samples_that_are_priced_alike_are_counted_together() {
        let drawn = |rate, steps| Charge { sampled: Some((1.5, rate)), steps, ..charge("model", 5, 0.5) };
        let mut statement = Statement::default();
        statement.pay(1, &[drawn(0.1, 4)]);
        statement.pay(2, &[drawn(0.1, 4)]);
        statement.pay(3, &[drawn(0.2, 4)]);
        let steps: Vec<u64> = statement.entries.iter().map(|entry| entry.draws.steps).collect();
        assert_eq!(steps, [8, 4]);
        let mut chain = Chain::start("a", &[1; 32]);
        chain.state(&statement, &[9; 32], &[8; 32]);
        let rates: Vec<(f64, u64)> = chain.sampled.iter().map(|draws| (draws.rate, draws.steps)).collect();
        assert_eq!(rates, [(0.1, 8), (0.2, 4)]);
    }

    #[test]
    fn a_statement_survives_its_encoding() {
        let mut statement = Statement::default();
        statement.pay(4, &[charge("model", 5, 0.5)]);
        statement.refuse(5, Refusal::Unsolved);
        assert_eq!(Statement::from_bytes(&statement.to_bytes()), Ok(statement));
    }
}
