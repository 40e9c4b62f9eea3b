//! Gaussian noise on the sum over a Poisson sample: Renyi divergences at whole orders.
//!
//! Each record is in the sample with probability q, independently; nobody learns who was. A record contributes a
//! vector of norm at most C (a clip), the noise has standard deviation sigma, and c = C / sigma. Given who else was
//! sampled, everything is a shift, and the divergence of a mixture is at most the largest of its parts (joint
//! quasi-convexity), so it is enough to look at one record. In units of sigma, with N(m) the unit Gaussian at m:
//!
//! ```text
//! add-remove   (1-q) N(0) + q N(g)   against   N(0),                       |g| <= c, both directions
//! replace      (1-q) N(0) + q N(g)   against   (1-q) N(0) + q N(g'),       |g|, |g'| <= c
//! ```
//!
//! **Add or remove** (Mironov, Talwar, Zhang 2019): the first direction is the larger one, |g| = c is the worst, and
//! at a whole order a
//!
//! ```text
//! exp((a-1) D) = sum over k of binomial(a, k) (1-q)^(a-k) q^k exp(k (k-1) c^2 / 2)
//! ```
//!
//! **Replace.** Claim: at whole orders the worst pair is g = -g', |g| = c, on a line. *Proof.* Let L(x) = 1-q + q
//! exp(g'x - |g'|^2/2), the second density over that of N(0). Expanding the power of the first density,
//!
//! ```text
//! F = exp((a-1) D) = sum over k of w_k E over x ~ N(k g) of L(x)^-(a-1),
//!     w_k = binomial(a, k) (1-q)^(a-k) q^k exp(k (k-1) |g|^2 / 2)
//! ```
//!
//! because N(0)^(1-k) N(g)^k = exp(k (k-1) |g|^2/2) N(k g). Under N(k g), g'x is Gaussian with mean k <g, g'> and
//! variance |g'|^2. L^-(a-1) falls in g'x, so F grows as <g, g'> falls: the worst g points against g'. Then
//! <g, g'> = -|g||g'|, and a longer g raises every w_k and lowers every mean: |g| = c. Write s = |g'|; the k-th
//! mean is E f(exp(-k c s) exp(s Z - s^2/2)) with f(u) = (1-q + q u)^-(a-1) convex and falling. exp(s Z - s^2/2) is a
//! martingale in s^2, so the mean of a convex function of it grows with s; the factor exp(-k c s) falls with s, and f
//! falls. So |g'| = c. The other direction is the mirror image. QED. The same value is reached, so the bound is tight.
//!
//! What is left is one integral on a line, with P and Q the two mixtures at g = c, g' = -c:
//!
//! ```text
//! F - 1 = integral of Q h(P/Q),     h(r) = r^a - 1 - a (r - 1) >= 0
//! ```
//!
//! by the trapezoidal rule. Its error is bounded (Trefethen and Weideman 2014, Theorem 5.1): each of the k parts of
//! P^a Q^(1-a) is analytic, and at height d above the line, with c d <= pi/2, at most `exp(d^2/2) cos(c d/2)^-(a-1)`
//! times its value on the line, since `|u + v e^(i t)| >= (u + v) cos(t/2)` for positive u, v. With
//! `-ln cos(t/2) <= 0.1405 t^2` up to pi/2 this is at most `exp(d^2 s / 2)`, `s = 1 + 0.281 (a-1) c^2`, and the error
//! at distance h of the nodes at most `2 / (exp(2 pi d/h - d^2 s/2) - 1)` of F. The nodes are so close that this is
//! below e^-59; so are the errors of the parts 1 and a (r - 1). Part k lies between kc and kc + (a-1) c but for tails
//! that fall faster than a unit Gaussian's, so nodes from -c-13 to (2a-1) c+13 miss less than 1e-37 of it.

use super::{is_positive, up};
use fedkin_numeric::{exp, ln};

