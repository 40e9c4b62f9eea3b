//! Closed forms, and what holds for all aggregators on drawn contributions.

use super::{Aggregator, Robust};
use crate::Cells;
use fedkin_numeric::rng::{PublicRng, Random};
use fedkin_numeric::{distance2, norm2};

const ALL: [Aggregator; 6] = [
    Aggregator::Mean,
    Aggregator::Median,
    Aggregator::TrimmedMean { share: 0.2 },
    Aggregator::GeometricMedian,
    Aggregator::MultiKrum { liars: 2 },
    Aggregator::CentredClipping { radius: None },
];

fn of(aggregator: Aggregator, entries: &[Vec<f64>], before: &[f64]) -> Vec<f64> {
    let entries: Vec<(f64, &[f64])> = entries.iter().map(|values| (1.0, &values[..])).collect();
    let mut out = before.to_vec();
    aggregator.aggregate(&entries, &mut out);
    out
}

fn drawn(seed: u64, count: usize, length: usize) -> Vec<Vec<f64>> {
    let mut rng = PublicRng::named(seed, "robust", 0, 0);
    (0..count).map(|_| (0..length).map(|_| rng.uniform() - 0.5).collect()).collect()
}

#[test]
fn known_vectors_have_known_aggregates() {
    let points = [[1.0, 5.0], [2.0, 4.0], [3.0, 3.0], [4.0, 2.0], [100.0, -100.0]].map(Vec::from);
    let zero = [0.0; 2];
    assert_eq!(of(Aggregator::Median, &points, &zero), [3.0, 3.0]);
    assert_eq!(of(Aggregator::Median, &points[..4], &zero), [2.5, 3.5]);
    assert_eq!(of(Aggregator::TrimmedMean { share: 0.2 }, &points, &zero), [3.0, 3.0]);
    assert_eq!(of(Aggregator::MultiKrum { liars: 1 }, &points, &zero), [2.5, 3.5]);
    // The corners of a square, and of an equilateral triangle.
    let square = [[1.0, 1.0], [-1.0, 1.0], [1.0, -1.0], [-1.0, -1.0]].map(Vec::from);
    assert!(norm2(&of(Aggregator::GeometricMedian, &square, &zero)).sqrt() < 1e-9);
    let triangle = [[0.0, 0.0], [1.0, 0.0], [0.5, 0.75f64.sqrt()]].map(Vec::from);
    let middle = of(Aggregator::GeometricMedian, &triangle, &zero);
    assert!(distance2(&middle, &[0.5, 0.75f64.sqrt() / 3.0]).sqrt() < 1e-8, "{middle:?}");
    // Clipping by hand: from 0, [10] counts as radius 1 away and [0.5] as itself, three times over.
    let clipped = of(Aggregator::CentredClipping { radius: Some(1.0) }, &[vec![10.0], vec![0.5]], &[0.0]);
    let step = |v: f64| v + 0.5 * 1.0 + 0.5 * (0.5 - v);
    assert!((clipped[0] - step(step(step(0.0)))).abs() < 1e-15);
}

#[test]
fn weights_count_as_copies() {
    for aggregator in [Aggregator::Mean, Aggregator::Median, Aggregator::TrimmedMean { share: 0.2 }] {
        let points = drawn(3, 5, 4);
        let mut copies = points.clone();
        copies.extend([points[2].clone(), points[2].clone()]);
        let weighted: Vec<(f64, &[f64])> = points
            .iter()
            .enumerate()
            .map(|(i, values)| (if i == 2 { 3.0 } else { 1.0 }, &values[..]))
            .collect();
        let mut out = vec![0.0; 4];
        aggregator.aggregate(&weighted, &mut out);
        assert!(distance2(&out, &of(aggregator, &copies, &[0.0; 4])).sqrt() < 1e-14, "{aggregator:?}");
    }
}

