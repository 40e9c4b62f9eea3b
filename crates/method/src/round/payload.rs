//! A payload in pieces: what is long is shared, and copied only where a transport puts it on the wire.

use bytes::Bytes;
use fedkin_numeric::codec::Sink;
use std::ops::Range;

/// Shorter parts are copied together: sharing them would cost more than copying.
const SHARED: usize = 4096;

/// Bytes for another node, in pieces.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Payload {
    pieces: Vec<Bytes>,
    length: usize,
}

impl Payload {
    /// How many bytes.
    pub fn len(&self) -> usize {
        self.length
    }

    /// Whether there is no byte.
    pub fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// The pieces, in order.
    pub fn pieces(&self) -> &[Bytes] {
        &self.pieces
    }

    /// Calls `out` with the bytes of a range, piece by piece.
    pub fn range(&self, range: Range<usize>, mut out: impl FnMut(&[u8])) {
        let mut start = 0;
        for piece in &self.pieces {
            let (from, to) = (range.start.max(start), range.end.min(start + piece.len()));
            if from < to {
                out(&piece[from - start..to - start]);
            }
            start += piece.len();
        }
    }

    /// All of it in one piece: copied once where there are several.
    pub fn to_bytes(&self) -> Bytes {
        match &self.pieces[..] {
            [one] => one.clone(),
            several => several.concat().into(),
        }
    }
}

impl From<Bytes> for Payload {
    fn from(bytes: Bytes) -> Self {
        Self { length: bytes.len(), pieces: vec![bytes] }
    }
}

impl From<Vec<u8>> for Payload {
    fn from(bytes: Vec<u8>) -> Self {
        Bytes::from(bytes).into()
    }
}

/// Where the parts of a message go.
pub(super) trait Out: Sink {
    /// Bytes that may be shared instead of copied.
    fn shared(&mut self, bytes: &Bytes);
}

/// Any sink: nothing is shared.
pub(super) struct Plain<'a, S>(pub(super) &'a mut S);

impl<S: Sink> Sink for Plain<'_, S> {
    fn bytes(&mut self, bytes: &[u8]) {
        self.0.bytes(bytes);
    }
    fn numbers(&mut self, numbers: &[f64]) {
        self.0.numbers(numbers);
    }
    fn narrow_numbers(&mut self, numbers: &[f64]) {
        self.0.narrow_numbers(numbers);
    }
    fn length(&mut self, count: usize) {
        self.0.length(count);
    }
}

impl<S: Sink> Out for Plain<'_, S> {
    fn shared(&mut self, bytes: &Bytes) {
        self.0.bytes(bytes);
    }
}

/// Gathers a payload.
#[derive(Default)]
pub(super) struct Pieces {
    payload: Payload,
    short: Vec<u8>,
}

impl Pieces {
    fn close(&mut self) {
        if !self.short.is_empty() {
            self.payload.pieces.push(std::mem::take(&mut self.short).into());
        }
    }

    /// All that was gathered.
    pub(super) fn done(mut self) -> Payload {
        self.close();
        self.payload
    }
}

impl Sink for Pieces {
    fn bytes(&mut self, bytes: &[u8]) {
        self.payload.length += bytes.len();
        self.short.extend_from_slice(bytes);
    }
    fn numbers(&mut self, numbers: &[f64]) {
        for number in numbers {
            self.bytes(&number.to_le_bytes());
        }
    }
}

impl Out for Pieces {
    fn shared(&mut self, bytes: &Bytes) {
        if bytes.len() < SHARED {
            return self.bytes(bytes);
        }
        self.close();
        self.payload.length += bytes.len();
        self.payload.pieces.push(bytes.clone());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_crosses_pieces_and_the_whole_is_their_sum() {
        let payload =
            Payload { pieces: vec![Bytes::from_static(b"abc"), Bytes::from_static(b"defg")], length: 7 };
        for start in 0..7 {
            for end in start..=7 {
                let mut found = Vec::new();
                payload.range(start..end, |piece| found.extend_from_slice(piece));
                assert_eq!(found, &b"abcdefg"[start..end]);
            }
        }
        assert_eq!(payload.to_bytes(), &b"abcdefg"[..]);
        assert!(Payload::default().to_bytes().is_empty() && Payload::default().is_empty());
    }
}
