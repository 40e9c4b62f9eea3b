//! Mechanisms: a function together with its privacy map.

use super::bound::{Bound, Trust};
use super::ledger::Cost;
use crate::rng::{PrivateRng, Random};

mod sealed {
    pub trait Sealed {}
    impl Sealed for super::Gaussian {}
}

/// A randomised function whose price is known. Sealed: a mechanism written elsewhere could claim any price.
pub trait Mechanism: sealed::Sealed {
    /// What it perturbs.
    type Value;
    /// Its name in the ledger.
    const NAME: &'static str;
    /// What one use costs, rounded up.
    fn cost(&self) -> Cost;
    /// Standard deviation of the noise per coordinate.
    fn sigma(&self) -> f64;
    /// Whether the sensitivity behind the price is enforced.
    fn trust(&self) -> Trust;
    /// How many numbers a value holds.
    fn size(value: &Self::Value) -> usize;
    /// Perturbs a value in place.
    fn apply(&self, value: &mut Self::Value, noise: &mut PrivateRng);
}

/// Gaussian noise on a vector, calibrated in zCDP: sigma = sensitivity / sqrt(2 budget), equation (47).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Gaussian {
    sigma: f64,
    cost: Cost,
    trust: Trust,
}

impl Gaussian {
    /// The mechanism that spends `budget` (zCDP) on a query of this L2 sensitivity. `None` where either is
    /// not a positive finite number: noise of zero size would be a free release.
    pub fn zcdp(sensitivity: Bound, budget: f64) -> Option<Self> {
        let positive = |x: f64| x > 0.0 && x.is_finite();
        if !positive(sensitivity.value()) || !positive(budget) {
            return None;
        }
        // Both roundings go the safe way: a little more noise, a little more charged.
        let sigma = (sensitivity.value() / (2.0 * budget).sqrt()) * (1.0 + 4.0 * f64::EPSILON);
        if !positive(sigma) {
            return None;
        }
        Some(Self { sigma, cost: Cost::at_least(budget)?, trust: sensitivity.trust() })
    }
}

impl Mechanism for Gaussian {
    type Value = Vec<f64>;
    const NAME: &'static str = "gaussian";

    fn cost(&self) -> Cost {
        self.cost
    }

    fn sigma(&self) -> f64 {
        self.sigma
    }

    fn trust(&self) -> Trust {
        self.trust
    }

    fn size(value: &Vec<f64>) -> usize {
        value.len()
    }

    fn apply(&self, value: &mut Vec<f64>, noise: &mut PrivateRng) {
        noise.perturb(self.sigma, value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_privacy_map_never_understates() {
        for budget in [1e-9, 0.001, 0.3, 2.0] {
            for sensitivity in [1e-6, 0.002, 1.0, 50.0] {
                let gaussian = Gaussian::zcdp(Bound::assumed(sensitivity), budget).unwrap();
                let spent = sensitivity * sensitivity / (2.0 * gaussian.sigma() * gaussian.sigma());
                assert!(gaussian.cost().zcdp() >= spent, "budget {budget}, sensitivity {sensitivity}");
                assert!(spent > budget * (1.0 - 1e-12));
            }
        }
    }

    #[test]
    fn a_free_release_cannot_be_built() {
        for (sensitivity, budget) in
            [(0.0, 1.0), (1.0, 0.0), (-1.0, 1.0), (f64::NAN, 1.0), (1.0, f64::INFINITY), (f64::INFINITY, 1.0)]
        {
            assert!(Gaussian::zcdp(Bound::assumed(sensitivity), budget).is_none());
        }
    }
}
