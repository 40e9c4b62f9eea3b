//! The methods, and the machines that drive them: no I/O, no clock, no async, no global random numbers.
//!
//! - [`Algorithm`] is the trait every method implements: a few pure steps around a seat.
//! - [`methods`] has one file for each method, and [`methods::native`] is the table of those that come with Fedkin.
//! - [`registry`]: what a config may name (methods, learners, denoisers); a program may add rows of its own.
//! - [`Federation`] says who takes part, [`Families`] what the clients fit.
//! - [`round`]: the machines that drive a method, in one process or by messages.
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::disallowed_methods))]

mod algorithm;
mod families;
mod federation;
pub mod methods;
pub mod registry;
pub mod robust;
pub mod round;

pub use algorithm::*;
pub use families::{DEFAULT, Families};
pub use federation::{Arrange, Entry, Federation, FederationError, Member};
pub use methods::*;
pub use registry::{Baseline, Colours, Context, EdgeMeaning, Method, Registry, Targets, Typed};
pub use robust::{Aggregation, Aggregator, Liars, Lie, Robust};
