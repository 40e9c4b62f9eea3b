//! The discrete Gaussian, drawn exactly.
//!
//! Law (Canonne, Kamath, Steinke 2020): P(i) is proportional to `exp(-i^2 / (2 sigma^2))` over the whole
//! numbers i, with sigma = p/q. Method: Karney 2016, *Sampling exactly from the normal distribution*,
//! algorithm D, which needs fewer random words than rejection from a discrete Laplace and no number wider
//! than sigma itself.
//!
//! ```text
//! 1. k >= 0 with probability proportional to exp(-k^2 / 2)
//! 2. i uniform among the whole numbers with floor(i / sigma) = k;   x = i / sigma - k, in [0, 1)
//! 3. accept with probability exp(-k x) exp(-x^2 / 2), else start again
//! 4. a sign; minus zero starts again
//! ```
//!
//! **Why it is exact.** A round of 1 to 3 ends in i with probability proportional to
//! `exp(-k^2/2 - k x - x^2/2) = exp(-(i / sigma)^2 / 2)`; 4 mirrors it and counts zero once. Everything is
//! decided by two kinds of events, both exact in whole numbers:
//!
//! - *a fraction*: a uniform whole number below a bound is below another one. The bound's remainder in
//!   2^64 is rejected (Lemire), so the number is uniform to the last bit.
//! - *exp(-g), 0 <= g <= 1* (von Neumann, Forsythe): count n = 1, 2, ... while events of probability g/n
//!   occur; n is odd at the end with probability `1 - g + g^2/2! - g^3/3! + ... = exp(-g)`.
//!
//! No floating-point number is compared, rounded or computed. A generator of ideal bits gives the law to the
//! letter; ours is `ChaCha20`. The time of a draw depends on the draw and hence on the noise: see what
//! docs/privacy.md says of timing.

use fedkin_numeric::rng::Random;

/// The largest numerator and denominator of sigma: products with small counters stay below 2^64.
const LARGEST: u64 = 1 << 56;

/// A discrete Gaussian with a rational standard deviation p/q.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DiscreteGaussian {
    p: u64,
    q: u64,
    /// ceil(p / q): at most so many whole numbers share one k.
    width: u64,
}

impl DiscreteGaussian {
    /// The law with sigma = p/q. `None` unless both are between 1 and 2^56.
    pub fn new(p: u64, q: u64) -> Option<Self> {
        let fits = |number: u64| (1..=LARGEST).contains(&number);
        (fits(p) && fits(q)).then(|| Self { p, q, width: p.div_ceil(q) })
    }

    /// The law with a whole sigma.
    pub fn whole(sigma: u64) -> Option<Self> {
        Self::new(sigma, 1)
    }

    /// One draw. Wider than 64 bits, because nothing bounds a Gaussian.
    pub fn draw<R: Random>(&self, rng: &mut R) -> i128 {
        self.draw_with(&mut Coins::new(rng))
    }

    /// A draw for every place of the slice, in order.
    pub fn fill<R: Random>(&self, rng: &mut R, out: &mut [i128]) {
        let mut coins = Coins::new(rng);
        for place in out {
            *place = self.draw_with(&mut coins);
        }
    }

    /// One draw with coins that are shared by several draws.
    #[inline]
    pub(super) fn draw_with<R: Random>(&self, coins: &mut Coins<'_, R>) -> i128 {
        loop {
            let k = coins.half_normal();
            // x = rest / p in [0, 1)
            let (i, rest) = if self.q == 1 {
                let rest = coins.below(self.p);
                (u128::from(k) * u128::from(self.p) + u128::from(rest), rest)
            } else {
                let (p, q) = (u128::from(self.p), u128::from(self.q));
                let first = (u128::from(k) * p).div_ceil(q);
                let i = first + u128::from(coins.below(self.width));
                let rest = i * q - u128::from(k) * p;
                if rest >= p {
                    // The last place of a stratum that has one fewer than `width`.
                    continue;
                }
                (i, rest as u64)
            };
            if !coins.exp_minus_half_square(rest, self.p) || !(0..k).all(|_| coins.exp_minus(rest, self.p)) {
                continue;
            }
            let negative = coins.flip();
            if negative && i == 0 {
                continue;
            }
            return if negative { -(i as i128) } else { i as i128 };
        }
    }
}

