//! Golden cases, scales, privacy and the choice of parameters.

use super::*;
use fedkin_data::{Request, Task, World, distances_world, load, native, node_names};
use fedkin_graph::Weighted;
use fedkin_graph::compare::Confusion;
use fedkin_learner::signals::Records;
use fedkin_run::Control;
use fedkin_settings::{Value, Values};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::AtomicBool;

fn settings() -> Settings {
    Settings {
        alpha: 2.0,
        beta: None,
        density: None,
        rho: None,
        lambda: None,
        select: false,
        alone: false,
        tolerance: 1e-9,
        rounds: 1000,
        threshold: None,
        seed: 0,
        shield: None,
    }
}

fn run(input: &Input, settings: &Settings) -> Result<Learnt, fedkin_run::Error> {
    let stop = AtomicBool::new(false);
    learn(input, settings, &Control { stop: &stop, tick: &|| {} })
}

/// The synthetic world of the paper with so many records per client.
fn world(samples: i64, seed: u64) -> World {
    let raw = BTreeMap::from([("samples".to_string(), Value::Integer(samples))]);
    let name = "synthetic.graph-signals";
    let values = Values::check(native().source(name).unwrap().params, &raw).unwrap();
    let topology = fedkin_data::topology_spec(&Values::default(), Path::new(".")).unwrap();
    let request = Request {
        registry: native(),
        source: name,
        values: &values,
        base: Path::new("."),
        topology: &topology,
        task: Task::Signals,
        seed,
        require_connected: false,
    };
    load(&request).unwrap()
}

fn signals(world: World) -> Input {
    let nodes = world.schema.features.iter().map(|feature| feature.name.clone()).collect();
    Input { world, records: Records::Signals, nodes }
}

/// The mean over clients of Matthews' coefficient of the edges.
fn mcc(learnt: &Learnt, world: &World) -> f64 {
    let truth = world.truth.as_ref().unwrap();
    let nodes = learnt.nodes.len();
    let one = |(id, graph): (usize, &Vec<f64>)| {
        let truth = Weighted::new(nodes, truth.models[truth.cluster[id] as usize].clone()).unwrap();
        Confusion::count(&Weighted::new(nodes, graph.clone()).unwrap(), &truth, 0.0).unwrap().mcc()
    };
    learnt.graphs.iter().enumerate().map(one).sum::<f64>() / learnt.graphs.len() as f64
}

fn distances(factor: f64) -> Input {
    let zbar = [[1.0, 3.0, 2.0, 0.5, 2.5, 1.5], [1.2, 2.0, 2.4, 0.9, 2.0, 1.0]];
    let scaled = |zbar: &[f64; 6]| zbar.iter().map(|z| factor * z).collect::<Vec<f64>>();
    let clients = vec![("a".to_string(), scaled(&zbar[0])), ("b".to_string(), scaled(&zbar[1]))];
    Input { world: distances_world(clients).unwrap(), records: Records::Distances, nodes: node_names(4) }
}

/// beta s^2, rho s and lambda s give the same graphs over s; what is chosen follows, and so does a solver far from
/// numbers near one.
#[test]
fn graphs_do_not_depend_on_the_unit_of_the_signals() {
    let one = run(&distances(1.0), &settings()).unwrap();
    assert!(one.summary.kkt < 1e-8 && one.summary.converged, "{:?}", one.summary);
    for factor in [1e-12, 3e5] {
        let other = run(&distances(factor), &settings()).unwrap();
        assert!(other.summary.kkt < 1e-8 && other.summary.converged, "{factor}: {:?}", other.summary);
        for (number, power) in [
            (other.summary.beta / one.summary.beta, 2),
            (other.summary.rho.unwrap() / one.summary.rho.unwrap(), 1),
            (other.summary.lambda.unwrap() / one.summary.lambda.unwrap(), 1),
        ] {
            assert!((number / factor.powi(power) - 1.0).abs() < 0.05, "{factor}: {number}");
        }
        let fixed = Settings {
            beta: Some(one.summary.beta * factor * factor),
            rho: one.summary.rho.map(|rho| rho * factor),
            lambda: one.summary.lambda.map(|lambda| lambda * factor),
            ..settings()
        };
        let same = run(&distances(factor), &fixed).unwrap();
        for (a, b) in same.graphs.iter().flatten().zip(one.graphs.iter().flatten()) {
            assert!((a * factor - b).abs() < 1e-7, "{factor}: {a} {b}");
        }
    }
}

