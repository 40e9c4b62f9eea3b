//! `solver = "paper"`: Algorithm 1 as printed.

use super::coupling::Coupling;
use super::solver::PaperSteps;
use super::{Central, Memory, Seat, Up};
use crate::algorithm::Seats;
use fedkin_learner::signals::{self, Pull, Smooth};
use fedkin_numeric::distance2;

/// `eps_gamma` of (20).
pub(super) const LEAST_GAP: f64 = 1e-6;

/// The data-free graph that everything starts from: equal weights, best for alpha and beta without data.
pub(super) fn start(problem: &Smooth, pairs: usize) -> f64 {
    let nodes = signals::nodes_of(pairs).unwrap_or(2) as f64;
    (problem.alpha / (2.0 * problem.beta * (nodes - 1.0))).sqrt()
}

/// `L_i` of Proposition 1 for a graph whose least degree is this.
pub(super) fn lipschitz(problem: &Smooth, nodes: usize, least: f64, pull: f64) -> f64 {
    4.0 * problem.beta + 2.0 * problem.alpha * (nodes - 1) as f64 / (least * least) + pull
}

/// The same where everything starts.
pub(super) fn first_lipschitz<C: Coupling>(
    coupling: &C,
    problem: &Smooth,
    pairs: usize,
    clients: usize,
) -> f64 {
    let nodes = signals::nodes_of(pairs).unwrap_or(2);
    let seat = Seat { gamma: 1.0 / clients as f64, ..Seat::default() };
    lipschitz(problem, nodes, (nodes - 1) as f64 * start(problem, pairs), coupling.paper_pull(&seat))
}

fn begin<C: Coupling>(problem: &Smooth, pairs: usize, pull: &Pull<'_>, memory: &mut Memory) {
    if C::FROM_SERVED {
        memory.graph.clear();
        memory.graph.extend_from_slice(pull.centre);
        memory.before.clone_from(&memory.graph);
    } else if memory.graph.len() != pairs {
        memory.graph = vec![start(problem, pairs); pairs];
        memory.before.clone_from(&memory.graph);
    }
}

/// K steps (14) to (16).
pub(super) fn block<C: Coupling>(
    problem: &Smooth,
    zbar: &[f64],
    pull: Pull<'_>,
    steps: PaperSteps,
    memory: &mut Memory,
    work: &mut Vec<f64>,
) {
    begin::<C>(problem, zbar.len(), &pull, memory);
    for _ in 0..steps.inner {
        let graphs = (&mut memory.graph, &mut memory.before);
        signals::descend(problem, zbar, pull, (steps.step, steps.momentum), true, graphs, work);
    }
}

/// The same with the last step not projected, (26): where the noise goes.
pub(super) fn noisy_block<C: Coupling>(
    problem: &Smooth,
    zbar: &[f64],
    pull: Pull<'_>,
    steps: PaperSteps,
    memory: &mut Memory,
    work: &mut Vec<f64>,
) {
    begin::<C>(problem, zbar.len(), &pull, memory);
    for k in 1..=steps.inner {
        let graphs = (&mut memory.graph, &mut memory.before);
        let project = k < steps.inner;
        signals::descend(problem, zbar, pull, (steps.step, steps.momentum), project, graphs, work);
    }
}

/// The server projects what it gets, (28).
pub(super) fn receive(seat: &mut Seat, up: &Up) {
    seat.value = up.value;
    let before = std::mem::take(&mut seat.graph);
    seat.graph = up.graph.iter().map(|w| w.max(0.0)).collect();
    seat.moved = if before.is_empty() { 0.0 } else { distance2(&before, &seat.graph) };
}

/// (19), (20), and the constant of Proposition 1. `told` where clients say `g_i`.
pub(super) fn close<C: Coupling>(
    coupling: &C,
    problem: &Smooth,
    steps: PaperSteps,
    server: &mut Central,
    seats: &mut Seats<'_, Seat>,
    told: bool,
) {
    coupling.paper_close(server, seats);
    let nodes = signals::nodes_of(server.consensus.len()).unwrap_or(2);
    let mut degree = vec![0.0; nodes];
    (server.lipschitz, server.moved) = (0.0, 0.0);
    let mut own = 0.0;
    for seat in seats.iter().filter(|seat| seat.there) {
        signals::degrees(&seat.graph, &mut degree);
        let least = degree.iter().copied().fold(f64::INFINITY, f64::min);
        server.lipschitz = server.lipschitz.max(lipschitz(problem, nodes, least, coupling.paper_pull(seat)));
        server.moved += seat.moved;
        own += C::share(seat) * seat.value;
    }
    server.worst = server.worst.max(server.lipschitz);
    if told {
        server.objective = own + coupling.terms(&server.consensus, seats);
        if !server.first.is_finite() {
            server.first = server.objective;
        }
        let risen = server.objective > server.first + 1e-3 * (1.0 + server.first.abs());
        let unstable = steps.step * server.worst > 1.0;
        server.diverged = !server.objective.is_finite() || (risen && unstable);
    }
    server.ended = server.diverged;
}
