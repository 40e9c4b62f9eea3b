//! Runs on many machines: nodes, their status, and a whole run of child processes on this one.

mod launch;
mod node;
mod status;
mod supervise;

pub(crate) use launch::launch;
pub(crate) use node::{client, server};
pub(crate) use status::status;

use crate::failure::Failure;
use fedkin::runtime::node::NodeError;

impl From<NodeError> for Failure {
    fn from(error: NodeError) -> Self {
        Failure::Usage(error.to_string())
    }
}

/// A runtime for one command.
fn runtime() -> Result<tokio::runtime::Runtime, Failure> {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .map_err(|error| Failure::Unexpected(format!("cannot start threads: {error}")))
}
