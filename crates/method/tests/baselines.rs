//! `fedprox`, `fedbn`, `per-fedavg`, `pfedme` and `ifca` with mini-batches: closed forms first, then what each becomes at the
//! ends of its keys, on linear models, classes and small nets. Gradients are written out here once more.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::disallowed_methods,
    clippy::disallowed_macros,
    clippy::disallowed_types
)]

use fedkin_harness::small as common;

use common::{
    Loop, Small, Vector, all_bits, apart, bits, derivatives, held, inner, length, minimise, names, number,
    own, records, ridge, steps, text, values, world,
};
use fedkin_graph::Topology;
use fedkin_learner::Dataset;
use fedkin_learner::model::{Loss, Model};
use fedkin_method::registry::Method;
use fedkin_method::round::{Judge, Live, Progress};
use fedkin_method::{Algorithm, AsStar, Entry, FedBn, Federation, Member};
use fedkin_numeric::rng::{PublicRng, Random};
use fedkin_privacy::{Line, Sampler};
use fedkin_settings::Value;
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{Arc, Mutex};

const COLUMNS: usize = 4;
const PLAIN: &[&str] = &["dense 6", "tanh", "dense 3"];
const BATCH_NORM: &[&str] = &["dense 6", "batch-norm", "relu", "dense 3"];
const GROUP_NORM: &[&str] = &["dense 6", "group-norm 2", "tanh", "dense 3"];
/// Where `BATCH_NORM` has its norm: after 4 x 6 weights and 6 biases, scale, shift, mean and variance of six units.
const NORM: Range<usize> = 30..54;
/// The last twelve of them.
const RUNNING: Range<usize> = 42..54;

type Set<'a> = [(&'a str, Value)];

/// Clients with these numbers of records at one server.
fn clients(seed: u64, sizes: &[u32], loss: Loss) -> Small {
    let mut rng = PublicRng::named(seed, "baselines", 0, 0);
    let truth: Vector = (0..COLUMNS).map(|_| rng.normal()).collect();
    let (mut entries, mut data) = (Vec::new(), Vec::new());
    for (k, &samples) in sizes.iter().enumerate() {
        data.push(Arc::new(records(&mut rng, samples, &truth, loss == Loss::Logistic)));
        entries.push(Entry { name: format!("c{k}"), server: 0, cluster: 0, samples });
    }
    let (federation, _) = Federation::new(entries, names("s", 1), names("q", 1), Topology::none(1)).unwrap();
    world(federation, data, Model { loss, ..ridge(0.3) }, seed, 4)
}

fn squared(seed: u64, sizes: &[u32]) -> Small {
    clients(seed, sizes, Loss::Squared)
}

fn whole(x: i64) -> Value {
    Value::Integer(x)
}

fn run(world: &Small, name: &str, set: &Set<'_>) -> Box<dyn Live> {
    let mut live = world.live(name, &values(name, set));
    steps(&mut *live, world.run.rounds);
    live
}

fn served(live: &dyn Live) -> Vector {
    held(live, "served")[&(0, 0)].clone()
}

/// Why a run cannot begin.
fn refused(world: &Small, name: &str, set: &Set<'_>) -> String {
    let at = world.arranged(name);
    at.start(name, &values(name, set)).err().unwrap().to_string()
}

/// All models of all clients, by client and place among the names.
fn personal(live: &dyn Live) -> BTreeMap<(u32, usize), Vector> {
    struct Keep(Mutex<BTreeMap<(u32, usize), Vector>>);
    impl Judge for Keep {
        fn columns(&self) -> usize {
            1
        }
        fn score(&self, member: &Member, _: bool, which: usize, model: &[f64], _: &mut [f64]) {
            self.0.lock().unwrap().insert((member.id, which), model.to_vec());
        }
    }
    let keep = Keep(Mutex::default());
    live.rows(&keep);
    keep.0.into_inner().unwrap()
}

/// The gradient of (16) over some records: mean loss and strength |w|^2.
fn gradient(loss: Loss, data: &Dataset, rows: Range<usize>, strength: f64, w: &[f64]) -> Vector {
    let mut sum: Vector = w.iter().map(|w| 2.0 * strength * w).collect();
    for i in rows.clone() {
        let (_, slope, _) = derivatives(loss, inner(data.row(i), w), data.targets()[i]);
        for (sum, x) in sum.iter_mut().zip(data.row(i)) {
            *sum += slope * x / rows.len() as f64;
        }
    }
    sum
}

