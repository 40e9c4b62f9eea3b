//! Per-FedAvg: a model for all from which one gradient step leads to a good model for each.
//!
//! Paper: Fallah, Mokhtari and Ozdaglar, Personalized federated learning with theoretical guarantees: a model-agnostic
//! meta-learning approach, 2020. Objective: `sum over k of p_k f_k(w - alpha grad f_k(w))`. In a round every asked client
//! takes steps from the served model, each on three mini-batches D, D', D'':
//!
//! ```text
//! w~   = w_k - alpha grad f(w_k, D)
//! g    = grad f(w~, D')
//! w_k <- w_k - beta g                                                                               order = "first"
//! w_k <- w_k - beta (g - alpha (grad f(w_k + delta g, D'') - grad f(w_k - delta g, D'')) / (2 delta))    "hessian-free"
//! ```
//!
//! where the difference stands for the Hessian times g. The server takes the mean as in `FedAvg`.
//!
//! | symbol | here |
//! |---|---|
//! | alpha | `inner_rate`, the same in all rounds: clients adapt with it in the end |
//! | beta | `learning_rate`, times `decay` from round to round |
//! | delta | `difference` |
//! | tau (steps of a round) | `epochs` times the number of mini-batches |
//! | D', D, D'' | the batch whose turn it is, the next one and the one after, around the epoch |
//!
//! So the batches D' of a round are those of `FedAvg`; with fewer than three batches in an epoch some of the three are the
//! same. A step takes two gradients, or four. `momentum` and `weight_decay` belong to the outer step. The running statistics
//! of batch norm move once a step, as D' moves them at w~; steps and differences leave them alone.
//!
//! A client's models: the served one after `inner_steps` steps of size alpha on its own records, in mini-batches from the
//! first record on, and the served one.
//!
//! Reductions: `inner_rate = 0` is `FedAvg` up to rounding; on a quadratic the Hessian-free step is that of
//! `(I - alpha H) g` for every delta.

use super::star::{Job, Star};
use super::training::{Batches, Steps, Training, WEIGHTS, Weighting, copy_ranges};
use crate::algorithm::Personal;
use fedkin_learner::{Abilities, Failure, Learner, Role};
use fedkin_numeric::buffers::Buffers;
use fedkin_numeric::{axpy, scale};
use fedkin_settings::{Kind, Preset, choice, settings};
use std::ops::Range;

/// The method.
#[derive(Debug, Clone)]
pub struct PerFedAvg {
    training: Training,
    inner_rate: f64,
    inner_steps: u32,
    /// The size of differences; absent for first order.
    difference: Option<f64>,
    /// Running statistics: no parameters of f.
    still: Vec<Range<usize>>,
}

choice! {
    /// What becomes of the second derivatives.
    pub enum Order {
        /// They are left out.
        First = "first",
        /// A difference of gradients stands for them.
        HessianFree = "hessian-free",
    }
}

settings! {
    /// Keys of Per-FedAvg.
    pub struct PerFedAvgSettings {
        order: Order => Kind::Choice(Order::WORDS), Preset::Text("first"),
            "what becomes of the second derivatives: left out, or a difference of gradients";
        inner_rate: f64 => Kind::FROM_ZERO, Preset::Number(0.1),
            "size of the step by which a client makes the served model its own (alpha)";
        inner_steps: u32 => Kind::Integer { least: 0, most: 10_000 }, Preset::Integer(1),
            "how many such steps make a client's model; training looks one ahead";
        difference: f64 => Kind::ABOVE_ZERO, Preset::Number(1e-3),
            "how far along a gradient others are taken, for order = \"hessian-free\" (delta)";
        /// How much a client counts.
        weights: Weighting => param WEIGHTS;
        flatten batches: Batches;
    }
}

/// The mini-batches of one step.
struct Three<'a> {
    inner: &'a [u32],
    outer: &'a [u32],
    hessian: &'a [u32],
}

/// Vectors of a model's length that steps write to.
struct Scratch<'a> {
    near: Vec<f64>,
    slope: Vec<f64>,
    buffers: &'a mut Buffers,
}

