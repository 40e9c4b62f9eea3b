//! Kin: clusters and graphs of clients that one run finds and another may use.
//!
//! - [`Given`] is what `[kin]` of a config brings into a run: clusters from a file, a graph of clients, or the wish to
//!   find clusters on the way.
//! - `score` compares what was found with what is known.
//! - `output` writes it where `[kin]` of another run can read it.

mod input;
mod output;
mod score;

pub use input::{Given, numbered_alike};
pub(crate) use output::{Names, settled, write};
pub use score::{Scores, known};

/// The file of clusters in a run directory.
pub const CLUSTERS: &str = "clusters.csv";
/// The graph of kin in the folder `graphs/` of a run directory.
pub const GRAPH: &str = "kin.graphml";
/// The same as a list of edges.
pub const EDGES: &str = "kin.csv";
