//! Graphs from signals: what one client's records say about the graph they live on.
//!
//! A graph of d nodes is a vector w of p = d(d-1)/2 weights, the upper triangle of its adjacency matrix row by row. The
//! records enter through one vector alone, the mean squared difference of every pair of nodes:
//!
//! ```text
//! g(w) = 2 zbar'w - alpha 1'log(S w) + 2 beta |w|^2,   w >= 0,   zbar_jk = mean over records of (x_j - x_k)^2
//! ```
//!
//! which is (7) of the `FedGL` paper (Zhang and Wang, Graph topology learning under privacy constraints), the smoothness
//! model of Kalofolias 2016. `S w` are the degrees; S is applied, never stored.

mod near;
mod newton;
mod pairs;
mod scatter;
mod start;
mod steps;

pub use newton::{Solved, solve};
pub use pairs::{add_back, degrees, lanes, nodes_of, pairs_of};
pub use scatter::{distances_of, means, scatter};
pub use steps::{Pull, descend};

use crate::model::settings::Graph;
use crate::unsolved::Unsolved;
use fedkin_numeric::ln;
use fedkin_settings::choice;
use std::sync::Arc;

choice! {
    /// What a record is.
    #[derive(Default)]
    pub enum Records {
        /// One number per node.
        #[default]
        Signals = "signals",
        /// One squared difference per pair of nodes.
        Distances = "distances",
    }
}

/// The graph every client fits.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Smooth {
    /// Weight of the logarithms of the degrees.
    pub alpha: f64,
    /// Weight of the squared weights: more of it gives more and weaker edges.
    pub beta: f64,
    /// What a record is.
    pub records: Records,
}

impl Smooth {
    /// alpha where the config does not say: with beta alone to choose, it is a matter of scale.
    pub const ALPHA: f64 = 2.0;
    /// beta where the config does not say.
    pub const BETA: f64 = 0.5;
}

impl From<&Graph> for Smooth {
    fn from(keys: &Graph) -> Self {
        Self { alpha: keys.alpha, beta: keys.beta, records: keys.records }
    }
}

impl Smooth {
    /// The number of nodes for this many columns. `None` where no graph has them.
    pub fn nodes(&self, columns: usize) -> Option<usize> {
        match self.records {
            Records::Signals => (columns >= 2).then_some(columns),
            Records::Distances => nodes_of(columns),
        }
    }

    /// The number of weights for this many columns; 0 where no graph has them.
    pub fn dimension(&self, columns: usize) -> usize {
        self.nodes(columns).map_or(0, pairs_of)
    }

    /// g(w), infinite where a node has no edge.
    pub fn value(&self, zbar: &[f64], w: &[f64], degree: &mut Vec<f64>) -> f64 {
        let Some(nodes) = nodes_of(w.len()) else { return f64::NAN };
        degree.resize(nodes, 0.0);
        let (product, square) = pairs::weigh(zbar, w, degree);
        let mut logs = 0.0;
        for &degree in degree.iter() {
            if degree <= 0.0 {
                return f64::INFINITY;
            }
            logs += ln(degree);
        }
        2.0 * product - self.alpha * logs + 2.0 * self.beta * square
    }
}

/// A client's records as a graph learner sees them.
#[derive(Debug, Clone)]
pub struct Own {
    /// Mean squared difference of every pair.
    pub zbar: Arc<Vec<f64>>,
    /// Number of nodes.
    pub nodes: usize,
}

impl Own {
    /// Refuses what no graph can be learnt from.
    pub fn new(zbar: Vec<f64>) -> Result<Self, Unsolved> {
        let Some(nodes) = nodes_of(zbar.len()) else {
            return Err(Unsolved("a graph needs at least 2 nodes"));
        };
        if zbar.iter().all(|z| *z == 0.0) {
            return Err(Unsolved("its signals are the same at every node, so every graph fits them alike"));
        }
        Ok(Self { zbar: Arc::new(zbar), nodes })
    }
}

#[cfg(test)]
mod tests;
