//! What a run on many machines is made of.
//!
//! - [`Roster`]: who takes part, known to all nodes; [`run_fingerprint`] is what they compare.
//! - [`NodeConfig`]: one node; [`Deployment`] is what it opens: plan, roster, federation, its own records.
//! - [`Deployment::server_node`] and [`Deployment::client_node`]: a node that is ready to run; [`NodeOutcome`] is what it leaves.
//! - [`Deployment::take_part`] runs one node to its results; [`Deployment::over`] all of them in this process.
//! - [`Nodes`]: the names under which servers and hosts talk to each other.
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used))]

mod deployment;
mod fingerprint;
mod link;
mod node;
mod nodes;
mod outcome;
mod records;
mod roster;
mod roster_csv;
mod start;
mod stopping;
mod taking_part;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod turned_tests;

pub use deployment::Deployment;
pub use fingerprint::{config_id, run_fingerprint, run_id};
pub use link::Link;
pub use node::{BrokerAddress, LogLevel, NodeConfig, NodeKind, Noise, Observe, SealFiles, Tls};
pub use nodes::Nodes;
pub use outcome::{ClientOutcome, Collected, NodeOutcome};
pub use records::HostedRecords;
pub use roster::{Client, Hosts, Roster};
pub use start::ReadyClients;
pub use stopping::{StopCause, StopOutcome};
