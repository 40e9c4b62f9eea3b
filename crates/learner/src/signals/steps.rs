//! The paper's client block: a few accelerated projected gradient steps, equations (14) to (16).

use super::Smooth;
use super::pairs::{add_back, degrees};

/// The term `(weight / 2) |w - centre|^2` that pulls a client's graph to the consensus.
#[derive(Debug, Clone, Copy)]
pub struct Pull<'a> {
    /// rho times gamma; 0 for a client alone.
    pub weight: f64,
    /// The consensus graph.
    pub centre: &'a [f64],
}

/// Below this a degree counts as this much: momentum may carry a degree below zero.
const LEAST_DEGREE: f64 = 1e-6;

/// One step from `graph` and the graph `before` it. `project` cuts negative weights off, (16); the last step of the
/// paper's private algorithm leaves that to the server. `work` is scratch.
pub fn descend(
    problem: &Smooth,
    zbar: &[f64],
    pull: Pull<'_>,
    (step, momentum): (f64, f64),
    project: bool,
    (graph, before): (&mut Vec<f64>, &mut Vec<f64>),
    work: &mut Vec<f64>,
) {
    let Some(nodes) = super::nodes_of(graph.len()) else { return };
    // `before` becomes the extrapolated point (14), and then the new graph.
    for (before, graph) in before.iter_mut().zip(graph.iter()) {
        *before = graph + momentum * (graph - *before);
    }
    work.clear();
    work.resize(nodes, 0.0);
    degrees(before, work);
    for degree in work.iter_mut() {
        *degree = 1.0 / degree.max(LEAST_DEGREE);
    }
    let shrink = 1.0 - step * (4.0 * problem.beta + pull.weight);
    if pull.weight == 0.0 {
        for (w, z) in before.iter_mut().zip(zbar) {
            *w = shrink * *w - 2.0 * step * z;
        }
    } else {
        for ((w, z), centre) in before.iter_mut().zip(zbar).zip(pull.centre) {
            *w = shrink * *w - step * (2.0 * z - pull.weight * centre);
        }
    }
    add_back(step * problem.alpha, work, before);
    if project {
        for w in before.iter_mut() {
            *w = w.max(0.0);
        }
    }
    std::mem::swap(graph, before);
}
