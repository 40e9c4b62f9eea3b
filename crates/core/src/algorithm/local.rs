//! Local: every client alone. The end of the scale that a federation has to beat.
//!
//! Objective: `f_k(w) = (1/D_k) sum_i loss_i + (lambda / abs(C_s)) |w|^2`, equation (16); nothing leaves.

use super::registry::Method;
use super::{Algorithm, Ask, Cells, Closed, Context, Now, Personal, Phase, ROUND, Run, Seats, ServerView};
use crate::dataset::Dataset;
use crate::federation::Member;
use crate::model::{Model, Prox, Unsolved};
use crate::params::{Param, Values};
use crate::privacy::{Cost, Gate, Refusal, Released};
use crate::record;
use crate::rng::PublicRng;
use std::sync::Arc;

/// The method.
#[derive(Debug, Clone)]
pub struct Local {
    model: Model,
}

record! {
    /// The client's model.
    pub struct Memory { model: Vec<f64> }
}

impl Method for Local {
    const PARAMS: &'static [Param] = &[];

    fn build(_: &Values, context: &Context) -> Result<Self, String> {
        let model = context.problem.linear()?;
        if model.regularisation <= 0.0 {
            return Err("a client alone needs `model.regularisation` above 0 for a unique model".into());
        }
        Ok(Self { model })
    }
}

impl Algorithm for Local {
    const NAME: &'static str = "local";
    const PERSONAL: &'static [&'static str] = &["client"];
    const KEPT: &'static [bool] = &[true];
    type Local = Prox;
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

    fn join(&self, data: &Arc<Dataset>, at: ServerView<'_>, _: &Member) -> Result<Prox, Unsolved> {
        let strength = self.model.regularisation / at.members.len() as f64;
        Prox::new(&self.model, self.model.prepare(data), strength, 0.0)
    }

    fn client(
        &self,
        mine: &Prox,
        memory: &mut Memory,
        _: Ask<'_, Self>,
        gate: &mut Gate<'_>,
        (): (),
    ) -> Result<Released<()>, Refusal> {
        let mut model = vec![0.0; mine.dimension()];
        let centre = model.clone();
        mine.solve(&centre, &mut model, gate.work).map_err(|_| Refusal::Unsolved)?;
        memory.model = model;
        Ok(gate.nothing())
    }

    fn price(&self, _: &Member, _: u32) -> Option<Cost> {
        Some(Cost::default())
    }

    fn personal(&self, _: &Prox, memory: &Memory, _: Ask<'_, Self>, out: &mut Personal<'_>) {
        out("client", &memory.model);
    }
}
