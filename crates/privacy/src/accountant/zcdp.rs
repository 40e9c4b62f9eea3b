//! From zCDP to (epsilon, delta) through Renyi divergences, and back.
//!
//! A mechanism with price rho has Renyi divergence at most `rho a` at every order a > 1. Every order gives a valid
//! bound, so a search that stops early errs on the safe side.

use super::{is_delta, is_positive, is_size, most, up};
use fedkin_numeric::{exp, ln};

/// Where orders are searched, as ln(a - 1): the best may lie near 1 or be very large.
const NEAREST: f64 = -12.0;
const FARTHEST: f64 = 40.0;

/// The tight conversion (Canonne, Kamath, Steinke 2020, Proposition 12):
/// `epsilon = min over a > 1 of rho a + ln((a - 1) / a) - (ln delta + ln a) / (a - 1)`.
pub fn epsilon_of_zcdp(zcdp: f64, delta: f64) -> f64 {
    if zcdp <= 0.0 {
        return 0.0;
    }
    if !zcdp.is_finite() || !is_delta(delta) {
        return f64::INFINITY;
    }
    let at = |x: f64| {
        let over = exp(x);
        let a = 1.0 + over;
        sum_up([zcdp * a, -libm::log1p(1.0 / over), -(ln(delta) + ln(a)) / over])
    };
    minimise(at, NEAREST, FARTHEST).max(0.0)
}

/// The least delta the same proposition gives for an epsilon:
/// `ln delta = min over a > 1 of (a - 1)(rho a - epsilon) - ln(a - 1) + a ln(1 - 1/a)`.
pub fn delta_of_zcdp(zcdp: f64, epsilon: f64) -> f64 {
    if zcdp <= 0.0 {
        return 0.0;
    }
    if !zcdp.is_finite() || !is_size(epsilon) {
        return 1.0;
    }
    let at = |x: f64| {
        let over = exp(x);
        let a = 1.0 + over;
        sum_up([over * zcdp * a, -over * epsilon, -x, -a * libm::log1p(1.0 / over)])
    };
    up(exp(minimise(at, NEAREST, FARTHEST))).min(1.0)
}

/// The conversion of the textbooks, `rho + 2 sqrt(rho ln(1 / delta))`: never better than the tight one.
pub fn textbook_epsilon(zcdp: f64, delta: f64) -> f64 {
    if zcdp <= 0.0 {
        return 0.0;
    }
    if !zcdp.is_finite() || !is_delta(delta) {
        return f64::INFINITY;
    }
    up(up(zcdp) + 2.0 * up(up(-zcdp * ln(delta)).sqrt()))
}

/// The largest price whose tight conversion is at most this epsilon.
pub fn zcdp_of_epsilon(epsilon: f64, delta: f64) -> f64 {
    if !is_positive(epsilon) || !is_delta(delta) {
        return 0.0;
    }
    most(epsilon, |zcdp| epsilon_of_zcdp(zcdp, delta) <= epsilon)
}

/// The sum of terms, moved up by more than the error of each and of the sum.
fn sum_up<const N: usize>(terms: [f64; N]) -> f64 {
    let (mut sum, mut size) = (0.0, 0.0);
    for term in terms {
        sum += term;
        size += term.abs();
    }
    sum + size * (16.0 * f64::EPSILON)
}

/// Golden-section search for the least value of a function with one valley.
fn minimise(f: impl Fn(f64) -> f64, mut low: f64, mut high: f64) -> f64 {
    let ratio = 0.618_033_988_749_894_9;
    let (mut left, mut right) = (high - ratio * (high - low), low + ratio * (high - low));
    let (mut at_left, mut at_right) = (f(left), f(right));
    for _ in 0..100 {
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
