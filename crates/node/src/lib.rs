//! Nodes as processes: `fedkin-node server` and `fedkin-node client`, also as `fedkin server` and `fedkin client`.
//!
//! This is what runs on the machines of servers and client hosts: it reads a node's config, takes part in one run and
//! leaves its models. It draws nothing and compares nothing, so neither renderer nor fonts are in it. A program with
//! methods or learners of its own calls [`main`] with its own registry.
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used))]

mod run;

pub use run::{Kind, LAUNCHED, run};

use clap::{Args, Parser, Subcommand};
use fedkin_run::{Error, Registry};
use std::fmt;
use std::panic::AssertUnwindSafe;
use std::path::PathBuf;
use std::process::ExitCode;

/// Why a node did not end well.
#[derive(Debug)]
pub enum Failure {
    /// The library said no.
    Library(Error),
    /// Something the operator can put right.
    Usage(String),
    /// A defect.
    Unexpected(String),
}

impl Failure {
    /// What the process ends with: 1 for a defect, 2 for what the operator can put right, 4 for a run that cannot go on.
    pub fn exit_code(&self) -> u8 {
        match self {
            Failure::Library(error) => error.exit_code(),
            Failure::Usage(_) => 2,
            Failure::Unexpected(_) => 1,
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Library(error) => write!(f, "{error}"),
            Failure::Usage(text) => write!(f, "{text}"),
            Failure::Unexpected(text) => write!(f, "{text}; this is a defect of Fedkin, please report it"),
        }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Failure::Library(error)
    }
}

/// One node of a Fedkin run: a server of the graph, or a host of clients.
///
/// Exit codes: 0 its part of the run is over, or it was stopped and goes on from its disk when started again; 1 a defect;
/// 2 something to put right; 4 the run cannot go on.
#[derive(Debug, Parser)]
#[command(name = "fedkin-node", version, disable_help_subcommand = true)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run the servers of these configs
    Server(Files),
    /// Host the clients of these configs
    Client(Files),
}

#[derive(Debug, Args)]
struct Files {
    /// The node's config, as `fedkin provision` writes it; may be repeated
    #[arg(long, value_name = "FILE", required = true)]
    config: Vec<PathBuf>,
}

/// The program, for what this registry holds.
pub fn main(registry: &Registry) -> ExitCode {
    let ended = if lacks_avx2() {
        Err(Failure::Usage(NEEDS_AVX2.into()))
    } else {
        let work = || match Arguments::parse().command {
            Command::Server(files) => run(registry, &files.config, Kind::Server, "fedkin-node"),
            Command::Client(files) => run(registry, &files.config, Kind::Client, "fedkin-node"),
        };
        // A panic is a defect, and it must not look like a usage error to a script.
        match std::panic::catch_unwind(AssertUnwindSafe(work)) {
            Ok(ended) => ended,
            Err(_) => return ExitCode::from(1),
        }
    };
    match ended {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            complain(&failure);
            ExitCode::from(failure.exit_code())
        }
    }
}

#[allow(clippy::print_stderr)] // The last word of a program.
fn complain(failure: &Failure) {
    eprintln!("error: {failure}");
}

/// What to say where [`lacks_avx2`] is true.
pub const NEEDS_AVX2: &str =
    "this build needs a processor with AVX2: build again with RUSTFLAGS=\"\" for this one";

/// Builds for x86-64 use AVX2 (docs/decisions/0009). The standard detection macro is true by definition in
/// such a build, so the processor's own list is read where the system shows it.
pub fn lacks_avx2() -> bool {
    cfg!(all(target_arch = "x86_64", target_feature = "avx2"))
        && std::fs::read_to_string("/proc/cpuinfo")
            .is_ok_and(|text| text.contains("flags") && !text.contains(" avx2"))
}
