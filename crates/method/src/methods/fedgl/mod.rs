//! `FedGL`: a graph for every client and a sparse consensus graph for all, learnt together.
//!
//! Paper: Zhang and Wang, Graph topology learning under privacy constraints. Objective (8), with g of [`fedkin_learner::signals`]:
//!
//! ```text
//! sum over i of g_i(w_i) + rho sum over i of |w_i - w_con|_2 + lambda |w_con|_1,     w_i >= 0
//! ```
//!
//! Two solvers. `exact` ([`exact`]) is ADMM with exact client blocks: it solves (8), the fused case included, and stops
//! at a tolerance. `paper` ([`paper`]) is Algorithm 1 as printed. Two couplings: (8), and one graph for all (36).
//!
//! | step | a client gets | and sends |
//! |---|---|---|
//! | round, exact | `v_i` and kappa | `prox of g_i at v_i`, and `g_i` there |
//! | round, paper | `w_con` and `gamma_i` | the graph after K steps, and `g_i` there |
//! | scatter, with `one-shot` | nothing | its noisy scatter matrix, once; all rounds then run at the server |
//!
//! `g_i` leaves only where nothing is to be protected. With `privacy.mechanism = "paper"` a client adds the noise of (26)
//! and (60) to its last step. Its state before that step depends on the data and carries no noise, so the claim is wrong
//! (an audit finds it within a round); the ledger calls it refuted.
//!
//! Reductions: rho = 0 is every client alone; one client alone is IGL; a large rho fuses all graphs.

mod anderson;
mod coupling;
mod exact;
mod paper;
mod solver;
mod state;

use coupling::Coupling;
pub use coupling::{Average, Consensus, FedGlAverageSettings, FedGlSettings};
pub(super) use solver::{Solver, alone};
pub use solver::{SolverName, SolverSettings};
use state::{Central, Common, Down, Memory, Seat, Up};

use crate::algorithm::{
    Algorithm, Ask, Cells, Closed, Halt, Held, Label, Now, Personal, Phase, Run, Seats, ServerView, Who,
};
use crate::federation::Member;
use crate::registry::{Context, Method};
use fedkin_learner::model::Unsolved;
use fedkin_learner::signals::{self, Own, Records, Smooth};
use fedkin_learner::{Abilities, Dataset};
use fedkin_numeric::buffers::Buffers;
use fedkin_numeric::rng::PublicRng;
use fedkin_privacy::proofs;
use fedkin_privacy::{
    Cost, Gate, Gaussian, LastStep, OneShot, Privacy, Protection, Refusal, Released, Sampler, Symmetric,
};
use std::sync::Arc;

/// The method under one coupling.
#[derive(Debug, Clone)]
pub struct FedGl<C> {
    problem: Smooth,
    solver: Solver,
    shield: Shield,
    coupling: C,
}

#[derive(Debug, Clone, Copy)]
enum Shield {
    None,
    OneShot(OneShot),
    Paper(LastStep),
}

const SCATTER: Label = Label::new(1);

/// A client's records in the form of the method.
#[derive(Debug)]
pub struct LocalData {
    own: Option<Own>,
    scatter: Option<Symmetric>,
    rows: usize,
    rounds: u32,
}

impl<C: Coupling> Method for FedGl<C> {
    type Settings = C::Settings;
    const NEEDS: Abilities = Abilities::GRAPH;
    const COVERED_BY: &'static [Protection] = &[Protection::OneShot, Protection::Paper];

    fn build(settings: C::Settings, context: &Context) -> Result<Self, String> {
        let problem = *context.families.first().signals().ok_or(crate::registry::NO_GRAPH)?;
        let (coupling, solving) = C::build(settings);
        let solver = Solver::new(&solving);
        let shield = match context.privacy {
            Privacy::None => Shield::None,
            Privacy::OneShot(_) if problem.records == Records::Distances => {
                return Err(
                    "privacy.mechanism = \"one-shot\" releases a scatter matrix of signals: it needs \
                            model.records = \"signals\""
                        .into(),
                );
            }
            Privacy::OneShot(once) => Shield::OneShot(once),
            Privacy::Paper(paper) if matches!(solver, Solver::Paper(_)) => Shield::Paper(paper),
            Privacy::Paper(_) => {
                return Err("privacy.mechanism = \"paper\" is the noise of Algorithm 1: it needs \
                            algorithm.solver = \"paper\"; with \"exact\" use \"one-shot\""
                    .into());
            }
            Privacy::Zcdp(_) | Privacy::DpSgd(_) => {
                return Err(format!(
                    "{} sends graphs, and no bound says how far one record moves them: set \
                     privacy.mechanism = \"one-shot\" for it, with `epsilon` and `clip`",
                    C::NAME
                ));
            }
        };
        Ok(Self { problem, solver, shield, coupling })
    }
}

