//! Local: every client alone. The end of the scale that a federation has to beat.
//!
//! Objective: `f_k(w) = (1/D_k) sum_i loss_i + (lambda / abs(C_s)) |w|^2`, equation (16); nothing leaves. Trees,
//! neighbours and forests are fitted to the client's records, all of the same weight. Nets have no exact fit: they take as many
//! rounds of `epochs` as any other method that trains them, from the same first model.

use super::training::{Batches, Steps, Training, Weighting};
use crate::algorithm::{
    Algorithm, Ask, Cells, Closed, Halt, Now, Personal, Phase, ROUND, Run, Seats, ServerView,
};
use crate::families::Families;
use crate::federation::{Federation, Member};
use crate::registry::{Context, Method};
use crate::sent_as_released;
use fedkin_learner::model::Unsolved;
use fedkin_learner::{Abilities, Dataset, Family, Learner, Terms};
use fedkin_numeric::buffers::Buffers;
use fedkin_numeric::codec::Weights;
use fedkin_numeric::record;
use fedkin_numeric::rng::PublicRng;
use fedkin_privacy::{Cost, Gate, Refusal, Released};
use fedkin_settings::settings;
use std::sync::Arc;

/// The method.
#[derive(Debug, Clone)]
pub struct Local {
    families: Families,
    /// How learners without a best fit are trained; absent where all have one.
    training: Option<Training>,
}

/// A client's learner.
pub struct Own {
    learner: Box<dyn Learner>,
    /// Whether it has a best fit of its own records.
    fits: bool,
}

record! {
    /// The client's model.
    pub struct Memory { model: Weights }
    /// Where nets begin, the same for all; nothing for other models.
    pub struct Start { model: Weights }
    /// That, and the client whose training diverged.
    pub struct Central { start: Weights, failed: Option<u32> }
}

settings! {
    /// Keys of clients that train alone, for learners without a best fit.
    pub struct LocalSettings {
        flatten batches: Batches;
    }
}

impl Method for Local {
    type Settings = LocalSettings;
    const NEEDS: Abilities = Abilities::PREDICT;

    fn build(settings: LocalSettings, context: &Context) -> Result<Self, String> {
        let undetermined = |family: &dyn Family| fits(family) && !family.is_determined();
        if context.families.all().any(undetermined) {
            return Err("a client alone needs `model.regularisation` above 0 for a unique model".into());
        }
        // Nothing leaves, so whatever privacy a run asks for holds.
        let alone = Context { privacy: fedkin_privacy::Privacy::None, ..context.clone() };
        let steps = Steps { batches: settings.batches, sampled: None, weights: Weighting::Samples };
        let trained = context.families.all().any(|family| !fits(family));
        let training = trained.then(|| Training::new(Self::NAME, &steps, &alone)).transpose()?;
        Ok(Self { families: context.families.clone(), training })
    }
}

/// Whether a client's problem has a solution that can be computed; otherwise it is trained round by round.
fn fits(family: &dyn Family) -> bool {
    family.has().with_fallbacks().contain(Abilities::MINIMISE)
}

impl Algorithm for Local {
    const NAME: &'static str = "local";
    const PERSONAL: &'static [&'static str] = &["client"];
    const KEPT: &'static [bool] = &[true];
    type Local = Own;
    type Memory = Memory;
    type Server = Central;
    type Seat = ();
    type Common = Start;
    type Down = ();
    type Up = ();
    type Share = ();

    sent_as_released!();

    fn open(&self, at: ServerView<'_>, rng: &mut PublicRng) -> Central {
        let Some(_) = &self.training else { return Central::default() };
        let start = self.families.all().find(|family| !fits(*family));
        let dimension = |family: &dyn Family| {
            at.run.columns.map_or(at.run.dimension, |columns| family.dimension(columns))
        };
        let start = start.map_or_else(Vec::new, |family| family.start(dimension(family), rng));
        Central { start: Weights(start), failed: None }
    }

    fn seat(&self, _: ServerView<'_>, _: &Member) {}

    fn suits(&self, federation: &Federation, run: &Run) -> Result<(), String> {
        let Some(training) = &self.training else { return Ok(()) };
        // Those that are trained begin with the same model.
        let trained = |member: &Member| !fits(self.families.of(run, member.id));
        self.families.one_space_of(federation, run, trained)?;
        training.room(federation, run, trained)
    }

    fn phase(&self, _: &Central, step: u32, run: &Run) -> Phase {
        let steps = if self.training.is_some() { run.rounds } else { 1 };
        if step <= steps { Phase::Ask(ROUND) } else { Phase::Deliver }
    }

    fn plan(&self, _: &mut Central, _: &mut Seats<'_, ()>, _: Now<'_>) -> crate::algorithm::Who {
        crate::algorithm::Who::All
    }

    /// A client that has begun needs it no more.
    fn common(&self, server: &Central, now: Now<'_>) -> Start {
        if now.step <= 1 { Start { model: server.start.clone() } } else { Start::default() }
    }

    fn fits(&self, (): &(), _: Now<'_>, (): &()) -> bool {
        true
    }

    fn absorb(&self, _: &Central, (): &mut (), _: Now<'_>, _: &Member, (): &(), _: &mut Cells) {}

    fn close(&self, server: &mut Central, _: &mut Seats<'_, ()>, closed: &Closed<'_>, _: &Cells) {
        server.failed = Halt::first_diverged(closed);
    }

    fn join(&self, data: &Arc<Dataset>, at: ServerView<'_>, member: &Member) -> Result<Own, Unsolved> {
        let family = self.families.of(at.run, member.id);
        // A best fit is a proximal step without a pull.
        let terms = Terms::among(at.members.len()).weighing(0.0);
        Ok(Own { learner: family.join(data, terms)?, fits: fits(family) })
    }

    fn fits_ask(&self, mine: &Own, ask: &Ask<'_, Self>) -> bool {
        let start = &ask.common().model;
        start.is_empty() || self.training.is_some() && (mine.fits || start.len() == mine.learner.dimension())
    }

    fn client<'g>(
        &self,
        mine: &Own,
        memory: &mut Memory,
        ask: Ask<'_, Self>,
        gate: &mut Gate<'g>,
        scratch: &mut Buffers,
        (): (),
    ) -> Result<Released<'g, ()>, Refusal> {
        if mine.fits {
            if memory.model.is_empty() {
                memory.model = Weights(mine.learner.minimise(scratch)?);
            }
            return Ok(gate.nothing());
        }
        let training = self.training.as_ref().ok_or(Refusal::Unsolved)?;
        let begun = !memory.model.is_empty();
        let mut model = if begun { memory.model.0.clone() } else { ask.common().model.0.clone() };
        if model.is_empty() {
            return Err(Refusal::Unsolved);
        }
        let mut rng = gate.rng("mini-batches");
        training.descend(&*mine.learner, ask.step(), None, &mut rng, &mut model, scratch)?;
        memory.model = Weights(model);
        Ok(gate.nothing())
    }

    fn price(&self, _: &Member, _: u32) -> Option<Cost> {
        Some(Cost::default())
    }

    fn complaint(&self, server: &Central) -> Option<Halt> {
        server.failed.map(|client| Halt::Diverged { client })
    }

    fn personal(&self, _: &Own, memory: &Memory, _: Ask<'_, Self>, out: &mut Personal<'_>) {
        out("client", &memory.model);
    }
}
