//! What a graph says about records it has not seen, and how well two graphs agree on their edges.
//!
//! The law of the signals is that of (33) of the `FedGL` paper, a Gaussian field whose precision is a Laplacian and a
//! little more, `s (L + delta I)`, on signals less their mean over the nodes. With d - 1 directions left,
//!
//! ```text
//! 2 l(s) = sum over k >= 2 of log(lambda_k + delta) + (d - 1) log s - s (w'zbar + delta 1'zbar / d)
//! ```
//!
//! per record. Learnt weights have the shape of the truth and not its scale, which alpha and beta fix; so s is the best one
//! for the records that are judged, and graphs of any beta can be compared. delta keeps a graph in pieces from being ruled
//! out altogether.

use fedkin_graph::Weighted;
use fedkin_numeric::{dot, ln};

/// delta over the mean degree.
const RIDGE: f64 = 1e-2;

/// Log-likelihood per record, less a constant; `None` where the graph has no edge or the distances are all zero.
pub(super) fn log_likelihood(nodes: usize, graph: &[f64], zbar: &[f64]) -> Option<f64> {
    let weighted = Weighted::new(nodes, graph.to_vec()).ok()?;
    let degree = weighted.degrees().iter().sum::<f64>() / nodes as f64;
    let ridge = RIDGE * degree;
    let spectrum = weighted.spectrum()?;
    let logs: f64 = spectrum.iter().skip(1).map(|value| ln(value.max(0.0) + ridge)).sum();
    let energy = dot(graph, zbar) + ridge * zbar.iter().sum::<f64>() / nodes as f64;
    let directions = nodes as f64 - 1.0;
    let value = 0.5 * (logs + directions * ln(directions / energy) - directions);
    value.is_finite().then_some(value)
}

/// Cohen's kappa of two sets of edges: 1 where they agree, 0 where they do as by chance.
pub(super) fn agreement(a: &[f64], b: &[f64]) -> f64 {
    let count = a.len().max(1) as f64;
    let share = |which: &dyn Fn(f64, f64) -> bool| {
        a.iter().zip(b).filter(|(a, b)| which(**a, **b)).count() as f64 / count
    };
    let same = share(&|a, b| (a > 0.0) == (b > 0.0));
    let (first, second) = (share(&|a, _| a > 0.0), share(&|_, b| b > 0.0));
    let chance = first * second + (1.0 - first) * (1.0 - second);
    if chance < 1.0 { (same - chance) / (1.0 - chance) } else { 0.0 }
}
