//! Graphs: who may borrow from whom.

mod laplacian;
mod topology;

pub use laplacian::laplacian;
pub use topology::{Topology, TopologyError};
