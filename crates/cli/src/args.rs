//! What can be asked for on the command line.

use clap::{Parser, Subcommand};
use clap_complete::Shell;
use std::path::PathBuf;

const EXIT_CODES: &str = "\
Exit codes:
  0    all went well
  1    unexpected: a defect of Fedkin itself
  2    something to put right: arguments, config, data, a full disk
  3    a privacy claim does not hold
  4    the run cannot go on: the method diverged, or nobody answers
  130  interrupted (Ctrl-C); the same command goes on from the last checkpoint

With --json a command prints one JSON object on standard output and nothing else; errors are text on
standard error. Progress is shown on a terminal only.";

const STEPS: &str = "\
First steps:
  fedkin demo                  methods compared on a small federation: a table and a report
  fedkin new my-wards          a commented config with example data to replace by your own
  fedkin run my-wards/wards.toml

";

/// The whole command line.
#[derive(Debug, Parser)]
#[command(
    name = "fedkin",
    version,
    about = "A personal model for every client, learnt together over a graph",
    after_help = format!("{STEPS}{EXIT_CODES}"),
    arg_required_else_help = true,
    max_term_width = 110
)]
pub(crate) struct Args {
    /// What to do.
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Compare methods on a small synthetic federation and write a report
    Demo(Demo),
    /// Write a commented config with example data that runs as it is
    New(New),
    /// Train one method as a config says; run it again to resume
    #[command(after_help = EXIT_CODES)]
    Run(Run),
    /// Run an experiment with all its curves: a paper's figure, or a file of your own
    #[command(after_help = EXIT_CODES)]
    Reproduce(Reproduce),
    /// Write the report of a run: one HTML file, and its figures as SVG and PNG
    Report(Report),
    /// Predict with the personal model of one client of a run
    Predict(Predict),
    /// Show what lying clients do to the others, with and without each defence
    Attack(Attack),
    /// Test a claim of privacy: run the mechanism on neighbouring data and bound epsilon from below
    #[command(after_help = EXIT_CODES)]
    Audit(Audit),
    /// Write certificates, configs and permissions for a run on many machines
    Provision(Provision),
    /// Run the servers of a config that `fedkin provision` wrote
    Server(Node),
    /// Run the clients of a config that `fedkin provision` wrote
    Client(Node),
    /// Show who is alive, how far the run is and what was spent
    Status(Status),
    /// Work out epsilon, noise or budget: for a mechanism, or for a config before it runs
    #[command(subcommand)]
    Privacy(crate::privacy::Command),
    /// Show what clients spent on their data, over all runs, and check it
    #[command(after_help = EXIT_CODES)]
    Ledger(Ledger),
    /// Learn graphs from signals; inspect graphs, compare them with a truth, find communities
    #[command(subcommand)]
    Graph(crate::graph::Command),
    /// List the methods, or the parameters of one
    Algorithms(Algorithms),
    /// List and fetch public data, look at files, and see how records are dealt to clients
    #[command(subcommand)]
    Data(crate::data::Command),
    /// Look at configs before they are run
    #[command(subcommand)]
    Config(ConfigCommand),
    /// Print a completion script for a shell
    Completions(Completions),
}

/// What `fedkin config` can do.
#[derive(Debug, Subcommand)]
pub(crate) enum ConfigCommand {
    /// Check a config and the data it names, without running anything
    Check(Check),
    /// Print the reference of all keys as Markdown
    Reference,
}

/// `fedkin demo`
#[derive(Debug, clap::Args)]
pub(crate) struct Demo {
    /// Directory of the results [default: runs/demo]
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    /// Print one JSON object and nothing else
    #[arg(long)]
    pub(crate) json: bool,
}

/// `fedkin new`
#[derive(Debug, clap::Args)]
pub(crate) struct New {
    /// A folder, or the config file to write (it ends in .toml)
    #[arg(value_name = "DIR|FILE", default_value = ".")]
    pub(crate) place: PathBuf,
    /// Start from an experiment of `fedkin reproduce --list` instead
    #[arg(long, value_name = "EXPERIMENT")]
    pub(crate) from: Option<String>,
}

