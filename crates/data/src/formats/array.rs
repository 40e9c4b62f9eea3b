//! Arrays of numbers as IDX and NPY files hold them.

use crate::error::DataError;
use std::io::Read;
use std::path::Path;

/// No array of more bytes than this is unpacked: a garbled header must not ask for all memory.
const MOST_BYTES: u64 = 1 << 31;

/// An array in row-major order.
#[derive(Debug, Clone, PartialEq)]
pub struct Array {
    /// Its sides; the product is the number of values.
    pub shape: Vec<usize>,
    /// Its values.
    pub values: Numbers,
}

/// Bytes stay bytes (images are large); all else becomes f64.
#[derive(Debug, Clone, PartialEq)]
pub enum Numbers {
    /// Unsigned bytes.
    Bytes(Vec<u8>),
    /// Anything else.
    Floats(Vec<f64>),
}

impl Numbers {
    /// Number of values.
    pub fn len(&self) -> usize {
        match self {
            Self::Bytes(values) => values.len(),
            Self::Floats(values) => values.len(),
        }
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The values as numbers.
    pub fn floats(&self) -> Box<dyn Iterator<Item = f64> + '_> {
        match self {
            Self::Bytes(values) => Box::new(values.iter().map(|&value| f64::from(value))),
            Self::Floats(values) => Box::new(values.iter().copied()),
        }
    }
}

/// The type of one value in a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Element {
    pub(crate) kind: ElementKind,
    pub(crate) bytes: usize,
    pub(crate) big_endian: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ElementKind {
    Unsigned,
    Signed,
    Float,
}

impl Element {
    pub(crate) fn name(self) -> String {
        let word = match self.kind {
            ElementKind::Unsigned => "u",
            ElementKind::Signed => "i",
            ElementKind::Float => "f",
        };
        format!("{word}{}", 8 * self.bytes)
    }

    fn decode(self, raw: &[u8]) -> f64 {
        let mut wide = [0u8; 8];
        for (slot, byte) in wide.iter_mut().zip(raw.iter().rev()) {
            *slot = *byte;
        }
        if !self.big_endian {
            wide = [0; 8];
            wide[..raw.len()].copy_from_slice(raw);
        }
        let bits = u64::from_le_bytes(wide);
        let unused = 64 - 8 * raw.len() as u32;
        match (self.kind, raw.len()) {
            (ElementKind::Float, 4) => f64::from(f32::from_bits(bits as u32)),
            (ElementKind::Float, _) => f64::from_bits(bits),
            (ElementKind::Signed, _) => ((bits << unused) as i64 >> unused) as f64,
            (ElementKind::Unsigned, _) => bits as f64,
        }
    }
}

/// Reads the values behind a header and insists that the file has exactly as many as the shape says.
pub(crate) fn read_values(
    path: &Path,
    input: &mut dyn Read,
    shape: Vec<usize>,
    element: Element,
) -> Result<Array, DataError> {
    let count = shape.iter().try_fold(1u64, |product, &side| product.checked_mul(side as u64));
    let bytes =
        count.and_then(|count| count.checked_mul(element.bytes as u64)).filter(|&bytes| bytes <= MOST_BYTES);
    let Some(bytes) = bytes else {
        let message = format!(
            "the header claims an array of shape {shape:?}, more than {MOST_BYTES} bytes: is the file damaged?"
        );
        return Err(DataError::file(path, message));
    };
    let mut raw = Vec::new();
    // One byte more than wanted shows whether something follows.
    input.take(bytes + 1).read_to_end(&mut raw).map_err(|error| {
        DataError::file(
            path,
            format!("the file ends or breaks inside an array of shape {shape:?} ({error}): fetch it again"),
        )
    })?;
    if raw.len() as u64 != bytes {
        let found = if raw.len() as u64 > bytes { "more".to_string() } else { raw.len().to_string() };
        let message = format!(
            "an array of shape {shape:?} has {bytes} bytes but the file holds {found}: fetch it again"
        );
        return Err(DataError::file(path, message));
    }
    let values = if element.kind == ElementKind::Unsigned && element.bytes == 1 {
        Numbers::Bytes(raw)
    } else {
        Numbers::Floats(raw.chunks_exact(element.bytes).map(|part| element.decode(part)).collect())
    };
    Ok(Array { shape, values })
}
