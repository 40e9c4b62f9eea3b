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
