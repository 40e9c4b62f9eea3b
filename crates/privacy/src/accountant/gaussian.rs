//! Where every release is Gaussian: one Gaussian with mu = sqrt(2 rho) in their place, priced exactly.
//!
//! ```text
//! delta = Q(a) - e^epsilon Q(b),     a = epsilon/mu - mu/2,   b = epsilon/mu + mu/2
//! ```
//!
//! with Q the upper tail of the normal distribution (Balle and Wang 2018, Theorem 8; composition as in Gaussian
//! differential privacy, Dong, Roth, Su 2022). As `b^2 - a^2 = 2 epsilon`, the weight `e^epsilon` is the density at
//! a over that at b, and with Mills' ratio `R(x) = Q(x) / density(x)`
//!
//! ```text
//! delta = density(a) (R(a) - R(b)),
//! ```
//!
//! which neither overflows for a large mu nor loses a tiny delta: it is computed as a logarithm. The error of every
//! part is bounded, and the bound is added.

use super::{is_delta, is_size, least, most, up};
use fedkin_numeric::{exp, ln};

const EPS: f64 = f64::EPSILON;
/// ln sqrt(2 pi)
const HALF_LN_TWO_PI: f64 = 0.918_938_533_204_672_8;

/// The least delta for an epsilon.
pub fn delta_of_gaussian(zcdp: f64, epsilon: f64) -> f64 {
    if zcdp <= 0.0 {
        return 0.0;
    }
    if !zcdp.is_finite() || !is_size(epsilon) {
        return 1.0;
    }
    up(exp(ln_delta((2.0 * zcdp).sqrt(), epsilon))).min(1.0)
}

/// The exact epsilon, rounded up.
pub fn epsilon_of_gaussian(zcdp: f64, delta: f64) -> f64 {
    if zcdp <= 0.0 {
        return 0.0;
    }
    if !zcdp.is_finite() || !is_delta(delta) {
        return f64::INFINITY;
    }
    let mu = up((2.0 * zcdp).sqrt());
    let most = ln(delta) - EPS;
    if ln_delta(mu, 0.0) <= most { 0.0 } else { up(least(1e-12, |epsilon| ln_delta(mu, epsilon) <= most)) }
}

/// The largest price whose exact epsilon is at most this.
pub fn gaussian_zcdp_of_epsilon(epsilon: f64, delta: f64) -> f64 {
    if !is_size(epsilon) || !is_delta(delta) {
        return 0.0;
    }
    most(1.0, |zcdp| epsilon_of_gaussian(zcdp, delta) <= epsilon)
}

/// The least noise of one release with this sensitivity (Balle and Wang 2018): the analytic Gaussian mechanism.
pub fn analytic_sigma(epsilon: f64, delta: f64, sensitivity: f64) -> f64 {
    if !is_size(sensitivity) {
        return f64::INFINITY;
    }
    up(sensitivity / (2.0 * gaussian_zcdp_of_epsilon(epsilon, delta)).sqrt())
}

/// An upper bound on ln delta, off by its rounding only.
fn ln_delta(mu: f64, epsilon: f64) -> f64 {
    let (centre, half) = (epsilon / mu, 0.5 * mu);
    let (a, b) = (centre - half, centre + half);
    // Both quotients may be off by a rounding; the exponent follows with slope |a| + 1 at most.
    let off = (a.abs() + 2.0) * (centre + half) * (4.0 * EPS);
    let mills_b = mills(b);
    if a < 0.0 {
        // Q(a) is at least a half: nothing is small here, and R(a) may overflow.
        let tail = 0.5 * libm::erfc(a / std::f64::consts::SQRT_2);
        let weighted = exp(-0.5 * a * a - HALF_LN_TWO_PI) * mills_b;
        return ln((tail - weighted).max(0.0) + 32.0 * EPS * (tail + weighted * (1.0 + a * a))) + off;
    }
    let mills_a = mills(a);
    let gap = (mills_a - mills_b).max(0.0) + 32.0 * EPS * (mills_a + mills_b);
    let exponent = -0.5 * a * a - HALF_LN_TWO_PI;
    exponent + ln(gap) + off + 8.0 * EPS * (1.0 + exponent.abs())
}

/// Mills' ratio for x >= 0: the tail from x on over the density at x.
fn mills(x: f64) -> f64 {
    // sqrt(pi / 2)
    const SCALE: f64 = 1.253_314_137_315_500_3;
    if x < 4.0 {
        return SCALE * exp(0.5 * x * x) * libm::erfc(x / std::f64::consts::SQRT_2);
    }
    // Laplace's continued fraction x + 1/(x + 2/(x + 3/...)): 80 levels are exact to the last bits from 4 on.
    let tail = (1..=80).rev().fold(x, |rest, level| x + f64::from(level) / rest);
    1.0 / tail
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Values with 20 digits from mpmath: sqrt(pi/2) exp(x^2/2) erfc(x/sqrt(2)).
    #[test]
    fn the_ratio_of_mills_is_right_to_the_last_bits() {
        for (x, exact) in MILLS {
            assert!((mills(x) / exact - 1.0).abs() < 20.0 * EPS, "{x}: {} {exact}", mills(x));
        }
    }

    const MILLS: [(f64, f64); 10] = [
        (0.0, 1.253_314_137_315_500_3),
        (0.5, 0.876_364_456_453_692_3),
        (1.0, 0.655_679_542_418_798_5),
        (2.5, 0.354_265_111_329_793_67),
        (4.0, 0.236_652_382_913_560_67),
        (5.0, 0.192_808_104_715_315_76),
        (8.0, 0.123_131_963_257_932_3),
        (20.0, 0.049_875_925_981_836_79),
        (100.0, 0.009_999_000_299_850_105),
        (1000.0, 0.000_999_999_000_002_999_9),
    ];
}
