//! `NumPy` archives: a zip of NPY files, each a short text header and raw values.

use crate::array::{Array, Element, ElementKind, read_values};
use crate::error::DataError;
use std::fs::File;
use std::io::{BufReader, Read};
use std::path::{Path, PathBuf};
use zip::ZipArchive;

/// An open archive; arrays are unpacked one at a time, when asked for.
pub struct Npz {
    path: PathBuf,
    archive: ZipArchive<BufReader<File>>,
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
        let entries = self.archive.file_names().filter_map(Result::ok);
        let mut names: Vec<String> =
            entries.filter_map(|name| name.strip_suffix(".npy").map(String::from)).collect();
        names.sort_unstable();
        names
    }

    /// Unpacks one array.
    pub fn read(&mut self, name: &str) -> Result<Array, DataError> {
        self.read_typed(name).map(|(array, _)| array)
    }

    /// The array and the name of its type.
    pub(crate) fn read_typed(&mut self, name: &str) -> Result<(Array, String), DataError> {
        let known = self.names();
        let refuse = |message: String| DataError::file(&self.path, message);
        if !known.iter().any(|known| known == name) {
            return Err(refuse(format!("there is no array {name:?}; the archive has {}", known.join(", "))));
        }
        let mut entry = self
            .archive
            .by_name(&format!("{name}.npy"))
            .map_err(|error| refuse(format!("array {name:?} cannot be unpacked: {error}")))?;
        let mut start = [0u8; 10];
        let cut = |error: std::io::Error| refuse(format!("array {name:?} is cut off in its header: {error}"));
        entry.read_exact(&mut start).map_err(cut)?;
        if !start.starts_with(b"\x93NUMPY") {
            return Err(refuse(format!("array {name:?} is not in NPY format")));
        }
        let mut length = usize::from(u16::from_le_bytes([start[8], start[9]]));
        if start[6] >= 2 {
            let mut high = [0u8; 2];
            entry.read_exact(&mut high).map_err(cut)?;
            length |= usize::from(u16::from_le_bytes(high)) << 16;
        }
        if length > 1 << 16 {
            return Err(refuse(format!(
                "array {name:?} has a header of {length} bytes: is the file damaged?"
            )));
        }
        let mut header = vec![0u8; length];
        entry.read_exact(&mut header).map_err(cut)?;
        let (element, shape) = parse_header(&String::from_utf8_lossy(&header))
            .map_err(|message| refuse(format!("array {name:?}: {message}")))?;
        Ok((read_values(&self.path, &mut entry, shape, element)?, element.name()))
    }
}

/// Reads `{'descr': '|u1', 'fortran_order': False, 'shape': (10, 28, 28), }`.
fn parse_header(header: &str) -> Result<(Element, Vec<usize>), String> {
    let field = |key: &str| {
        let after = header.split_once(&format!("'{key}'"))?.1.trim_start().strip_prefix(':')?;
        Some(after.trim_start())
    };
    let descr =
        field("descr").and_then(|text| text.strip_prefix('\'')).and_then(|text| text.split('\'').next());
    let descr = descr.ok_or("the header has no plain type (structured arrays are not read)")?;
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
    Ok((
        parse_type(descr).ok_or_else(|| format!("values of type {descr:?} are not read: save numbers"))?,
        shape,
    ))
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
