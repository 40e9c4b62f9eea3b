//! Numbers that are the same on every machine: kernels whose sums have a fixed order, random streams with names, and one
//! encoding for everything that is stored, sent or hashed. No I/O, no clock, no threads.
//!
//! - The kernels (dot products, sums, Cholesky, elementary functions) stand at the root of this crate.
//! - [`eigen`]: the spectrum of a symmetric matrix.
//! - [`rng`]: random streams named by purpose, step and node.
//! - [`codec`]: values as bytes, digests of them, and [`record!`].
//! - [`buffers`]: memory of a thread, lent to one client after the other.
//! - [`statistics`]: means with their standard errors.
//! - [`fingerprint`]: a digest of how this machine computes.
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::disallowed_methods))]

pub mod buffers;
pub mod codec;
pub mod eigen;
pub mod fingerprint;
mod kernels;
pub mod rng;
pub mod statistics;

pub use kernels::*;
