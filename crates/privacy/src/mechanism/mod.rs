//! Mechanisms: a function together with its privacy map.
//!
//! A Gaussian adds noise of deviation sigma to a query whose answer moves by at most `sensitivity` when one
//! record is replaced, and costs sensitivity^2 / (2 sigma^2) zCDP. Here the price is given and sigma follows.
//! Three kinds of answers, each with the norm in which its sensitivity is meant:
//!
//! | value | sensitivity | noise |
//! |---|---|---|
//! | `Vec<f64>` | Euclidean norm | sigma on every number |
//! | `f64` | absolute value | sigma |
//! | [`Symmetric`] | Frobenius norm of the whole matrix | sigma on the diagonal, sigma / sqrt 2 beside it |
//!
//! A number beside the diagonal stands twice in the matrix and counts twice in its norm, so half the variance
//! gives the same price. With a change D of the matrix:
//!
//! ```text
//! sum over i of D_ii^2 / (2 sigma^2)  +  sum over i < j of D_ij^2 / (2 sigma^2 / 2)  =  |D|^2 / (2 sigma^2)
//! ```

mod grid;
mod sampled;
mod symmetric;

use super::bound::{Bound, Trust};
use super::ledger::Cost;
use super::refusal::Refusal;
use crate::PrivateRng;
use fedkin_numeric::rng::Random;
use fedkin_settings::choice;
use grid::Grid;
pub use sampled::SampledSum;
use std::marker::PhantomData;
pub use symmetric::Symmetric;

mod sealed {
    pub trait Sealed {}
    impl<V> Sealed for super::Gaussian<V> {}

    pub trait Value {}
    impl Value for Vec<f64> {}
    impl Value for f64 {}
    impl Value for super::Symmetric {}
}

/// A randomised function whose price is known. Sealed: a mechanism written elsewhere could claim any price.
pub trait Mechanism: sealed::Sealed {
    /// What it perturbs.
    type Value;
    /// Its name in the ledger.
    fn name(&self) -> &'static str;
    /// What one use costs, rounded up.
    fn cost(&self) -> Cost;
    /// Standard deviation of the noise per coordinate.
    fn sigma(&self) -> f64;
    /// Whether the sensitivity behind the price is enforced.
    fn trust(&self) -> Trust;
    /// Whether it protects at all. What does not is a disclosure under another name, and is treated as one.
    fn private(&self) -> bool;
    /// How many numbers a value holds.
    fn size(value: &Self::Value) -> usize;
    /// Perturbs a value in place. Refused where the value is not of the size the mechanism was built for, or
    /// is not finite.
    fn apply(&self, value: &mut Self::Value, noise: &mut PrivateRng) -> Result<(), Refusal>;
}

choice! {
    /// What draws the noise.
    #[derive(Default)]
    pub enum Sampler {
        /// The exact discrete Gaussian on a grid of 2^k.
        #[default]
        Discrete = "discrete",
        /// Floating-point numbers, whose gaps leak: for simulations.
        Float = "float",
        /// No noise, and the grid skipped: the private path of a run with nothing added. Not private.
        None = "none",
    }
}

impl Sampler {
    /// Whether this is the name of Gaussian noise in a ledger.
    pub fn is_gaussian(name: &str) -> bool {
        [Sampler::Discrete, Sampler::Float].iter().any(|sampler| sampler.name() == name)
    }

    /// Its name in ledger and report.
    pub fn name(self) -> &'static str {
        match self {
            Sampler::Discrete => "discrete gaussian",
            Sampler::Float => "gaussian (float)",
            Sampler::None => "no noise, not private",
        }
    }
}

/// Numbers that a Gaussian can perturb. Sealed: how many coordinates there are and which count twice is part of
/// the price.
pub trait Perturbed: sealed::Value {
    /// How many numbers a value holds.
    fn numbers(&self) -> usize;
    /// Whether this is a value of the given length (rows, of a matrix).
    fn fits(&self, length: usize) -> bool;
    /// How many coordinates of the norm a value of this length has.
    fn coordinates(length: usize) -> f64;
    /// Visits the numbers in order, in runs; whether a run's noise has half the variance.
    fn runs(&mut self, visit: impl FnMut(&mut [f64], bool));
}

impl Perturbed for Vec<f64> {
    fn numbers(&self) -> usize {
        self.len()
    }

    fn fits(&self, length: usize) -> bool {
        self.len() == length
    }

    fn coordinates(length: usize) -> f64 {
        length as f64
    }

    fn runs(&mut self, mut visit: impl FnMut(&mut [f64], bool)) {
        visit(self, false);
    }
}

impl Perturbed for f64 {
    fn numbers(&self) -> usize {
        1
    }

    fn fits(&self, length: usize) -> bool {
        length == 1
    }

    fn coordinates(_: usize) -> f64 {
        1.0
    }

