//! A table of a user's file, column by column, with the way back to the line each row came from.

use crate::error::{At, DataError, Place};
use std::collections::HashMap;
use std::path::{Path, PathBuf};

/// What stands for a value nobody wrote down, in a column of numbers.
const MISSING: [&str; 7] = ["", "?", "na", "n/a", "nan", "null", "none"];
/// Distinct words kept of a column that was expected to hold numbers, for the message.
const SAMPLES: usize = 12;

/// A file as columns of equal length.
#[derive(Debug, Clone)]
pub struct Table {
    /// Where it came from.
    pub file: PathBuf,
    /// Number of records.
    pub rows: usize,
    /// The columns in the order of the file; names are distinct and not empty.
    pub columns: Vec<Column>,
    /// The line of each row, where the file has lines.
    lines: Option<Vec<u64>>,
}

/// One column.
#[derive(Debug, Clone)]
pub struct Column {
    /// Its name in the header.
    pub name: String,
    /// What it holds.
    pub cells: Cells,
    /// How many cells are missing.
    pub missing: usize,
    /// The first row with a missing cell.
    pub first_missing: Option<usize>,
    /// Cells of a column of numbers that are not numbers.
    pub strays: Strays,
}

/// What a column holds.
#[derive(Debug, Clone)]
pub enum Cells {
    /// Numbers; NaN where a cell is missing or not a number.
    Numbers(Vec<f64>),
    /// Words, each stored once.
    Words {
        /// Index into `words` by row.
        codes: Vec<u32>,
        /// The distinct words by first appearance.
        words: Vec<String>,
    },
    /// A type that is neither; the text names it.
    Other(String),
}

/// Cells that were expected to be numbers and are not.
#[derive(Debug, Clone, Default)]
pub struct Strays {
    /// How many.
    pub count: usize,
    /// The first one: its row and text.
    pub first: Option<(usize, String)>,
    /// Some of the distinct texts.
    pub samples: Vec<String>,
}

impl Column {
    /// The word in a row of a column of words.
    pub fn word(&self, row: usize) -> Option<&str> {
        match &self.cells {
            Cells::Words { codes, words } => {
                codes.get(row).and_then(|&code| words.get(code as usize)).map(String::as_str)
            }
            _ => None,
        }
    }

    /// Whether no cell holds a number although numbers were looked for.
    pub fn is_text(&self) -> bool {
        match &self.cells {
            Cells::Words { .. } => true,
            Cells::Numbers(values) => self.strays.count > 0 && values.iter().all(|value| value.is_nan()),
            Cells::Other(_) => false,
        }
    }
}

impl Table {
    /// Puts columns together; the caller has checked that they have `rows` cells each.
    pub(crate) fn new(file: &Path, rows: usize, columns: Vec<Column>, lines: Option<Vec<u64>>) -> Self {
        Self { file: file.to_path_buf(), rows, columns, lines }
    }

    /// The column of this name.
    pub fn find(&self, name: &str) -> Option<&Column> {
        self.columns.iter().find(|column| column.name == name)
    }

    /// Where a row stands in the file.
    pub fn place(&self, row: usize) -> Place {
        let line = self.lines.as_ref().and_then(|lines| lines.get(row));
        let at = line.map_or(At::Row(row as u64 + 1), |&line| At::Line(line));
        Place { file: self.file.clone(), at }
    }

    /// An error at one cell.
    pub(crate) fn cell(&self, row: usize, column: &str, message: impl Into<String>) -> DataError {
        DataError::Cell { place: self.place(row), column: column.to_string(), message: message.into() }
    }

    /// An error at one record.
    pub(crate) fn record(&self, row: usize, message: impl Into<String>) -> DataError {
        DataError::Record { place: self.place(row), message: message.into() }
    }

    /// Refuses a column with missing cells.
    pub(crate) fn complete(&self, column: &Column) -> Result<(), DataError> {
        match column.first_missing {
            Some(row) => {
                let more = match column.missing {
                    0 | 1 => String::new(),
                    count => format!(" (as are {} more cells of this column)", count - 1),
                };
                let message = format!(
                    "the cell is empty or missing{more}: fill it in or drop the record, values are never guessed"
                );
                Err(self.cell(row, &column.name, message))
            }
            None => Ok(()),
        }
    }

    /// The numbers of a column that must have one in every row.
    pub(crate) fn numbers<'a>(&self, column: &'a Column) -> Result<&'a [f64], DataError> {
        match &column.cells {
            Cells::Numbers(values) => {
                // The earlier of the two kinds of hole is reported, so that a user works down the file.
                let stray = column.strays.first.as_ref();
                let stray_first =
                    stray.is_some_and(|(row, _)| column.first_missing.is_none_or(|gap| *row < gap));
                match stray {
                    Some((row, text)) if stray_first => Err(self.cell(
                        *row,
                        &column.name,
                        format!("{text:?} is not a finite number: correct the cell"),
                    )),
                    _ => self.complete(column).map(|()| values.as_slice()),
                }
            }
            Cells::Words { words, .. } => {
                let sample = words.first().map_or("", String::as_str);
                Err(self.cell(
                    0,
                    &column.name,
                    format!("a number is expected but the column holds text such as {sample:?}"),
                ))
            }
            Cells::Other(kind) => Err(DataError::file(
                &self.file,
                format!(
                    "column {:?} has the type {kind}: convert it to a number or leave it out of `features`",
                    column.name
                ),
            )),
        }
    }
}