/// What every command that trains understands.
#[derive(Debug, clap::Args)]
pub(crate) struct Training {
    /// Set a key of the config, such as algorithm.penalty=5; may be repeated
    #[arg(long, value_name = "KEY=VALUE")]
    pub(crate) set: Vec<String>,
    /// Directory of the results [default: runs/<run.name>]
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    /// Number of threads [default: all cores]; results do not depend on it
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=4096))]
    pub(crate) threads: Option<u32>,
    /// Print one JSON object and nothing else
    #[arg(long)]
    pub(crate) json: bool,
}

/// `fedkin run`
#[derive(Debug, clap::Args)]
pub(crate) struct Run {
    /// The config
    pub(crate) file: PathBuf,
    #[command(flatten)]
    pub(crate) training: Training,
    /// Where the servers and clients live: in this process, or in processes of their own on a NATS broker
    #[arg(long, value_enum, default_value_t = Runtime::Local)]
    pub(crate) runtime: Runtime,
    /// The broker, such as `nats://127.0.0.1:4222` [default: one is started for this run]
    #[arg(long, value_name = "URL")]
    pub(crate) url: Option<String>,
    /// Number of processes, servers and clients together [default: one per server and one for all clients]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(2..=4096))]
    pub(crate) processes: Option<u32>,
    /// Talk to a broker on another machine without encryption
    #[arg(long)]
    pub(crate) allow_plain: bool,
}

/// Where servers and clients live.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Runtime {
    /// All in this process
    Local,
    /// In processes of their own, which talk through a NATS broker
    Nats,
}

/// `fedkin server` and `fedkin client`
#[derive(Debug, clap::Args)]
pub(crate) struct Node {
    /// The node's config, as `fedkin provision` writes it; may be repeated
    #[arg(long, value_name = "FILE", required = true)]
    pub(crate) config: Vec<PathBuf>,
}

/// `fedkin status`
#[derive(Debug, clap::Args)]
pub(crate) struct Status {
    /// The config of a node that may see the others
    #[arg(long, value_name = "FILE")]
    pub(crate) config: PathBuf,
    /// Print one JSON object and nothing else
    #[arg(long)]
    pub(crate) json: bool,
}

/// `fedkin reproduce`
#[derive(Debug, clap::Args)]
pub(crate) struct Reproduce {
    /// An experiment of the list, or a config file with curves
    #[arg(value_name = "NAME|FILE", required_unless_present = "list")]
    pub(crate) experiment: Option<String>,
    /// List the experiments that Fedkin brings along
    #[arg(long, conflicts_with_all = ["experiment", "repeats", "quick", "set", "out", "threads"])]
    pub(crate) list: bool,
    /// Number of Monte Carlo repeats, instead of the experiment's own
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) repeats: Option<u32>,
    /// A first look: with what the section `quick` of the experiment sets, fewer rounds, clients or repeats, into
    /// `runs/NAME-quick`
    #[arg(long)]
    pub(crate) quick: bool,
    #[command(flatten)]
    pub(crate) training: Training,
}

/// `fedkin report`
#[derive(Debug, clap::Args)]
pub(crate) struct Report {
    /// The run directory
    pub(crate) run: PathBuf,
    /// Open the report in the browser
    #[arg(long)]
    pub(crate) open: bool,
}

/// `fedkin predict`
#[derive(Debug, clap::Args)]
pub(crate) struct Predict {
    /// The run directory
    pub(crate) run: PathBuf,
    /// Whose model
    #[arg(long, value_name = "ID")]
    pub(crate) client: String,
    /// The records to predict for, with the columns of the training data; a target is optional
    #[arg(long, value_name = "FILE")]
    pub(crate) data: PathBuf,
    /// Which of the client's models: client, served or averaged, where the method has it
    /// [default: the client's own]
    #[arg(long, value_name = "MODEL")]
    pub(crate) model: Option<String>,
    /// Print one JSON object and nothing else
    #[arg(long)]
    pub(crate) json: bool,
}

