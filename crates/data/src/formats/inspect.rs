//! A summary of a file: what a user checks before writing a config.

use super::array::Array;
use super::npz::Npz;
use super::table::{Cells, Column, Table};
use super::{csv, idx, parquet};
use crate::error::DataError;
use fedkin_settings::suggest;
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt;
use std::io::Read;
use std::path::{Path, PathBuf};

/// Column names that usually say whose a record is.
const CLIENT_NAMES: [&str; 12] = [
    "client",
    "client_id",
    "site",
    "hospital",
    "subject",
    "user",
    "user_id",
    "device",
    "silo",
    "center",
    "centre",
    "institution",
];
/// Column names that usually hold what is predicted.
const LABEL_NAMES: [&str; 6] = ["y", "label", "labels", "target", "class", "outcome"];
/// A column with more distinct values than this is not a label.
const MOST_LABELS: usize = 64;

/// What [`inspect`] is told about a file.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// The column that names clients; guessed from its name if absent.
    pub client: Option<String>,
    /// The column whose values are counted; guessed from its name if absent.
    pub target: Option<String>,
}

/// How a file is laid out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Format {
    /// Text with commas.
    Csv,
    /// Apache Parquet.
    Parquet,
    /// A `NumPy` archive.
    Npz,
    /// The format of MNIST.
    Idx,
}

/// What a file holds.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Inspection {
    /// Which file.
    pub file: PathBuf,
    /// How it is laid out.
    pub format: Format,
    /// Whether it is packed with gzip.
    pub gzip: bool,
    /// Number of records; for arrays, the longest first side.
    pub rows: usize,
    /// The columns or arrays in the order of the file.
    pub columns: Vec<ColumnSummary>,
    /// How often each label occurs, for every column that looks like labels.
    pub labels: Vec<Counts>,
    /// How many records each client has, if a column names clients.
    pub clients: Option<Counts>,
}

/// One column or array.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ColumnSummary {
    /// Its name.
    pub name: String,
    /// `number`, `text`, `mixed`, or the type of an array.
    pub kind: String,
    /// Its sides.
    pub shape: Vec<usize>,
    /// Least number.
    pub min: Option<f64>,
    /// Greatest number.
    pub max: Option<f64>,
    /// Mean of the numbers.
    pub mean: Option<f64>,
    /// Empty cells, and NaN in arrays.
    pub missing: usize,
    /// Cells of a mixed column that are not numbers.
    pub strays: usize,
}

/// How often each value of a column occurs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Counts {
    /// Which column.
    pub column: String,
    /// Value and count: labels in their order, clients by name.
    pub counts: Vec<(String, usize)>,
}

/// Summarises a CSV, Parquet, NPZ or IDX file; the format is seen from its first bytes.
pub fn inspect(path: &Path, options: &Options) -> Result<Inspection, DataError> {
    let (format, gzip) = detect(path)?;
    let mut inspection = Inspection {
        file: path.to_path_buf(),
        format,
        gzip,
        rows: 0,
        columns: Vec::new(),
        labels: Vec::new(),
        clients: None,
    };
    let words = |name: &str| is_client(name, options);
    match format {
        Format::Csv => inspection.table(&csv::read(path, &words)?, options)?,
        Format::Parquet => inspection.table(&parquet::read(path, &words)?, options)?,
        Format::Idx => {
            let (array, kind) = idx::read_typed(path)?;
            inspection.array("values", kind, &array, options);
        }
        Format::Npz => {
            let mut archive = Npz::open(path)?;
            for name in archive.names() {
                let (array, kind) = archive.read_typed(&name)?;
                inspection.array(&name, kind, &array, options);
            }
        }
    }
    Ok(inspection)
}

