//! The machines that drive a method. They say what is to be done and never do it: no socket, no file,
//! no clock, no thread.
//!
//! - [`Server`] and [`Client`]: one step as typed calls; [`Steps`] is the loop over them in one process.
//! - [`ServerNode`] and [`ClientNode`]: the same steps as messages in and effects out, for networks.
//! - [`AnyMethod`]: a method whose type is known only at run time, and the machines it makes: [`Live`] in one process,
//!   [`ServerMachine`] and [`ClientMachines`] behind messages, [`audit::Scene`] and [`Replay`] to look at it.

mod any;
pub mod audit;
mod client;
mod client_node;
mod hello;
mod live;
mod local;
mod machine;
mod messages;
mod payload;
mod pool;
mod replay;
mod scores;
mod server;
mod server_hello;
mod server_node;
mod server_record;
mod server_steps;
mod server_stop;
mod steps;
mod stop;

pub use any::{AnyMethod, Asked};
pub use client::{Client, Scratch};
pub use client_node::ClientNode;
pub use hello::{Hello, Misfit, short};
pub use live::{Live, Models, Progress, Results, means};
pub use local::{Opening, RunFault, Simulation};
pub use machine::{Blueprint, ClientMachines, Joining, Outcome, ServerMachine, Standing};
pub use messages::{Effect, Envelope, Message, Note, PROTOCOL, Peer, Record, Unopened, open, seal};
pub use payload::Payload;
pub use pool::{Job, Pool, Serial};
pub use replay::Replay;
pub use scores::{Judge, Summary};
pub use server::{CHUNK, Chunk, Server};
pub use server_node::{Backlog, Known, Mode, ServerNode};
pub use server_record::{Decided, Lost, decided};
pub use steps::{ClosedStep, Steps};
pub use stop::{Cause, Stop, Stopped};

use crate::algorithm::{Algorithm, Run};
use std::sync::Arc;

/// What all nodes of a run share: the method, what the run fixes, and the digest of both with the roster.
pub struct Setting<A: Algorithm> {
    /// The method.
    pub algorithm: Arc<A>,
    /// What the run fixes.
    pub run: Run,
    /// The digest that all nodes must agree on.
    pub fingerprint: [u8; 32],
}
