//! How far graphs are from the solution, told from the distances and the graphs alone: nothing of the solver is used.
//!
//! At the solution of (8) there is a pull `xi_i` per client with
//!
//! ```text
//! grad g_i(w_i) + xi_i >= 0, and = 0 where w_i > 0          xi_i in rho d|w_i - c|          sum of xi_i in lambda d|c|_1
//! ```
//!
//! On the pairs of `w_i` the first condition says what `xi_i` is. On the others it is bounded from below: there a
//! client apart from the consensus pulls as the second asks, and one that is fused as little as the third needs. What is left are the other two, as residuals of proximal steps of length
//! tau: they are continuous where a graph fuses with the consensus, and tau = |w|^2 / (alpha d) makes them free of scale.

use super::Parameters;
use fedkin_learner::signals::{Smooth, degrees};
use fedkin_numeric::{distance2, norm2};

/// A graph that is nearer to the consensus than this, relative to the largest graph, is taken as fused with it.
const FUSED: f64 = 1e-6;
/// Turns between the conditions on fused clients.
const MOST_TURNS: u32 = 2000;

/// The largest residual over the largest `|w_i|`; infinite where a node has no edge.
pub(super) fn residual(
    alpha: f64,
    parameters: Parameters,
    zbar: &[Vec<f64>],
    graphs: &[Vec<f64>],
    consensus: Option<&[f64]>,
) -> f64 {
    let nodes = graphs.first().and_then(|graph| fedkin_learner::signals::nodes_of(graph.len())).unwrap_or(0);
    let size = graphs.iter().map(|graph| norm2(graph)).fold(0.0, f64::max).sqrt();
    if nodes == 0 || size <= 0.0 {
        return f64::INFINITY;
    }
    let tau = size * size / (alpha * nodes as f64);
    let mut gradients = Vec::with_capacity(graphs.len());
    for (zbar, graph) in zbar.iter().zip(graphs) {
        let Some(gradient) = gradient(alpha, parameters.beta, zbar, graph, nodes) else {
            return f64::INFINITY;
        };
        gradients.push(gradient);
    }
    let (Some((rho, lambda)), Some(c)) = (parameters.tie, consensus) else {
        // Alone: no pull at all.
        let off = graphs.iter().zip(&gradients).map(|(graph, gradient)| {
            let steps = graph.iter().zip(gradient).map(|(w, g)| w - (w - tau * g).max(0.0));
            steps.map(|step| step * step).sum::<f64>().sqrt()
        });
        return off.fold(0.0, f64::max) / size;
    };
    let fused: Vec<bool> = graphs.iter().map(|graph| distance2(graph, c).sqrt() <= FUSED * size).collect();
    let mut pulls: Vec<Vec<f64>> = Vec::with_capacity(graphs.len());
    for ((graph, gradient), fused) in graphs.iter().zip(&gradients).zip(&fused) {
        // Near a fused graph the direction to the consensus is rounding.
        let towards = if *fused { 0.0 } else { rho / distance2(graph, c).sqrt() };
        let pairs = graph.iter().zip(gradient).zip(c);
        let pull = pairs.map(|((w, g), c)| if *w > 0.0 { -g } else { (-g).max(towards * (w - c)) });
        pulls.push(pull.collect());
    }
    // A point of two convex sets, by turns the nearest of each: pulls that leave the consensus without a reason for more
    // edges, and pulls of fused clients no longer than rho.
    for _ in 0..MOST_TURNS {
        for at in 0..c.len() {
            hold_back(at, lambda, (graphs, &gradients, &fused), &mut pulls);
        }
        let mut longest: f64 = 0.0;
        for id in (0..graphs.len()).filter(|&id| fused[id]) {
            longest = longest.max(norm2(&pulls[id]).sqrt());
            shorten(&graphs[id], &gradients[id], rho, &mut pulls[id]);
        }
        if longest <= rho * (1.0 + 1e-13) {
            break;
        }
    }
    let mut worst: f64 = 0.0;
    for (graph, pull) in graphs.iter().zip(&pulls) {
        worst = worst.max(tie_left((graph, pull, c), (tau, rho)));
    }
    let off = (0..c.len()).map(|at| {
        let sum: f64 = pulls.iter().map(|pull| pull[at]).sum();
        let left = c[at] - (c[at] + tau * (sum - lambda)).max(0.0);
        left * left
    });
    worst.max(off.sum::<f64>().sqrt()) / size
}

