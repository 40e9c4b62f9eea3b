//! The maths and the state machines of Fedkin: no I/O, no clock, no async, no global random numbers.
//!
//! - [`buffers`]: memory of a thread, lent to one client after the other.
//! - [`federation`]: who takes part; [`graph`]: the graph of servers.
//! - [`denoise`]: clients' models smoothed over a graph of clients.
//! - [`eigen`]: the spectrum of a symmetric matrix.
//! - [`hypothesis`]: trees, nearest neighbours and forests, fitted to weighted records.
//! - [`learner`]: regularisers, and proximal steps from values and gradients.
//! - [`model`]: objective, gradient, proximal step, prediction.
//! - [`table`]: rows by name, of which registries are made.
//! - [`mod@settings`]: tables of parameters as structs; [`params`]: the tables.
//! - [`privacy`]: what may leave a client, at which price, written down where.
//! - [`algorithm`]: the trait every method implements, and the registry of methods.
//! - [`fingerprint`]: a digest of how this machine computes.
//! - [`round`]: the machines that drive a method, in one process or by messages.
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::disallowed_methods))]

pub mod algorithm;
pub mod buffers;
pub mod codec;
pub mod dataset;
pub mod denoise;
pub mod eigen;
pub mod federation;
pub mod fingerprint;
pub mod graph;
pub mod hypothesis;
pub mod learner;
pub mod model;
pub mod numeric;
pub mod params;
pub mod privacy;
pub mod registry;
pub mod rng;
pub mod round;
pub mod settings;
pub mod signals;
pub mod table;

pub use dataset::{Dataset, DatasetError};
pub use federation::{Arrange, Entry, Federation, FederationError, Member};
pub use registry::Registry;
