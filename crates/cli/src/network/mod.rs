//! Runs on many machines: nodes, their status, and a whole run of child processes on this one.

mod launch;
mod status;
mod supervise;

pub(crate) use launch::launch;
pub(crate) use status::status;

use crate::args;
use crate::failure::Failure;
use fedkin::rooms::run::Registry;
use fedkin_node::Kind;

impl From<fedkin_node::Failure> for Failure {
    fn from(failure: fedkin_node::Failure) -> Self {
        match failure {
            fedkin_node::Failure::Library(error) => Failure::Library(error),
            fedkin_node::Failure::Usage(text) => Failure::Usage(text),
            fedkin_node::Failure::Unexpected(text) => Failure::Unexpected(text),
        }
    }
}

/// Runs servers.
pub(crate) fn server(registry: &Registry, args: &args::Node) -> Result<(), Failure> {
    Ok(fedkin_node::run(registry, &args.config, Kind::Server, "fedkin")?)
}

/// Hosts clients.
pub(crate) fn client(registry: &Registry, args: &args::Node) -> Result<(), Failure> {
    Ok(fedkin_node::run(registry, &args.config, Kind::Client, "fedkin")?)
}

/// A runtime for one command.
fn runtime() -> Result<tokio::runtime::Runtime, Failure> {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .map_err(|error| Failure::Unexpected(format!("cannot start threads: {error}")))
}