/// A pair without an edge in fused graphs: they may hold the others back, each as far as its gradient allows, until the
/// consensus has no reason for an edge there. All by the same amount, which is the shortest way.
fn hold_back(
    at: usize,
    lambda: f64,
    (graphs, gradients, fused): (&[Vec<f64>], &[Vec<f64>], &[bool]),
    pulls: &mut [Vec<f64>],
) {
    for _ in 0..graphs.len() {
        let excess = pulls.iter().map(|pull| pull[at]).sum::<f64>() - lambda;
        let room = |id: usize, pulls: &[Vec<f64>]| {
            if fused[id] && graphs[id][at] <= 0.0 {
                (pulls[id][at] + gradients[id][at]).max(0.0)
            } else {
                0.0
            }
        };
        let able: Vec<usize> = (0..graphs.len()).filter(|&id| room(id, pulls) > 0.0).collect();
        if excess <= 0.0 || able.is_empty() {
            return;
        }
        for &id in &able {
            pulls[id][at] -= (excess / able.len() as f64).min(room(id, pulls));
        }
    }
}

/// The nearest pull of at most norm rho; on the pairs of the graph it cannot change.
fn shorten(graph: &[f64], gradient: &[f64], rho: f64, pull: &mut [f64]) {
    if norm2(pull).sqrt() <= rho {
        return;
    }
    let scaled = |factor: f64, at: usize, pull: &[f64]| {
        if graph[at] > 0.0 { pull[at] } else { (factor * pull[at]).max(-gradient[at]) }
    };
    let (mut low, mut high) = (0.0, 1.0);
    for _ in 0..60 {
        let middle = f64::midpoint(low, high);
        let length =
            (0..pull.len()).map(|at| scaled(middle, at, pull) * scaled(middle, at, pull)).sum::<f64>();
        if length.sqrt() <= rho { low = middle } else { high = middle }
    }
    for at in 0..pull.len() {
        pull[at] = scaled(low, at, pull);
    }
}

/// What is left of a client's tie to the consensus under its pull.
fn tie_left((graph, pull, c): (&[f64], &[f64], &[f64]), (tau, rho): (f64, f64)) -> f64 {
    let moved = |at: usize| graph[at] - c[at] + tau * pull[at];
    let length = (0..graph.len()).map(|at| moved(at) * moved(at)).sum::<f64>().sqrt();
    let keep = if length > tau * rho { 1.0 - tau * rho / length } else { 0.0 };
    let off = (0..graph.len()).map(|at| {
        let left = graph[at] - c[at] - keep * moved(at);
        left * left
    });
    off.sum::<f64>().sqrt()
}

/// Of g: `2 zbar - alpha S'(1 / S w) + 4 beta w`. `None` where a node has no edge.
fn gradient(alpha: f64, beta: f64, zbar: &[f64], graph: &[f64], nodes: usize) -> Option<Vec<f64>> {
    let mut degree = vec![0.0; nodes];
    degrees(graph, &mut degree);
    if degree.iter().any(|degree| *degree <= 0.0) {
        return None;
    }
    let mut gradient: Vec<f64> = zbar.iter().zip(graph).map(|(z, w)| 2.0 * z + 4.0 * beta * w).collect();
    let inverse: Vec<f64> = degree.iter().map(|degree| 1.0 / degree).collect();
    fedkin_learner::signals::add_back(-alpha, &inverse, &mut gradient);
    Some(gradient)
}

/// (8), or the sum of all `g_i` where every client is alone.
pub(super) fn objective(
    smooth: &Smooth,
    parameters: Parameters,
    zbar: &[Vec<f64>],
    graphs: &[Vec<f64>],
    consensus: Option<&[f64]>,
) -> f64 {
    let smooth = Smooth { beta: parameters.beta, ..*smooth };
    let mut work = Vec::new();
    let own: f64 = zbar.iter().zip(graphs).map(|(zbar, graph)| smooth.value(zbar, graph, &mut work)).sum();
    let (Some((rho, lambda)), Some(c)) = (parameters.tie, consensus) else { return own };
    let ties: f64 = graphs.iter().map(|graph| distance2(graph, c).sqrt()).sum();
    own + rho * ties + lambda * c.iter().map(|c| c.abs()).sum::<f64>()
}
