//! FedAvg: one model for all, from a few gradient steps at every client; with `dp-sgd` every step is private.
//!
//! Papers: `McMahan` et al., Communication-efficient learning of deep networks from decentralized data, 2017 (the
//! averaging); Abadi et al., Deep learning with differential privacy, 2016 (the private step).
//!
//! Objective: `sum over k of p_k f_k(w)` with f_k of equation (16) and `p_k` = `D_k / sum of D_j` or 1/K. In a round every
//! asked client starts from the served model w and takes E steps on Poisson samples S of its records:
//!
//! ```text
//! g    = sum over i in S of clip(grad loss_i(w_k), C) + N(0, (z C)^2)        clip and noise with `dp-sgd` only
//! w_k <- w_k - eta (g / (q D_k) + 2 strength w_k)
//! w    = sum over the asked clients of p_k w_k / sum of p_k
//! ```
//!
//! | symbol | here |
//! |---|---|
//! | E | `local_steps` |
//! | eta | `learning_rate` |
//! | q | `sampling_rate` |
//! | C, z | `privacy.clip`, `privacy.noise_multiplier` |
//! | `p_k` | `weights` |
//! | `strength = lambda / K` | the regulariser, not clipped: it does not depend on data |
//!
//! The sum is divided by the expected size q D_k, which is public; the true size of a sample is secret. What leaves is a
//! function of E noisy sums and of what was asked, so those sums are what is charged. A client remembers the model it sent,
//! and never reads it again.
//!
//! Reductions: E = 1 and q = 1 with all clients is gradient descent on the objective; one client alone is (stochastic)
//! gradient descent.

use super::registry::Method;
use super::{
    Algorithm, Ask, Cells, Closed, Context, Held, Now, Personal, Run, Seats, ServerView, privacy_of_graphs,
};
use crate::dataset::Dataset;
use crate::federation::Member;
use crate::model::{Parametric, Unsolved};
use crate::numeric::{axpy, scale};
use crate::params::{Kind, Param, Preset, Values};
use crate::privacy::{Cost, DpSgd, Draws, Gate, Privacy, Refusal, Released, SampledSum};
use crate::record;
use crate::rng::PublicRng;
use std::sync::Arc;

/// The method.
#[derive(Debug, Clone)]
pub struct FedAvg {
    model: Parametric,
    local_steps: u32,
    learning_rate: f64,
    sampling_rate: f64,
    by_samples: bool,
    noise: Option<DpSgd>,
}

record! {
    /// The served model.
    pub struct Common { model: Vec<f64> }
    /// One step of this client: `w <- keep w - share g`. Public numbers that the server says, so that a step is a function
    /// of what was asked and of released sums; whatever they are, the price is the same.
    pub struct Down { keep: f64, share: f64 }
    /// The model after the client's steps.
    pub struct Up { model: Vec<f64> }
    /// What the client sent last.
    pub struct Memory { model: Vec<f64> }
}

impl Method for FedAvg {
    const PARAMS: &'static [Param] = &[
        Param {
            name: "local_steps",
            kind: Kind::Integer { least: 1, most: 100_000 },
            preset: Preset::Integer(1),
            help: "gradient steps of a client in a round (E)",
        },
        Param {
            name: "learning_rate",
            kind: Kind::Number { least: 0.0, most: f64::INFINITY, open: true },
            preset: Preset::Number(0.1),
            help: "size of a gradient step (eta)",
        },
        Param {
            name: "sampling_rate",
            kind: Kind::Number { least: 0.0, most: 1.0, open: true },
            preset: Preset::Number(1.0),
            help: "chance of a record to be in the sample of a step, drawn anew and secretly (q); 1 takes all",
        },
        Param {
            name: "weights",
            kind: Kind::Choice(&["samples", "uniform"]),
            preset: Preset::Text("samples"),
            help: "how much a client counts: as much as it has records, or as any other",
        },
    ];

    fn build(values: &Values, context: &Context) -> Result<Self, String> {
        let noise = match context.privacy {
            Privacy::None => None,
            Privacy::DpSgd(sgd) => Some(sgd),
            Privacy::OneShot(_) | Privacy::Paper(_) => return Err(privacy_of_graphs("fedavg")),
            Privacy::Zcdp(_) => {
                return Err(
                    "fedavg sends the end of gradient steps, and no bound says how far one record moves it: \
                            set privacy.mechanism = \"dp-sgd\" for it, with `clip` and `noise_multiplier`"
                        .into(),
                );
            }
        };
        Ok(Self {
            model: context.problem.parametric()?,
            local_steps: values
                .integer("local_steps")
                .and_then(|steps| u32::try_from(steps).ok())
                .unwrap_or(1),
            learning_rate: values.number("learning_rate").unwrap_or(0.1),
            sampling_rate: values.number("sampling_rate").unwrap_or(1.0),
            by_samples: values.text("weights") != Some("uniform"),
            noise,
        })
    }
}

impl FedAvg {
    fn step(&self, clients: usize, samples: u32) -> Down {
        let strength = self.model.regularisation() / clients as f64;
        Down {
            keep: 1.0 - 2.0 * self.learning_rate * strength,
            share: self.learning_rate / (self.sampling_rate * f64::from(samples)),
        }
    }

