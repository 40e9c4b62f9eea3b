//! `fedpnp`: the equations once more in plain loops, both limits, every source of the graph, and what leaves.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::disallowed_methods,
    clippy::needless_range_loop,
    clippy::disallowed_macros,
    clippy::disallowed_types
)]

use fedkin_harness::small as common;

use common::{Small, Vector, apart, names, number, own, records, ridge, text, values, world};
use fedkin_graph::Topology;
use fedkin_learner::Dataset;
use fedkin_method::round::{Judge, Live, Progress};
use fedkin_method::{Entry, Federation, Member};
use fedkin_numeric::rng::{PublicRng, Random};
use fedkin_privacy::Sampler;
use fedkin_settings::Value;
use std::sync::Arc;

const RATE: f64 = 0.05;
const ROUNDS: u32 = 6;

fn whole(x: i64) -> Value {
    Value::Integer(x)
}

/// Clients with these numbers of records, in two kinds that differ in model, features and scale.
fn clients(seed: u64, sizes: &[u32]) -> Small {
    let mut rng = PublicRng::named(seed, "fedpnp", 0, 0);
    let truth: Vec<Vector> = (0..2).map(|_| (0..3).map(|_| rng.normal()).collect()).collect();
    let (mut entries, mut data) = (Vec::new(), Vec::new());
    for (k, &samples) in sizes.iter().enumerate() {
        let drawn = records(&mut rng, samples, &truth[k % 2], false);
        // x -> 2 x + 1 of one kind: its means and variances are others.
        let (factor, shift) = if k % 2 == 0 { (1.0, 0.0) } else { (2.0, 1.0) };
        let features: Vector = drawn.features().iter().map(|x| factor * x + shift).collect();
        let slope: f64 = truth[k % 2].iter().sum();
        let targets = drawn.targets().iter().map(|y| factor * y + shift * slope).collect();
        data.push(Arc::new(Dataset::new(3, features, targets).unwrap()));
        entries.push(Entry { name: format!("c{k}"), server: 0, cluster: 0, samples });
    }
    let (federation, _) = Federation::new(entries, names("s", 1), names("q", 1), Topology::none(1)).unwrap();
    world(federation, data, ridge(0.0), seed, ROUNDS)
}

/// All records in one batch: the order of records cannot matter but for rounding.
fn run(world: &Small, name: &str, settings: &[(&str, Value)]) -> Box<dyn Live> {
    let mut all = vec![("epochs", whole(2)), ("batch", whole(1000)), ("learning_rate", number(RATE))];
    all.extend(settings.iter().cloned());
    let mut live = world.live(name, &values(name, &all));
    while live.step().unwrap() != Progress::Ended {}
    live
}

/// Two epochs of (9) from psi: gradient descent on the mean squared error with a pull.
fn local_step(data: &Dataset, psi: &[f64], pull: f64) -> Vector {
    let mut w = psi.to_vec();
    for _ in 0..2 {
        let mut gradient: Vector = w.iter().zip(psi).map(|(w, c)| pull * (w - c)).collect();
        for (i, y) in data.targets().iter().enumerate() {
            let gap: f64 = data.row(i).iter().zip(&w).map(|(x, w)| x * w).sum::<f64>() - y;
            for (g, x) in gradient.iter_mut().zip(data.row(i)) {
                *g += 2.0 * gap * x / data.rows() as f64;
            }
        }
        for (w, g) in w.iter_mut().zip(&gradient) {
            *w -= RATE * g;
        }
    }
    w
}

/// `A X = B` by elimination with pivots; B by rows.
fn solve(mut a: Vec<Vector>, mut b: Vec<Vector>) -> Vec<Vector> {
    let n = a.len();
    for c in 0..n {
        let pivot = (c..n).max_by(|&i, &j| a[i][c].abs().total_cmp(&a[j][c].abs())).unwrap();
        a.swap(c, pivot);
        b.swap(c, pivot);
        for r in 0..n {
            if r != c {
                let f = a[r][c] / a[c][c];
                for k in 0..n {
                    a[r][k] -= f * a[c][k];
                }
                for k in 0..b[0].len() {
                    b[r][k] -= f * b[c][k];
                }
            }
        }
    }
    (0..n).map(|r| b[r].iter().map(|x| x / a[r][r]).collect()).collect()
}

