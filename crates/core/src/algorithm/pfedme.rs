//! `pFedMe`: personal models in a spring's reach of a model for all.
//!
//! Paper: Dinh, Tran and Nguyen, Personalized federated learning with Moreau envelopes, 2020. Objective: the weighted sum over
//! clients of
//!
//! ```text
//! F_k(w) = min over theta of f_k(theta) + (lambda/2) |theta - w|^2
//! ```
//!
//! whose gradient is `lambda (w - theta_k(w))`. In a round every asked client starts with `w_k` and theta at the served model,
//! and takes for each mini-batch B
//!
//! ```text
//! theta <- theta - rho (grad f(theta, B) + lambda (theta - w_k))          K times
//! w_k   <- w_k - eta lambda (w_k - theta)
//! ```
//!
//! It keeps theta and sends `w_k`; the server takes `w <- (1 - beta) w + beta mean of w_k`.
//!
//! | symbol | here |
//! |---|---|
//! | K | `inner_steps` |
//! | lambda | `lambda` |
//! | rho (the paper leaves the solver open) | `personal_rate`, the same in all rounds |
//! | eta | `learning_rate`, times `decay` from round to round |
//! | beta | `server_rate` |
//! | R (steps of a round) | `epochs` times the number of mini-batches |
//!
//! The running statistics of batch norm are no parameters: they move once a mini-batch, at theta, and `w_k` has those of theta;
//! the server takes their plain mean whatever beta is, so a variance stays positive.
//!
//! A client's models: theta after its last round, and the served w.
//!
//! Reductions: lambda to 0 leaves w where it was; with many inner steps on all records theta is the proximal point of w;
//! `server_rate = 1` is the plain mean.

use super::star::{Job, Star};
use super::training::{BATCH, DECAY, EPOCHS, LEARNING_RATE, Training, WEIGHT_DECAY, WEIGHTS, copy_ranges};
use crate::model::neural::Diverged;
use crate::numeric::{axpy, update};
use crate::params::{Kind, Param, Preset, Values};
use std::ops::Range;

/// The method.
#[derive(Debug, Clone)]
pub struct PFedMe {
    training: Training,
    inner_steps: u32,
    lambda: f64,
    server_rate: f64,
    personal_rate: f64,
    /// Running statistics: no parameters of f.
    still: Vec<Range<usize>>,
}

impl Star for PFedMe {
    const NAME: &'static str = "pfedme";
    const PARAMS: &'static [Param] = &[
        Param {
            name: "inner_steps",
            kind: Kind::Integer { least: 1, most: 100_000 },
            preset: Preset::Integer(5),
            help: "steps towards the personal model on every mini-batch (K)",
        },
        Param {
            name: "lambda",
            kind: Kind::Number { least: 0.0, most: f64::INFINITY, open: false },
            preset: Preset::Number(15.0),
            help: "weight of half the squared distance between the personal model and the model for all",
        },
        Param {
            name: "server_rate",
            kind: Kind::Number { least: 0.0, most: 1e6, open: true },
            preset: Preset::Number(1.0),
            help: "how far the server goes to the mean of what came (beta); 1 takes it",
        },
        Param {
            name: "personal_rate",
            kind: Kind::Number { least: 0.0, most: f64::INFINITY, open: true },
            preset: Preset::Number(0.1),
            help: "size of a step towards the personal model; times `lambda` it must stay below 2",
        },
        LEARNING_RATE,
        WEIGHTS,
        EPOCHS,
        BATCH,
        DECAY,
        WEIGHT_DECAY,
    ];

    fn build(values: &Values, training: Training) -> Result<Self, String> {
        let number = |name: &str, preset: f64| values.number(name).unwrap_or(preset);
        let (lambda, personal_rate) = (number("lambda", 15.0), number("personal_rate", 0.1));
        if lambda * personal_rate >= 2.0 {
            return Err(format!(
                "algorithm.lambda = {lambda} times algorithm.personal_rate = {personal_rate} is {}, and steps towards a \
                 personal model swing further out from 2 on: lower one of them",
                lambda * personal_rate
            ));
        }
        let steps = values.integer("inner_steps").and_then(|steps| u32::try_from(steps).ok());
        let still = training.model.norms(false);
        Ok(Self {
            training,
            inner_steps: steps.unwrap_or(5),
            lambda,
            server_rate: number("server_rate", 1.0),
            personal_rate,
            still,
        })
    }

    fn training(&self) -> &Training {
        &self.training
    }

    fn solve(&self, mut job: Job<'_>, own: &mut Vec<f64>) -> Result<Option<Vec<f64>>, Diverged> {
        let training = &self.training;
        let (eta, _, weight_decay) = training.outer(job.round);
        let (lambda, rho) = (self.lambda, self.personal_rate);
        let (mut w, mut gradient) = (job.served.to_vec(), vec![0.0; job.served.len()]);
        own.clone_from(&w);
        let theta = own;
        training.walk(job.records, &mut job.rng, |batches, turn| {
            let mut loss = f64::NAN;
            for step in 0..self.inner_steps {
                let there = training.model.batch_gradient(
                    job.records,
                    batches[turn],
                    theta,
                    &mut gradient,
                    job.bench,
                );
                if step == 0 {
                    loss = there;
                    copy_ranges(&self.still, theta, &mut w);
                }
                axpy(weight_decay, theta, &mut gradient);
                for ((theta, g), w) in theta.iter_mut().zip(&gradient).zip(&w) {
                    *theta -= rho * (g + lambda * (*theta - w));
                }
                copy_ranges(&self.still, &w, theta);
            }
            update(&mut w, theta, |w, theta| w - eta * lambda * (w - theta));
            loss
        })?;
        training.settled(theta)?;
        training.settled(&mut w)?;
        Ok(Some(w))
    }

    fn update(&self, model: &mut Vec<f64>, mean: &[f64]) {
        let beta = self.server_rate;
        update(model, mean, |w, mean| (1.0 - beta) * w + beta * mean);
        copy_ranges(&self.still, mean, model);
    }
}
