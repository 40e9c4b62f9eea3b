//! What nodes publish about themselves for `fedkin status`.

use serde::{Deserialize, Serialize};

/// Clients listed by name in a status; beyond that, counts alone.
pub const LISTED: usize = 300;

/// A server as it sees itself and its clients.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ServerStatus {
    /// Its name.
    pub server: String,
    /// The step it is in.
    pub step: u32,
    /// Rounds of the run.
    pub rounds: u32,
    /// `asking`, `sharing`, `delivering` or `done`.
    pub stage: String,
    /// Why the run cannot go on, as far as this server knows; nothing where it can.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop: Option<String>,
    /// Seconds since the stage began.
    pub seconds_in_stage: f64,
    /// How many clients it waits for.
    pub waits_for: usize,
    /// The neighbours it waits for.
    pub waits_for_servers: Vec<String>,
    /// Number of its clients.
    pub clients: usize,
    /// How many have joined.
    pub joined: usize,
    /// Largest amount a client says it has spent, in units of 1e-12 zCDP.
    pub most_spent: u64,
    /// Its clients, the first [`LISTED`].
    pub listed: Vec<ClientStatus>,
}

/// A client as its server sees it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ClientStatus {
    /// Its name.
    pub client: String,
    /// Seconds since it was heard; nothing where it never was.
    pub silent_seconds: Option<f64>,
    /// The last step it has answered.
    pub step: u32,
    /// What it says it has spent, in units of 1e-12 zCDP.
    pub spent: u64,
    /// Whether its server waits for it.
    pub awaited: bool,
}

/// All servers of one process.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct NodeStatus {
    /// The process.
    pub node: String,
    /// Its servers.
    pub servers: Vec<ServerStatus>,
}
