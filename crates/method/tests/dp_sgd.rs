//! The secret sample and the noise of DP-SGD, read from what a `fedavg` client sends. All tests are seeded; error rates are
//! those of a fresh seed.
#![allow(
    missing_docs,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::disallowed_methods,
    clippy::disallowed_macros,
    clippy::disallowed_types
)]

use fedkin_graph::Topology;
use fedkin_learner::model::{Loss, Model};
use fedkin_learner::{Dataset, Linear};
use fedkin_method::registry::Method;
use fedkin_method::round::{ClientNode, Effect, Envelope, Message, Peer, Scratch, Server, Setting};
use fedkin_method::{
    Algorithm, AsStar, Batches, Context, Entry, Families, FedAvgSettings, Federation, ROUND, Run, Sampled,
};
use fedkin_numeric::codec::{Codec, Weights};
use fedkin_numeric::rng::simulated_secret;
use fedkin_privacy::{Chain, Clip, DpSgd, Privacy, Sampler};
use std::sync::Arc;

const D: usize = 64;
type FedAvg = AsStar<fedkin_method::FedAvg>;
type Down = <FedAvg as Algorithm>::Down;
type Common = <FedAvg as Algorithm>::Common;
type Up = <FedAvg as Algorithm>::Up;

/// One client; record i is the i-th unit vector with label 0, so that an upload shows who was sampled.
struct NetScratch {
    federation: Federation,
    data: Arc<Dataset>,
    setting: Arc<Setting<FedAvg>>,
    local_steps: u32,
}

