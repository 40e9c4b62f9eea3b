//! What hypotheses of several classes keep to.

use super::super::{DEEPEST, Malformed, Sample, one_hot};
use super::*;
use crate::Dataset;
use fedkin_numeric::rng::{PublicRng, Random};
use proptest::prelude::*;

fn kinds() -> [Kind; 3] {
    [
        Kind::Tree { leaf: 3, depth: DEEPEST },
        Kind::Neighbours { count: 4 },
        Kind::Forest { trees: 5, leaf: 2, depth: 4 },
    ]
}

/// Features that are multiples of 1/64, and labels.
fn records(seed: u64, rows: usize, columns: usize, classes: u32) -> (Vec<f64>, Vec<f64>) {
    let mut rng = PublicRng::named(seed, "classes test", 0, 0);
    let features = (0..rows * columns).map(|_| f64::from(rng.below(1024)) / 64.0 - 8.0).collect();
    (features, (0..rows).map(|_| f64::from(rng.below(classes))).collect())
}

fn fitted(kind: &Kind, columns: usize, classes: usize, features: &[f64], labels: &[f64]) -> Vec<f64> {
    let (shares, weights) = (one_hot(labels, classes).unwrap(), vec![1.0; labels.len()]);
    kind.fit_classes(&ClassSample { columns, classes, features, shares: &shares, weights: &weights }).unwrap()
}

fn probabilities(model: &[f64], row: &[f64], classes: usize) -> Vec<f64> {
    let mut p = vec![f64::NAN; classes];
    Fitted::read(model, row.len()).unwrap().probabilities(row, &mut p);
    p
}

#[test]
fn a_tree_of_a_known_case() {
    // Labels 0 0 1 2 at 1 2 4 8: the first split is between 2 and 4, where the impurity falls most.
    let features = [1.0, 2.0, 4.0, 8.0];
    let kind = Kind::Tree { leaf: 1, depth: 1 };
    let tree = fitted(&kind, 1, 3, &features, &[0.0, 0.0, 1.0, 2.0]);
    let nodes = [0.0, 3.0, 2.0, -1.0, 0.0, 0.0, -1.0, 1.0, 0.0];
    assert_eq!(tree[..4], [CLASS_TREE, 1.0, 3.0, 3.0]);
    assert_eq!(tree[4..13], nodes);
    assert_eq!(tree[13..], [1.0, 0.0, 0.0, 0.0, 0.5, 0.5]);
    assert_eq!(probabilities(&tree, &[9.0], 3), [0.0, 0.5, 0.5]);
    let read = Fitted::read(&tree, 1).unwrap();
    assert_eq!((read.leaves(), read.classes(), read.predict(&[9.0])), (Some(2), Some(3), 1.0));
    let data = Dataset::new(1, features.to_vec(), vec![0.0, 0.0, 1.0, 2.0]).unwrap();
    assert_eq!((read.accuracy(&data), read.squared_error(&data)), (0.75, 0.25));
}

/// The best split by trying all, with the impurity written out: sum over sides of W (1 - sum of squared shares).
#[test]
fn the_first_split_lowers_the_gini_impurity_most() {
    for seed in 0..30 {
        let (features, labels) = records(seed, 30, 3, 4);
        let impurity = |side: &dyn Fn(usize) -> bool| {
            let mut counts = [0.0; 4];
            (0..30).filter(|&i| side(i)).for_each(|i| counts[labels[i] as usize] += 1.0);
            let total: f64 = counts.iter().sum();
            total * (1.0 - counts.iter().map(|c| (c / total) * (c / total)).sum::<f64>())
        };
        let mut least = f64::INFINITY;
        for j in 0..3 {
            for k in 0..30 {
                let left = |i: usize| features[3 * i + j] <= features[3 * k + j];
                if (4..=26).contains(&(0..30).filter(|&i| left(i)).count()) {
                    least = least.min(impurity(&left) + impurity(&|i| !left(i)));
                }
            }
        }
        let stump = fitted(&Kind::Tree { leaf: 4, depth: 1 }, 3, 4, &features, &labels);
        let (feature, threshold) = (stump[4] as usize, stump[5]);
        let left = |i: usize| features[3 * i + feature] <= threshold;
        let reached = impurity(&left) + impurity(&|i| !left(i));
        assert!((reached - least).abs() < 1e-9, "seed {seed}: {reached} instead of {least}");
    }
}

