//! Certificates of optimality.

use super::super::{Loss, Model, Prox, fit};
use super::*;
use fedkin_numeric::rng::{PublicRng, Random};
use proptest::prelude::*;
use std::sync::Arc;

fn sample(seed: u64, rows: usize, columns: usize) -> Dataset {
    let mut rng = PublicRng::named(seed, "quantile test", rows as u32, columns as u32);
    let features = (0..rows * columns).map(|_| rng.normal()).collect();
    Dataset::new(columns, features, (0..rows).map(|_| rng.normal()).collect()).unwrap()
}

/// The certificate: w = m + X'a with a in its box, and every residual on the side that a says.
fn certify(level: f64, data: &Dataset, curvature: f64, m: &[f64]) -> Result<Vec<f64>, String> {
    let rows = data.rows();
    let weight = 1.0 / rows as f64;
    let pinball = Pinball::new(level, data, vec![weight; rows]).unwrap();
    let (mut w, mut work) = (m.to_vec(), vec![f64::NAN; 3]);
    pinball.solve(data, curvature, &mut w, &mut work).map_err(|e| e.to_string())?;
    let (mut expected, mut size) = (m.to_vec(), 1.0 + norm2(m).sqrt());
    for (i, &a) in work[..rows].iter().enumerate() {
        axpy(a, data.row(i), &mut expected);
        let width = weight / curvature;
        let [low, high] = [-(1.0 - level) * width, level * width];
        let residual = data.targets()[i] - dot(data.row(i), &w);
        size = size.max(norm2(data.row(i)).sqrt() * norm2(&w).sqrt()).max(data.targets()[i].abs());
        let right = (residual > -1e-11 * size || a == low)
            && (residual < 1e-11 * size || a == high)
            && (low..=high).contains(&a);
        if !right {
            return Err(format!("record {i}: residual {residual:e} at {a} in {low}..{high}"));
        }
    }
    let gap = fedkin_numeric::distance2(&w, &expected).sqrt();
    if gap < 1e-12 * size { Ok(w) } else { Err(format!("the point is off by {gap:e}")) }
}

#[test]
fn steps_are_optimal_whatever_the_shape() {
    for (rows, columns) in
        [(1, 1), (1, 8), (5, 12), (8, 8), (30, 6), (40, 3), (200, 5), (60, 60), (2000, 4), (300, 40)]
    {
        for (level, curvature) in [(0.5, 1.0), (0.1, 0.05), (0.95, 20.0), (0.5, 1e-4)] {
            let data = sample(1, rows, columns);
            let m: Vec<f64> = (0..columns).map(|j| 0.3 * (j as f64).cos()).collect();
            if let Err(text) = certify(level, &data, curvature, &m) {
                panic!("{rows} x {columns}, level {level}, curvature {curvature}: {text}");
            }
        }
    }
}

#[test]
fn one_record_has_a_closed_form() {
    // w = m + a x with a = (y - x'm) / |x|^2, cut to the box.
    let data = Dataset::new(2, vec![3.0, 4.0], vec![2.0]).unwrap();
    for (curvature, expected) in [(0.01, 2.0 / 25.0), (10.0, 0.08), (100.0, 0.007)] {
        let w = certify(0.7, &data, curvature, &[0.0, 0.0]).unwrap();
        let a: f64 = f64::min(expected, 0.7 / curvature);
        assert!((w[0] - 3.0 * a).abs() < 1e-14 && (w[1] - 4.0 * a).abs() < 1e-14, "{w:?}");
    }
}