impl PerFedAvg {
    /// The gradient of `f(w - alpha grad f(w))` on three batches, or the first order of it, and the loss at w~. Running
    /// statistics of w move.
    fn meta_gradient(
        &self,
        learner: &dyn Learner,
        three: &Three<'_>,
        w: &mut [f64],
        scratch: &mut Scratch<'_>,
        out: &mut [f64],
    ) -> Result<f64, Failure> {
        let Scratch { near, slope, buffers } = scratch;
        near.clear();
        near.extend_from_slice(w);
        if self.inner_rate > 0.0 {
            learner.batch_gradient(three.inner, near, slope, buffers)?;
            axpy(-self.inner_rate, slope, near);
            copy_ranges(&self.still, w, near);
        }
        let loss = learner.batch_gradient(three.outer, near, out, buffers)?;
        copy_ranges(&self.still, near, w);
        if let Some(delta) = self.difference.filter(|_| self.inner_rate > 0.0) {
            // g - alpha (H g), one side of the difference after the other; out is read by both.
            let direction = out.to_vec();
            for side in [1.0, -1.0] {
                near.clear();
                near.extend_from_slice(w);
                axpy(side * delta, &direction, near);
                learner.batch_gradient(three.hessian, near, slope, buffers)?;
                axpy(-side * self.inner_rate / (2.0 * delta), slope, out);
            }
        }
        Ok(loss)
    }

    /// The served model after a few steps on the client's own records.
    fn adapted(&self, learner: &dyn Learner, served: &[f64]) -> Vec<f64> {
        let order: Vec<u32> = (0..learner.rows() as u32).collect();
        let batches = self.training.in_batches(&order);
        let (mut w, mut slope) = (served.to_vec(), vec![0.0; served.len()]);
        let mut buffers = Buffers::default();
        for batch in batches.iter().cycle().take(self.inner_steps as usize) {
            if learner.batch_gradient(batch, &mut w, &mut slope, &mut buffers).is_err() {
                // The method is refused for learners without gradients before it starts.
                break;
            }
            axpy(-self.inner_rate, &slope, &mut w);
        }
        self.training.family().round(&mut w);
        w
    }
}

impl Star for PerFedAvg {
    const NEEDS: Abilities = Abilities::PARAMETERS.and(Abilities::BATCHES);
    const NAME: &'static str = "per-fedavg";
    const KEPT: &'static [bool] = &[false, false];
    const PLAIN: bool = false;
    type Settings = PerFedAvgSettings;

    fn steps(settings: &PerFedAvgSettings) -> Steps {
        let PerFedAvgSettings { weights, batches, .. } = settings.clone();
        Steps { batches, sampled: None, weights }
    }

    fn build(settings: PerFedAvgSettings, training: Training) -> Result<Self, String> {
        let still = training.family().ranges(&[Role::Statistics]);
        let PerFedAvgSettings { order, inner_rate, inner_steps, difference, .. } = settings;
        let difference = (order == Order::HessianFree).then_some(difference);
        Ok(Self { training, inner_rate, inner_steps, difference, still })
    }

    fn training(&self) -> &Training {
        &self.training
    }

    /// Remembers nothing: a client's model follows from what it is served.
    fn solve(&self, mut job: Job<'_>, _: &mut Vec<f64>) -> Result<Option<Vec<f64>>, Failure> {
        let (training, length) = (&self.training, job.served.len());
        let (rate, momentum, weight_decay) = training.outer(job.round);
        let mut w = job.served.to_vec();
        let (mut gradient, mut speed) = (vec![0.0; length], vec![0.0; length]);
        let mut scratch =
            Scratch { near: Vec::with_capacity(length), slope: vec![0.0; length], buffers: job.buffers };
        training.walk(job.learner, &mut job.rng, |batches, turn| {
            let ahead = |places: usize| batches[(turn + places) % batches.len()];
            let three = Three { inner: ahead(1), outer: ahead(0), hessian: ahead(2) };
            let loss = self.meta_gradient(job.learner, &three, &mut w, &mut scratch, &mut gradient)?;
            axpy(weight_decay, &w, &mut gradient);
            for range in &self.still {
                gradient[range.clone()].fill(0.0);
            }
            scale(momentum, &mut speed);
            axpy(1.0, &gradient, &mut speed);
            axpy(-rate, &speed, &mut w);
            Ok(loss)
        })?;
        training.settled(&mut w)?;
        Ok(Some(w))
    }

    fn personal(&self, learner: Option<&dyn Learner>, _: &[f64], served: &[f64], out: &mut Personal<'_>) {
        match learner {
            Some(learner) => out("client", &self.adapted(learner, served)),
            None => out("client", served),
        }
        out("served", served);
    }
}
