//! Local: every client alone. The end of the scale that a federation has to beat.
//!
//! Objective: `f_k(w) = (1/D_k) sum_i loss_i + (lambda / abs(C_s)) |w|^2`, equation (16); nothing leaves. Trees,
//! neighbours and forests are fitted to the client's records, all of the same weight.

use super::registry::Method;
use super::{Algorithm, Ask, Cells, Closed, Context, Now, Personal, Phase, ROUND, Run, Seats, ServerView};
use crate::dataset::Dataset;
use crate::federation::Member;
use crate::hypothesis::{Kind, Kinds, Sample};
use crate::model::{Parametric, Problem, Prox, Unsolved};
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
}

record! {
    /// The client's model.
    pub struct Memory { model: Vec<f64> }
}

impl Method for Local {
    const PARAMS: &'static [Param] = &[];

    fn build(_: &Values, context: &Context) -> Result<Self, String> {
        let open = |unregularised: bool| {
            let message = "a client alone needs `model.regularisation` above 0 for a unique model";
            if unregularised { Err(message.to_string()) } else { Ok(()) }
        };
        if let Problem::Agnostic(kinds) = context.problem {
            open(kinds.all().iter().any(Kind::unregularised))?;
            return Ok(Self(Fits::Hypotheses(kinds)));
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
    type Server = ();
    type Seat = ();
    type Common = ();
    type Down = ();
    type Up = ();
    type Share = ();

    fn open(&self, _: ServerView<'_>, _: &mut PublicRng) {}
    fn seat(&self, _: ServerView<'_>, _: &Member) {}

    fn phase(&self, (): &(), step: u32, _: &Run) -> Phase {
        if step == 1 { Phase::Ask(ROUND) } else { Phase::Deliver }
    }

    fn plan(&self, (): &mut (), _: &mut Seats<'_, ()>, _: Now<'_>, _: &mut PublicRng) -> super::Who {
        super::Who::All
    }

    fn fits(&self, (): &(), _: Now<'_>, (): &()) -> bool {
        true
    }

    fn absorb(&self, (): &(), (): &mut (), _: Now<'_>, _: &Member, (): &(), _: &mut Cells) {}

    fn close(&self, (): &mut (), _: &mut Seats<'_, ()>, _: &Closed<'_>, _: &Cells) {}

    fn join(&self, data: &Arc<Dataset>, at: ServerView<'_>, member: &Member) -> Result<Own, Unsolved> {
        let clients = at.members.len();
        match &self.0 {
            Fits::Parameters(model) => {
                let (strength, data) = (model.regularisation() / clients as f64, model.prepare(data));
                match model {
                    Parametric::Linear(model) => {
                        Prox::new(model, data, strength, 0.0).map(|prox| Own::Linear(Box::new(prox)))
                    }
                    Parametric::Softmax(_) => Ok(Own::Fitted(*model, data, strength)),
                }
            }
            Fits::Hypotheses(kinds) => Ok(Own::Hypothesis(*kinds.of(member.id), Arc::clone(data), clients)),
        }
    }

    fn client(
        &self,
        mine: &Own,
        memory: &mut Memory,
        _: Ask<'_, Self>,
        gate: &mut Gate<'_>,
        (): (),
    ) -> Result<Released<()>, Refusal> {
        memory.model = match mine {
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
        };
        Ok(gate.nothing())
    }

    fn price(&self, _: &Member, _: u32) -> Option<Cost> {
        Some(Cost::default())
    }

    fn personal(&self, _: &Own, memory: &Memory, _: Ask<'_, Self>, out: &mut Personal<'_>) {
        out("client", &memory.model);
    }
}
