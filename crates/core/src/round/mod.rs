//! The machines that drive a method. They say what is to be done and never do it: no socket, no file,
//! no clock, no thread.
//!
//! - [`Server`] and [`Client`]: one step as typed calls; the loop of one process drives them directly.
//! - [`ServerNode`] and [`ClientNode`]: the same steps as messages in and effects out, for networks.

mod cells;
mod client;
mod client_node;
mod hello;
mod messages;
#[cfg(not(feature = "mutants"))]
mod mutants;
#[cfg(feature = "mutants")]
pub mod mutants;
mod seats;
mod server;
mod server_hello;
mod server_node;
mod server_record;
mod server_steps;

pub use cells::Cells;
pub use client::{Ask, Client, Scratch, Shelf};
pub use client_node::{ClientNode, sent_digest};
pub use hello::{Hello, Misfit, short};
pub use messages::{Effect, Envelope, Message, Note, PROTOCOL, Peer, Record, Unopened, open, seal};
pub use seats::Seats;
pub use server::{CHUNK, Chunk, Closed, Counts, Server, Verdict};
pub use server_node::{Backlog, Known, Mode, ServerNode};
pub use server_record::{Decided, Lost, decided};

use crate::algorithm::{Algorithm, Run};

/// What all nodes of a run share: the method, what the run fixes, and the digest of both with the roster.
pub struct Setting<A: Algorithm> {
    /// The method.
    pub algorithm: A,
    /// What the run fixes.
    pub run: Run,
    /// The digest that all nodes must agree on.
    pub fingerprint: [u8; 32],
}

/// Opens gates. Only this module makes one.
pub struct Key(());

impl Key {
    fn new() -> Self {
        Self(())
    }
}