/// The Hessian of the squared loss on all records, times a vector.
fn curved(data: &Dataset, strength: f64, v: &[f64]) -> Vector {
    let mut sum: Vector = v.iter().map(|v| 2.0 * strength * v).collect();
    for i in 0..data.rows() {
        let along = 2.0 * inner(data.row(i), v) / data.rows() as f64;
        for (sum, x) in sum.iter_mut().zip(data.row(i)) {
            *sum += along * x;
        }
    }
    sum
}

fn plus(w: &[f64], factor: f64, v: &[f64]) -> Vector {
    w.iter().zip(v).map(|(w, v)| w + factor * v).collect()
}

/// The mean by numbers of records.
fn mean(models: &[Vector], sizes: &[u32]) -> Vector {
    let all: f64 = sizes.iter().map(|&size| f64::from(size)).sum();
    models
        .iter()
        .zip(sizes)
        .fold(vec![0.0; models[0].len()], |sum, (model, &size)| plus(&sum, f64::from(size) / all, model))
}

const SIZES: [u32; 4] = [9, 5, 12, 7];

/// Linear, several classes, and nets with and without norms.
fn worlds(seed: u64) -> Vec<(&'static str, Small)> {
    let base = || squared(seed, &SIZES);
    vec![
        ("ridge", base()),
        ("logistic", clients(seed, &SIZES, Loss::Logistic)),
        ("softmax", base().classes(3)),
        ("net", base().net(3, PLAIN)),
        ("batch norm", base().net(3, BATCH_NORM)),
        ("group norm", base().net(3, GROUP_NORM)),
    ]
}

fn mini_batches() -> Vec<(&'static str, Value)> {
    vec![("epochs", whole(3)), ("batch", whole(4)), ("learning_rate", number(0.05)), ("decay", number(0.9))]
}

