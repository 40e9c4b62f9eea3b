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

use crate::algorithm::{Algorithm, Ask, Run, ServerView};
use crate::families::Families;
use crate::federation::{Federation, Member};
use crate::registry::{Context, privacy_of_graphs};
use crate::robust::{Liars, Robust};
use fedkin_learner::model::Unsolved;
use fedkin_learner::model::neural::Descent;
use fedkin_learner::{Abilities, Dataset, Failure, Family, Learner, Pull, Terms};
use fedkin_numeric::buffers::Buffers;
use fedkin_numeric::rng::Random;
use fedkin_privacy::{
    Anchored, Cost, DpSgd, Draws, Gate, Privacy, Protection, Refusal, Released, SampledSum,
};
use fedkin_settings::{Kind, Param, Preset, Settings, choice, settings};
use std::ops::Range;
use std::sync::Arc;

settings! {
    /// Keys of training by mini-batches; with Poisson samples `learning_rate`, `decay` and `weight_decay` count as well.
    pub struct Batches {
        epochs: Option<u32> => Kind::Integer { least: 1, most: 100_000 }, Preset::Absent,
            "times a client goes through its records in a round, in mini-batches (E); where absent 5 for nets and for \
             methods without `local_steps`, else `local_steps` count";
        batch: usize => Kind::Integer { least: 1, most: 1_000_000 }, Preset::Integer(128),
            "records in a mini-batch, with `epochs`; all where a client has fewer";
        learning_rate: f64 => Kind::ABOVE_ZERO, Preset::Number(0.1),
            "size of a gradient step in the first round (eta)";
        decay: f64 => Kind::Number { least: 0.0, most: 1.0, open: true }, Preset::Number(1.0),
            "factor of the learning rate from one round to the next";
        momentum: f64 => Kind::Number { least: 0.0, most: 0.9999, open: false }, Preset::Number(0.0),
            "share of the last step that is taken again, with `epochs`; begins afresh in every round";
        weight_decay: f64 => Kind::FROM_ZERO, Preset::Number(0.0),
            "added to the gradient times the parameters";
    }
}

settings! {
    /// Keys of steps on Poisson samples.
    pub struct Sampled {
        local_steps: u32 => Kind::Integer { least: 1, most: 100_000 }, Preset::Integer(1),
            "gradient steps of a client in a round on Poisson samples, where `epochs` is absent and with dp-sgd";
        sampling_rate: f64 => Kind::Number { least: 0.0, most: 1.0, open: true }, Preset::Number(1.0),
            "chance of a record to be in the sample of one of `local_steps`, drawn anew and secretly (q); 1 takes all";
    }
}

choice! {
    /// How much a client counts in a mean.
    pub enum Weighting {
        /// As much as it has records.
        Samples = "samples",
        /// As any other.
        Uniform = "uniform",
    }
}

/// `weights`, as every method that averages models declares it.
pub(super) const WEIGHTS: Param = Param {
    name: "weights",
    kind: Kind::Choice(Weighting::WORDS),
    preset: Preset::Text("samples"),
    help: "how much a client counts: as much as it has records, or as any other",
};

/// `epochs` where the key is absent and there are no steps on Poisson samples to take instead.
const EPOCHS: u32 = 5;

/// The key of this name among those of [`Batches`], for methods that have some of them only.
pub(super) const fn of_batches(name: &str) -> Param {
    fedkin_settings::named(Batches::PARAMS, name)
}

/// What the settings of a method say about how its clients train.
#[derive(Debug, Clone, PartialEq)]
pub struct Steps {
    /// Mini-batches.
    pub batches: Batches,
    /// Steps on Poisson samples, where the method can take them, and so be private.
    pub sampled: Option<Sampled>,
    /// How much a client counts.
    pub weights: Weighting,
}

/// How clients train.
#[derive(Debug, Clone)]
pub struct Training {
    /// What is trained.
    pub families: Families,
    /// Mini-batches; absent where steps go over Poisson samples.
    pub batches: Option<Descent>,
    rate: f64,
    decay: f64,
    weight_decay: f64,
    local_steps: u32,
    sampling_rate: f64,
    by_samples: bool,
    noise: Option<DpSgd>,
    /// How the server puts models together.
    pub(super) robust: Robust,
    /// Who lies, in a simulation of an attack.
    pub(super) liars: Option<Liars>,
}

