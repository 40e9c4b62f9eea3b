//! Methods with one server and one model for all that clients train by gradient steps: all but what is particular to each.
//!
//! In a round every asked client gets the model w, works on it ([`Star::solve`]) and sends a model back; the server takes the
//! mean of what came, weighted by records or uniformly ([`Star::update`]). [`AsStar`] makes a method of the registry of it.

use super::training::{Steps, Training};
use crate::algorithm::{
    Algorithm, Ask, Cells, Closed, Halt, Held, Now, Personal, Phase, ROUND, Run, Seats, ServerView,
};
use crate::federation::{Federation, Member};
use crate::registry::{Context, Method};
use crate::robust::Robust;
use fedkin_learner::model::Unsolved;
use fedkin_learner::{Abilities, Dataset, Failure, Learner, Pull};
use fedkin_numeric::buffers::Buffers;
use fedkin_numeric::codec::Weights;
use fedkin_numeric::record;
use fedkin_numeric::rng::PublicRng;
use fedkin_privacy::{Anchor, Anchored, Cost, Draws, Gate, PrivateRng, Protection, Refusal, Released};
use fedkin_settings::Settings;
use std::ops::Range;
use std::sync::Arc;

record! {
    /// The served model.
    pub struct Common { model: Weights }
    /// One step of this client on a Poisson sample: `w <- keep w - share g - pull (w - served)`.
    pub struct Down { keep: f64, share: f64, pull: f64 }
    /// The model after the client's steps, the coordinates it keeps to itself left out.
    pub struct Up { model: Weights }
    /// What the client keeps: its own model, all coordinates.
    pub struct Memory { model: Weights }
    /// The model, and the client whose training diverged.
    pub struct Central { model: Weights, failed: Option<u32> }
}

/// What one round gives a client to work on.
pub struct Job<'a> {
    /// Its learner.
    pub learner: &'a dyn Learner,
    /// The model it was served.
    pub served: &'a [f64],
    /// The round, from 1.
    pub round: u32,
    /// For the order of records.
    pub rng: PrivateRng,
    /// Buffers of the thread.
    pub buffers: &'a mut Buffers,
}

/// What is particular to a method of this kind.
pub trait Star: Clone + Send + Sync + 'static {
    /// Its name on the wire.
    const NAME: &'static str;
    /// Raised whenever messages or bits change.
    const VERSION: u16 = 1;
    /// The names of a client's models: its own first, and what it is served.
    const PERSONAL: &'static [&'static str] = &["client", "served"];
    /// Which of them are the same for all clients.
    const SHARED: &'static [bool] = &[false, true];
    /// Which of them follow from the client's data and memory alone.
    const KEPT: &'static [bool] = &[true, false];
    /// What it needs of a learner.
    const NEEDS: Abilities = Abilities::PARAMETERS.and(Abilities::DESCEND);
    /// The mechanisms that cover its uploads; none where empty.
    const COVERED_BY: &'static [Protection] = &[];
    /// Whether [`Star::personal`] needs no more than memory and what is served.
    const PLAIN: bool = true;

    /// Its own settings.
    type Settings: Settings;

    /// What they say about how clients train. Where steps on Poisson samples cannot stand for `solve` there are none, and
    /// no privacy.
    fn steps(settings: &Self::Settings) -> Steps;

    /// Builds it from settings that passed their table.
    fn build(settings: Self::Settings, training: Training) -> Result<Self, String>;

    /// How clients train.
    fn training(&self) -> &Training;

    /// The strength of the pull towards the served model (mu).
    fn pull(&self) -> f64 {
        0.0
    }

    /// The coordinates that never leave a client, in order.
    fn kept(&self) -> &[Range<usize>] {
        &[]
    }

    /// A client's work of a round: `own` holds what the client kept (nothing before its first round), and what is left there
    /// is kept again. Returns what is sent, where that is another model.
    fn solve(&self, mut job: Job<'_>, own: &mut Vec<f64>) -> Result<Option<Vec<f64>>, Failure> {
        own.clear();
        own.extend_from_slice(job.served);
        let pull = Some(Pull { centre: job.served, weight: self.pull() });
        self.training().descend(job.learner, job.round, pull, &mut job.rng, own, job.buffers)?;
        Ok(None)
    }

    /// The new model from the old one and the mean of what came.
    fn update(&self, model: &mut Vec<f64>, mean: &[f64]) {
        model.copy_from_slice(mean);
    }

    /// A client's models; `own` is empty before its first round.
    fn personal(&self, _learner: Option<&dyn Learner>, own: &[f64], served: &[f64], out: &mut Personal<'_>) {
        // A client that was never asked still has the first model.
        out("client", if own.is_empty() { served } else { own });
        out("served", served);
    }
}

