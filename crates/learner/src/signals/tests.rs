use super::*;
use crate::Dataset;
use fedkin_graph::pairs;
use fedkin_numeric::rng::{PublicRng, Random};
use fedkin_numeric::{distance2, norm2};
use fedkin_privacy::{Clip, proofs};
use proptest::prelude::*;

/// Signals of some smoothness: a few waves over the nodes, and noise.
fn signals(seed: u64, nodes: usize, rows: usize) -> Dataset {
    let mut rng = PublicRng::named(seed, "signals test", nodes as u32, rows as u32);
    let mut features = Vec::new();
    for _ in 0..rows {
        let (level, slope) = (3.0 * rng.normal(), rng.normal());
        features.extend((0..nodes).map(|j| level + slope * j as f64 / nodes as f64 + 0.3 * rng.normal()));
    }
    Dataset::new(nodes, features, vec![0.0; rows]).unwrap()
}

fn smooth(beta: f64) -> Smooth {
    Smooth { alpha: 2.0, beta, records: Records::Signals }
}

/// The solved block, and the largest violation of its conditions, taken from scratch: with gradient
/// r = c + h w - alpha S'(1 / S w), r >= 0 where w = 0 and r = 0 elsewhere, relative to |c| + 1.
fn solved(zbar: &[f64], problem: &Smooth, pull: f64, centre: &[f64]) -> (Vec<f64>, f64, Solved) {
    let c: Vec<f64> = zbar.iter().zip(centre).map(|(z, v)| 2.0 * z - pull * v).collect();
    let (mut w, mut dual, mut work) = (c.clone(), Vec::new(), Vec::new());
    let curvature = 4.0 * problem.beta + pull;
    let done = solve(problem.alpha, curvature, &mut w, &mut dual, &mut work).unwrap();
    let mut degree = vec![0.0; nodes_of(w.len()).unwrap()];
    degrees(&w, &mut degree);
    let mut worst = 0.0f64;
    for (at, (i, j)) in pairs::all(degree.len()).enumerate() {
        let r = c[at] + curvature * w[at] - problem.alpha * (1.0 / degree[i] + 1.0 / degree[j]);
        let off = if w[at] > 0.0 { r.abs() } else { (-r).max(0.0) };
        worst = worst.max(off / (c[at].abs() + 1.0));
    }
    (w, worst, done)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    /// Any block is solved: its own conditions hold, whatever the scale of data and parameters.
    #[test]
    fn newton_meets_the_conditions(
        seed in 0u64..1000, nodes in 2usize..25, log_beta in -3.0f64..3.0, log_scale in -3.0f64..3.0,
        pull in prop_oneof![Just(0.0), 0.01f64..100.0],
    ) {
        let data = signals(seed, nodes, 12);
        let problem = smooth(fedkin_numeric::exp(2.3 * log_beta));
        let scale = fedkin_numeric::exp(2.3 * log_scale);
        let zbar: Vec<f64> =
            means(&problem, &data, None).unwrap().zbar.iter().map(|z| scale * z).collect();
        let mut rng = PublicRng::named(seed, "centre", 0, 0);
        let centre: Vec<f64> = zbar.iter().map(|_| rng.normal()).collect();
        let (w, worst, done) = solved(&zbar, &problem, pull, &centre);
        prop_assert!(w.iter().all(|w| *w >= 0.0));
        let largest = w.iter().copied().fold(1.0, f64::max);
        prop_assert!(worst < 1e-8 * largest * (1.0 + 4.0 * problem.beta + pull), "{worst} {done:?}");
        // Tiny beta and large distances leave hardly one edge a node: the only case with more than a few steps.
        prop_assert!(done.steps <= 200, "{done:?}");
    }

    /// Scaling the data by s and beta by s^2 scales the graph by 1/s: alpha and beta are one choice, not two.
    #[test]
    fn the_scale_of_the_data_is_a_scale_of_the_graph(seed in 0u64..500, s in 0.01f64..100.0) {
        let data = signals(seed, 9, 20);
        let zbar = means(&smooth(1.0), &data, None).unwrap().zbar;
        let none = vec![0.0; zbar.len()];
        let (w, ..) = solved(&zbar, &smooth(0.3), 0.0, &none);
        let scaled: Vec<f64> = zbar.iter().map(|z| s * z).collect();
        let (other, ..) = solved(&scaled, &smooth(0.3 * s * s), 0.0, &none);
        for (w, other) in w.iter().zip(&other) {
            prop_assert!((w - s * other).abs() < 1e-8 * (1.0 + w), "{w} {other}");
        }
    }

    /// A client's weights follow its nodes when these are renamed.
    #[test]
    fn names_of_nodes_do_not_matter(seed in 0u64..500) {
        let nodes = 7;
        let data = signals(seed, nodes, 15);
        let zbar = means(&smooth(0.2), &data, None).unwrap().zbar;
        let order: Vec<usize> = (0..nodes).rev().collect();
        let turned: Vec<f64> = pairs::all(nodes)
            .map(|(i, j)| zbar[pairs::index(nodes, order[i], order[j]).unwrap()])
            .collect();
        let none = vec![0.0; zbar.len()];
        let (w, ..) = solved(&zbar, &smooth(0.2), 0.0, &none);
        let (other, ..) = solved(&turned, &smooth(0.2), 0.0, &none);
        for (at, (i, j)) in pairs::all(nodes).enumerate() {
            let same = w[pairs::index(nodes, order[i], order[j]).unwrap()];
            prop_assert!((other[at] - same).abs() < 1e-9);
        }
    }

    /// The scatter of two data sets that differ in one record differs by no more than the sensitivity, in any case.
    #[test]
    fn one_record_moves_the_scatter_by_the_sensitivity_at_most(seed in 0u64..300, clip in 0.1f64..10.0) {
        let (mut one, rows, nodes) = (signals(seed, 6, 5), 5.0, 6);
        let clip = Clip::new(clip).unwrap();
        let before = scatter(&one, clip).unwrap();
        let mut features = one.features().to_vec();
        let mut rng = PublicRng::named(seed, "other record", 0, 0);
        for x in &mut features[..nodes] {
            *x = 20.0 * rng.normal();
        }
        one = Dataset::new(nodes, features, vec![0.0; 5]).unwrap();
        let after = scatter(&one, clip).unwrap();
        let mut moved = 0.0;
        for i in 0..nodes as u32 {
            for j in 0..nodes as u32 {
                moved += (before.at(i, j).unwrap() - after.at(i, j).unwrap()).powi(2);
            }
        }
        prop_assert!(moved.sqrt() <= proofs::scatter(clip, rows).value() * (1.0 + 1e-12));
    }
}

