//! Random streams that only one client may know: a server that knew them could subtract the noise.

use fedkin_numeric::codec::{Codec, Digest, Sink};
use fedkin_numeric::rng::Random;
use rand_chacha::ChaCha20Rng;
use rand_core::{Rng, SeedableRng};

/// A stream that only one client may know. Made by the gate.
#[derive(Debug, Clone)]
pub struct PrivateRng(ChaCha20Rng);

impl PrivateRng {
    /// The stream of a client's secret for this purpose, step and number, bound to what was asked.
    pub(crate) fn new(
        secret: &[u8; 32],
        purpose: &str,
        step: u32,
        number: u32,
        asked: &dyn Fn(&mut Digest),
    ) -> Self {
        let mut digest = Digest::keyed(secret);
        (purpose.len() as u32).put(&mut digest);
        digest.bytes(purpose.as_bytes());
        step.put(&mut digest);
        number.put(&mut digest);
        asked(&mut digest);
        Self(ChaCha20Rng::from_seed(digest.finish()))
    }
}

impl Random for PrivateRng {
    #[inline]
    fn bits(&mut self) -> u64 {
        self.0.next_u64()
    }
}
