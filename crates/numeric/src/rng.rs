//! Random streams with names instead of state.
//!
//! A stream is named by (purpose, step, node), so nothing has to be saved to resume a run and the order
//! in which nodes work does not matter. Public streams come from the run's seed, which a server knows. Private streams
//! (noise, mini-batches) come from a client's secret: they belong to the gate and stand in `fedkin-privacy`.

use crate::{exp, ln};
use rand_chacha::ChaCha8Rng;
use rand_core::{Rng, SeedableRng};
use std::sync::LazyLock;

/// A source of random numbers; every distribution is built here, with the same bits everywhere.
pub trait Random {
    /// 64 fresh bits.
    fn bits(&mut self) -> u64;

    /// Uniform in [0, 1).
    fn uniform(&mut self) -> f64 {
        (self.bits() >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
    }

    /// Uniform in [low, high).
    fn between(&mut self, low: f64, high: f64) -> f64 {
        low + (high - low) * self.uniform()
    }

    /// Uniform in 0..bound without bias (Lemire's rejection). `bound` must be positive.
    fn below(&mut self, bound: u32) -> u32 {
        debug_assert!(bound > 0);
        loop {
            let product = u64::from(self.bits() as u32) * u64::from(bound);
            // The threshold is below the bound: most draws pass without the division.
            if product as u32 >= bound || product as u32 >= bound.wrapping_neg() % bound {
                return (product >> 32) as u32;
            }
        }
    }

    /// Standard normal by the ziggurat of Marsaglia and Tsang with 256 layers.
    fn normal(&mut self) -> f64
    where
        Self: Sized,
    {
        ZIGGURAT.draw(self)
    }

    /// Adds a normal number of this standard deviation to every value, in order.
    fn perturb(&mut self, sigma: f64, values: &mut [f64])
    where
        Self: Sized,
    {
        let table: &Ziggurat = &ZIGGURAT;
        for value in values {
            *value += sigma * table.draw(self);
        }
    }

    /// `count` distinct numbers of 0..bound, sorted (Floyd's method).
    fn choose(&mut self, bound: u32, count: u32) -> Vec<u32> {
        let count = count.min(bound);
        let mut chosen: Vec<u32> = Vec::with_capacity(count as usize);
        if bound / 512 > count {
            // Few of very many: a list is shorter than a bit for everybody.
            for top in bound - count..bound {
                let pick = self.below(top + 1);
                chosen.push(if chosen.contains(&pick) { top } else { pick });
            }
            chosen.sort_unstable();
            return chosen;
        }
        if bound <= u128::BITS {
            // A bit for everybody that stays in registers.
            let mut taken = 0u128;
            for top in bound - count..bound {
                let pick = self.below(top + 1);
                taken |= 1 << if taken >> pick & 1 == 1 { top } else { pick };
            }
            while taken != 0 {
                chosen.push(taken.trailing_zeros());
                taken &= taken - 1;
            }
            return chosen;
        }
        let mut taken = vec![0u64; bound.div_ceil(64) as usize];
        for top in bound - count..bound {
            let pick = self.below(top + 1);
            let is_taken = taken[(pick / 64) as usize] >> (pick % 64) & 1 == 1;
            let value = if is_taken { top } else { pick };
            taken[(value / 64) as usize] |= 1 << (value % 64);
        }
        for (word, mut bits) in (0u32..).zip(taken) {
            while bits != 0 {
                chosen.push(64 * word + bits.trailing_zeros());
                bits &= bits - 1;
            }
        }
        chosen
    }

    /// A uniform permutation in place (Fisher and Yates).
    fn shuffle<T>(&mut self, items: &mut [T])
    where
        Self: Sized,
    {
        for i in (1..items.len()).rev() {
            items.swap(i, self.below(i as u32 + 1) as usize);
        }
    }
}

const TAIL: f64 = 3.654_152_885_361_009;
const AREA: f64 = 0.004_928_673_233_992_336;

struct Ziggurat {
    x: [f64; 257],
    f: [f64; 257],
}

impl Ziggurat {
    #[inline]
    fn draw<R: Random>(&self, rng: &mut R) -> f64 {
        loop {
            let bits = rng.bits();
            let layer = (bits & 0xff) as usize;
            let u = 2.0 * ((bits >> 11) as f64 * (1.0 / (1u64 << 53) as f64)) - 1.0;
            let x = u * self.x[layer];
            if x.abs() < self.x[layer + 1] {
                return x;
            }
            if let Some(x) = self.edge(rng, layer, u, x) {
                return x;
            }
        }
    }

