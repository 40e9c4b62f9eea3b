//! What everything that a client released costs together.
//!
//! All releases here are Gaussian; some are of Poisson samples. Three upper bounds on the same epsilon, of which the
//! least counts:
//!
//! - the tight conversion of the zCDP total, sampled releases priced as if nothing were sampled;
//! - the exact composition of the same Gaussians, again as if nothing were sampled;
//! - Renyi divergences: those of the sampled releases, and order times zCDP for the others, added up.
//!
//! That not sampling costs at least as much holds for every release whatever came before it, so the first two compose.

use super::{Renyi, epsilon_of_gaussian, epsilon_of_zcdp};
use crate::ledger::{Account, Cost};
use std::collections::BTreeMap;

/// Prices accounts. Keeps the curve of every kind of sampled release: it takes an integral per order.
#[derive(Debug, Clone, Default)]
pub struct Prices {
    /// The curve of one release, by noise multiplier and rate.
    curves: BTreeMap<(u64, u64), Renyi>,
}

impl Prices {
    /// Epsilon by the better of the tight conversion of zCDP and Renyi divergences.
    pub fn epsilon(&mut self, account: &Account, delta: f64) -> f64 {
        self.sampled(account, delta).min(epsilon_of_zcdp(account.total().zcdp(), delta))
    }

    /// Epsilon by the better of the exact composition of Gaussians and Renyi divergences.
    pub fn epsilon_gaussian(&mut self, account: &Account, delta: f64) -> f64 {
        self.sampled(account, delta).min(epsilon_of_gaussian(account.total().zcdp(), delta))
    }

    /// Epsilon by Renyi divergences; infinite where nothing is gained by them.
    fn sampled(&mut self, account: &Account, delta: f64) -> f64 {
        self.renyi(account).map_or(f64::INFINITY, |curve| curve.epsilon(delta).0)
    }

    /// The curve of all releases; `None` where none of them is of a sample.
    pub fn renyi(&mut self, account: &Account) -> Option<Renyi> {
        let mut plain = account.spent;
        let mut all: Option<Renyi> = None;
        for draws in account.sampled.iter().filter(|draws| draws.rate < 1.0 && draws.steps > 0) {
            // An account whose parts exceed its total has no price that could be trusted.
            plain = plain.checked_sub(draws.unsampled()?.units())?;
            let key = (draws.multiplier.to_bits(), draws.rate.to_bits());
            let one = self.curves.entry(key).or_insert_with(|| {
                let mut one = draws.releases();
                one.rounds = 1;
                one.renyi(draws.multiplier)
            });
            let curve = one.times(draws.steps);
            all = Some(match all {
                Some(sum) => sum.plus(&curve),
                None => curve,
            });
        }
        let all = all?;
        Some(if plain == 0 { all } else { all.plus(&Renyi::zcdp(Cost::from_units(plain).zcdp())) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ledger::Draws;

    fn account(plain: u64, sampled: &[(f64, f64, u64)]) -> Account {
        let sampled: Box<[Draws]> =
            sampled.iter().map(|&(multiplier, rate, steps)| Draws { multiplier, rate, steps }).collect();
        let spent = plain + sampled.iter().map(|draws| draws.unsampled().unwrap().units()).sum::<u64>();
        Account { spent, sampled, ..Account::default() }
    }

    /// One kind of sampled releases costs what the accountant says of it alone.
    #[test]
    fn sampled_releases_alone_cost_what_they_cost_alone() {
        let mut prices = Prices::default();
        for (multiplier, rate, steps) in [(1.1, 0.01, 1000), (4.0, 0.3, 7), (0.7, 0.05, 40), (2.0, 1.0, 5)] {
            let account = account(0, &[(multiplier, rate, steps)]);
            let alone = account.sampled[0].releases().epsilon(multiplier, 1e-5);
            let ours = prices.epsilon_gaussian(&account, 1e-5);
            assert!((ours / alone - 1.0).abs() < 1e-9, "{multiplier} {rate} {steps}: {ours} {alone}");
            assert!(prices.epsilon(&account, 1e-5) >= ours);
        }
    }

    /// More kinds cost more than each, and never more than the whole as if nothing were sampled.
    #[test]
    fn kinds_add_up_and_never_beyond_the_unsampled_price() {
        let mut prices = Prices::default();
        let kinds = [(1.0, 0.02, 300), (2.0, 0.2, 20)];
        let both = account(30_000_000_000, &kinds);
        let all = prices.epsilon_gaussian(&both, 1e-6);
        for kind in kinds {
            let part = prices.epsilon_gaussian(&account(0, &[kind]), 1e-6);
            let with = prices.epsilon_gaussian(&account(30_000_000_000, &[kind]), 1e-6);
            assert!(part < with && with < all, "{part} {with} {all}");
        }
        assert!(all < epsilon_of_gaussian(both.total().zcdp(), 1e-6));
        // Plain releases alone are priced as before.
        let plain = account(500_000_000_000, &[]);
        assert_eq!(prices.epsilon(&plain, 1e-6), epsilon_of_zcdp(0.5, 1e-6));
        assert_eq!(prices.epsilon_gaussian(&plain, 1e-6), epsilon_of_gaussian(0.5, 1e-6));
        // A total below its parts is not believed.
        let odd = Account { spent: 5, ..both };
        assert_eq!(prices.renyi(&odd), None);
    }
}
