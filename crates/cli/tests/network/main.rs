//! Runs on a real broker, as a user starts them: `fedkin run --runtime nats`, `server`, `client` and `status` as
//! processes of their own, killed, stopped, paused and misled.
//!
//! Tests are skipped, with a word, where there is no `nats-server`; `scripts/setup` installs one.
//!
//! `FEDKIN_TRIALS=30 cargo nextest run --release -p fedkin-cli --test network kill` runs 30 trials of `kill -9` instead
//! of a few; `FEDKIN_SEED=7` draws other ones.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stderr)]

#[allow(dead_code, reason = "shared with the tests of the command line")]
#[path = "../cli/bench.rs"]
mod bench;
mod conformance;
mod kills;
mod learners;
mod mismatch;
mod net;
mod operate;
#[path = "../../../../tests/skipped.rs"]
mod skipped;
