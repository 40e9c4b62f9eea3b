//! What a run on many machines is made of.
//!
//! - [`Roster`]: who takes part, known to all nodes; [`run_fingerprint`] is what they compare.
//! - [`NodeConfig`]: one node; [`Deployment`] is what it opens: plan, roster, federation, its own records.
//! - [`Deployment::server_node`] and [`Deployment::client_node`]: a node that is ready to run; [`Left`] is what it leaves.
//! - [`Nodes`]: the names under which servers and hosts talk to each other.

mod deployment;
mod fingerprint;
mod leaving;
mod node;
mod nodes;
mod records;
mod roster;
mod roster_csv;
mod start;
mod stopping;
#[cfg(test)]
mod tests;

pub use deployment::Deployment;
pub use fingerprint::{config_id, run_fingerprint, run_id};
pub use leaving::{Collected, Left, LeftClient};
pub use node::{Broker, LogLevel, NodeConfig, NodeKind, Noise, Observe, Tls};
pub use nodes::Nodes;
pub use records::Hosted;
pub use roster::{Client, Hosts, Roster};
pub use start::ReadyClients;
pub use stopping::{LeftCause, LeftStop};
