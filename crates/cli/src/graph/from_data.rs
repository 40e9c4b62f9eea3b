//! `fedkin graph from-data`.

use super::names;
use crate::failure::Failure;
use crate::output::{self, Facts, count};
use crate::privacy::size;
use clap::{Args, ValueEnum};
use fedkin::rooms::data::npz::Npz;
use fedkin::rooms::data::table::{Cells, Column, Table};
use fedkin::rooms::data::{DataError, csv, parquet};
use fedkin::rooms::graph::Weighted;
use fedkin::rooms::graph::similarity::{self, NEIGHBOURS, Points, WEAK};
use fedkin::rooms::report::number::plain;
use fedkin::rooms::run::artifacts::atomic;
use fedkin::rooms::run::topologies::{Named, write};
use fedkin::rooms::settings::suggest;
use serde::Serialize;
use std::collections::BTreeMap;
use std::io::Read as _;
use std::path::{Path, PathBuf};

pub(super) const ABOUT: &str = "\
The file is a table with a column that names the client: CSV with a header (gzip is fine) or Parquet; or NPZ with the \
arrays `features` (one row per record), the client's and, with labels, the target's. Features are all other columns of \
numbers.

knn-kernel: mean, variance, skewness and kurtosis of every feature (with --statistics labels: the shares of the labels), \
standardised over clients; exp(-(D/s)^2) between nearest neighbours, s the median distance to the last of them, and \
a weak weight between all clients. paper-28: the printed distance, for comparison. pearson: the mean correlation of \
records, which needs all data in one place.";

/// So many names are shown; the JSON has all.
const SHOWN: usize = 12;

/// How clients are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Kind {
    /// A kernel over nearest neighbours in statistics of the data
    KnnKernel,
    /// Equation (28) as printed: a distance used as a similarity
    #[value(name = "paper-28")]
    Paper28,
    /// Mean correlation of records, where it is positive
    Pearson,
}

/// What is known of a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Statistic {
    /// Moments of the features
    Features,
    /// Shares of the labels
    Labels,
}

/// `fedkin graph from-data`
#[derive(Debug, Args)]
pub(crate) struct FromData {
    /// Records of all clients
    file: PathBuf,
    /// The column that says whose a record is
    #[arg(long, value_name = "COLUMN", default_value = "client")]
    client: String,
    /// The column of labels; it is no feature
    #[arg(long, value_name = "COLUMN")]
    target: Option<String>,
    /// How clients are compared
    #[arg(long, value_enum, default_value = "knn-kernel")]
    kind: Kind,
    /// What they are compared by, between commas
    #[arg(long, value_enum, value_name = "A,B", value_delimiter = ',', default_value = "features")]
    statistics: Vec<Statistic>,
    /// Nearest neighbours that a client is joined with
    #[arg(long, value_name = "N", default_value_t = NEIGHBOURS)]
    neighbours: usize,
    /// Weight between all clients, to be divided by their number
    #[arg(long, value_name = "W", default_value_t = WEAK, allow_negative_numbers = true, value_parser = size)]
    weak: f64,
    /// Write the graph to this file: .graphml, .npz, .json or .csv
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Write the number of records of every client to this file (CSV), for `fedkin graph filter --sizes`
    #[arg(long, value_name = "FILE")]
    sizes: Option<PathBuf>,
    /// Print one JSON object and nothing else
    #[arg(long)]
    json: bool,
}

/// The records of one client.
#[derive(Debug, Default)]
struct Records {
    features: Vec<f64>,
    labels: Vec<usize>,
    count: usize,
}

/// All clients with their names, in order.
struct Read {
    clients: Vec<(String, Records)>,
    columns: usize,
    classes: usize,
}

#[derive(Serialize)]
struct GraphJson<'a> {
    nodes: &'a [String],
    sizes: Vec<usize>,
    kind: &'static str,
    statistics: usize,
    edges: usize,
    adjacency: Vec<&'a [f64]>,
    out: Option<&'a PathBuf>,
}

