//! The program as a user meets it: arguments in; output, exit code and files out.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stderr)]

mod audit;
mod bad_config;
mod bad_data;
mod bench;
mod bits;
mod broker;
mod commands;
mod data;
mod defaults;
mod graph;
mod graph_filter;
mod graph_learn;
mod graph_run;
mod json;
mod kin;
mod learners;
#[cfg(unix)]
mod ledger;
mod persfl;
mod privacy;
mod provision;
#[cfg(unix)]
mod resume;
#[path = "../../../../tests/skipped.rs"]
mod skipped;
#[cfg(unix)]
mod streams;
