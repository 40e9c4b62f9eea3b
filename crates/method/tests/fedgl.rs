//! `FedGL` against exact cases: instances of (8) whose optimum two independent solvers agreed on to 6e-10, and the
//! paper's Algorithm 1 step by step.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::disallowed_methods,
    clippy::disallowed_macros,
    clippy::disallowed_types
)]

use fedkin_graph::Topology;
use fedkin_learner::signals::{Records, Smooth, pairs_of};
use fedkin_learner::{Dataset, Graph};
use fedkin_method::round::{Live, Progress, Results, RunFault, Simulation};
use fedkin_method::{
    Algorithm, Average, Consensus, Context, Entry, Families, FedGl, FedGlSettings, Federation, Igl, Run,
    registry,
};
use fedkin_numeric::rng::{PublicRng, Random};
use fedkin_privacy::{Clip, LastStep, OneShot, Privacy, Sampler};
use fedkin_runtime::Threads;
use fedkin_settings::{Settings, Value, Values};
use registry::Method;
use serde_json::Value as Json;
use std::collections::BTreeMap;
use std::sync::Arc;

struct Golden {
    json: Json,
    name: &'static str,
}

fn goldens() -> Vec<Golden> {
    [
        ("d5_i2", include_str!("golden/d5_i2.json")),
        ("d8_i3", include_str!("golden/d8_i3.json")),
        ("d8_i3_fused", include_str!("golden/d8_i3_fused.json")),
    ]
    .into_iter()
    .map(|(name, text)| Golden { json: serde_json::from_str(text).unwrap(), name })
    .collect()
}

fn vector(json: &Json) -> Vec<f64> {
    json.as_array().unwrap().iter().map(|x| x.as_f64().unwrap()).collect()
}

impl Golden {
    fn number(&self, key: &str) -> f64 {
        self.json[key].as_f64().unwrap()
    }

    fn vectors(&self, key: &str) -> Vec<Vec<f64>> {
        self.json[key].as_array().unwrap().iter().map(vector).collect()
    }

    fn problem(&self) -> Smooth {
        Smooth { alpha: self.number("alpha"), beta: self.number("beta"), records: Records::Distances }
    }

    /// The method of a type on the golden distances.
    fn start<A: Method>(&self, rounds: u32, set: &[(&str, Value)]) -> Simulation<A> {
        let mut raw: BTreeMap<String, Value> = BTreeMap::new();
        for (key, value) in set {
            raw.insert((*key).into(), value.clone());
        }
        for (key, golden) in [("rho", "rho"), ("lambda", "lam")] {
            if A::Settings::PARAMS.iter().any(|param| param.name == key) {
                raw.insert(key.into(), Value::Number(self.number(golden)));
            }
        }
        let values = Values::check(A::Settings::PARAMS, &raw).unwrap();
        let context = Context::new(Families::one(Graph::new(self.problem())), Privacy::None);
        let algorithm = A::from_values(&values, &context).unwrap();
        let zbar = self.vectors("zbar");
        let pairs = zbar[0].len();
        let (mut entries, mut data) = (Vec::new(), Vec::new());
        for (k, z) in zbar.into_iter().enumerate() {
            entries.push(Entry { name: format!("c{k}"), server: 0, cluster: 0, samples: 1 });
            data.push(Arc::new(Dataset::new(pairs, z, vec![0.0]).unwrap()));
        }
        let (federation, _) =
            Federation::new(entries, vec!["s".into()], vec!["q".into()], Topology::none(1)).unwrap();
        let run = Run {
            seed: 1,
            rounds,
            clients_per_server: None,
            max_norm2: 1e24,
            dimension: pairs_of(self.number("d") as usize),
            clusters: 1,
            privacy: Privacy::None,
            targets: None,
            kin: None,
            columns: None,
            learners: None,
        };
        Simulation::new(Arc::new(algorithm), run, &federation, &data, Arc::new(Threads)).unwrap()
    }
}

