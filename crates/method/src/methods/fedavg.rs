//! `FedAvg`: one model for all, from a few gradient steps at every client; with `dp-sgd` every step is private.
//!
//! Papers: `McMahan` et al., Communication-efficient learning of deep networks from decentralized data, 2017 (the
//! averaging); Abadi et al., Deep learning with differential privacy, 2016 (the private step).
//!
//! Objective: `sum over k of p_k f_k(w)` with f_k of equation (16) and `p_k` = `D_k / sum of D_j` or 1/K. In a round every
//! asked client starts from the served model w and takes steps, in mini-batches or on Poisson samples S of its records:
//!
//! ```text
//! g    = sum over i in S of clip(grad loss_i(w_k), C) + N(0, (z C)^2)        clip and noise with `dp-sgd` only
//! w_k <- w_k - eta (g / (q D_k) + 2 strength w_k)
//! w    = sum over the asked clients of p_k w_k / sum of p_k
//! ```
//!
//! | symbol | here |
//! |---|---|
//! | E | `epochs`, or `local_steps` on Poisson samples |
//! | eta | `learning_rate`, times `decay` from round to round |
//! | q | `sampling_rate` |
//! | C, z | `privacy.clip`, `privacy.noise_multiplier` |
//! | `p_k` | `weights` |
//! | `strength = lambda / K` | the regulariser, not clipped: it does not depend on data |
//!
//! The sum is divided by the expected size q D_k, which is public; the true size of a sample is secret. What leaves is a
//! function of noisy sums and of what was asked, so those sums are what is charged. A client remembers the model it sent,
//! and never reads it again.
//!
//! Reductions: one step on all records with all clients is gradient descent on the objective; one client alone is
//! (stochastic) gradient descent.

use super::star::Star;
use super::training::{Batches, Sampled, Steps, Training, WEIGHTS, Weighting};
use fedkin_privacy::Protection;
use fedkin_settings::settings;

/// The method.
#[derive(Debug, Clone)]
pub struct FedAvg(Training);

settings! {
    /// Keys of `FedAvg`.
    pub struct FedAvgSettings {
        flatten sampled: Sampled;
        /// How much a client counts.
        weights: Weighting => param WEIGHTS;
        flatten batches: Batches;
    }
}

impl Star for FedAvg {
    const NAME: &'static str = "fedavg";
    const VERSION: u16 = 2;
    const COVERED_BY: &'static [Protection] = &[Protection::DpSgd];
    type Settings = FedAvgSettings;

    fn steps(settings: &FedAvgSettings) -> Steps {
        let FedAvgSettings { sampled, weights, batches } = settings.clone();
        Steps { batches, sampled: Some(sampled), weights }
    }

    fn build(_: FedAvgSettings, training: Training) -> Result<Self, String> {
        Ok(Self(training))
    }

    fn training(&self) -> &Training {
        &self.0
    }
}
