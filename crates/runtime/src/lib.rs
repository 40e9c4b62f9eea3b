//! Drives the machines of `fedkin-core`: in one process on all cores, or on many machines.
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used))]

mod live;
mod local;
pub mod nats;
pub mod node;
mod scores;
mod shelf;
pub mod store;

pub use live::{Live, Models, Progress, start};
pub use local::{Fault, Opening, Simulation};
pub use scores::{Judge, Summary};
