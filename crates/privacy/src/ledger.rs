//! What was spent, in whole units of zCDP.

use super::accountant::{Neighbours, Sampled};
use super::bound::Trust;
use std::borrow::Cow;

/// A privacy cost in units of 1e-12 zCDP: whole numbers, so that sums do not depend on their order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Cost(u64);

impl Cost {
    const UNIT: f64 = 1e-12;

    /// The smallest cost that is at least this much zCDP. `None` where that is negative or beyond counting.
    pub fn at_least(zcdp: f64) -> Option<Self> {
        let units = (zcdp / Self::UNIT).ceil();
        if !(0.0..1.8e19).contains(&units) {
            return None;
        }
        let units = units as u64;
        // The division may have rounded down across a whole number.
        Some(if Self(units).zcdp() < zcdp { Self(units + 1) } else { Self(units) })
    }

    /// As zCDP.
    pub fn zcdp(self) -> f64 {
        self.0 as f64 * Self::UNIT
    }

    /// As whole units.
    pub fn units(self) -> u64 {
        self.0
    }

    /// From whole units.
    pub fn from_units(units: u64) -> Self {
        Self(units)
    }

    /// Both costs.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

fedkin_numeric::record! {
    /// What one client has spent on its data.
    pub struct Account {
        /// Units spent so far.
        spent: u64,
        /// Number of releases so far, disclosures included.
        releases: u64,
        /// Units it may spend at most.
        budget: Option<u64>,
        /// The releases from Poisson samples among them, those that are priced alike together. `spent` counts
        /// them as if nothing had been sampled, so that a budget of zCDP holds whatever the sampling is worth.
        sampled: Box<[Draws]>,
    }

    /// Releases of a Poisson sample's clipped sum with Gaussian noise: all that their price depends on.
    pub struct Draws {
        /// Standard deviation of the noise over the clip of one record.
        multiplier: f64,
        /// The chance of a record to be in a sample.
        rate: f64,
        /// How many releases.
        steps: u64,
    }
}

impl Draws {
    /// As the accountant takes them: records are replaced, the clip is the unit of length.
    pub fn releases(&self) -> Sampled {
        Sampled { rate: self.rate, clip: 1.0, neighbours: Neighbours::Replace, rounds: self.steps }
    }

    /// What they cost if nothing is sampled. `None` beyond counting.
    pub fn unsampled(&self) -> Option<Cost> {
        let one = Sampled { rounds: 1, ..self.releases() };
        Cost::at_least(one.unsampled_zcdp(self.multiplier))?.0.checked_mul(self.steps).map(Cost)
    }

    pub(crate) fn is_priced_like(&self, other: &Self) -> bool {
        self.multiplier.to_bits() == other.multiplier.to_bits() && self.rate.to_bits() == other.rate.to_bits()
    }

    /// Counts more releases, with those that are priced alike.
    pub(crate) fn count(all: &mut Box<[Draws]>, more: &Draws) {
        match all.iter_mut().find(|known| known.is_priced_like(more)) {
            Some(known) => known.steps = known.steps.saturating_add(more.steps),
            None => *all = all.iter().chain([more]).cloned().collect(),
        }
    }
}

impl Account {
    /// What was spent.
    pub fn total(&self) -> Cost {
        Cost(self.spent)
    }

    /// Whether this much more can be spent.
    pub fn affords(&self, cost: Cost) -> bool {
        self.budget.is_none_or(|budget| self.spent.saturating_add(cost.0) <= budget)
    }

    /// Counts an answer of this price beforehand, where no client answers.
    pub fn plan(&mut self, cost: Cost, draws: Option<&Draws>) {
        self.spent = self.spent.saturating_add(cost.0);
        self.releases += u64::from(cost.0 > 0);
        if let Some(draws) = draws {
            Draws::count(&mut self.sampled, draws);
        }
    }

    #[inline]
    pub(crate) fn pay(&mut self, charges: &[Charge]) {
        for charge in charges {
            self.spent = self.spent.saturating_add(charge.cost.0);
            self.releases += 1;
            if let Some(draws) = charge.draws() {
                Draws::count(&mut self.sampled, &draws);
            }
        }
    }
}

/// One release of one client.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Charge {
    /// What was released.
    pub what: &'static str,
    /// By which mechanism; `disclosed` where there was none.
    pub mechanism: &'static str,
    /// Whether the bound behind the price is enforced; nothing for a disclosure.
    pub trust: Option<Trust>,
    /// Standard deviation of the noise.
    pub sigma: f64,
    /// The price.
    pub cost: Cost,
    /// How many numbers left.
    pub size: u32,
    /// How many releases of this kind the answer took; more than one where sums are sampled step by step.
    pub steps: u32,
    /// Noise multiplier and sampling rate where the release was of a Poisson sample.
    pub sampled: Option<(f64, f64)>,
}

impl Charge {
    /// The sampled releases of the charge.
    pub fn draws(&self) -> Option<Draws> {
        self.sampled.map(|(multiplier, rate)| Draws { multiplier, rate, steps: u64::from(self.steps) })
    }