impl NetScratch {
    fn new(rate: f64, local_steps: u32, sampler: Sampler, features: f64) -> Self {
        let entry = Entry { name: "c".into(), server: 0, cluster: 0, samples: D as u32 };
        let (federation, _) =
            Federation::new(vec![entry], vec!["s".into()], vec!["q".into()], Topology::none(1)).unwrap();
        let unit = |at: usize| if at.is_multiple_of(D + 1) { features } else { 0.0 };
        let data = Arc::new(Dataset::new(D, (0..D * D).map(unit).collect(), vec![0.0; D]).unwrap());
        let settings = FedAvgSettings {
            sampled: Sampled { local_steps, sampling_rate: rate },
            batches: Batches { learning_rate: 1.0, ..Batches::default() },
            ..FedAvgSettings::default()
        };
        let model = Model { loss: Loss::Logistic, regularisation: 0.0, bias: false, feature_norm: None };
        let clip = Clip::new(1.0).unwrap();
        let privacy = Privacy::DpSgd(DpSgd { clip, multiplier: 2.0, budget: None, sampler });
        let run = Run {
            seed: 8,
            rounds: 1000,
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
        let algorithm = FedAvg::build(settings, &context).unwrap();
        let setting = Arc::new(Setting { algorithm: Arc::new(algorithm), run, fingerprint: [1; 32] });
        Self { federation, data, setting, local_steps }
    }

    fn node(&self, secret: [u8; 32]) -> ClientNode<FedAvg> {
        let setting = &self.setting;
        let server = Server::open(&*setting.algorithm, &setting.run, &self.federation, 0);
        let member = self.federation.members()[0];
        let local = setting.algorithm.join(&self.data, server.view(&setting.run), &member).unwrap();
        ClientNode::new(setting.clone(), member, local, secret, [2; 32], Chain::start("c", &[2; 32]))
    }

    /// What the node answers to a model.
    fn upload(&self, node: &mut ClientNode<FedAvg>, step: u32, model: f64) -> Vec<f64> {
        let common = Common { model: Weights(vec![model; D]) }.to_bytes();
        let share = 1.0 / (self.rate() * D as f64);
        let down = Down { keep: 1.0, share, pull: 0.0 }.to_bytes();
        let (from, to) = (Peer::Server(0), Peer::Client(0));
        let welcome = Message::Welcome(0, node.chain().head.seq);
        node.receive(&Envelope { from, to, step: 0, message: welcome }, &mut Scratch::default());
        let message = Message::Ask(ROUND, Arc::from(common), down.into());
        let effects = node.receive(&Envelope { from, to, step, message }, &mut Scratch::default());
        let Some(Effect::Send(Envelope { message: Message::Up(bytes, _), .. })) = effects.last() else {
            panic!("no upload: {effects:?}");
        };
        Up::from_bytes(bytes).unwrap().model.0
    }

    fn rate(&self) -> f64 {
        let draws = self.setting.algorithm.draws(&self.federation.members()[0], 1);
        draws.map_or(0.5, |draws| draws.rate)
    }

    /// Who was sampled in the one step of a round, where nothing is added.
    fn sample(&self, secret: [u8; 32], step: u32) -> Vec<bool> {
        assert_eq!(self.local_steps, 1);
        self.upload(&mut self.node(secret), step, 0.0).iter().map(|x| *x != 0.0).collect()
    }
}

/// A server knows seed, step and what it asked. Of a simulated client that is enough to draw the sample again; of one with
/// a secret of its own it is not. Two independent samples of 64 at rate 1/2 agree in all places with probability 2^-64,
/// in 54 or more with 1e-8; 201 guesses.
#[test]
fn a_server_that_knows_the_seed_cannot_rebuild_the_sample() {
    let bench = NetScratch::new(0.5, 1, Sampler::None, 1.0);
    let deployed = bench.sample([0xA5; 32], 1);
    let simulated = bench.sample(simulated_secret(8, 0), 1);
    assert_eq!(simulated, bench.sample(simulated_secret(8, 0), 1), "the control");
    for k in 0..200 {
        let guess = bench.sample(simulated_secret(8, k), 1);
        let agree = guess.iter().zip(&deployed).filter(|(a, b)| a == b).count();
        assert!((11..54).contains(&agree), "guess {k} agrees in {agree} places");
    }
    // Another step, another sample; a client that starts anew draws the same.
    assert_ne!(bench.sample([0xA5; 32], 2), deployed);
    assert_eq!(bench.sample([0xA5; 32], 1), deployed);
}

/// 400 rounds of 64 records at rate 1/2, through the gate: the share of records in a sample is within 4.42 deviations
/// (alpha 1e-5, two-sided), and so is the number of pairs of neighbours that are in together.
#[test]
fn the_gate_samples_at_the_stated_rate() {
    let bench = NetScratch::new(0.5, 1, Sampler::None, 1.0);
    let (mut taken, mut pairs) = (0.0, 0.0);
    for step in 1..=400 {
        let sample = bench.sample([3; 32], step);
        taken += sample.iter().filter(|x| **x).count() as f64;
        pairs += sample.chunks(2).filter(|pair| pair[0] && pair[1]).count() as f64;
    }
    let score = |seen: f64, n: f64, p: f64| (seen - n * p) / (n * p * (1.0 - p)).sqrt();
    let (one, two) = (score(taken, 400.0 * 64.0, 0.5), score(pairs, 400.0 * 32.0, 0.25));
    assert!(one.abs() < 4.42 && two.abs() < 4.42, "{one} {two}");
}

/// The steps of one round draw samples of their own: of 64 records over 200 rounds of two steps, half are in exactly one
/// of the two samples (within 4.42 deviations, alpha 1e-5). With one sample used twice nobody would be.
#[test]
fn every_step_of_a_round_has_its_own_sample() {
    let bench = NetScratch::new(0.5, 2, Sampler::None, 1.0);
    let share = 1.0 / 32.0;
    let mut once = 0.0;
    for step in 1..=200 {
        let model = bench.upload(&mut bench.node([4; 32]), step, 0.0);
        // In one sample: a slope of 1/2 at 0. In both: a second, smaller slope on top.
        once += model.iter().filter(|x| (**x + 0.5 * share).abs() < 1e-12).count() as f64;
    }
    let n = 200.0 * 64.0;
    let off = (once - n * 0.5) / (n * 0.25f64).sqrt();
    assert!(off.abs() < 4.42, "{off} deviations");
}

/// Records without features have no gradient: what leaves is noise. Every step of a round has its own, of the stated size; an
/// answer is one line with its steps; the same ask draws the same again, and another one does not.
#[test]
fn every_step_of_a_round_has_its_own_noise_and_one_line() {
    let (one, three) =
        (NetScratch::new(1.0, 1, Sampler::Discrete, 0.0), NetScratch::new(1.0, 3, Sampler::Discrete, 0.0));
    let share = 1.0 / 64.0;
    let mut node = three.node([5; 32]);
    let sent = three.upload(&mut node, 1, 0.25);
    assert_eq!(sent, three.upload(&mut three.node([5; 32]), 1, 0.25));
    assert_ne!(sent, three.upload(&mut three.node([5; 32]), 1, 0.5));
    let noise = |sent: &[f64]| sent.iter().map(|x| (0.25 - x) / share).collect::<Vec<f64>>();
    let first = noise(&one.upload(&mut one.node([5; 32]), 1, 0.25));
    let rest: Vec<f64> = noise(&sent).iter().zip(&first).map(|(all, first)| all - first).collect();
    let inner = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
    // Two more draws: with the first one used again, a cosine of 1 or of 1/sqrt 2. Chance of 0.6: below 1e-6.
    let cosine = inner(&first, &rest) / (inner(&first, &first) * inner(&rest, &rest)).sqrt();
    assert!(cosine.abs() < 0.6, "cosine {cosine}");
    // Sums of squares over 64 and 2 * 64 variances of 2^2: chi-square with 64 degrees, beyond 4.42 deviations and some skew.
    for (squares, variance) in [(inner(&first, &first), 4.0), (inner(&rest, &rest), 8.0)] {
        assert!((20.0..130.0).contains(&(squares / variance)), "{squares} over {variance}");
    }
    let chain = node.chain();
    assert_eq!((chain.head.seq, chain.releases, chain.sampled.len()), (1, 1, 1));
    let draws = &chain.sampled[0];
    assert_eq!((draws.multiplier, draws.rate, draws.steps), (2.0, 1.0, 3));
    assert_eq!(
        chain.spent,
        3 * one.setting.algorithm.price(&one.federation.members()[0], 1).unwrap().units()
    );
    assert_eq!(node.client().account(), &chain.account(None));
}

/// A server may ask for any step: what it asked names the noise, so the same noise never covers two answers.
#[test]
fn another_step_draws_other_noise_for_the_same_price() {
    let bench = NetScratch::new(1.0, 1, Sampler::Discrete, 0.0);
    let answer = |share: f64| {
        let mut node = bench.node([6; 32]);
        let (from, to) = (Peer::Server(0), Peer::Client(0));
        node.receive(
            &Envelope { from, to, step: 0, message: Message::Welcome(0, 0) },
            &mut Scratch::default(),
        );
        let common: Arc<[u8]> = Common { model: Weights(vec![0.0; D]) }.to_bytes().into();
        let message = Message::Ask(ROUND, common, Down { keep: 1.0, share, pull: 0.0 }.to_bytes().into());
        let effects = node.receive(&Envelope { from, to, step: 1, message }, &mut Scratch::default());
        let Some(Effect::Send(Envelope { message: Message::Up(bytes, _), .. })) = effects.last() else {
            panic!("no upload: {effects:?}");
        };
        let noise: Vec<f64> = Up::from_bytes(bytes).unwrap().model.iter().map(|x| -x / share).collect();
        (noise, node.chain().spent)
    };
    let ((one, paid), (two, paid_too)) = (answer(1.0), answer(2.0));
    assert_eq!(paid, paid_too);
    assert!(one.iter().zip(&two).all(|(a, b)| a != b));
}
