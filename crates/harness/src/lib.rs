//! What methods and learners have to stand before they are trusted: conformance, faults by the thousand, deliberate
//! mistakes; gradients against differences.
//!
//! Everything works on a table of methods, native or of a program's own, through the erased machines of
//! [`fedkin_method::round`]. For tests only: no product build depends on this crate, which turns on the sabotage switches
//! of the core.
//!
//! ```
//! use fedkin_method::registry;
//! use fedkin_learner::Linear;
//! use fedkin_learner::model::{Loss, Model};
//! use fedkin_harness::{Schedules, conformance, faults, learner_suite};
//! use std::sync::Arc;
//!
//! let methods = Arc::new(registry::native());
//! conformance(&methods, "fedavg", &[]).unwrap();
//! faults(&methods, &Schedules { seeds: 0..30, deadline: false, liar: None }).unwrap();
//!
//! let model = Model { loss: Loss::Squared, regularisation: 0.1, bias: false, feature_norm: None };
//! learner_suite(&Linear::new(model), 4, true).unwrap();
//! ```
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::disallowed_methods, clippy::missing_panics_doc)]

mod conformance;
mod faults;
mod learners;
mod misbehaving;
pub mod small;
pub mod worlds;

pub use conformance::{Case, Ending, cases, conformance};
pub use faults::{
    DATA, Disk, Flaw, Liar, MISTAKES, Mistake, RUN, Rates, Scenario, Schedules, Stats, Unfaulted, faults,
    play,
};
pub use learners::{learner_suite, records_for};
pub use misbehaving::Misbehaviour;
