//! Drives the machines of `fedkin-core`: in one process on all cores, or on many machines.
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used))]

pub mod nats;
pub mod node;
mod shelf;
pub mod store;
mod threads;

pub use shelf::file_shelf;
pub use threads::Threads;
