//! Answers against closed forms and optimality conditions.

use super::super::{Groups, Regulariser};
use super::*;
use crate::Dataset;
use crate::model::{Loss, Model};
use fedkin_numeric::rng::{PublicRng, Random};

fn sample(loss: Loss, rows: usize, columns: usize) -> Dataset {
    let mut rng = PublicRng::named(8, "generic test", rows as u32, columns as u32);
    let features = (0..rows * columns).map(|_| rng.normal()).collect();
    let targets = (0..rows).map(|_| match loss {
        Loss::Logistic => f64::from(rng.below(2)),
        Loss::Poisson => f64::from(rng.below(6)),
        Loss::Squared | Loss::Huber(_) | Loss::Quantile(_) => rng.normal(),
    });
    Dataset::new(columns, features, targets.collect()).unwrap()
}

fn centre(columns: usize) -> Vec<f64> {
    (0..columns).map(|j| (1.0 + j as f64).sin()).collect()
}

/// What an accuracy is relative to.
fn scale(loss: Loss, data: &Dataset, weight: f64) -> f64 {
    let model = Model { loss, regularisation: 0.0, bias: false, feature_norm: None };
    let (v, mut gradient) = (centre(data.columns()), vec![0.0; data.columns()]);
    // With the smooth part of a regulariser of strength 0.1 at most.
    model.gradient(data, 0.1, &v, 1.0, &mut gradient, &mut Vec::new());
    1.0 + norm2(&gradient).sqrt() + (weight + 0.2) * norm2(&v).sqrt()
}

const SMOOTH: [Loss; 4] = [Loss::Squared, Loss::Huber(0.4), Loss::Logistic, Loss::Poisson];
const SHAPES: [(usize, usize); 5] = [(1, 1), (1, 8), (5, 12), (30, 6), (60, 20)];

fn solve(
    loss: Loss,
    data: &Dataset,
    (regulariser, strength): (&Regulariser, f64),
    weight: f64,
    accuracy: f64,
) -> (Vec<f64>, Reached) {
    let model = Model { loss, regularisation: 0.0, bias: false, feature_norm: None };
    let centre = centre(data.columns());
    let (mut w, mut products) = (vec![f64::NAN; data.columns()], Vec::new());
    let mut objective = |w: &[f64], out: &mut [f64]| {
        model.gradient(data, 0.0, w, 1.0, out, &mut products);
        regulariser.add_gradient(w, strength, out);
        model.objective(data, 0.0, w) + strength * regulariser.squared_share() * norm2(w)
    };
    let shrink = |w: &mut [f64], t: f64| regulariser.shrink(w, strength * t);
    let shrink: Option<Shrink<'_>> = if regulariser.is_smooth() { None } else { Some(&shrink) };
    let reached =
        prox(&mut objective, shrink, &centre, weight, accuracy, &mut w, &mut Work::default()).unwrap();
    (w, reached)
}

/// The minus gradient of all that is smooth must be a subgradient of the rest: w is where a proximal gradient step stays.
fn stays(
    loss: Loss,
    data: &Dataset,
    regulariser: &Regulariser,
    strength: f64,
    weight: f64,
    w: &[f64],
) -> f64 {
    let model = Model { loss, regularisation: 0.0, bias: false, feature_norm: None };
    let mut gradient = vec![0.0; w.len()];
    model.gradient(data, 0.0, w, 1.0, &mut gradient, &mut Vec::new());
    regulariser.add_gradient(w, strength, &mut gradient);
    for ((g, w), v) in gradient.iter_mut().zip(w).zip(centre(w.len())) {
        *g += weight * (w - v);
    }
    let mut next = w.to_vec();
    axpy(-1.0, &gradient, &mut next);
    regulariser.shrink(&mut next, strength);
    distance2(&next, w).sqrt()
}

fn regularisers() -> [Regulariser; 5] {
    [
        Regulariser::None,
        Regulariser::SquaredNorm,
        Regulariser::L1,
        Regulariser::ElasticNet { l1_share: 0.6 },
        Regulariser::Group { groups: Groups::Equal(3) },
    ]
}

#[test]
fn steps_satisfy_their_optimality_condition_to_a_relative_1e_12() {
    for loss in SMOOTH {
        for (rows, columns) in SHAPES {
            let data = sample(loss, rows, columns);
            for regulariser in regularisers() {
                for weight in [0.3, 2.0] {
                    let (w, reached) = solve(loss, &data, (&regulariser, 0.1), weight, 1e-12);
                    let gap = stays(loss, &data, &regulariser, 0.1, weight, &w);
                    assert!(
                        reached.residual <= 1e-12 * scale(loss, &data, weight)
                            && gap <= 2.0 * reached.residual + 1e-14,
                        "{loss:?} {rows} x {columns} {regulariser:?}: {gap:e} {reached:?}"
                    );
                }
            }
        }
    }
}

