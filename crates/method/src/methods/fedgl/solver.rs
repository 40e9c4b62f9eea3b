//! Which solver, with which keys; and the graph of a client alone.

use super::{Consensus, Down, Memory, exact, paper};
use fedkin_learner::model::Unsolved;
use fedkin_learner::signals::{self, Own, Smooth};
use fedkin_settings::{Kind, Preset, choice, settings};

/// How the client blocks are solved.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Solver {
    Exact { tolerance: f64 },
    Paper(PaperSteps),
}

/// The inner loop of Algorithm 1.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PaperSteps {
    pub step: f64,
    pub momentum: f64,
    pub inner: u32,
}

choice! {
    /// How graphs are solved for.
    pub enum SolverName {
        /// The objective is solved to a tolerance.
        Exact = "exact",
        /// Algorithm 1 as printed.
        Paper = "paper",
    }
}

settings! {
    /// Keys of both solvers.
    pub struct SolverSettings {
        solver: SolverName => Kind::Choice(SolverName::WORDS), Preset::Text("exact"),
            "exact: the objective is solved to `tolerance`; paper: Algorithm 1 as printed, `run.rounds` rounds of `inner_steps`";
        tolerance: f64 => Kind::Number { least: 1e-13, most: 1.0, open: false }, Preset::Number(1e-9),
            "exact: distance from the optimality conditions at which a run ends before `run.rounds`";
        step: f64 => Kind::Number { least: 0.0, most: 1e3, open: true }, Preset::Number(5e-4),
            "paper: step size (eta_w)";
        momentum: f64 => Kind::SHARE, Preset::Number(0.9), "paper: weight of the last move (xi)";
        inner_steps: u32 => Kind::Integer { least: 1, most: 1_000_000 }, Preset::Integer(25),
            "paper: gradient steps of a client in a round (K)";
    }
}

impl Solver {
    pub(crate) fn new(settings: &SolverSettings) -> Self {
        let SolverSettings { solver, tolerance, step, momentum, inner_steps: inner } = *settings;
        match solver {
            SolverName::Exact => Solver::Exact { tolerance },
            SolverName::Paper => Solver::Paper(PaperSteps { step, momentum, inner }),
        }
    }
}

/// The graph of a client alone: solved, or so many rounds of the paper's steps from its start.
pub(crate) fn alone(
    problem: &Smooth,
    solver: &Solver,
    own: &Own,
    rounds: u32,
    work: &mut Vec<f64>,
) -> Result<Vec<f64>, Unsolved> {
    match *solver {
        Solver::Exact { .. } => {
            let (mut graph, mut dual) = (Vec::new(), Vec::new());
            exact::block(problem, &own.zbar, &Down::default(), &mut dual, &mut graph, work)?;
            Ok(graph)
        }
        Solver::Paper(steps) => {
            let mut memory = Memory::default();
            let pull = signals::Pull { weight: 0.0, centre: &[] };
            for _ in 0..rounds {
                paper::block::<Consensus>(problem, &own.zbar, pull, steps, &mut memory, work);
            }
            if memory.graph.iter().all(|w| w.is_finite()) {
                Ok(memory.graph)
            } else {
                Err(Unsolved("the paper's steps diverge: set algorithm.solver = \"exact\""))
            }
        }
    }
}
