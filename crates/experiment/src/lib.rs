//! Experiments: runs side by side, with claims, figures and a report; privacy under audit; graphs from files.
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used))]

pub mod attack;
pub mod audit;
mod axis;
mod by_client;
mod claims;
mod compare;
pub mod figures;
pub mod learning;
pub mod library;
mod pictures;
mod theory;
mod tuning;

pub use claims::ClaimResult;
pub use compare::{Comparison, CurveResult, Prepared};
pub use theory::Theory;
pub use tuning::{Tried, Tuning};

use fedkin_run::{Control, Ended, Error, Finished, Plan};
use std::path::Path;

/// Runs a plan into a directory with its figures and its report, going on from what is there. A complete run is not run
/// again.
pub fn run(plan: &Plan, out: &Path, base: &Path, control: &Control<'_>) -> Result<Finished, Error> {
    fedkin_run::run(plan, out, base, control, &draw)
}

/// Draws the figures and the report of a run that has ended.
pub fn draw(ended: &Ended<'_>) -> Result<(), Error> {
    let report = figures::of_run(ended.plan, ended.finished, ended.metrics, ended.first, ended.world);
    figures::write(ended.path, &report).map(|_| ())
}
