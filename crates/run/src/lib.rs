//! One run: from a config to a run directory.
//!
//! - [`Plan`] is a config that was checked against the [`Registry`]: data, learners, method, privacy.
//! - [`Running`] is a repeat of it, step by step; whoever drives it decides when to stop. [`run_repeat`] goes to the end.
//! - [`run()`] runs all repeats into a [`RunDirectory`], going on from what is there; what it [`Draw`]s is the caller's.
//! - [`artifacts`] are the files of a run directory, [`topologies`] files of graphs, [`ledger`] what clients let out over
//!   all runs, [`predict`] the use of its models, [`kin`] clusters and graphs of clients that a run finds or is given.
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used))]

pub mod artifacts;
mod control;
mod directory;
mod discovery;
mod error;
mod forecast;
pub mod kin;
mod learners;
mod learnt;
pub mod ledger;
mod outcome;
mod pieces;
mod plan;
pub mod predict;
mod registry;
mod repeat;
mod run;
mod running;
pub mod spending;
mod stopping;
mod summary;
pub mod topologies;
mod warning;

pub use artifacts::ledger::SampledReleases;
pub use control::Control;
pub use directory::RunDirectory;
pub use discovery::Discovery;
pub use error::Error;
pub use forecast::{ClientForecast, Forecast};
pub use outcome::{Outcome, Spent, worth};
pub use plan::{Plan, Stage};
pub use registry::{Brought, Registry};
pub use repeat::{Resume, measured, run_repeat};
pub use run::{Claim, Claimed, Draw, Ended, checkpoint_interval, claim, run};
pub use running::{Running, Stepped};
pub use spending::{ASSUMED, REFUTED};
pub use stopping::VALIDATION;
pub use summary::{Finished, LedgerSummary, PrivacySummary, final_values};
pub use warning::Warning;
