//! What every kind of hypothesis keeps to.

use super::*;
use crate::Dataset;
use crate::model::Loss;
use fedkin_numeric::rng::{PublicRng, Random};
use proptest::prelude::*;

fn ridge(regularisation: f64) -> Kind {
    Kind::Linear(Model { loss: Loss::Squared, regularisation, bias: true, feature_norm: None })
}

fn logistic() -> Kind {
    Kind::Linear(Model { loss: Loss::Logistic, regularisation: 0.1, bias: true, feature_norm: None })
}

fn kinds() -> [Kind; 5] {
    [
        Kind::Tree { leaf: 3, depth: DEEPEST },
        Kind::Neighbours { count: 4 },
        Kind::Forest { trees: 5, leaf: 2, depth: 4 },
        ridge(0.1),
        logistic(),
    ]
}

/// Records with targets in [0, 1]; all numbers are multiples of 1/64, so that sums of them are exact.
fn records(seed: u64, rows: usize, columns: usize) -> (Vec<f64>, Vec<f64>) {
    let mut rng = PublicRng::named(seed, "hypothesis test", 0, 0);
    let features = (0..rows * columns).map(|_| f64::from(rng.below(1024)) / 64.0 - 8.0).collect();
    let targets = (0..rows).map(|_| f64::from(rng.below(65)) / 64.0).collect();
    (features, targets)
}

fn fitted(kind: &Kind, columns: usize, features: &[f64], targets: &[f64], weights: &[f64]) -> Vec<f64> {
    kind.fit(&Sample { columns, features, targets, weights }, 1).unwrap()
}

fn predictions(model: &[f64], features: &[f64], columns: usize) -> Vec<f64> {
    Fitted::read(model, columns).unwrap().predictions(features, columns)
}

/// Where to compare hypotheses: not only where they were fitted.
fn places(columns: usize) -> Vec<f64> {
    let mut rng = PublicRng::named(9, "hypothesis places", 0, 0);
    (0..200 * columns).map(|_| rng.between(-9.0, 9.0)).collect()
}

#[test]
fn a_tree_finds_the_best_split_and_gives_weighted_means() {
    // Four records of one feature: {0, 1} and {5, 9} part best between 2 and 4.
    let (features, targets, weights) = ([1.0, 2.0, 4.0, 8.0], [0.0, 1.0, 5.0, 9.0], [1.0, 3.0, 1.0, 1.0]);
    let tree = fitted(&Kind::Tree { leaf: 2, depth: 9 }, 1, &features, &targets, &weights);
    assert_eq!(tree, [TREE, 1.0, 3.0, 0.0, 3.0, 2.0, -1.0, 0.75, 0.0, -1.0, 7.0, 0.0]);
    assert_eq!(predictions(&tree, &[-1.0, 3.0, 3.5, 99.0], 1), [0.75, 0.75, 7.0, 7.0]);
    // A leaf for each: every record is met.
    let rich = fitted(&Kind::Tree { leaf: 1, depth: 9 }, 1, &features, &targets, &weights);
    assert_eq!(predictions(&rich, &features, 1), targets);
    // One split in a row.
    let stump = fitted(&Kind::Tree { leaf: 1, depth: 1 }, 1, &features, &targets, &weights);
    assert_eq!(Fitted::read(&stump, 1).unwrap().leaves(), Some(2));
}

/// The best split by trying all: the tree's way of summing is a shortcut.
#[test]
fn the_first_split_is_the_best_of_all() {
    for seed in 0..40 {
        let (features, targets) = records(seed, 30, 3);
        let mut rng = PublicRng::named(seed, "split weights", 0, 0);
        let weights: Vec<f64> = targets.iter().map(|_| f64::from(1 + rng.below(4))).collect();
        let error = |side: &dyn Fn(usize) -> bool| {
            let of = |f: &dyn Fn(usize) -> f64| (0..30).filter(|&i| side(i)).map(f).sum::<f64>();
            let mean = of(&|i| weights[i] * targets[i]) / of(&|i| weights[i]);
            of(&|i| weights[i] * (targets[i] - mean).powi(2))
        };
        let mut least = f64::INFINITY;
        for j in 0..3 {
            for k in 0..30 {
                let threshold = features[3 * k + j];
                let left = |i: usize| features[3 * i + j] <= threshold;
                let count = (0..30).filter(|&i| left(i)).count();
                if (4..=26).contains(&count) {
                    least = least.min(error(&left) + error(&|i| !left(i)));
                }
            }
        }
        let stump = fitted(&Kind::Tree { leaf: 4, depth: 1 }, 3, &features, &targets, &weights);
        let made = predictions(&stump, &features, 3);
        let reached: f64 = (0..30).map(|i| weights[i] * (made[i] - targets[i]).powi(2)).sum();
        assert!((reached - least).abs() < 1e-9, "seed {seed}: {reached} instead of {least}");
    }
}

