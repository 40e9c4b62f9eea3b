//! Nodes on machines of their own: they drive the machines of `fedkin_method::round` with a disk ([`store`](crate::store))
//! and a [`transport`](crate::transport). What is to be durable is durable before anything after it is sent.

mod client;
mod heads;
mod mail;
mod observe;
mod server;
mod status;
mod telemetry;

pub use client::{ClientOptions, HostedClient, host};
pub use heads::read_heads;
pub use mail::{Mail, Refused, Routes};
pub use observe::Observer;
pub use server::{ServerOptions, serve};
pub use status::{ClientStatus, LISTED, NodeStatus, ServerStatus};
pub use telemetry::{Health, Names, Telemetry};

use crate::store::StoreError;
use crate::transport::TransportError;
use std::time::{Duration, Instant};
use thiserror::Error;
use tokio::sync::watch;

/// Why a node stopped before its work was done.
#[derive(Debug, Error)]
pub enum NodeError {
    /// The disk.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The transport.
    #[error(transparent)]
    Transport(#[from] TransportError),
    /// The records on disk do not fit this run.
    #[error(
        "{what}: {why}; if this build or config was changed, go back, or start a new run in another state directory"
    )]
    Lost {
        /// Whose records.
        what: String,
        /// What is wrong.
        why: String,
    },
    /// Another node does not want to work with this one.
    #[error("{who} turned this node away: {why}")]
    Turned {
        /// Who.
        who: String,
        /// Why.
        why: String,
    },
    /// The metrics page cannot be served.
    #[error("cannot listen at {address}: {reason}")]
    Listen {
        /// Where.
        address: String,
        /// Why not.
        reason: String,
    },
}

/// How a node ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// Its part of the run is over.
    Done,
    /// It was told to stop; it goes on from its disk when started again.
    Stopped,
}

/// How long a node that has all it needs waits for the last words of others, in resend intervals.
const PATIENCE: u32 = 15;
/// Between two tries to write to a full disk.
const FULL_DISK_PAUSE: Duration = Duration::from_millis(500);

/// Tries until a commit succeeds or the node is stopped; only a full disk is worth waiting for (P15).
async fn durable(
    telemetry: &Telemetry,
    stop: &mut watch::Receiver<bool>,
    mut commit: impl FnMut() -> Result<(), StoreError>,
) -> Result<bool, NodeError> {
    let mut waited = false;
    loop {
        let begun = Instant::now();
        match tokio::task::block_in_place(&mut commit) {
            Ok(()) => {
                telemetry.committed(begun.elapsed());
                // A compaction may have found no space as well; now there is some.
                telemetry.disk_trouble(None);
                if waited {
                    tracing::info!("there is space on the disk again");
                }
                return Ok(true);
            }
            Err(error) if error.disk_full() => {
                waited = true;
                telemetry.disk_full(&error.to_string());
                tokio::select! {
                    () = tokio::time::sleep(FULL_DISK_PAUSE) => {}
                    () = stopped(stop) => return Ok(false),
                }
            }
            Err(error) => return Err(error.into()),
        }
    }
}

/// Returns once the node is told to stop.
async fn stopped(stop: &mut watch::Receiver<bool>) {
    // An error means that whoever could stop the node is gone: it is not wanted any more either.
    let _ = stop.wait_for(|stop| *stop).await;
}