/// The residual sees what is wrong with every part of a solution.
#[test]
fn the_residual_is_zero_at_the_solution_alone() {
    let input = distances(1.0);
    let zbar: Vec<Vec<f64>> = input.world.train.iter().map(|data| data.features().to_vec()).collect();
    let settings =
        Settings { beta: Some(0.3), rho: Some(0.4), lambda: Some(0.1), threshold: Some(0.0), ..settings() };
    let learnt = run(&input, &settings).unwrap();
    let parameters = Parameters { beta: 0.3, tie: Some((0.4, 0.1)) };
    let residual = |parameters: Parameters, graphs: &[Vec<f64>], consensus: &[f64]| {
        optimality::residual(2.0, parameters, &zbar, graphs, Some(consensus))
    };
    let consensus = learnt.consensus.clone().unwrap();
    let right = residual(parameters, &learnt.graphs, &consensus);
    assert!(right < 1e-8, "{right}");
    for at in 0..6 {
        let mut graphs = learnt.graphs.clone();
        graphs[1][at] += 1e-3;
        assert!(residual(parameters, &graphs, &consensus) > 1e-5, "weight {at}");
        let mut moved = consensus.clone();
        moved[at] += 1e-3;
        assert!(residual(parameters, &learnt.graphs, &moved) > 1e-5, "consensus {at}");
    }
    for wrong in [
        Parameters { beta: 0.31, ..parameters },
        Parameters { tie: Some((0.41, 0.1)), ..parameters },
        Parameters { tie: Some((0.4, 0.11)), ..parameters },
    ] {
        assert!(residual(wrong, &learnt.graphs, &consensus) > 1e-5, "{wrong:?}");
    }
    // Fused graphs with pairs that have no edge.
    let fused = Settings { beta: Some(1e-3), rho: Some(50.0), lambda: Some(0.01), ..settings.clone() };
    let learnt = run(&input, &fused).unwrap();
    assert!(
        learnt.summary.clients.iter().all(|client| client.distance.unwrap() < 1e-6 && client.density < 1.0)
    );
    assert!(learnt.summary.kkt < 1e-8, "{:?}", learnt.summary);
    let alone = run(&input, &Settings { rho: None, lambda: None, alone: true, ..settings }).unwrap();
    assert!(alone.summary.kkt < 1e-9 && alone.consensus.is_none(), "{:?}", alone.summary);
}

/// Some clients fuse, others do not, and have edges that the fused ones hold out of the consensus.
#[test]
fn the_residual_is_small_where_some_clients_fuse() {
    let input = signals(world(30, 2));
    let mut mixed = 0;
    for rho in [0.3, 0.6, 1.0, 1.5, 2.0, 3.0, 4.0] {
        let settings = Settings { beta: Some(0.02), rho: Some(rho), lambda: Some(0.05), ..settings() };
        let learnt = run(&input, &settings).unwrap();
        let fused = learnt.summary.clients.iter().filter(|client| client.distance.unwrap() < 1e-6).count();
        println!("rho {rho}: {fused} fused, kkt {:e}", learnt.summary.kkt);
        mixed += u32::from(fused > 0 && fused < learnt.graphs.len());
        assert!(learnt.summary.kkt < 1e-8, "rho {rho}, {fused} fused: {}", learnt.summary.kkt);
    }
    assert!(mixed > 0);
}