impl Training {
    /// Puts together what the settings of the method of this name say; steps on Poisson samples alone can be private.
    pub(super) fn new(name: &str, steps: &Steps, context: &Context) -> Result<Self, String> {
        let family = context.families.first();
        let private = steps.sampled.is_some();
        let noise = match context.privacy {
            Privacy::None => None,
            _ if !private => {
                return Err(format!(
                    "{name} takes steps that no mechanism covers: set privacy.mechanism = \"none\", or use {}",
                    context.covered(&[Protection::DpSgd])
                ));
            }
            Privacy::DpSgd(sgd) => Some(sgd),
            Privacy::OneShot(_) | Privacy::Paper(_) => {
                return Err(privacy_of_graphs(name, Protection::DpSgd));
            }
            Privacy::Zcdp(_) => {
                return Err(format!(
                    "{name} sends the end of gradient steps, and no bound says how far one record moves it: set \
                     privacy.mechanism = \"dp-sgd\" for it, with `clip` and `noise_multiplier`"
                ));
            }
        };
        let samples = family.has().contain(Abilities::RECORDS);
        let preset = noise.is_none() && (family.prefers_batches() || !private || !samples);
        let epochs = steps.batches.epochs.or(preset.then_some(EPOCHS));
        if noise.is_some() && epochs.is_some() {
            return Err(
                "dp-sgd goes over Poisson samples: leave `algorithm.epochs` out and set `local_steps` and \
                        `sampling_rate`"
                    .into(),
            );
        }
        if epochs.is_none()
            && let Some(lacking) =
                context.families.all().find(|family| !family.has().contain(Abilities::RECORDS))
        {
            let why = lacking.why_not(Abilities::RECORDS).map_or_else(String::new, |why| format!(" ({why})"));
            return Err(format!(
                "steps on Poisson samples, which dp-sgd protects, need the gradients of single records, and the learner \
                 {:?} has none{why}",
                lacking.name()
            ));
        }
        let Batches { batch, learning_rate, decay, momentum, weight_decay, .. } = steps.batches;
        let batches =
            epochs.map(|epochs| Descent { epochs, batch, rate: learning_rate, momentum, weight_decay });
        let Sampled { local_steps, sampling_rate } = steps.sampled.clone().unwrap_or_default();
        Ok(Self {
            families: context.families.clone(),
            batches,
            rate: learning_rate,
            decay,
            weight_decay,
            local_steps,
            sampling_rate,
            by_samples: steps.weights == Weighting::Samples,
            noise,
            robust: context.robust.clone(),
            liars: context.liars.clone(),
        })
    }

    /// The family that says where models begin and how they are rounded: all clients have models of one space.
    pub(super) fn family(&self) -> &dyn Family {
        self.families.first()
    }

    /// A client's learner.
    pub(super) fn join(
        &self,
        data: &Arc<Dataset>,
        at: ServerView<'_>,
        member: &Member,
    ) -> Result<Box<dyn Learner>, Unsolved> {
        self.families.of(at.run, member.id).join(data, Terms::among(at.members.len()))
    }

    /// Whether every client has what its training needs.
    pub(super) fn suits(&self, federation: &Federation, run: &Run) -> Result<(), String> {
        self.families.one_space(federation, run)?;
        self.room(federation, run, |_| true)
    }

    /// Whether these clients have enough records for a batch.
    pub(super) fn room(
        &self,
        federation: &Federation,
        run: &Run,
        wanted: impl Fn(&Member) -> bool,
    ) -> Result<(), String> {
        let least = |member: &Member| self.families.of(run, member.id).least_batch();
        let few = |member: &&Member| wanted(member) && (member.samples as usize) < least(member);
        match federation.members().iter().find(few).filter(|_| self.batches.is_some()) {
            // Only batch norm asks for more than one.
            Some(member) => Err(format!(
                "client {:?} has one training record, and batch norm needs two in a batch: leave the client out, or put \
                 \"group-norm\" in its place in `model.layers`",
                federation.client_name(member.id)
            )),
            None => Ok(()),
        }
    }

    /// The learning rate of a round, from 1.
    pub(super) fn rate(&self, round: u32) -> f64 {
        (1..round).fold(self.rate, |rate, _| rate * self.decay)
    }

