//! `FedBN`: `FedAvg` whose clients keep their norms to themselves.
//!
//! Paper: Li et al., `FedBN`: federated learning on non-IID features via local batch normalization, 2021. A model is the pair
//! (u, v): v the coordinates of batch and group norm (scale, shift, running statistics), u all the rest. In a round every
//! asked client takes the steps of `FedAvg` on both parts, from the served u and from its own v:
//!
//! ```text
//! (u_k, v_k) <- steps on f_k from (u, v_k)
//! u           = sum over the asked clients of p_k u_k / sum of p_k
//! ```
//!
//! `v_k` never leaves. Before a client's first round it is what a net begins with, the same for all.
//!
//! | symbol | here |
//! |---|---|
//! | v | [`Star::kept`] |
//! | `v_k` | the norms in what a client remembers |
//! | E, eta, `p_k` | `epochs`, `learning_rate`, `weights` |
//!
//! A client's models: its own after training, `(u_k, v_k)`, and what it is served, `(u, v_k)`: no two clients have the same.
//! What a client remembers comes from its records without noise and moves its later answers, so no mechanism covers it.
//!
//! Reductions: on a model without norms it is `FedAvg` to the bit, and one client alone is `FedAvg` with one client
//! up to the order of its batches.

use super::star::{Job, Star};
use super::training::{Batches, Steps, Training, WEIGHTS, Weighting, copy_ranges};
use crate::algorithm::Personal;
use fedkin_learner::{Failure, Learner, Role};
use fedkin_settings::settings;
use std::ops::Range;

/// The method.
#[derive(Debug, Clone)]
pub struct FedBn {
    training: Training,
    norms: Vec<Range<usize>>,
}

settings! {
    /// Keys of `FedBN`.
    pub struct FedBnSettings {
        /// How much a client counts.
        weights: Weighting => param WEIGHTS;
        flatten batches: Batches;
    }
}

impl FedBn {
    /// The served model with the norms of the client.
    fn joined(&self, own: &[f64], served: &[f64]) -> Vec<f64> {
        let mut model = served.to_vec();
        if !own.is_empty() {
            copy_ranges(&self.norms, own, &mut model);
        }
        model
    }
}

impl Star for FedBn {
    const NAME: &'static str = "fedbn";
    const SHARED: &'static [bool] = &[false, false];
    type Settings = FedBnSettings;

    fn steps(settings: &FedBnSettings) -> Steps {
        let FedBnSettings { weights, batches } = settings.clone();
        Steps { batches, sampled: None, weights }
    }

    fn build(_: FedBnSettings, training: Training) -> Result<Self, String> {
        let norms = training.family().ranges(&[Role::Norm, Role::Statistics]);
        Ok(Self { training, norms })
    }

    fn training(&self) -> &Training {
        &self.training
    }

    fn kept(&self) -> &[Range<usize>] {
        &self.norms
    }

    fn solve(&self, mut job: Job<'_>, own: &mut Vec<f64>) -> Result<Option<Vec<f64>>, Failure> {
        *own = self.joined(own, job.served);
        self.training.descend(job.learner, job.round, None, &mut job.rng, own, job.buffers)?;
        Ok(None)
    }

    fn personal(&self, _: Option<&dyn Learner>, own: &[f64], served: &[f64], out: &mut Personal<'_>) {
        out("client", if own.is_empty() { served } else { own });
        out("served", &self.joined(own, served));
    }
}