impl<C: Coupling> FedGl<C> {
    fn setup_steps(&self) -> u32 {
        u32::from(matches!(self.shield, Shield::OneShot(_)))
    }

    /// A client's block, at the client or, on released distances, at the server: `up.graph` and `up.value`.
    fn answer(
        &self,
        zbar: &[f64],
        (consensus, down): (&[f64], &Down),
        memory: &mut Memory,
        up: &mut Up,
        work: &mut Vec<f64>,
    ) -> Result<(), Unsolved> {
        match self.solver {
            Solver::Exact { .. } => {
                // A function of data and ask alone: what a client answers does not depend on what its disk remembers.
                exact::block(&self.problem, zbar, down, &mut down.start.clone(), &mut up.graph, work)?;
            }
            Solver::Paper(steps) => {
                let pull = signals::Pull { weight: down.weight, centre: consensus };
                paper::block::<C>(&self.problem, zbar, pull, steps, memory, work);
                up.graph.clone_from(&memory.graph);
            }
        }
        up.value = self.problem.value(zbar, &up.graph, work);
        Ok(())
    }

    /// The rounds of a run with `one-shot`, at the server alone.
    fn solve_here(&self, server: &Central, seats: &mut Seats<'_, Seat>, now: Now<'_>) -> Cells {
        let (cells, length) = self.cells(now.at);
        let mut sum = Cells::new(cells, length);
        let (mut down, mut up, mut work) = (Down::default(), Up::default(), Vec::new());
        for k in 0..seats.len() {
            if seats.get(k).distances.is_empty() {
                continue;
            }
            let seat = seats.get_mut(k);
            self.message(server, seat, &mut down);
            let mut memory = std::mem::take(&mut seat.memory);
            let distances = std::mem::take(&mut seat.distances);
            let solved = self.answer(&distances, (&server.consensus, &down), &mut memory, &mut up, &mut work);
            (seat.memory, seat.distances) = (memory, distances);
            if solved.is_ok() {
                self.receive(server, seat, &up, &mut sum);
            }
        }
        sum
    }

    fn message(&self, server: &Central, seat: &Seat, out: &mut Down) {
        match self.solver {
            Solver::Exact { .. } => {
                out.graph.clone_from(&seat.centre);
                out.weight = self.coupling.penalty(server, seat);
                exact::start(&self.problem, &seat.graph, &mut out.start);
            }
            Solver::Paper(_) => {
                out.start.clear();
                out.graph.clear();
                out.weight = self.coupling.paper_pull(seat);
            }
        }
    }

    fn receive(&self, server: &Central, seat: &mut Seat, up: &Up, sum: &mut Cells) {
        match self.solver {
            Solver::Exact { .. } => self.coupling.receive(server, seat, up, sum),
            Solver::Paper(_) => paper::receive(seat, up),
        }
        seat.there = true;
    }
}