#[test]
fn two_orthogonal_records_reach_the_sensitivity() {
    let rest = vec![0.0; 4 * 3];
    let with = |record: [f64; 4]| {
        let features = [record.to_vec(), rest.clone()].concat();
        scatter(&Dataset::new(4, features, vec![0.0; 4]).unwrap(), Clip::new(1.0).unwrap()).unwrap()
    };
    let (one, other) = (with([9.0, -9.0, 0.0, 0.0]), with([0.0, 0.0, 9.0, -9.0]));
    let mut moved = 0.0;
    for i in 0..4 {
        for j in 0..4 {
            moved += (one.at(i, j).unwrap() - other.at(i, j).unwrap()).powi(2);
        }
    }
    let bound = proofs::scatter(Clip::new(1.0).unwrap(), 4.0).value();
    assert!(moved.sqrt() > 0.999_999 * bound && moved.sqrt() <= bound, "{} {bound}", moved.sqrt());
}

/// Without noise and clipping the distances of the scatter are the mean squared differences.
#[test]
fn distances_follow_from_the_scatter() {
    let data = signals(4, 8, 30);
    let direct = means(&smooth(1.0), &data, None).unwrap().zbar;
    let around = distances_of(&scatter(&data, Clip::new(1e9).unwrap()).unwrap()).unwrap();
    assert!(distance2(&direct, &around).sqrt() < 1e-10 * norm2(&direct).sqrt());
    // What noise pushes below zero is cut off: distances stay distances.
    let mut noisy = scatter(&data, Clip::new(1e9).unwrap()).unwrap();
    let mut rng = PublicRng::named(1, "noise", 0, 0);
    for entry in &mut noisy.upper {
        *entry += 5.0 * rng.normal();
    }
    assert!(distances_of(&noisy).unwrap().iter().all(|z| *z >= 0.0));
}

#[test]
fn gradient_steps_descend_to_the_solution() {
    let data = signals(2, 6, 40);
    let problem = smooth(0.4);
    let own = means(&problem, &data, None).unwrap();
    let (w, ..) = solved(&own.zbar, &problem, 0.0, &vec![0.0; own.zbar.len()]);
    let (mut graph, mut work) = (vec![0.5; w.len()], Vec::new());
    let mut before = graph.clone();
    for _ in 0..60_000 {
        let pull = Pull { weight: 0.0, centre: &[] };
        descend(&problem, &own.zbar, pull, (1e-3, 0.9), true, (&mut graph, &mut before), &mut work);
    }
    assert!(distance2(&graph, &w).sqrt() < 1e-7, "{}", distance2(&graph, &w).sqrt());
}

#[test]
fn clipped_differences_are_no_longer_than_the_clip() {
    let data = signals(3, 5, 9);
    for i in 0..9 {
        let one = Dataset::new(5, data.row(i).to_vec(), vec![0.0]).unwrap();
        let free = means(&smooth(1.0), &one, None).unwrap();
        let clipped = means(&smooth(1.0), &one, Some(0.05)).unwrap();
        assert!(norm2(&clipped.zbar).sqrt() <= 0.05 && norm2(&free.zbar).sqrt() > 0.05);
    }
}

#[test]
fn what_no_graph_can_be_learnt_from_is_refused() {
    let flat = Dataset::new(3, vec![1.0, 1.0, 1.0, 4.0, 4.0, 4.0], vec![0.0; 2]).unwrap();
    assert!(means(&smooth(1.0), &flat, None).unwrap_err().0.contains("same at every node"));
    let lone = Dataset::new(1, vec![1.0, 2.0], vec![0.0; 2]).unwrap();
    assert!(means(&smooth(1.0), &lone, None).unwrap_err().0.contains("at least 2 nodes"));
    let negative = Dataset::new(3, vec![1.0, -0.1, 2.0], vec![0.0]).unwrap();
    let problem = Smooth { records: Records::Distances, ..smooth(1.0) };
    assert!(means(&problem, &negative, None).unwrap_err().0.contains("below 0"));
    let (mut c, mut dual, mut work) = (vec![1.0; 3], Vec::new(), Vec::new());
    assert!(solve(2.0, 0.0, &mut c, &mut dual, &mut work).is_err());
}
