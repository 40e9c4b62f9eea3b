//! Drives the machines of `fedkin-method`: in one process on all cores, or on many machines.
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used))]

#[cfg(feature = "nats")]
pub mod nats;
pub mod node;
pub mod seal;
mod spill;
pub mod store;
mod threads;
pub mod transport;

pub use spill::file_spill;
pub use threads::Threads;
