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
use super::training::{
    BATCH, DECAY, EPOCHS, LEARNING_RATE, LOCAL_STEPS, MOMENTUM, SAMPLING_RATE, Training, WEIGHT_DECAY,
    WEIGHTS,
};
use crate::params::{Kind, Param, Preset, Values};

/// `pull`
pub(super) const PULL: Param = Param {
    name: "pull",
    kind: Kind::Number { least: 0.0, most: f64::INFINITY, open: false },
    preset: Preset::Number(0.01),
    help: "weight of half the squared distance to the served model (mu)",
};

/// The method.
#[derive(Debug, Clone)]
pub struct FedProx {
    training: Training,
    pull: f64,
}

impl Star for FedProx {
    const NAME: &'static str = "fedprox";
    const PARAMS: &'static [Param] = &[
        PULL,
        LOCAL_STEPS,
        LEARNING_RATE,
        SAMPLING_RATE,
        WEIGHTS,
        EPOCHS,
        BATCH,
        DECAY,
        MOMENTUM,
        WEIGHT_DECAY,
    ];
    const SAMPLED: bool = true;

    fn build(values: &Values, training: Training) -> Result<Self, String> {
        Ok(Self { training, pull: values.number("pull").unwrap_or(0.01) })
    }

    fn training(&self) -> &Training {
        &self.training
    }

    fn pull(&self) -> f64 {
        self.pull
    }
}
