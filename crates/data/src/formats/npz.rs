//! `NumPy` archives: a zip of NPY files, each a short text header and raw values. The one place that reads and writes NPY.
//!
//! Written by hand on purpose: docs/decisions/0027.

use super::array::{Array, Element, ElementKind, read_values};
use crate::error::DataError;
use std::fs::File;
use std::io::{BufReader, Cursor, Read, Write};
use std::path::{Path, PathBuf};
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipArchive, ZipWriter};

/// How an NPY file starts.
const MAGIC: &[u8] = b"\x93NUMPY";
/// No header of more bytes than this is read.
const MOST_HEADER: usize = 1 << 16;
/// No text of more bytes than this is unpacked.
const MOST_TEXT: u64 = 1 << 26;

type Archive = ZipArchive<BufReader<File>>;

/// An open archive; arrays are unpacked one at a time, when asked for.
pub struct Npz {
    path: PathBuf,
    archive: Archive,
}

impl Npz {
    /// Opens an archive and reads its list of arrays.
    pub fn open(path: &Path) -> Result<Self, DataError> {
        let file = File::open(path).map_err(|source| DataError::io(path, source))?;
        let archive = ZipArchive::new(BufReader::new(file)).map_err(|error| {
            DataError::file(
                path,
                format!("this is not an NPZ archive, or it is damaged ({error}): fetch it again"),
            )
        })?;
        Ok(Self { path: path.to_path_buf(), archive })
    }

    /// The names of the arrays, in byte order.
    pub fn names(&self) -> Vec<String> {
        names(&self.archive)
    }

    /// Unpacks one array.
    pub fn read(&mut self, name: &str) -> Result<Array, DataError> {
        self.read_typed(name).map(|(array, _)| array)
    }

    /// The array and the name of its type.
    pub(crate) fn read_typed(&mut self, name: &str) -> Result<(Array, String), DataError> {
        let (header, mut values) = enter(&self.path, &mut self.archive, name)?;
        let element = parse_type(&header.descr).ok_or_else(|| {
            let descr = header.descr;
            refuse(&self.path, name, &format!("values of type {descr:?} are not read: save numbers"))
        })?;
        Ok((read_values(&self.path, &mut values, header.shape, element)?, element.name()))
    }

    /// Unpacks one array of text, all sides in one list; none where it holds numbers. Blanks around a text are dropped.
    pub fn read_text(&mut self, name: &str) -> Result<Option<Vec<String>>, DataError> {
        let (header, values) = enter(&self.path, &mut self.archive, name)?;
        read_text(&header, values).map_err(|message| refuse(&self.path, name, &message))
    }
}

fn names(archive: &Archive) -> Vec<String> {
    let entries = archive.file_names().filter_map(Result::ok);
    let mut names: Vec<String> =
        entries.filter_map(|name| name.strip_suffix(".npy").map(String::from)).collect();
    names.sort_unstable();
    names
}

/// The header of an array, and what follows it.
fn enter(path: &Path, archive: &mut Archive, name: &str) -> Result<(Header, impl Read), DataError> {
    let known = names(archive);
    if !known.iter().any(|known| known == name) {
        let message = format!("there is no array {name:?}; the archive has {}", known.join(", "));
        return Err(DataError::file(path, message));
    }
    let mut entry = archive
        .by_name(&format!("{name}.npy"))
        .map_err(|error| DataError::file(path, format!("array {name:?} cannot be unpacked: {error}")))?;
    let cut = |error: std::io::Error| {
        DataError::file(path, format!("array {name:?} is cut off in its header: {error}"))
    };
    let mut start = [0u8; 10];
    entry.read_exact(&mut start).map_err(cut)?;
    if !start.starts_with(MAGIC) {
        return Err(DataError::file(path, format!("array {name:?} is not in NPY format")));
    }
    let mut length = usize::from(u16::from_le_bytes([start[8], start[9]]));
    if start[6] >= 2 {
        let mut high = [0u8; 2];
        entry.read_exact(&mut high).map_err(cut)?;
        length |= usize::from(u16::from_le_bytes(high)) << 16;
    }
    if length > MOST_HEADER {
        let message = format!("array {name:?} has a header of {length} bytes: is the file damaged?");
        return Err(DataError::file(path, message));
    }
    let mut header = vec![0u8; length];
    entry.read_exact(&mut header).map_err(cut)?;
    let header = parse_header(&String::from_utf8_lossy(&header));
    Ok((header.map_err(|message| refuse(path, name, &message))?, entry))
}

fn refuse(path: &Path, name: &str, message: &str) -> DataError {
    DataError::file(path, format!("array {name:?}: {message}"))
}

struct Header {
    /// The type of the values, such as `<f8`.
    descr: String,
    shape: Vec<usize>,
}

/// Reads `{'descr': '|u1', 'fortran_order': False, 'shape': (10, 28, 28), }`.
fn parse_header(header: &str) -> Result<Header, String> {
    let field = |key: &str| {
        let after = header.split_once(&format!("'{key}'"))?.1.trim_start().strip_prefix(':')?;
        Some(after.trim_start())
    };
    let descr =
        field("descr").and_then(|text| text.strip_prefix('\'')).and_then(|text| text.split('\'').next());
    let descr = descr.ok_or("the header has no plain type (structured arrays are not read)")?.to_string();
    let fortran = field("fortran_order").ok_or("the header does not say fortran_order")?;
    let sides = field("shape").and_then(|text| text.strip_prefix('(')).and_then(|text| text.split_once(')'));
    let mut shape = Vec::new();
    for side in
        sides.ok_or("the header has no shape")?.0.split(',').map(str::trim).filter(|side| !side.is_empty())
    {
        shape.push(side.parse::<usize>().map_err(|_| format!("{side:?} is not the side of an array"))?);
    }
    if fortran.starts_with("True") && shape.len() > 1 {
        return Err("the array is column-major: save it with numpy.ascontiguousarray".into());
    }
    Ok(Header { descr, shape })
}

