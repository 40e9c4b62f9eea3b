//! The noise that leaves a client: its size is (47), and it is fresh for every client, step and ask (lesson 4
//! of the core spec; decision 8 of the PGFL spec).
//!
//! The noise is read from what the messages carry: the upload of a private run minus the upload of a run
//! without privacy on the same ask. All tests are seeded, so they give the same answer every time; the error
//! rates are those for a fresh seed.
#![allow(
    missing_docs,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::disallowed_methods,
    clippy::disallowed_macros,
    clippy::disallowed_types
)]

use fedkin_graph::Topology;
use fedkin_learner::model::{Loss, Model, Unsolved};
use fedkin_learner::{Dataset, Linear};
use fedkin_method::registry::Method;
use fedkin_method::round::{ClientNode, Effect, Envelope, Message, Peer, Scratch, Server, Setting};
use fedkin_method::{
    Admm, Algorithm, Ask, Cells, Closed, Context, Now, Personal, Pgfl, PgflSettings, ROUND, Run, Seats,
    ServerView,
};
use fedkin_method::{Entry, Families, Federation, Member};
use fedkin_numeric::buffers::Buffers;
use fedkin_numeric::codec::Codec;
use fedkin_numeric::record;
use fedkin_numeric::rng::{PublicRng, Random, simulated_secret};
use fedkin_privacy::{Bound, Chain, Gate, Gaussian, Privacy, Refusal, Released, Sampler, Unit, Zcdp};
use std::sync::Arc;

const CLIENTS: usize = 40;
const STEPS: u32 = 50;
const D: usize = 30;
const RHO: f64 = 4.0;
const C: f64 = 0.3;
const PHI_0: f64 = 0.001;
const ZETA: f64 = 0.9;

type Method4 = Admm<Pgfl>;
type Down = <Method4 as Algorithm>::Down;
type Up = <Method4 as Algorithm>::Up;

/// A federation of one server and the same method with and without noise.
struct NetScratch {
    federation: Federation,
    data: Vec<Arc<Dataset>>,
    seed: u64,
    sampler: Sampler,
}

type Side = Arc<Setting<Method4>>;

impl NetScratch {
    fn new(seed: u64, sampler: Sampler) -> Self {
        let mut rng = PublicRng::named(seed, "noise test", 0, 0);
        let (mut entries, mut data) = (Vec::new(), Vec::new());
        for k in 0..CLIENTS {
            let samples = 1 + k as u32 % 6;
            let features = (0..samples as usize * D).map(|_| rng.normal()).collect();
            let targets = (0..samples).map(|_| rng.normal()).collect();
            data.push(Arc::new(Dataset::new(D, features, targets).unwrap()));
            entries.push(Entry { name: format!("c{k:03}"), server: 0, cluster: 0, samples });
        }
        let (federation, _) =
            Federation::new(entries, vec!["s".into()], vec!["q".into()], Topology::none(1)).unwrap();
        Self { federation, data, seed, sampler }
    }

    fn side(&self, private: bool) -> Side {
        let zcdp = Zcdp {
            initial_budget: PHI_0,
            growth: ZETA,
            assumed: Some(Bound::assumed(C)),
            budget: None,
            sampler: self.sampler,
            unit: Unit::Record,
        };
        self.side_with(if private { Privacy::Zcdp(zcdp) } else { Privacy::None })
    }

    fn side_with(&self, privacy: Privacy) -> Side {
        let model = Model { loss: Loss::Squared, regularisation: 0.01, bias: false, feature_norm: None };
        let settings = PgflSettings { penalty: RHO, ..PgflSettings::default() };
        let run = Run {
            seed: self.seed,
            rounds: STEPS,
            clients_per_server: None,
            max_norm2: 1e12,
            dimension: D,
            clusters: 1,
            privacy,
            targets: None,
            kin: None,
            columns: None,
            learners: None,
        };
        let context = Context::new(Families::one(Linear::new(model)), privacy);
        let algorithm = Method4::build(settings, &context).unwrap();
        Arc::new(Setting { algorithm: Arc::new(algorithm), run, fingerprint: [1; 32] })
    }

    fn client(&self, side: &Side, k: usize, secret: [u8; 32]) -> ClientNode<Method4> {
        let server = Server::open(&*side.algorithm, &side.run, &self.federation, 0);
        let member = self.federation.members()[k];
        let local = side.algorithm.join(&self.data[k], server.view(&side.run), &member).unwrap();
        let chain = Chain::start("client", &[2; 32]);
        ClientNode::new(side.clone(), member, local, secret, [2; 32], chain)
    }
}

