//! The bytes of a journal.
//!
//! ```text
//! file   = header frame*
//! header = "FEDKINJ\n"  version u32  salt [32]  first u64  base u64  sum [16]
//! frame  = marker [8]  length u64  number u64  previous [16]  sum [16]  payload [length]
//! payload = (key length u32  value length u64  key  value)*
//! ```
//!
//! All numbers are little-endian. `sum` is BLAKE3 keyed with the file's random salt over everything else in
//! the header or frame, cut to 16 bytes. `previous` is the sum of the frame before (of the header for the
//! first), and numbers go on by one over all compactions. So a frame of another file, of this file before a
//! compaction, or from another place is not taken for one that belongs where it stands. `base` is the length
//! that the last compaction left: that part was durable before the file had its name, so damage in it is
//! never a torn write.

use super::disk::Storage;
use super::error::StoreError;
use std::path::{Path, PathBuf};

const MAGIC: [u8; 8] = *b"FEDKINJ\n";
const MARKER: [u8; 8] = [0xf7, b'f', b'r', b'a', b'm', b'e', 0x1a, 0xd3];
const VERSION: u32 = 2;
const FRAME: usize = 56;
/// How much is searched at a time.
const WINDOW: usize = 1 << 20;

pub(super) type Sum = [u8; 16];
pub(super) type Pair<'a> = (&'a str, &'a [u8]);

/// A value and its name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// The name.
    pub key: String,
    /// The value.
    pub bytes: Vec<u8>,
}

/// The beginning of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Header {
    pub(super) salt: [u8; 32],
    /// The number of the first frame.
    pub(super) first: u64,
    /// The length after the compaction that made the file.
    pub(super) base: u64,
}

fn cut(hash: &blake3::Hasher) -> Sum {
    let mut sum = [0; 16];
    sum.copy_from_slice(&hash.finalize().as_bytes()[..16]);
    sum
}

/// The bytes at a place that is known to exist.
fn array<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    let mut out = [0; N];
    out.copy_from_slice(&bytes[at..at + N]);
    out
}

impl Header {
    pub(super) const LENGTH: usize = 76;

    pub(super) fn encode(&self) -> (Vec<u8>, Sum) {
        let mut bytes = Vec::with_capacity(Self::LENGTH);
        bytes.extend(MAGIC);
        bytes.extend(VERSION.to_le_bytes());
        bytes.extend(self.salt);
        bytes.extend(self.first.to_le_bytes());
        bytes.extend(self.base.to_le_bytes());
        let sum = cut(blake3::Hasher::new_keyed(&self.salt).update(&bytes));
        bytes.extend(sum);
        (bytes, sum)
    }

    fn decode(path: &Path, bytes: &[u8]) -> Result<Self, StoreError> {
        if bytes[..8] != MAGIC {
            return Err(StoreError::damaged(path, 0, "this is not a journal of Fedkin"));
        }
        let found = u32::from_le_bytes(array(bytes, 8));
        if found != VERSION {
            return Err(StoreError::OtherVersion { path: path.to_path_buf(), found, known: VERSION });
        }
        let header = Self {
            salt: array(bytes, 12),
            first: u64::from_le_bytes(array(bytes, 44)),
            base: u64::from_le_bytes(array(bytes, 52)),
        };
        if header.encode().0 != bytes {
            return Err(StoreError::damaged(path, 0, "the header is not as it was written"));
        }
        Ok(header)
    }
}