fn with(base: &Set<'static>, more: &Set<'static>) -> Vec<(&'static str, Value)> {
    [base, more].concat()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 8, failure_persistence: None, ..ProptestConfig::default() })]

    /// FedProx at pull 0 is FedAvg to the bit: in mini-batches, with momentum and weight decay, and on Poisson samples.
    #[test]
    fn fedprox_without_a_pull_is_fedavg(seed in 0u64..1000, momentum in 0.0..0.9f64, weight_decay in 0.0..0.1f64) {
        let more = [("momentum", number(momentum)), ("weight_decay", number(weight_decay))];
        let batches = with(&mini_batches(), &more);
        let samples = vec![("local_steps", whole(3)), ("sampling_rate", number(0.5)), ("learning_rate", number(0.02))];
        for (what, world) in worlds(seed) {
            for set in [&batches, &samples] {
                let avg = run(&world, "fedavg", set);
                let prox = run(&world, "fedprox", &with(set, &[("pull", number(0.0))]));
                prop_assert_eq!(all_bits(&*prox), all_bits(&*avg), "{}", what);
                let pulled = run(&world, "fedprox", &with(set, &[("pull", number(0.5))]));
                prop_assert_ne!(all_bits(&*pulled), all_bits(&*avg), "{}: a pull changes nothing", what);
            }
        }
    }

    /// FedBN on a model without norms is FedAvg to the bit; with norms it is not.
    #[test]
    fn fedbn_without_norms_is_fedavg(seed in 0u64..1000, momentum in 0.0..0.9f64) {
        let set = with(&mini_batches(), &[("momentum", number(momentum))]);
        for (what, world) in worlds(seed) {
            let same = all_bits(&*run(&world, "fedbn", &set)) == all_bits(&*run(&world, "fedavg", &set));
            prop_assert_eq!(same, !what.ends_with("norm"), "{}", what);
        }
    }

    /// Per-FedAvg with an inner rate of 0 is FedAvg with the same batches, whatever the order, up to rounding: f64 for
    /// linear models, f32 for nets.
    #[test]
    fn per_fedavg_without_an_inner_step_is_fedavg(seed in 0u64..1000, momentum in 0.0..0.9f64) {
        let set = with(&mini_batches(), &[("momentum", number(momentum)), ("weight_decay", number(0.01))]);
        for (what, mut world) in worlds(seed) {
            // The order of records follows from what a client is served, so rounding has other batches in the next round.
            world.run.rounds = 1;
            let far = if what.contains("net") || what.contains("norm") { 1e-4 } else { 1e-12 };
            let avg = served(&*run(&world, "fedavg", &set));
            for order in ["first", "hessian-free"] {
                let meta = run(&world, "per-fedavg", &with(&set, &[("inner_rate", number(0.0)), ("order", text(order))]));
                let gap = apart(&served(&*meta), &avg);
                prop_assert!(gap < far, "{}, {}: {}", what, order, gap);
                // No step of size 0 leads away from what is served, but for running statistics.
                for model in own(&*meta) {
                    let still = if what == "batch norm" { RUNNING } else { 0..0 };
                    let moved = (0..model.len())
                        .any(|i| !still.contains(&i) && model[i].to_bits() != served(&*meta)[i].to_bits());
                    prop_assert!(!moved, "{}", what);
                }
            }
            // Over all seeds and momenta 0, 0.45 and 0.89 the gap of nets is at most 1.2e-5 and this at least 8.5e-4.
            let stepped = run(&world, "per-fedavg", &with(&set, &[("inner_rate", number(0.05))]));
            prop_assert!(apart(&served(&*stepped), &avg) > 5.0 * far, "{}: the inner step changes nothing", what);
        }
    }

    /// pFedMe with lambda to 0 leaves w where it was, while every theta trains alone; running statistics are no
    /// part of w's step and follow the data.
    #[test]
    fn pfedme_without_a_tie_leaves_the_model_for_all(seed in 0u64..1000) {
        for (what, world) in worlds(seed) {
            let first = served(&*world.live("pfedme", &values("pfedme", &mini_batches())));
            let set = with(&mini_batches(), &[("personal_rate", number(0.02)), ("lambda", number(0.0))]);
            let live = run(&world, "pfedme", &set);
            let last = served(&*live);
            let still = if what == "batch norm" { RUNNING } else { 0..0 };
            for (i, (a, b)) in first.iter().zip(&last).enumerate() {
                prop_assert_eq!(a.to_bits() != b.to_bits(), still.contains(&i), "{}: coordinate {}", what, i);
            }
            for theta in own(&*live) {
                prop_assert!(length(&plus(&theta, -1.0, &last)) > 1e-3, "{}: nobody trained", what);
            }
            // A weak tie moves it a little.
            let weak = run(&world, "pfedme", &with(&mini_batches(), &[("personal_rate", number(0.02)), ("lambda", number(1e-3))]));
            let moved = |live: &dyn Live| {
                let model = served(live);
                (0..model.len()).filter(|i| !still.contains(i)).map(|i| (model[i] - first[i]).powi(2)).sum::<f64>().sqrt()
            };
            prop_assert!(moved(&*weak) < 1e-2, "{}: {}", what, moved(&*weak));
        }
    }

    /// Saving and restoring after every round goes on with the same bits, memories of clients included.
    #[test]
    fn a_restored_run_continues_with_the_same_bits(seed in 0u64..1000, some in proptest::option::of(1u32..4)) {
        for name in ["fedavg", "fedprox", "fedbn", "per-fedavg", "pfedme", "ifca"] {
            let mut world = squared(seed, &SIZES).net(3, BATCH_NORM);
            world.run.clients_per_server = some;
            let mut set = mini_batches();
            if name == "pfedme" {
                set.push(("personal_rate", number(0.02)));
            }
            if name == "ifca" {
                set.push(("models", whole(2)));
            }
            let settings = values(name, &set);
            let (mut straight, mut broken) = (world.live(name, &settings), world.live(name, &settings));
            for _ in 0..world.run.rounds {
                let saved = broken.save();
                broken = world.live(name, &settings);
                broken.restore(&saved).unwrap();
                prop_assert_eq!(straight.step().unwrap(), broken.step().unwrap());
                prop_assert_eq!(all_bits(&*straight), all_bits(&*broken), "{}", name);
            }
            prop_assert_eq!(personal(&*straight), personal(&*broken), "{}", name);
        }
    }
}

