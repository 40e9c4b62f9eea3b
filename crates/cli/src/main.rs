//! The `fedkin` command: personal models for the members of a federation, learnt together over a graph.
//!
//! Every command reads its arguments, calls the library and shows what came back; there is no method, no file
//! format and no arithmetic here. Exit codes are listed in `fedkin --help`.
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used))]

mod about;
mod args;
mod audit;
mod comparison;
mod data;
mod failure;
mod graph;
mod input;
mod ledger;
mod network;
mod new;
mod number;
mod output;
mod privacy;
mod progress;
mod provision;
mod results;
mod run;

use args::{Args, Command, ConfigCommand};
use clap::Parser;
use failure::Failure;
use std::process::ExitCode;

fn main() -> ExitCode {
    if lacks_avx2() {
        let text = "this build needs a processor with AVX2: build again with RUSTFLAGS=\"\" for this one";
        let failure = Failure::Usage(text.into());
        output::complain(&failure);
        return ExitCode::from(failure.exit_code());
    }
    // A panic is a defect, and it must not look like a usage error to a script.
    let result = std::panic::catch_unwind(|| dispatch(Args::parse()));
    match result {
        Ok(Ok(())) => ExitCode::SUCCESS,
        Ok(Err(failure)) => {
            output::complain(&failure);
            ExitCode::from(failure.exit_code())
        }
        Err(_) => ExitCode::from(failure::UNEXPECTED),
    }
}

/// Builds for x86-64 use AVX2 (docs/decisions/0009). The standard detection macro is true by definition in
/// such a build, so the processor's own list is read where the system shows it.
fn lacks_avx2() -> bool {
    cfg!(all(target_arch = "x86_64", target_feature = "avx2"))
        && std::fs::read_to_string("/proc/cpuinfo")
            .is_ok_and(|text| text.contains("flags") && !text.contains(" avx2"))
}

fn dispatch(args: Args) -> Result<(), Failure> {
    match args.command {
        Command::Demo(args) => comparison::demo(&args),
        Command::New(args) => new::new(&args),
        Command::Run(args) => run::run(&args),
        Command::Reproduce(args) => comparison::reproduce(&args),
        Command::Report(args) => results::report(&args),
        Command::Predict(args) => results::predict(&args),
        Command::Audit(args) => audit::audit(&args),
        Command::Provision(args) => provision::provision(&args),
        Command::Server(args) => network::server(&args),
        Command::Client(args) => network::client(&args),
        Command::Status(args) => network::status(&args),
        Command::Privacy(command) => privacy::privacy(&command),
        Command::Ledger(args) => ledger::ledger(&args),
        Command::Graph(command) => graph::graph(&command),
        Command::Algorithms(args) => about::algorithms(&args),
        Command::Data(command) => data::data(&command),
        Command::Config(ConfigCommand::Check(args)) => about::check(&args),
        Command::Config(ConfigCommand::Reference) => about::reference(),
        Command::Completions(args) => about::completions(&args),
    }
}