    fn runs(&mut self, mut visit: impl FnMut(&mut [f64], bool)) {
        visit(std::slice::from_mut(self), false);
    }
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Noise {
    Grid(Grid),
    Float,
    None,
}

/// Gaussian noise, calibrated in zCDP: sigma = sensitivity / sqrt(2 budget), equation (47).
#[derive(Debug, PartialEq)]
pub struct Gaussian<V = Vec<f64>> {
    sigma: f64,
    cost: Cost,
    trust: Trust,
    noise: Noise,
    length: usize,
    of: PhantomData<fn(V)>,
}

impl<V> Clone for Gaussian<V> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<V> Copy for Gaussian<V> {}

impl Gaussian<Vec<f64>> {
    /// The mechanism that spends `budget` (zCDP) on a vector of this length and L2 sensitivity. `None` where
    /// sensitivity or budget is not a positive finite number: noise of zero size would be a free release.
    pub fn vector(sensitivity: Bound, budget: f64, length: usize, sampler: Sampler) -> Option<Self> {
        Self::zcdp(sensitivity, budget, length, sampler)
    }
}

impl Gaussian<f64> {
    /// The same for one number.
    pub fn scalar(sensitivity: Bound, budget: f64, sampler: Sampler) -> Option<Self> {
        Self::zcdp(sensitivity, budget, 1, sampler)
    }
}

impl Gaussian<Symmetric> {
    /// The same for a symmetric matrix with so many rows; the sensitivity is in the Frobenius norm.
    pub fn symmetric(sensitivity: Bound, budget: f64, rows: usize, sampler: Sampler) -> Option<Self> {
        Self::zcdp(sensitivity, budget, rows, sampler)
    }
}

impl<V: Perturbed> Gaussian<V> {
    fn zcdp(sensitivity: Bound, budget: f64, length: usize, sampler: Sampler) -> Option<Self> {
        let trust = sensitivity.trust();
        let of = PhantomData;
        if sampler == Sampler::None {
            // Nothing is calibrated, so an infinite clip is as good as any.
            return Some(Self { sigma: 0.0, cost: Cost::default(), trust, noise: Noise::None, length, of });
        }
        let positive = |x: f64| x > 0.0 && x.is_finite();
        if !positive(sensitivity.value()) || !positive(budget) {
            return None;
        }
        let cost = Cost::at_least(budget)?;
        let (sigma, noise) = match sampler {
            Sampler::Discrete => {
                let grid = Grid::zcdp(sensitivity.value(), budget, V::coordinates(length))?;
                (grid.sigma(), Noise::Grid(grid))
            }
            // Both roundings go the safe way: a little more noise, a little more charged.
            _ => (sensitivity.value() / (2.0 * budget).sqrt() * (1.0 + 4.0 * f64::EPSILON), Noise::Float),
        };
        positive(sigma).then_some(Self { sigma, cost, trust, noise, length, of })
    }

    /// The distance between two neighbouring points of the grid, where there is one.
    pub fn step(&self) -> Option<f64> {
        match &self.noise {
            Noise::Grid(grid) => Some(grid.step()),
            Noise::Float | Noise::None => None,
        }
    }

    /// What draws the noise.
    pub fn sampler(&self) -> Sampler {
        match self.noise {
            Noise::Grid(_) => Sampler::Discrete,
            Noise::Float => Sampler::Float,
            Noise::None => Sampler::None,
        }
    }

    fn perturb<R: Random>(&self, value: &mut V, rng: &mut R) -> Result<(), Refusal> {
        if !value.fits(self.length) {
            return Err(Refusal::NoMechanism);
        }
        let mut finite = true;
        value.runs(|run, _| finite &= run.iter().all(|x| x.is_finite()));
        if !finite {
            if self.noise == Noise::None {
                return Err(Refusal::Unsolved);
            }
            // A refusal would tell, for nothing, that these records lead here: zero leaves, with noise, and is paid for.
            value.runs(|run, _| run.fill(0.0));
        }
        match &self.noise {
            Noise::Grid(grid) => grid.perturb(value, rng),
            Noise::Float => {
                // sigma / sqrt 2, rounded up.
                let halved = self.sigma * std::f64::consts::FRAC_1_SQRT_2 * (1.0 + 4.0 * f64::EPSILON);
                value.runs(|run, half| rng.perturb(if half { halved } else { self.sigma }, run));
            }
            Noise::None => {}
        }
        Ok(())
    }
}

impl<V: Perturbed> Mechanism for Gaussian<V> {
    type Value = V;

    fn name(&self) -> &'static str {
        self.sampler().name()
    }

    fn cost(&self) -> Cost {
        self.cost
    }

    fn sigma(&self) -> f64 {
        self.sigma
    }

    fn trust(&self) -> Trust {
        self.trust
    }

    fn private(&self) -> bool {
        self.noise != Noise::None
    }

    fn size(value: &V) -> usize {
        value.numbers()
    }

    fn apply(&self, value: &mut V, noise: &mut PrivateRng) -> Result<(), Refusal> {
        self.perturb(value, noise)
    }
}

#[cfg(test)]
mod tests;