/// Two classes as several: the same splits and the same probabilities as a hypothesis of labels 0 and 1.
#[test]
fn two_classes_are_the_hypothesis_of_labels_0_and_1() {
    for kind in kinds() {
        let (features, labels) = records(2, 50, 2, 2);
        let several = fitted(&kind, 2, 2, &features, &labels);
        let weights = [1.0; 50];
        let sample = Sample { columns: 2, features: &features, targets: &labels, weights: &weights };
        let one = kind.fit(&sample, 1).unwrap();
        let (several, one) = (Fitted::read(&several, 2).unwrap(), Fitted::read(&one, 2).unwrap());
        assert_eq!((several.classes(), one.classes()), (Some(2), None));
        for row in features.chunks_exact(2) {
            let (mut p, mut q) = ([0.0; 2], [0.0; 2]);
            several.probabilities(row, &mut p);
            one.probabilities(row, &mut q);
            assert!((p[0] - q[0]).abs() < 1e-12 && (p[1] - q[1]).abs() < 1e-12, "{kind:?}: {p:?} {q:?}");
        }
    }
}

#[test]
fn probabilities_are_ones_and_the_same_twice() {
    for kind in kinds() {
        let (features, labels) = records(3, 60, 3, 5);
        let model = fitted(&kind, 3, 5, &features, &labels);
        let again = fitted(&kind, 3, 5, &features, &labels);
        assert!(model.iter().zip(&again).all(|(a, b)| a.to_bits() == b.to_bits()));
        for row in features.chunks_exact(3) {
            let p = probabilities(&model, row, 5);
            assert!(p.iter().all(|p| *p >= 0.0) && (p.iter().sum::<f64>() - 1.0).abs() < 1e-12);
        }
    }
}

/// A share of each of two labels is as good as the record twice with half the weight.
#[test]
fn shares_are_split_records() {
    let kind = Kind::Tree { leaf: 1, depth: 2 };
    let shares = [1.0, 0.0, 0.0, 0.25, 0.75, 0.0, 0.0, 0.0, 1.0];
    let sample = ClassSample {
        columns: 1,
        classes: 3,
        features: &[1.0, 2.0, 3.0],
        shares: &shares,
        weights: &[1.0, 2.0, 0.0],
    };
    let model = kind.fit_classes(&sample).unwrap();
    assert_eq!(probabilities(&model, &[2.0], 3), [0.25, 0.75, 0.0]);
    // A record of weight 0 is as good as absent.
    assert_eq!(probabilities(&model, &[3.0], 3), [0.25, 0.75, 0.0]);
    let near = Kind::Neighbours { count: 2 }.fit_classes(&sample).unwrap();
    assert_eq!(probabilities(&near, &[2.0], 3), [0.5, 0.5, 0.0]);
}