    /// Mini-batches from w in a round; `pull` is towards a centre. The order of records follows from `rng`.
    pub(super) fn descend(
        &self,
        learner: &dyn Learner,
        round: u32,
        pull: Option<Pull<'_>>,
        rng: &mut impl Random,
        w: &mut [f64],
        buffers: &mut Buffers,
    ) -> Result<f64, Failure> {
        let Some(batches) = self.batches else { return Err(Failure::Diverged) };
        let descent = Descent { rate: self.rate(round), ..batches };
        let pull = pull.filter(|pull| pull.weight > 0.0);
        learner.descend(w, &descent, pull, &mut |order| shuffle(order, rng), buffers)
    }

    /// Learning rate of a round, momentum and weight decay, for methods that have steps of their own.
    pub(super) fn outer(&self, round: u32) -> (f64, f64, f64) {
        (self.rate(round), self.batches.map_or(0.0, |batches| batches.momentum), self.weight_decay)
    }

    /// The mini-batches of records in this order, as [`Self::descend`] takes them: a last one that is too small for batch
    /// norm joins the one before.
    pub(super) fn in_batches<'a>(&self, order: &'a [u32]) -> Vec<&'a [u32]> {
        let least = self.family().least_batch();
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
        learner: &dyn Learner,
        rng: &mut impl Random,
        mut step: impl FnMut(&[&[u32]], usize) -> Result<f64, Failure>,
    ) -> Result<(), Failure> {
        let Some(Descent { epochs, .. }) = self.batches else { return Err(Failure::Diverged) };
        let mut order: Vec<u32> = (0..learner.rows() as u32).collect();
        for _ in 0..epochs {
            shuffle(&mut order, rng);
            let batches = self.in_batches(&order);
            for turn in 0..batches.len() {
                if !step(&batches, turn)?.is_finite() {
                    return Err(Failure::Diverged);
                }
            }
        }
        Ok(())
    }

    /// What a client with steps of its own has in the end: numbers that the model can have, unless it diverged.
    pub(super) fn settled(&self, w: &mut [f64]) -> Result<(), Failure> {
        self.family().round(w);
        if w.iter().all(|w| w.is_finite()) { Ok(()) } else { Err(Failure::Diverged) }
    }

    /// How much a client counts.
    pub(super) fn weight(&self, samples: u32) -> f64 {
        if self.by_samples { f64::from(samples) } else { 1.0 }
    }

    /// The factor of w in a step on a Poisson sample, and that of the sum of gradients.
    pub(super) fn sampled_step(&self, round: u32, at: ServerView<'_>, member: &Member) -> (f64, f64) {
        let family = self.families.of(at.run, member.id);
        let (rate, strength) = (self.rate(round), family.squared_norm() / at.members.len() as f64);
        let share = rate / (self.sampling_rate * f64::from(member.samples));
        (1.0 - rate * (2.0 * strength + self.weight_decay), share)
    }

    /// One record's part of a mean over a Poisson sample.
    pub(super) fn part(&self, samples: u32) -> f64 {
        1.0 / (self.sampling_rate * f64::from(samples))
    }

    /// Whether noise covers the steps.
    pub(super) fn is_private(&self) -> bool {
        self.noise.is_some()
    }

    /// The steps of a round on Poisson samples of a client's records, each through the gate.
    pub(super) fn sampled_steps<'g, A: Algorithm + Anchored<A::Common, A::Down>>(
        &self,
        learner: &dyn Learner,
        ask: &Ask<'_, A>,
        gate: &mut Gate<'g>,
        buffers: &mut Buffers,
    ) -> Result<Released<'g, Vec<f64>>, Refusal> {
        let sum = self.sum(A::anchor(ask).served.len()).ok_or(Refusal::NoMechanism)?;
        gate.descend::<A, _, _>("gradients", &sum, learner.rows(), self.local_steps, ask, |i, w, out| {
            if learner.record_gradient(i, w, out, buffers).is_err() {
                // A refusal would tell that such a record is there: it counts like one that is not finite.
                out.fill(f64::NAN);
            }
        })
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_help_tells_how_many_epochs_hold_for_an_absent_key() {
        assert!(of_batches("epochs").help.contains(&format!("where absent {EPOCHS} for nets")));
    }
}