/// Many steps on all records end at the proximal point of what was served, with the *square* of the distance, in
/// either way of stepping; and as the pull grows, `mu (w - served)` tends to minus the gradient where it was served.
#[test]
fn fedprox_ends_at_the_proximal_point() {
    for loss in [Loss::Squared, Loss::Logistic] {
        let world = clients(1, &SIZES, loss);
        let strength = 0.3 / SIZES.len() as f64;
        for (pull, rate) in [(0.7, 0.03), (1e6, 5e-7)] {
            for steps_of in ["epochs", "local_steps"] {
                let set = [
                    ("pull", number(pull)),
                    ("learning_rate", number(rate)),
                    (steps_of, whole(4000)),
                    ("batch", whole(100)),
                ];
                let mut live = world.live("fedprox", &values("fedprox", &set));
                steps(&mut *live, 1);
                let centre = served(&*live);
                steps(&mut *live, 1);
                for (model, data) in own(&*live).iter().zip(&world.data) {
                    let proximal = minimise(loss, &[data], strength, pull, &centre);
                    let (gone, right) = (plus(model, -1.0, &centre), plus(&proximal, -1.0, &centre));
                    assert!(
                        apart(&gone, &right) < 1e-6,
                        "{loss:?}, {pull}, {steps_of}: {}",
                        apart(&gone, &right)
                    );
                    if pull > 1e3 {
                        let slope = gradient(loss, data, 0..data.rows(), strength, &centre);
                        assert!(apart(&gone.iter().map(|x| -pull * x).collect::<Vector>(), &slope) < 1e-4);
                        assert!(length(&gone) < 1e-4, "a strong pull keeps the served model");
                    }
                }
            }
        }
    }
}

/// The pull takes part in private steps, too, and costs nothing more.
#[test]
fn private_steps_of_fedprox_are_pulled_and_priced_as_those_of_fedavg() {
    let set = [("local_steps", whole(5)), ("sampling_rate", number(0.5)), ("learning_rate", number(0.02))];
    let of = |name: &str, more: &Set<'static>| {
        let world = squared(2, &[20, 30]).dp_sgd(1.0, 1.1, None, Sampler::Discrete);
        run(&world, name, &with(&set, more))
    };
    let (avg, none) = (of("fedavg", &[]), of("fedprox", &[("pull", number(0.0))]));
    let pulled = of("fedprox", &[("pull", number(3.0))]);
    assert_eq!((all_bits(&*none), none.accounts()), (all_bits(&*avg), avg.accounts()));
    assert_ne!(all_bits(&*pulled), all_bits(&*avg));
    let spent = |live: &dyn Live| live.accounts().iter().map(|account| account.spent).collect::<Vec<_>>();
    assert_eq!(spent(&*pulled), spent(&*avg));
    assert!(spent(&*avg).iter().all(|&spent| spent > 0));
}

/// The norms of a net stay at the clients: the server's never move, no message has them, clients differ in them, and
/// what a client is served is the rest of the server's with its own.
#[test]
fn fedbn_norms_never_leave_a_client() {
    let world = squared(3, &SIZES).net(3, BATCH_NORM);
    let set = mini_batches();
    let first = served(&*world.live("fedbn", &values("fedbn", &set)));
    let live = run(&world, "fedbn", &set);
    let server = served(&*live);
    assert_eq!(bits(&server[NORM]), bits(&first[NORM]));
    assert_ne!(bits(&server[..30]), bits(&first[..30]));
    let models = personal(&*live);
    for k in 0..SIZES.len() as u32 {
        let (own, served) = (&models[&(k, 0)], &models[&(k, 1)]);
        assert_eq!(bits(&served[NORM]), bits(&own[NORM]));
        assert_eq!((bits(&served[..30]), bits(&served[54..])), (bits(&server[..30]), bits(&server[54..])));
        assert_ne!(bits(&own[..30]), bits(&served[..30]));
        assert!(own[48..54].iter().all(|variance| *variance > 0.0));
        for other in 0..k {
            assert_ne!(bits(&own[NORM]), bits(&models[&(other, 0)][NORM]));
        }
    }
    let algorithm = <AsStar<FedBn>>::from_values(&values("fedbn", &set), &world.context).unwrap();
    let looped = Loop::new(algorithm, &world);
    let view = looped.0.servers()[0].view(looped.0.run());
    assert_eq!(looped.0.algorithm().cells(view), (1, world.run.dimension - NORM.len()));
    // One client alone has nobody to keep anything from. All records are one batch: their order follows from what a client
    // is served, which is not the same in its norms.
    let alone = squared(3, &[16]).net(3, BATCH_NORM);
    let set = [("epochs", whole(4)), ("batch", whole(16)), ("learning_rate", number(0.05))];
    let (bn, avg) = (own(&*run(&alone, "fedbn", &set)), own(&*run(&alone, "fedavg", &set)));
    assert!(apart(&bn[0], &avg[0]) < 1e-5, "{}", apart(&bn[0], &avg[0]));
}