/// `fedkin attack`
#[derive(Debug, clap::Args)]
pub(crate) struct Attack {
    /// The config
    pub(crate) file: PathBuf,
    /// What liars do: sign-flip, scale, label-flip, backdoor or free-rider
    #[arg(long, value_name = "KIND", value_parser = ["sign-flip", "scale", "label-flip", "backdoor", "free-rider"])]
    pub(crate) kind: String,
    /// How many clients lie
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) liars: u32,
    /// Set a key of the config, such as algorithm.penalty=5; may be repeated
    #[arg(long, value_name = "KEY=VALUE")]
    pub(crate) set: Vec<String>,
    /// Number of threads [default: all cores]; results do not depend on it
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=4096))]
    pub(crate) threads: Option<u32>,
    /// Print one JSON object and nothing else
    #[arg(long)]
    pub(crate) json: bool,
}

/// `fedkin audit`
#[derive(Debug, clap::Args)]
pub(crate) struct Audit {
    /// The config
    #[arg(required_unless_present_any = ["fixture", "list_fixtures"], conflicts_with = "fixture")]
    pub(crate) file: Option<PathBuf>,
    /// Audit a mechanism whose verdict is known instead: a test of the audit itself
    #[arg(long, value_name = "NAME")]
    pub(crate) fixture: Option<String>,
    /// List the mechanisms whose verdict is known
    #[arg(long, conflicts_with_all = ["file", "fixture", "set"])]
    pub(crate) list_fixtures: bool,
    /// Runs on each data set: half of them choose a threshold, half of them count
    #[arg(long, value_name = "N", default_value_t = fedkin::rooms::experiment::audit::RUNS, value_parser = clap::value_parser!(u32).range(20..=10_000_000))]
    pub(crate) runs: u32,
    /// Rounds to audit, from the first [default: 20, or all where there are fewer]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) rounds: Option<u32>,
    /// Whose releases [default: the client that spends most]
    #[arg(long, value_name = "ID")]
    pub(crate) client: Option<String>,
    /// The chance that the bound holds
    #[arg(long, value_name = "SHARE", default_value_t = 0.95)]
    pub(crate) confidence: f64,
    /// Seed of the audit's own randomness [default: the config's]; data and rehearsal follow the config
    #[arg(long, value_name = "S")]
    pub(crate) seed: Option<u64>,
    /// Set a key of the config, such as algorithm.penalty=5; may be repeated
    #[arg(long, value_name = "KEY=VALUE")]
    pub(crate) set: Vec<String>,
    /// Number of threads [default: all cores]; results do not depend on it
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=4096))]
    pub(crate) threads: Option<u32>,
    /// Print one JSON object and nothing else
    #[arg(long)]
    pub(crate) json: bool,
}

/// `fedkin provision`
#[derive(Debug, clap::Args)]
pub(crate) struct Provision {
    /// The config
    pub(crate) file: PathBuf,
    /// Directory to write; what is there is completed, and keys are never written over
    #[arg(long, value_name = "DIR")]
    pub(crate) out: PathBuf,
    /// Who takes part, where the data are not at hand: a CSV file with the columns client, samples
    /// (training records) and, where there are several, server, cluster and host
    #[arg(long, value_name = "FILE")]
    pub(crate) roster: Option<PathBuf>,
    /// Where nodes find the broker
    #[arg(long, value_name = "HOST[:PORT]", default_value = "localhost")]
    pub(crate) broker: String,
    /// Split the clients over N hosts, where the roster names none [default: one host per client]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) hosts: Option<u32>,
    /// Further names of the broker for its certificate, with an address where nodes cannot resolve them
    #[arg(long, value_name = "NAME[=ADDRESS]", value_delimiter = ',')]
    pub(crate) names: Vec<String>,
    /// How long certificates are valid
    #[arg(long, value_name = "N", default_value = "365", value_parser = clap::value_parser!(u32).range(1..=36500))]
    pub(crate) days: u32,
    /// Sign all certificates again and write every node.toml again; keys stay
    #[arg(long)]
    pub(crate) force: bool,
    /// Set a key of the config, such as algorithm.penalty=5; may be repeated
    #[arg(long, value_name = "KEY=VALUE")]
    pub(crate) set: Vec<String>,
}

