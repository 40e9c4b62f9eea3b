//! From zCDP to (epsilon, delta).

use crate::numeric::ln;

/// The tight conversion through Renyi divergences (Canonne, Kamath, Steinke 2020, Proposition 12):
/// `epsilon = min over a > 1 of rho a + ln((a - 1) / a) - (ln delta + ln a) / (a - 1)`.
pub fn epsilon_of_zcdp(zcdp: f64, delta: f64) -> f64 {
    if zcdp <= 0.0 {
        return 0.0;
    }
    let at = |x: f64| {
        // x = ln(a - 1): the minimum may lie anywhere from near 1 to very large orders.
        let a = 1.0 + crate::numeric::exp(x);
        zcdp * a + ln((a - 1.0) / a) - (ln(delta) + ln(a)) / (a - 1.0)
    };
    // Every order gives a valid bound, so a search that stops early errs on the safe side.
    let best = minimise(at, -12.0, 40.0);
    best.max(0.0)
}

/// The exact value where every release is Gaussian: composition gives one Gaussian with mu = sqrt(2 rho)
/// (Balle and Wang 2018), solved for epsilon and rounded up.
pub fn epsilon_of_gaussian(zcdp: f64, delta: f64) -> f64 {
    if zcdp <= 0.0 {
        return 0.0;
    }
    let mu = (2.0 * zcdp).sqrt();
    let normal = |x: f64| 0.5 * libm::erfc(-x / std::f64::consts::SQRT_2);
    let loss = |epsilon: f64| {
        let tail = normal(-epsilon / mu - mu / 2.0);
        let weighted = if tail > 0.0 { crate::numeric::exp(epsilon + ln(tail)) } else { 0.0 };
        normal(-epsilon / mu + mu / 2.0) - weighted
    };
    let (mut low, mut high) = (0.0, 1.0);
    if loss(0.0) <= delta {
        return 0.0;
    }
    while loss(high) > delta && high < 1e9 {
        low = high;
        high *= 2.0;
    }
    for _ in 0..200 {
        let middle = 0.5 * (low + high);
        if loss(middle) > delta {
            low = middle;
        } else {
            high = middle;
        }
    }
    high
}

/// Golden-section search for the least value of a function with one valley.
fn minimise(f: impl Fn(f64) -> f64, mut low: f64, mut high: f64) -> f64 {
    let ratio = 0.618_033_988_749_894_9;
    let (mut left, mut right) = (high - ratio * (high - low), low + ratio * (high - low));
    let (mut at_left, mut at_right) = (f(left), f(right));
    for _ in 0..200 {
        if at_left < at_right {
            high = right;
            (right, at_right) = (left, at_left);
            left = high - ratio * (high - low);
            at_left = f(left);
        } else {
            low = left;
            (left, at_left) = (right, at_right);
            right = low + ratio * (high - low);
            at_right = f(right);
        }
    }
    at_left.min(at_right)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The figures of the privacy and PGFL specs.
    #[test]
    fn known_conversions() {
        assert!((epsilon_of_zcdp(1.939, 1e-5) - 10.53).abs() < 0.01);
        assert!((epsilon_of_gaussian(1.939, 1e-5) - 9.81).abs() < 0.01);
        // sigma 4, sensitivity 1: rho = 1/32
        assert!((epsilon_of_zcdp(1.0 / 32.0, 1e-5) - 1.01).abs() < 0.01);
        assert!((epsilon_of_gaussian(1.0 / 32.0, 1e-5) - 0.926).abs() < 0.001);
    }

    #[test]
    fn the_exact_value_is_below_the_general_one_and_both_grow() {
        let mut last = (0.0, 0.0);
        for exponent in -8..6 {
            let zcdp = libm::exp2(f64::from(exponent));
            let (tight, exact) = (epsilon_of_zcdp(zcdp, 1e-6), epsilon_of_gaussian(zcdp, 1e-6));
            assert!(exact <= tight && tight > last.0 && exact > last.1, "zcdp {zcdp}: {exact} {tight}");
            last = (tight, exact);
        }
        assert_eq!(epsilon_of_zcdp(0.0, 1e-5), 0.0);
    }
}
