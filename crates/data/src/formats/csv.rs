//! CSV files: a header line, commas, quotes as in RFC 4180; gzip is recognised by its first bytes.

use super::table::{Builder, Table, check_header};
use crate::error::{At, DataError, Place};
use flate2::read::MultiGzDecoder;
use std::cell::RefCell;
use std::collections::VecDeque;
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::rc::Rc;

/// Opens a file and unpacks it on the way if it is gzip.
pub(crate) fn open(path: &Path) -> Result<Box<dyn Read>, DataError> {
    let file = File::open(path).map_err(|source| DataError::io(path, source))?;
    let mut reader = BufReader::with_capacity(1 << 16, file);
    let start = reader.fill_buf().map_err(|source| DataError::io(path, source))?;
    if start.starts_with(&[0x1f, 0x8b]) {
        Ok(Box::new(MultiGzDecoder::new(reader)))
    } else {
        Ok(Box::new(reader))
    }
}

/// Reads a file; `words` says which columns hold text whatever their cells look like.
pub fn read(path: &Path, words: &dyn Fn(&str) -> bool) -> Result<Table, DataError> {
    read_from(path, open(path)?, words)
}

fn read_from(path: &Path, input: impl Read, words: &dyn Fn(&str) -> bool) -> Result<Table, DataError> {
    let starts = Starts::default();
    let input = LineCounter { input, offset: 0, line: 1, at_start: true, starts: Rc::clone(&starts) };
    let mut reader = ::csv::ReaderBuilder::new().flexible(true).from_reader(input);
    let header = reader.byte_headers().map_err(|error| broken(path, &error))?;
    let mut names = Vec::with_capacity(header.len());
    for name in header {
        let name = std::str::from_utf8(name)
            .map_err(|_| DataError::file(path, "the header is not UTF-8 text: is this a CSV file?"))?;
        names.push(name.trim().to_string());
    }
    if names.is_empty() {
        return Err(DataError::file(path, "the file is empty: a header line and records are expected"));
    }
    check_header(path, &names)?;
    let mut builders: Vec<Builder> = names.iter().map(|name| Builder::new(name, words(name))).collect();
    let (mut record, mut lines) = (::csv::ByteRecord::new(), Vec::new());
    while reader.read_byte_record(&mut record).map_err(|error| broken(path, &error))? {
        let line = line_at(&starts, record.position().map_or(0, ::csv::Position::byte));
        let place = || Place { file: path.to_path_buf(), at: At::Line(line) };
        if record.len() != names.len() {
            let message = format!(
                "the record has {} cells but the header has {}: check for a missing comma or quote",
                record.len(),
                names.len()
            );
            return Err(DataError::Record { place: place(), message });
        }
        for (builder, (cell, name)) in builders.iter_mut().zip(record.iter().zip(&names)) {
            let text = std::str::from_utf8(cell).map_err(|_| DataError::Cell {
                place: place(),
                column: name.clone(),
                message: "the cell is not UTF-8 text: save the file as UTF-8".into(),
            })?;
            builder.text(text);
        }
        lines.push(line);
    }
    if lines.is_empty() {
        return Err(DataError::file(path, "there is a header but no record"));
    }
    let columns = builders.into_iter().map(Builder::finish).collect();
    Ok(Table::new(path, lines.len(), columns, Some(lines)))
}

/// Byte offset and number of lines that are not empty and may still be asked for.
type Starts = Rc<RefCell<VecDeque<(u64, u64)>>>;

/// Counts lines on the way to the parser, whose own count is off after empty lines and with CRLF.
struct LineCounter<R> {
    input: R,
    offset: u64,
    line: u64,
    at_start: bool,
    starts: Starts,
}

impl<R: Read> Read for LineCounter<R> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let count = self.input.read(buffer)?;
        let mut starts = self.starts.borrow_mut();
        for &byte in &buffer[..count] {
            match byte {
                b'\n' => {
                    self.line += 1;
                    self.at_start = true;
                }
                b'\r' => {}
                _ if self.at_start => {
                    starts.push_back((self.offset, self.line));
                    self.at_start = false;
                }
                _ => {}
            }
            self.offset += 1;
        }
        Ok(count)
    }
}

/// The line of the record that starts at a byte or after the empty lines that follow it.
/// Records come in order, so earlier lines are forgotten.
fn line_at(starts: &Starts, byte: u64) -> u64 {
    let mut starts = starts.borrow_mut();
    while starts.front().is_some_and(|(offset, _)| *offset < byte) {
        starts.pop_front();
    }
    starts.front().map_or(0, |(_, line)| *line)
}

fn broken(path: &Path, error: &::csv::Error) -> DataError {
    DataError::file(path, format!("the file cannot be read as CSV: {error}"))
}