/// What the node answers to this centre.
fn upload(node: &mut ClientNode<Method4>, k: usize, step: u32, centre: &[f64]) -> Vec<f64> {
    let down = Down { centre: centre.to_vec(), averaged: Vec::new() }.to_bytes();
    let (from, to) = (Peer::Server(0), Peer::Client(k as u32));
    let welcome = Message::Welcome(0, node.chain().head.seq);
    node.receive(&Envelope { from, to, step: 0, message: welcome }, &mut Scratch::default());
    let envelope = Envelope { from, to, step, message: Message::Ask(ROUND, Arc::from([]), down.into()) };
    let effects = node.receive(&envelope, &mut Scratch::default());
    let Some(Effect::Send(Envelope { message: Message::Up(bytes, _), .. })) = effects.last() else {
        panic!("no upload: {effects:?}");
    };
    Up::from_bytes(bytes).unwrap().model
}

fn minus(a: &[f64], b: &[f64]) -> Vec<f64> {
    a.iter().zip(b).map(|(a, b)| a - b).collect()
}

fn inner(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// (47): variance Delta^2 / (2 phi_n) with Delta = 2 C / (rho `D_k`), (43), and phi_n = `phi_0` / zeta^n.
fn deviation(samples: u32, step: u32) -> f64 {
    let sensitivity = 2.0 * C / (RHO * f64::from(samples));
    let budget = PHI_0 / ZETA.powi(step as i32);
    sensitivity / (2.0 * budget).sqrt()
}

/// With `unit = "client"` all D_k terms of the mean may change: the same noise, D_k times as large, for the same price.
#[test]
fn protecting_a_whole_client_takes_as_many_times_the_noise_as_it_has_records() {
    let bench = NetScratch::new(11, Sampler::Float);
    let plain = bench.side(false);
    let assumed = Some(Bound::assumed(C));
    let (budget, sampler, unit) = (None, Sampler::Float, Unit::Record);
    let zcdp = Zcdp { initial_budget: PHI_0, growth: ZETA, assumed, budget, sampler, unit };
    let (record, client) = (
        bench.side_with(Privacy::Zcdp(zcdp)),
        bench.side_with(Privacy::Zcdp(Zcdp { unit: Unit::Client, ..zcdp })),
    );
    let centre = vec![0.1; D];
    for k in 0..6 {
        let secret = simulated_secret(11, k as u32);
        let noise = |side: &Side| {
            let mut node = bench.client(side, k, secret);
            let noisy = upload(&mut node, k, 1, &centre);
            let exact = upload(&mut bench.client(&plain, k, secret), k, 1, &centre);
            (minus(&noisy, &exact), node.chain().account(None).spent)
        };
        let ((small, paid), (large, paid_too)) = (noise(&record), noise(&client));
        assert_eq!(paid, paid_too);
        let samples = f64::from(bench.federation.members()[k].samples);
        for (small, large) in small.iter().zip(large) {
            assert!(
                (large - samples * small).abs() < 1e-9 * (1.0 + large.abs()),
                "{large} {samples} {small}"
            );
        }
        let member = bench.federation.members()[k];
        for (side, step) in [(&record, 1), (&client, 1), (&client, 7)] {
            let price = side.algorithm.price(&member, step).unwrap().zcdp();
            assert!((price - PHI_0 / ZETA.powi(step as i32)).abs() < 1e-11, "{price}");
        }
        assert_eq!(plain.algorithm.price(&member, 1).unwrap().units(), 0);
    }
}

/// The sensitivity behind it, where the bound is enforced: replacing everything a client has moves its step by at most
/// 2 C / rho, and by nearly that much in the worst case.
#[test]
fn replacing_all_records_moves_the_step_by_the_sensitivity_at_most() {
    use fedkin_learner::model::Prox;
    let norm = 1.5;
    let mut rng = PublicRng::named(5, "unit test", 0, 0);
    for (loss, bound) in [(Loss::Logistic, norm), (Loss::Huber(0.2), 2.0 * norm * 0.2)] {
        let model = Model { loss, regularisation: 1e-6, bias: false, feature_norm: Some(norm) };
        assert!((Families::one(Linear::new(model)).gradient_bound().unwrap() - bound).abs() < 1e-12);
        let mut step = |rows: usize, towards: Option<f64>, centre: &[f64]| {
            let direction = |i: usize| if i.is_multiple_of(3) { 5.0 } else { 0.0 };
            let features =
                (0..rows * 3).map(|i| towards.map_or_else(|| 9.0 * rng.normal(), |_| direction(i))).collect();
            let classes = matches!(loss, Loss::Logistic);
            let targets = (0..rows)
                .map(|_| {
                    towards.unwrap_or_else(|| {
                        if classes { f64::from(u8::from(rng.normal() > 0.0)) } else { 50.0 * rng.normal() }
                    })
                })
                .collect();
            let data = Arc::new(Dataset::new(3, features, targets).unwrap());
            let prox = Prox::new(&model, model.prepare(&data), 1e-6, RHO).unwrap();
            let mut out = vec![0.0; 3];
            prox.solve(centre, &mut out, &mut Vec::new()).unwrap();
            out
        };
        let mut largest = 0.0_f64;
        for trial in 0i32..200 {
            let centre: Vec<f64> = (0..3).map(|j| f64::from(trial % 7 - 3) * f64::from(j + 1)).collect();
            // The number of records may change as well: the mean's gradient is bounded whatever it is a mean of.
            let gap = minus(&step(1 + trial as usize % 5, None, &centre), &step(4, None, &centre));
            largest = largest.max(inner(&gap, &gap).sqrt());
        }
        let opposite = match loss {
            Loss::Logistic => [1.0, 0.0],
            _ => [1e3, -1e3],
        };
        let worst = minus(&step(4, Some(opposite[0]), &[0.0; 3]), &step(4, Some(opposite[1]), &[0.0; 3]));
        let worst = inner(&worst, &worst).sqrt();
        let limit = 2.0 * bound / RHO;
        assert!(largest.max(worst) <= limit * (1.0 + 1e-9), "{loss:?}: {largest} {worst} {limit}");
        // At zero a logistic gradient is half its bound; Huber's is all of it.
        let reach = if matches!(loss, Loss::Logistic) { 0.4 } else { 0.999 };
        assert!(worst >= reach * limit, "{loss:?}: {worst} {limit}");
    }
}

/// The noise of every client and step over its deviation by (47); the centre moves from step to step.
fn standardised(seed: u64, sampler: Sampler) -> Vec<Vec<Vec<f64>>> {
    let bench = NetScratch::new(seed, sampler);
    let (noisy, plain) = (bench.side(true), bench.side(false));
    let mut all = Vec::new();
    for k in 0..CLIENTS {
        let secret = simulated_secret(seed, k as u32);
        let (mut a, mut b) = (bench.client(&noisy, k, secret), bench.client(&plain, k, secret));
        let steps = (1..=STEPS).map(|step| {
            let centre: Vec<f64> = (0..D).map(|j| f64::from(step) * 0.01 + j as f64 * 0.1).collect();
            let noise = minus(&upload(&mut a, k, step, &centre), &upload(&mut b, k, step, &centre));
            let scale = deviation(bench.federation.members()[k].samples, step);
            noise.iter().map(|x| x / scale).collect()
        });
        all.push(steps.collect());
    }
    all
}

/// The standard normal score of a sum of squares with n degrees of freedom (Wilson and Hilferty).
fn score(squares: f64, n: f64) -> f64 {
    let spread = 2.0 / (9.0 * n);
    ((squares / n).cbrt() - (1.0 - spread)) / spread.sqrt()
}

/// 60,000 numbers against N(0, 1) after division by (47). The tests and their rates for a fresh seed: mean,
/// variance, two correlations, each beyond 4.42 deviations (1e-5 each, two-sided); Kolmogorov-Smirnov beyond
/// 2.47 / sqrt(n) (1e-5); the variance of each of 50 steps and 40 clients beyond 5.33 (1e-7 each): together
/// below 1e-4.
#[test]
fn the_noise_is_normal_with_the_variance_of_47_and_independent() {
    normal_and_independent(&standardised(1, Sampler::Discrete));
    normal_and_independent(&standardised(1, Sampler::Float));
}

fn normal_and_independent(all: &[Vec<Vec<f64>>]) {
    let flat: Vec<f64> = all.iter().flatten().flatten().copied().collect();
    let n = flat.len() as f64;
    let mean = flat.iter().sum::<f64>() / n;
    assert!(mean.abs() * n.sqrt() < 4.42, "mean {mean}");
    let variance = score(inner(&flat, &flat), n);
    assert!(variance.abs() < 4.42, "variance: score {variance}");
    for step in 0..STEPS as usize {
        let squares: f64 = all.iter().map(|client| inner(&client[step], &client[step])).sum();
        let score = score(squares, (CLIENTS * D) as f64);
        assert!(score.abs() < 5.33, "step {}: score {score}", step + 1);
    }
    for (k, client) in all.iter().enumerate() {
        let score = score(client.iter().map(|z| inner(z, z)).sum(), (STEPS as usize * D) as f64);
        assert!(score.abs() < 5.33, "client {k}: score {score}");
    }
    // Neighbouring steps of a client, and neighbouring clients in a step: sums of products of independent
    // standard normals have the variance of their number.
    let steps: Vec<f64> =
        all.iter().flat_map(|client| client.windows(2).map(|pair| inner(&pair[0], &pair[1]))).collect();
    let clients: Vec<f64> = all
        .windows(2)
        .flat_map(|pair| pair[0].iter().zip(&pair[1]).map(|(a, b)| inner(a, b)).collect::<Vec<_>>())
        .collect();
    for (what, products) in [("steps", steps), ("clients", clients)] {
        let score = products.iter().sum::<f64>() / ((products.len() * D) as f64).sqrt();
        assert!(score.abs() < 4.42, "correlation over {what}: score {score}");
    }
    let mut sorted = flat;
    sorted.sort_by(f64::total_cmp);
    let normal = |x: f64| 0.5 * libm::erfc(-x / std::f64::consts::SQRT_2);
    let gap = sorted
        .iter()
        .enumerate()
        .map(|(i, &x)| (normal(x) - i as f64 / n).max((i + 1) as f64 / n - normal(x)))
        .fold(0.0, f64::max);
    assert!(gap * n.sqrt() < 2.47, "Kolmogorov-Smirnov {gap}");
}

/// No noise vector is another one again, whatever its size: two million pairs, none with a cosine beyond
/// 0.95 (a fresh pair has that with probability below 1e-15 in 30 dimensions).
#[test]
fn no_noise_is_used_twice() {
    let all = standardised(2, Sampler::Discrete);
    let unit: Vec<Vec<f64>> = all
        .iter()
        .flatten()
        .map(|z| {
            let size = inner(z, z).sqrt();
            z.iter().map(|x| x / size).collect()
        })
        .collect();
    for (i, a) in unit.iter().enumerate() {
        for (j, b) in unit.iter().enumerate().skip(i + 1) {
            assert!(inner(a, b).abs() < 0.95, "noise {i} and {j} are the same");
        }
    }
}

/// The same ask draws the same noise, also by a client that starts anew; another ask (the least bit of the
/// centre, another step), another client or another secret draws other noise.
#[test]
fn an_ask_names_its_noise() {
    let bench = NetScratch::new(3, Sampler::Discrete);
    let (noisy, plain) = (bench.side(true), bench.side(false));
    let centre = vec![0.25f64; D];
    let mut nudged = centre.clone();
    nudged[7] = f64::from_bits(nudged[7].to_bits() + 1);
    let noise = |k: usize, step: u32, centre: &[f64], secret: fn(u32) -> [u8; 32]| -> Vec<f64> {
        let exact = upload(&mut bench.client(&plain, k, secret(k as u32)), k, step, centre);
        let sent = upload(&mut bench.client(&noisy, k, secret(k as u32)), k, step, centre);
        minus(&sent, &exact).iter().map(|x| x / deviation(1 + k as u32 % 6, step)).collect()
    };
    let secret: fn(u32) -> [u8; 32] = |k| simulated_secret(3, k);
    let first = noise(6, 4, &centre, secret);
    assert_eq!(first, noise(6, 4, &centre, secret), "the same ask, a client that starts anew");
    let mut node = bench.client(&noisy, 6, secret(6));
    let sent = upload(&mut node, 6, 4, &centre);
    let down = Down { centre: centre.clone(), averaged: Vec::new() }.to_bytes();
    let again = Envelope {
        from: Peer::Server(0),
        to: Peer::Client(6),
        step: 4,
        message: Message::Ask(ROUND, Arc::from([]), down.into()),
    };
    let spent = node.client().account().clone();
    let effects = node.receive(&again, &mut Scratch::default());
    let Some(Effect::Send(Envelope { message: Message::Up(bytes, _), .. })) = effects.last() else {
        panic!()
    };
    assert_eq!(Up::from_bytes(bytes).unwrap().model, sent, "a retry sends the stored bytes");
    assert_eq!(*node.client().account(), spent, "and charges nothing");
    let others = [
        ("another centre", noise(6, 4, &nudged, secret)),
        ("another step", noise(6, 5, &centre, secret)),
        ("another client with as many records", noise(12, 4, &centre, secret)),
        ("another secret", noise(6, 4, &centre, |_| [7; 32])),
        ("another seed", noise(6, 4, &centre, |k| simulated_secret(4, k))),
    ];
    for (what, other) in &others {
        let cosine = inner(&first, other) / (inner(&first, &first) * inner(other, other)).sqrt();
        // A cosine beyond 0.8 in 30 dimensions has probability below 1e-7.
        assert!(cosine.abs() < 0.8, "{what}: cosine {cosine}");
    }
}

record! {
    pub struct Seen { first: Vec<f64>, second: Vec<f64>, drawn: Vec<f64>, named: Vec<f64> }
}

/// Releases zeros twice in one step and shows what its private generator gives.
struct Spy;

impl Algorithm for Spy {
    const NAME: &'static str = "spy";
    const PERSONAL: &'static [&'static str] = &["client"];
    type Local = ();
    type Memory = ();
    type Server = ();
    type Seat = ();
    type Common = ();
    type Down = ();
    type Raw = ((Vec<f64>, Vec<f64>), (Vec<f64>, Vec<f64>));
    type Up = Seen;
    type Share = ();

    fn open(&self, _: ServerView<'_>, _: &mut PublicRng) {}
    fn seat(&self, _: ServerView<'_>, _: &Member) {}
    fn down(&self, (): &(), (): &(), _: Now<'_>, _: &Member, (): &mut ()) {}
    fn fits(&self, (): &(), _: Now<'_>, _: &Seen) -> bool {
        true
    }
    fn absorb(&self, (): &(), (): &mut (), _: Now<'_>, _: &Member, _: &Seen, _: &mut Cells) {}
    fn close(&self, (): &mut (), _: &mut Seats<'_, ()>, _: &Closed<'_>, _: &Cells) {}
    fn join(&self, _: &Arc<Dataset>, _: ServerView<'_>, _: &Member) -> Result<(), Unsolved> {
        Ok(())
    }
    fn client<'g>(
        &self,
        (): &(),
        (): &mut (),
        _: Ask<'_, Self>,
        gate: &mut Gate<'g>,
        _: &mut Buffers,
        _: Seen,
    ) -> Result<Released<'g, Self::Raw>, Refusal> {
        let unit =
            Gaussian::vector(Bound::assumed(1.0), 0.5, 64, Sampler::Discrete).ok_or(Refusal::NoMechanism)?;
        let first = gate.release("first", &unit, vec![0.0; 64])?;
        let second = gate.release("second", &unit, vec![0.0; 64])?;
        let mut draw = |purpose| {
            let mut rng = gate.rng(purpose);
            let values: Vec<f64> = (0..64).map(|_| rng.normal()).collect();
            gate.disclose("draws", values)
        };
        let (drawn, named) = (draw("mini-batches")?, draw("noise")?);
        Ok(first.zip(second).zip(drawn.zip(named)))
    }

    fn finish(((first, second), (drawn, named)): Self::Raw, _: &Ask<'_, Self>) -> Seen {
        Seen { first, second, drawn, named }
    }
    fn personal(&self, (): &(), (): &(), _: Ask<'_, Self>, out: &mut Personal<'_>) {
        out("client", &[]);
    }
}

/// Each release of a step has noise of its own, and no generator a method can ask for gives the stream of the
/// noise, not even under its name. Cosines of 64 fresh normals beyond 0.75 have probability below 1e-9.
#[test]
fn a_method_does_not_see_the_noise() {
    let bench = NetScratch::new(5, Sampler::Discrete);
    let run = bench.side(false).run.clone();
    let member = bench.federation.members()[0];
    let setting = Arc::new(Setting { algorithm: Arc::new(Spy), run, fingerprint: [1; 32] });
    let chain = Chain::start("client", &[2; 32]);
    let mut node = ClientNode::<Spy>::new(setting, member, (), simulated_secret(5, 0), [2; 32], chain);
    let (from, to) = (Peer::Server(0), Peer::Client(0));
    let welcome = Envelope { from, to, step: 0, message: Message::Welcome(0, 0) };
    node.receive(&welcome, &mut Scratch::default());
    let ask = Envelope { from, to, step: 1, message: Message::Ask(ROUND, Arc::from([]), Vec::new().into()) };
    let effects = node.receive(&ask, &mut Scratch::default());
    let Some(Effect::Send(Envelope { message: Message::Up(bytes, _), .. })) = effects.last() else {
        panic!()
    };
    let seen = Seen::from_bytes(bytes).unwrap();
    let vectors = [&seen.first, &seen.second, &seen.drawn, &seen.named];
    for (i, a) in vectors.iter().enumerate() {
        for b in &vectors[i + 1..] {
            let cosine = inner(a, b) / (inner(a, a) * inner(b, b)).sqrt();
            assert!(cosine.abs() < 0.75, "cosine {cosine}");
        }
    }
    assert_eq!(node.client().account().spent, 1_000_000_000_000);
    assert_eq!(node.client().account().releases, 4);
}

/// A spy's answer with this secret.
fn spied(bench: &NetScratch, secret: [u8; 32]) -> Seen {
    let setting = Arc::new(Setting {
        algorithm: Arc::new(Spy),
        run: bench.side(false).run.clone(),
        fingerprint: [1; 32],
    });
    let chain = Chain::start("client", &[2; 32]);
    let member = bench.federation.members()[0];
    let mut node = ClientNode::<Spy>::new(setting, member, (), secret, [2; 32], chain);
    let (from, to) = (Peer::Server(0), Peer::Client(0));
    let welcome = Envelope { from, to, step: 0, message: Message::Welcome(0, 0) };
    node.receive(&welcome, &mut Scratch::default());
    let ask = Envelope { from, to, step: 1, message: Message::Ask(ROUND, Arc::from([]), Vec::new().into()) };
    let effects = node.receive(&ask, &mut Scratch::default());
    let Some(Effect::Send(Envelope { message: Message::Up(bytes, _), .. })) = effects.last() else {
        panic!("no upload: {effects:?}");
    };
    Seen::from_bytes(bytes).unwrap()
}

/// A server knows the seed, the code, the step and what it asked. In a simulation that is enough to draw a
/// client's noise and mini-batches again, to the bit. Of a client with a secret of its own it is not: nothing
/// that follows from the seed comes near, neither the secrets of all simulated clients nor public streams
/// under any name in use, and two clients that differ in their secret alone have nothing in common.
/// Cosines of 64 numbers beyond 0.75 have probability below 1e-9 for a fresh pair; about 3,000 pairs.
#[test]
fn a_server_that_knows_the_seed_cannot_rebuild_noise_or_subsampling() {
    let seed = 8;
    let bench = NetScratch::new(seed, Sampler::Discrete);
    let (own, other): ([u8; 32], [u8; 32]) = ([0xA5; 32], std::array::from_fn(|i| (31 * i + 1) as u8));
    let deployed = spied(&bench, own);
    let all = |seen: &Seen| [seen.first.clone(), seen.second.clone(), seen.drawn.clone(), seen.named.clone()];
    // The control: of a simulated client everything can be rebuilt.
    let simulated = spied(&bench, simulated_secret(seed, 0));
    assert_eq!(all(&simulated), all(&spied(&bench, simulated_secret(seed, 0))));
    let mut guesses: Vec<Vec<f64>> = Vec::new();
    for k in 0..200 {
        guesses.extend(all(&spied(&bench, simulated_secret(seed, k))));
    }
    for purpose in ["noise", "mini-batches", "draws", "first", "client secret, simulation only"] {
        for (step, node) in [(0, 0), (1, 0), (1, u32::MAX), (0, 1)] {
            let mut rng = PublicRng::named(seed, purpose, step, node);
            guesses.push((0..64).map(|_| rng.normal()).collect());
        }
    }
    guesses.extend(all(&spied(&bench, other)));
    for secret in all(&deployed) {
        for (number, guess) in guesses.iter().enumerate() {
            let cosine = inner(&secret, guess) / (inner(&secret, &secret) * inner(guess, guess)).sqrt();
            assert!(cosine.abs() < 0.75, "guess {number}: cosine {cosine}");
        }
    }
}
