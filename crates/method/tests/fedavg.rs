//! `fedavg`: closed forms first, then what DP-SGD adds to it. Gradients are written out here once more.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::disallowed_methods,
    clippy::disallowed_macros,
    clippy::disallowed_types
)]

use fedkin_harness::small as common;

use common::{
    Small, Vector, all_bits, apart, derivatives, held, inner, length, names, number, own, records, ridge,
    small, steps, text, values, world,
};
use fedkin_graph::Topology;
use fedkin_learner::Dataset;
use fedkin_learner::model::{Loss, Model};
use fedkin_method::round::{Live, Progress};
use fedkin_method::{Entry, Federation};
use fedkin_numeric::rng::{PublicRng, Random};
use fedkin_privacy::{Line, Prices, Sampled, Sampler};
use fedkin_settings::Value;
use std::sync::Arc;

/// Clients with these numbers of records on two servers.
fn clients(seed: u64, sizes: &[u32], loss: Loss) -> Small {
    let mut rng = PublicRng::named(seed, "fedavg", 0, 0);
    let truth: Vector = (0..4).map(|_| rng.normal()).collect();
    let (mut entries, mut data) = (Vec::new(), Vec::new());
    for (k, &samples) in sizes.iter().enumerate() {
        data.push(Arc::new(records(&mut rng, samples, &truth, loss == Loss::Logistic)));
        entries.push(Entry { name: format!("c{k}"), server: k as u32 % 2, cluster: 0, samples });
    }
    let (federation, _) = Federation::new(entries, names("s", 2), names("q", 1), Topology::ring(2)).unwrap();
    world(federation, data, Model { loss, ..ridge(0.3) }, seed, 25)
}

fn whole(x: i64) -> Value {
    Value::Integer(x)
}

fn run(world: &Small, settings: &[(&str, Value)]) -> Box<dyn Live> {
    let mut live = world.live("fedavg", &values("fedavg", settings));
    steps(&mut *live, world.run.rounds);
    live
}

fn served(live: &dyn Live) -> Vector {
    held(live, "served")[&(0, 0)].clone()
}

/// The gradient of (16): mean loss and strength |w|^2.
fn gradient(loss: Loss, data: &Dataset, strength: f64, w: &[f64]) -> Vector {
    let mut sum: Vector = w.iter().map(|w| 2.0 * strength * w).collect();
    for (i, &y) in data.targets().iter().enumerate() {
        let (_, slope, _) = derivatives(loss, inner(data.row(i), w), y);
        for (sum, x) in sum.iter_mut().zip(data.row(i)) {
            *sum += slope * x / data.rows() as f64;
        }
    }
    sum
}

fn minus(w: &mut [f64], step: f64, gradient: &[f64]) {
    for (w, g) in w.iter_mut().zip(gradient) {
        *w -= step * g;
    }
}

const LOSSES: [Loss; 3] = [Loss::Squared, Loss::Huber(0.5), Loss::Logistic];

/// One client, all its records: E steps a round of gradient descent.
#[test]
fn one_client_is_gradient_descent() {
    for loss in LOSSES {
        for local_steps in [1, 4] {
            let world = clients(1, &[9], loss);
            let settings = [("local_steps", whole(local_steps)), ("learning_rate", number(0.05))];
            let live = run(&world, &settings);
            let mut w = vec![0.0; 4];
            for _ in 0..25 * local_steps {
                let step = gradient(loss, &world.data[0], 0.3, &w);
                minus(&mut w, 0.05, &step);
            }
            assert!(apart(&served(&*live), &w) < 1e-12, "{loss:?}, {local_steps} steps");
            assert!(apart(&own(&*live)[0], &w) < 1e-12, "its own model is what it sent, and nobody else did");
        }
    }
}

/// E = 1, q = 1, all clients: gradient descent on the weighted objective, with either weights. With D_k the losses of
/// all records count alike; with uniform ones those of all clients.
#[test]
fn one_step_of_all_is_gradient_descent_on_the_objective() {
    let sizes = [2, 9, 5, 1, 12];
    for loss in LOSSES {
        for weights in ["samples", "uniform"] {
            let world = clients(2, &sizes, loss);
            let live = run(&world, &[("learning_rate", number(0.05)), ("weights", text(weights))]);
            let mut w = vec![0.0; 4];
            for _ in 0..25 {
                let mut sum = vec![0.0; 4];
                let mut all = 0.0;
                for (data, size) in world.data.iter().zip(sizes) {
                    let weight = if weights == "samples" { f64::from(size) } else { 1.0 };
                    minus(&mut sum, -weight, &gradient(loss, data, 0.3 / 5.0, &w));
                    all += weight;
                }
                minus(&mut w, 0.05 / all, &sum);
            }
            assert!(apart(&served(&*live), &w) < 1e-12, "{loss:?}, {weights}");
        }
    }
}