/// On a quadratic with all records in each batch, written out: the first-order step, and the Hessian-free one, which is
/// that of (I - alpha H) g whatever the size of the differences.
#[test]
fn per_fedavg_on_a_quadratic() {
    let (alpha, beta, strength) = (0.05, 0.04, 0.3 / 4.0);
    let world = squared(4, &SIZES);
    for (order, delta) in
        [("first", 1.0), ("hessian-free", 1e-3), ("hessian-free", 1.0), ("hessian-free", 30.0)]
    {
        let set = [
            ("order", text(order)),
            ("inner_rate", number(alpha)),
            ("difference", number(delta)),
            ("learning_rate", number(beta)),
            ("epochs", whole(2)),
            ("batch", whole(100)),
        ];
        let mut w = vec![0.0; COLUMNS];
        for _ in 0..world.run.rounds {
            let models: Vec<Vector> = world
                .data
                .iter()
                .map(|data| {
                    let slope = |w: &[f64]| gradient(Loss::Squared, data, 0..data.rows(), strength, w);
                    let mut w = w.clone();
                    for _ in 0..2 {
                        let g = slope(&plus(&w, -alpha, &slope(&w)));
                        let meta =
                            if order == "first" { g } else { plus(&g, -alpha, &curved(data, strength, &g)) };
                        w = plus(&w, -beta, &meta);
                    }
                    w
                })
                .collect();
            w = mean(&models, &SIZES);
        }
        let live = run(&world, "per-fedavg", &set);
        assert!(apart(&served(&*live), &w) < 1e-10, "{order}, {delta}: {}", apart(&served(&*live), &w));
    }
}

/// A client's model is the served one after so many steps on its own records, in batches from the first record on.
#[test]
fn per_fedavg_adapts_in_order() {
    let world = squared(5, &SIZES);
    for inner_steps in [0, 1, 4] {
        let set = with(&mini_batches(), &[("inner_steps", whole(inner_steps)), ("inner_rate", number(0.03))]);
        let live = run(&world, "per-fedavg", &set);
        for (model, data) in own(&*live).iter().zip(&world.data) {
            let mut w = served(&*live);
            let mut first = 0;
            for _ in 0..inner_steps {
                let batch = first..(first + 4).min(data.rows());
                first = if batch.end == data.rows() { 0 } else { batch.end };
                w = plus(&w, -0.03, &gradient(Loss::Squared, data, batch, 0.3 / 4.0, &w));
            }
            assert!(apart(model, &w) < 1e-12, "{inner_steps} steps");
        }
    }
}

/// With many inner steps on all records theta is the proximal point of w, w_k goes to it by eta lambda of the way, and
/// the server by beta of the way to their mean.
#[test]
fn pfedme_personal_models_are_proximal_points() {
    for loss in [Loss::Squared, Loss::Logistic] {
        for (lambda, eta, beta) in [(2.0, 0.1, 1.0), (8.0, 0.05, 0.5), (2.0, 0.3, 2.0)] {
            let world = clients(6, &SIZES, loss);
            let set = [
                ("lambda", number(lambda)),
                ("inner_steps", whole(3000)),
                ("personal_rate", number(0.03)),
                ("learning_rate", number(eta)),
                ("server_rate", number(beta)),
                ("epochs", whole(2)),
                ("batch", whole(100)),
            ];
            let mut live = world.live("pfedme", &values("pfedme", &set));
            let mut w = vec![0.0; COLUMNS];
            for round in 0..3 {
                steps(&mut *live, 1);
                let (mut models, mut personal) = (Vec::new(), Vec::new());
                for data in &world.data {
                    let mut mine = w.clone();
                    for step in 0..2 {
                        let theta = minimise(loss, &[data], 0.3 / 4.0, lambda, &mine);
                        mine = plus(&mine, -eta * lambda, &plus(&mine, -1.0, &theta));
                        if step == 1 {
                            personal.push(theta);
                        }
                    }
                    models.push(mine);
                }
                w = plus(&w, beta, &plus(&mean(&models, &SIZES), -1.0, &w));
                assert!(apart(&served(&*live), &w) < 1e-9, "{loss:?}, {lambda}, {beta}, round {round}");
                for (theta, right) in own(&*live).iter().zip(&personal) {
                    assert!(apart(theta, right) < 1e-9, "{loss:?}, {lambda}, {beta}, round {round}");
                }
            }
        }
    }
}

