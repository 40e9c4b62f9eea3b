//! Means with their standard errors, and a test of paired differences.

use crate::rng::{PublicRng, Random};
use serde::{Deserialize, Serialize};

/// A mean over repeats.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Estimate {
    /// The mean.
    pub mean: f64,
    /// Its standard error, if there were repeats.
    pub stderr: Option<f64>,
}

/// Mean and standard error of values; no error from a single one.
pub fn moments(values: &[f64]) -> Estimate {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let stderr = (values.len() > 1).then(|| {
        let squares: f64 = values.iter().map(|x| (x - mean) * (x - mean)).sum();
        (squares / (n - 1.0) / n).sqrt()
    });
    Estimate { mean, stderr }
}

/// What Student's t says of a mean that is estimated from repeats.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Student {
    /// How often a mean at least as far from zero comes out when the expectation is zero: two-sided.
    pub p: f64,
    /// The 95 % confidence interval of the mean.
    pub interval: (f64, f64),
}

/// Student's t of a mean over `repeats` values. Nothing for a single one, which has no error.
pub fn student(estimate: Estimate, repeats: usize) -> Option<Student> {
    let Estimate { mean, stderr } = estimate;
    let (stderr, freedom) = (stderr?, u32::try_from(repeats.checked_sub(1)?).ok()?);
    if freedom == 0 {
        return None;
    }
    // Repeats that all say the same leave no doubt, unless what they say is zero.
    let p = match (mean == 0.0, stderr == 0.0) {
        (true, _) => 1.0,
        (false, true) => 0.0,
        (false, false) => 1.0 - within(mean.abs() / stderr, freedom),
    };
    let half = stderr * student_quantile(0.95, freedom);
    Some(Student { p, interval: (mean - half, mean + half) })
}

/// The probability that Student's t lies between -t and t: the finite series for a whole number of degrees of freedom
/// (Abramowitz and Stegun, 26.7.3 and 26.7.4).
fn within(t: f64, freedom: u32) -> f64 {
    let nu = f64::from(freedom);
    // Sine and cosine of the angle whose tangent is t / sqrt(nu).
    let (angle, far) = (libm::atan(t / nu.sqrt()), (nu + t * t).sqrt());
    let (sin, cos) = (t / far, nu.sqrt() / far);
    // Terms of even powers of the cosine, or of odd ones: each is the one before times cos^2 and a ratio.
    let odd = freedom % 2 == 1;
    let (mut term, mut sum) = (if odd { cos } else { 1.0 }, 0.0);
    for k in 1..=freedom / 2 {
        sum += term;
        let k = f64::from(k);
        term *= cos * cos * if odd { 2.0 * k / (2.0 * k + 1.0) } else { (2.0 * k - 1.0) / (2.0 * k) };
    }
    if odd { std::f64::consts::FRAC_2_PI * (angle + sin * sum) } else { sin * sum }
}

/// The t for which Student's t lies between -t and t with this probability.
fn student_quantile(probability: f64, freedom: u32) -> f64 {
    let (mut low, mut high) = (0.0, 1.0);
    while within(high, freedom) < probability && high < 1e9 {
        high *= 2.0;
    }
    for _ in 0..80 {
        let middle = 0.5 * (low + high);
        if within(middle, freedom) < probability { low = middle } else { high = middle }
    }
    0.5 * (low + high)
}

/// A test of paired differences.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Flips {
    /// Their mean.
    pub mean: f64,
    /// Its standard error.
    pub stderr: f64,
    /// How often a mean at least as far from zero comes out when signs are drawn by lot.
    pub p: f64,
    /// Whether all signs were tried.
    pub exact: bool,
}

/// Up to so many differences all signs are tried.
const TRY_ALL: usize = 16;
/// How many signs are drawn beyond that.
const DRAWS: u32 = 100_000;