/// By hand: records (x, y) = (1, 2) and (2, 0), (3, 1) at two clients, lambda 0, eta 1/8, one round of two steps, weights 1
/// and 2. From 0: client 0 goes 0, 1/2, 7/8; client 1, whose gradient is 13 w - 3, goes 0, 3/8, 9/64; their mean is
/// (7/8 + 9/32)/3 = 37/96.
#[test]
fn a_small_case_by_hand() {
    let data = vec![
        Arc::new(Dataset::new(1, vec![1.0], vec![2.0]).unwrap()),
        Arc::new(Dataset::new(1, vec![2.0, 3.0], vec![0.0, 1.0]).unwrap()),
    ];
    let entry = |name: &str, samples| Entry { name: name.into(), server: 0, cluster: 0, samples };
    let (federation, _) =
        Federation::new(vec![entry("a", 1), entry("b", 2)], names("s", 1), names("q", 1), Topology::none(1))
            .unwrap();
    let world = world(federation, data, ridge(0.0), 1, 1);
    let settings = [("local_steps", whole(2)), ("learning_rate", number(0.125))];
    let live = run(&world, &settings);
    assert_eq!(own(&*live), [[0.875], [9.0 / 64.0]]);
    assert!((served(&*live)[0] - 37.0 / 96.0).abs() < 1e-15);
    // The same with equal weights: (7/8 + 9/64) / 2.
    let uniform = run(&world, &[&settings[..], &[("weights", text("uniform"))]].concat());
    assert_eq!(served(&*uniform), [65.0 / 128.0]);
}

/// No noise, no clip, sampled records: the private path is the plain run to the bit, and the ledger says what that is
/// worth. A clip that binds, or noise, changes it.
#[test]
fn without_noise_and_clip_the_private_path_is_the_plain_run() {
    let settings =
        [("local_steps", whole(3)), ("sampling_rate", number(0.4)), ("learning_rate", number(0.02))];
    let world = || small(3, 24, 5, 12);
    let plain = run(&world(), &settings);
    let of = |clip, sampler| run(&world().dp_sgd(clip, 1.0, None, sampler), &settings);
    let silent = of(f64::INFINITY, Sampler::None);
    assert_eq!(all_bits(&*silent), all_bits(&*plain));
    assert_eq!((silent.ledger().lines.len(), plain.ledger().lines.len()), (12, 12));
    for (line, plain) in silent.ledger().lines.iter().zip(&plain.ledger().lines) {
        assert_eq!(Line::text(&line.mechanism), "no noise, not private");
        assert_eq!((line.units, line.sigma_most, line.draws.steps), (0, 0.0, 0));
        assert_eq!((Line::text(&plain.mechanism).as_str(), plain.size), ("disclosed", 5));
    }
    assert_ne!(all_bits(&*of(0.1, Sampler::None)), all_bits(&*plain), "a clip that binds");
    for sampler in [Sampler::Discrete, Sampler::Float] {
        assert_ne!(all_bits(&*of(1e6, sampler)), all_bits(&*plain), "{sampler:?}");
    }
}

/// A record of a client turns into an outlier: with a clip and no noise, one step of that client moves by 2 C eta / D_k at
/// most; without a clip by far more.
#[test]
fn an_outlier_moves_a_step_by_its_clip_at_most() {
    let (clip, eta, size) = (0.2, 0.05, 6);
    for loss in LOSSES {
        let mut base = clients(4, &[size], loss);
        (base.run.rounds, base.run.max_norm2) = (1, f64::INFINITY);
        let mut spoilt = base.arranged("fedavg");
        let mut features = base.data[0].features().to_vec();
        let mut targets = base.data[0].targets().to_vec();
        features[8..12].copy_from_slice(&[-3e7, 1e8, 4e7, -2e8]);
        targets[2] = if loss == Loss::Logistic { 1.0 - targets[2] } else { -1e9 };
        spoilt.data[0] = Arc::new(Dataset::new(4, features, targets).unwrap());
        let end = |world: &Small, clip: f64| {
            let world = world.arranged("fedavg").dp_sgd(clip, 1.0, None, Sampler::None);
            served(&*run(&world, &[("learning_rate", number(eta))]))
        };
        let gap = |clip: f64| {
            let (a, b) = (end(&base, clip), end(&spoilt, clip));
            length(&a.iter().zip(&b).map(|(a, b)| a - b).collect::<Vector>())
        };
        let limit = 2.0 * clip * eta / f64::from(size);
        assert!(gap(clip) <= limit * (1.0 + 1e-12) && gap(clip) > 0.1 * limit, "{loss:?}: {}", gap(clip));
        if loss != Loss::Logistic {
            assert!(gap(1e30) > 100.0 * limit, "{loss:?}");
        }
    }
}

