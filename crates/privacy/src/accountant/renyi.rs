//! Renyi divergences at fixed whole orders: what composes when records are sampled.

use super::sampled::{self, Neighbours};
use super::{is_delta, is_size, up};
use fedkin_numeric::{exp, ln};

/// The orders of every curve. Whole numbers: there the divergences of sampled Gaussians are finite sums (or one
/// integral that whole orders let one bound), see `sampled`.
pub const ORDERS: [u32; 73] = {
    let mut orders = [0; 73];
    let mut at = 0;
    while at < 63 {
        orders[at] = at as u32 + 2;
        at += 1;
    }
    let larger = [72, 80, 96, 128, 192, 256, 384, 512, 768, 1024];
    while at < 73 {
        orders[at] = larger[at - 63];
        at += 1;
    }
    orders
};

/// An upper bound on the Renyi divergence between the transcripts on two neighbouring data sets, at every order of
/// [`ORDERS`]. Adding curves is adaptive composition.
#[derive(Debug, Clone, PartialEq)]
pub struct Renyi {
    values: Vec<f64>,
}

impl Renyi {
    /// The curve of releasing nothing.
    pub fn zero() -> Self {
        Self { values: vec![0.0; ORDERS.len()] }
    }

    /// One Gaussian release: order times `1 / (2 multiplier^2)`, with the multiplier sigma over sensitivity.
    pub fn gaussian(multiplier: f64) -> Self {
        Self::of(|order| {
            if multiplier > 0.0 {
                up(f64::from(order) / (2.0 * multiplier * multiplier))
            } else {
                f64::INFINITY
            }
        })
    }

    /// One release of a Poisson sample's sum with Gaussian noise. Every record is in the sample with probability
    /// `rate`, independently and secretly, and contributes a vector of norm at most 1 / `multiplier` times sigma.
    pub fn sampled_gaussian(multiplier: f64, rate: f64, neighbours: Neighbours) -> Self {
        Self::of(|order| sampled::divergence(order, multiplier, rate, neighbours))
    }

    /// Anything with this zCDP price.
    pub fn zcdp(zcdp: f64) -> Self {
        Self::of(|order| up(f64::from(order) * zcdp))
    }

    fn of(value: impl Fn(u32) -> f64) -> Self {
        // What is not a number has no price.
        let sound = |value: f64| if value >= 0.0 { value } else { f64::INFINITY };
        Self { values: ORDERS.iter().map(|&order| sound(value(order))).collect() }
    }

    /// The divergences, by order.
    pub fn values(&self) -> &[f64] {
        &self.values
    }

    /// Both, one after the other; the second may depend on what the first showed.
    #[must_use]
    pub fn plus(&self, other: &Self) -> Self {
        Self { values: self.values.iter().zip(&other.values).map(|(a, b)| up(a + b)).collect() }
    }

    /// So many times the same.
    #[must_use]
    pub fn times(&self, count: u64) -> Self {
        // Zero times an infinite price is nothing released.
        let many = |value: &f64| if count == 0 { 0.0 } else { up(value * count as f64) };
        Self { values: self.values.iter().map(many).collect() }
    }

    /// The tight conversion (Canonne, Kamath, Steinke 2020, Proposition 12) and the order at which it is best:
    /// `epsilon = min over orders a of D_a + ln(1 - 1/a) - (ln delta + ln a) / (a - 1)`.
    ///
    /// Where even the Kullback-Leibler divergence, at most `D_a`, keeps the total variation below delta (Bretagnolle and
    /// Huber: `variation^2 <= 1 - exp(-D)`), epsilon is zero.
    pub fn epsilon(&self, delta: f64) -> (f64, u32) {
        let mut best = (f64::INFINITY, ORDERS[0]);
        if !is_delta(delta) {
            return best;
        }
        for (&order, &divergence) in ORDERS.iter().zip(&self.values) {
            let epsilon = if up(-libm::expm1(-divergence)) < delta * delta {
                0.0
            } else {
                let a = f64::from(order);
                let rest = libm::log1p(-1.0 / a) - (ln(delta) + ln(a)) / (a - 1.0);
                (divergence + rest + (divergence + rest.abs() + 1.0) * (8.0 * f64::EPSILON)).max(0.0)
            };
            if epsilon < best.0 {
                best = (epsilon, order);
            }
        }
        best
    }

    /// The least delta the same proposition gives for an epsilon.
    pub fn delta(&self, epsilon: f64) -> f64 {
        let mut best = 1.0_f64;
        if !is_size(epsilon) {
            return best;
        }
        for (&order, &divergence) in ORDERS.iter().zip(&self.values) {
            let a = f64::from(order);
            let terms =
                [(a - 1.0) * divergence, -(a - 1.0) * epsilon, a * libm::log1p(-1.0 / a), -ln(a - 1.0)];
            let (sum, size) =
                terms.iter().fold((0.0, 0.0), |(sum, size), term| (sum + term, size + f64::abs(*term)));
            let exponent = sum + size * (16.0 * f64::EPSILON);
            if exponent < 0.0 {
                best = best.min(up(exp(exponent)));
            }
        }
        best
    }
}
