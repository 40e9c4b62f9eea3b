//! IGL, independent graph learning: every client alone. What a federation of graph learners has to beat.
//!
//! Objective: g(w) of [`fedkin_learner::signals`], (7) of the `FedGL` paper; nothing leaves. `solver = "paper"` takes as many of the
//! paper's steps as `FedGL` would, `run.rounds` times `inner_steps`: early stopping, not a solution.

use super::fedgl::{Solver, SolverSettings, alone};
use crate::algorithm::{Algorithm, Ask, Cells, Closed, Now, Personal, Phase, ROUND, Run, Seats, ServerView};
use crate::federation::Member;
use crate::registry::{Context, Method};
use crate::sent_as_released;
use fedkin_learner::model::Unsolved;
use fedkin_learner::signals::{self, Own, Smooth};
use fedkin_learner::{Abilities, Dataset};
use fedkin_numeric::buffers::Buffers;
use fedkin_numeric::record;
use fedkin_numeric::rng::PublicRng;
use fedkin_privacy::{Cost, Gate, Refusal, Released};
use fedkin_settings::settings;
use std::sync::Arc;

/// The method.
#[derive(Debug, Clone)]
pub struct Igl {
    problem: Smooth,
    solver: Solver,
}

record! {
    /// The client's graph.
    pub struct Memory { graph: Vec<f64> }
}

settings! {
    /// Keys of IGL.
    pub struct IglSettings {
        flatten solving: SolverSettings;
    }
}

impl Method for Igl {
    type Settings = IglSettings;
    const NEEDS: Abilities = Abilities::GRAPH;

    fn build(settings: IglSettings, context: &Context) -> Result<Self, String> {
        let problem = *context.families.first().signals().ok_or(crate::registry::NO_GRAPH)?;
        Ok(Self { problem, solver: Solver::new(&settings.solving) })
    }
}

impl Algorithm for Igl {
    const NAME: &'static str = "igl";
    const PERSONAL: &'static [&'static str] = &["client"];
    const GRAPHS: bool = true;
    const KEPT: &'static [bool] = &[true];
    /// The statistics of its signals, and how many rounds of steps to take.
    type Local = (Own, u32);
    type Memory = Memory;
    type Server = ();
    type Seat = ();
    type Common = ();
    type Down = ();
    type Up = ();
    type Share = ();

    sent_as_released!();

    fn open(&self, _: ServerView<'_>, _: &mut PublicRng) {}
    fn seat(&self, _: ServerView<'_>, _: &Member) {}

    fn phase(&self, (): &(), step: u32, _: &Run) -> Phase {
        if step == 1 { Phase::Ask(ROUND) } else { Phase::Deliver }
    }

    fn plan(&self, (): &mut (), _: &mut Seats<'_, ()>, _: Now<'_>) -> crate::algorithm::Who {
        crate::algorithm::Who::All
    }

    fn fits(&self, (): &(), _: Now<'_>, (): &()) -> bool {
        true
    }

    fn absorb(&self, (): &(), (): &mut (), _: Now<'_>, _: &Member, (): &(), _: &mut Cells) {}

    fn close(&self, (): &mut (), _: &mut Seats<'_, ()>, _: &Closed<'_>, _: &Cells) {}

    fn join(&self, data: &Arc<Dataset>, at: ServerView<'_>, _: &Member) -> Result<(Own, u32), Unsolved> {
        Ok((signals::means(&self.problem, data, None)?, at.run.rounds))
    }

    fn client<'g>(
        &self,
        (own, rounds): &(Own, u32),
        memory: &mut Memory,
        _: Ask<'_, Self>,
        gate: &mut Gate<'g>,
        scratch: &mut Buffers,
        (): (),
    ) -> Result<Released<'g, ()>, Refusal> {
        memory.graph = alone(&self.problem, &self.solver, own, *rounds, &mut scratch.work)
            .map_err(|_| Refusal::Unsolved)?;
        Ok(gate.nothing())
    }

    fn price(&self, _: &Member, _: u32) -> Option<Cost> {
        Some(Cost::default())
    }

    fn personal(&self, _: &(Own, u32), memory: &Memory, _: Ask<'_, Self>, out: &mut Personal<'_>) {
        out("client", &memory.graph);
    }
}
