//! Means with their standard errors.

pub use crate::report::Estimate;
use crate::scorer::Shown;

/// Mean and standard error of values; no error from a single one.
pub(crate) fn moments(values: &[f64]) -> Estimate {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let stderr = (values.len() > 1).then(|| {
        let squares: f64 = values.iter().map(|x| (x - mean) * (x - mean)).sum();
        (squares / (n - 1.0) / n).sqrt()
    });
    Estimate { mean, stderr }
}

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
        assert_eq!(estimate(&[0.1], Shown::Plain).stderr, None);
    }

    #[test]
    fn pairing_removes_what_both_share() {
        let gap = paired(&[1.1, 5.1, 9.1], &[1.0, 5.0, 9.0], Shown::Plain);
        assert!((gap.mean - 0.1).abs() < 1e-12 && gap.stderr.unwrap() < 1e-12);
    }
}
