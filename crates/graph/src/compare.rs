//! How near a graph comes to the truth: its edges, and its weights.
//!
//! Whether a pair is joined is a yes or no (a weight above the threshold), counted over all `p` pairs:
//!
//! ```text
//! MCC = (TP TN - FP FN) / sqrt((TP + FP) (TP + FN) (TN + FP) (TN + FN))     (34) of the FedGL paper
//! precision = TP / (TP + FP),  recall = TP / (TP + FN),  F1 = 2 TP / (2 TP + FP + FN)
//! RE = |w - truth| / |truth|                                               (35), in vectors: the 2 cancels
//! RE, scale-free = min over s of |s w - truth| / |truth|,  at s = w' truth / w' w
//! ```
//!
//! A quotient whose denominator is zero is zero: a graph without edges, or with all of them, tells nothing. The
//! scale-free error is there because the learning problem fixes the weights only up to the choice of its two
//! parameters.

use super::Weighted;
use fedkin_numeric::{distance2, dot, norm2};

/// Pairs counted by what was found and what is true.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Confusion {
    /// Joined in both (TP).
    pub hits: usize,
    /// Found, but not true (FP).
    pub extra: usize,
    /// True, but not found (FN).
    pub missed: usize,
    /// Joined in neither (TN).
    pub absent: usize,
}

impl Confusion {
    /// Counts the pairs of two graphs; `None` where they have not the same number of nodes.
    pub fn count(found: &Weighted, truth: &Weighted, threshold: f64) -> Option<Self> {
        if found.nodes() != truth.nodes() {
            return None;
        }
        let mut counts = Self { hits: 0, extra: 0, missed: 0, absent: 0 };
        for (&found, &truth) in found.weights().iter().zip(truth.weights()) {
            match (found > threshold, truth > threshold) {
                (true, true) => counts.hits += 1,
                (true, false) => counts.extra += 1,
                (false, true) => counts.missed += 1,
                (false, false) => counts.absent += 1,
            }
        }
        Some(counts)
    }

    /// Matthews' correlation coefficient, -1 to 1; 0 where one of the graphs is empty or complete.
    pub fn mcc(&self) -> f64 {
        let [hits, extra, missed, absent] =
            [self.hits, self.extra, self.missed, self.absent].map(|count| count as f64);
        let marginals = (hits + extra).sqrt()
            * (hits + missed).sqrt()
            * (absent + extra).sqrt()
            * (absent + missed).sqrt();
        // The product of roots is off by roundings: a perfect score is not to be 1.0000000000000002.
        quotient(hits * absent - extra * missed, marginals).clamp(-1.0, 1.0)
    }

    /// Share of the found edges that are true.
    pub fn precision(&self) -> f64 {
        quotient(self.hits as f64, (self.hits + self.extra) as f64)
    }

    /// Share of the true edges that were found.
    pub fn recall(&self) -> f64 {
        quotient(self.hits as f64, (self.hits + self.missed) as f64)
    }

    /// The harmonic mean of precision and recall.
    pub fn f1(&self) -> f64 {
        quotient(2.0 * self.hits as f64, (2 * self.hits + self.extra + self.missed) as f64)
    }
}

fn quotient(above: f64, below: f64) -> f64 {
    if below > 0.0 { above / below } else { 0.0 }
}

/// Relative error (35) of the weights as they are. `None` where the graphs have not the same number of nodes, or the
/// truth has no edge.
pub fn relative_error(found: &Weighted, truth: &Weighted) -> Option<f64> {
    let size = size(found, truth)?;
    Some((distance2(found.weights(), truth.weights()) / size).sqrt())
}

/// Relative error after the best multiple of the found weights, and that multiple. `None` as with
/// [`relative_error`]; a graph without edges has error 1 at any multiple, and 0 is named.
pub fn scale_free_error(found: &Weighted, truth: &Weighted) -> Option<(f64, f64)> {
    let size = size(found, truth)?;
    let (w, truth) = (found.weights(), truth.weights());
    let factor = quotient(dot(w, truth), norm2(w));
    // Summed anew: |truth|^2 - (w' truth)^2 / |w|^2 would cancel where the error is small.
    let rest: f64 = w.iter().zip(truth).map(|(w, truth)| (factor * w - truth) * (factor * w - truth)).sum();
    Some(((rest / size).sqrt(), factor))
}