/// The format by the first bytes, and whether gzip is around it.
pub(crate) fn detect(path: &Path) -> Result<(Format, bool), DataError> {
    let start = |mut input: Box<dyn Read>| {
        let mut bytes = Vec::new();
        input
            .as_mut()
            .take(4)
            .read_to_end(&mut bytes)
            .map_err(|source| DataError::io(path, source))
            .map(|_| bytes)
    };
    let raw = std::fs::File::open(path).map_err(|source| DataError::io(path, source))?;
    let outer = start(Box::new(raw))?;
    let gzip = outer.starts_with(&[0x1f, 0x8b]);
    let inner = if gzip { start(csv::open(path)?)? } else { outer };
    let format = match inner.as_slice() {
        b"PAR1" => Format::Parquet,
        [b'P', b'K', 3, 4] | [b'P', b'K', 5, 6] => Format::Npz,
        [0, 0, 0x08..=0x0e, _] => Format::Idx,
        _ => Format::Csv,
    };
    if gzip && matches!(format, Format::Parquet | Format::Npz) {
        return Err(DataError::file(path, "the file is packed twice: unpack it with gunzip first"));
    }
    Ok((format, gzip))
}

fn is_client(name: &str, options: &Options) -> bool {
    match &options.client {
        Some(client) => client == name,
        None => CLIENT_NAMES.iter().any(|known| name.eq_ignore_ascii_case(known)),
    }
}

fn is_label(name: &str, options: &Options) -> bool {
    if let Some(target) = &options.target {
        return target == name;
    }
    let last = name.rsplit('_').next().unwrap_or(name);
    [name, last].iter().any(|name| LABEL_NAMES.iter().any(|known| name.eq_ignore_ascii_case(known)))
}

impl Inspection {
    fn table(&mut self, table: &Table, options: &Options) -> Result<(), DataError> {
        for (key, wanted) in [("client", &options.client), ("target", &options.target)] {
            if let Some(column) = wanted.as_ref().filter(|name| table.find(name).is_none()) {
                return Err(DataError::NoColumn {
                    file: table.file.clone(),
                    key: key.into(),
                    column: column.clone(),
                    hint: suggest(column, table.columns.iter().map(|column| column.name.as_str())),
                });
            }
        }
        self.rows = table.rows;
        for column in &table.columns {
            let mut summary = ColumnSummary {
                name: column.name.clone(),
                kind: kind(column),
                shape: vec![table.rows],
                missing: column.missing,
                strays: column.strays.count,
                min: None,
                max: None,
                mean: None,
            };
            if let Cells::Numbers(values) = &column.cells {
                summary.measure(&mut values.iter().copied());
                if is_label(&column.name, options) {
                    self.labels.extend(count_labels(&column.name, values.iter().copied()));
                }
            }
            if self.clients.is_none() && is_client(&column.name, options) {
                self.clients = count_words(column);
            }
            self.columns.push(summary);
        }
        Ok(())
    }

    fn array(&mut self, name: &str, kind: String, array: &Array, options: &Options) {
        let missing = array.values.floats().filter(|value| value.is_nan()).count();
        let mut summary = ColumnSummary {
            name: name.into(),
            kind,
            shape: array.shape.clone(),
            missing,
            strays: 0,
            min: None,
            max: None,
            mean: None,
        };
        summary.measure(&mut array.values.floats());
        let rows = array.shape.first().copied().unwrap_or(1);
        self.rows = self.rows.max(rows);
        // A vector, also one that NumPy keeps as a column.
        let flat = array.values.len() == rows;
        if flat && (is_label(name, options) || self.format == Format::Idx) {
            self.labels.extend(count_labels(name, array.values.floats()));
        }
        if flat && self.clients.is_none() && is_client(name, options) {
            self.clients = Some(Counts { column: name.into(), counts: tally(array.values.floats()) });
        }
        self.columns.push(summary);
    }
}

impl ColumnSummary {
    fn measure(&mut self, values: &mut dyn Iterator<Item = f64>) {
        let (mut count, mut sum) = (0u64, 0.0);
        for value in values.filter(|value| !value.is_nan()) {
            count += 1;
            sum += value;
            self.min = Some(self.min.map_or(value, |min| min.min(value)));
            self.max = Some(self.max.map_or(value, |max| max.max(value)));
        }
        self.mean = (count > 0).then(|| sum / count as f64);
    }
}

fn kind(column: &Column) -> String {
    match &column.cells {
        Cells::Other(kind) => kind.clone(),
        _ if column.is_text() => "text".into(),
        _ if column.strays.count > 0 => "mixed".into(),
        _ => "number".into(),
    }
}

