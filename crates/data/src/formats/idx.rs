//! IDX files, the format of MNIST: a type byte, the sides as big-endian u32, then the values.

use super::array::{Array, Element, ElementKind, read_values};
use super::csv::open;
use crate::error::DataError;
use std::io::Read;
use std::path::Path;

/// Reads an IDX file, gzip or not.
pub fn read(path: &Path) -> Result<Array, DataError> {
    read_typed(path).map(|(array, _)| array)
}

/// The array and the name of its type.
pub(crate) fn read_typed(path: &Path) -> Result<(Array, String), DataError> {
    let mut input = open(path)?;
    let mut short = |error: std::io::Error| {
        DataError::file(
            path,
            format!("this is not an IDX file, or it is cut off in its header ({error}): fetch it again"),
        )
    };
    let mut magic = [0u8; 4];
    input.read_exact(&mut magic).map_err(&mut short)?;
    let [0, 0, code, sides] = magic else {
        return Err(DataError::file(path, "this is not an IDX file: it does not start with two zero bytes"));
    };
    let (kind, bytes) = match code {
        0x08 => (ElementKind::Unsigned, 1),
        0x09 => (ElementKind::Signed, 1),
        0x0b => (ElementKind::Signed, 2),
        0x0c => (ElementKind::Signed, 4),
        0x0d => (ElementKind::Float, 4),
        0x0e => (ElementKind::Float, 8),
        _ => {
            return Err(DataError::file(
                path,
                format!("this is not an IDX file: it has no value type {code:#04x}"),
            ));
        }
    };
    let element = Element { kind, bytes, big_endian: true };
    let mut shape = Vec::with_capacity(usize::from(sides));
    for _ in 0..sides {
        let mut side = [0u8; 4];
        input.read_exact(&mut side).map_err(&mut short)?;
        shape.push(u32::from_be_bytes(side) as usize);
    }
    Ok((read_values(path, &mut input, shape, element)?, element.name()))
}
