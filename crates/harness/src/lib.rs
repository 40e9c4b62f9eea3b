//! What a method has to stand before it is trusted: conformance, faults by the thousand, deliberate mistakes.
//!
//! Everything works on a table of methods, native or of a program's own, through the erased machines of
//! [`fedkin_core::round`]. For tests only: no product build depends on this crate, which turns on the sabotage switches
//! of the core.
//!
//! ```
//! use fedkin_core::algorithm::registry;
//! use fedkin_harness::{Schedules, conformance, faults};
//! use std::sync::Arc;
//!
//! let methods = Arc::new(registry::native());
//! conformance(&methods, "fedavg", &[]).unwrap();
//! faults(&methods, &Schedules { seeds: 0..30, deadline: false }).unwrap();
//! ```
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::disallowed_methods, clippy::missing_panics_doc)]

mod faults;
pub mod worlds;

pub use faults::{
    DATA, Disk, Flaw, MISTAKES, Mistake, RUN, Rates, Scenario, Schedules, Stats, Unfaulted, conformance,
    faults, play,
};
