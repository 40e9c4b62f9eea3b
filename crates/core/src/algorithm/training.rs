//! How a client trains a model by gradient steps: the keys that all methods of that kind share, and the steps.
//!
//! Two ways. `epochs` E of mini-batches of `batch` records, in an order drawn anew in every epoch from the client's private
//! stream; what comes out is disclosed. Or `local_steps` steps on Poisson samples at `sampling_rate`, each of which goes
//! through the gate: with `dp-sgd` that is the only way (Abadi et al., 2016).
//!
//! ```text
//! w <- w - eta_t (momentum of grad f_B(w) + weight_decay w + mu (w - centre))                    mini-batches
//! w <- w - eta_t (g / (q D_k) + (2 strength + weight_decay) w + mu (w - centre)),  g noisy sums  Poisson samples
//! eta_t = learning_rate decay^(t-1) in round t
//! ```

use super::{Algorithm, Ask, Context, privacy_of_graphs};
use crate::dataset::Dataset;
use crate::federation::Federation;
use crate::model::neural::{Bench, Descent, Diverged};
use crate::model::{Parametric, Records};
use crate::numeric::{axpy, scale};
use crate::params::{Kind, Param, Preset, Values};
use crate::privacy::{Cost, DpSgd, Draws, Gate, Privacy, Refusal, Released, SampledSum};
use crate::rng::Random;
use std::ops::Range;

/// `epochs`
pub(super) const EPOCHS: Param = Param {
    name: "epochs",
    kind: Kind::Integer { least: 1, most: 100_000 },
    preset: Preset::Absent,
    help: "times a client goes through its records in a round, in mini-batches (E); where absent 5 for nets and for \
           methods without `local_steps`, else `local_steps` count",
};
/// `batch`
pub(super) const BATCH: Param = Param {
    name: "batch",
    kind: Kind::Integer { least: 1, most: 1_000_000 },
    preset: Preset::Integer(128),
    help: "records in a mini-batch, with `epochs`; all where a client has fewer",
};
/// `learning_rate`
pub(super) const LEARNING_RATE: Param = Param {
    name: "learning_rate",
    kind: Kind::Number { least: 0.0, most: f64::INFINITY, open: true },
    preset: Preset::Number(0.1),
    help: "size of a gradient step in the first round (eta)",
};
/// `decay`
pub(super) const DECAY: Param = Param {
    name: "decay",
    kind: Kind::Number { least: 0.0, most: 1.0, open: true },
    preset: Preset::Number(1.0),
    help: "factor of the learning rate from one round to the next",
};
/// `momentum`
pub(super) const MOMENTUM: Param = Param {
    name: "momentum",
    kind: Kind::Number { least: 0.0, most: 0.9999, open: false },
    preset: Preset::Number(0.0),
    help: "share of the last step that is taken again, with `epochs`; begins afresh in every round",
};
/// `weight_decay`
pub(super) const WEIGHT_DECAY: Param = Param {
    name: "weight_decay",
    kind: Kind::Number { least: 0.0, most: f64::INFINITY, open: false },
    preset: Preset::Number(0.0),
    help: "added to the gradient times the parameters",
};
/// `local_steps`
pub(super) const LOCAL_STEPS: Param = Param {
    name: "local_steps",
    kind: Kind::Integer { least: 1, most: 100_000 },
    preset: Preset::Integer(1),
    help: "gradient steps of a client in a round on Poisson samples, where `epochs` is absent and with dp-sgd",
};
/// `sampling_rate`
pub(super) const SAMPLING_RATE: Param = Param {
    name: "sampling_rate",
    kind: Kind::Number { least: 0.0, most: 1.0, open: true },
    preset: Preset::Number(1.0),
    help: "chance of a record to be in the sample of one of `local_steps`, drawn anew and secretly (q); 1 takes all",
};
/// `weights`
pub(super) const WEIGHTS: Param = Param {
    name: "weights",
    kind: Kind::Choice(&["samples", "uniform"]),
    preset: Preset::Text("samples"),
    help: "how much a client counts: as much as it has records, or as any other",
};