/// Whatever the server's rate, variances that batch norm divides by stay positive; all clients' models are of use.
#[test]
fn running_variances_stay_positive() {
    for (name, more) in [
        (
            "pfedme",
            vec![
                ("server_rate", number(4.0)),
                ("personal_rate", number(0.05)),
                ("learning_rate", number(0.01)),
            ],
        ),
        ("per-fedavg", vec![("order", text("hessian-free"))]),
        ("fedprox", vec![("pull", number(1.0))]),
        ("ifca", vec![("models", whole(2)), ("divide", text("all"))]),
    ] {
        let mut world = squared(7, &[20, 16, 33, 25]).net(3, BATCH_NORM);
        world.run.rounds = 12;
        let live = run(&world, name, &[vec![("epochs", whole(2)), ("batch", whole(8))], more].concat());
        for model in personal(&*live).values() {
            assert!(model[48..54].iter().all(|variance| *variance > 0.0), "{name}");
            assert!(model[RUNNING] != *[vec![0.0; 6], vec![1.0; 6]].concat(), "{name}: they never moved");
        }
    }
}

/// One model with mini-batches of all records is FedAvg with uniform weights, from the same first net.
#[test]
fn ifca_with_one_net_is_fedavg() {
    for layers in [PLAIN, BATCH_NORM] {
        let world = squared(8, &SIZES).net(3, layers);
        let set = [("epochs", whole(2)), ("batch", whole(100)), ("learning_rate", number(0.1))];
        let ifca = own(&*run(&world, "ifca", &with(&set, &[("models", whole(1))])));
        let avg = served(&*run(&world, "fedavg", &with(&set, &[("weights", text("uniform"))])));
        for model in ifca {
            assert!(apart(&model, &avg) < 1e-5, "{layers:?}: {}", apart(&model, &avg));
        }
    }
}

/// Half of the clients name the classes otherwise: two nets find the halves, and each client ends with one that fits it.
#[test]
fn ifca_nets_find_who_agrees() {
    let mut world = squared(9, &[60; 8]).net(3, PLAIN);
    world.run.rounds = 25;
    for data in world.data.iter_mut().skip(4) {
        let targets = data.targets().iter().map(|y| (y + 1.0) % 3.0).collect();
        *data = Arc::new(Dataset::new(COLUMNS, data.features().to_vec(), targets).unwrap());
    }
    let set = [("epochs", whole(5)), ("batch", whole(16)), ("learning_rate", number(0.2))];
    let restarts = [("models", whole(2)), ("restarts", whole(3))];
    let mut live = world.live("ifca", &values("ifca", &with(&set, &restarts)));
    while live.step().unwrap() != Progress::Ended {}
    let found: Vec<u32> = live.kin().unwrap().clusters.iter().map(|&(_, cluster)| cluster).collect();
    assert!(found[..4].iter().all(|&cluster| cluster == found[0]), "{found:?}");
    assert!(found[4..].iter().all(|&cluster| cluster == 1 - found[0]), "{found:?}");
    let family = world.context.families.first();
    let loss = |models: &[Vector]| {
        let one = |(data, w): (&Arc<Dataset>, &Vector)| family.mean_loss(w, data);
        world.data.iter().zip(models).map(one).sum::<f64>() / 8.0
    };
    let (each, all) = (loss(&own(&*live)), loss(&vec![served(&*run(&world, "fedavg", &set)); 8]));
    assert!(each < 0.5 * all, "{each} with two nets, {all} with one");
}