/// A [`Star`] as a method.
#[derive(Debug, Clone)]
pub struct AsStar<T>(T);

impl<T: Star> Method for AsStar<T> {
    type Settings = T::Settings;
    const NEEDS: Abilities = T::NEEDS;
    const COVERED_BY: &'static [Protection] = T::COVERED_BY;
    const ROBUST: bool = true;

    fn build(settings: Self::Settings, context: &Context) -> Result<Self, String> {
        let training = Training::new(T::NAME, &T::steps(&settings), context)?;
        T::build(settings, training).map(Self)
    }
}

impl<T: Star> AsStar<T> {
    /// How many numbers leave a client.
    fn sent(&self, dimension: usize) -> usize {
        dimension - self.0.kept().iter().map(ExactSizeIterator::len).sum::<usize>()
    }
}

impl<T: Star> Algorithm for AsStar<T> {
    const NAME: &'static str = T::NAME;
    const VERSION: u16 = T::VERSION;
    const PERSONAL: &'static [&'static str] = T::PERSONAL;
    const SHARED: &'static [bool] = T::SHARED;
    const KEPT: &'static [bool] = T::KEPT;
    type Local = Box<dyn Learner>;
    type Memory = Memory;
    type Server = Central;
    type Seat = ();
    type Common = Common;
    type Down = Down;
    type Raw = Vec<f64>;
    type Up = Up;
    type Share = ();

    fn open(&self, at: ServerView<'_>, rng: &mut PublicRng) -> Central {
        Central { model: Weights(self.0.training().family().start(at.run.dimension, rng)), failed: None }
    }

    fn seat(&self, _: ServerView<'_>, _: &Member) {}

    fn suits(&self, federation: &Federation, run: &Run) -> Result<(), String> {
        self.0.training().suits(federation, run)
    }

    fn phase(&self, _: &Central, step: u32, run: &Run) -> Phase {
        if step <= run.rounds { Phase::Ask(ROUND) } else { Phase::Deliver }
    }

    fn common(&self, server: &Central, _: Now<'_>) -> Common {
        Common { model: server.model.clone() }
    }

    fn down(&self, _: &Central, (): &(), now: Now<'_>, member: &Member, out: &mut Down) {
        let training = self.0.training();
        let (keep, share) = training.sampled_step(now.step, now.at, member);
        *out = Down { keep, share, pull: training.rate(now.step) * self.0.pull() };
    }

    fn fits(&self, (): &(), now: Now<'_>, up: &Up) -> bool {
        up.model.len() == self.sent(now.at.run.dimension)
    }

    fn robust(&self) -> Option<&Robust> {
        Some(&self.0.training().robust)
    }

    fn lie(&self, client: u32, up: &mut Up, ask: &Ask<'_, Self>) {
        if let Some(liars) = &self.0.training().liars {
            liars.alter(client, &mut up.model, &leave_out(self.0.kept(), &ask.common().model));
        }
    }

    fn cells(&self, at: ServerView<'_>) -> (usize, usize) {
        (1, self.sent(at.run.dimension))
    }

    fn absorb(&self, _: &Central, (): &mut (), _: Now<'_>, member: &Member, up: &Up, sum: &mut Cells) {
        sum.add(0, self.0.training().weight(member.samples), 1.0, &up.model);
    }

    /// The weighted mean; the old model where nobody answered.
    fn close(&self, server: &mut Central, _: &mut Seats<'_, ()>, closed: &Closed<'_>, sum: &Cells) {
        server.failed = Halt::first_diverged(closed);
        let kept = self.0.kept();
        let mut mean = leave_out(kept, &server.model);
        sum.mean_into(0, &mut mean);
        if sum.weight(0) > 0.0 {
            let mut whole = server.model.0.clone();
            put_in(kept, &mean, &mut whole);
            self.0.update(&mut server.model, &whole);
            self.0.training().family().round(&mut server.model);
        }
    }

    fn held(&self, server: &Central, _: &Run, out: &mut Held<'_>) {
        out(0, "served", &server.model);
    }

    fn join(
        &self,
        data: &Arc<Dataset>,
        at: ServerView<'_>,
        member: &Member,
    ) -> Result<Self::Local, Unsolved> {
        self.0.training().join(data, at, member)
    }

    fn fits_ask(&self, mine: &Self::Local, ask: &Ask<'_, Self>) -> bool {
        ask.common().model.len() == mine.dimension()
    }

    fn client<'g>(
        &self,
        mine: &Self::Local,
        memory: &mut Memory,
        ask: Ask<'_, Self>,
        gate: &mut Gate<'g>,
        scratch: &mut Buffers,
        _: Up,
    ) -> Result<Released<'g, Vec<f64>>, Refusal> {
        let training = self.0.training();
        let served = &ask.common().model;
        if training.batches.is_some() {
            let mut own = memory.model.0.clone();
            let rng = gate.rng("mini-batches");
            let job = Job { learner: &**mine, served, round: ask.step(), rng, buffers: scratch };
            let other = self.0.solve(job, &mut own)?;
            let sent = leave_out(self.0.kept(), other.as_ref().unwrap_or(&own));
            let released = gate.disclose("model", sent)?;
            memory.model = Weights(own);
            return Ok(released);
        }
        let model = training.sampled_steps::<Self>(&**mine, &ask, gate, scratch)?;
        memory.model.clone_from(&Weights(model.value().clone()));
        Ok(model)
    }

    fn finish(model: Vec<f64>, _: &Ask<'_, Self>) -> Up {
        Up { model: Weights(model) }
    }

    fn price(&self, _: &Member, _: u32) -> Option<Cost> {
        self.0.training().price()
    }

    fn draws(&self, _: &Member, _: u32) -> Option<Draws> {
        self.0.training().draws()
    }

    fn personal(&self, mine: &Self::Local, memory: &Memory, served: Ask<'_, Self>, out: &mut Personal<'_>) {
        self.0.personal(Some(&**mine), &memory.model, &served.common().model, out);
    }

    fn personal_in_place(
        &self,
        server: &Central,
        _: Now<'_>,
        _: &Member,
        memory: &Memory,
        out: &mut Personal<'_>,
    ) -> bool {
        if T::PLAIN {
            self.0.personal(None, &memory.model, &server.model, out);
        }
        T::PLAIN
    }

    fn complaint(&self, server: &Central) -> Option<Halt> {
        server.failed.map(|client| Halt::Diverged { client })
    }

    fn advice(&self) -> &'static str {
        "lower `algorithm.learning_rate`"
    }
}

impl<T: Star> Anchored<Common, Down> for AsStar<T> {
    fn anchor<'a>(ask: &'a Ask<'_, Self>) -> Anchor<'a> {
        let Down { keep, share, pull } = *ask.down();
        Anchor { served: &ask.common().model, keep, share, pull }
    }
}

/// The coordinates outside these ranges.
pub(super) fn leave_out(ranges: &[Range<usize>], model: &[f64]) -> Vec<f64> {
    let mut rest = Vec::with_capacity(model.len());
    let mut from = 0;
    for range in ranges {
        rest.extend_from_slice(&model[from..range.start]);
        from = range.end;
    }
    rest.extend_from_slice(&model[from..]);
    rest
}

/// Writes the coordinates outside these ranges.
pub(super) fn put_in(ranges: &[Range<usize>], rest: &[f64], model: &mut [f64]) {
    let (mut from, mut read) = (0, 0);
    for range in ranges {
        let length = range.start - from;
        model[from..range.start].copy_from_slice(&rest[read..read + length]);
        (from, read) = (range.end, read + length);
    }
    model[from..].copy_from_slice(&rest[read..]);
}