fn models<A: Algorithm>(simulation: &Simulation<A>) -> (Vec<Vec<f64>>, Vec<f64>) {
    let mut own = Vec::new();
    simulation.own_models(&mut |_, model| own.push(model.to_vec()));
    let mut consensus = Vec::new();
    simulation.servers()[0].held(simulation.algorithm(), simulation.run(), &mut |_, _, graph| {
        consensus = graph.to_vec();
    });
    (own, consensus)
}

fn run<A: Algorithm>(simulation: &mut Simulation<A>) -> Result<u32, RunFault> {
    while simulation.step()? != Progress::Ended {}
    Ok(simulation.steps())
}

fn gauge<A: Algorithm>(simulation: &Simulation<A>, name: &str) -> f64 {
    simulation.gauges().into_iter().find(|(known, _)| known == name).unwrap().1
}

fn gap(a: &[f64], b: &[f64]) -> f64 {
    assert_eq!(a.len(), b.len());
    a.iter().zip(b).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max)
}

#[test]
fn the_exact_solver_finds_the_optimum_of_every_golden_case() {
    for golden in goldens() {
        let mut simulation = golden.start::<FedGl<Consensus>>(2000, &[]);
        let rounds = run(&mut simulation).unwrap();
        let (own, consensus) = models(&simulation);
        let (objective, kkt) = (gauge(&simulation, "objective"), gauge(&simulation, "kkt"));
        println!("{}: {rounds} rounds, objective {objective}, kkt {kkt:e}", golden.name);
        let best = golden.number("objective");
        assert!((objective - best).abs() <= 1e-8 * best.abs(), "{}: {objective} {best}", golden.name);
        assert!(kkt < 1e-8, "{}: {kkt}", golden.name);
        for (own, golden) in own.iter().zip(golden.vectors("w")) {
            assert!(gap(own, &golden) < 1e-5);
        }
        assert!(gap(&consensus, &vector(&golden.json["w_con"])) < 1e-5);
    }
}

#[test]
fn a_client_alone_finds_the_optimum_of_every_golden_case() {
    for golden in goldens() {
        let mut simulation = golden.start::<Igl>(1, &[]);
        run(&mut simulation).unwrap();
        let (own, _) = models(&simulation);
        let best = vector(&golden.json["igl_objective"]);
        for (k, (own, expected)) in own.iter().zip(golden.vectors("igl_w")).enumerate() {
            assert!(gap(own, &expected) < 1e-5, "{}", golden.name);
            let value = golden.problem().value(&golden.vectors("zbar")[k], own, &mut Vec::new());
            assert!((value - best[k]).abs() <= 1e-8 * best[k].abs(), "{}: {value} {}", golden.name, best[k]);
        }
    }
}

/// Algorithm 1, 8 rounds of 25 steps: the same numbers as an independent implementation, also where it diverges.
#[test]
fn the_papers_algorithm_takes_the_steps_of_every_golden_case() {
    for golden in goldens() {
        let expected = &golden.json["algorithm1"];
        let mut simulation = golden.start::<FedGl<Consensus>>(8, &[("solver", Value::Text("paper".into()))]);
        let mut stopped = None;
        for _ in 0..8 {
            if let Err(fault) = simulation.step() {
                stopped = Some(fault);
                break;
            }
        }
        if expected["diverged"].as_bool().unwrap() {
            let words = stopped.expect("it diverges").to_string();
            for part in ["diverges", "Proposition 1", "solver = \"exact\"", "fuses"] {
                assert!(words.contains(part), "{words}");
            }
            continue;
        }
        assert_eq!(stopped, None);
        let (own, consensus) = models(&simulation);
        for (own, expected) in own.iter().zip(expected["w"].as_array().unwrap()) {
            assert!(gap(own, &vector(expected)) < 1e-9, "{}", golden.name);
        }
        assert!(gap(&consensus, &vector(&expected["w_con"])) < 1e-9);
        let objective = gauge(&simulation, "objective");
        assert!((objective - expected["objective"].as_f64().unwrap()).abs() < 1e-9, "{}", golden.name);
    }
}