/// The whole method on a complete graph: `(P + 2 b1 L + 2 b2 L P^-1 L) Psi = P Omega` by elimination, strengths falling from
/// nu0 to beta.
#[test]
fn rounds_are_the_equations() {
    let world = clients(3, &[4, 9, 6, 12, 5]);
    let (beta, nu0, eta, pull) = ([0.05, 0.2], 1.0, 0.4, 0.3);
    let settings = [
        ("graph", text("complete")),
        ("beta1", number(beta[0])),
        ("beta2", number(beta[1])),
        ("nu0", number(nu0)),
        ("eta", number(eta)),
        ("pull", number(pull)),
    ];
    let live = run(&world, "fedpnp", &settings);
    let n = world.data.len();
    let total: f64 = world.data.iter().map(|data| data.rows() as f64).sum();
    let p: Vector = world.data.iter().map(|data| n as f64 * data.rows() as f64 / total).collect();
    let weight = 1.0 / (n as f64 - 1.0);
    let l: Vec<Vector> =
        (0..n).map(|i| (0..n).map(|j| if i == j { 1.0 } else { -weight }).collect()).collect();
    let mut psi = vec![vec![0.0; 3]; n];
    let mut omega = psi.clone();
    for round in 0..ROUNDS {
        omega = (0..n).map(|k| local_step(&world.data[k], &psi[k], pull)).collect();
        let nu: Vector = beta.iter().map(|b| b.max(nu0 * (1.0 - eta).powi(round as i32))).collect();
        let a = (0..n)
            .map(|i| {
                (0..n)
                    .map(|j| {
                        let twice: f64 = (0..n).map(|m| l[i][m] * l[m][j] / p[m]).sum();
                        f64::from(u8::from(i == j)) * p[i] + 2.0 * nu[0] * l[i][j] + 2.0 * nu[1] * twice
                    })
                    .collect()
            })
            .collect();
        let b = (0..n).map(|i| omega[i].iter().map(|x| p[i] * x).collect()).collect();
        psi = solve(a, b);
    }
    for (found, expected) in own(&*live).iter().zip(&omega) {
        assert!(apart(found, expected) < 1e-10, "{found:?} against {expected:?}");
    }
}

/// Without denoising every client trains alone, whatever the others are.
#[test]
fn no_strength_is_local_training() {
    let world = clients(4, &[4, 9, 6, 12]);
    for filter in ["sound", "paper-10", "paper-12", "heat", "tv"] {
        let zero =
            [("filter", text(filter)), ("beta1", number(0.0)), ("beta2", number(0.0)), ("pull", number(0.0))];
        let live = run(&world, "fedpnp", &zero);
        for (k, found) in own(&*live).iter().enumerate() {
            let mut w = vec![0.0; 3];
            for _ in 0..ROUNDS {
                w = local_step(&world.data[k], &w, 0.0);
            }
            assert!(apart(found, &w) < 1e-10, "{filter}, client {k}");
        }
    }
}

/// With all strength it is FedAvg, or FedProx where there is a pull, for clients of unequal sizes.
#[test]
fn all_strength_is_one_model_for_all() {
    let world = clients(5, &[4, 19, 6, 12]);
    let strong = [
        ("beta1", number(1e12)),
        ("beta2", number(1e12)),
        ("nu0", number(1e12)),
        ("graph", text("complete")),
    ];
    let with = |pull: f64| [&strong[..], &[("pull", number(pull))]].concat();
    let fedavg = own(&*run(&world, "fedavg", &[]));
    let fedprox = own(&*run(&world, "fedprox", &[("pull", number(0.7))]));
    assert!(apart(&fedavg[0], &fedprox[0]) > 1e-3, "a pull must matter for this to say anything");
    for (expected, pull) in [(fedavg, 0.0), (fedprox, 0.7)] {
        let found = own(&*run(&world, "fedpnp", &with(pull)));
        for (found, expected) in found.iter().zip(&expected) {
            assert!(apart(found, expected) < 1e-6, "pull {pull}: {found:?} against {expected:?}");
        }
    }
    // One shape of the hard filter is the weighted mean, too, and so is that over more neighbours than there are.
    for filter in [("hard", "tau", 1), ("knn-mean", "neighbours", 9)] {
        let (name, key, count) = filter;
        let settings =
            [("filter", text(name)), (key, whole(count)), ("graph", text("complete")), ("pull", number(0.0))];
        let found = own(&*run(&world, "fedpnp", &settings));
        for (found, expected) in found.iter().zip(&own(&*run(&world, "fedavg", &[]))) {
            assert!(apart(found, expected) < 1e-9, "{name}");
        }
    }
}

