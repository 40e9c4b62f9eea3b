//! Local: every client alone. The end of the scale that a federation has to beat.
//!
//! Objective: `f_k(w) = (1/D_k) sum_i loss_i + (lambda / abs(C_s)) |w|^2`, equation (16); nothing leaves. Trees,
//! neighbours and forests are fitted to the client's records, all of the same weight. Nets have no exact fit: they take as many
//! rounds of `epochs` as any other method that trains them, from the same first model.

use super::registry::Method;
use super::star::{diverged, first_diverged};
use super::training::{BATCH, DECAY, EPOCHS, LEARNING_RATE, MOMENTUM, Training, WEIGHT_DECAY};
use super::{Algorithm, Ask, Cells, Closed, Context, Now, Personal, Phase, ROUND, Run, Seats, ServerView};
use crate::codec::Weights;
use crate::dataset::Dataset;
use crate::federation::{Federation, Member};
use crate::hypothesis::{Kind, Kinds, Sample};
use crate::model::{Parametric, Problem, Prox, Records, Unsolved};
use crate::params::{Param, Values};
use crate::privacy::{Cost, Gate, Refusal, Released};
use crate::record;
use crate::rng::PublicRng;
use std::sync::Arc;

/// The method.
#[derive(Debug, Clone)]
pub struct Local(Fits);

/// What every client fits.
#[derive(Debug, Clone)]
enum Fits {
    Parameters(Parametric),
    Hypotheses(Kinds),
    Trained(Training),
}

/// A client's own problem, ready to be solved.
#[derive(Debug)]
pub enum Own {
    /// Factored.
    Linear(Box<Prox>),
    /// Prepared records and the strength of the regulariser.
    Fitted(Parametric, Arc<Dataset>, f64),
    /// Records as they are, and how many clients share the regulariser.
    Hypothesis(Kind, Arc<Dataset>, usize),
    /// Records of a net.
    Trained(Records),
}

record! {
    /// The client's model.
    pub struct Memory { model: Weights }
    /// Where nets begin, the same for all; nothing for other models.
    pub struct Start { model: Weights }
    /// That, and the client whose training diverged.
    pub struct Central { start: Weights, failed: Option<u32> }
}

impl Method for Local {
    /// For nets.
    const PARAMS: &'static [Param] = &[EPOCHS, BATCH, LEARNING_RATE, DECAY, MOMENTUM, WEIGHT_DECAY];

    fn build(values: &Values, context: &Context) -> Result<Self, String> {
        if let Problem::Net(_) = context.problem {
            // Nothing leaves, so whatever privacy a run asks for holds.
            let alone = Context { privacy: crate::privacy::Privacy::None, ..context.clone() };
            return Training::new("local", values, &alone, false)
                .map(|training| Self(Fits::Trained(training)));
        }
        let open = |unregularised: bool| {
            let message = "a client alone needs `model.regularisation` above 0 for a unique model";
            if unregularised { Err(message.to_string()) } else { Ok(()) }
        };
        if let Problem::Agnostic(kinds) = &context.problem {
            open(kinds.all().iter().any(Kind::unregularised))?;
            return Ok(Self(Fits::Hypotheses(*kinds)));
        }
        let model = context.problem.parametric()?;
        open(model.regularisation() <= 0.0)?;
        Ok(Self(Fits::Parameters(model)))
    }
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

    fn open(&self, at: ServerView<'_>, rng: &mut PublicRng) -> Central {
        match &self.0 {
            Fits::Trained(training) => {
                Central { start: Weights(training.model.start(at.run.dimension, rng)), failed: None }
            }
            Fits::Parameters(_) | Fits::Hypotheses(_) => Central::default(),
        }
    }

