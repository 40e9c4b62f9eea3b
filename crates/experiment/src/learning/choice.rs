//! Parameters that follow the scale of the data.
//!
//! - beta: by the density of the graphs that clients find alone; more of it gives more edges.
//! - rho: as a share of what fuses all graphs. At the graph of the pooled distances the pull of client i is
//!   `2 (zbar_i - mean of zbar)` on the pairs of that graph; a rho above all their norms leaves one graph.
//! - lambda: as a share of what empties the consensus, which it does at `rho max over pairs of sum over i of w_i / |w_i|`.

use super::solve::alone;
use fedkin_data::InOrder;
use fedkin_numeric::norm2;
use fedkin_run::Error;
use rayon::prelude::*;

/// So many neighbours a node has on average, where nothing is said about density.
const NEIGHBOURS: f64 = 6.0;
/// But no more than this share of all pairs, or so many neighbours where that is more: a graph in one piece needs two.
const MOST_DENSITY: f64 = 0.3;
const FEW_NEIGHBOURS: f64 = 4.0;
/// Share of the rho that fuses all graphs, where rho is not given.
pub(super) const RHO_SHARE: f64 = 0.1;
/// Share of the lambda that empties the consensus, where lambda is not given.
pub(super) const LAMBDA_SHARE: f64 = 0.1;
const MOST_STEPS: u32 = 60;

/// The density that is aimed at where nobody names one.
pub(super) fn usual_density(nodes: usize) -> f64 {
    let most = MOST_DENSITY.max(FEW_NEIGHBOURS / nodes as f64).min(1.0);
    (NEIGHBOURS / (nodes as f64 - 1.0)).min(most)
}

/// Weights above a share of the largest.
pub(super) fn pruned(graph: &[f64], share: f64) -> Vec<f64> {
    let least = share * graph.iter().copied().fold(0.0, f64::max);
    graph.iter().map(|&w| if w > least { w } else { 0.0 }).collect()
}

/// Share of the pairs whose weight is above a share of the largest.
pub(super) fn density(graph: &[f64], share: f64) -> f64 {
    let least = share * graph.iter().copied().fold(0.0, f64::max);
    graph.iter().filter(|w| **w > least).count() as f64 / graph.len().max(1) as f64
}

/// A beta and what it gives.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Found {
    pub beta: f64,
    /// Mean over the clients, each alone.
    pub density: f64,
    /// The least and the largest density that any beta gives.
    pub range: (f64, f64),
}

/// The beta whose graphs, every client alone, come nearest to a density.
pub(super) fn beta_of_density(
    alpha: f64,
    zbar: &[Vec<f64>],
    target: f64,
    share: f64,
) -> Result<Found, Error> {
    let pairs = zbar.first().map_or(1, Vec::len) as f64;
    let mean = zbar.iter().flatten().sum::<f64>() / (pairs * zbar.len().max(1) as f64);
    let most = zbar.iter().flatten().copied().fold(0.0, f64::max);
    let at = |log: f64| -> Result<(f64, f64), Error> {
        let beta = log.exp();
        let all: Vec<f64> = zbar
            .par_iter()
            .map(|zbar| Ok::<_, Error>(density(&alone(alpha, beta, zbar)?, share)))
            .in_order()?;
        Ok((beta, all.iter().sum::<f64>() / all.len().max(1) as f64))
    };
    // alpha beta over the square of a distance has no unit. Far below, the graph no longer changes; where even the
    // largest distance is small next to the weights' own pull, all pairs are edges.
    let unit = (mean * mean / alpha).ln();
    let (mut low, mut high) = (unit - 16.0, (8.0 * pairs.sqrt() * most * most / alpha).ln().max(unit + 2.0));
    let (first, last) = loop {
        match at(low) {
            Ok(first) => break (first, at(high)?),
            // So little curvature may be beyond the solver's reach.
            Err(_) if low + 1.0 < high => low += 2.0,
            Err(error) => return Err(error),
        }
    };
    let range = (first.1, last.1);
    let near = |found: (f64, f64)| (found.1 - target).abs();
    let mut best = if near(first) <= near(last) { first } else { last };
    for _ in 0..MOST_STEPS {
        if near(best) <= (0.5 / pairs).max(0.005 * target) || high - low < 1e-9 {
            break;
        }
        let middle = f64::midpoint(low, high);
        let found = at(middle)?;
        if near(found) < near(best) {
            best = found;
        }
        if found.1 < target { low = middle } else { high = middle }
    }
    Ok(Found { beta: best.0, density: best.1, range })
}

/// The mean of the distances over clients.
fn pooled(zbar: &[Vec<f64>]) -> Vec<f64> {
    let mut mean = vec![0.0; zbar.first().map_or(0, Vec::len)];
    for zbar in zbar {
        fedkin_numeric::axpy(1.0, zbar, &mut mean);
    }
    fedkin_numeric::scale(1.0 / zbar.len().max(1) as f64, &mut mean);
    mean
}

/// The rho that fuses all graphs at this beta.
pub(super) fn fusing_rho(alpha: f64, beta: f64, zbar: &[Vec<f64>]) -> Result<f64, Error> {
    let mean = pooled(zbar);
    let graph = alone(alpha, beta, &mean)?;
    let pull = |zbar: &Vec<f64>| {
        let pairs = graph.iter().zip(zbar).zip(&mean).filter(|((w, _), _)| **w > 0.0);
        pairs.map(|((_, z), mean)| 4.0 * (z - mean) * (z - mean)).sum::<f64>().sqrt()
    };
    let largest = zbar.iter().map(pull).fold(0.0, f64::max);
    if largest > 0.0 {
        return Ok(largest);
    }
    // The clients have the same data: any tie will do.
    Ok(graph.iter().zip(&mean).filter(|(w, _)| **w > 0.0).map(|(_, z)| 4.0 * z * z).sum::<f64>().sqrt())
}

/// The lambda that empties the consensus, over rho.
pub(super) fn emptying_lambda(alpha: f64, beta: f64, zbar: &[Vec<f64>]) -> Result<f64, Error> {
    let mut sum = vec![0.0; zbar.first().map_or(0, Vec::len)];
    for zbar in zbar {
        let graph = alone(alpha, beta, zbar)?;
        fedkin_numeric::axpy(1.0 / norm2(&graph).sqrt(), &graph, &mut sum);
    }
    Ok(sum.into_iter().fold(0.0, f64::max))
}