/// Makes a graph of clients from their records.
pub(crate) fn from_data(args: &FromData) -> Result<(), Failure> {
    let labels = args.statistics.contains(&Statistic::Labels);
    if labels && args.target.is_none() {
        return Err(Failure::Usage("--statistics labels needs --target, the column of labels".into()));
    }
    if args.kind != Kind::KnnKernel && labels {
        return Err(Failure::Usage("labels are compared by --kind knn-kernel alone".into()));
    }
    let read = read(args)?;
    let (graph, statistics) =
        graph(args, &read).map_err(|error| Failure::Usage(format!("{}: {error}", args.file.display())))?;
    let (nodes, records): (Vec<String>, Vec<Records>) = read.clients.into_iter().unzip();
    let named = Named::new(nodes, graph).map_err(Failure::Usage)?;
    if let Some(path) = &args.sizes {
        let mut text = String::new();
        for records in &records {
            text.push_str(&records.count.to_string());
            text.push('\n');
        }
        atomic::write(path, text.as_bytes()).map_err(fedkin::rooms::run::Error::from)?;
    }
    if let Some(out) = &args.out {
        write(out, &named)?;
    }
    let kind = match args.kind {
        Kind::KnnKernel => "knn-kernel",
        Kind::Paper28 => "paper-28",
        Kind::Pearson => "pearson",
    };
    let edges = named.graph.edges(0.0).count();
    if args.json {
        let adjacency = named.graph.adjacency();
        return output::json(&GraphJson {
            nodes: &named.nodes,
            sizes: records.iter().map(|records| records.count).collect(),
            kind,
            statistics,
            edges,
            adjacency: adjacency.chunks_exact(named.nodes.len()).collect(),
            out: args.out.as_ref(),
        });
    }
    let mut facts = Facts::default();
    facts.add("clients", format!("{}: {}", named.nodes.len(), names(&named.nodes, SHOWN)));
    let total: usize = records.iter().map(|records| records.count).sum();
    facts.add("records", total.to_string());
    facts.add("kind", format!("{kind}, from {} per client", count(statistics, "number")));
    let weights = named.graph.weights();
    let (least, most) = weights.iter().fold((f64::INFINITY, 0.0f64), |(a, b), &w| (a.min(w), b.max(w)));
    facts.add("edges", format!("{edges}, weights {} to {}", plain(least), plain(most)));
    if let Some(out) = &args.out {
        facts.add("written", out.display().to_string());
    }
    output::say(&facts.text())
}

/// The graph, and how many statistics it was made from.
fn graph(args: &FromData, read: &Read) -> Result<(Weighted, usize), String> {
    let each = |of: &dyn Fn(&Records) -> Vec<f64>| -> Vec<Vec<f64>> {
        read.clients.iter().map(|(_, records)| of(records)).collect()
    };
    let length = |rows: &[Vec<f64>]| rows.first().map_or(0, Vec::len);
    match args.kind {
        Kind::Paper28 => {
            let rows = each(&|records| similarity::moments(&records.features, read.columns));
            Ok((similarity::paper_28(&rows).map_err(|error| error.to_string())?, length(&rows)))
        }
        Kind::Pearson => {
            if read.columns < 2 {
                return Err("a correlation of records needs two features or more".into());
            }
            let rows = each(&|records| similarity::profile(&records.features, read.columns));
            Ok((similarity::pearson(&rows).map_err(|error| error.to_string())?, length(&rows)))
        }
        Kind::KnnKernel => {
            let mut kinds = Vec::new();
            if args.statistics.contains(&Statistic::Features) {
                kinds.push(each(&|records| similarity::moments(&records.features, read.columns)));
            }
            if args.statistics.contains(&Statistic::Labels) {
                kinds.push(each(&|records| {
                    similarity::histogram(records.labels.iter().copied(), read.classes)
                }));
            }
            let statistics = kinds.iter().map(|rows| length(rows)).sum();
            let slices: Vec<&[Vec<f64>]> = kinds.iter().map(Vec::as_slice).collect();
            let points = Points::standardised(&slices).map_err(|error| error.to_string())?;
            let kernel = similarity::knn_kernel(&points, args.neighbours, args.weak);
            let graph = kernel.map_err(|error| error.to_string())?;
            Ok((graph.weighted().map_err(|error| error.to_string())?, statistics))
        }
    }
}

fn read(args: &FromData) -> Result<Read, Failure> {
    let words = |name: &str| name == args.client || Some(name) == args.target.as_deref();
    match magic(&args.file)? {
        [b'P', b'K', 3, 4] => archive(args),
        [b'P', b'A', b'R', b'1'] => table(args, &parquet::read(&args.file, &words)?),
        _ => table(args, &csv::read(&args.file, &words)?),
    }
}

fn magic(path: &Path) -> Result<[u8; 4], Failure> {
    let mut first = [0; 4];
    let io = |source| DataError::Io { file: path.to_path_buf(), source };
    let file = std::fs::File::open(path).map_err(io)?;
    let mut found = Vec::new();
    file.take(4).read_to_end(&mut found).map_err(io)?;
    first[..found.len()].copy_from_slice(&found);
    Ok(first)
}

/// Names in order: by number where all are whole numbers, else by their bytes.
fn ordered(clients: BTreeMap<String, Records>) -> Vec<(String, Records)> {
    let mut clients: Vec<(String, Records)> = clients.into_iter().collect();
    let numbers: Option<Vec<u64>> = clients.iter().map(|(name, _)| name.parse().ok()).collect();
    if numbers.is_some() {
        clients.sort_by_key(|(name, _)| name.parse::<u64>().unwrap_or(0));
    }
    clients
}