fn size(found: &Weighted, truth: &Weighted) -> Option<f64> {
    let size = norm2(truth.weights());
    (found.nodes() == truth.nodes() && size > 0.0 && size.is_finite()).then_some(size)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn graph(weights: &[f64]) -> Weighted {
        Weighted::new(super::super::pairs::nodes_of(weights.len()).unwrap(), weights.to_vec()).unwrap()
    }

    #[test]
    fn counted_by_hand() {
        let truth = graph(&[1.0, 2.0, 0.0, 0.0, 3.0, 0.0]);
        let found = graph(&[0.5, 0.0, 0.5, 1e-5, 0.5, 0.0]);
        let counts = Confusion::count(&found, &truth, 1e-4).unwrap();
        assert_eq!(counts, Confusion { hits: 2, extra: 1, missed: 1, absent: 2 });
        // (2 * 2 - 1) / sqrt(3 * 3 * 3 * 3)
        assert!((counts.mcc() - 1.0 / 3.0).abs() < 1e-15);
        assert_eq!((counts.precision(), counts.recall(), counts.f1()), (2.0 / 3.0, 2.0 / 3.0, 4.0 / 6.0));
        assert_eq!(Confusion::count(&found, &truth, 0.0).unwrap().extra, 2);
        let raw = relative_error(&found, &truth).unwrap();
        // 0.25 + 4 + 0.25 + 6.25 over 14; the 1e-10 does not show.
        assert!((raw - (10.75f64 / 14.0).sqrt()).abs() < 1e-9, "{raw}");
        let (free, factor) = scale_free_error(&found, &truth).unwrap();
        // w' truth = 2, w' w = 0.75: s = 8/3, the rest is 14 - 4 / 0.75.
        assert!(
            (factor - 8.0 / 3.0).abs() < 1e-8 && (free - ((14.0 - 16.0 / 3.0) / 14.0f64).sqrt()).abs() < 1e-8
        );
    }

    #[test]
    fn empty_margins_tell_nothing() {
        let (none, all, some) = (graph(&[0.0; 3]), graph(&[1.0; 3]), graph(&[1.0, 0.0, 0.0]));
        for (found, truth) in [(&none, &some), (&some, &none), (&all, &some), (&some, &all), (&none, &none)] {
            assert_eq!(Confusion::count(found, truth, 0.0).unwrap().mcc(), 0.0);
        }
        assert_eq!(Confusion::count(&none, &none, 0.0).unwrap().f1(), 0.0);
        assert_eq!((relative_error(&some, &none), scale_free_error(&some, &none)), (None, None));
        assert_eq!(
            (relative_error(&none, &some), scale_free_error(&none, &some)),
            (Some(1.0), Some((1.0, 0.0)))
        );
        let other = graph(&[1.0]);
        assert_eq!((Confusion::count(&some, &other, 0.0), relative_error(&some, &other)), (None, None));
    }

    proptest! {
        #[test]
        fn scale_does_not_matter_where_it_should_not(
            weights in prop::collection::vec((0u8..4, 0u8..4), 15),
            scale in 0.1f64..10.0,
        ) {
            let truth = graph(&weights.iter().map(|&(a, _)| f64::from(a)).collect::<Vec<_>>());
            let found = graph(&weights.iter().map(|&(_, b)| f64::from(b)).collect::<Vec<_>>());
            let scaled = graph(&found.weights().iter().map(|w| scale * w).collect::<Vec<_>>());
            let counts = Confusion::count(&found, &truth, 0.0).unwrap();
            prop_assert_eq!(Some(counts), Confusion::count(&scaled, &truth, 0.0));
            prop_assert!((-1.0..=1.0).contains(&counts.mcc()));
            let same = Confusion::count(&truth, &truth, 0.0).unwrap();
            prop_assert!(same.mcc() == 0.0 || (same.mcc() - 1.0).abs() < 1e-15);
            if let Some((free, _)) = scale_free_error(&found, &truth) {
                let (again, _) = scale_free_error(&scaled, &truth).unwrap();
                prop_assert!((free - again).abs() < 1e-12);
                prop_assert!(free <= relative_error(&scaled, &truth).unwrap() + 1e-12 && free <= 1.0 + 1e-12);
            }
        }
    }
}