fn parse_type(descr: &str) -> Option<Element> {
    let mut letters = descr.chars();
    let big_endian = match letters.next()? {
        '<' | '|' | '=' => false,
        '>' => true,
        _ => return None,
    };
    let kind = match letters.next()? {
        'u' | 'b' => ElementKind::Unsigned,
        'i' => ElementKind::Signed,
        'f' => ElementKind::Float,
        _ => return None,
    };
    let bytes = letters.as_str().parse().ok()?;
    let known = match kind {
        ElementKind::Float => matches!(bytes, 4 | 8),
        _ => matches!(bytes, 1 | 2 | 4 | 8),
    };
    known.then_some(Element { kind, bytes, big_endian })
}

/// Text of fixed width, in bytes (`S`) or in letters of four bytes (`U`), filled up with zeros.
fn read_text(header: &Header, values: impl Read) -> Result<Option<Vec<String>>, String> {
    let descr = &header.descr;
    let mut letters = descr.chars();
    let big_endian = letters.next() == Some('>');
    let size = match letters.next() {
        Some('U') => 4,
        Some('S') => 1,
        Some('O') => return Err("it holds Python objects: save it with numpy.array(names, dtype=str)".into()),
        _ => return Ok(None),
    };
    let width = letters.as_str().parse::<usize>().ok().and_then(|width| width.checked_mul(size));
    let width =
        width.filter(|&width| width > 0).ok_or_else(|| format!("its type {descr:?} is not understood"))?;
    let bytes = header.shape.iter().try_fold(width as u64, |bytes, &side| bytes.checked_mul(side as u64));
    let bytes = bytes.filter(|&bytes| bytes <= MOST_TEXT).ok_or("it is too large for names")?;
    let mut raw = Vec::new();
    // One byte more than wanted shows whether something follows.
    let read = values.take(bytes + 1).read_to_end(&mut raw);
    read.map_err(|error| format!("it cannot be unpacked: {error}"))?;
    match (raw.len() as u64).cmp(&bytes) {
        std::cmp::Ordering::Less => return Err("it is cut off".into()),
        std::cmp::Ordering::Greater => return Err("it holds more than its shape says".into()),
        std::cmp::Ordering::Equal => {}
    }
    let letter = |raw: &[u8]| match *raw {
        [a, b, c, d] if big_endian => u32::from_be_bytes([a, b, c, d]),
        [a, b, c, d] => u32::from_le_bytes([a, b, c, d]),
        _ => raw.first().copied().map_or(0, u32::from),
    };
    let name = |raw: &[u8]| {
        let letters = raw.chunks_exact(size).map(letter).take_while(|&letter| letter != 0);
        let text: String =
            letters.map(|letter| char::from_u32(letter).unwrap_or(char::REPLACEMENT_CHARACTER)).collect();
        text.trim().to_string()
    };
    Ok(Some(raw.chunks_exact(width).map(name).collect()))
}

/// One row of values to be written.
#[derive(Debug, Clone, Copy)]
pub enum Row<'a> {
    /// Numbers.
    Floats(&'a [f64]),
    /// Text.
    Text(&'a [String]),
}

/// An archive of rows by name, stored without packing: the same rows give the same bytes.
pub fn archive(rows: &[(&str, Row<'_>)]) -> Result<Vec<u8>, String> {
    let mut archive = ZipWriter::new(Cursor::new(Vec::new()));
    let options = SimpleFileOptions::default().compression_method(CompressionMethod::Stored);
    let mut put = |name: &str, row: Row<'_>| {
        let bytes = npy(row);
        archive.start_file(format!("{name}.npy"), options)?;
        Ok::<(), zip::result::ZipError>(archive.write_all(&bytes)?)
    };
    let done = rows.iter().try_for_each(|(name, row)| put(name, *row));
    let finished = done.and_then(|()| archive.finish());
    Ok(finished.map_err(|error| format!("the archive cannot be put together: {error}"))?.into_inner())
}

fn npy(row: Row<'_>) -> Vec<u8> {
    match row {
        Row::Floats(values) => {
            let mut bytes = head("<f8", values.len());
            bytes.extend(values.iter().flat_map(|value| value.to_le_bytes()));
            bytes
        }
        Row::Text(texts) => {
            let widest = texts.iter().map(|text| text.chars().count()).max().unwrap_or(0).max(1);
            let mut bytes = head(&format!("<U{widest}"), texts.len());
            for text in texts {
                let letters = text.chars().map(u32::from).chain(std::iter::repeat(0)).take(widest);
                bytes.extend(letters.flat_map(u32::to_le_bytes));
            }
            bytes
        }
    }
}

/// The head of an NPY file, version 1: the values start at a multiple of 64 bytes.
fn head(descr: &str, length: usize) -> Vec<u8> {
    let mut text = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': ({length},), }}");
    while !(10 + text.len() + 1).is_multiple_of(64) {
        text.push(' ');
    }
    text.push('\n');
    let mut head = [MAGIC, b"\x01\x00"].concat();
    head.extend((text.len() as u16).to_le_bytes());
    head.extend(text.into_bytes());
    head
}