/// Without a pull FedProx is FedAvg to the bit; with one, many epochs reach the minimiser of
/// `f_k(w) + (mu/2) |w - served|^2`: the squared distance, not the distance.
#[test]
fn fedprox_minimises_with_the_square_of_the_distance() {
    let world = clients(6, &[4, 9, 6]);
    assert_eq!(own(&*run(&world, "fedprox", &[("pull", number(0.0))])), own(&*run(&world, "fedavg", &[])));
    let (mut world, pull) = (clients(6, &[40]), 0.8);
    world.run.rounds = 1;
    let settings = [
        ("epochs", whole(20_000)),
        ("batch", whole(1000)),
        ("learning_rate", number(RATE)),
        ("pull", number(pull)),
    ];
    let mut live = world.live("fedprox", &values("fedprox", &settings));
    while live.step().unwrap() != Progress::Ended {}
    let data = &world.data[0];
    let moment = |f: &dyn Fn(usize) -> f64| (0..data.rows()).map(f).sum::<f64>() * 2.0 / data.rows() as f64;
    let a = (0..3)
        .map(|j| {
            let column = |k: usize| moment(&|i| data.row(i)[j] * data.row(i)[k]);
            (0..3).map(|k| column(k) + f64::from(u8::from(j == k)) * pull).collect()
        })
        .collect();
    let b = (0..3).map(|j| vec![moment(&|i| data.row(i)[j] * data.targets()[i])]).collect();
    let expected: Vector = solve(a, b).concat();
    assert!(apart(&own(&*live)[0], &expected) < 1e-9, "{:?} against {expected:?}", own(&*live));
}

/// Ten clients of two kinds: statistics, models and losses all lead to graphs within the kinds.
#[test]
fn every_source_finds_the_two_kinds() {
    let world = clients(7, &[400; 10]);
    for source in ["knn-kernel", "learned", "rewards"] {
        let settings = [("graph", text(source)), ("neighbours", whole(3)), ("warm_up", whole(3))];
        let live = run(&world, "fedpnp", &settings);
        let kin = live.kin().expect("a graph");
        assert!(kin.edges.len() >= 15, "{source}: every client has three neighbours, {:?}", kin.edges);
        assert!(kin.edges.iter().all(|(a, b, _)| a % 2 == b % 2), "{source}: {:?}", kin.edges);
    }
    let live = run(&world, "fedpnp", &[("graph", text("fedgl")), ("warm_up", whole(3))]);
    let edges = live.kin().expect("a graph").edges;
    let of =
        |same: bool| -> f64 { edges.iter().filter(|(a, b, _)| (a % 2 == b % 2) == same).map(|e| e.2).sum() };
    assert!(of(true) > 10.0 * of(false), "{} within, {} between", of(true), of(false));
}

/// A graph that the run brings is used as it is.
#[test]
fn a_given_graph_is_taken() {
    let mut world = clients(8, &[6; 4]);
    world.run.kin = Some(Arc::from([(0, 2, 1.0), (1, 3, 0.5)]));
    let live = run(
        &world,
        "fedpnp",
        &[("graph", text("file")), ("weak", number(0.0)), ("beta1", number(1e9)), ("nu0", number(1e9))],
    );
    assert_eq!(live.kin().unwrap().edges, vec![(0, 2, 1.0), (1, 3, 0.5)]);
    world.run.kin = None;
    let at = world.arranged("fedpnp");
    let refused = at.start("fedpnp", &values("fedpnp", &[("graph", text("file"))]));
    assert!(refused.err().unwrap().to_string().contains("kin.graph"));
}

/// Known clusters and all strength: averaging within each, as if the other did not exist.
#[test]
fn known_clusters_are_worth_an_average_within_them() {
    let mut world = clients(11, &[4, 9, 6, 12, 5]);
    let cluster: Vec<u32> = (0..5).map(|k| k % 2).collect();
    world.federation = world.federation.clustered(&cluster, names("q", 2)).unwrap();
    world.run.clusters = 2;
    let strong = [
        ("graph", text("clusters")),
        ("weak", number(0.0)),
        ("beta1", number(1e12)),
        ("nu0", number(1e12)),
        ("pull", number(0.0)),
    ];
    let found = own(&*run(&world, "fedpnp", &strong));
    for kind in 0..2 {
        let members: Vec<usize> = (0..5).filter(|k| k % 2 == kind).collect();
        let sizes: Vec<f64> = members.iter().map(|&k| world.data[k].rows() as f64).collect();
        let total: f64 = sizes.iter().sum();
        let mut psi = vec![0.0; 3];
        let mut omega = Vec::new();
        for _ in 0..ROUNDS {
            omega = members.iter().map(|&k| local_step(&world.data[k], &psi, 0.0)).collect::<Vec<_>>();
            let mean = |j: usize| omega.iter().zip(&sizes).map(|(w, size)| w[j] * size / total).sum();
            psi = (0..3).map(mean).collect();
        }
        for (&k, expected) in members.iter().zip(&omega) {
            assert!(apart(&found[k], expected) < 1e-6, "client {k}");
        }
    }
}

