//! Matrices of numbers from plain files: CSV without a header, or NPZ.

use crate::failure::Failure;
use fedkin::rooms::data::npz::Npz;
use fedkin::rooms::graph::{Weighted, pairs};
use fedkin::rooms::run::topologies::{Named, read as read_graph};
use std::path::Path;

/// A matrix row by row.
#[derive(Debug)]
pub(super) struct Matrix {
    pub(super) rows: usize,
    pub(super) columns: usize,
    pub(super) values: Vec<f64>,
}

fn refuse(path: &Path, message: impl std::fmt::Display) -> Failure {
    Failure::Usage(format!("{}: {message}", path.display()))
}

fn ending(path: &Path) -> String {
    path.extension().map(|ending| ending.to_string_lossy().to_lowercase()).unwrap_or_default()
}

impl Matrix {
    /// Reads a matrix of finite numbers; of an archive the array of this name, or the only one.
    pub(super) fn read(path: &Path, name: &str) -> Result<Self, Failure> {
        let matrix = match ending(path).as_str() {
            "npz" => archive(path, name)?,
            _ => plain(path)?.map_err(|message| refuse(path, message))?,
        };
        let bad = matrix.values.iter().position(|value| !value.is_finite());
        match bad {
            Some(at) => {
                let (row, column) = (at / matrix.columns + 1, at % matrix.columns + 1);
                Err(refuse(
                    path,
                    format!("row {row}, column {column} is {}: numbers are finite", matrix.values[at]),
                ))
            }
            None => Ok(matrix),
        }
    }

    /// As rows for JSON.
    pub(super) fn nested(&self) -> Vec<&[f64]> {
        self.values.chunks_exact(self.columns.max(1)).collect()
    }

    /// As CSV without a header; every number reads back as itself.
    pub(super) fn text(&self) -> String {
        let line = |row: &[f64]| row.iter().map(|x| format!("{x:?}")).collect::<Vec<_>>().join(",") + "\n";
        self.values.chunks_exact(self.columns.max(1)).map(line).collect()
    }
}

fn archive(path: &Path, name: &str) -> Result<Matrix, Failure> {
    let mut npz = Npz::open(path)?;
    let names = npz.names();
    let name = match names.as_slice() {
        [only] => only.clone(),
        names if names.iter().any(|known| known == name) => name.to_string(),
        names => {
            let message = format!("there is no array {name:?}; the archive has {}", names.join(", "));
            return Err(refuse(path, message));
        }
    };
    let array = npz.read(&name)?;
    let (rows, columns) = match *array.shape.as_slice() {
        [rows] => (rows, 1),
        [rows, columns] => (rows, columns),
        _ => {
            let message = format!("array {name:?} has the shape {:?}: a matrix has two sides", array.shape);
            return Err(refuse(path, message));
        }
    };
    if rows == 0 || columns == 0 {
        return Err(refuse(path, format!("array {name:?} is empty")));
    }
    Ok(Matrix { rows, columns, values: array.values.floats().collect() })
}

/// The numbers of a CSV file, or why they are none.
fn plain(path: &Path) -> Result<Result<Matrix, String>, Failure> {
    let text =
        std::fs::read_to_string(path).map_err(|error| refuse(path, format!("cannot be read: {error}")))?;
    Ok(parse(&text))
}

fn parse(text: &str) -> Result<Matrix, String> {
    let (mut rows, mut columns, mut values) = (0, 0, Vec::new());
    let lines = text.lines().enumerate().map(|(at, line)| (at + 1, line.trim()));
    for (at, line) in lines.filter(|(_, line)| !line.is_empty()) {
        let before = values.len();
        for (column, word) in line.split(',').enumerate() {
            let word = word.trim();
            let number = word.parse::<f64>().map_err(|_| {
                let column = column + 1;
                format!("line {at}, column {column}: {word:?} is not a number; a matrix has one row per line and no header")
            })?;
            values.push(number);
        }
        let found = values.len() - before;
        if rows == 0 {
            columns = found;
        } else if found != columns {
            return Err(format!("line {at} has {found} numbers, and the first row has {columns}"));
        }
        rows += 1;
    }
    if rows == 0 {
        Err("the file is empty: a matrix has one row per line".into())
    } else {
        Ok(Matrix { rows, columns, values })
    }
}

/// A graph: a square matrix of weights, or any file that the other commands read.
pub(super) fn graph(path: &Path) -> Result<Named, Failure> {
    let matrix = match ending(path).as_str() {
        "csv" => {
            let text = std::fs::read_to_string(path)
                .map_err(|error| refuse(path, format!("cannot be read: {error}")))?;
            // An edge list has a header of words.
            let first = text.lines().find(|line| !line.trim().is_empty()).unwrap_or_default();
            let numbers = first.split(',').filter(|word| word.trim().parse::<f64>().is_ok()).count();
            if numbers == 0 {
                return Ok(read_graph(path)?);
            }
            parse(&text).map_err(|message| refuse(path, message))?
        }
        "npz" => {
            let names = Npz::open(path)?.names();
            let has = |name: &str| names.iter().any(|known| known == name);
            if has("weights") || has("w") || (has("adjacency") && has("nodes")) {
                return Ok(read_graph(path)?);
            }
            archive(path, "adjacency")?
        }
        _ => return Ok(read_graph(path)?),
    };
    square(&matrix).map_err(|message| refuse(path, message))
}

/// The graph of a matrix. What stands on the diagonal joins nobody, and is passed over.
fn square(matrix: &Matrix) -> Result<Named, String> {
    let (nodes, values) = (matrix.rows, &matrix.values);
    if nodes != matrix.columns {
        return Err(format!(
            "the matrix has {nodes} rows and {} columns: the weights of a graph are a square",
            matrix.columns
        ));
    }
    if nodes < 2 {
        return Err("the graph has one node: at least two are needed".into());
    }
    let mut weights = Vec::with_capacity(nodes * (nodes - 1) / 2);
    for (i, j) in pairs::all(nodes) {
        let (there, back) = (values[i * nodes + j], values[j * nodes + i]);
        for (row, column, weight) in [(i, j, there), (j, i, back)] {
            if !(weight >= 0.0 && weight.is_finite()) {
                let (row, column) = (row + 1, column + 1);
                return Err(format!(
                    "row {row}, column {column} is {weight}: weights are finite and 0 or more"
                ));
            }
        }
        // The last digits of a program that filled both halves on its own do not matter.
        if (there - back).abs() > 1e-9 * there.max(back) {
            let (i, j) = (i + 1, j + 1);
            return Err(format!(
                "the matrix is not symmetric: row {i}, column {j} is {there}, and row {j}, column {i} is {back}"
            ));
        }
        weights.push(f64::midpoint(there, back));
    }
    Ok(Named::numbered(Weighted::new(nodes, weights).map_err(|error| error.to_string())?))
}