/// Fills a column cell by cell.
#[derive(Debug)]
pub(crate) struct Builder {
    column: Column,
    known: HashMap<String, u32>,
    rows: usize,
}

impl Builder {
    pub(crate) fn new(name: &str, words: bool) -> Self {
        let cells = if words {
            Cells::Words { codes: Vec::new(), words: Vec::new() }
        } else {
            Cells::Numbers(Vec::new())
        };
        let column = Column {
            name: name.to_string(),
            cells,
            missing: 0,
            first_missing: None,
            strays: Strays::default(),
        };
        Self { column, known: HashMap::new(), rows: 0 }
    }

    /// A cell as text.
    pub(crate) fn text(&mut self, text: &str) {
        let text = text.trim();
        match &mut self.column.cells {
            Cells::Words { .. } if text.is_empty() => return self.gap(),
            Cells::Words { codes, words } => {
                let code = self.known.get(text).copied().unwrap_or_else(|| {
                    let code = words.len() as u32;
                    words.push(text.to_string());
                    self.known.insert(text.to_string(), code);
                    code
                });
                codes.push(code);
            }
            Cells::Numbers(values) => match text.parse::<f64>() {
                Ok(value) if value.is_finite() => values.push(value),
                _ if MISSING.iter().any(|word| text.eq_ignore_ascii_case(word)) => return self.gap(),
                _ => {
                    values.push(f64::NAN);
                    self.column.strays.add(self.rows, text);
                }
            },
            Cells::Other(_) => {}
        }
        self.rows += 1;
    }

    /// A cell as a number.
    pub(crate) fn number(&mut self, value: f64) {
        match &mut self.column.cells {
            Cells::Numbers(values) if value.is_finite() => {
                values.push(value);
                self.rows += 1;
            }
            Cells::Numbers(_) if value.is_nan() => self.gap(),
            _ => self.text(&value.to_string()),
        }
    }

    /// A cell as a whole number; names of clients keep all their digits.
    pub(crate) fn integer(&mut self, value: i128) {
        match &self.column.cells {
            Cells::Words { .. } => self.text(&value.to_string()),
            _ => self.number(value as f64),
        }
    }

    /// A cell that is not there.
    pub(crate) fn gap(&mut self) {
        self.column.missing += 1;
        self.column.first_missing.get_or_insert(self.rows);
        match &mut self.column.cells {
            Cells::Words { codes, .. } => codes.push(u32::MAX),
            Cells::Numbers(values) => values.push(f64::NAN),
            Cells::Other(_) => {}
        }
        self.rows += 1;
    }

    pub(crate) fn finish(self) -> Column {
        self.column
    }
}

impl Strays {
    fn add(&mut self, row: usize, text: &str) {
        self.count += 1;
        if self.first.is_none() {
            self.first = Some((row, text.to_string()));
        }
        if self.samples.len() < SAMPLES && self.samples.iter().all(|sample| sample != text) {
            self.samples.push(text.to_string());
        }
    }
}

/// Refuses headers that cannot name columns; `header` is where they stand.
pub(crate) fn check_header(file: &Path, names: &[String]) -> Result<(), DataError> {
    let refuse = |message: String| Err(DataError::file(file, message));
    if names.len() > 1 && names.iter().all(|name| name.parse::<f64>().is_ok()) {
        return refuse(format!(
            "the first line holds numbers ({}, {}, ...), not column names: add a header line",
            names[0], names[1]
        ));
    }
    if let [only] = names
        && let Some(other) = [';', '\t', '|'].into_iter().find(|&other| only.contains(other))
    {
        return refuse(format!(
            "the header has no comma but {other:?}: write the file with commas between the cells"
        ));
    }
    if let Some(at) = names.iter().position(String::is_empty) {
        return refuse(format!(
            "column {} has no name in the header: name it, or drop it if it is a row index",
            at + 1
        ));
    }
    check_names(file, names)
}

/// Refuses a name that two columns have.
pub(crate) fn check_names(file: &Path, names: &[String]) -> Result<(), DataError> {
    let mut seen = HashMap::new();
    for (at, name) in names.iter().enumerate() {
        if let Some(first) = seen.insert(name, at) {
            let message = format!(
                "the header names {name:?} twice (columns {} and {}): rename one of them",
                first + 1,
                at + 1
            );
            return Err(DataError::file(file, message));
        }
    }
    Ok(())
}