/// How long the frame of these entries is.
pub(super) fn length_of(entries: &[Pair<'_>]) -> u64 {
    FRAME as u64 + entries.iter().map(|(key, bytes)| 12 + (key.len() + bytes.len()) as u64).sum::<u64>()
}

fn sum_of(salt: &[u8; 32], bytes: &[u8]) -> Sum {
    let mut hash = blake3::Hasher::new_keyed(salt);
    cut(hash.update(&bytes[..FRAME - 16]).update(&bytes[FRAME..]))
}

/// One frame and its sum.
pub(super) fn encode(salt: &[u8; 32], number: u64, previous: &Sum, entries: &[Pair<'_>]) -> (Vec<u8>, Sum) {
    let length = length_of(entries);
    let mut bytes = Vec::with_capacity(length as usize);
    bytes.extend(MARKER);
    bytes.extend((length - FRAME as u64).to_le_bytes());
    bytes.extend(number.to_le_bytes());
    bytes.extend(previous);
    bytes.extend([0; 16]);
    for (key, value) in entries {
        bytes.extend((key.len() as u32).to_le_bytes());
        bytes.extend((value.len() as u64).to_le_bytes());
        bytes.extend(key.as_bytes());
        bytes.extend(*value);
    }
    let sum = sum_of(salt, &bytes);
    bytes[FRAME - 16..FRAME].copy_from_slice(&sum);
    (bytes, sum)
}

/// The same in pieces, for a frame that is too large to be held twice; gives its sum.
pub(super) fn pieces<E>(
    salt: &[u8; 32],
    number: u64,
    previous: &Sum,
    entries: &[Pair<'_>],
    mut write: impl FnMut(&[u8]) -> Result<(), E>,
) -> Result<Sum, E> {
    let mut head = Vec::with_capacity(FRAME);
    head.extend(MARKER);
    head.extend((length_of(entries) - FRAME as u64).to_le_bytes());
    head.extend(number.to_le_bytes());
    head.extend(previous);
    let lengths = |(key, value): &Pair<'_>| {
        let mut lengths = [0; 12];
        lengths[..4].copy_from_slice(&(key.len() as u32).to_le_bytes());
        lengths[4..].copy_from_slice(&(value.len() as u64).to_le_bytes());
        lengths
    };
    let mut hash = blake3::Hasher::new_keyed(salt);
    hash.update(&head);
    for entry in entries {
        hash.update(&lengths(entry)).update(entry.0.as_bytes()).update(entry.1);
    }
    let sum = cut(&hash);
    head.extend(sum);
    write(&head)?;
    for entry in entries {
        let mut name = lengths(entry).to_vec();
        name.extend(entry.0.as_bytes());
        write(&name)?;
        write(entry.1)?;
    }
    Ok(sum)
}

fn decode(mut payload: &[u8]) -> Option<Vec<Entry>> {
    let mut entries = Vec::new();
    while !payload.is_empty() {
        let (lengths, rest) = payload.split_at_checked(12)?;
        let (key, rest) = rest.split_at_checked(u32::from_le_bytes(array(lengths, 0)) as usize)?;
        let length = usize::try_from(u64::from_le_bytes(array(lengths, 4))).ok()?;
        let (value, rest) = rest.split_at_checked(length)?;
        entries.push(Entry { key: std::str::from_utf8(key).ok()?.to_owned(), bytes: value.to_vec() });
        payload = rest;
    }
    Some(entries)
}

/// What stands at the present place of a file.
pub(super) enum Next {
    Frame(Vec<Entry>),
    End,
    /// Bytes that are no frame of this file.
    Bad,
}

/// Reads a journal frame by frame.
#[derive(Debug)]
pub(super) struct Frames {
    path: PathBuf,
    pub(super) storage: Box<dyn Storage>,
    pub(super) header: Header,
    /// Where the next frame begins.
    pub(super) at: u64,
    /// Where the last frame began.
    pub(super) last: u64,
    /// Where the file ended when it was opened.
    pub(super) end: u64,
    /// The number of the next frame.
    pub(super) number: u64,
    /// The sum of the last frame.
    pub(super) sum: Sum,
}

impl Frames {
    pub(super) fn open(path: &Path, storage: Box<dyn Storage>) -> Result<Self, StoreError> {
        let end = storage.length().map_err(StoreError::file("read", path))?;
        if end < Header::LENGTH as u64 {
            return Err(StoreError::damaged(path, 0, "it is shorter than its header"));
        }
        let mut bytes = vec![0; Header::LENGTH];
        storage.read_at(0, &mut bytes).map_err(StoreError::file("read", path))?;
        let header = Header::decode(path, &bytes)?;
        if end < header.base {
            return Err(StoreError::damaged(path, end, "its end is missing"));
        }
        let at = Header::LENGTH as u64;
        let (number, sum) = (header.first, array(&bytes, Header::LENGTH - 16));
        Ok(Self { path: path.to_path_buf(), storage, header, at, last: at, end, number, sum })
    }

    /// A frame that is whole, wherever it belongs.
    fn whole(&self, at: u64) -> Result<Option<Vec<u8>>, StoreError> {
        let left = self.end - at;
        if left < FRAME as u64 {
            return Ok(None);
        }
        let read = |offset, buffer: &mut [u8]| {
            self.storage.read_at(offset, buffer).map_err(StoreError::file("read", &self.path))
        };
        let mut head = [0; FRAME];
        read(at, &mut head)?;
        let length = u64::from_le_bytes(array(&head, 8));
        if head[..8] != MARKER || length > left - FRAME as u64 {
            return Ok(None);
        }
        let mut bytes = vec![0; FRAME + length as usize];
        bytes[..FRAME].copy_from_slice(&head);
        read(at + FRAME as u64, &mut bytes[FRAME..])?;
        Ok((array::<16>(&bytes, FRAME - 16) == sum_of(&self.header.salt, &bytes)).then_some(bytes))
    }

    pub(super) fn next(&mut self) -> Result<Next, StoreError> {
        if self.at == self.end {
            return Ok(Next::End);
        }
        let Some(bytes) = self.whole(self.at)? else { return Ok(Next::Bad) };
        let number = u64::from_le_bytes(array(&bytes, 16));
        if number != self.number || array::<16>(&bytes, 24) != self.sum {
            let what = format!("frame {number} stands where frame {} belongs", self.number);
            return Err(StoreError::damaged(&self.path, self.at, what));
        }
        let Some(entries) = decode(&bytes[FRAME..]) else {
            return Err(StoreError::damaged(&self.path, self.at, "a frame holds something unknown"));
        };
        self.sum = array(&bytes, FRAME - 16);
        self.number += 1;
        self.last = self.at;
        self.at += bytes.len() as u64;
        Ok(Next::Frame(entries))
    }

    /// Whether the bad bytes here are the torn end of a write that was never acknowledged. Anything else is
    /// an error: what a compaction left was whole once, and so was a frame with a good one after it.
    pub(super) fn torn(&self) -> Result<(), StoreError> {
        if self.at < self.header.base {
            let what = "this part was whole when the file was made";
            return Err(StoreError::damaged(&self.path, self.at, what));
        }
        // The length of the bad frame may be what is bad: look at every later byte.
        let mut window = Vec::new();
        let mut from = self.at + 1;
        while from < self.end {
            let size = (self.end - from).min((WINDOW + MARKER.len() - 1) as u64) as usize;
            window.resize(size, 0);
            self.storage.read_at(from, &mut window).map_err(StoreError::file("read", &self.path))?;
            for (step, _) in window.windows(MARKER.len()).enumerate().filter(|(_, bytes)| **bytes == MARKER) {
                let at = from + step as u64;
                if self.whole(at)?.is_some() {
                    let what = format!("a frame is bad, but one at byte {at} after it is good");
                    return Err(StoreError::damaged(&self.path, self.at, what));
                }
            }
            from += WINDOW as u64;
        }
        Ok(())
    }
}
