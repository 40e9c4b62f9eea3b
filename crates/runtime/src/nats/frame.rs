//! What every message on the broker is wrapped in.
//!
//! ```text
//! magic "FKNP" | version u16 | kind u16 | checksum [16] | body        numbers little-endian
//! kind 0, whole: body = payload
//! kind 1, head:  body = digest [32] | length u64 | parts u32
//! kind 2, part:  body = digest [32] | length u64 | parts u32 | index u32 | bytes
//! ```
//!
//! The checksum covers the address (run, receiver, sender, slot) as well: a message that turns up under
//! another subject, because the broker or somebody who made the broker do it moved it there, does not open.
//! It is a checksum and not a signature: it proves nothing about who wrote the message.

use bytes::{BufMut, Bytes, BytesMut};

use super::subjects::Token;
use crate::transport::Payload;

/// Version of the framing. A receiver refuses any other.
pub const VERSION: u16 = 1;
/// A payload above this many bytes is cut into parts of at most this many.
pub const PART: usize = 192 * 1024;
/// Largest message on the broker.
pub const LARGEST: usize = PART + HEADER + PART_HEAD;

const MAGIC: [u8; 4] = *b"FKNP";
const HEADER: usize = 24;
const HEAD: usize = 44;
const PART_HEAD: usize = HEAD + 4;
const CONTEXT: &str = "fedkin 2025 transport frame checksum";

/// Why a message was not delivered.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Reason {
    /// It does not start like a frame.
    #[error("is not a Fedkin message")]
    NotAFrame,
    /// It ends too early.
    #[error("is truncated")]
    Truncated,
    /// It is framed by another version.
    #[error("has transport version {found}, this node speaks {VERSION}")]
    Version {
        /// The sender's version.
        found: u16,
    },
    /// It is of a kind that has no place here.
    #[error("has the unknown kind {0}")]
    Kind(u16),
    /// Its bytes changed, or it was written for another address.
    #[error("does not match its checksum: damaged, or moved from another subject")]
    Checksum,
    /// It announces more than the receiver takes.
    #[error("announces {announced} bytes, the limit is {limit}")]
    TooLarge {
        /// Bytes announced.
        announced: u64,
        /// `Limits::max_payload`.
        limit: u64,
    },
    /// Its length and its number of parts contradict each other.
    #[error("announces parts that do not add up")]
    Inconsistent,
    /// A part is not there.
    #[error("lacks part {0}")]
    Missing(u32),
    /// A part belongs to another payload: the sender replaced it meanwhile (harmless, the newer follows).
    #[error("was replaced while it was read, at part {0}")]
    Replaced(u32),
    /// The parts do not give the announced payload.
    #[error("does not match its digest")]
    Digest,
    /// The sender has too many payloads waiting.
    #[error("is one of too many payloads waiting from this sender")]
    Flood,
    /// It carries headers, which no sender of ours sets.
    #[error("carries headers: not published by a node")]
    Headers,
}

impl Reason {
    /// The same without what the sender chose: there are only so many of these, whatever comes.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::NotAFrame => "not a Fedkin message",
            Self::Truncated => "truncated",
            Self::Version { .. } => "another transport version",
            Self::Kind(_) => "unknown kind",
            Self::Checksum => "checksum",
            Self::TooLarge { .. } => "too large",
            Self::Inconsistent => "parts do not add up",
            Self::Missing(_) => "lacks a part",
            Self::Replaced(_) => "replaced while it was read",
            Self::Digest => "digest",
            Self::Flood => "too many payloads waiting",
            Self::Headers => "headers",
        }
    }
}

/// Where a message goes, where it comes from.
#[derive(Debug, Clone, Copy)]
pub(super) struct Address<'a> {
    pub(super) run: &'a str,
    pub(super) to: &'a Token,
    pub(super) from: &'a Token,
    pub(super) slot: &'a str,
}

/// What the head of a cut payload announces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Head {
    pub(super) digest: [u8; 32],
    pub(super) length: u64,
    pub(super) parts: u32,
}

/// An opened frame.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Frame {
    Whole(Bytes),
    Head(Head),
    Part { head: Head, index: u32, bytes: Bytes },
}

