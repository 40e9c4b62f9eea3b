//! AFNI text, `.1D`: numbers between blanks, one record per line, and lines of `#` that name the columns.

use super::{Signals, node_names};
use crate::error::{At, DataError, Place};
use crate::formats::csv::open;
use crate::formats::table::check_names;
use std::io::{BufRead, BufReader};
use std::path::Path;

/// Whether the name of a file says that it is one.
pub(super) fn named_so(path: &Path) -> bool {
    let ends =
        |path: &Path, ending: &str| path.extension().is_some_and(|own| own.eq_ignore_ascii_case(ending));
    ends(path, "1d") || (ends(path, "gz") && path.file_stem().is_some_and(|stem| ends(Path::new(stem), "1d")))
}

/// Reads a file, gzip or not. Where no line of `#` before the numbers has a name for every column, they are numbered.
pub(super) fn read(path: &Path) -> Result<Signals, DataError> {
    let mut header: Vec<String> = Vec::new();
    let (mut rows, mut columns) = (Vec::new(), 0);
    for (at, line) in BufReader::new(open(path)?).lines().enumerate() {
        let line = line.map_err(|source| DataError::io(path, source))?;
        let place = || Place { file: path.to_path_buf(), at: At::Line(at as u64 + 1) };
        let text = line.trim();
        if text.starts_with('#') {
            if rows.is_empty() {
                let names = text.split_whitespace().map(|name| name.trim_start_matches('#'));
                header = names.filter(|name| !name.is_empty()).map(String::from).collect();
            }
            continue;
        }
        let start = rows.len();
        for (column, cell) in text.split_whitespace().enumerate() {
            match cell.parse::<f64>() {
                Ok(value) if value.is_finite() => rows.push(value),
                _ => {
                    let message =
                        format!("{cell:?} is not a finite number: correct the cell or drop the record");
                    let column = header.get(column).cloned().unwrap_or_else(|| (column + 1).to_string());
                    return Err(DataError::Cell { place: place(), column, message });
                }
            }
        }
        let found = rows.len() - start;
        if found == 0 {
            continue;
        }
        if start == 0 {
            columns = found;
        }
        if found != columns {
            let message =
                format!("the record has {found} values but the first has {columns}: is the file cut off?");
            return Err(DataError::Record { place: place(), message });
        }
    }
    if rows.is_empty() {
        return Err(DataError::file(
            path,
            "there is no record: lines of numbers between blanks are expected",
        ));
    }
    let nodes = if header.len() == columns { header } else { node_names(columns) };
    check_names(path, &nodes)?;
    Ok(Signals { nodes, rows })
}
