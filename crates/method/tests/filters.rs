//! Denoisers, statistics, graphs and schedules of `FedPnP` against numbers that were computed apart from this program.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::disallowed_methods,
    clippy::disallowed_macros,
    clippy::disallowed_types
)]

use fedkin_graph::denoise::{self, Decay, Prepared, Strength, Way, decayed, retained};
use fedkin_graph::similarity::{Points, WEAK, knn_kernel, moments, paper_28};
use fedkin_graph::{Sparse, Weighted, pairs};
use serde_json::Value as Json;

fn golden() -> Json {
    serde_json::from_str(include_str!("golden/filters.json")).unwrap()
}

fn vector(json: &Json) -> Vec<f64> {
    json.as_array().unwrap().iter().map(|x| x.as_f64().unwrap()).collect()
}

fn matrix(json: &Json) -> Vec<Vec<f64>> {
    json.as_array().unwrap().iter().map(vector).collect()
}

fn near(found: &[f64], expected: &[f64], what: &str) {
    assert_eq!(found.len(), expected.len(), "{what}");
    for (a, b) in found.iter().zip(expected) {
        assert!((a - b).abs() <= 1e-9, "{what}: {a} is not {b}");
    }
}

fn graph(adjacency: &[Vec<f64>]) -> Sparse {
    let nodes = adjacency.len();
    let weights = pairs::all(nodes).map(|(i, j)| adjacency[i][j]).collect();
    Sparse::from(&Weighted::new(nodes, weights).unwrap())
}

/// The cases name equations; `sound` is `hard` where eigenvalues are counted.
fn name_of(variant: &str, counted: bool) -> &'static str {
    match variant {
        "sound" if counted => "hard",
        "sound" => "sound",
        "eq10" => "paper-10",
        "eq12" => "paper-12",
        "eq13_literal" => "paper-13",
        "eq16" => "paper-16",
        other => panic!("a variant {other} that nobody knows"),
    }
}

#[test]
fn every_filter_gives_the_golden_signals() {
    let golden = golden();
    let mut compared = 0;
    for case in golden["filters"].as_array().unwrap() {
        let (adjacency, sizes) = (matrix(&case["A"]), vector(&case["sizes"]));
        let omega: Vec<f64> = matrix(&case["omega"]).concat();
        let strength = match case["tau"].as_u64() {
            Some(tau) => Strength::hard(tau as usize),
            None => Strength::soft(case["beta1"].as_f64().unwrap(), case["beta2"].as_f64().unwrap()),
        };
        for (variant, psi) in case["psi"].as_object().unwrap() {
            let name = name_of(variant, case["tau"].is_u64());
            let row = *denoise::native().find(name).unwrap();
            let prepared = Prepared::new(row, graph(&adjacency), &sizes, Way::Exact).unwrap();
            near(prepared.shares(), &vector(&case["zeta"]), "shares");
            let what = format!("{name} over {}, {strength:?}", case["graph"]);
            near(
                &prepared.at(&strength).unwrap().apply_matrix(&omega).unwrap(),
                &matrix(psi).concat(),
                &what,
            );
            if name == "paper-10" {
                near(prepared.eigenvalues().unwrap(), &vector(&case["lambda_"]), "eigenvalues");
            }
            compared += 1;
            // The sparse ways, where there are any: as near as they promise.
            for way in [Way::Chebyshev, Way::Gradients] {
                let prepared = Prepared::new(row, graph(&adjacency), &sizes, way).unwrap();
                let Ok(operator) = prepared.at(&strength) else {
                    assert!(name == "hard" || name == "paper-16" || strength.beta2 > 1.0, "{what}");
                    continue;
                };
                for (a, b) in operator.apply_matrix(&omega).unwrap().iter().zip(matrix(psi).concat()) {
                    assert!((a - b).abs() < 1e-6, "{what} by {way:?}: {a} is not {b}");
                }
            }
        }
    }
    assert_eq!(compared, 3 * 4 * 4 + 13 * 2);
}

#[test]
fn schedules_are_the_golden_ones() {
    let nu = &golden()["nu"];
    let number = |key: &str| nu[key].as_f64().unwrap();
    let decay = Decay { start: number("nu0"), rate: number("eta") };
    let end = Strength { beta1: number("beta"), beta2: 0.0, tau: 7, neighbours: 3 };
    let rounds = nu["rounds"].as_u64().unwrap() as u32;
    let found: Vec<Strength> = (1..=rounds).map(|round| decay.at(&end, round)).collect();
    near(&found.iter().map(|s| s.beta1).collect::<Vec<_>>(), &vector(&nu["sound"]), "nu");
    // Without denoising there is none at the start either, and eigenvalues join one by one.
    assert!(found.iter().all(|s| s.beta2 == 0.0 && s.neighbours == 3));
    assert_eq!(found.iter().take(9).map(|s| s.tau).collect::<Vec<_>>(), [1, 2, 3, 4, 5, 6, 7, 7, 7]);
    assert_eq!((decayed(0.0, 1.0, 0.1, 1), retained(5, 0)), (0.0, 1));
}

#[test]
fn statistics_and_graphs_are_the_golden_ones() {
    let golden = golden();
    let case = &golden["graph"];
    let clients = case["x"].as_array().unwrap();
    let found: Vec<Vec<f64>> = clients
        .iter()
        .map(|records| {
            let rows = matrix(records);
            moments(&rows.concat(), rows[0].len())
        })
        .collect();
    for (found, expected) in found.iter().zip(case["stats"].as_array().unwrap()) {
        near(found, &matrix(expected).concat(), "statistics");
    }
    let adjacency = |weighted: &Weighted| weighted.adjacency();
    near(&adjacency(&paper_28(&found).unwrap()), &matrix(&case["distance28"]).concat(), "(28)");
    let points = Points::standardised(&[&found]).unwrap();
    let distances: Vec<f64> = (0..9).map(|at| points.distance(at / 3, at % 3)).collect();
    near(&distances, &matrix(&case["distance_std"]).concat(), "standardised distances");
    let kernel = knn_kernel(&points, 1, WEAK).unwrap().weighted().unwrap();
    near(&adjacency(&kernel), &matrix(&case["knn_kernel_k1"]).concat(), "kernel");
}