/// Exact events from random words.
pub(super) struct Coins<'a, R> {
    rng: &'a mut R,
    bits: u64,
    left: u32,
}

/// 2^16 16!: the common denominator of the first sixteen terms of exp(-1/2).
const HALF_SCALE: u64 = {
    let (mut scale, mut n) = (1u64, 1);
    while n <= 16 {
        scale *= 2 * n;
        n += 1;
    }
    scale
};

/// `HALF_SCALE` times the sum of the terms 0 to 15 of exp(-1/2), a whole number.
const HALF_SUM: u64 = {
    let (mut term, mut sum, mut n) = (HALF_SCALE, 0u64, 0u64);
    while n < 16 {
        if n.is_multiple_of(2) {
            sum += term;
        } else {
            sum -= term;
        }
        n += 1;
        term /= 2 * n;
    }
    sum
};

impl<'a, R: Random> Coins<'a, R> {
    pub(super) fn new(rng: &'a mut R) -> Self {
        Self { rng, bits: 0, left: 0 }
    }

    /// A fair coin.
    #[inline]
    fn flip(&mut self) -> bool {
        if self.left == 0 {
            self.bits = self.rng.bits();
            self.left = 64;
        }
        let bit = self.bits & 1 == 1;
        self.bits >>= 1;
        self.left -= 1;
        bit
    }

    /// Uniform in 0..bound, without bias (Lemire 2019).
    #[inline]
    fn below(&mut self, bound: u64) -> u64 {
        loop {
            let product = u128::from(self.rng.bits()) * u128::from(bound);
            let low = product as u64;
            // 2^64 mod bound of the low parts are one too many; they are below `bound`, so most draws need
            // no division.
            if low >= bound || low >= bound.wrapping_neg() % bound {
                return (product >> 64) as u64;
            }
        }
    }

    /// Occurs with probability rest / (p n), for rest <= p.
    #[inline]
    fn fraction(&mut self, rest: u64, p: u64, n: u64) -> bool {
        match p.checked_mul(n) {
            Some(bound) => self.below(bound) < rest,
            None => self.below(n) == 0 && self.below(p) < rest,
        }
    }

    /// Occurs with probability exp(-rest / p), for rest <= p.
    #[inline]
    fn exp_minus(&mut self, rest: u64, p: u64) -> bool {
        let mut n = 1;
        while self.fraction(rest, p, n) {
            n += 1;
        }
        n % 2 == 1
    }

    /// Occurs with probability exp(-(rest / p)^2 / 2), for rest <= p.
    #[inline]
    fn exp_minus_half_square(&mut self, rest: u64, p: u64) -> bool {
        let mut n = 1;
        while self.fraction(rest, p, 2 * n) && self.fraction(rest, p, 1) {
            n += 1;
        }
        n % 2 == 1
    }

    /// Occurs with probability exp(-1/2).
    ///
    /// The first sixteen counts of the general method in one word: all of them are decided by where a
    /// uniform number below 2^16 16! falls between the partial sums. Below the sum of the terms 0 to 15 the
    /// count ended at an odd n, above it at an even one. On the sum itself, which has probability
    /// (1/2)^16 / 16!, sixteen events have occurred and the count goes on.
    #[inline]
    fn exp_minus_half(&mut self) -> bool {
        let place = self.below(HALF_SCALE);
        if place == HALF_SUM {
            return self.exp_minus_half_from(17);
        }
        place < HALF_SUM
    }

    /// The count of exp(-1/2) from n on.
    #[cold]
    fn exp_minus_half_from(&mut self, mut n: u64) -> bool {
        while self.below(2 * n) == 0 {
            n += 1;
        }
        n % 2 == 1
    }

    /// k >= 0 with probability proportional to exp(-k^2 / 2): geometric, accepted with exp(-k (k - 1) / 2).
    #[inline]
    fn half_normal(&mut self) -> u64 {
        'again: loop {
            let mut k = 0u64;
            while self.exp_minus_half() {
                k += 1;
            }
            for _ in 1..k {
                for _ in 0..k {
                    if !self.exp_minus_half() {
                        continue 'again;
                    }
                }
            }
            return k;
        }
    }
}

#[cfg(test)]
#[path = "discrete_tests.rs"]
mod tests;
