//! Noise per second on one core: the exact discrete sampler next to the floating-point one.
//!
//! `cargo bench -p fedkin-core --bench sampler`: for each the best and the middle of 21 turns.
#![allow(missing_docs, clippy::print_stdout, clippy::unwrap_used)]
#![allow(clippy::disallowed_methods, clippy::disallowed_types, clippy::disallowed_macros)]

use fedkin_numeric::rng::Random;
use fedkin_privacy::DiscreteGaussian;
use rand_chacha::ChaCha20Rng;
use rand_core::{Rng, SeedableRng};
use std::hint::black_box;
use std::time::Instant;

const DRAWS: usize = 400_000;

/// The generator of a client's noise.
struct ChaCha(ChaCha20Rng);

impl Random for ChaCha {
    #[inline]
    fn bits(&mut self) -> u64 {
        self.0.next_u64()
    }
}

fn measure(what: &str, mut turn: impl FnMut()) {
    let mut rates: Vec<f64> = (0..21)
        .map(|_| {
            let start = Instant::now();
            turn();
            DRAWS as f64 / start.elapsed().as_secs_f64() / 1e6
        })
        .collect();
    rates.sort_by(f64::total_cmp);
    println!("{what:<44} {:6.2} million/s at best, {:6.2} in the middle", rates[20], rates[10]);
}

fn main() {
    let mut rng = ChaCha(ChaCha20Rng::from_seed([7; 32]));
    let mut noise = vec![0i128; DRAWS];
    for (name, p, q) in [
        ("discrete, sigma 0.3", 3, 10),
        ("discrete, sigma 1", 1, 1),
        ("discrete, sigma 2^20", 1 << 20, 1),
        ("discrete, sigma 1234567890", 1_234_567_890, 1),
        ("discrete, sigma 2^40 + 12345", (1 << 40) + 12345, 1),
    ] {
        let law = DiscreteGaussian::new(p, q).unwrap();
        measure(name, || {
            law.fill(&mut rng, &mut noise);
            black_box(&noise);
        });
    }
    measure("ziggurat, float", || {
        for _ in 0..DRAWS {
            black_box(rng.normal());
        }
    });
    measure("ChaCha20 words", || {
        for _ in 0..DRAWS {
            black_box(rng.bits());
        }
    });
}
