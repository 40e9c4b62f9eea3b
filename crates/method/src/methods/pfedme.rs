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
use super::training::{Batches, Steps, Training, WEIGHTS, Weighting, copy_ranges, of_batches};
use fedkin_learner::{Abilities, Failure, Role};
use fedkin_numeric::{axpy, update};
use fedkin_settings::{Kind, Preset, settings};
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

settings! {
    /// Keys of `pFedMe`.
    pub struct PFedMeSettings {
        inner_steps: u32 => Kind::Integer { least: 1, most: 100_000 }, Preset::Integer(5),
            "steps towards the personal model on every mini-batch (K)";
        lambda: f64 => Kind::FROM_ZERO, Preset::Number(15.0),
            "weight of half the squared distance between the personal model and the model for all";
        server_rate: f64 => Kind::Number { least: 0.0, most: 1e6, open: true }, Preset::Number(1.0),
            "how far the server goes to the mean of what came (beta); 1 takes it";
        personal_rate: f64 => Kind::ABOVE_ZERO, Preset::Number(0.1),
            "size of a step towards the personal model; times `lambda` it must stay below 2";
        /// Size of a step of the model for all in the first round (eta).
        learning_rate: f64 => param of_batches("learning_rate");
        /// How much a client counts.
        weights: Weighting => param WEIGHTS;
        /// Times a client goes through its records in a round, in mini-batches.
        epochs: Option<u32> => param of_batches("epochs");
        /// Records in a mini-batch.
        batch: usize => param of_batches("batch");
        /// Factor of the learning rate from one round to the next.
        decay: f64 => param of_batches("decay");
        /// Added to the gradient times the parameters.
        weight_decay: f64 => param of_batches("weight_decay");
    }
}

impl Star for PFedMe {
    const NEEDS: Abilities = Abilities::PARAMETERS.and(Abilities::BATCHES);
    const NAME: &'static str = "pfedme";
    type Settings = PFedMeSettings;

    fn steps(settings: &PFedMeSettings) -> Steps {
        let PFedMeSettings { learning_rate, weights, epochs, batch, decay, weight_decay, .. } = *settings;
        let batches = Batches { epochs, batch, learning_rate, decay, weight_decay, ..Batches::default() };
        Steps { batches, sampled: None, weights }
    }

    fn build(settings: PFedMeSettings, training: Training) -> Result<Self, String> {
        let PFedMeSettings { inner_steps, lambda, server_rate, personal_rate, .. } = settings;
        if lambda * personal_rate >= 2.0 {
            return Err(format!(
                "algorithm.lambda = {lambda} times algorithm.personal_rate = {personal_rate} is {}, and steps towards a \
                 personal model swing further out from 2 on: lower one of them",
                lambda * personal_rate
            ));
        }
        let still = training.family().ranges(&[Role::Statistics]);
        Ok(Self { training, inner_steps, lambda, server_rate, personal_rate, still })
    }

    fn training(&self) -> &Training {
        &self.training
    }

    fn solve(&self, mut job: Job<'_>, own: &mut Vec<f64>) -> Result<Option<Vec<f64>>, Failure> {
        let training = &self.training;
        let (eta, _, weight_decay) = training.outer(job.round);
        let (lambda, rho) = (self.lambda, self.personal_rate);
        let (mut w, mut gradient) = (job.served.to_vec(), vec![0.0; job.served.len()]);
        own.clone_from(&w);
        let theta = own;
        training.walk(job.learner, &mut job.rng, |batches, turn| {
            let mut loss = f64::NAN;
            for step in 0..self.inner_steps {
                let there = job.learner.batch_gradient(batches[turn], theta, &mut gradient, job.buffers)?;
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
            Ok(loss)
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
