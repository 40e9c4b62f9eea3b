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

use super::Personal;
use super::star::{Job, Star};
use super::training::{
    BATCH, DECAY, EPOCHS, LEARNING_RATE, MOMENTUM, Training, WEIGHT_DECAY, WEIGHTS, copy_ranges,
};
use crate::model::Records;
use crate::model::neural::{Bench, Diverged};
use crate::numeric::{axpy, scale};
use crate::params::{Kind, Param, Preset, Values};
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
    bench: &'a mut Bench,
}

impl PerFedAvg {
    /// The gradient of `f(w - alpha grad f(w))` on three batches, or the first order of it, and the loss at w~. Running
    /// statistics of w move.
    fn meta_gradient(
        &self,
        records: &Records,
        three: &Three<'_>,
        w: &mut [f64],
        scratch: &mut Scratch<'_>,
        out: &mut [f64],
    ) -> f64 {
        let model = &self.training.model;
        let Scratch { near, slope, bench } = scratch;
        near.clear();
        near.extend_from_slice(w);
        if self.inner_rate > 0.0 {
            model.batch_gradient(records, three.inner, near, slope, bench);
            axpy(-self.inner_rate, slope, near);
            copy_ranges(&self.still, w, near);
        }
        let loss = model.batch_gradient(records, three.outer, near, out, bench);
        copy_ranges(&self.still, near, w);
        if let Some(delta) = self.difference.filter(|_| self.inner_rate > 0.0) {
            // g - alpha (H g), one side of the difference after the other; out is read by both.
            let direction = out.to_vec();
            for side in [1.0, -1.0] {
                near.clear();
                near.extend_from_slice(w);
                axpy(side * delta, &direction, near);
                model.batch_gradient(records, three.hessian, near, slope, bench);
                axpy(-side * self.inner_rate / (2.0 * delta), slope, out);
            }
        }
        loss
    }

    /// The served model after a few steps on the client's own records.
    fn adapted(&self, records: &Records, served: &[f64]) -> Vec<f64> {
        let order: Vec<u32> = (0..records.rows() as u32).collect();
        let batches = self.training.in_batches(&order);
        let (mut w, mut slope) = (served.to_vec(), vec![0.0; served.len()]);
        let mut bench = Bench::default();
        for batch in batches.iter().cycle().take(self.inner_steps as usize) {
            self.training.model.batch_gradient(records, batch, &mut w, &mut slope, &mut bench);
            axpy(-self.inner_rate, &slope, &mut w);
        }
        self.training.model.round(&mut w);
        w
    }
}

impl Star for PerFedAvg {
    const NAME: &'static str = "per-fedavg";
    const PARAMS: &'static [Param] = &[
        Param {
            name: "order",
            kind: Kind::Choice(&["first", "hessian-free"]),
            preset: Preset::Text("first"),
            help: "what becomes of the second derivatives: left out, or a difference of gradients",
        },
        Param {
            name: "inner_rate",
            kind: Kind::Number { least: 0.0, most: f64::INFINITY, open: false },
            preset: Preset::Number(0.1),
            help: "size of the step by which a client makes the served model its own (alpha)",
        },
        Param {
            name: "inner_steps",
            kind: Kind::Integer { least: 0, most: 10_000 },
            preset: Preset::Integer(1),
            help: "how many such steps make a client's model; training looks one ahead",
        },
        Param {
            name: "difference",
            kind: Kind::Number { least: 0.0, most: f64::INFINITY, open: true },
            preset: Preset::Number(1e-3),
            help: "how far along a gradient others are taken, for order = \"hessian-free\" (delta)",
        },
        LEARNING_RATE,
        WEIGHTS,
        EPOCHS,
        BATCH,
        DECAY,
        MOMENTUM,
        WEIGHT_DECAY,
    ];
    const KEPT: &'static [bool] = &[false, false];
    const PLAIN: bool = false;

    fn build(values: &Values, training: Training) -> Result<Self, String> {
        let still = training.model.norms(false);
        let steps = values.integer("inner_steps").and_then(|steps| u32::try_from(steps).ok());
        let difference = values.number("difference").unwrap_or(1e-3);
        Ok(Self {
            training,
            inner_rate: values.number("inner_rate").unwrap_or(0.1),
            inner_steps: steps.unwrap_or(1),
            difference: (values.text("order") == Some("hessian-free")).then_some(difference),
            still,
        })
    }

    fn training(&self) -> &Training {
        &self.training
    }

    /// Remembers nothing: a client's model follows from what it is served.
    fn solve(&self, mut job: Job<'_>, _: &mut Vec<f64>) -> Result<Option<Vec<f64>>, Diverged> {
        let (training, length) = (&self.training, job.served.len());
        let (rate, momentum, weight_decay) = training.outer(job.round);
        let mut w = job.served.to_vec();
        let (mut gradient, mut speed) = (vec![0.0; length], vec![0.0; length]);
        let mut scratch =
            Scratch { near: Vec::with_capacity(length), slope: vec![0.0; length], bench: job.bench };
        training.walk(job.records, &mut job.rng, |batches, turn| {
            let ahead = |places: usize| batches[(turn + places) % batches.len()];
            let three = Three { inner: ahead(1), outer: ahead(0), hessian: ahead(2) };
            let loss = self.meta_gradient(job.records, &three, &mut w, &mut scratch, &mut gradient);
            axpy(weight_decay, &w, &mut gradient);
            for range in &self.still {
                gradient[range.clone()].fill(0.0);
            }
            scale(momentum, &mut speed);
            axpy(1.0, &gradient, &mut speed);
            axpy(-rate, &speed, &mut w);
            loss
        })?;
        training.settled(&mut w)?;
        Ok(Some(w))
    }

    fn personal(&self, records: Option<&Records>, _: &[f64], served: &[f64], out: &mut Personal<'_>) {
        match records {
            Some(records) => out("client", &self.adapted(records, served)),
            None => out("client", served),
        }
        out("served", served);
    }
}