#[test]
fn leaves_hold_as_many_records_as_they_must() {
    for seed in 0..20 {
        let (features, targets) = records(seed, 57, 2);
        let tree = fitted(&Kind::Tree { leaf: 10, depth: DEEPEST }, 2, &features, &targets, &[1.0; 57]);
        let made = predictions(&tree, &features, 2);
        for value in &made {
            assert!(made.iter().filter(|other| *other == value).count() >= 10);
        }
        assert!(Fitted::read(&tree, 2).unwrap().leaves().unwrap() <= 5);
    }
}

#[test]
fn neighbours_are_a_weighted_mean_of_the_nearest() {
    let kind = Kind::Neighbours { count: 2 };
    let model = fitted(&kind, 1, &[0.0, 1.0, 10.0], &[2.0, 8.0, -1.0], &[3.0, 1.0, 5.0]);
    assert_eq!(predictions(&model, &[0.2, 9.0], 1), [(3.0 * 2.0 + 8.0) / 4.0, (8.0 - 5.0) / 6.0]);
    // Fewer records than neighbours: the mean of all.
    let all = fitted(&Kind::Neighbours { count: 9 }, 1, &[0.0, 1.0], &[2.0, 8.0], &[1.0, 1.0]);
    assert_eq!(predictions(&all, &[7.0], 1), [5.0]);
}

#[test]
fn a_linear_hypothesis_is_the_weighted_least_squares_line() {
    // Weights 1, 2, 1 at x = -1, 0, 1: intercept and slope are the weighted means of y and x y over x^2.
    let model = fitted(&ridge(1e-12), 1, &[-1.0, 0.0, 1.0], &[0.0, 3.0, 2.0], &[1.0, 2.0, 1.0]);
    let made = predictions(&model, &[0.0, 1.0], 1);
    assert!((made[0] - 2.0).abs() < 1e-6 && (made[1] - 3.0).abs() < 1e-6, "{made:?}");
}

#[test]
fn a_forest_of_pure_records_says_what_they_say_and_of_others_a_mean() {
    let (features, _) = records(1, 40, 2);
    let kind = Kind::Forest { trees: 7, leaf: 3, depth: DEEPEST };
    let model = fitted(&kind, 2, &features, &[0.25; 40], &[1.0; 40]);
    assert!(predictions(&model, &places(2), 2).iter().all(|y| *y == 0.25));
    let (features, targets) = records(2, 200, 2);
    let forest = fitted(&kind, 2, &features, &targets, &[1.0; 200]);
    let tree = fitted(&Kind::Tree { leaf: 3, depth: DEEPEST }, 2, &features, &targets, &[1.0; 200]);
    let spread = |model: &[f64]| {
        let made = predictions(model, &places(2), 2);
        let mean = made.iter().sum::<f64>() / made.len() as f64;
        made.iter().map(|y| (y - mean).powi(2)).sum::<f64>() / made.len() as f64
    };
    // The targets are noise: an average of trees makes less of it.
    assert!(spread(&forest) < 0.7 * spread(&tree), "{} and {}", spread(&forest), spread(&tree));
}

/// A record that is drawn twice counts twice: 20 draws fill two leaves of ten.
#[test]
fn trees_of_a_forest_count_draws() {
    let features: Vec<f64> = (0..20).map(f64::from).collect();
    let targets: Vec<f64> = (0..20).map(|i| f64::from(u8::from(i >= 10))).collect();
    let forest = fitted(&Kind::Forest { trees: 20, leaf: 9, depth: 4 }, 1, &features, &targets, &[1.0; 20]);
    let made = predictions(&forest, &[0.0, 19.0], 1);
    assert!(made[1] - made[0] > 0.5, "{made:?}");
}