#[test]
fn nothing_trimmed_is_the_mean_to_1e_15() {
    for seed in 0..50 {
        let points = drawn(seed, 9, 7);
        let mean = of(Aggregator::Mean, &points, &[0.0; 7]);
        let kept = of(Aggregator::TrimmedMean { share: 0.0 }, &points, &[0.0; 7]);
        assert!(mean.iter().zip(&kept).all(|(a, b)| (a - b).abs() <= 1e-15));
    }
}

#[test]
fn the_order_of_contributions_changes_no_bit() {
    for seed in 0..50 {
        let mut points = drawn(seed, 8, 5);
        for aggregator in ALL {
            let before = of(aggregator, &points, &[0.1; 5]);
            points.rotate_left(3);
            points.swap(0, 5);
            assert_eq!(of(aggregator, &points, &[0.1; 5]), before, "{aggregator:?}");
        }
    }
}

#[test]
fn moving_all_contributions_moves_the_aggregate() {
    for seed in 0..50 {
        let (points, shift) = (drawn(seed, 9, 5), [3.0, -2.0, 0.5, 7.0, -1.0]);
        let moved: Vec<Vec<f64>> =
            points.iter().map(|values| values.iter().zip(&shift).map(|(v, s)| v + s).collect()).collect();
        for aggregator in ALL {
            let mut there = of(aggregator, &points, &[0.0; 5]);
            there.iter_mut().zip(&shift).for_each(|(v, s)| *v += s);
            let here = of(aggregator, &moved, &shift);
            assert!(distance2(&there, &here).sqrt() < 1e-7, "{aggregator:?}");
        }
    }
}

#[test]
fn two_arbitrary_of_nine_cannot_leave_the_honest_ones_and_move_a_mean_anywhere() {
    for seed in 0..50 {
        let mut points = drawn(seed, 9, 6);
        for far in [10.0, 1e6, -1e12] {
            points[1] = vec![far; 6];
            points[4] = vec![-0.3 * far; 6];
            for aggregator in ALL {
                // Honest numbers lie within one half; nothing is further from zero than the diagonal of their box.
                let found = norm2(&of(aggregator, &points, &[0.0; 6])).sqrt();
                let bound = 0.5 * 6.0f64.sqrt() * 2.0;
                match aggregator {
                    Aggregator::Mean => assert!(found > far.abs() / 20.0),
                    Aggregator::TrimmedMean { .. } => {
                        let trimmed = Aggregator::TrimmedMean { share: 0.25 };
                        assert!(norm2(&of(trimmed, &points, &[0.0; 6])).sqrt() < bound);
                    }
                    _ => assert!(found < bound, "{aggregator:?} {far} {found}"),
                }
            }
        }
    }
}

#[test]
fn cells_keep_uploads_only_where_they_are_asked_to_and_cut_long_ones() {
    let cut = Robust { longest: Some(2.0), ..Robust::default() };
    let (mut plain, mut bounded) = (Cells::of(1, 1, Some(&Robust::default())), Cells::of(1, 1, Some(&cut)));
    let mut later = Cells::of(1, 1, Some(&cut));
    for value in [1.0, 1.0, 1.0] {
        plain.add(0, 1.0, -0.5, &[value]);
        bounded.add(0, 1.0, -0.5, &[value]);
    }
    plain.add(0, 1.0, -0.5, &[1e6]);
    later.add(0, 1.0, -0.5, &[1e6]);
    bounded.merge(&later);
    let (mut mean, mut short) = ([0.0], [0.0]);
    assert!(plain.mean_into(0, &mut mean) && bounded.mean_into(0, &mut short));
    assert_eq!(mean, [-(1e6 + 3.0) / 8.0]);
    assert_eq!((short, bounded.longest(0)), ([-(1.5 + 1.0) / 4.0], Some(1.0)));
    assert_eq!(plain.longest(0), None);
    bounded.clear();
    assert_eq!(bounded.longest(0), None);
}