fn column<'a>(table: &'a Table, what: &str, name: &str) -> Result<&'a Column, Failure> {
    let found = table.find(name).ok_or_else(|| {
        let hint = suggest(name, table.columns.iter().map(|column| column.name.as_str()));
        Failure::Usage(format!(
            "{}: there is no column {name:?} for the {what}{hint}; name it with --{what}",
            table.file.display()
        ))
    })?;
    match found.first_missing {
        Some(row) => {
            Err(cell(table, row, name, "the cell is empty or missing: fill it in or drop the record"))
        }
        None => Ok(found),
    }
}

fn cell(table: &Table, row: usize, column: &str, message: impl Into<String>) -> Failure {
    DataError::Cell { place: table.place(row), column: column.to_string(), message: message.into() }.into()
}

fn table(args: &FromData, table: &Table) -> Result<Read, Failure> {
    let client = column(table, "client", &args.client)?;
    let target = args.target.as_ref().map(|name| column(table, "target", name)).transpose()?;
    let mut features: Vec<&[f64]> = Vec::new();
    for column in &table.columns {
        if column.name == client.name || target.is_some_and(|target| target.name == column.name) {
            continue;
        }
        if let Some((row, text)) = &column.strays.first {
            let message = format!(
                "{text:?} is not a number: features are numbers; drop the column, or name it as --target"
            );
            return Err(cell(table, *row, &column.name, message));
        }
        if let Some(row) = column.first_missing {
            let message = "the cell is empty or missing: fill it in or drop the record";
            return Err(cell(table, row, &column.name, message));
        }
        if let Cells::Numbers(values) = &column.cells {
            features.push(values);
        } else {
            let message = "the column holds no numbers: drop it, or name it as --target";
            return Err(cell(table, 0, &column.name, message));
        }
    }
    if features.is_empty() && args.statistics != [Statistic::Labels] {
        let message = format!("{}: no column is left for features", table.file.display());
        return Err(Failure::Usage(message));
    }
    let mut classes: BTreeMap<&str, usize> = BTreeMap::new();
    let mut clients: BTreeMap<String, Records> = BTreeMap::new();
    for row in 0..table.rows {
        let records = clients.entry(client.word(row).unwrap_or_default().to_string()).or_default();
        records.features.extend(features.iter().map(|values| values[row]));
        records.count += 1;
        if let Some(word) = target.and_then(|target| target.word(row)) {
            let next = classes.len();
            records.labels.push(*classes.entry(word).or_insert(next));
        }
    }
    Ok(Read { clients: ordered(clients), columns: features.len(), classes: classes.len() })
}

fn archive(args: &FromData) -> Result<Read, Failure> {
    let mut npz = Npz::open(&args.file)?;
    let names = npz.names();
    let wrong = |message: String| Failure::Usage(format!("{}: {message}", args.file.display()));
    let mut array = |name: &str, what: &str| -> Result<fedkin::rooms::data::array::Array, Failure> {
        if !names.iter().any(|known| known == name) {
            let known = names.join(", ");
            return Err(wrong(format!("there is no array {name:?} for the {what}; the archive has {known}")));
        }
        Ok(npz.read(name)?)
    };
    let features = array("features", "features")?;
    let client = array(&args.client, "client")?;
    let target = args.target.as_ref().map(|name| array(name, "target")).transpose()?;
    let records = features.shape.first().copied().unwrap_or(0);
    for (name, other) in [(Some(&args.client), Some(&client)), (args.target.as_ref(), target.as_ref())] {
        let (Some(name), Some(other)) = (name, other) else { continue };
        if other.values.len() != records {
            let found = other.values.len();
            return Err(wrong(format!("array {name:?} has {found} values for {records} records")));
        }
    }
    let values: Vec<f64> = features.values.floats().collect();
    if let Some(at) = values.iter().position(|value| !value.is_finite()) {
        return Err(wrong(format!("value {} of `features` is {}: numbers are finite", at + 1, values[at])));
    }
    let columns = values.len().checked_div(records).unwrap_or(0);
    let labels: Option<Vec<f64>> = target.map(|target| target.values.floats().collect());
    let mut known: Vec<f64> = labels.clone().unwrap_or_default();
    known.sort_by(f64::total_cmp);
    known.dedup();
    let mut clients: BTreeMap<String, Records> = BTreeMap::new();
    for (row, name) in client.values.floats().enumerate() {
        let own = clients.entry(name.to_string()).or_default();
        own.features.extend_from_slice(&values[row * columns..(row + 1) * columns]);
        own.count += 1;
        if let Some(labels) = &labels {
            own.labels.push(known.partition_point(|&x| x.total_cmp(&labels[row]).is_lt()));
        }
    }
    Ok(Read { clients: ordered(clients), columns, classes: known.len() })
}