/// How two neighbouring data sets differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Neighbours {
    /// One record is replaced by another: the relation of this project.
    Replace,
    /// One record is there or not.
    AddRemove,
}

/// Nodes beyond which an order is given the price without sampling: such a small sigma gains nothing from it.
const MOST_NODES: f64 = 200_000.0;
/// Exponent of the relative error of the trapezoidal rule.
const EXPONENT: f64 = 60.0;
/// How far beyond the outermost peaks the nodes go.
const MARGIN: f64 = 13.0;

/// An upper bound on the Renyi divergence of one release at a whole order; `multiplier` is sigma / C.
pub(super) fn divergence(order: u32, multiplier: f64, rate: f64, neighbours: Neighbours) -> f64 {
    if rate == 0.0 {
        return 0.0;
    }
    if !(is_positive(multiplier) && is_positive(rate) && rate <= 1.0) {
        return f64::INFINITY;
    }
    let reach = 1.0 / multiplier;
    let distance = match neighbours {
        Neighbours::Replace => 2.0 * reach,
        Neighbours::AddRemove => reach,
    };
    // Without sampling; sampling never costs more (a sample that is shown would not, either).
    let plain = up(0.5 * f64::from(order) * distance * distance);
    if rate == 1.0 || !plain.is_finite() || reach * reach == 0.0 {
        return if plain > 0.0 { plain } else { f64::MIN_POSITIVE };
    }
    let ln_excess = match neighbours {
        Neighbours::AddRemove => add_remove(order, reach, rate),
        Neighbours::Replace => match replace(order, reach, rate) {
            Some(ln_excess) => ln_excess,
            None => return plain,
        },
    };
    up(ln_one_plus(ln_excess) / (f64::from(order) - 1.0)).min(plain)
}

/// ln(1 + e^x)
fn ln_one_plus(x: f64) -> f64 {
    if x > 0.0 { x + libm::log1p(exp(-x)) } else { libm::log1p(exp(x)) }
}

/// ln(e^x - 1) for x > 0
fn ln_less_one(x: f64) -> f64 {
    if x > 1.0 { x + libm::log1p(-exp(-x)) } else { ln(libm::expm1(x)) }
}

/// A sum of positive numbers given by their logarithms.
struct LogSum {
    largest: f64,
    sum: f64,
}

impl LogSum {
    fn new() -> Self {
        Self { largest: f64::NEG_INFINITY, sum: 0.0 }
    }

    fn add(&mut self, x: f64) {
        if x == f64::NEG_INFINITY {
            return;
        }
        if x > self.largest {
            self.sum = self.sum * exp(self.largest - x) + 1.0;
            self.largest = x;
        } else {
            self.sum += exp(x - self.largest);
        }
    }

    fn ln(&self) -> f64 {
        self.largest + ln(self.sum)
    }
}

/// ln(F - 1), rounded up. The binomial weights sum to one and the parts k = 0, 1 are free of c, so F - 1 is a sum of
/// positive terms: nothing cancels however small it is.
fn add_remove(order: u32, reach: f64, rate: f64) -> f64 {
    let a = f64::from(order);
    let (ln_in, ln_out) = (ln(rate), libm::log1p(-rate));
    let mut sum = LogSum::new();
    let mut choose = ln(a);
    for k in 2..=order {
        let k_th = f64::from(k);
        choose += ln((a - k_th + 1.0) / k_th);
        let weight = choose + (a - k_th) * ln_out + k_th * ln_in;
        sum.add(weight + ln_less_one(0.5 * k_th * (k_th - 1.0) * reach * reach));
    }
    let size = a * (ln_in.abs() + ln_out.abs() + 10.0 + 0.5 * a * reach * reach);
    sum.ln() + 16.0 * f64::EPSILON * size
}