impl<C: Coupling> Algorithm for FedGl<C> {
    const NAME: &'static str = C::NAME;
    const LABELS: &'static [&'static str] = &["round", "scatter"];
    const PERSONAL: &'static [&'static str] = &["client", "consensus"];
    const GRAPHS: bool = true;
    const SHARED: &'static [bool] = &[false, true];
    type Local = LocalData;
    type Memory = Memory;
    type Server = Central;
    type Seat = Seat;
    type Common = Common;
    type Down = Down;
    /// A noisy scatter matrix, a noisy graph, or an upload as it is; the others are empty.
    type Raw = ((Symmetric, Vec<f64>), Up);
    type Up = Up;
    type Share = ();

    fn open(&self, at: ServerView<'_>, _: &mut PublicRng) -> Central {
        let start = match self.solver {
            Solver::Exact { .. } => 0.0,
            Solver::Paper(_) => paper::start(&self.problem, at.run.dimension),
        };
        Central {
            consensus: vec![start; at.run.dimension],
            penalty: exact::first_penalty(&self.problem),
            objective: f64::INFINITY,
            first: f64::INFINITY,
            kkt: f64::INFINITY,
            worst: paper::first_lipschitz(&self.coupling, &self.problem, at.run.dimension, at.members.len()),
            ..Central::default()
        }
    }

    fn seat(&self, at: ServerView<'_>, member: &Member) -> Seat {
        let all: f64 = at.members.iter().map(|member| f64::from(member.samples)).sum();
        let mut seat = Seat {
            share: f64::from(member.samples) / all,
            gamma: 1.0 / at.members.len() as f64,
            ..Seat::default()
        };
        if matches!(self.solver, Solver::Exact { .. }) {
            seat.centre = vec![0.0; at.run.dimension];
            seat.dual = vec![0.0; at.run.dimension];
        }
        seat
    }

    fn phase(&self, server: &Central, step: u32, run: &Run) -> Phase {
        let setup = self.setup_steps();
        if step <= setup {
            Phase::Ask(SCATTER)
        } else if server.ended || step > run.rounds + setup {
            Phase::Deliver
        } else {
            Phase::Ask(crate::algorithm::ROUND)
        }
    }

    fn plan(&self, _: &mut Central, _: &mut Seats<'_, Seat>, now: Now<'_>) -> Who {
        match self.shield {
            // The rounds after the one release ask nobody.
            Shield::OneShot(_) if now.label != SCATTER => Who::Some(Vec::new()),
            Shield::OneShot(_) => Who::All,
            _ => now.draw(),
        }
    }

    fn common(&self, server: &Central, now: Now<'_>) -> Common {
        let needed = match self.solver {
            Solver::Exact { .. } => now.label == crate::algorithm::DELIVER,
            Solver::Paper(_) => now.label != SCATTER,
        };
        Common { consensus: if needed { server.consensus.clone() } else { Vec::new() } }
    }

    fn down(&self, server: &Central, seat: &Seat, now: Now<'_>, _: &Member, out: &mut Down) {
        if now.label == SCATTER {
            *out = Down::default();
        } else {
            self.message(server, seat, out);
        }
    }

    fn serve(&self, server: &Central, seat: &Seat, _: Now<'_>, _: &Member, out: &mut Down) {
        out.graph.clone_from(C::graph_of(server, seat));
        out.weight = seat.gamma;
        out.start.clear();
    }

    fn fits(&self, _: &Seat, now: Now<'_>, up: &Up) -> bool {
        let pairs = now.at.run.dimension;
        if now.label == SCATTER {
            let rows = signals::nodes_of(pairs).unwrap_or(0);
            return up.graph.is_empty()
                && up.scatter.rows as usize == rows
                && up.scatter.upper.len() == rows * (rows + 1) / 2;
        }
        up.graph.len() == pairs && up.scatter.upper.is_empty()
    }

    fn cells(&self, at: ServerView<'_>) -> (usize, usize) {
        match self.solver {
            Solver::Exact { .. } => (1, at.run.dimension),
            Solver::Paper(_) => (1, 0),
        }
    }

    fn absorb(&self, server: &Central, seat: &mut Seat, now: Now<'_>, _: &Member, up: &Up, sum: &mut Cells) {
        if now.label == SCATTER {
            seat.distances = signals::distances_of(&up.scatter).unwrap_or_default();
        } else {
            self.receive(server, seat, up, sum);
        }
    }

    fn close(&self, server: &mut Central, seats: &mut Seats<'_, Seat>, closed: &Closed<'_>, sum: &Cells) {
        if closed.now.label == SCATTER {
            return;
        }
        let here;
        let sum = if matches!(self.shield, Shield::OneShot(_)) {
            here = self.solve_here(server, seats, closed.now);
            &here
        } else {
            sum
        };
        match self.solver {
            Solver::Exact { tolerance } => exact::close(&self.coupling, server, seats, sum, tolerance),
            // Graphs that grew beyond every bound in one round were turned away at the door.
            Solver::Paper(steps) if closed.rejected() && steps.step * server.worst > 1.0 => {
                server.objective = f64::INFINITY;
                (server.diverged, server.ended) = (true, true);
            }
            Solver::Paper(steps) => {
                let told = !matches!(self.shield, Shield::Paper(_));
                paper::close(&self.coupling, &self.problem, steps, server, seats, told);
            }
        }
    }

    fn held(&self, server: &Central, _: &Run, out: &mut Held<'_>) {
        out(0, "consensus", &server.consensus);
    }

    fn join(&self, data: &Arc<Dataset>, at: ServerView<'_>, _: &Member) -> Result<LocalData, Unsolved> {
        let (rows, rounds) = (data.rows(), at.run.rounds);
        let clip = match self.shield {
            Shield::OneShot(once) => {
                if once.sampler == Sampler::None {
                    // Looked at before anything leaves: without differences there is nothing to learn. With noise
                    // nobody is to know.
                    signals::means(&self.problem, data, None)?;
                }
                let scatter =
                    signals::scatter(data, once.clip).map_err(|_| Unsolved("a record is not finite"))?;
                return Ok(LocalData { own: None, scatter: Some(scatter), rows, rounds });
            }
            Shield::Paper(paper) => Some(paper.clip),
            Shield::None => None,
        };
        Ok(LocalData { own: Some(signals::means(&self.problem, data, clip)?), scatter: None, rows, rounds })
    }

    fn fits_ask(&self, mine: &LocalData, ask: &Ask<'_, Self>) -> bool {
        let Some(own) = &mine.own else { return true };
        let fits = |graph: &[f64]| graph.is_empty() || graph.len() == own.zbar.len();
        let start = ask.down().start.len();
        fits(&ask.common().consensus) && fits(&ask.down().graph) && (start == 0 || start == own.nodes)
    }

    fn client<'g>(
        &self,
        mine: &LocalData,
        memory: &mut Memory,
        ask: Ask<'_, Self>,
        gate: &mut Gate<'g>,
        scratch: &mut Buffers,
        mut spare: Up,
    ) -> Result<Released<'g, Self::Raw>, Refusal> {
        if let (Shield::OneShot(once), Some(scatter)) = (&self.shield, &mine.scatter) {
            let sensitivity = proofs::scatter(once.clip, mine.rows as f64);
            let noise = Gaussian::symmetric(sensitivity, once.price, scatter.rows as usize, once.sampler)
                .ok_or(Refusal::NoMechanism)?;
            let released = gate.release("scatter", &noise, scatter.clone())?;
            return Ok(released.zip(gate.nothing()).zip(gate.nothing()));
        }
        let own = mine.own.as_ref().ok_or(Refusal::Unsolved)?;
        if let (Shield::Paper(noise), Solver::Paper(steps)) = (&self.shield, self.solver) {
            let pull = signals::Pull { weight: ask.down().weight, centre: &ask.common().consensus };
            let noise = noise
                .gaussian(steps.step, mine.rows, own.zbar.len(), mine.rounds)
                .ok_or(Refusal::NoMechanism)?;
            let mut next = memory.clone();
            paper::noisy_block::<C>(&self.problem, &own.zbar, pull, steps, &mut next, &mut scratch.work);
            let released = gate.release("graph", &noise, std::mem::take(&mut next.graph))?;
            // (27): what the client goes on from, the noise included.
            next.graph.extend(released.value().iter().map(|w| w.max(0.0)));
            *memory = next;
            return Ok(gate.nothing::<Symmetric>().zip(released).zip(gate.nothing()));
        }
        spare.scatter = Symmetric::default();
        self.answer(&own.zbar, (&ask.common().consensus, ask.down()), memory, &mut spare, &mut scratch.work)
            .map_err(|_| Refusal::Unsolved)?;
        let released = gate.disclose("graph", spare)?;
        Ok(gate.nothing::<(Symmetric, Vec<f64>)>().zip(released))
    }

    fn finish(((scatter, graph), rest): Self::Raw, _: &Ask<'_, Self>) -> Up {
        Up { scatter, graph: if graph.is_empty() { rest.graph } else { graph }, ..rest }
    }

    fn price(&self, _: &Member, step: u32) -> Option<Cost> {
        match self.shield {
            Shield::OneShot(once) if step == 1 => Cost::at_least(once.price),
            Shield::OneShot(_) | Shield::None => Some(Cost::default()),
            Shield::Paper(_) => None,
        }
    }

    fn personal(&self, mine: &LocalData, _: &Memory, served: Ask<'_, Self>, out: &mut Personal<'_>) {
        let _ = mine;
        let (graph, consensus) = (&served.down().graph, &served.common().consensus);
        out("client", if graph.is_empty() { consensus } else { graph });
        out("consensus", consensus);
    }

    fn gauges(&self, server: &Central, out: &mut dyn FnMut(&'static str, f64)) {
        for (name, value) in [("objective", server.objective), ("kkt", server.kkt)] {
            if value.is_finite() {
                out(name, value);
            }
        }
        if let Solver::Paper(steps) = self.solver {
            // Proposition 1 wants this below 1.
            out("step_times_lipschitz", steps.step * server.lipschitz);
            out("moved", server.moved);
            out("consensus_moved", server.consensus_moved);
        }
    }

    fn complaint(&self, server: &Central) -> Option<Halt> {
        server.diverged.then(|| Halt::Method {
            cause: format!(
                "Algorithm 1 of the paper diverges here: its objective went from {:.4} to {:.4}, because step times the \
                 Lipschitz constant of Proposition 1 is {:.3} where at most 1 is allowed{}",
                server.first,
                server.objective,
                match self.solver {
                    Solver::Paper(steps) => steps.step * server.worst,
                    Solver::Exact { .. } => 0.0,
                },
                if server.worst.is_finite() {
                    " (a client's graph fuses with the consensus, and gamma grows without bound)"
                } else {
                    " (a node of a client's graph has lost all its edges)"
                },
            ),
            remedy: "set algorithm.solver = \"exact\", or lower algorithm.rho or algorithm.step".into(),
        })
    }

    fn advice(&self) -> &'static str {
        "lower `algorithm.rho` or `algorithm.step`, or set `algorithm.solver` = \"exact\""
    }
}
