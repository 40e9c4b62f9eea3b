//! Graphs: who may borrow from whom, and graphs that were learnt.
//!
//! - [`Topology`]: the graph of servers, and its [`laplacian()`].
//! - [`Weighted`]: a graph as a vector of weights, one per pair of nodes; [`pairs`] says where each pair stands.
//! - [`compare`]: how near a graph comes to the truth.
//! - [`communities`]: which nodes belong together; [`partition`]: how near two divisions of the nodes are.

pub mod communities;
pub mod compare;
mod laplacian;
pub mod pairs;
pub mod partition;
mod topology;
mod weighted;

pub use laplacian::laplacian;
pub use topology::{Topology, TopologyError};
pub use weighted::{Weighted, WeightedError};