/// How clients train, from validated values.
#[derive(Debug, Clone)]
pub struct Training {
    /// What is trained.
    pub model: Parametric,
    /// Mini-batches; absent where steps go over Poisson samples.
    pub batches: Option<Descent>,
    rate: f64,
    decay: f64,
    weight_decay: f64,
    local_steps: u32,
    sampling_rate: f64,
    by_samples: bool,
    noise: Option<DpSgd>,
}

impl Training {
    /// Reads the keys; `private` says whether the method can go over Poisson samples, and so be private.
    pub(super) fn new(name: &str, values: &Values, context: &Context, private: bool) -> Result<Self, String> {
        let model = context.problem.parametric()?;
        let noise = match context.privacy {
            Privacy::None => None,
            Privacy::DpSgd(sgd) if private => Some(sgd),
            Privacy::DpSgd(_) => {
                return Err(format!(
                    "{name} takes steps that no mechanism covers: set privacy.mechanism = \"none\", or use fedavg, fedprox or \
                     fedpnp with \"dp-sgd\""
                ));
            }
            Privacy::OneShot(_) | Privacy::Paper(_) => return Err(privacy_of_graphs(name)),
            Privacy::Zcdp(_) => {
                return Err(format!(
                    "{name} sends the end of gradient steps, and no bound says how far one record moves it: set \
                     privacy.mechanism = \"dp-sgd\" for it, with `clip` and `noise_multiplier`"
                ));
            }
        };
        let whole = |name: &str| values.integer(name).and_then(|value| u32::try_from(value).ok());
        let net = match &model {
            Parametric::Net(net) => Some(net.net()),
            Parametric::Linear(_) | Parametric::Softmax(_) => None,
        };
        let preset = noise.is_none() && (net.is_some() || !private);
        let epochs = whole("epochs").or(preset.then_some(5));
        if noise.is_some() && epochs.is_some() {
            return Err(
                "dp-sgd goes over Poisson samples: leave `algorithm.epochs` out and set `local_steps` and \
                        `sampling_rate`"
                    .into(),
            );
        }
        if noise.is_some() && net.is_some_and(crate::model::neural::Net::batch_norm) {
            return Err("batch norm mixes the records of a batch, so no record's gradient can be clipped on its own: put \
                        \"group-norm\" in its place in `model.layers` for dp-sgd"
                .into());
        }
        let number = |name: &str, preset: f64| values.number(name).unwrap_or(preset);
        let (rate, weight_decay) = (number("learning_rate", 0.1), number("weight_decay", 0.0));
        let batches = epochs.map(|epochs| Descent {
            epochs,
            batch: whole("batch").unwrap_or(128) as usize,
            rate,
            momentum: number("momentum", 0.0),
            weight_decay,
        });
        Ok(Self {
            model,
            batches,
            rate,
            decay: number("decay", 1.0),
            weight_decay,
            local_steps: whole("local_steps").unwrap_or(1),
            sampling_rate: number("sampling_rate", 1.0),
            by_samples: values.text("weights") != Some("uniform"),
            noise,
        })
    }

    /// Whether every client has what its training needs.
    pub(super) fn suits(&self, federation: &Federation) -> Result<(), String> {
        let (Parametric::Net(model), Some(_)) = (&self.model, &self.batches) else { return Ok(()) };
        let alone = federation.members().iter().find(|member| member.samples < 2);
        match alone {
            Some(member) if model.net().batch_norm() => Err(format!(
                "client {:?} has one training record, and batch norm needs two in a batch: leave the client out, or put \
                 \"group-norm\" in its place in `model.layers`",
                federation.client_name(member.id)
            )),
            _ => Ok(()),
        }
    }

