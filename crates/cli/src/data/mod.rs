//! `fedkin data`: what public sets there are, fetching them, looking at files, and how records are dealt to clients.

mod fetch;
mod inspect;
mod list;
mod partition;

use crate::failure::Failure;
use clap::{Args, Subcommand};
use fedkin::rooms::run::Registry;
use std::path::PathBuf;

/// What `fedkin data` can do.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// List the public data sets: what they are, their licence, and what is on this machine
    List(List),
    /// Get a public data set, check it and put it in place; goes on where an earlier try stopped
    Fetch(Fetch),
    /// Summarise a CSV, Parquet, NPZ or IDX file
    Inspect(Inspect),
    /// Show which labels each client of a config has, as a table and a picture
    Partition(Partition),
}

/// `fedkin data list`
#[derive(Debug, Args)]
pub(crate) struct List {
    /// Show this set in full, with its files
    name: Option<String>,
    /// Read the files that are there and compare their SHA-256
    #[arg(long)]
    check: bool,
    /// Print one JSON object and nothing else
    #[arg(long)]
    json: bool,
}

/// `fedkin data fetch`
#[derive(Debug, Args)]
pub(crate) struct Fetch {
    /// Which set of `fedkin data list`
    name: String,
    /// The folder above the folders of all sets [default: the one that `FEDKIN_DATA` names]
    #[arg(long, value_name = "DIR")]
    to: Option<PathBuf>,
    /// Another place than the set's own: an address that ends before the file's name, or a folder
    #[arg(long, value_name = "URL|DIR")]
    from: Option<String>,
    /// Print one JSON object and nothing else
    #[arg(long)]
    json: bool,
}

/// `fedkin data inspect`
#[derive(Debug, Args)]
pub(crate) struct Inspect {
    /// The file; its format is seen from its content
    file: PathBuf,
    /// Column that names the client [default: guessed]
    #[arg(long, value_name = "COLUMN")]
    client: Option<String>,
    /// Column whose values are counted [default: guessed]
    #[arg(long, value_name = "COLUMN")]
    target: Option<String>,
    /// Print one JSON object and nothing else
    #[arg(long)]
    json: bool,
}

/// `fedkin data partition`
#[derive(Debug, Args)]
pub(crate) struct Partition {
    /// The config whose data are dealt
    #[arg(conflicts_with = "source")]
    file: Option<PathBuf>,
    /// A source instead of a config; its keys follow with --set, such as --set partition=dirichlet
    #[arg(long, value_name = "NAME")]
    source: Option<String>,
    /// Set a key of the config, such as data.alpha=0.5; may be repeated
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// Which repeat of the config, from 0
    #[arg(long, value_name = "N", default_value_t = 0)]
    repeat: u32,
    /// Write a picture that ends in .svg or .png
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Write the counts as a CSV file
    #[arg(long, value_name = "FILE")]
    csv: Option<PathBuf>,
    /// Print one JSON object and nothing else
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub(crate) fn data(registry: &Registry, command: &Command) -> Result<(), Failure> {
    match command {
        Command::List(args) => list::list(args),
        Command::Fetch(args) => fetch::fetch(args),
        Command::Inspect(args) => inspect::inspect(args),
        Command::Partition(args) => partition::partition(registry, args),
    }
}