/// The sign-flip test of differences that are symmetric around zero if there is nothing to find: two-sided; exact for few
/// differences, from 100,000 draws of fixed seed for more. Nothing for fewer than two.
pub fn sign_flips(gaps: &[f64]) -> Option<Flips> {
    let Estimate { mean, stderr } = moments(gaps);
    let stderr = stderr?;
    let total: f64 = gaps.iter().sum();
    // Sums that differ by rounding are the same sum.
    let far = |sum: f64| sum.abs() >= total.abs() * (1.0 - 1e-12);
    let exact = gaps.len() <= TRY_ALL;
    let p = if exact {
        let all = 1u32 << gaps.len();
        let flipped = |signs: u32| -> f64 {
            gaps.iter().enumerate().map(|(i, gap)| if signs >> i & 1 == 1 { -gap } else { *gap }).sum()
        };
        f64::from((0..all).filter(|signs| far(flipped(*signs))).count() as u32) / f64::from(all)
    } else {
        let mut rng = PublicRng::named(0, "sign flips", 0, gaps.len() as u32);
        let mut hits = 1u32;
        for _ in 0..DRAWS {
            let sum: f64 = gaps.iter().map(|gap| if rng.below(2) == 1 { -gap } else { *gap }).sum();
            hits += u32::from(far(sum));
        }
        f64::from(hits) / f64::from(DRAWS + 1)
    };
    Some(Flips { mean, stderr, p, exact })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Quantiles of printed tables, and p of three repeats at two standard errors.
    #[test]
    fn student_has_the_quantiles_of_the_tables() {
        for (freedom, quantile) in [
            (1, 12.706_2),
            (2, 4.302_7),
            (3, 3.182_4),
            (4, 2.776_4),
            (9, 2.262_2),
            (19, 2.093_0),
            (30, 2.042_3),
            (299, 1.967_9),
        ] {
            assert!((student_quantile(0.95, freedom) - quantile).abs() < 1e-4, "{freedom}");
        }
        assert!((student_quantile(0.99, 10) - 3.169_3).abs() < 1e-4);
        let three = student(Estimate { mean: -2.0, stderr: Some(1.0) }, 3).unwrap();
        assert!((three.p - 0.183_5).abs() < 1e-4, "{}", three.p);
        assert!((three.interval.0 + 6.302_7).abs() < 1e-4 && (three.interval.1 - 2.302_7).abs() < 1e-4);
    }

    #[test]
    fn student_of_repeats_without_spread_or_without_repeats() {
        let sure = |mean| student(Estimate { mean, stderr: Some(0.0) }, 5).unwrap();
        assert_eq!((sure(0.0).p, sure(1.0).p, sure(1.0).interval), (1.0, 0.0, (1.0, 1.0)));
        assert_eq!(student(Estimate { mean: 1.0, stderr: None }, 1), None);
        assert_eq!(student(Estimate { mean: 1.0, stderr: Some(1.0) }, 1), None);
    }

    #[test]
    fn flips_of_sign_count_what_is_as_far_out() {
        // Only all plus and all minus reach the sum of four differences of one sign.
        let all = sign_flips(&[1.0, 2.0, 0.5, 1.5]).unwrap();
        assert!(all.exact && (all.p - 2.0 / 16.0).abs() < 1e-15 && (all.mean - 1.25).abs() < 1e-15);
        assert_eq!(sign_flips(&[1.0, -1.0]).unwrap().p, 1.0);
        assert_eq!(sign_flips(&[1.0]), None);
        // Twenty of one sign: two in 2^20, which 100,000 draws do not see.
        let many = sign_flips(&[1.0; 20]).unwrap();
        assert!(!many.exact && many.p < 1e-4);
        // Alternating signs are in the middle; the chance of a sum of at least 2 of 20 in size is 1 - C(20,10)/2^20 = 0.824,
        // and 100,000 draws miss it by 0.012 (ten deviations) practically never.
        let mut mixed: Vec<f64> = (0..20).map(|i| if i % 2 == 0 { 1.0 } else { -1.0 }).collect();
        mixed[1] = 1.0;
        assert!((sign_flips(&mixed).unwrap().p - 0.8238).abs() < 0.012);
    }
}