/// Without a tie every client is alone; with one graph for all the mean of the distances decides.
#[test]
fn reductions_to_a_client_alone_and_to_pooled_distances() {
    let golden = goldens().remove(1);
    let mut loose = Golden { json: golden.json.clone(), name: golden.name };
    loose.json["rho"] = 0.0.into();
    let mut apart = loose.start::<FedGl<Consensus>>(2000, &[]);
    run(&mut apart).unwrap();
    for (own, expected) in models(&apart).0.iter().zip(golden.vectors("igl_w")) {
        assert!(gap(own, &expected) < 1e-5);
    }
    let mut average = golden.start::<FedGl<Average>>(2000, &[]);
    run(&mut average).unwrap();
    let mut pooled = Golden { json: golden.json.clone(), name: golden.name };
    let zbar = golden.vectors("zbar");
    let mean: Vec<f64> =
        (0..zbar[0].len()).map(|j| zbar.iter().map(|z| z[j]).sum::<f64>() / zbar.len() as f64).collect();
    pooled.json["zbar"] = serde_json::json!([mean]);
    let mut alone = pooled.start::<Igl>(1, &[]);
    run(&mut alone).unwrap();
    let one = models(&alone).0.remove(0);
    for own in models(&average).0 {
        assert!(gap(&own, &one) < 1e-8, "{}", gap(&own, &one));
    }
}

/// Signals of three clients on six nodes, in one process.
fn on_signals<A: Method>(privacy: Privacy, set: &[(&str, Value)], some: Option<u32>) -> Simulation<A> {
    let raw = set.iter().map(|(key, value)| ((*key).to_string(), value.clone())).collect();
    let smooth = Smooth { alpha: 2.0, beta: 0.2, records: Records::Signals };
    let context = Context::new(Families::one(Graph::new(smooth)), privacy);
    let algorithm = A::from_values(&Values::check(A::Settings::PARAMS, &raw).unwrap(), &context).unwrap();
    let (mut entries, mut data) = (Vec::new(), Vec::new());
    for k in 0..3u32 {
        let mut rng = PublicRng::named(7, "signals of clients", 0, k);
        let samples = 40 + 10 * k;
        let mut features = Vec::new();
        for _ in 0..samples {
            let mut level = 2.0 * rng.normal();
            for node in 0..6 {
                level += if node == k { 1.5 } else { 0.5 } * rng.normal();
                features.push(level);
            }
        }
        entries.push(Entry { name: format!("c{k}"), server: 0, cluster: 0, samples });
        data.push(Arc::new(Dataset::new(6, features, vec![0.0; samples as usize]).unwrap()));
    }
    let (federation, _) =
        Federation::new(entries, vec!["s".into()], vec!["q".into()], Topology::none(1)).unwrap();
    let run = Run {
        seed: 3,
        rounds: 3000,
        clients_per_server: some,
        max_norm2: 1e24,
        dimension: 15,
        clusters: 1,
        privacy,
        targets: None,
        kin: None,
        columns: None,
        learners: None,
    };
    Simulation::new(Arc::new(algorithm), run, &federation, &data, Arc::new(Threads)).unwrap()
}

fn one_shot(sampler: Sampler, clip: f64, price: f64) -> Privacy {
    Privacy::OneShot(OneShot { clip: Clip::new(clip).unwrap(), price, budget: None, sampler })
}

/// The one release without noise and clipping, and everything after it at the server: the graphs of the run in which
/// every round asks everybody. One line in the ledger, whatever the rounds.
#[test]
fn one_shot_without_noise_is_the_plain_run() {
    let mut plain = on_signals::<FedGl<Consensus>>(Privacy::None, &[], None);
    let rounds = run(&mut plain).unwrap();
    let mut once = on_signals::<FedGl<Consensus>>(one_shot(Sampler::None, 1e9, 1.0), &[], None);
    assert_eq!(run(&mut once).unwrap(), rounds + 1);
    assert_eq!(once.ledger().lines.len(), 1);
    for (a, b) in models(&plain).0.iter().zip(models(&once).0) {
        assert!(gap(a, &b) < 1e-7, "{}", gap(a, &b));
    }
    // With noise it costs what was asked for, once.
    let mut noisy = on_signals::<FedGl<Consensus>>(one_shot(Sampler::Discrete, 3.0, 0.25), &[], None);
    run(&mut noisy).unwrap();
    assert!(noisy.accounts().iter().all(|account| (account.spent, account.releases) == (250_000_000_000, 1)));
    assert!(models(&noisy).0 != models(&plain).0);
}