    /// The tail and the edges of the layers: about one draw in a hundred.
    #[cold]
    fn edge<R: Random>(&self, rng: &mut R, layer: usize, u: f64, x: f64) -> Option<f64> {
        if layer == 0 {
            loop {
                let x = ln(1.0 - rng.uniform()) / TAIL;
                let y = ln(1.0 - rng.uniform());
                if -2.0 * y >= x * x {
                    return Some(if u < 0.0 { x - TAIL } else { TAIL - x });
                }
            }
        }
        let height = self.f[layer + 1] + (self.f[layer] - self.f[layer + 1]) * rng.uniform();
        (height < exp(-0.5 * x * x)).then_some(x)
    }
}

static ZIGGURAT: LazyLock<Ziggurat> = LazyLock::new(|| {
    let mut table = Ziggurat { x: [0.0; 257], f: [0.0; 257] };
    table.x[0] = AREA / exp(-0.5 * TAIL * TAIL);
    table.x[1] = TAIL;
    for i in 2..256 {
        let last = table.x[i - 1];
        table.x[i] = (-2.0 * ln(AREA / last + exp(-0.5 * last * last))).sqrt();
    }
    for i in 0..257 {
        table.f[i] = exp(-0.5 * table.x[i] * table.x[i]);
    }
    table
});

/// A stream that everybody in a run may know.
#[derive(Debug, Clone)]
pub struct PublicRng(ChaCha8Rng);

impl PublicRng {
    /// The stream of a run's seed with this name.
    pub fn named(seed: u64, purpose: &str, step: u32, node: u32) -> Self {
        Self(ChaCha8Rng::from_seed(key(seed, purpose, [step, node])))
    }
}

impl Random for PublicRng {
    #[inline]
    fn bits(&mut self) -> u64 {
        self.0.next_u64()
    }
}

/// The secret of a client in a simulation, where everything follows from the seed.
/// A deployed client draws its own from the operating system and keeps it.
pub fn simulated_secret(seed: u64, client: u32) -> [u8; 32] {
    key(seed, "client secret, simulation only", [client])
}

/// The seed of one Monte Carlo repeat; repeat 0 is the run's own seed.
pub fn repeat_seed(seed: u64, repeat: u32) -> u64 {
    if repeat == 0 {
        return seed;
    }
    let bytes = key(seed, "repeat", [repeat]);
    u64::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3], bytes[4], bytes[5], bytes[6], bytes[7]])
}

/// The key of a name: BLAKE3 of the seed, the purpose and the numbers, each with its length before it.
fn key<const N: usize>(seed: u64, purpose: &str, names: [u32; N]) -> [u8; 32] {
    // A purpose is a word or a few of this program, never of its users.
    assert!(purpose.len() <= 64 && N <= 8, "a name that is too long: {purpose}");
    let (mut message, mut length) = ([0; 128], 0);
    let mut put = |part: &[u8]| {
        message[length..length + part.len()].copy_from_slice(part);
        length += part.len();
    };
    put(&8u32.to_le_bytes());
    put(&seed.to_le_bytes());
    put(&(purpose.len() as u32).to_le_bytes());
    put(purpose.as_bytes());
    put(&(N as u32).to_le_bytes());
    for name in names {
        put(&name.to_le_bytes());
    }
    *blake3::hash(&message[..length]).as_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stream(purpose: &str) -> PublicRng {
        PublicRng::named(1, purpose, 2, 3)
    }

    #[test]
    fn a_name_is_a_stream() {
        assert_eq!(stream("a").bits(), stream("a").bits());
        assert_ne!(stream("a").bits(), stream("b").bits());
        assert_ne!(PublicRng::named(1, "a", 2, 3).bits(), PublicRng::named(1, "a", 3, 2).bits());
    }

    /// Kolmogorov-Smirnov against the normal law, n = 200,000, seeded.
    /// Critical value 1.95 / sqrt(n): alpha = 0.001 for a fresh seed.
    #[test]
    fn the_ziggurat_is_normal() {
        let n = 200_000usize;
        let mut rng = stream("normal");
        let mut draws: Vec<f64> = (0..n).map(|_| rng.normal()).collect();
        draws.sort_by(f64::total_cmp);
        let cdf = |x: f64| 0.5 * libm::erfc(-x / std::f64::consts::SQRT_2);
        let gap = draws
            .iter()
            .enumerate()
            .map(|(i, &x)| {
                (cdf(x) - i as f64 / n as f64).abs().max(((i + 1) as f64 / n as f64 - cdf(x)).abs())
            })
            .fold(0.0, f64::max);
        assert!(gap < 1.95 / (n as f64).sqrt(), "KS distance {gap}");
        let tail = draws.iter().filter(|x| x.abs() > TAIL).count() as f64;
        let expected = n as f64 * libm::erfc(TAIL / std::f64::consts::SQRT_2);
        assert!((tail - expected).abs() < 4.0 * expected.sqrt(), "tail {tail}, expected {expected}");
    }

    #[test]
    fn choose_gives_distinct_sorted_numbers_and_every_subset() {
        let mut rng = stream("choose");
        let mut seen = std::collections::BTreeSet::new();
        for _ in 0..400 {
            let chosen = rng.choose(5, 2);
            assert!(chosen.len() == 2 && chosen[0] < chosen[1] && chosen[1] < 5);
            seen.insert(chosen);
        }
        assert_eq!(seen.len(), 10);
        assert_eq!(rng.choose(3, 9), vec![0, 1, 2]);
    }

    #[test]
    fn a_list_and_a_bit_for_everybody_choose_the_same() {
        // The same draws by the textbook; on both sides of where the way changes.
        for (bound, count) in [
            (99, 20),
            (64, 64),
            (65, 1),
            (128, 128),
            (128, 5),
            (129, 60),
            (2047, 3),
            (2048, 3),
            (2100, 3),
            (4000, 7),
            (1, 1),
        ] {
            for step in 0..20 {
                let mut rng = PublicRng::named(5, "choose", step, bound);
                let mut plain: Vec<u32> = Vec::new();
                for top in bound - count..bound {
                    let pick = rng.below(top + 1);
                    plain.push(if plain.contains(&pick) { top } else { pick });
                }
                plain.sort_unstable();
                assert_eq!(PublicRng::named(5, "choose", step, bound).choose(bound, count), plain);
            }
        }
    }
}