#[test]
fn an_orthonormal_design_gives_the_soft_threshold() {
    // f = |w - y|^2 over one column each: (1/4) sum of squares with 4 records.
    let mut features = vec![0.0; 16];
    (0..4).for_each(|i| features[5 * i] = 2.0);
    let y = [3.0, -0.2, 0.05, -4.0];
    let data = Dataset::new(4, features, y.to_vec()).unwrap();
    let (w, _) = solve(Loss::Squared, &data, (&Regulariser::L1, 0.6), 1.5, 1e-13);
    // (1/4)(2 w - y)^2 = (w - y/2)^2; stationarity 2 (w - y/2) + 1.5 (w - v) + 0.6 sign = 0.
    for ((w, y), v) in w.iter().zip(y).zip(centre(4)) {
        let pull: f64 = y + 1.5 * v;
        let expected = pull.signum() * (pull.abs() - 0.6).max(0.0) / 3.5;
        assert!((w - expected).abs() < 1e-12, "{w} {expected}");
    }
}

#[test]
fn a_smooth_step_is_the_exact_one() {
    for loss in SMOOTH {
        for (rows, columns) in SHAPES {
            let data = std::sync::Arc::new(sample(loss, rows, columns));
            let model = Model { loss, regularisation: 0.0, bias: false, feature_norm: None };
            let (w, _) = solve(loss, &data, (&Regulariser::SquaredNorm, 0.05), 0.8, 1e-12);
            let exact = crate::model::Prox::new(&model, std::sync::Arc::clone(&data), 0.05, 0.8).unwrap();
            let mut expected = vec![0.0; columns];
            exact.solve(&centre(columns), &mut expected, &mut Vec::new()).unwrap();
            assert!(
                distance2(&w, &expected).sqrt() < 1e-11 * scale(loss, &data, 0.8),
                "{loss:?} {rows} x {columns}"
            );
        }
    }
}

#[test]
fn the_same_call_gives_the_same_bits_whatever_the_memory_held() {
    let data = sample(Loss::Poisson, 30, 6);
    for regulariser in [Regulariser::L1, Regulariser::SquaredNorm] {
        let run = || solve(Loss::Poisson, &data, (&regulariser, 0.1), 0.5, 1e-10);
        let ((a, first), (b, second)) = (run(), run());
        assert!(a.iter().zip(&b).all(|(a, b)| a.to_bits() == b.to_bits()) && first == second);
    }
    let mut work = Work(vec![f64::NAN; 1000]);
    let mut square = |w: &[f64], out: &mut [f64]| {
        out.copy_from_slice(w);
        0.5 * norm2(w)
    };
    let mut w = [0.0; 3];
    prox(&mut square, None, &[1.0, 2.0, 3.0], 1.0, 1e-12, &mut w, &mut work).unwrap();
    assert!(distance2(&w, &[0.5, 1.0, 1.5]) < 1e-24);
}

/// Curvatures over six decades: the accelerated method must not crawl.
#[test]
fn badly_scaled_problems_end() {
    let bend: Vec<f64> = (0..12).map(|j| 10f64.powf(f64::from(j) / 2.0)).collect();
    let mut calls = 0;
    for l1 in [false, true] {
        let mut objective = |w: &[f64], out: &mut [f64]| {
            calls += 1;
            let mut value = 0.0;
            for (j, bend) in bend.iter().enumerate() {
                out[j] = bend * (w[j] - 1.0);
                value += 0.5 * bend * (w[j] - 1.0) * (w[j] - 1.0);
            }
            value
        };
        let shrink = |w: &mut [f64], t: f64| Regulariser::L1.shrink(w, 0.5 * t);
        let shrink: Option<Shrink<'_>> = if l1 { Some(&shrink) } else { None };
        let mut w = [0.0; 12];
        minimise(&mut objective, shrink, &[0.0; 12], 1e-12, &mut w, &mut Work::default()).unwrap();
        for (w, bend) in w.iter().zip(&bend) {
            let expected = if l1 { 1.0 - 0.5 / bend } else { 1.0 };
            assert!((w - expected).abs() < 1e-5, "{w} {expected}");
        }
    }
    assert!(calls < 60_000, "{calls}");
}

#[test]
fn numbers_that_are_none_and_residuals_out_of_reach_are_errors() {
    let mut none = |_: &[f64], out: &mut [f64]| {
        out.fill(f64::NAN);
        f64::NAN
    };
    let same = |_: &mut [f64], _: f64| {};
    for shrink in [None, Some(&same as Shrink<'_>)] {
        let mut w = [0.0; 2];
        let end = prox(&mut none, shrink, &[1.0; 2], 1.0, 1e-9, &mut w, &mut Work::default());
        assert_eq!(end, Err(Unreached::NotFinite));
        // A line has no minimiser.
        let mut line = |w: &[f64], out: &mut [f64]| {
            out.fill(1.0);
            w[0] + w[1]
        };
        let end = minimise(&mut line, shrink, &[1.0; 2], 1e-9, &mut w, &mut Work::default());
        assert!(end.is_err(), "{end:?}");
        // Steeper than the promise at its kink: no gradient gets small there.
        let mut kink = |w: &[f64], out: &mut [f64]| {
            out[0] = if w[0] >= 0.1 { 1.0 } else { -1.0 };
            out[1] = 0.0;
            (w[0] - 0.1).abs()
        };
        let end = prox(&mut kink, shrink, &[1.0; 2], 0.1, 1e-9, &mut w, &mut Work::default());
        let text = end.unwrap_err().to_string();
        assert!(text.contains("residual") || text.contains("finite"), "{text}");
    }
}