/// With DP-SGD everything that leaves passes the ledger: one noisy sum for the graph, one for every step after.
#[test]
fn statistics_and_steps_are_charged() {
    let world = clients(9, &[20; 4]).dp_sgd(1.0, 4.0, None, Sampler::Discrete);
    let settings = values("fedpnp", &[("local_steps", whole(3)), ("sampling_rate", number(0.5))]);
    let mut live = world.live("fedpnp", &settings);
    while live.step().unwrap() != Progress::Ended {}
    let spent: Vec<u64> = live.accounts().iter().map(|account| account.spent).collect();
    // 1 + 3 per round sums of the same price.
    assert!(spent.iter().all(|units| *units > 0 && units % u64::from(1 + 3 * ROUNDS) == 0), "{spent:?}");
    let lines = live.ledger().lines.clone();
    assert!(
        lines.iter().any(|line| *line.what == *b"statistics")
            && lines.iter().all(|line| *line.mechanism != *b"disclosed")
    );
}

/// A rate that is too high ends the run with the client and the round.
#[test]
fn a_diverging_client_is_named() {
    let world = clients(10, &[6; 4]);
    for name in ["fedpnp", "fedavg", "fedprox"] {
        let settings = [("epochs", whole(400)), ("learning_rate", number(50.0))];
        let mut live = world.live(name, &values(name, &settings));
        let mut last = Ok(Progress::Ended);
        for _ in 0..3 {
            last = live.step();
            if last.is_err() {
                break;
            }
        }
        let words = last.expect_err(name).to_string();
        assert!(words.contains("client number 0") && words.contains("learning_rate"), "{words}");
    }
}

/// Rounds are counted from none to all of them, whatever steps a source of the graph puts between.
#[test]
fn rounds_are_counted_from_the_first_to_the_last() {
    let world = clients(11, &[6; 4]);
    for graph in ["knn-kernel", "complete", "learned", "rewards"] {
        let settings = [("graph", text(graph)), ("epochs", whole(1)), ("warm_up", whole(2))];
        let mut live = world.live("fedpnp", &values("fedpnp", &settings));
        let mut seen = vec![live.rounds()];
        while live.step().unwrap() != Progress::Ended {
            seen.push(live.rounds());
        }
        seen.push(live.rounds());
        seen.dedup();
        assert_eq!(seen, (0..=ROUNDS).collect::<Vec<_>>(), "{graph}");
    }
}

/// Both models of every client: omega, then psi.
struct Both;

impl Judge for Both {
    fn columns(&self) -> usize {
        6
    }
    fn score(&self, _: &Member, _: bool, which: usize, model: &[f64], row: &mut [f64]) {
        row[3 * which..3 * which + 3].copy_from_slice(model);
    }
}

/// The mean squared error of a model and its gradient.
fn loss(data: &Dataset, w: &[f64]) -> (f64, Vector) {
    let (mut sum, mut gradient, rows) = (0.0, vec![0.0; 3], data.rows() as f64);
    for (i, y) in data.targets().iter().enumerate() {
        let gap: f64 = data.row(i).iter().zip(w).map(|(x, w)| x * w).sum::<f64>() - y;
        sum += gap * gap / rows;
        gradient.iter_mut().zip(data.row(i)).for_each(|(g, x)| *g += 2.0 * gap * x / rows);
    }
    (sum, gradient)
}