/// What is charged: E sampled sums an answer in one line, the total as if nothing were sampled in units, and an epsilon
/// that is the accountant's for the same noise, rate and steps, below the unsampled one.
#[test]
fn accounts_hold_what_epsilon_follows_from() {
    let (z, q, local_steps) = (1.3, 0.1, 5);
    let world = clients(5, &[40, 60, 50], Loss::Logistic).dp_sgd(1.0, z, None, Sampler::Discrete);
    let settings = [("local_steps", whole(local_steps)), ("sampling_rate", number(q))];
    let live = run(&world, &settings);
    let steps = 25 * local_steps as u64;
    let mut prices = Prices::default();
    for account in live.accounts() {
        assert_eq!((account.releases, account.sampled.len()), (25, 1));
        let draws = &account.sampled[0];
        assert_eq!((draws.multiplier, draws.rate, draws.steps), (z, q, steps));
        assert!((account.total().zcdp() / (steps as f64 * 2.0 / (z * z)) - 1.0).abs() < 1e-9);
        let sampled =
            Sampled { rate: q, clip: 1.0, neighbours: fedkin_privacy::Neighbours::Replace, rounds: steps };
        let (ours, alone) = (prices.epsilon(&account, 1e-5), sampled.epsilon(z, 1e-5));
        assert!((ours / alone - 1.0).abs() < 1e-9, "{ours} {alone}");
        let unsampled = Sampled { rate: 1.0, ..sampled };
        assert!(ours < 0.3 * unsampled.epsilon(z, 1e-5));
    }
    let lines = &live.ledger().lines;
    assert_eq!(lines.len(), 25);
    for line in lines {
        assert_eq!(
            (Line::text(&line.mechanism).as_str(), Line::text(&line.bound).as_str()),
            ("sampled discrete gaussian", "enforced")
        );
        assert_eq!((line.clients, line.size, line.draws.steps), (3, 4, local_steps as u64));
        assert!(line.sigma_least >= z && line.sigma_least < z * 1.0001);
    }
    // What was saved goes on with the same bits and the same account.
    let half = {
        let mut live = world.live("fedavg", &values("fedavg", &settings));
        common::steps(&mut *live, 10);
        live.save()
    };
    let mut again = world.live("fedavg", &values("fedavg", &settings));
    again.restore(&half).unwrap();
    common::steps(&mut *again, 15);
    assert_eq!((all_bits(&*again), again.accounts()), (all_bits(&*live), live.accounts()));
}

/// A budget that ends inside a round's steps refuses the whole round: nothing is charged and the old model stays.
#[test]
fn a_budget_ends_before_a_round_and_not_within_one() {
    // A step costs 2 / 10^2, a round of three 0.06: two rounds fit into 0.17.
    let world = clients(6, &[20, 30], Loss::Squared).dp_sgd(1.0, 10.0, Some(0.17), Sampler::Discrete);
    let mut live = world.live("fedavg", &values("fedavg", &[("local_steps", whole(3))]));
    let mut answers = Vec::new();
    for _ in 0..4 {
        let Progress::Round(counts) = live.step().unwrap() else { panic!("ended early") };
        answers.push((counts.values, counts.refused));
    }
    assert_eq!(answers, [(2, 0), (2, 0), (0, 2), (0, 2)]);
    for account in live.accounts() {
        assert_eq!((account.releases, account.sampled[0].steps), (2, 6));
        assert!((account.total().zcdp() - 0.12).abs() < 1e-9);
    }
}

/// Who refuses whom, in words that name the way out.
#[test]
fn mechanisms_that_do_not_fit_are_refused_by_name() {
    let start = |world: &Small, name: &str| {
        world.arranged(name).start(name, &values(name, &[])).err().unwrap().to_string()
    };
    let zcdp = start(&small(1, 12, 3, 2).private(), "fedavg");
    assert!(zcdp.contains("fedavg") && zcdp.contains("\"dp-sgd\""), "{zcdp}");
    for name in ["pgfl", "gfedmtl", "gfl", "one-cloud"] {
        let sgd = start(&small(1, 12, 3, 2).dp_sgd(1.0, 1.0, None, Sampler::Discrete), name);
        assert!(sgd.contains("\"zcdp\"") && sgd.contains("fedavg"), "{name}: {sgd}");
    }
}