    /// The learning rate of a round, from 1.
    pub(super) fn rate(&self, round: u32) -> f64 {
        (1..round).fold(self.rate, |rate, _| rate * self.decay)
    }

    /// Mini-batches from w in a round; `pull` is towards a centre. The order of records follows from `rng`.
    pub(super) fn descend(
        &self,
        records: &Records,
        round: u32,
        pull: Option<(&[f64], f64)>,
        rng: &mut impl Random,
        w: &mut [f64],
        bench: &mut Bench,
    ) -> Result<f64, Diverged> {
        let Some(batches) = self.batches else { return Err(NOWHERE) };
        let descent = Descent { rate: self.rate(round), ..batches };
        self.model.train(
            records,
            &descent,
            pull.filter(|(_, mu)| *mu > 0.0),
            &mut |order| shuffle(order, rng),
            w,
            bench,
        )
    }

    /// Learning rate of a round, momentum and weight decay, for methods that have steps of their own.
    pub(super) fn outer(&self, round: u32) -> (f64, f64, f64) {
        (self.rate(round), self.batches.map_or(0.0, |batches| batches.momentum), self.weight_decay)
    }

    /// The mini-batches of records in this order, as [`Self::descend`] takes them: a last one that is too small for batch
    /// norm joins the one before.
    pub(super) fn in_batches<'a>(&self, order: &'a [u32]) -> Vec<&'a [u32]> {
        let least = match &self.model {
            Parametric::Net(model) => model.net().least_batch(),
            Parametric::Linear(_) | Parametric::Softmax(_) => 1,
        };
        let size = self.batches.map_or(1, |batches| batches.batch).max(least);
        let mut batches: Vec<&[u32]> = order.chunks(size).collect();
        if batches.len() > 1 && batches.last().is_some_and(|last| last.len() < least) {
            batches.truncate(batches.len() - 2);
            batches.push(&order[batches.len() * size..]);
        }
        batches
    }

    /// Goes through the mini-batches of a round for methods that have steps of their own: `step` gets the batches of an
    /// epoch and the number of the one whose turn it is, and returns a loss. The same batches as in [`Self::descend`].
    pub(super) fn walk(
        &self,
        records: &Records,
        rng: &mut impl Random,
        mut step: impl FnMut(&[&[u32]], usize) -> f64,
    ) -> Result<(), Diverged> {
        let Some(Descent { epochs, .. }) = self.batches else { return Err(NOWHERE) };
        let mut order: Vec<u32> = (0..records.rows() as u32).collect();
        for epoch in 1..=epochs {
            shuffle(&mut order, rng);
            let batches = self.in_batches(&order);
            for turn in 0..batches.len() {
                let loss = step(&batches, turn);
                if !loss.is_finite() {
                    return Err(Diverged { epoch, batch: turn + 1, loss: loss as f32 });
                }
            }
        }
        Ok(())
    }

    /// What a client with steps of its own has in the end: numbers that the model can have, unless it diverged.
    pub(super) fn settled(&self, w: &mut [f64]) -> Result<(), Diverged> {
        self.model.round(w);
        if w.iter().all(|w| w.is_finite()) { Ok(()) } else { Err(NOWHERE) }
    }

    /// How much a client counts.
    pub(super) fn weight(&self, samples: u32) -> f64 {
        if self.by_samples { f64::from(samples) } else { 1.0 }
    }

    /// The factor of w in a step on a Poisson sample, and that of the sum of gradients.
    pub(super) fn sampled_step(&self, round: u32, clients: usize, samples: u32) -> (f64, f64) {
        let (rate, strength) = (self.rate(round), self.model.regularisation() / clients as f64);
        (1.0 - rate * (2.0 * strength + self.weight_decay), rate / (self.sampling_rate * f64::from(samples)))
    }

    /// One record's part of a mean over a Poisson sample.
    pub(super) fn part(&self, samples: u32) -> f64 {
        1.0 / (self.sampling_rate * f64::from(samples))
    }

    /// Whether noise covers the steps.
    pub(super) fn is_private(&self) -> bool {
        self.noise.is_some()
    }

    /// The steps of a round on Poisson samples of prepared records, each through the gate.
    pub(super) fn sampled_steps<A: Anchored>(
        &self,
        data: &Dataset,
        ask: &Ask<'_, A>,
        gate: &mut Gate<'_>,
    ) -> Result<Released<Vec<f64>>, Refusal> {
        let sum = self.sum(A::anchor(ask).served.len()).ok_or(Refusal::NoMechanism)?;
        let mut model = gate.nothing().post(ask, |(), ask| A::anchor(ask).served.to_vec());
        let mut bench = std::mem::take(gate.bench);
        for _ in 0..self.local_steps {
            let w = model.value();
            let gradients = gate.sampled("gradients", &sum, data.rows(), |i, out| {
                self.model.add_gradient(data.row(i), data.targets()[i], w, out, &mut bench);
            })?;
            model = model.zip(gradients).post(ask, step_on_sample::<A>);
        }
        *gate.bench = bench;
        Ok(model)
    }

    /// The sums of one client over Poisson samples.
    pub(super) fn sum(&self, length: usize) -> Option<SampledSum> {
        match &self.noise {
            Some(sgd) => sgd.sum(self.sampling_rate, length),
            None => SampledSum::plain(self.sampling_rate, length),
        }
    }

    /// What a round costs a client; mini-batches are disclosed, which has no price.
    pub(super) fn price(&self) -> Option<Cost> {
        if self.batches.is_some() {
            return Some(Cost::default());
        }
        // The length decides about the grid, not about the price.
        let one = self.sum(1)?.cost().units();
        one.checked_mul(u64::from(self.local_steps)).map(Cost::from_units)
    }

    /// The releases from Poisson samples behind that price.
    pub(super) fn draws(&self) -> Option<Draws> {
        if self.batches.is_some() {
            return None;
        }
        let (multiplier, rate) = self.sum(1)?.priced()?;
        Some(Draws { multiplier, rate, steps: u64::from(self.local_steps) })
    }
}

