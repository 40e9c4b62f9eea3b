//! `FedProx`: `FedAvg` whose clients are pulled towards the served model.
//!
//! Paper: Li et al., Federated optimization in heterogeneous networks, 2020. In a round every asked client takes the steps of
//! `FedAvg` on
//!
//! ```text
//! h_k(w) = f_k(w) + (mu/2) |w - w_served|^2
//! ```
//!
//! with the *square* of the distance, whose gradient is `mu (w - w_served)`. The pull leaves the running statistics of batch
//! norm alone: they are no parameters of f_k.
//!
//! | symbol | here |
//! |---|---|
//! | mu | `pull` |
//!
//! Reductions: `pull = 0` is `FedAvg` to the bit; a very large one leaves every client where it was served.

use super::star::Star;
use super::training::{Batches, Sampled, Steps, Training, WEIGHTS, Weighting};
use fedkin_privacy::Protection;
use fedkin_settings::{Kind, Preset, settings};

/// The method.
#[derive(Debug, Clone)]
pub struct FedProx {
    training: Training,
    pull: f64,
}

settings! {
    /// Keys of `FedProx`.
    pub struct FedProxSettings {
        pull: f64 => Kind::FROM_ZERO, Preset::Number(0.01),
            "weight of half the squared distance to the served model (mu)";
        flatten sampled: Sampled;
        /// How much a client counts.
        weights: Weighting => param WEIGHTS;
        flatten batches: Batches;
    }
}

impl Star for FedProx {
    const NAME: &'static str = "fedprox";
    const COVERED_BY: &'static [Protection] = &[Protection::DpSgd];
    type Settings = FedProxSettings;

    fn steps(settings: &FedProxSettings) -> Steps {
        let FedProxSettings { sampled, weights, batches, .. } = settings.clone();
        Steps { batches, sampled: Some(sampled), weights }
    }

    fn build(settings: FedProxSettings, training: Training) -> Result<Self, String> {
        Ok(Self { training, pull: settings.pull })
    }

    fn training(&self) -> &Training {
        &self.training
    }

    fn pull(&self) -> f64 {
        self.pull
    }
}
