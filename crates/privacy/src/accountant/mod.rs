//! What releases cost together: from noise to (epsilon, delta), and back.
//!
//! | file | price | holds for |
//! |---|---|---|
//! | `zcdp` | zCDP to epsilon by the tight conversion | any mechanisms with a zCDP price |
//! | `gaussian` | exact epsilon of composed Gaussians | Gaussian noise on everything, no sampling |
//! | `renyi`, `sampled` | Renyi divergences at whole orders | Gaussian noise on a Poisson sample of the records |
//! | `account` | epsilon of everything a client released | plain and sampled releases together |
//! | `solve` | how much noise for a given epsilon | all of them |
//!
//! Every function errs on the safe side: an epsilon, a delta or a sigma is never below the exact value, a price that
//! may be spent never above it. What cannot be priced (a delta of zero, a sigma that is not a number) costs infinity.

mod account;
mod gaussian;
mod renyi;
mod sampled;
mod solve;
mod zcdp;

pub use account::Prices;
pub use gaussian::{analytic_sigma, delta_of_gaussian, epsilon_of_gaussian, gaussian_zcdp_of_epsilon};
pub use renyi::{ORDERS, Renyi};
pub use sampled::Neighbours;
pub use solve::{Sampled, gaussian_sigma};
pub use zcdp::{delta_of_zcdp, epsilon_of_zcdp, textbook_epsilon, zcdp_of_epsilon};

/// A sum or product that was rounded, moved up by more than its error.
fn up(x: f64) -> f64 {
    x + x.abs() * (8.0 * f64::EPSILON)
}

/// Whether a number can be the delta of a guarantee.
fn is_delta(delta: f64) -> bool {
    delta > 0.0 && delta < 1.0
}

/// Above zero; not a number is not.
fn is_positive(x: f64) -> bool {
    x > 0.0
}

/// Zero or above; not a number is not.
fn is_size(x: f64) -> bool {
    x >= 0.0
}

/// The least number, to the last bits, at which `enough` holds; it must hold from some point on. Searched between
/// `low`, where it need not hold, and the first of `low`, `2 low`, `4 low`, ... where it does; infinity where none
/// below 1e300 does. The answer is a number at which it holds, never one just below.
fn least(low: f64, enough: impl Fn(f64) -> bool) -> f64 {
    let (mut low, mut high) = (low, low);
    while !enough(high) {
        low = high;
        high *= 2.0;
        if high > 1e300 {
            return f64::INFINITY;
        }
    }
    for _ in 0..200 {
        let middle = 0.5 * (low + high);
        if middle <= low || middle >= high {
            break;
        }
        if enough(middle) {
            high = middle;
        } else {
            low = middle;
        }
    }
    high
}

/// The largest number, to the last bits, at which `allowed` holds; it must hold up to some point. Zero where it does
/// not hold above 1e-300, infinity where it holds at 1e300.
fn most(start: f64, allowed: impl Fn(f64) -> bool) -> f64 {
    let (mut low, mut high) = (start, start);
    while allowed(high) {
        low = high;
        high *= 2.0;
        if high > 1e300 {
            return f64::INFINITY;
        }
    }
    while !allowed(low) {
        high = low;
        low *= 0.5;
        if low < 1e-300 {
            return 0.0;
        }
    }
    for _ in 0..200 {
        let middle = 0.5 * (low + high);
        if middle <= low || middle >= high {
            break;
        }
        if allowed(middle) {
            low = middle;
        } else {
            high = middle;
        }
    }
    low
}

#[cfg(test)]
mod tests;
