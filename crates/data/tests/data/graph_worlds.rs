//! The drawn world of graph learning: its graphs, its signals, and what changes nothing.

use crate::Bench;
use fedkin_data::World;

fn bench() -> Bench {
    Bench::new("synthetic.graph-signals").signals()
}

fn pairs(nodes: usize) -> Vec<(usize, usize)> {
    (0..nodes).flat_map(|a| (a + 1..nodes).map(move |b| (a, b))).collect()
}

fn edges(graph: &[f64]) -> Vec<usize> {
    (0..graph.len()).filter(|&pair| graph[pair] > 0.0).collect()
}

fn connected(graph: &[f64], nodes: usize) -> bool {
    let mut reached = vec![false; nodes];
    reached[0] = true;
    for _ in 0..nodes {
        for ((a, b), weight) in pairs(nodes).into_iter().zip(graph) {
            if *weight > 0.0 && (reached[a] || reached[b]) {
                (reached[a], reached[b]) = (true, true);
            }
        }
    }
    reached.iter().all(|&reached| reached)
}

/// The base graph again, from the positions.
fn base(world: &World, width: f64, threshold: f64) -> Vec<f64> {
    let positions = world.nodes.as_ref().unwrap().positions.as_ref().unwrap();
    let weight = |(a, b): (usize, usize)| {
        let squared: f64 = (0..2).map(|axis| (positions[a][axis] - positions[b][axis]).powi(2)).sum();
        let weight = (-squared / (2.0 * width * width)).exp();
        if weight >= threshold { weight } else { 0.0 }
    };
    pairs(positions.len()).into_iter().map(weight).collect()
}

fn sorted(mut weights: Vec<f64>) -> Vec<f64> {
    weights.sort_by(f64::total_cmp);
    weights
}

#[test]
fn the_papers_world() {
    let world = bench().set("test_samples", 3).world();
    let names = ["client-1", "client-2", "client-3", "client-4", "client-5"];
    assert_eq!(world.federation.client_names(), names);
    assert_eq!((world.federation.servers(), world.federation.clusters()), (1, 1));
    assert_eq!((world.schema.columns(), &*world.schema.column_names()[19]), (20, "node-19"));
    for id in 0..5 {
        assert_eq!((world.train[id].rows(), world.train[id].columns()), (100, 20));
        assert_eq!(world.test[id].as_ref().unwrap().rows(), 3);
    }
    let truth = world.truth.as_ref().unwrap();
    assert_eq!((truth.models.len(), truth.cluster.as_slice()), (5, &[0, 1, 2, 3, 4][..]));
    let positions = world.nodes.as_ref().unwrap().positions.as_ref().unwrap();
    assert!(positions.iter().flatten().all(|at| (0.0..1.0).contains(at)));
    let (base, common) = (base(&world, 0.5, 0.75), truth.common.as_ref().unwrap());
    let (all, kept) = (edges(&base), edges(common));
    assert_eq!(kept.len(), (all.len() as f64 * 0.5).round() as usize);
    assert!(kept.iter().all(|&pair| (common[pair] - base[pair]).abs() < 1e-12));
    let removed = |graph: &[f64]| {
        sorted(
            (0..graph.len())
                .filter(|&pair| common[pair] == 0.0 && graph[pair] > 0.0)
                .map(|pair| graph[pair])
                .collect(),
        )
    };
    for graph in &truth.models {
        assert_eq!(graph.len(), 190);
        assert!(connected(graph, 20));
        assert!(kept.iter().all(|&pair| graph[pair] == common[pair]));
        // As many edges as the base graph has, and the others carry the removed weights in another order.
        assert_eq!(edges(graph).len(), all.len());
        assert!(removed(graph).iter().zip(removed(&base)).all(|(own, old)| (own - old).abs() < 1e-12));
    }
    assert_ne!(truth.models[0], truth.models[1]);
}

#[test]
fn the_world_of_table_one_starts_from_the_first_client() {
    let shares = vec![1.0, 0.8, 0.6, 0.4, 0.2];
    let world = bench().set("base", "first").set("kept_share", shares.clone()).world();
    let truth = world.truth.as_ref().unwrap();
    let base = &truth.models[0];
    for (own, again) in base.iter().zip(self::base(&world, 0.5, 0.75)) {
        assert!((own - again).abs() < 1e-12);
    }
    let count = |share: f64| (edges(base).len() as f64 * share).round() as usize;
    for (graph, &share) in truth.models.iter().zip(&shares) {
        assert!(connected(graph, 20));
        let same = edges(base).into_iter().filter(|&pair| graph[pair] == base[pair]).count();
        // A random edge may fall back onto a removed one, hardly ever with its old weight.
        assert!(
            (count(share)..=count(share) + 2).contains(&same),
            "{same} edges of {} at {share}",
            edges(base).len()
        );
    }
    let common = truth.common.as_ref().unwrap();
    assert_eq!(edges(common).len(), count(0.2));
    assert!(truth.models.iter().all(|graph| edges(common).iter().all(|&pair| graph[pair] == common[pair])));
    let one = bench().set("base", "first").set("kept_share", 0.4).world().truth.unwrap();
    assert_eq!(
        edges(one.common.as_ref().unwrap()).len(),
        (edges(&one.models[0]).len() as f64 * 0.4).round() as usize
    );
    bench().set("base", "first").set("kept_share", vec![0.5; 5]).refused(&[
        "`kept_share`",
        "starts with 1",
        "0.5",
    ]);
}