    /// The sums of one client.
    fn sum(&self, length: usize) -> Option<SampledSum> {
        match &self.noise {
            Some(sgd) => sgd.sum(self.sampling_rate, length),
            None => SampledSum::plain(self.sampling_rate, length),
        }
    }
}

impl Algorithm for FedAvg {
    const NAME: &'static str = "fedavg";
    const PERSONAL: &'static [&'static str] = &["client", "served"];
    const SHARED: &'static [bool] = &[false, true];
    const KEPT: &'static [bool] = &[true, false];
    /// The prepared records.
    type Local = Arc<Dataset>;
    type Memory = Memory;
    /// The model.
    type Server = Vec<f64>;
    type Seat = ();
    type Common = Common;
    type Down = Down;
    type Up = Up;
    type Share = ();

    fn open(&self, at: ServerView<'_>, _: &mut PublicRng) -> Vec<f64> {
        vec![0.0; at.run.dimension]
    }

    fn seat(&self, _: ServerView<'_>, _: &Member) {}

    fn common(&self, server: &Vec<f64>, _: Now<'_>) -> Common {
        Common { model: server.clone() }
    }

    fn down(&self, _: &Vec<f64>, (): &(), now: Now<'_>, member: &Member, out: &mut Down) {
        *out = self.step(now.at.members.len(), member.samples);
    }

    fn fits(&self, (): &(), now: Now<'_>, up: &Up) -> bool {
        up.model.len() == now.at.run.dimension
    }

    fn cells(&self, at: ServerView<'_>) -> (usize, usize) {
        (1, at.run.dimension)
    }

    fn absorb(&self, _: &Vec<f64>, (): &mut (), _: Now<'_>, member: &Member, up: &Up, sum: &mut Cells) {
        let weight = if self.by_samples { f64::from(member.samples) } else { 1.0 };
        sum.add(0, weight, 1.0, &up.model);
    }

    /// The weighted mean; the old model where nobody answered.
    fn close(&self, server: &mut Vec<f64>, _: &mut Seats<'_, ()>, _: &Closed<'_>, sum: &Cells) {
        sum.mean_into(0, server);
    }

    fn held(&self, server: &Vec<f64>, _: &Run, out: &mut Held<'_>) {
        out(0, "served", server);
    }

    fn join(&self, data: &Arc<Dataset>, _: ServerView<'_>, _: &Member) -> Result<Arc<Dataset>, Unsolved> {
        Ok(self.model.prepare(data))
    }

    fn fits_ask(&self, mine: &Arc<Dataset>, ask: &Ask<'_, Self>) -> bool {
        ask.common().model.len() == self.model.length(mine)
    }

    fn client(
        &self,
        mine: &Arc<Dataset>,
        memory: &mut Memory,
        ask: Ask<'_, Self>,
        gate: &mut Gate<'_>,
        _: Up,
    ) -> Result<Released<Up>, Refusal> {
        let data = mine;
        let sum = self.sum(ask.common().model.len()).ok_or(Refusal::NoMechanism)?;
        let mut model = gate.nothing().post(&ask, |(), ask| ask.common().model.clone());
        for _ in 0..self.local_steps {
            let w = model.value();
            let gradients = gate.sampled("gradients", &sum, data.rows(), |i, out| {
                self.model.add_gradient(data.row(i), data.targets()[i], w, out);
            })?;
            model = model.zip(gradients).post(&ask, descend);
        }
        memory.model.clone_from(model.value());
        Ok(model.post(&ask, |model, _| Up { model }))
    }

    fn price(&self, _: &Member, _: u32) -> Option<Cost> {
        // The length decides about the grid, not about the price.
        let one = self.sum(1)?.cost().units();
        one.checked_mul(u64::from(self.local_steps)).map(Cost::from_units)
    }

    fn draws(&self, _: &Member, _: u32) -> Option<Draws> {
        let (multiplier, rate) = self.sum(1)?.priced()?;
        Some(Draws { multiplier, rate, steps: u64::from(self.local_steps) })
    }

    fn personal(&self, _: &Arc<Dataset>, memory: &Memory, served: Ask<'_, Self>, out: &mut Personal<'_>) {
        name(memory, &served.common().model, out);
    }

    fn look(
        &self,
        server: &Vec<f64>,
        _: Now<'_>,
        _: &Member,
        memory: &Memory,
        out: &mut Personal<'_>,
    ) -> bool {
        name(memory, server, out);
        true
    }

    fn advice(&self) -> &'static str {
        "lower `algorithm.learning_rate`"
    }
}

/// One gradient step.
fn descend((mut model, gradients): (Vec<f64>, Vec<f64>), ask: &Ask<'_, FedAvg>) -> Vec<f64> {
    scale(ask.down().keep, &mut model);
    axpy(-ask.down().share, &gradients, &mut model);
    model
}

/// A client's models by name.
fn name(memory: &Memory, served: &[f64], out: &mut Personal<'_>) {
    if memory.model.is_empty() {
        // A client that was never asked still has the first model, zero.
        out("client", &vec![0.0; served.len()]);
    } else {
        out("client", &memory.model);
    }
    out("served", served);
}