/// Whole weights are repeated records, for kinds whose settings do not count records.
#[test]
fn whole_weights_are_repeated_records() {
    for seed in 0..20 {
        let (features, targets) = records(seed, 25, 2);
        let mut rng = PublicRng::named(seed, "whole weights", 0, 0);
        let weights: Vec<f64> = targets.iter().map(|_| f64::from(rng.below(4))).collect();
        let (mut more, mut of_more) = (Vec::new(), Vec::new());
        for (i, weight) in weights.iter().enumerate() {
            for _ in 0..*weight as usize {
                more.extend_from_slice(&features[2 * i..2 * i + 2]);
                of_more.push(targets[i]);
            }
        }
        let ones = vec![1.0; of_more.len()];
        for kind in [Kind::Tree { leaf: 1, depth: 3 }, ridge(0.1), logistic()] {
            let weighted = predictions(&fitted(&kind, 2, &features, &targets, &weights), &places(2), 2);
            let repeated = predictions(&fitted(&kind, 2, &more, &of_more, &ones), &places(2), 2);
            for (a, b) in weighted.iter().zip(&repeated) {
                assert!((a - b).abs() < 1e-7, "seed {seed}, {kind:?}: {a} and {b}");
            }
        }
    }
}

#[test]
fn only_ratios_of_weights_matter_and_a_weight_of_zero_is_an_absent_record() {
    for kind in kinds() {
        let (features, targets) = records(5, 30, 2);
        let mut rng = PublicRng::named(5, "ratios", 0, 0);
        let weights: Vec<f64> = targets.iter().map(|_| f64::from(1 + rng.below(3))).collect();
        let once = predictions(&fitted(&kind, 2, &features, &targets, &weights), &places(2), 2);
        let scaled: Vec<f64> = weights.iter().map(|w| w / 1024.0).collect();
        assert_eq!(
            once,
            predictions(&fitted(&kind, 2, &features, &targets, &scaled), &places(2), 2),
            "{kind:?}"
        );
        let (mut more, mut of_more, mut with_zero) = (features.clone(), targets.clone(), weights.clone());
        more.extend([3.0, 3.0]);
        of_more.push(1.0);
        with_zero.push(0.0);
        let absent = predictions(&fitted(&kind, 2, &more, &of_more, &with_zero), &places(2), 2);
        assert_eq!(once, absent, "{kind:?}");
    }
}

#[test]
fn what_is_fitted_is_read_again_and_damage_is_noticed() {
    for kind in kinds() {
        let (features, targets) = records(3, 40, 3);
        let model = fitted(&kind, 3, &features, &targets, &[1.0; 40]);
        assert!(kind.made(&model, 3, 40), "{kind:?}");
        assert!(!kind.made(&model, 2, 40) && !kind.made(&model[..model.len() - 1], 3, 40));
        for cut in 0..model.len() {
            assert!(Fitted::read(&model[..cut], 3).is_err(), "{kind:?} cut at {cut}");
        }
        let mut longer = model.clone();
        longer.push(0.0);
        assert!(Fitted::read(&longer, 3).is_err());
        for other in kinds().iter().filter(|other| other.tag() != kind.tag()) {
            assert!(!other.made(&model, 3, 40), "{kind:?} as {other:?}");
        }
        for number in [f64::NAN, f64::INFINITY] {
            let mut bad = model.clone();
            *bad.last_mut().unwrap() = number;
            assert_eq!(Fitted::read(&bad, 3).unwrap_err(), Malformed("one of them is not finite"));
        }
    }
    // More records than a client can have.
    let (features, targets) = records(3, 40, 3);
    let near = Kind::Neighbours { count: 4 };
    assert!(!near.made(&fitted(&near, 3, &features, &targets, &[1.0; 40]), 3, 39));
}

