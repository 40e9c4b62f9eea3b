//! Means over repeats as they are shown.

use crate::Shown;
use fedkin_numeric::statistics::{Estimate, moments};

/// Mean over repeats as it is shown: averaged first, then in decibels or percent.
pub fn estimate(values: &[f64], shown: Shown) -> Estimate {
    let plain = moments(values);
    Estimate {
        mean: shown.value(plain.mean),
        stderr: plain.stderr.map(|error| shown.error(plain.mean, error)),
    }
}

/// The paired difference a - b over equal seeds, each taken as shown (decibels, percent).
pub fn paired(a: &[f64], b: &[f64], shown: Shown) -> Estimate {
    let gaps: Vec<f64> = a.iter().zip(b).map(|(a, b)| shown.value(*a) - shown.value(*b)).collect();
    moments(&gaps)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decibels_are_taken_after_the_mean() {
        let shown = estimate(&[0.1, 0.001], Shown::Decibel);
        assert!((shown.mean - 10.0 * 0.0505f64.log10()).abs() < 1e-12);
        // d(10 log10 x) = 10/ln 10 dx/x; s.e. of the mean is 0.0495.
        assert!((shown.stderr.unwrap() - 10.0 / std::f64::consts::LN_10 * 0.0495 / 0.0505).abs() < 1e-12);
        let shown = estimate(&[0.1, 0.001], Shown::Log10);
        assert!((shown.mean - 0.0505f64.log10()).abs() < 1e-12);
        assert!((shown.stderr.unwrap() - 0.0495 / 0.0505 / std::f64::consts::LN_10).abs() < 1e-12);
        assert_eq!(estimate(&[0.1], Shown::Plain).stderr, None);
    }

    #[test]
    fn pairing_removes_what_both_share() {
        let gap = paired(&[1.1, 5.1, 9.1], &[1.0, 5.0, 9.0], Shown::Plain);
        assert!((gap.mean - 0.1).abs() < 1e-12 && gap.stderr.unwrap() < 1e-12);
    }
}
