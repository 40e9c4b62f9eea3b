//! The loss of one record as a function of z = x'w, with its first two derivatives in z.

use crate::numeric::{exp, ln};

/// Which loss.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Loss {
    /// (z - y)^2, without a factor 1/2.
    Squared,
    /// (z - y)^2 up to this residual, linear beyond.
    Huber(f64),
    /// Cross-entropy of a label 0 or 1.
    Logistic,
}

/// 1 / (1 + exp(-z)) without overflow.
pub(super) fn sigmoid(z: f64) -> f64 {
    if z >= 0.0 {
        1.0 / (1.0 + exp(-z))
    } else {
        let e = exp(z);
        e / (1.0 + e)
    }
}

impl Loss {
    /// l(z, y).
    pub fn value(self, z: f64, y: f64) -> f64 {
        match self {
            Loss::Squared => (z - y) * (z - y),
            Loss::Huber(threshold) => {
                let residual = (z - y).abs();
                if residual <= threshold {
                    residual * residual
                } else {
                    2.0 * threshold * residual - threshold * threshold
                }
            }
            // log(1 + e^z) - y z, written so that a large z does not overflow.
            Loss::Logistic => z.max(0.0) - y * z + ln(1.0 + exp(-z.abs())),
        }
    }

    /// dl/dz.
    pub fn slope(self, z: f64, y: f64) -> f64 {
        match self {
            Loss::Squared => 2.0 * (z - y),
            Loss::Huber(threshold) => 2.0 * (z - y).clamp(-threshold, threshold),
            Loss::Logistic => sigmoid(z) - y,
        }
    }

    /// d2l/dz2 (for Huber an element of the generalised derivative).
    pub fn curve(self, z: f64, y: f64) -> f64 {
        match self {
            Loss::Squared => 2.0,
            Loss::Huber(threshold) => {
                if (z - y).abs() <= threshold {
                    2.0
                } else {
                    0.0
                }
            }
            Loss::Logistic => {
                let p = sigmoid(z);
                p * (1.0 - p)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn losses_stay_finite_far_out() {
        for z in [-800.0, -40.0, 0.0, 40.0, 800.0] {
            for y in [0.0, 1.0] {
                for loss in [Loss::Logistic, Loss::Huber(1.0), Loss::Squared] {
                    assert!(loss.value(z, y).is_finite() && loss.value(z, y) >= 0.0);
                    assert!(loss.slope(z, y).is_finite() && loss.curve(z, y) >= 0.0);
                }
                assert!(Loss::Logistic.slope(z, y).abs() <= 1.0);
            }
        }
    }

    #[test]
    fn huber_with_a_wide_threshold_is_squared() {
        for z in [-3.0, 0.0, 2.5] {
            assert_eq!(Loss::Huber(100.0).value(z, 1.0), Loss::Squared.value(z, 1.0));
            assert_eq!(Loss::Huber(100.0).slope(z, 1.0), Loss::Squared.slope(z, 1.0));
        }
    }
}
