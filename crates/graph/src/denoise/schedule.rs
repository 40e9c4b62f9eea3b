//! Strengths that fall from round to round: strong at first, when models are rough, down to the chosen ones.

use super::Strength;
use fedkin_numeric::power;

/// `nu_t = max(beta, nu0 (1 - eta)^(t - 1))` in round `t` = 1, 2, ..; zero where `beta` is zero, else a run
/// without denoising would not be local training. (The printed rule compares `nu_t` with `beta` before it writes
/// one or the other, so that it alternates in the end.)
pub fn decayed(beta: f64, start: f64, rate: f64, round: u32) -> f64 {
    if beta == 0.0 {
        return 0.0;
    }
    beta.max(start * power(1.0 - rate, round.saturating_sub(1)))
}

/// `min(tau, t)`: one eigenvalue more in every round.
pub fn retained(tau: usize, round: u32) -> usize {
    tau.min(round.max(1) as usize)
}

/// How strengths fall.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Decay {
    /// `nu0`: the strength of the first round.
    pub start: f64,
    /// `eta`: the part that is lost from round to round.
    pub rate: f64,
}

impl Decay {
    /// The strength of round `t` = 1, 2, .. on the way to the final one.
    pub fn at(self, end: &Strength, round: u32) -> Strength {
        Strength {
            beta1: decayed(end.beta1, self.start, self.rate, round),
            beta2: decayed(end.beta2, self.start, self.rate, round),
            tau: retained(end.tau, round),
            neighbours: end.neighbours,
        }
    }
}