    fn seat(&self, _: ServerView<'_>, _: &Member) {}

    fn suits(&self, federation: &Federation, _: &Run) -> Result<(), String> {
        match &self.0 {
            Fits::Trained(training) => training.suits(federation),
            Fits::Parameters(_) | Fits::Hypotheses(_) => Ok(()),
        }
    }

    fn phase(&self, server: &Central, step: u32, run: &Run) -> Phase {
        let steps = if let Fits::Trained(_) = self.0 { run.rounds } else { 1 };
        if step <= steps && server.failed.is_none() { Phase::Ask(ROUND) } else { Phase::Deliver }
    }

    fn plan(&self, _: &mut Central, _: &mut Seats<'_, ()>, _: Now<'_>) -> super::Who {
        super::Who::All
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
        server.failed = first_diverged(closed);
    }

    fn join(&self, data: &Arc<Dataset>, at: ServerView<'_>, member: &Member) -> Result<Own, Unsolved> {
        let clients = at.members.len();
        match &self.0 {
            Fits::Parameters(model) => {
                let (strength, data) = (model.regularisation() / clients as f64, model.prepare(data));
                match model {
                    Parametric::Linear(model) => {
                        Prox::new(model, data, strength, 0.0).map(|prox| Own::Linear(Box::new(prox)))
                    }
                    Parametric::Softmax(_) | Parametric::Net(_) => {
                        Ok(Own::Fitted(model.clone(), data, strength))
                    }
                }
            }
            Fits::Hypotheses(kinds) => Ok(Own::Hypothesis(*kinds.of(member.id), Arc::clone(data), clients)),
            Fits::Trained(training) => Ok(Own::Trained(training.model.records(data, clients))),
        }
    }

    fn fits_ask(&self, mine: &Own, ask: &Ask<'_, Self>) -> bool {
        let start = &ask.common().model;
        match (&self.0, mine) {
            (Fits::Trained(training), Own::Trained(_)) => {
                start.is_empty()
                    || matches!(&training.model, Parametric::Net(net) if start.len() == net.net().length())
            }
            _ => start.is_empty(),
        }
    }

    fn client(
        &self,
        mine: &Own,
        memory: &mut Memory,
        ask: Ask<'_, Self>,
        gate: &mut Gate<'_>,
        (): (),
    ) -> Result<Released<()>, Refusal> {
        memory.model = Weights(match mine {
            Own::Linear(prox) => {
                let mut model = vec![0.0; prox.dimension()];
                let centre = model.clone();
                prox.solve(&centre, &mut model, gate.work).map_err(|_| Refusal::Unsolved)?;
                model
            }
            Own::Fitted(model, data, strength) => {
                let weights = vec![1.0 / data.rows() as f64; data.rows()];
                model.fit(data, &weights, *strength).map_err(|_| Refusal::Unsolved)?
            }
            Own::Hypothesis(kind, data, clients) => {
                let weights = vec![1.0; data.rows()];
                let (features, targets) = (data.features(), data.targets());
                let sample = Sample { columns: data.columns(), features, targets, weights: &weights };
                kind.fit(&sample, *clients).map_err(|_| Refusal::Unsolved)?
            }
            Own::Trained(records) => {
                let Fits::Trained(training) = &self.0 else { return Err(Refusal::Unsolved) };
                let begun = !memory.model.is_empty();
                let mut model = if begun { memory.model.0.clone() } else { ask.common().model.0.clone() };
                if model.is_empty() {
                    return Err(Refusal::Unsolved);
                }
                let mut rng = gate.rng("mini-batches");
                training
                    .descend(records, ask.step(), None, &mut rng, &mut model, gate.bench)
                    .map_err(|_| Refusal::Diverged)?;
                model
            }
        });
        Ok(gate.nothing())
    }

    fn price(&self, _: &Member, _: u32) -> Option<Cost> {
        Some(Cost::default())
    }

    fn complaint(&self, server: &Central) -> Option<String> {
        server.failed.map(diverged)
    }

    fn personal(&self, _: &Own, memory: &Memory, _: Ask<'_, Self>, out: &mut Personal<'_>) {
        out("client", &memory.model);
    }
}
