//! `fedkin graph filter`.

use super::matrix::{Matrix, graph};
use crate::failure::Failure;
use crate::output::{self, Facts};
use crate::privacy::size;
use clap::Args;
use fedkin::rooms::graph::Sparse;
use fedkin::rooms::graph::denoise::{DenoiserRow, Denoisers, Prepared, Strength, Way};
use fedkin::rooms::run::artifacts::atomic;
use serde::Serialize;
use std::path::PathBuf;

/// What the help says behind the options, the table of filters included.
pub(crate) fn about(denoisers: &Denoisers) -> String {
    let mut text = String::from(
        "The signal has one row per client and the sizes have one number per client, in the order of the graph's nodes: \
         CSV without a header, or NPZ (arrays `signal` and `sizes`, or one array). The graph is a square matrix of \
         weights (CSV without a header, or NPZ with `adjacency`), or any file that `fedkin graph inspect` reads.\n\nFilters:\n",
    );
    let width = denoisers.names().map(str::len).max().unwrap_or(0);
    for row in denoisers {
        let keys: Vec<String> = row.keys.iter().map(|key| format!("--{key}")).collect();
        let line = format!("  {:width$}  {} ({})\n", row.name, row.summary, keys.join(", "));
        text.push_str(&line);
    }
    text
}

/// `fedkin graph filter`
#[derive(Debug, Args)]
#[allow(clippy::struct_field_names, reason = "the flag is called --filter")]
pub(crate) struct Filter {
    /// The graph of clients
    #[arg(long, value_name = "FILE")]
    graph: PathBuf,
    /// What is to be smoothed: one row per client
    #[arg(long, value_name = "FILE")]
    signal: PathBuf,
    /// Numbers of records, one per client [default: all alike]
    #[arg(long, value_name = "FILE")]
    sizes: Option<PathBuf>,
    /// Which filter, see below
    #[arg(long, value_name = "NAME", default_value = "sound")]
    filter: String,
    /// Weight of differences between neighbours; the time of heat, the weight of tv
    #[arg(long, value_name = "B", allow_negative_numbers = true, value_parser = size)]
    beta1: Option<f64>,
    /// Weight of the squared Laplacian
    #[arg(long, value_name = "B", allow_negative_numbers = true, value_parser = size)]
    beta2: Option<f64>,
    /// How many of the smoothest shapes are kept, 1 to the number of clients
    #[arg(long, value_name = "N")]
    tau: Option<usize>,
    /// How many neighbours a client is averaged with
    #[arg(long, value_name = "N")]
    neighbours: Option<usize>,
    /// auto, exact (eigenvectors), chebyshev (polynomials) or cg (conjugate gradients)
    #[arg(long, value_name = "WAY", default_value = "auto")]
    method: String,
    /// Write the result to this file (CSV) and print facts
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Print one JSON object and nothing else
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct FilteredJson<'a> {
    signal: Vec<&'a [f64]>,
    filter: &'static str,
    method: &'static str,
    clients: usize,
    columns: usize,
    nodes: &'a [String],
    out: Option<&'a PathBuf>,
}

impl Filter {
    /// The strength, where all that the filter needs is given and nothing else.
    fn strength(&self, row: &DenoiserRow) -> Result<Strength, Failure> {
        let given = [
            ("beta1", self.beta1.is_some()),
            ("beta2", self.beta2.is_some()),
            ("tau", self.tau.is_some()),
            ("neighbours", self.neighbours.is_some()),
        ];
        let keys: Vec<String> = row.keys.iter().map(|key| format!("--{key}")).collect();
        let keys = keys.join(" and ");
        for (key, given) in given {
            if given && !row.keys.contains(&key) {
                return Err(Failure::Usage(format!(
                    "the filter {} has no --{key}: it takes {keys}",
                    row.name
                )));
            }
        }
        if !given.iter().any(|&(key, given)| given && row.keys.contains(&key)) {
            return Err(Failure::Usage(format!("the filter {} needs {keys}", row.name)));
        }
        Ok(Strength {
            beta1: self.beta1.unwrap_or(0.0),
            beta2: self.beta2.unwrap_or(0.0),
            tau: self.tau.unwrap_or(0),
            neighbours: self.neighbours.unwrap_or(0),
        })
    }
}

fn usage(error: impl std::fmt::Display) -> Failure {
    Failure::Usage(error.to_string())
}

/// Smooths a signal over a graph.
pub(crate) fn filter(denoisers: &Denoisers, args: &Filter) -> Result<(), Failure> {
    let row = *denoisers.find(&args.filter).map_err(|error| usage(error.to_string()))?;
    let way = Way::parse(&args.method).map_err(usage)?;
    let strength = args.strength(&row)?;
    if let Some(out) = args.out.as_ref().filter(|out| out.extension().is_none_or(|ending| ending != "csv")) {
        let message = format!("{}: the result is written as CSV; let the name end in .csv", out.display());
        return Err(Failure::Usage(message));
    }
    let named = graph(&args.graph)?;
    let clients = named.nodes.len();
    let signal = Matrix::read(&args.signal, "signal")?;
    if signal.rows != clients {
        return Err(Failure::Usage(format!(
            "{}: the signal has {} rows, and the graph {} has {clients} clients: give one row per client",
            args.signal.display(),
            signal.rows,
            args.graph.display()
        )));
    }
    let sizes = match &args.sizes {
        None => vec![1.0; clients],
        Some(path) => {
            let matrix = Matrix::read(path, "sizes")?;
            let wrong = |message: String| Failure::Usage(format!("{}: {message}", path.display()));
            if matrix.values.len() != clients || (matrix.rows != 1 && matrix.columns != 1) {
                return Err(wrong(format!(
                    "there are {} x {} sizes for {clients} clients: give one number per client",
                    matrix.rows, matrix.columns
                )));
            }
            if let Some(at) = matrix.values.iter().position(|&size| size <= 0.0) {
                let (place, size) = (at + 1, matrix.values[at]);
                return Err(wrong(format!("the size of client {place} is {size}: sizes are above 0")));
            }
            matrix.values
        }
    };
    let prepared = Prepared::new(row, Sparse::from(&named.graph), &sizes, way).map_err(usage)?;
    let operator = prepared.at(&strength).map_err(usage)?;
    let values = operator.apply_matrix(&signal.values).map_err(usage)?;
    let result = Matrix { values, ..signal };
    if let Some(out) = &args.out {
        atomic::write(out, result.text().as_bytes()).map_err(fedkin::rooms::run::Error::from)?;
    }
    if args.json {
        return output::json(&FilteredJson {
            signal: result.nested(),
            filter: row.name,
            method: operator.way(),
            clients,
            columns: result.columns,
            nodes: &named.nodes,
            out: args.out.as_ref(),
        });
    }
    let Some(out) = &args.out else { return output::say(&result.text()) };
    let mut facts = Facts::default();
    facts.add("filter", row.name).add("method", operator.way());
    facts.add("clients", clients.to_string()).add("columns", result.columns.to_string());
    facts.add("written", out.display().to_string());
    output::say(&facts.text())
}