impl Head {
    pub(super) fn of(payload: &Payload) -> Self {
        let mut hash = blake3::Hasher::new();
        for piece in payload.pieces() {
            hash.update(piece);
        }
        Self {
            digest: *hash.finalize().as_bytes(),
            length: payload.len() as u64,
            parts: payload.len().div_ceil(PART) as u32,
        }
    }

    /// Checked before anything is buffered.
    pub(super) fn check(&self, limit: usize) -> Result<(), Reason> {
        if self.length > limit as u64 {
            return Err(Reason::TooLarge { announced: self.length, limit: limit as u64 });
        }
        let parts = self.length.div_ceil(PART as u64);
        if parts < 2 || parts != u64::from(self.parts) { Err(Reason::Inconsistent) } else { Ok(()) }
    }

    /// The bytes of one part.
    pub(super) fn range(&self, index: u32) -> std::ops::Range<usize> {
        let start = index as usize * PART;
        start..(start + PART).min(self.length as usize)
    }

    fn put(&self, out: &mut BytesMut) {
        out.put_slice(&self.digest);
        out.put_u64_le(self.length);
        out.put_u32_le(self.parts);
    }
}

/// A payload that fits: its pieces are copied here, once.
pub(super) fn whole(at: Address<'_>, payload: &Payload) -> Bytes {
    seal(at, 0, payload.len(), |out| payload.pieces().iter().for_each(|piece| out.put_slice(piece)))
}

pub(super) fn head(at: Address<'_>, head: &Head) -> Bytes {
    seal(at, 1, HEAD, |out| head.put(out))
}

/// One part of a payload that does not fit; here its bytes are copied, once.
pub(super) fn part(at: Address<'_>, head: &Head, index: u32, payload: &Payload) -> Bytes {
    let range = head.range(index);
    seal(at, 2, PART_HEAD + range.len(), |out| {
        head.put(out);
        out.put_u32_le(index);
        payload.range(range, |piece| out.put_slice(piece));
    })
}

fn seal(at: Address<'_>, kind: u16, length: usize, body: impl FnOnce(&mut BytesMut)) -> Bytes {
    let mut out = BytesMut::with_capacity(HEADER + length);
    out.put_slice(&MAGIC);
    out.put_u16_le(VERSION);
    out.put_u16_le(kind);
    out.put_bytes(0, 16);
    body(&mut out);
    let sum = checksum(at, kind, &out[HEADER..]);
    out[8..HEADER].copy_from_slice(&sum);
    out.freeze()
}

pub(super) fn open(at: Address<'_>, frame: &Bytes) -> Result<Frame, Reason> {
    if !frame.starts_with(&MAGIC) {
        return Err(if MAGIC.starts_with(frame) { Reason::Truncated } else { Reason::NotAFrame });
    }
    // The version stands before anything that it may change.
    let version = short(frame, 4).ok_or(Reason::Truncated)?;
    if version != VERSION {
        return Err(Reason::Version { found: version });
    }
    let kind = short(frame, 6).ok_or(Reason::Truncated)?;
    let sum = frame.get(8..HEADER).ok_or(Reason::Truncated)?;
    let body = frame.slice(HEADER..);
    if checksum(at, kind, &body) != sum {
        return Err(Reason::Checksum);
    }
    match kind {
        0 => Ok(Frame::Whole(body)),
        1 if body.len() == HEAD => Ok(Frame::Head(read_head(&body).ok_or(Reason::Truncated)?)),
        2 => {
            let head = read_head(&body).ok_or(Reason::Truncated)?;
            let index = number(&body, HEAD).ok_or(Reason::Truncated)?;
            Ok(Frame::Part { head, index, bytes: body.slice(PART_HEAD..) })
        }
        1 => Err(Reason::Inconsistent),
        other => Err(Reason::Kind(other)),
    }
}

fn checksum(at: Address<'_>, kind: u16, body: &[u8]) -> [u8; 16] {
    let mut hasher = blake3::Hasher::new_derive_key(CONTEXT);
    for field in [at.run, at.to.as_str(), at.from.as_str(), at.slot] {
        hasher.update(&(field.len() as u64).to_le_bytes());
        hasher.update(field.as_bytes());
    }
    hasher.update(&VERSION.to_le_bytes());
    hasher.update(&kind.to_le_bytes());
    hasher.update(body);
    let mut sum = [0; 16];
    sum.copy_from_slice(&hasher.finalize().as_bytes()[..16]);
    sum
}