/// Lists that a reader without checks would follow for ever, or out of bounds.
#[test]
fn hostile_lists_are_refused() {
    let tree = |nodes: &[[f64; 3]]| {
        let mut flat = vec![TREE, 2.0, nodes.len() as f64];
        flat.extend(nodes.iter().flatten());
        flat
    };
    let leaf = [-1.0, 0.5, 0.0];
    assert!(Fitted::read(&tree(&[[1.0, 0.5, 2.0], leaf, leaf]), 2).is_ok());
    let hostile = [
        tree(&[[0.0, 0.5, 0.0], leaf, leaf]),
        tree(&[[0.0, 0.5, 1.0], leaf, leaf]),
        tree(&[[0.0, 0.5, 3.0], leaf, leaf]),
        tree(&[[0.0, 0.5, 1e300], leaf, leaf]),
        tree(&[[2.0, 0.5, 2.0], leaf, leaf]),
        tree(&[[-2.0, 0.5, 2.0], leaf, leaf]),
        tree(&[[0.5, 0.5, 2.0], leaf, leaf]),
        tree(&[[0.0, 0.5, 2.5], leaf, leaf]),
        tree(&[leaf, leaf]),
        tree(&[]),
        tree(&[[0.0, 0.5, 2.0], [0.0, 0.1, 4.0], leaf, leaf, leaf]),
        vec![],
        vec![TREE],
        vec![TREE, 2.0],
        vec![TREE, 2.0, 1e18],
        vec![NEIGHBOURS, 2.0, 1.0, 0.0],
        vec![NEIGHBOURS, 2.0, 0.0, 1.0, 1.0, 1.0, 0.0, 0.0],
        vec![NEIGHBOURS, 2.0, 1.0, 1.0, 0.0, 1.0, 0.0, 0.0],
        vec![NEIGHBOURS, 2.0, 1.0, 1e12],
        vec![FOREST, 2.0, 0.0],
        vec![FOREST, 2.0, 1e9, 1.0, -1.0, 0.5, 0.0],
        vec![LINEAR, 2.0, 0.5, 0.0, 1.0, 1.0],
        vec![LINEAR, 2.0, 0.0, -1.0, 1.0, 1.0],
        vec![LOGISTIC, 2.0, 1.0, 0.0, 1.0, 1.0],
        vec![10.0, 2.0, 1.0],
        vec![TREE, 3.0, 1.0, -1.0, 0.5, 0.0],
    ];
    for flat in hostile {
        assert!(Fitted::read(&flat, 2).is_err(), "{flat:?}");
    }
    assert!(Fitted::read(&constant(2, 0.5), 0).is_err());
}

#[test]
fn records_that_no_model_can_be_fitted_to_are_refused() {
    for kind in kinds() {
        let fit = |targets: &[f64], weights: &[f64]| {
            kind.fit(&Sample { columns: 1, features: &[1.0, 2.0], targets, weights }, 1).is_err()
        };
        assert!(fit(&[0.0, 1.0], &[0.0, 0.0]) && fit(&[0.0, 1.0], &[1.0, -1.0]));
        assert!(fit(&[0.0, 1.0], &[1.0]) && fit(&[0.0, f64::NAN], &[1.0, 1.0]));
    }
}

#[test]
fn accuracy_and_squared_error_of_a_known_case() {
    let data = Dataset::new(1, vec![0.0, 1.0, 2.0, 3.0], vec![0.0, 0.0, 1.0, 1.0]).unwrap();
    let model = fitted(&Kind::Tree { leaf: 1, depth: 1 }, 1, &[0.0, 1.0], &[0.0, 0.5], &[1.0, 1.0]);
    let hypothesis = Fitted::read(&model, 1).unwrap();
    assert_eq!(hypothesis.accuracy(&data), 0.75);
    assert_eq!(hypothesis.squared_error(&data), (0.0 + 0.25 + 0.25 + 0.25) / 4.0);
}

#[test]
fn parameters_are_those_of_linear_models_alone() {
    let model = Model { loss: Loss::Squared, regularisation: 0.1, bias: true, feature_norm: None };
    assert_eq!(parameters(&zero(2, &model)), [0.0; 3]);
    assert_eq!(parameters(&constant(2, 1.0)), [0.0; 0]);
    assert!(Kind::Linear(model).made(&zero(2, &model), 2, 1));
}

proptest! {
    /// Whatever comes, reading ends, and what was read can predict.
    #[test]
    fn any_list_of_numbers_is_read_or_refused(
        tag in 1u8..11,
        numbers in proptest::collection::vec(
            prop_oneof![(-1i8..8).prop_map(f64::from), any::<f64>(), (0u8..3).prop_map(|x| f64::from(x) / 2.0)],
            0..40,
        ),
    ) {
        let mut flat = vec![f64::from(tag), 2.0];
        flat.extend(numbers);
        if let Ok(hypothesis) = Fitted::read(&flat, 2) {
            let _ = hypothesis.predict(&[0.3, -0.7]);
            hypothesis.probabilities(&[0.3, -0.7], &mut [0.0; 3]);
        }
    }

    /// One number of a fitted model changed: refused, or still a model.
    #[test]
    fn a_damaged_model_does_no_harm(which in 0usize..5, at in any::<prop::sample::Index>(), number in -3i8..50) {
        let (features, targets) = records(4, 30, 2);
        let mut model = fitted(&kinds()[which], 2, &features, &targets, &[1.0; 30]);
        let at = at.index(model.len());
        model[at] = f64::from(number);
        if let Ok(hypothesis) = Fitted::read(&model, 2) {
            let _ = hypothesis.predictions(&features, 2);
        }
    }
}
