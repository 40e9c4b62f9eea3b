//! Noise on the multiples of a power of two.
//!
//! A value is rounded to the nearest whole multiple of 2^k, a discrete Gaussian with a whole sigma s is added
//! to that whole number, and the sum times 2^k leaves:
//!
//! ```text
//! x  ->  n = clamp(round(x / 2^k))  ->  n + N(0, s^2) on the whole numbers  ->  (n + noise) 2^k
//! ```
//!
//! **Price.** Rounding moves each coordinate of each of two neighbouring answers by at most half a step, so
//! the whole numbers differ by at most (sensitivity + sqrt(coordinates) 2^k) / 2^k in norm; the clamp brings
//! numbers closer together, never apart. The discrete Gaussian costs (that)^2 / (2 s^2) zCDP, in any number of
//! dimensions (Canonne, Kamath, Steinke 2020, Theorem 14). s is chosen so that this is at most the budget.
//!
//! **What leaves** depends on the whole number `n + noise` alone, and every whole number can occur for every
//! x. Up to 2^53 steps the product with 2^k is exact; beyond, the nearest floating-point number leaves,
//! which is a function of the whole number (post-processing) and a multiple of 2^k as well.
//!
//! **Which k.** The largest with sqrt(coordinates) 2^k <= 2^-20 sensitivity, so that rounding costs less than
//! a millionth of the noise; but never finer than 2^-50 of sigma, which only a budget below 1e-18 or so asks
//! for. k depends on public numbers alone.

use super::Perturbed;
use crate::discrete::{Coins, DiscreteGaussian};
use fedkin_numeric::rng::Random;

/// How far below the sensitivity the rounding stays, as a power of two.
const FINE: i32 = 20;

/// Values are held within this many steps: far beyond any use, and room for the noise in 128 bits.
const MOST: i128 = 1 << 120;

/// Covers what was rounded before: clips, the product that gave the sensitivity, the solver. 2^-30.
const SLACK: f64 = 1.0 / (1u64 << 30) as f64;

/// A grid with a discrete Gaussian on it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Grid {
    /// 2^k
    step: f64,
    /// 2^-k
    inverse: f64,
    /// s, in steps; below 2^53.
    sigma: u64,
    /// The deviation with half the variance, rounded up, in steps.
    half: u64,
    law: DiscreteGaussian,
    halved: DiscreteGaussian,
}

impl Grid {
    /// The grid and noise that cost at most `budget` for a positive finite sensitivity over so many coordinates.
    pub(super) fn zcdp(sensitivity: f64, budget: f64, coordinates: f64) -> Option<Self> {
        // A relative error of one operation is at most EPSILON / 2; each line makes up for its own.
        let up = |x: f64| x * (1.0 + 4.0 * f64::EPSILON);
        let rounding = up(coordinates.max(1.0).sqrt());
        let scale = (2.0 * budget).sqrt();
        let k = (exponent(sensitivity / rounding)? - FINE).max(exponent(sensitivity / scale)? - 50);
        // Beyond these 2^k times 2^120 or 2^-k is no floating-point number.
        if !(-900..=900).contains(&k) {
            return None;
        }
        let (step, inverse) = (libm::ldexp(1.0, k), libm::ldexp(1.0, -k));
        let moved = up(sensitivity * inverse * (1.0 + SLACK) + rounding);
        let sigma = up(moved / scale).ceil();
        if !(1.0..9.0e15).contains(&sigma) {
            return None;
        }
        let sigma = sigma as u64;
        // The least h with 2 h^2 >= s^2.
        let square = u128::from(sigma) * u128::from(sigma);
        let least = square.div_ceil(2);
        let root = least.isqrt();
        let half = (if root * root < least { root + 1 } else { root }) as u64;
        Some(Self {
            step,
            inverse,
            sigma,
            half,
            law: DiscreteGaussian::whole(sigma)?,
            halved: DiscreteGaussian::whole(half)?,
        })
    }

    pub(super) fn step(&self) -> f64 {
        self.step
    }

    /// The standard deviation: s 2^k, exact. (The discrete law's own is never larger than its parameter.)
    pub(super) fn sigma(&self) -> f64 {
        self.sigma as f64 * self.step
    }

    /// Whether the smaller deviation h is the least with 2 h^2 >= s^2.
    #[cfg(test)]
    pub(super) fn halved_is_tight(&self) -> bool {
        let square = |x: u64| u128::from(x) * u128::from(x);
        2 * square(self.half) >= square(self.sigma) && 2 * square(self.half - 1) < square(self.sigma)
    }

    /// Rounds finite numbers to the grid: what is summed then is summed exactly.
    pub(super) fn round(&self, values: &mut [f64]) {
        for x in values {
            *x = (*x * self.inverse).round_ties_even() * self.step;
        }
    }

    /// Rounds finite numbers to the grid and adds noise.
    pub(super) fn perturb<V: Perturbed, R: Random>(&self, value: &mut V, rng: &mut R) {
        let mut coins = Coins::new(rng);
        value.runs(|run, half| {
            let law = if half { &self.halved } else { &self.law };
            for x in run {
                let sum = self.steps(*x) + law.draw_with(&mut coins);
                *x = sum as f64 * self.step;
            }
        });
    }

    /// The nearest whole number of steps. A product with a power of two is exact, except where it overflows,
    /// which the clamp takes, or is far below one step and becomes zero either way.
    fn steps(&self, x: f64) -> i128 {
        ((x * self.inverse).round_ties_even() as i128).clamp(-MOST, MOST)
    }
}

/// The largest e with 2^e <= x, for a positive normal number.
fn exponent(x: f64) -> Option<i32> {
    (x.is_normal() && x > 0.0).then(|| ((x.to_bits() >> 52) & 0x7ff) as i32 - 1023)
}
