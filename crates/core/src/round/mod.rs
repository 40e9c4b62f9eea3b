//! The machines that drive a method. They say what is to be done and never do it: no socket, no file,
//! no clock, no thread.
//!
//! - [`Server`] and [`Client`]: one step as typed calls; the loop of one process drives them directly.
//! - [`ServerNode`] and [`ClientNode`]: the same steps as messages in and effects out, for networks.

mod cells;
mod client;
mod client_node;
mod messages;
mod seats;
mod server;
mod server_node;

pub use cells::Cells;
pub use client::{Ask, Client, Scratch};
pub use client_node::ClientNode;
pub use messages::{Effect, Envelope, Message, Peer};
pub use seats::Seats;
pub use server::{CHUNK, Chunk, Closed, Counts, Server, Verdict};
pub use server_node::ServerNode;

/// Opens gates. Only this module makes one.
pub struct Key(());

impl Key {
    fn new() -> Self {
        Self(())
    }
}
