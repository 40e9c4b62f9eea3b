//! How far clients are apart: what a mean over them does not say.

use crate::Shown;
use serde::{Deserialize, Serialize};

/// The spread of one metric over clients, as it is shown.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Spread {
    /// Standard deviation over the clients, which are all there are: divided by their number.
    pub std: f64,
    /// Mean over the worst tenth of the clients, at least one.
    pub worst_decile: f64,
}

impl Spread {
    /// Of one value for each client before it is shown; clients without one do not count. Nothing without any.
    pub fn of(values: &[f64], shown: Shown) -> Option<Self> {
        let mut values: Vec<f64> = values.iter().copied().filter(|value| value.is_finite()).collect();
        let n = values.len() as f64;
        if values.is_empty() {
            return None;
        }
        values.sort_by(f64::total_cmp);
        if shown.higher_is_better() {
            values.reverse();
        }
        // Averaged first and then shown, as every mean is.
        let worst = &values[values.len() - values.len().div_ceil(10)..];
        let worst_decile = shown.value(worst.iter().sum::<f64>() / worst.len() as f64);
        let each: Vec<f64> = values.iter().map(|value| shown.value(*value)).collect();
        let mean = each.iter().sum::<f64>() / n;
        let std = (each.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / n).sqrt();
        Some(Self { std, worst_decile })
    }

    /// The mean of each number over repeats; nothing without any.
    pub fn mean(all: &[Self]) -> Option<Self> {
        let n = all.len() as f64;
        (!all.is_empty()).then(|| Self {
            std: all.iter().map(|one| one.std).sum::<f64>() / n,
            worst_decile: all.iter().map(|one| one.worst_decile).sum::<f64>() / n,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_worst_tenth_is_at_the_bad_end_and_at_least_one_client() {
        let many: Vec<f64> = (1..=20).map(f64::from).collect();
        let low = Spread::of(&many, Shown::Plain).unwrap();
        assert_eq!(low.worst_decile, 19.5);
        // The variance of 1 to n is (n^2 - 1) / 12.
        assert!((low.std - (399.0f64 / 12.0).sqrt()).abs() < 1e-12);
        let high = Spread::of(&many, Shown::Score).unwrap();
        assert_eq!((high.worst_decile, high.std), (1.5, low.std));
        let percent = Spread::of(&[0.5, 0.9, f64::NAN], Shown::Percent).unwrap();
        assert!((percent.worst_decile - 50.0).abs() < 1e-12 && (percent.std - 20.0).abs() < 1e-12);
        // Eleven clients have a worst two.
        let eleven: Vec<f64> = (1..=11).map(f64::from).collect();
        assert_eq!(Spread::of(&eleven, Shown::Score).unwrap().worst_decile, 1.5);
        assert_eq!(Spread::of(&[f64::NAN], Shown::Plain), None);
    }

    #[test]
    fn over_repeats_each_number_is_averaged() {
        let one = |std, worst_decile| Spread { std, worst_decile };
        assert_eq!(Spread::mean(&[one(1.0, 5.0), one(3.0, 6.0)]), Some(one(2.0, 5.5)));
        assert_eq!(Spread::mean(&[]), None);
    }
}