/// Distinct numbers in ascending order with their counts.
fn tally(values: impl Iterator<Item = f64>) -> Vec<(String, usize)> {
    let mut counts: BTreeMap<i64, (f64, usize)> = BTreeMap::new();
    for value in values.filter(|value| !value.is_nan()) {
        // Adding zero turns -0 into 0; the flip makes the order of the bits the order of the numbers.
        let bits = (value + 0.0).to_bits() as i64;
        let key = if bits < 0 { bits ^ i64::MAX } else { bits };
        counts.entry(key).or_insert((value, 0)).1 += 1;
    }
    counts.into_values().map(|(value, count)| (value.to_string(), count)).collect()
}

fn count_labels(name: &str, values: impl Iterator<Item = f64>) -> Option<Counts> {
    let counts = tally(values);
    (counts.len() <= MOST_LABELS && !counts.is_empty()).then(|| Counts { column: name.into(), counts })
}

fn count_words(column: &Column) -> Option<Counts> {
    let Cells::Words { codes, words } = &column.cells else { return None };
    let mut counts: Vec<(String, usize)> = words.iter().map(|word| (word.clone(), 0)).collect();
    for &code in codes {
        if let Some(count) = counts.get_mut(code as usize) {
            count.1 += 1;
        }
    }
    counts.sort_unstable();
    Some(Counts { column: column.name.clone(), counts })
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Csv => "CSV",
            Self::Parquet => "Parquet",
            Self::Npz => "NPZ",
            Self::Idx => "IDX",
        })
    }
}

impl fmt::Display for Inspection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let packed = if self.gzip { ", gzip" } else { "" };
        writeln!(
            f,
            "{}: {}{packed}, {} rows, {} columns",
            self.file.display(),
            self.format,
            self.rows,
            self.columns.len()
        )?;
        let width = self.columns.iter().map(|column| column.name.chars().count()).max().unwrap_or(0).max(6);
        let kinds =
            self.columns.iter().map(|column| column.described().chars().count()).max().unwrap_or(0).max(4);
        writeln!(
            f,
            "{:width$}  {:kinds$}  {:>12}  {:>12}  {:>12}  {:>7}",
            "column", "type", "min", "max", "mean", "missing"
        )?;
        for column in &self.columns {
            let number = |value: Option<f64>| value.map_or("-".into(), short);
            write!(
                f,
                "{:width$}  {:kinds$}  {:>12}  {:>12}  {:>12}  {:>7}",
                column.name,
                column.described(),
                number(column.min),
                number(column.max),
                number(column.mean),
                column.missing
            )?;
            match column.strays {
                count if count > 0 && column.kind == "mixed" => writeln!(f, "  {count} not numbers")?,
                _ => writeln!(f)?,
            }
        }
        for labels in &self.labels {
            let all: Vec<String> =
                labels.counts.iter().map(|(label, count)| format!("{label}: {count}")).collect();
            writeln!(f, "labels in {}: {}", labels.column, all.join(", "))?;
        }
        if let Some(clients) = &self.clients {
            let sizes = clients.counts.iter().map(|(_, count)| *count);
            let (least, most) = (sizes.clone().min().unwrap_or(0), sizes.max().unwrap_or(0));
            writeln!(
                f,
                "clients in {}: {}, with {least} to {most} records",
                clients.column,
                clients.counts.len()
            )?;
            for (name, count) in clients.counts.iter().take(10) {
                writeln!(f, "  {name}: {count}")?;
            }
            if clients.counts.len() > 10 {
                writeln!(f, "  and {} more", clients.counts.len() - 10)?;
            }
        }
        Ok(())
    }
}

impl ColumnSummary {
    fn described(&self) -> String {
        if self.shape.len() > 1 { format!("{} {:?}", self.kind, self.shape) } else { self.kind.clone() }
    }
}

/// Six significant digits, no trailing zeros.
fn short(value: f64) -> String {
    if value != 0.0 && !(1e-3..1e7).contains(&value.abs()) {
        return format!("{value:.4e}");
    }
    let digits = (5 - value.abs().max(1.0).log10().floor() as i32).max(0) as usize;
    let text = format!("{value:.digits$}");
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').into() } else { text }
}
