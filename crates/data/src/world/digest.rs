//! The digest of a world.

use fedkin_learner::Dataset;

/// A hash of length-prefixed parts. Parts are gathered first: the hash is several times faster on long runs.
#[derive(Debug)]
pub(crate) struct Digest {
    hash: blake3::Hasher,
    buffer: Vec<u8>,
}

impl Digest {
    const FULL: usize = 1 << 16;

    pub(crate) fn new(purpose: &str) -> Self {
        let mut digest = Self { hash: blake3::Hasher::new(), buffer: Vec::with_capacity(2 * Self::FULL) };
        digest.text(purpose);
        digest
    }

    pub(crate) fn number(&mut self, number: usize) {
        self.bytes(&(number as u64).to_le_bytes());
    }

    pub(crate) fn text(&mut self, text: &str) {
        self.number(text.len());
        self.bytes(text.as_bytes());
    }

    pub(crate) fn bytes(&mut self, bytes: &[u8]) {
        self.buffer.extend_from_slice(bytes);
        if self.buffer.len() >= Self::FULL {
            self.hash.update(&self.buffer);
            self.buffer.clear();
        }
    }

    pub(crate) fn records(&mut self, records: &Dataset) {
        self.number(records.rows());
        self.number(records.columns());
        self.floats(records.features());
        self.floats(records.targets());
    }

    fn floats(&mut self, values: &[f64]) {
        for part in values.chunks(Self::FULL / 8) {
            self.buffer.extend(part.iter().flat_map(|value| value.to_le_bytes()));
            self.bytes(&[]);
        }
    }

    pub(crate) fn finish(mut self) -> [u8; 32] {
        self.hash.update(&self.buffer);
        *self.hash.finalize().as_bytes()
    }
}
