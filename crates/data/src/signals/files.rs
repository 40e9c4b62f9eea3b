//! Files of signals: CSV, Parquet, NPZ and AFNI text.

use super::{Signals, node_names, one_d};
use crate::error::{At, DataError, Place};
use crate::formats::inspect::{Format, detect};
use crate::formats::npz::Npz;
use crate::formats::table::{Column, Table};
use crate::formats::{csv, parquet};
use crate::tabular::column;
use crate::tabular::members::words_of;
use fedkin_settings::suggest;
use std::path::Path;

/// The array that holds the signals of an archive.
const ARRAY: &str = "signals";

/// Reads the signals of one client: every column is a node.
///
/// CSV with a header (gzip is fine), Parquet, an NPZ archive with a 2-d array `signals` (or one 2-d array of any
/// name), records by rows, or AFNI text whose name ends in `.1D` or `.1D.gz`.
pub fn read_signals(path: &Path) -> Result<Signals, DataError> {
    read_signals_of(path, &[])
}

/// The same with these nodes only, in this order; all of them where none is named.
pub fn read_signals_of(path: &Path, nodes: &[String]) -> Result<Signals, DataError> {
    if one_d::named_so(path) {
        return choose(path, one_d::read(path)?, "nodes", nodes);
    }
    match detect(path)?.0 {
        Format::Csv => from_table(&csv::read(path, &|_| false)?, nodes, None),
        Format::Parquet => from_table(&parquet::read(path, &|_| false)?, nodes, None),
        Format::Npz => choose(path, from_archive(path)?, "nodes", nodes),
        Format::Idx => Err(DataError::file(
            path,
            "signals are read from CSV, Parquet, NPZ and .1D files, not from IDX: convert the file",
        )),
    }
}

/// Reads the signals of several clients from one CSV or Parquet file with a column that names the client;
/// every other column is a node. The clients come in the byte order of their names.
pub fn read_signals_by_client(path: &Path, client: &str) -> Result<Vec<(String, Signals)>, DataError> {
    let words = |name: &str| name == client;
    let table = match detect(path)?.0 {
        Format::Csv if !one_d::named_so(path) => csv::read(path, &words)?,
        Format::Parquet => parquet::read(path, &words)?,
        _ => {
            let message = format!(
                "the file has no columns with names, so none is the client column {client:?}: give one file per client"
            );
            return Err(DataError::file(path, message));
        }
    };
    let names = column(&table, "client", client)?;
    table.complete(names)?;
    let all = from_table(&table, &[], Some(client))?;
    let (codes, words) = words_of(names);
    let columns = all.nodes.len();
    let mut clients: Vec<(String, Signals)> = words
        .iter()
        .map(|name| (name.clone(), Signals { nodes: all.nodes.clone(), rows: Vec::new() }))
        .collect();
    for (row, &code) in all.rows.chunks_exact(columns).zip(codes) {
        clients[code as usize].1.rows.extend_from_slice(row);
    }
    clients.sort_by(|a, b| a.0.as_bytes().cmp(b.0.as_bytes()));
    Ok(clients)
}

/// The columns that are nodes, with a number in every cell.
fn from_table(table: &Table, nodes: &[String], client: Option<&str>) -> Result<Signals, DataError> {
    let chosen: Vec<&Column> = if nodes.is_empty() {
        table.columns.iter().filter(|column| client != Some(column.name.as_str())).collect()
    } else {
        nodes.iter().map(|name| column(table, "nodes", name)).collect::<Result<_, _>>()?
    };
    if chosen.is_empty() {
        return Err(DataError::file(&table.file, "no column is left for the nodes of a graph"));
    }
    let mut columns = Vec::with_capacity(chosen.len());
    for column in &chosen {
        if column.is_text() {
            let (row, text) = column.strays.first.clone().unwrap_or_default();
            let message = format!(
                "the column holds text such as {text:?}, which is no signal: drop the column, list the nodes, or name it as \
                 the client column if it says whose a record is"
            );
            return Err(table.cell(row, &column.name, message));
        }
        columns.push(table.numbers(column)?);
    }
    let rows = (0..table.rows).flat_map(|row| columns.iter().map(move |values| values[row])).collect();
    Ok(Signals { nodes: chosen.iter().map(|column| column.name.clone()).collect(), rows })
}

fn from_archive(path: &Path) -> Result<Signals, DataError> {
    let mut archive = Npz::open(path)?;
    let names = archive.names();
    let array = if names.iter().any(|name| name == ARRAY) {
        archive.read(ARRAY)?
    } else {
        let (mut found, mut broken) = (Vec::new(), None);
        for name in &names {
            match archive.read(name) {
                Ok(array) if array.shape.len() == 2 => found.push(array),
                Ok(_) => {}
                Err(error) => broken = broken.or(Some(error)),
            }
        }
        match (found.len(), broken) {
            (1, _) => found.remove(0),
            // The only candidate may be the one that cannot be read.
            (0, Some(error)) => return Err(error),
            (count, _) => {
                let message = format!(
                    "there is no array {ARRAY:?}, and {count} arrays with two sides (of {}): save one array {ARRAY:?}, records \
                     by rows and nodes by columns",
                    names.join(", ")
                );
                return Err(DataError::file(path, message));
            }
        }
    };
    let &[records, columns] = array.shape.as_slice() else {
        let message = format!(
            "array {ARRAY:?} has the shape {:?}: two sides are expected, records by rows and nodes by columns",
            array.shape
        );
        return Err(DataError::file(path, message));
    };
    if records == 0 || columns == 0 {
        return Err(DataError::file(path, format!("the array of {records} x {columns} holds no signals")));
    }
    let (nodes, rows) = (node_names(columns), array.values.floats().collect::<Vec<_>>());
    if let Some(at) = rows.iter().position(|value| !value.is_finite()) {
        let place = Place { file: path.to_path_buf(), at: At::Row((at / columns) as u64 + 1) };
        let message = format!("{} is not a finite number: correct the value or drop the record", rows[at]);
        return Err(DataError::Cell { place, column: nodes[at % columns].clone(), message });
    }
    Ok(Signals { nodes, rows })
}

/// These nodes of signals that were read as a whole; `key` names them.
pub(super) fn choose(
    path: &Path,
    signals: Signals,
    key: &str,
    nodes: &[String],
) -> Result<Signals, DataError> {
    if nodes.is_empty() {
        return Ok(signals);
    }
    let mut columns = Vec::with_capacity(nodes.len());
    for name in nodes {
        columns.push(signals.nodes.iter().position(|node| node == name).ok_or_else(|| {
            let hint = suggest(name, signals.nodes.iter().map(String::as_str));
            DataError::file(path, format!("there is no node {name:?}, which `{key}` names{hint}"))
        })?);
    }
    Ok(Signals { rows: signals.columns(&columns), nodes: nodes.to_vec() })
}
