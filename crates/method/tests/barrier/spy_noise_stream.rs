//! The stream of the noise is not to be had: who knows it can subtract the noise.
use fedkin_privacy::PrivateRng;

fn spy(secret: &[u8; 32]) -> PrivateRng {
    PrivateRng::new(secret, "noise", 1, 0, &|_| {})
}

fn main() {}
