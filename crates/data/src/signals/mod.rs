//! Signals to learn graphs from: a record is one value per node, and the columns are the nodes.
//!
//! A graph over d nodes is a vector of p = d (d - 1) / 2 weights, one per pair, row by row of the upper triangle:
//! (0, 1), (0, 2), ..., (0, d - 1), (1, 2), ... All clients have the same nodes.

mod abide;
mod coil20;
mod distances;
mod files;
mod one_d;
mod smooth;
mod source;
mod students;
mod synthetic;
mod world;

pub use abide::{Abide, Region};
pub use coil20::Coil20;
pub use distances::{distances_world, holds_distances, pair_names, read_distances};
pub use files::{read_signals, read_signals_by_client, read_signals_of};
pub use smooth::SmoothSignals;
pub use source::OwnSignals;
pub use students::Students;
pub use synthetic::{Base, GraphSignals};
pub use world::signals_world;

use crate::world::roster::numbered;
pub(crate) use fedkin_graph::pairs::all as pairs;

/// The signals of one client as a file holds them. All values are finite.
#[derive(Debug, Clone, PartialEq)]
pub struct Signals {
    /// The names of the nodes, in the order of the columns.
    pub nodes: Vec<String>,
    /// All values, record by record.
    pub rows: Vec<f64>,
}

impl Signals {
    /// Number of records.
    pub fn records(&self) -> usize {
        self.rows.len() / self.nodes.len().max(1)
    }

    /// The same records with these columns, in this order.
    fn columns(&self, columns: &[usize]) -> Vec<f64> {
        let pick = |row| columns.iter().map(move |&column| self.rows[row * self.nodes.len() + column]);
        (0..self.records()).flat_map(pick).collect()
    }
}

/// What is done to the signals of every client on the way into a world.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SignalsOptions {
    /// Whether each client's nodes are brought to mean 0 and deviation 1, by its own records alone.
    pub standardise: bool,
    /// How many records of each client are kept, from the first on.
    pub limit: Option<usize>,
}

/// `node-00`, `node-01`, ...: the names of nodes that nobody named.
pub fn node_names(count: usize) -> Vec<String> {
    numbered("node", count, 2)
}

/// Some of the names, and how many more.
fn some<'a>(names: impl Iterator<Item = &'a str>) -> String {
    const SHOWN: usize = 6;
    let names: Vec<&str> = names.collect();
    let text = names.iter().take(SHOWN).copied().collect::<Vec<_>>().join(", ");
    if names.len() > SHOWN { format!("{text} and {} more", names.len() - SHOWN) } else { text }
}