fn short(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_le_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}

fn number(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

fn read_head(body: &[u8]) -> Option<Head> {
    Some(Head {
        digest: body.get(..32)?.try_into().ok()?,
        length: u64::from_le_bytes(body.get(32..40)?.try_into().ok()?),
        parts: number(body, 40)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const RUN: &str = "0123456789abcdef";

    fn payload(bytes: &'static [u8]) -> Payload {
        Bytes::from_static(bytes).into()
    }

    fn tokens() -> (Token, Token) {
        (Token::of("server"), Token::of("client"))
    }

    #[test]
    fn frames_read_back() {
        let (to, from) = tokens();
        let at = Address { run: RUN, to: &to, from: &from, slot: "up-0" };
        assert_eq!(open(at, &whole(at, &payload(b""))), Ok(Frame::Whole(Bytes::new())));
        assert_eq!(open(at, &whole(at, &payload(b"abc"))), Ok(Frame::Whole(Bytes::from_static(b"abc"))));
        let announced = Head::of(&vec![7; PART * 2 + 1].into());
        assert_eq!(announced.parts, 3);
        assert_eq!(announced.range(2), PART * 2..PART * 2 + 1);
        assert_eq!(open(at, &head(at, &announced)), Ok(Frame::Head(announced)));
        let bytes = Bytes::from(vec![7; PART]);
        let sealed = part(at, &announced, 1, &vec![7; PART * 2 + 1].into());
        assert_eq!(sealed.len(), LARGEST);
        assert_eq!(open(at, &sealed), Ok(Frame::Part { head: announced, index: 1, bytes }));
    }

    #[test]
    fn every_truncation_and_every_flipped_bit_is_noticed() {
        let (to, from) = tokens();
        let at = Address { run: RUN, to: &to, from: &from, slot: "up-0" };
        let announced = Head::of(&vec![7; PART * 2].into());
        for sealed in [
            whole(at, &payload(b"payload")),
            head(at, &announced),
            part(at, &announced, 0, &payload(b"bytes")),
        ] {
            for end in 0..sealed.len() {
                assert!(open(at, &sealed.slice(..end)).is_err(), "cut at {end}");
            }
            for bit in 0..sealed.len() * 8 {
                let mut bad = sealed.to_vec();
                bad[bit / 8] ^= 1 << (bit % 8);
                assert!(open(at, &Bytes::from(bad)).is_err(), "bit {bit}");
            }
        }
        let mut newer = whole(at, &payload(b"payload")).to_vec();
        newer[4] = 9;
        assert_eq!(open(at, &Bytes::from(newer)), Err(Reason::Version { found: 9 }));
    }

    #[test]
    fn a_frame_opens_under_its_own_address_only() {
        let (to, from) = tokens();
        let at = Address { run: RUN, to: &to, from: &from, slot: "up-0" };
        let sealed = whole(at, &payload(b"payload"));
        let others = [
            Address { run: "0123456789abcdee", ..at },
            Address { to: &from, ..at },
            Address { from: &to, ..at },
            Address { slot: "up-1", ..at },
        ];
        for other in others {
            assert_eq!(open(other, &sealed), Err(Reason::Checksum));
        }
    }

    #[test]
    fn a_head_is_refused_before_anything_is_read() {
        let limit = 64 << 20;
        let head = |length, parts| Head { digest: [0; 32], length, parts };
        assert_eq!(head(PART as u64 + 1, 2).check(limit), Ok(()));
        let huge = 100_000_000_000;
        assert_eq!(
            head(huge, 1).check(limit),
            Err(Reason::TooLarge { announced: huge, limit: limit as u64 })
        );
        assert_eq!(head(PART as u64 + 1, u32::MAX).check(limit), Err(Reason::Inconsistent));
        assert_eq!(head(0, 0).check(limit), Err(Reason::Inconsistent));
        assert_eq!(head(1, 1).check(limit), Err(Reason::Inconsistent));
    }
}