#[test]
fn a_density_is_reached_or_its_range_is_named() {
    let input = signals(world(100, 5));
    let learnt = run(&input, &Settings { density: Some(0.4), alone: true, ..settings() }).unwrap();
    let clients = &learnt.summary.clients;
    let mean = clients.iter().map(|client| client.density).sum::<f64>() / clients.len() as f64;
    assert!((mean - 0.4).abs() < 0.006, "{mean}");
    let error = run(&input, &Settings { density: Some(0.001), ..settings() }).unwrap_err().to_string();
    assert!(error.contains("no beta gives a density of 0.001") && error.contains("to 1.0000"), "{error}");
}

/// The noise is drawn once: what is recovered from one graph is what all others are learnt from.
#[test]
fn all_graphs_follow_from_one_release() {
    let input = signals(world(400, 3));
    let shield = Shield { epsilon: 2.0, delta: 1e-5, clip: 3.0, seeded: true };
    let private = Settings { shield: Some(shield), ..settings() };
    let learnt = run(&input, &private).unwrap();
    // Conditions are checked with distances recovered from another run of the method: they fit, so both saw one release.
    assert!(learnt.summary.kkt < 1e-7, "{}", learnt.summary.kkt);
    assert!(learnt.summary.warnings.iter().any(|warning| warning.contains("--seed")));
    assert_eq!(run(&input, &private).unwrap(), learnt);
    let other = run(&input, &Settings { seed: 1, ..private.clone() }).unwrap();
    assert_ne!(other.graphs, learnt.graphs);
    let fresh = Settings { shield: Some(Shield { seeded: false, ..shield }), ..private.clone() };
    let (a, b) = (run(&input, &fresh).unwrap(), run(&input, &fresh).unwrap());
    assert_ne!(a.graphs, b.graphs);
    let alone = run(&input, &Settings { alone: true, ..private.clone() }).unwrap();
    assert!(alone.summary.kkt < 1e-7 && alone.consensus.is_none() && alone.summary.method == "igl");
    for (wrong, words) in [
        (Settings { select: true, ..private.clone() }, "covers one look"),
        (Settings { rho: Some(1.0), alone: true, ..private }, "tie several graphs"),
    ] {
        let error = run(&input, &wrong).unwrap_err().to_string();
        assert!(error.contains(words), "{error}");
    }
}

/// Selected parameters come near the best that the same search could have chosen with the truth at hand.
///
/// The bound is on the mean of six worlds (seeds 1 to 6, N = 100), so there is no chance in it.
#[test]
fn selection_comes_near_the_best() {
    let (mut selected, mut usual, mut best) = (0.0, 0.0, 0.0);
    let seeds = 1..=6;
    let count = 6.0;
    for seed in seeds {
        let world = world(100, seed);
        let input = signals(world.clone());
        let learnt = run(&input, &Settings { select: true, ..settings() }).unwrap();
        let again = run(&input, &Settings { select: true, ..settings() }).unwrap();
        assert_eq!(learnt, again);
        selected += mcc(&learnt, &world) / count;
        usual += mcc(&run(&input, &settings()).unwrap(), &world) / count;
        // The best of a wide grid by the truth, threshold included.
        let mut top: f64 = 0.0;
        for beta in [0.01, 0.03, 0.1] {
            for rho in [0.1, 0.3, 1.0] {
                for threshold in [1e-4, 0.1, 0.2, 0.3, 0.4] {
                    let settings = Settings {
                        beta: Some(beta),
                        rho: Some(rho),
                        lambda: Some(0.1 * rho),
                        threshold: Some(threshold),
                        tolerance: 1e-6,
                        ..settings()
                    };
                    top = top.max(mcc(&run(&input, &settings).unwrap(), &world));
                }
            }
        }
        best += top / count;
    }
    println!("MCC: selected {selected:.3}, defaults {usual:.3}, best of a grid by the truth {best:.3}");
    assert!(selected > best - 0.1, "{selected} {best}");
}

#[test]
fn names_of_files_are_safe_and_different() {
    let stems = fedkin_run::topologies::stems(&["a/b", "a b", "A-B", "..", "", "Köln.1"]);
    assert_eq!(stems, ["a-b", "a-b-2", "A-B-3", "client", "client-2", "Köln.1"]);
}