/// What a step on a Poisson sample needs of what was asked: `w <- keep w - share g - pull (w - served)`. All of it is public,
/// so that a step is a function of what was asked and of released sums; whatever it is, the price is the same.
pub(super) struct Anchor<'a> {
    pub(super) served: &'a [f64],
    pub(super) keep: f64,
    pub(super) share: f64,
    pub(super) pull: f64,
}

/// A method whose asks hold one.
pub(super) trait Anchored: Algorithm {
    fn anchor<'a>(ask: &'a Ask<'_, Self>) -> Anchor<'a>;
}

fn step_on_sample<A: Anchored>((mut model, gradients): (Vec<f64>, Vec<f64>), ask: &Ask<'_, A>) -> Vec<f64> {
    let Anchor { served, keep, share, pull } = A::anchor(ask);
    if pull > 0.0 {
        for ((w, g), c) in model.iter_mut().zip(&gradients).zip(served) {
            *w = keep * *w - share * g - pull * (*w - c);
        }
        return model;
    }
    scale(keep, &mut model);
    axpy(-share, &gradients, &mut model);
    model
}

/// Divergence that no step saw.
const NOWHERE: Diverged = Diverged { epoch: 0, batch: 0, loss: f32::NAN };

/// Writes the coordinates of these ranges over those of another model.
pub(super) fn copy_ranges(ranges: &[Range<usize>], from: &[f64], to: &mut [f64]) {
    for range in ranges {
        to[range.clone()].copy_from_slice(&from[range.clone()]);
    }
}

/// A random order (Fisher and Yates).
pub(super) fn shuffle(order: &mut [u32], rng: &mut impl Random) {
    for last in (1..order.len()).rev() {
        order.swap(last, rng.below(last as u32 + 1) as usize);
    }
}
