//! Kin: clusters and graphs of clients that one run finds and another may use.
//!
//! - [`Given`] is what `[kin]` of a config brings into a run: clusters from a file, a graph of clients, or the wish to
//!   find clusters on the way.
//! - `discovery` finds clusters by a run of another method first.
//! - `score` compares what was found with what is known.
//! - `output` writes it where `[kin]` of another run can read it.

mod discovery;
mod input;
mod output;
mod score;

pub(crate) use discovery::{Discovery, discover};
pub use input::Given;
pub(crate) use output::{settled, write};
pub(crate) use score::{Scores, known};

/// The file of clusters in a run directory.
pub const CLUSTERS: &str = "clusters.csv";
/// The graph of kin in the folder `graphs/` of a run directory.
pub const GRAPH: &str = "kin.graphml";
/// The same as a list of edges.
pub const EDGES: &str = "kin.csv";
