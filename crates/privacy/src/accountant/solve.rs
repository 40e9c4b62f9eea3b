//! Inverse problems: how much noise a given epsilon takes.

use super::gaussian::{epsilon_of_gaussian, gaussian_zcdp_of_epsilon};
use super::renyi::Renyi;
use super::sampled::Neighbours;
use super::{is_delta, is_positive, is_size, up};
use fedkin_numeric::{exp, ln};

/// The least noise with which so many releases, each of this sensitivity and seen in full, stay within
/// (epsilon, delta): exact composition of Gaussians.
pub fn gaussian_sigma(epsilon: f64, delta: f64, sensitivity: f64, rounds: u64) -> f64 {
    if !is_size(sensitivity) {
        return f64::INFINITY;
    }
    let zcdp = gaussian_zcdp_of_epsilon(epsilon, delta);
    let mut sigma = up(sensitivity * up((rounds as f64 / (2.0 * zcdp)).sqrt()));
    // Roundings on the way back must not put the price of this noise above epsilon, not by the last bit.
    let back = Sampled { rate: 1.0, clip: sensitivity, neighbours: Neighbours::AddRemove, rounds };
    let mut more = 64.0 * f64::EPSILON;
    while sigma.is_finite() && more < 1.0 && back.epsilon(sigma, delta) > epsilon {
        sigma *= 1.0 + more;
        more *= 2.0;
    }
    sigma
}

/// Releases of a Poisson sample's sum with Gaussian noise: what DP-SGD sends.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sampled {
    /// The chance of a record to be in the sample of a release.
    pub rate: f64,
    /// The largest norm of one record's contribution.
    pub clip: f64,
    /// How neighbouring data sets differ.
    pub neighbours: Neighbours,
    /// How many releases.
    pub rounds: u64,
}

impl Sampled {
    /// The curve of all releases.
    pub fn renyi(&self, sigma: f64) -> Renyi {
        Renyi::sampled_gaussian(sigma / up(self.clip), self.rate, self.neighbours).times(self.rounds)
    }

    /// Epsilon of all releases: the better of the Renyi bound and the exact price of the same releases without
    /// sampling, which sampling never exceeds (showing the sample, too, would not).
    pub fn epsilon(&self, sigma: f64, delta: f64) -> f64 {
        if !(0.0..=1.0).contains(&self.rate) || !is_delta(delta) {
            return f64::INFINITY;
        }
        if self.rate == 0.0 || self.rounds == 0 || self.clip == 0.0 {
            return 0.0;
        }
        let plain = epsilon_of_gaussian(self.unsampled_zcdp(sigma), delta);
        if self.rate == 1.0 { plain } else { plain.min(self.renyi(sigma).epsilon(delta).0) }
    }

    /// The zCDP price of the same releases without sampling.
    pub fn unsampled_zcdp(&self, sigma: f64) -> f64 {
        let distance = match self.neighbours {
            Neighbours::Replace => 2.0 * self.clip,
            Neighbours::AddRemove => self.clip,
        };
        if !is_positive(sigma) || !is_size(distance) {
            return f64::INFINITY;
        }
        let ratio = up(distance / sigma);
        up(0.5 * up(ratio * ratio) * self.rounds as f64)
    }

    /// The least noise, to nine digits, that stays within (epsilon, delta); infinity where none does.
    pub fn sigma(&self, epsilon: f64, delta: f64) -> f64 {
        let enough = |sigma: f64| self.epsilon(sigma, delta) <= epsilon;
        if !is_positive(epsilon) || !is_delta(delta) || !is_positive(self.clip) {
            return if self.clip == 0.0 { 0.0 } else { f64::INFINITY };
        }
        // What is enough without sampling is enough with it.
        let distance = if self.neighbours == Neighbours::Replace { 2.0 } else { 1.0 } * self.clip;
        let mut high = gaussian_sigma(epsilon, delta, distance, self.rounds);
        if !high.is_finite() || self.rate == 1.0 || self.rate == 0.0 || self.rounds == 0 {
            return if self.rate == 0.0 || self.rounds == 0 { 0.0 } else { high };
        }
        let mut low = high;
        while enough(low) && low > 1e-9 * self.clip {
            high = low;
            low *= 0.5;
        }
        // The scale of the noise is what matters: halve in logarithms.
        while high > low * (1.0 + 1e-9) {
            let middle = exp(0.5 * (ln(low) + ln(high)));
            if middle <= low || middle >= high {
                break;
            }
            if enough(middle) {
                high = middle;
            } else {
                low = middle;
            }
        }
        high
    }
}
