//! Experiments: a config becomes runs, metrics, models, figures and a report.
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used))]

pub mod artifacts;
pub mod audit;
mod axis;
mod by_client;
mod claims;
mod compare;
pub mod config;
pub mod deploy;
mod error;
pub mod figures;
mod forecast;
pub mod kin;
mod learners;
pub mod learning;
pub mod ledger;
pub mod library;
mod pieces;
mod plan;
pub mod predict;
mod registry;
mod repeat;
pub mod report;
mod run;
mod running;
mod scorer;
mod spending;
mod spread;
mod statistics;
mod stopping;
mod theory;
pub mod topologies;
mod tuning;
mod warning;

pub use claims::ClaimResult;
pub use compare::{Comparison, CurveResult, Prepared};
pub use error::Error;
pub use forecast::{ClientForecast, Forecast};
pub use learners::Brought;
pub use plan::{Plan, Stage};
pub use registry::Registry;
pub use repeat::{Control, Outcome, Spent};
pub use run::{
    Claim, Claimed, Finished, LedgerSummary, PrivacySummary, RunDirectory, SampledReleases, claim,
    final_values, run,
};
pub use running::{Running, Stepped};
pub use scorer::{MetricRow, MetricTable, Need, OwnMetric, Scorer, Shown};
pub use spending::{ASSUMED, REFUTED};
pub use spread::Spread;
pub use statistics::{Estimate, estimate, paired};
pub use theory::Theory;
pub use tuning::{Tried, Tuning};
pub use warning::Warning;
