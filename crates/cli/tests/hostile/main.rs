//! Nodes among hostile ones, on a real broker: bad uploads, junk, replays, two tongues, silence, and full disks.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stderr)]

mod deadline;
mod disk;
mod junk;
mod rogue;
mod rollback;
mod site;
#[path = "../../../../tests/skipped.rs"]
mod skipped;
mod tls;
mod uploads;