    /// Whether two charges differ in how much was released at most.
    #[inline]
    pub(crate) fn is_like(&self, other: &Self) -> bool {
        // The words are constants, mostly the same ones: their addresses settle it.
        let word = |a: &'static str, b: &'static str| std::ptr::eq(a, b) || a == b;
        let bits = |sampled: Option<(f64, f64)>| sampled.map(|(a, b)| (a.to_bits(), b.to_bits()));
        word(self.what, other.what)
            && word(self.mechanism, other.mechanism)
            && self.trust == other.trust
            && bits(self.sampled) == bits(other.sampled)
    }
}

/// Equal charges counted together: a step of a thousand clients is one line.
#[derive(Debug, Clone, Default)]
pub struct Tally(Vec<(Charge, u32, f64)>);

impl Tally {
    #[inline]
    fn same(a: &Charge, b: &Charge) -> bool {
        a.cost == b.cost && a.steps == b.steps && a.is_like(b)
    }

    #[inline]
    /// Counts the charges of one answer.
    pub fn count(&mut self, charges: &[Charge]) {
        for charge in charges {
            self.add(charge, 1, charge.sigma);
        }
    }

    #[inline]
    fn add(&mut self, charge: &Charge, count: u32, most: f64) {
        match self.0.iter_mut().find(|(known, _, _)| Self::same(known, charge)) {
            Some((known, total, widest)) => {
                *total += count;
                // Models of unlike kinds differ in length: the longest is told.
                known.size = known.size.max(charge.size);
                known.sigma = known.sigma.min(charge.sigma);
                *widest = widest.max(most);
            }
            None => self.begin(charge, count, most),
        }
    }

    #[cold]
    fn begin(&mut self, charge: &Charge, count: u32, most: f64) {
        self.0.push((*charge, count, most));
    }

    /// Adds what another has counted, which is empty then.
    pub fn merge(&mut self, other: &mut Tally) {
        for (charge, count, most) in other.0.drain(..) {
            self.add(&charge, count, most);
        }
    }

    /// Takes out what was counted: a charge, how often, and the sum of its prices.
    pub fn drain(&mut self) -> impl Iterator<Item = (Charge, u32, f64)> + '_ {
        self.0.drain(..)
    }

    /// Whether nothing was counted.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

fedkin_numeric::record! {
    /// One line of a simulated run's ledger: equal releases of a server's clients in one step.
    pub struct Line {
        /// The step, from 1.
        step: u32,
        /// The server.
        server: u32,
        /// What was released.
        what: Cow<'static, [u8]>,
        /// By which mechanism.
        mechanism: Cow<'static, [u8]>,
        /// `enforced`, `assumed, not enforced`, or empty for a disclosure.
        bound: Cow<'static, [u8]>,
        /// How many clients.
        clients: u32,
        /// How many numbers each, the most where they differ.
        size: u32,
        /// Least and largest standard deviation of the noise.
        sigma_least: f64,
        /// Largest standard deviation.
        sigma_most: f64,
        /// Units of 1e-12 zCDP each client paid, those of sampled releases as if nothing had been sampled.
        units: u64,
        /// Of releases from Poisson samples: how many each client made; 0 for others.
        draws: Draws,
    }
}

impl Line {
    /// The text of a field.
    pub fn text(bytes: &[u8]) -> String {
        String::from_utf8_lossy(bytes).into_owned()
    }
}

/// All lines of a run in the order of (step, server).
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Ledger {
    /// The lines.
    pub lines: Vec<Line>,
}

impl Ledger {
    /// Writes down what a server's clients released in a step.
    pub fn record(&mut self, step: u32, server: u32, tally: &mut Tally) {
        let begin = self.lines.len();
        for (charge, clients, most) in tally.drain() {
            self.lines.push(Line {
                step,
                server,
                what: charge.what.as_bytes().into(),
                mechanism: charge.mechanism.as_bytes().into(),
                bound: charge.trust.map_or("", Trust::words).as_bytes().into(),
                clients,
                size: charge.size,
                sigma_least: charge.sigma,
                sigma_most: most,
                units: charge.cost.0,
                draws: charge.draws().unwrap_or_default(),
            });
        }
        // Whoever was asked first: one process and many nodes write the same lines.
        let key = |line: &Line| (line.what.clone(), line.mechanism.clone(), line.bound.clone(), line.units);
        if self.lines.len() > begin + 1 {
            self.lines[begin..].sort_by_cached_key(key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn costs_round_up() {
        for zcdp in [0.0, 1e-13, 1e-12, 0.001, 1.0 / 3.0, 1.939] {
            assert!(Cost::at_least(zcdp).unwrap().zcdp() >= zcdp);
        }
        assert_eq!(Cost::at_least(1e-13).unwrap().units(), 1);
        assert_eq!(Cost::at_least(-1.0), None);
        assert_eq!(Cost::at_least(f64::NAN), None);
    }

    #[test]
    fn an_account_stops_at_its_budget() {
        let account = Account { spent: 5, releases: 1, budget: Some(10), ..Account::default() };
        assert!(account.affords(Cost(5)) && !account.affords(Cost(6)));
        assert!(Account::default().affords(Cost(u64::MAX)));
    }
}
