//! Graphs: who may borrow from whom, and graphs that were learnt.
//!
//! - [`Topology`]: the graph of servers, and its [`laplacian()`].
//! - [`Weighted`]: a graph as a vector of weights, one per pair of nodes; [`pairs`] says where each pair stands.
//! - [`Sparse`]: a graph as lists of neighbours, for more clients than have a matrix.
//! - [`similarity`]: which clients are alike, from statistics of their data or from their models.
//! - [`compare`]: how near a graph comes to the truth.
//! - [`communities`]: which nodes belong together; [`partition`]: how near two divisions of the nodes are.
//! - [`denoise`]: models of clients smoothed over a graph of clients.
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::disallowed_methods))]

pub mod communities;
pub mod compare;
pub mod denoise;
mod laplacian;
mod nearest;
pub mod pairs;
pub mod partition;
pub mod similarity;
mod sparse;
mod topology;
mod weighted;

pub use laplacian::laplacian;
pub use sparse::{Sparse, SparseError};
pub use topology::{Topology, TopologyError};
pub use weighted::{Weighted, WeightedError};
