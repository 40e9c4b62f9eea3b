//! The `fedkin` command: personal models for the members of a federation, learnt together over a graph.
//!
//! A program with methods of its own calls [`main`] with its own registry and has every command for them.
//!
//! Every command reads its arguments, calls the library and shows what came back; there is no method, no file
//! format and no arithmetic here. Exit codes are listed in `fedkin --help`.
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used))]

mod about;
mod args;
mod attack;
mod audit;
mod comparison;
mod data;
mod failure;
mod graph;
mod input;
mod ledger;
mod network;
mod new;
mod output;
mod privacy;
mod progress;
mod provision;
mod results;
mod run;

use args::{Args, Command, ConfigCommand};
use clap::{CommandFactory, FromArgMatches};
use failure::Failure;
use fedkin::rooms::run::Registry;
use fedkin::rooms::settings::TableError;
use std::panic::AssertUnwindSafe;
use std::process::ExitCode;

/// The command line, for what this registry holds.
pub fn main(registry: &Registry) -> ExitCode {
    if fedkin_node::lacks_avx2() {
        let failure = Failure::Usage(fedkin_node::NEEDS_AVX2.into());
        output::complain(&failure);
        return ExitCode::from(failure.exit_code());
    }
    // A panic is a defect, and it must not look like a usage error to a script.
    let result = std::panic::catch_unwind(AssertUnwindSafe(|| dispatch(registry, parse(registry))));
    match result {
        Ok(Ok(())) => ExitCode::SUCCESS,
        Ok(Err(failure)) => {
            output::complain(&failure);
            ExitCode::from(failure.exit_code())
        }
        Err(_) => ExitCode::from(failure::UNEXPECTED),
    }
}

/// The command line with rows of a program's own: `add` puts them into the registry. Where that fails, as with a name that
/// is there already, the program says so and ends with exit code 2.
pub fn main_with(add: impl FnOnce(&mut Registry) -> Result<(), TableError>) -> ExitCode {
    let mut registry = Registry::native();
    match add(&mut registry) {
        Ok(()) => main(&registry),
        Err(error) => {
            let failure = Failure::Usage(error.to_string());
            output::complain(&failure);
            ExitCode::from(failure.exit_code())
        }
    }
}

/// The arguments. Help that lists rows lists those of this registry.
fn parse(registry: &Registry) -> Args {
    let filters = graph::filter::about(&registry.core().denoisers);
    let mut command = Args::command()
        .mut_subcommand("graph", |graph| graph.mut_subcommand("filter", |filter| filter.after_help(filters)));
    let parsed = Args::from_arg_matches(&command.get_matches_mut());
    parsed.unwrap_or_else(|error| error.format(&mut command).exit())
}

fn dispatch(registry: &Registry, args: Args) -> Result<(), Failure> {
    match args.command {
        Command::Demo(args) => comparison::demo(registry, &args),
        Command::New(args) => new::new(&args),
        Command::Run(args) => run::run(registry, &args),
        Command::Reproduce(args) => comparison::reproduce(registry, &args),
        Command::Report(args) => results::report(&args),
        Command::Predict(args) => results::predict(registry, &args),
        Command::Attack(args) => attack::attack(registry, &args),
        Command::Audit(args) => audit::audit(registry, &args),
        Command::Provision(args) => provision::provision(registry, &args),
        Command::Server(args) => network::server(registry, &args),
        Command::Client(args) => network::client(registry, &args),
        Command::Status(args) => network::status(registry, &args),
        Command::Privacy(command) => privacy::privacy(registry, &command),
        Command::Ledger(args) => ledger::ledger(&args),
        Command::Graph(command) => graph::graph(registry, &command),
        Command::Algorithms(args) => about::algorithms(registry, &args),
        Command::Data(command) => data::data(registry, &command),
        Command::Config(ConfigCommand::Check(args)) => about::check(registry, &args),
        Command::Config(ConfigCommand::Reference) => about::reference(registry),
        Command::Completions(args) => about::completions(&args),
    }
}
