//! `fedkin graph`: learn weighted graphs, look at them, compare them with a truth, divide them; graphs of clients, and
//! signals smoothed over them.

mod communities;
mod compare;
pub(crate) mod filter;
mod from_data;
mod inspect;
mod learn;
mod matrix;

use crate::failure::Failure;
use crate::privacy::{positive, size};
use clap::{Args, Subcommand};
use fedkin::Registry;
use std::path::PathBuf;

const FILES: &str = "\
Graphs are read by the ending of the file: .graphml (edges with `weight`, nodes with `name`), .npz and .json \
(`weights`, the upper triangle row by row, or `adjacency`; and `nodes`), .csv (an edge list with a header: a,b,weight), \
.txt and .net (lines `from to weight`, or Pajek). Of two directions the larger weight counts.";

/// What `fedkin graph` can do.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Learn graphs from signals: one per client, and a consensus graph for all
    #[command(after_help = learn::ABOUT)]
    Learn(Box<learn::Learn>),
    /// Show nodes, edges, degrees, components and spectrum
    #[command(after_help = FILES)]
    Inspect(Inspect),
    /// Judge a graph by the true one: its edges and its weights
    #[command(after_help = FILES)]
    Compare(Compare),
    /// Find communities (Louvain), and compare them with labels
    #[command(after_help = FILES)]
    Communities(Communities),
    /// Smooth a signal over a graph of clients, as the server of FedPnP does with models
    Filter(Box<filter::Filter>),
    /// Make a graph of clients that are alike from their records
    #[command(after_help = from_data::ABOUT)]
    FromData(Box<from_data::FromData>),
}

/// `fedkin graph inspect`
#[derive(Debug, Args)]
pub(crate) struct Inspect {
    /// The graphs
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
    /// What counts as an edge: a weight above this
    #[arg(long, value_name = "T", default_value = "0", allow_negative_numbers = true, value_parser = size)]
    threshold: f64,
    /// Print one JSON object and nothing else
    #[arg(long)]
    json: bool,
}

/// `fedkin graph compare`
#[derive(Debug, Args)]
pub(crate) struct Compare {
    /// The graph to judge
    file: PathBuf,
    /// The true graph; nodes are matched by name, or by place where a file has no names
    #[arg(long, value_name = "FILE")]
    truth: PathBuf,
    /// What counts as an edge: a weight above this
    #[arg(long, value_name = "T", default_value = "1e-4", allow_negative_numbers = true, value_parser = size)]
    threshold: f64,
    /// Print one JSON object and nothing else
    #[arg(long)]
    json: bool,
}

/// `fedkin graph communities`
#[derive(Debug, Args)]
pub(crate) struct Communities {
    /// The graph
    file: PathBuf,
    /// What the nodes are known to be: a CSV file with the columns node,label
    #[arg(long, value_name = "FILE")]
    labels: Option<PathBuf>,
    /// The orders in which nodes are tried follow from it
    #[arg(long, value_name = "N", default_value_t = 0)]
    seed: u64,
    /// Larger values give more and smaller communities
    #[arg(long, value_name = "R", default_value = "1", allow_negative_numbers = true, value_parser = positive)]
    resolution: f64,
    /// So many times anew; the division of the largest modularity is kept
    #[arg(long, value_name = "N", default_value = "10", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    restarts: u32,
    /// Print one JSON object and nothing else
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub(crate) fn graph(registry: &Registry, command: &Command) -> Result<(), Failure> {
    match command {
        Command::Learn(args) => learn::learn(args),
        Command::Inspect(args) => inspect::inspect(args),
        Command::Compare(args) => compare::compare(args),
        Command::Communities(args) => communities::communities(args),
        Command::Filter(args) => filter::filter(&registry.core().denoisers, args),
        Command::FromData(args) => from_data::from_data(args),
    }
}

/// The first names of a list, and how many more there are.
fn names(nodes: &[String], shown: usize) -> String {
    let more = nodes.len().saturating_sub(shown);
    let text = nodes[..nodes.len() - more].join(", ");
    if more > 0 { format!("{text}, and {more} more") } else { text }
}