/// With one of three clients asked in a round the same graphs come out, later.
#[test]
fn clients_in_turn_reach_the_same_optimum() {
    let mut all = on_signals::<FedGl<Consensus>>(Privacy::None, &[], None);
    run(&mut all).unwrap();
    let mut some = on_signals::<FedGl<Consensus>>(Privacy::None, &[], Some(2));
    for _ in 0..1500 {
        some.step().unwrap();
    }
    for (a, b) in models(&all).0.iter().zip(models(&some).0) {
        assert!(gap(a, &b) < 1e-5, "{}", gap(a, &b));
    }
}

/// The paper's private algorithm runs, and the ledger calls its bound refuted.
#[test]
fn the_papers_noise_is_called_refuted() {
    let noise = LastStep { epsilon: 1.0, delta: 1e-5, clip: 25.0, budget: None, sampler: Sampler::Float };
    let paper = [("solver", Value::Text("paper".into()))];
    let mut simulation = on_signals::<FedGl<Consensus>>(Privacy::Paper(noise), &paper, None);
    for _ in 0..3 {
        simulation.step().unwrap();
    }
    assert!(simulation.ledger().lines.iter().all(|line| &*line.bound == b"refuted by audit: no guarantee"));
    let exact = <FedGl<Consensus> as Method>::build(
        FedGlSettings::default(),
        &Context::new(
            Families::one(Graph::new(Smooth { alpha: 2.0, beta: 0.2, records: Records::Signals })),
            Privacy::Paper(noise),
        ),
    );
    assert!(exact.unwrap_err().contains("solver = \"paper\""));
}

/// Five clients with 7140 pairs each: few enough, and heavy enough, to be asked beside each other.
#[test]
fn any_number_of_threads_gives_the_same_bits() {
    let nodes = 120;
    let run_on = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| {
            let rows: Vec<Vec<f64>> = (0..5u64)
                .map(|client| {
                    (0..pairs_of(nodes) as u64)
                        .map(|i| 0.05 + ((i * 7919 + client * 104_729 + i * i) % 1009) as f64 / 1009.0)
                        .collect()
                })
                .collect();
            let golden = Golden {
                json: serde_json::json!({
                    "alpha": 2.0, "beta": 0.05, "rho": 0.4, "lam": 0.02, "d": nodes, "zbar": rows
                }),
                name: "threads",
            };
            let mut simulation = golden.start::<FedGl<Consensus>>(12, &[]);
            run(&mut simulation).unwrap();
            let charges = simulation.ledger().lines.clone();
            (simulation.save(), models(&simulation), format!("{charges:?}"))
        })
    };
    let one = run_on(1);
    assert!(one.1.1.iter().any(|w| *w > 0.0), "a consensus without edges shows nothing");
    for threads in [2, 3, 8] {
        assert!(one == run_on(threads), "{threads} threads");
    }
}

/// Graphs that leave every bound within one round are the same trouble, with the same words.
#[test]
fn graphs_that_grow_beyond_the_bound_are_called_divergence() {
    let mut golden = goldens().remove(2);
    golden.json["rho"] = 1e4.into();
    let mut simulation = golden.start::<FedGl<Consensus>>(20, &[("solver", Value::Text("paper".into()))]);
    let fault = run(&mut simulation).unwrap_err().to_string();
    assert!(fault.contains("diverges") && fault.contains("solver = \"exact\""), "{fault}");
    let mut exact = golden.start::<FedGl<Consensus>>(2000, &[]);
    run(&mut exact).unwrap();
    assert!(gauge(&exact, "kkt") < 1e-8);
}