#[test]
fn ends_of_the_kept_share() {
    let all = bench().set("kept_share", 1.0).world().truth.unwrap();
    assert!(all.models.iter().all(|graph| Some(graph) == all.common.as_ref()));
    let none = bench().set("kept_share", 0.0).world().truth.unwrap();
    assert!(none.common.unwrap().iter().all(|weight| *weight == 0.0));
}

#[test]
fn more_records_clients_or_tests_change_nothing_that_was_there() {
    let world = bench().set("samples", 30).world();
    assert_eq!(bench().set("samples", 30).world().fingerprint, world.fingerprint);
    assert_ne!(bench().set("samples", 30).seed(8).world().fingerprint, world.fingerprint);
    let one = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
    assert_eq!(one.install(|| bench().set("samples", 30).world()).fingerprint, world.fingerprint);
    let longer = bench().set("samples", vec![30, 40, 50, 60, 70]).set("test_samples", 5).world();
    assert_eq!(longer.truth, world.truth);
    for (id, (long, short)) in longer.train.iter().zip(&world.train).enumerate() {
        assert_eq!(long.rows(), 30 + 10 * id);
        assert_eq!(long.features()[..short.features().len()], *short.features());
    }
    let tested = bench().set("samples", 10).set("test_samples", 9).world();
    let (test, longer) = (tested.test[2].as_ref().unwrap(), longer.test[2].as_ref().unwrap());
    assert_eq!(test.features()[..longer.features().len()], *longer.features());
    assert_ne!(test.row(0), tested.train[2].row(0));
}

/// The inverse of the Laplacian + noise^2 I by Gauss and Jordan: another way than the one that draws.
fn covariance(graph: &[f64], nodes: usize, noise: f64) -> Vec<Vec<f64>> {
    let mut left = vec![vec![0.0; 2 * nodes]; nodes];
    for ((a, b), weight) in pairs(nodes).into_iter().zip(graph) {
        left[a][a] += weight;
        left[b][b] += weight;
        left[a][b] -= weight;
        left[b][a] -= weight;
    }
    for (i, row) in left.iter_mut().enumerate() {
        row[i] += noise * noise;
        row[nodes + i] = 1.0;
    }
    for pivot in 0..nodes {
        let scale = left[pivot][pivot];
        left[pivot].iter_mut().for_each(|x| *x /= scale);
        let row = left[pivot].clone();
        for (i, other) in left.iter_mut().enumerate() {
            let factor = other[pivot];
            if i != pivot {
                other.iter_mut().zip(&row).for_each(|(x, y)| *x -= factor * y);
            }
        }
    }
    left.into_iter().map(|row| row[nodes..].to_vec()).collect()
}

/// Sample means and covariances against the law of (33), two clients of 8 nodes with 40,000 records. Each of the 88
/// numbers within 5 standard errors: a two-sided normal tail of 5.7e-7 each, so alpha is below 1e-4 for a fresh seed.
#[test]
fn signals_have_the_inverse_as_covariance() {
    let (nodes, samples) = (8, 40_000);
    for noise in [0.1, 0.7] {
        let bench = bench().set("nodes", nodes as i64).set("clients", 2).set("samples", samples);
        let world = bench.set("noise", noise).world();
        for (data, graph) in world.train.iter().zip(&world.truth.as_ref().unwrap().models) {
            let law = covariance(graph, nodes, noise);
            let count = samples as f64;
            for a in 0..nodes {
                let mean = (0..data.rows()).map(|row| data.row(row)[a]).sum::<f64>() / count;
                assert!(mean.abs() < 5.0 * (law[a][a] / count).sqrt(), "mean of node {a}: {mean}");
                for b in a..nodes {
                    // The mean is known to be zero; the variance of a product of two normals is aa bb + ab^2.
                    let found =
                        (0..data.rows()).map(|row| data.row(row)[a] * data.row(row)[b]).sum::<f64>() / count;
                    let error = ((law[a][a] * law[b][b] + law[a][b].powi(2)) / count).sqrt();
                    assert!(
                        (found - law[a][b]).abs() < 5.0 * error,
                        "{a}, {b}: {found} against {}",
                        law[a][b]
                    );
                }
            }
        }
    }
}

#[test]
fn graphs_that_cannot_be_drawn_are_refused() {
    bench().set("threshold", 1.0).refused(&["`threshold`", "no connected graphs", "`width`"]);
    bench().set("width", 1e-3).refused(&["`threshold`", "up to 0 edges"]);
    bench().set("samples", vec![1, 2]).refused(&["`samples`: 2 numbers were given for 5 clients"]);
    bench().set("kept_share", vec![0.5]).refused(&["`kept_share`: 1 numbers were given for 5 clients"]);
    bench().set("kept_share", 1.5).refused(&["`kept_share`", "out of range"]);
    bench().set("noise", 0.0).refused(&["`noise`", "out of range"]);
    bench().set("noise", 1e-12).refused(&["`noise`", "too small"]);
    bench().set("nodes", 1).refused(&["`nodes`", "out of range"]);
    bench().set("samples", 10_000_000).set("nodes", 5000).refused(&["`samples`: 5 clients", "GB"]);
    bench().classify().refused(&["`source`: synthetic.graph-signals", "nothing to predict"]);
    assert_eq!(bench().set("nodes", 2).set("clients", 1).world().truth.unwrap().models[0].len(), 1);
}

/// The size of the scale experiment.
#[test]
fn a_thousand_nodes_are_drawn() {
    let start = std::time::Instant::now();
    let world = bench().set("nodes", 1000).set("clients", 2).set("samples", 50).world();
    eprintln!("1000 nodes, 2 clients, 50 records: {:.2?}", start.elapsed());
    assert_eq!(world.truth.unwrap().models[1].len(), 499_500);
}