#[test]
fn what_is_fitted_is_read_again_and_damage_is_noticed() {
    for kind in kinds() {
        let (features, labels) = records(4, 40, 3, 4);
        let model = fitted(&kind, 3, 4, &features, &labels);
        assert!(kind.made_of_classes(&model, 3, 40, 4), "{kind:?}");
        assert!(!kind.made_of_classes(&model, 3, 40, 5) && !kind.made_of_classes(&model, 2, 40, 4));
        assert!(!kind.made(&model, 3, 40), "a model of several classes is none of one number");
        for cut in 0..model.len() {
            assert!(Fitted::read(&model[..cut], 3).is_err(), "{kind:?} cut at {cut}");
        }
        let mut longer = model.clone();
        longer.push(0.0);
        assert!(Fitted::read(&longer, 3).is_err());
        let mut bad = model.clone();
        *bad.last_mut().unwrap() = f64::NAN;
        assert_eq!(Fitted::read(&bad, 3).unwrap_err(), Malformed("one of them is not finite"));
    }
    let hostile = [
        // Leaves out of order, a table that is no share, no classes, too many.
        vec![CLASS_TREE, 2.0, 2.0, 1.0, -1.0, 1.0, 0.0, 0.5, 0.5],
        vec![CLASS_TREE, 2.0, 2.0, 1.0, -1.0, 0.0, 0.0, 0.7, 0.5],
        vec![CLASS_TREE, 2.0, 2.0, 1.0, -1.0, 0.0, 0.0, -0.5, 1.5],
        vec![CLASS_TREE, 2.0, 0.0, 1.0, -1.0, 0.0, 0.0],
        vec![CLASS_TREE, 2.0, 1e12, 1.0, -1.0, 0.0, 0.0],
        vec![CLASS_FOREST, 2.0, 2.0, 1e9, 1.0, -1.0, 0.0, 0.0, 0.5, 0.5],
        vec![CLASS_NEIGHBOURS, 2.0, 2.0, 1.0, 1.0, 1.0, 0.5, 0.6, 0.0, 0.0],
        vec![CLASS_NEIGHBOURS, 2.0, 2.0, 1.0, 1e12],
    ];
    for flat in hostile {
        assert!(Fitted::read(&flat, 2).is_err(), "{flat:?}");
    }
    assert!(Fitted::read(&[CLASS_TREE, 2.0, 2.0, 1.0, -1.0, 0.0, 0.0, 0.5, 0.5], 2).is_ok());
}

#[test]
fn labels_and_records_out_of_range_are_refused() {
    assert_eq!(one_hot(&[2.0, 0.0], 3).unwrap(), [0.0, 0.0, 1.0, 1.0, 0.0, 0.0]);
    for label in [3.0, -1.0, 0.5, f64::NAN, f64::INFINITY] {
        assert!(one_hot(&[label], 3).is_none(), "{label}");
    }
    for kind in kinds() {
        let fit = |shares: &[f64], weights: &[f64], classes| {
            kind.fit_classes(&ClassSample { columns: 1, classes, features: &[1.0, 2.0], shares, weights })
                .is_err()
        };
        let good = [1.0, 0.0, 0.0, 1.0];
        assert!(!fit(&good, &[1.0; 2], 2) && fit(&good, &[0.0; 2], 2) && fit(&good, &[1.0, f64::NAN], 2));
        assert!(fit(&[1.0, 0.0, 0.5, 0.6], &[1.0; 2], 2) && fit(&[f64::NAN; 4], &[1.0; 2], 2));
        assert!(fit(&good, &[1.0; 2], 4) && fit(&[1.0; 2], &[1.0; 2], 1) && fit(&[], &[1.0; 2], 0));
    }
    let linear = Kind::Linear(crate::model::Model {
        loss: crate::model::Loss::Squared,
        regularisation: 0.1,
        bias: false,
        feature_norm: None,
    });
    let sample =
        ClassSample { columns: 1, classes: 2, features: &[1.0], shares: &[1.0, 0.0], weights: &[1.0] };
    assert!(linear.fit_classes(&sample).is_err());
}

proptest! {
    /// One number of a fitted model changed: refused, or still a model.
    #[test]
    fn a_damaged_model_does_no_harm(which in 0usize..3, at in any::<prop::sample::Index>(), number in -3i8..50) {
        let (features, labels) = records(5, 30, 2, 3);
        let mut model = fitted(&kinds()[which], 2, 3, &features, &labels);
        let at = at.index(model.len());
        model[at] = f64::from(number);
        if let Ok(hypothesis) = Fitted::read(&model, 2) {
            let mut p = [0.0; 3];
            for row in features.chunks_exact(2) {
                let _ = hypothesis.predict(row);
                hypothesis.probabilities(row, &mut p);
            }
        }
    }
}
