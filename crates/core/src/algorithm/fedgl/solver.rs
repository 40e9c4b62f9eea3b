//! Which solver, with which keys; and the graph of a client alone.

use super::{Consensus, Down, Memory, exact, paper};
use crate::model::Unsolved;
use crate::params::{Kind, Param, Preset, Values};
use crate::signals::{self, Own, Smooth};

/// How the client blocks are solved.
#[derive(Debug, Clone, Copy)]
pub(in crate::algorithm) enum Solver {
    Exact { tolerance: f64 },
    Paper(PaperSteps),
}

/// The inner loop of Algorithm 1.
#[derive(Debug, Clone, Copy)]
pub(in crate::algorithm) struct PaperSteps {
    pub step: f64,
    pub momentum: f64,
    pub inner: u32,
}

/// The keys of both solvers.
pub(in crate::algorithm) const SOLVER_PARAMS: [Param; 5] = [
    Param {
        name: "solver",
        kind: Kind::Choice(&["exact", "paper"]),
        preset: Preset::Text("exact"),
        help: "exact: the objective is solved to `tolerance`; paper: Algorithm 1 as printed, `run.rounds` rounds of `inner_steps`",
    },
    Param {
        name: "tolerance",
        kind: Kind::Number { least: 1e-13, most: 1.0, open: false },
        preset: Preset::Number(1e-9),
        help: "exact: distance from the optimality conditions at which a run ends before `run.rounds`",
    },
    Param {
        name: "step",
        kind: Kind::Number { least: 0.0, most: 1e3, open: true },
        preset: Preset::Number(5e-4),
        help: "paper: step size (eta_w)",
    },
    Param {
        name: "momentum",
        kind: Kind::Number { least: 0.0, most: 1.0, open: false },
        preset: Preset::Number(0.9),
        help: "paper: weight of the last move (xi)",
    },
    Param {
        name: "inner_steps",
        kind: Kind::Integer { least: 1, most: 1_000_000 },
        preset: Preset::Integer(25),
        help: "paper: gradient steps of a client in a round (K)",
    },
];

impl Solver {
    pub(in crate::algorithm) fn new(values: &Values) -> Self {
        if values.text("solver") == Some("paper") {
            return Solver::Paper(PaperSteps {
                step: values.number("step").unwrap_or(5e-4),
                momentum: values.number("momentum").unwrap_or(0.9),
                inner: values.integer("inner_steps").map_or(25, |steps| steps as u32),
            });
        }
        Solver::Exact { tolerance: values.number("tolerance").unwrap_or(1e-9) }
    }
}

/// The graph of a client alone: solved, or so many rounds of the paper's steps from its start.
pub(in crate::algorithm) fn alone(
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