/// ln(F - 1), rounded up; `None` where it would take too many nodes.
fn replace(order: u32, reach: f64, rate: f64) -> Option<f64> {
    let a = f64::from(order);
    let scale = 1.0 + 0.281 * (a - 1.0) * reach * reach;
    let height = (2.0 * EXPONENT / scale).sqrt().min(std::f64::consts::FRAC_PI_2 / reach);
    let step = std::f64::consts::TAU * height / (EXPONENT + 0.5 * height * height * scale);
    let (from, to) = (-reach - MARGIN, (2.0 * a - 1.0) * reach + MARGIN);
    let nodes = ((to - from) / step).ceil();
    if nodes.is_nan() || nodes > MOST_NODES {
        return None;
    }
    let pair = Pair::new(reach, rate);
    let mut sum = LogSum::new();
    for node in 0..=nodes as u32 {
        let x = from + step * f64::from(node);
        let (ln_q, excess, ln_ratio) = pair.at(x);
        sum.add(ln_q + ln_h(a, excess, ln_ratio));
    }
    // Density of the normal distribution, distance of the nodes, and every error above and of the floats.
    let size = to * to + a * (reach * to + 40.0 + ln(rate).abs() + libm::log1p(-rate).abs());
    let found = sum.ln() + ln(step) - 0.918_938_533_204_672_8 + 16.0 * f64::EPSILON * size + 1e-11;
    // The rule's error is relative to F and to the parts 1 and a (r - 1), not to F - 1.
    let mut all = LogSum::new();
    all.add(found);
    all.add(-EXPONENT + 3.0 + ln_one_plus(found));
    all.add(-EXPONENT + 3.0 + ln(a + 1.0));
    Some(all.ln())
}

/// The two mixtures on a line.
struct Pair {
    reach: f64,
    ln_in: f64,
    ln_out: f64,
    rate: f64,
}

impl Pair {
    fn new(reach: f64, rate: f64) -> Self {
        Self { reach, ln_in: ln(rate), ln_out: libm::log1p(-rate), rate }
    }

    /// ln of (1-q) + q exp(side x - c^2/2)
    fn ln_part(&self, exponent: f64) -> f64 {
        let moved = self.ln_in + exponent - 0.5 * self.reach * self.reach;
        let (large, small) = if moved > self.ln_out { (moved, self.ln_out) } else { (self.ln_out, moved) };
        large + libm::log1p(exp(small - large))
    }

    /// ln Q without the constant of the density, P/Q - 1, and ln(P/Q).
    fn at(&self, x: f64) -> (f64, f64, f64) {
        let shift = self.reach * x;
        let (ln_p, ln_q) = (self.ln_part(shift), self.ln_part(-shift));
        let apart = ln_p - ln_q;
        if apart.abs() < 0.5 && shift.abs() < 300.0 {
            // The logarithms would cancel where the mixtures are close.
            let excess = 2.0 * self.rate * libm::sinh(shift) * exp(-0.5 * self.reach * self.reach - ln_q);
            return (ln_q - 0.5 * x * x, excess, libm::log1p(excess));
        }
        (ln_q - 0.5 * x * x, libm::expm1(apart), apart)
    }
}

/// ln h(r), h(r) = r^a - 1 - a (r - 1), for r = 1 + excess.
fn ln_h(a: f64, excess: f64, ln_ratio: f64) -> f64 {
    let exponent = a * ln_ratio;
    if (a * excess).abs() < 0.05 {
        // binomial(a, 2) e^2 + binomial(a, 3) e^3 + ...: at most (a e)^j / j!, so eight terms are exact.
        let mut term = a * excess;
        let mut sum = 0.0;
        for j in 2..10 {
            term *= (a - f64::from(j) + 1.0) * excess / f64::from(j);
            sum += term;
        }
        return if sum > 0.0 { ln(sum) } else { f64::NEG_INFINITY };
    }
    if exponent > 30.0 {
        return exponent + libm::log1p(-(exp(-exponent) + a * exp(ln_ratio - exponent) - a * exp(-exponent)));
    }
    let rest = libm::expm1(exponent) - a * excess;
    if rest > 0.0 { ln(rest) } else { f64::NEG_INFINITY }
}