/// `fedkin ledger`
#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub(crate) struct Ledger {
    #[command(subcommand)]
    pub(crate) command: Option<LedgerCommand>,
    /// A run directory, the state of a client host, or the folder of `privacy.ledger`
    #[arg(value_name = "RUN|DIR", required = true)]
    pub(crate) place: Option<PathBuf>,
    /// List this client's lines
    #[arg(long, value_name = "NAME")]
    pub(crate) client: Option<String>,
    /// The delta of epsilon [default: that of the run, or 1e-5]
    #[arg(long, value_name = "D")]
    pub(crate) delta: Option<f64>,
    /// Print one JSON object and nothing else
    #[arg(long)]
    pub(crate) json: bool,
}

/// What `fedkin ledger` can do beside showing.
#[derive(Debug, Subcommand)]
pub(crate) enum LedgerCommand {
    /// Follow every hash, and compare with what servers, runs or files remember of the ledgers
    #[command(after_help = EXIT_CODES)]
    Verify(Verify),
}

/// `fedkin ledger verify`
#[derive(Debug, clap::Args)]
pub(crate) struct Verify {
    /// States of client hosts and servers, folders of `privacy.ledger`, run directories: all that belongs together
    #[arg(value_name = "RUN|DIR", required = true)]
    pub(crate) places: Vec<PathBuf>,
    /// What `fedkin ledger --json` wrote earlier; may be repeated
    #[arg(long, value_name = "FILE")]
    pub(crate) head: Vec<PathBuf>,
    /// Print one JSON object and nothing else
    #[arg(long)]
    pub(crate) json: bool,
}

/// `fedkin algorithms`
#[derive(Debug, clap::Args)]
pub(crate) struct Algorithms {
    /// Show this method with its parameters
    pub(crate) name: Option<String>,
    /// Print one JSON object and nothing else
    #[arg(long)]
    pub(crate) json: bool,
}

/// `fedkin config check`
#[derive(Debug, clap::Args)]
pub(crate) struct Check {
    /// The config
    pub(crate) file: PathBuf,
    /// Set a key of the config, such as algorithm.penalty=5; may be repeated
    #[arg(long, value_name = "KEY=VALUE")]
    pub(crate) set: Vec<String>,
}

/// `fedkin completions`
#[derive(Debug, clap::Args)]
pub(crate) struct Completions {
    /// Which shell
    pub(crate) shell: Shell,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::failure::Failure;
    use clap::CommandFactory;

    #[test]
    fn the_declarations_fit_together() {
        Args::command().debug_assert();
    }

    /// The names of a command and of those below it, as they are typed.
    fn commands(command: &clap::Command, path: &[String], all: &mut Vec<Vec<String>>) {
        for inner in command.get_subcommands() {
            let path = [path, &[inner.get_name().to_string()]].concat();
            commands(inner, &path, all);
            all.push(path);
        }
    }

    #[test]
    fn help_names_every_command_and_every_exit_code() {
        let help = Args::command().render_long_help().to_string();
        let mut all = Vec::new();
        commands(&Args::command(), &[], &mut all);
        assert!(all.len() >= 18, "{all:?}");
        for path in &all {
            let mut above = &mut Args::command();
            for name in &path[..path.len() - 1] {
                above = above.find_subcommand_mut(name).unwrap();
            }
            let name = &path[path.len() - 1];
            let listed = above.render_long_help().to_string();
            assert!(listed.contains(&format!("\n  {name} ")), "{path:?}\n{listed}");
            let words = std::iter::once("fedkin").chain(path.iter().map(String::as_str)).chain(["--help"]);
            let shown = Args::try_parse_from(words).unwrap_err();
            assert_eq!(shown.kind(), clap::error::ErrorKind::DisplayHelp, "{path:?}");
            assert!(shown.to_string().lines().next().is_some_and(|line| !line.is_empty()), "{path:?}");
        }
        let failures = [
            Failure::Closed,
            Failure::Unexpected(String::new()),
            Failure::Usage(String::new()),
            Failure::Refuted(String::new()),
            Failure::Interrupted(String::new()),
        ];
        // That of a method that diverged comes from the library.
        for code in failures.iter().map(Failure::exit_code).chain([4]) {
            assert!(help.contains(&format!("\n  {code} ")), "{code}\n{help}");
        }
    }
}
