//! Randomness of an audit: named, so that no thread and no order matters.

use fedkin_numeric::rng::{PublicRng, Random};

/// Names the private randomness of one run of the client.
#[derive(Debug, Clone, Copy)]
pub struct Draw {
    /// The audit's seed.
    pub seed: u64,
    /// What the run is for: runs that choose and runs that count never share randomness.
    pub purpose: &'static str,
    /// Which pair of data sets.
    pub pair: u32,
    /// Which run.
    pub number: u32,
}

impl Draw {
    /// A fresh secret of the client; `copy` 0 is the audited client itself.
    pub fn secret(self, copy: u32) -> [u8; 32] {
        let name = format!("audit {} {copy}", self.purpose);
        let mut rng = PublicRng::named(self.seed, &name, self.pair, self.number);
        let mut secret = [0; 32];
        for word in secret.chunks_exact_mut(8) {
            word.copy_from_slice(&rng.bits().to_le_bytes());
        }
        secret
    }
}