/// Equal records, records of zeros and residuals that are zero from the start.
#[test]
fn dependent_records_are_no_trouble() {
    let mut rng = PublicRng::named(2, "dependent", 0, 0);
    for columns in [1, 2, 5] {
        let once = sample(3, 6, columns);
        let (mut features, mut targets) = (Vec::new(), Vec::new());
        for i in 0..60 {
            features.extend_from_slice(once.row(i % 6));
            targets.push(f64::from(rng.below(3)));
        }
        features.extend(vec![0.0; 3 * columns]);
        targets.extend([0.0, 1.0, -1.0]);
        let data = Dataset::new(columns, features, targets).unwrap();
        for (level, curvature) in [(0.5, 0.3), (0.25, 0.01), (0.9, 3.0)] {
            if let Err(text) = certify(level, &data, curvature, &vec![0.5; columns]) {
                panic!("{columns} columns, level {level}, curvature {curvature}: {text}");
            }
        }
    }
    // All targets met by the centre.
    let data = Dataset::new(1, vec![1.0, 2.0], vec![1.0, 2.0]).unwrap();
    assert_eq!(certify(0.5, &data, 1.0, &[1.0]).unwrap(), [1.0]);
}

/// With a constant feature and little regularisation, the step is the sample's quantile.
#[test]
fn a_constant_feature_gives_the_quantile() {
    let y: Vec<f64> = (1..=9).map(f64::from).collect();
    let data = Dataset::new(1, vec![1.0; 9], y).unwrap();
    let model = Model { loss: Loss::Quantile(0.75), regularisation: 0.0, bias: false, feature_norm: None };
    let w = fit(&model, &data, &[1.0 / 9.0; 9], 1e-6).unwrap();
    assert!((w[0] - 7.0).abs() < 1e-10, "{w:?}");
    // Records of weight 0 do not count.
    let mut weights = [0.2; 9];
    weights[..4].fill(0.0);
    let w = fit(&model, &data, &weights, 1e-6).unwrap();
    assert!((w[0] - 8.0).abs() < 1e-10, "{w:?}");
}

#[test]
fn a_step_is_the_same_twice_and_bad_numbers_are_refused() {
    let data = Arc::new(sample(4, 50, 7));
    let model =
        |level| Model { loss: Loss::Quantile(level), regularisation: 0.0, bias: false, feature_norm: None };
    let prox = Prox::new(&model(0.3), Arc::clone(&data), 0.01, 0.6).unwrap();
    let (mut once, mut twice, mut work) = ([0.0; 7], [1.0; 7], Vec::new());
    prox.solve(&[0.2; 7], &mut once, &mut work).unwrap();
    prox.solve(&[9.0; 7], &mut twice, &mut work).unwrap();
    prox.solve(&[0.2; 7], &mut twice, &mut work).unwrap();
    assert_eq!(once.map(f64::to_bits), twice.map(f64::to_bits));
    assert!(prox.solve(&[f64::NAN; 7], &mut twice, &mut work).is_err());
    for level in [0.0, 1.0, f64::NAN, -0.5] {
        assert!(Prox::new(&model(level), Arc::clone(&data), 0.01, 0.6).is_err());
    }
    assert!(Prox::new(&model(0.5), Arc::clone(&data), 0.0, f64::NAN).is_err());
    assert!(fit(&model(0.5), &data, &[-1.0; 50], 0.1).is_err());
    assert!(fit(&model(0.5), &data, &[1.0; 50], 0.0).is_err());
}

proptest! {
    #[test]
    fn random_problems_are_solved(
        seed in 0u64..1000,
        rows in 1usize..40,
        columns in 1usize..20,
        level in 0.02..0.98,
        curvature in prop_oneof![Just(1e-3), Just(0.1), Just(1.0), Just(30.0)],
        whole in any::<bool>(),
    ) {
        let mut data = sample(seed, rows, columns);
        if whole {
            // Few different numbers, so that records tie.
            let round = |x: &[f64]| x.iter().map(|x| x.round()).collect::<Vec<f64>>();
            data = Dataset::new(columns, round(data.features()), round(data.targets())).unwrap();
        }
        let end = certify(level, &data, curvature, &vec![0.1; columns]);
        prop_assert!(end.is_ok(), "{:?}", end);
    }
}