/// Corollary 1: with exact local solutions and mu > 1.5 L a local step lowers the loss by at least `v |grad f(psi)|^2`,
/// `v = 1/mu - 3 L / (2 mu^2)`. Theorem 2 sums these decreases up to delta and calls T = O(delta / (epsilon v)) a rate; but the
/// filter undoes a part of every step, so delta grows as T does, and the rate says nothing.
#[test]
fn steps_lower_the_loss_and_delta_grows_with_the_rounds() {
    let sizes = [14, 19, 16, 22];
    let mut world = clients(8, &sizes);
    world.run.rounds = 400;
    // The trace bounds the largest eigenvalue.
    let steepest = world
        .data
        .iter()
        .map(|data| 2.0 * data.features().iter().map(|x| x * x).sum::<f64>() / data.rows() as f64);
    let l = steepest.fold(0.0, f64::max);
    let mu = 2.0 * l;
    let v = 1.0 / mu - 1.5 * l / (mu * mu);
    // Gradient steps contract by a third or more, so forty of them are exact.
    let settings = [
        ("graph", text("complete")),
        ("beta1", number(0.5)),
        ("pull", number(mu)),
        ("epochs", whole(40)),
        ("batch", whole(1000)),
        ("learning_rate", number(1.0 / (l + mu))),
    ];
    let mut live = world.live("fedpnp", &values("fedpnp", &settings));
    let mut psi = vec![vec![0.0; 3]; sizes.len()];
    let (mut sum, mut delta) = (0.0, Vec::new());
    for round in 1.. {
        let ended = live.step().unwrap() == Progress::Ended;
        for (k, row) in live.rows(&Both).iter().enumerate() {
            let (omega, served) = row.split_at(3);
            let ((before, gradient), (after, _)) =
                (loss(&world.data[k], &psi[k]), loss(&world.data[k], omega));
            let square: f64 = gradient.iter().map(|g| g * g).sum();
            assert!(before - after >= v * square - 1e-12, "client {k}, round {round}: {before} to {after}");
            if k == 0 {
                sum += before - after;
            }
            psi[k] = served.to_vec();
        }
        if [25, 100, 400].contains(&round) {
            delta.push(sum);
        }
        if ended {
            break;
        }
    }
    eprintln!("delta of client 0 after 25, 100 and 400 rounds: {delta:?}");
    assert!(delta.len() == 3 && delta[2] > 2.5 * delta[1], "{delta:?}");
}

/// Where a round with one short step stops moving, `P grad f(Psi) + (2 beta1 / r) L Psi + (2 beta2 / r) L P^-1 L Psi = 0` with r
/// the learning rate. Paced, the rate cancels, and a run whose rate falls ends there; otherwise differences cost ever more, and
/// the models of all clients become one.
#[test]
fn a_falling_rate_moves_the_balance_unless_it_is_paced() {
    let sizes = [14, 19, 16, 22];
    let (mut world, beta, decay) = (clients(12, &sizes), [0.01, 0.005], 0.98);
    let n = sizes.len();
    let p: Vector =
        sizes.iter().map(|&size| n as f64 * f64::from(size) / f64::from(sizes.iter().sum::<u32>())).collect();
    // (L Psi)_k on the complete graph, whose weights sum to one at a client.
    let spread = |rows: &[Vector]| -> Vec<Vector> {
        let others = |k: usize, j: usize| (0..n).filter(|&i| i != k).map(|i| rows[i][j]).sum::<f64>();
        (0..n).map(|k| (0..3).map(|j| rows[k][j] - others(k, j) / (n as f64 - 1.0)).collect()).collect()
    };
    let mut ends = |paced: bool, decay: f64, rounds: u32| {
        world.run.rounds = rounds;
        let settings = [
            ("graph", text("complete")),
            ("beta1", number(beta[0])),
            ("beta2", number(beta[1])),
            ("nu0", number(0.0)),
            ("pull", number(0.0)),
            ("epochs", whole(1)),
            ("decay", number(decay)),
            ("paced", Value::Flag(paced)),
        ];
        let live = run(&world, "fedpnp", &settings);
        let psi: Vec<Vector> = live.rows(&Both).iter().map(|row| row[3..].to_vec()).collect();
        let once = spread(&psi);
        let divided: Vec<Vector> =
            once.iter().zip(&p).map(|(row, p)| row.iter().map(|x| x / p).collect()).collect();
        let twice = spread(&divided);
        let mut left = 0.0f64;
        for k in 0..n {
            let gradient = loss(&world.data[k], &psi[k]).1;
            for j in 0..3 {
                let cost = 2.0 / RATE * (beta[0] * once[k][j] + beta[1] * twice[k][j]);
                left = left.max((p[k] * gradient[j] + cost).abs());
            }
        }
        (left, once.concat().iter().map(|x| x * x).sum::<f64>().sqrt())
    };
    let (steady, apart) = ends(false, 1.0, 3000);
    assert!(steady < 1e-9 && apart > 0.1, "a rate that stays: {steady:e} from balance, models {apart} apart");
    let (paced, still_apart) = ends(true, decay, 400);
    assert!(
        paced < 1e-2 * apart && (still_apart / apart - 1.0).abs() < 0.01,
        "{paced:e}, {still_apart} of {apart}"
    );
    let (_, together) = ends(false, decay, 400);
    assert!(together < 0.05 * apart, "{together} of {apart}");
}
