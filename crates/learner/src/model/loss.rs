//! The loss of one record as a function of z = x'w, with its first two derivatives in z.

use fedkin_numeric::{exp, ln};

/// Which loss.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Loss {
    /// (z - y)^2, without a factor 1/2.
    Squared,
    /// (z - y)^2 up to this residual, linear beyond.
    Huber(f64),
    /// Cross-entropy of a label 0 or 1.
    Logistic,
    /// exp(z) - y z of a count y that is not negative: the mean is exp(z).
    Poisson,
    /// Pinball loss at this level q, above 0 and below 1: q (y - z) where y >= z, (1 - q) (z - y) elsewhere.
    Quantile(f64),
}

/// Beyond this exponent exp(z) is continued by its second-order expansion there, which is convex, has two continuous
/// derivatives and stays finite. Counts are smaller than exp(30), which is 1e13, and a Newton system with a larger
/// curvature would not resolve a penalty of about 1 beside it.
const LARGEST_EXPONENT: f64 = 30.0;

/// exp(z), its slope and its curvature, continued beyond the largest exponent.
fn exponential(z: f64) -> [f64; 3] {
    if z <= LARGEST_EXPONENT {
        return [exp(z); 3];
    }
    let (top, beyond) = (exp(LARGEST_EXPONENT), z - LARGEST_EXPONENT);
    [top * (1.0 + beyond * (1.0 + 0.5 * beyond)), top * (1.0 + beyond), top]
}

/// 1 / (1 + exp(-z)) without overflow.
fn sigmoid(z: f64) -> f64 {
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
            Loss::Poisson => exponential(z)[0] - y * z,
            Loss::Quantile(level) => {
                let gap = y - z;
                if gap >= 0.0 { level * gap } else { (level - 1.0) * gap }
            }
        }
    }

    /// dl/dz (for the quantile loss a subgradient: at its kink that of the side below).
    pub fn slope(self, z: f64, y: f64) -> f64 {
        match self {
            Loss::Squared => 2.0 * (z - y),
            Loss::Huber(threshold) => 2.0 * (z - y).clamp(-threshold, threshold),
            Loss::Logistic => sigmoid(z) - y,
            Loss::Poisson => exponential(z)[1] - y,
            Loss::Quantile(level) => {
                if y >= z {
                    -level
                } else {
                    1.0 - level
                }
            }
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
            Loss::Poisson => exponential(z)[2],
            Loss::Quantile(_) => 0.0,
        }
    }

    /// The prediction that belongs to z: a number, the probability of label 1, the mean of a count.
    pub fn prediction(self, z: f64) -> f64 {
        match self {
            Loss::Squared | Loss::Huber(_) | Loss::Quantile(_) => z,
            Loss::Logistic => sigmoid(z),
            Loss::Poisson => exponential(z)[1],
        }
    }

    /// The most that the slope can be, whatever z and y; none where it grows without bound.
    pub fn steepest(self) -> Option<f64> {
        match self {
            Loss::Squared | Loss::Poisson => None,
            Loss::Huber(threshold) => Some(2.0 * threshold),
            Loss::Logistic => Some(1.0),
            Loss::Quantile(level) => Some(level.max(1.0 - level)),
        }
    }

    /// Whether the loss has a slope everywhere.
    pub fn is_smooth(self) -> bool {
        match self {
            Loss::Squared | Loss::Huber(_) | Loss::Logistic | Loss::Poisson => true,
            Loss::Quantile(_) => false,
        }
    }

    /// Whether a target can be one of this loss.
    pub fn takes(self, y: f64) -> bool {
        match self {
            Loss::Squared | Loss::Huber(_) | Loss::Quantile(_) => y.is_finite(),
            Loss::Logistic => (0.0..=1.0).contains(&y),
            Loss::Poisson => y >= 0.0 && y.is_finite(),
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
    fn counts_and_quantiles_stay_finite_far_out() {
        for z in [-1e100, -800.0, -40.0, 0.0, 29.0, 31.0, 800.0, 1e100] {
            for y in [0.0, 1.0, 40.0] {
                for loss in [Loss::Poisson, Loss::Quantile(0.1), Loss::Quantile(0.9)] {
                    assert!(loss.value(z, y).is_finite() && loss.slope(z, y).is_finite());
                    assert!(loss.curve(z, y) >= 0.0 && loss.prediction(z).is_finite());
                }
                assert!(Loss::Quantile(0.1).slope(z, y).abs() <= Loss::Quantile(0.1).steepest().unwrap());
            }
        }
    }

    #[test]
    fn slopes_and_curves_agree_with_finite_differences_away_from_kinks() {
        for loss in [
            Loss::Squared,
            Loss::Huber(0.4),
            Loss::Logistic,
            Loss::Poisson,
            Loss::Quantile(0.2),
            Loss::Quantile(0.5),
        ] {
            for z in [-3.0, -0.7, 0.2, 1.9, 4.0] {
                for y in [0.0, 1.0] {
                    let h = 1e-5;
                    let slope = (loss.value(z + h, y) - loss.value(z - h, y)) / (2.0 * h);
                    assert!((slope - loss.slope(z, y)).abs() < 1e-7, "{loss:?} at {z}, {y}");
                    let curve = (loss.slope(z + h, y) - loss.slope(z - h, y)) / (2.0 * h);
                    assert!((curve - loss.curve(z, y)).abs() < 1e-7, "{loss:?} at {z}, {y}");
                }
            }
        }
    }

    #[test]
    fn the_exponential_is_continued_with_two_derivatives_and_convex() {
        let (below, above) = (exponential(LARGEST_EXPONENT), exponential(LARGEST_EXPONENT + 1e-9));
        for (below, above) in below.iter().zip(above) {
            assert!((above / below - 1.0).abs() < 1e-8);
        }
        let h = 1e-4;
        let z = LARGEST_EXPONENT + 7.0;
        let (down, here, up) = (exponential(z - h), exponential(z), exponential(z + h));
        assert!(((up[0] - down[0]) / (2.0 * h) / here[1] - 1.0).abs() < 1e-7);
        assert!(((up[1] - down[1]) / (2.0 * h) / here[2] - 1.0).abs() < 1e-7);
    }

    #[test]
    fn the_pinball_loss_of_a_known_case() {
        let loss = Loss::Quantile(0.9);
        assert!((loss.value(1.0, 3.0) - 1.8).abs() < 1e-15 && (loss.value(3.0, 1.0) - 0.2).abs() < 1e-15);
        assert_eq!((loss.slope(1.0, 1.0), loss.slope(0.0, 1.0)), (-0.9, -0.9));
        // At 1/2 it is half the absolute error.
        assert_eq!(Loss::Quantile(0.5).value(-2.0, 1.0), 1.5);
        assert_eq!(Loss::Poisson.prediction(0.0), 1.0);
        assert!(!Loss::Poisson.takes(-1.0) && !Loss::Poisson.takes(f64::NAN) && Loss::Poisson.takes(0.0));
    }

    #[test]
    fn huber_with_a_wide_threshold_is_squared() {
        for z in [-3.0, 0.0, 2.5] {
            assert_eq!(Loss::Huber(100.0).value(z, 1.0), Loss::Squared.value(z, 1.0));
            assert_eq!(Loss::Huber(100.0).slope(z, 1.0), Loss::Squared.slope(z, 1.0));
        }
    }
}