/// Private steps on nets without batch norm are charged as on other models; without noise and clip, and on all records,
/// one of them is a step on one batch of all.
#[test]
fn private_nets() {
    for name in ["fedavg", "fedprox"] {
        let net = || squared(10, &[20, 30]).net(3, GROUP_NORM);
        let set = [("local_steps", whole(3)), ("sampling_rate", number(0.2)), ("learning_rate", number(0.1))];
        let live = run(&net().dp_sgd(1.0, 1.3, None, Sampler::Discrete), name, &set);
        for account in live.accounts() {
            let draws = &account.sampled[0];
            assert_eq!((account.releases, draws.multiplier, draws.rate, draws.steps), (4, 1.3, 0.2, 12));
            assert!((account.total().zcdp() / (12.0 * 2.0 / (1.3 * 1.3)) - 1.0).abs() < 1e-9);
        }
        for line in &live.ledger().lines {
            assert_eq!(Line::text(&line.mechanism), "sampled discrete gaussian");
            assert_eq!((line.size as usize, line.clients), (live_length(&*live), 2));
        }
        let one = [("learning_rate", number(0.1))];
        let silent = run(&net().dp_sgd(f64::INFINITY, 1.0, None, Sampler::None), name, &one);
        let plain = run(&net(), name, &with(&one, &[("epochs", whole(1)), ("batch", whole(100))]));
        let gap = apart(&served(&*silent), &served(&*plain));
        assert!(gap < 1e-5, "{name}: {gap}");
        let refusal = refused(
            &squared(10, &[20]).net(3, BATCH_NORM).dp_sgd(1.0, 1.3, None, Sampler::Discrete),
            name,
            &[],
        );
        assert!(refusal.contains("batch norm") && refusal.contains("\"group-norm\""), "{refusal}");
    }
}

fn live_length(live: &dyn Live) -> usize {
    served(live).len()
}

/// Who does not take what, in words that name the way out.
#[test]
fn what_does_not_fit_is_refused_by_name() {
    let net = || squared(11, &SIZES).net(3, BATCH_NORM);
    for name in ["fedbn", "per-fedavg", "pfedme"] {
        let refusal = refused(&squared(11, &SIZES).dp_sgd(1.0, 1.0, None, Sampler::Discrete), name, &[]);
        assert!(refusal.contains(name) && refusal.contains("\"none\""), "{refusal}");
        let lonely = refused(&squared(11, &[5, 1]).net(3, BATCH_NORM), name, &[]);
        assert!(lonely.contains("\"c1\"") && lonely.contains("group-norm"), "{lonely}");
    }
    let refusal = refused(&net(), "persfl", &[("candidates", whole(2))]);
    assert!(refusal.contains("persfl") && refusal.contains("\"ifca\""), "{refusal}");
    let refusal = refused(&net(), "ifca", &[("averaging", text("gradient"))]);
    assert!(refusal.contains("averaging"), "{refusal}");
    let refusal = refused(&net(), "pgfl", &[]);
    assert!(refusal.contains("a net"), "{refusal}");
    let refusal = refused(&net(), "pfedme", &[("lambda", number(30.0))]);
    assert!(refusal.contains("lambda") && refusal.contains("personal_rate"), "{refusal}");
}

/// A run whose training diverges ends, and says at which client.
#[test]
fn divergence_names_the_client() {
    for name in ["fedavg", "fedprox", "fedbn", "per-fedavg", "pfedme", "ifca"] {
        let mut world = squared(12, &SIZES).net(3, &["dense 6", "relu", "dense 3"]);
        let mut features = world.data[2].features().to_vec();
        for x in &mut features {
            *x *= 1e30;
        }
        world.data[2] = Arc::new(Dataset::new(COLUMNS, features, world.data[2].targets().to_vec()).unwrap());
        let mut set = vec![("epochs", whole(20)), ("learning_rate", number(1e9))];
        if name == "ifca" {
            set.push(("models", whole(1)));
        }
        world.run.max_norm2 = f64::INFINITY;
        let mut live = world.live(name, &values(name, &set));
        let end =
            (0..4).find_map(|_| live.step().err()).unwrap_or_else(|| panic!("{name} went on")).to_string();
        assert!(end.contains("diverged") && end.contains("learning_rate"), "{name}: {end}");
    }
}
