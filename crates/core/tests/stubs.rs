//! Methods that are still to come, as compiling and running stubs against the real trait: the cheapest proof
//! that the core carries them (core spec, "Every algorithm as messages").
//!
//! Each stub is run twice, in the loop of one process and behind messages in a scrambled order, with equal
//! bits, and is then asked something that is true of its method. The stubs keep to what is particular about a
//! method's *shape* (labels, seats, what leaves); their maths is minimal.
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::disallowed_methods)]

use fedkin_core::algorithm::{
    Algorithm, Ask, Cells, Closed, Label, Now, Personal, Phase, ROUND, Run, Seats, ServerView, Who,
};
use fedkin_core::codec::Codec;
use fedkin_core::graph::Topology;
use fedkin_core::model::{Loss, Model, Unsolved};
use fedkin_core::numeric::{axpy, distance2, scale};
use fedkin_core::privacy::{Chain, Gate, Ledger, Privacy, Refusal, Released, Tally};
use fedkin_core::rng::{PublicRng, Random, simulated_secret};
use fedkin_core::round::{
    CHUNK, Client, ClientNode, Effect, Envelope, Mode, Peer, Scratch, Server, ServerNode, Setting, Verdict,
};
use fedkin_core::{Dataset, Entry, Federation, Member, record};
use std::sync::Arc;

type Answer<A> = Result<Released<<A as Algorithm>::Up>, Refusal>;

record! {
    pub struct One { model: Vec<f64> }
}

fn model_of(loss: Loss) -> Model {
    Model { loss, regularisation: 0.0, bias: false, feature_norm: None }
}

// ---------------------------------------------------------------------------------------------------- FedPnP

const SETUP: Label = Label::new(1);

record! {
    /// Last `omega_k`, the moments it sent at set-up, the smoothed `Psi_k`.
    pub struct Node { omega: Vec<f64>, moments: Vec<f64>, psi: Vec<f64> }
    pub struct Smoothed { psi: Vec<f64> }
    pub struct Told { moments: Vec<f64>, omega: Vec<f64> }
    /// The weights of the client graph, row by row.
    pub struct Kin { weights: Vec<f64> }
}

/// FedPnP: a set-up step in which moments leave as a release, then rounds of a local step from `Psi_k`, one
/// filter step over the client graph in `close`, and a graph that the server refreshes from model distances
/// every `refresh` rounds. One server.
#[derive(Clone)]
struct FedPnp {
    rate: f64,
    smooth: f64,
    refresh: u32,
}

impl FedPnp {
    /// A kernel on squared distances, its scale their mean.
    fn graph(points: &[&Vec<f64>]) -> Vec<f64> {
        let n = points.len();
        let gaps: Vec<f64> = (0..n * n).map(|at| distance2(points[at / n], points[at % n])).collect();
        let mean = gaps.iter().sum::<f64>() / (n * n) as f64;
        let weight = |(at, gap): (usize, &f64)| {
            if at / n == at % n { 0.0 } else { fedkin_core::numeric::exp(-gap / mean.max(1e-300)) }
        };
        gaps.iter().enumerate().map(weight).collect()
    }
}

impl Algorithm for FedPnp {
    const NAME: &'static str = "fedpnp";
    const LABELS: &'static [&'static str] = &["round", "set-up"];
    const PERSONAL: &'static [&'static str] = &["omega", "psi"];
    type Local = Arc<Dataset>;
    type Memory = One;
    type Server = Kin;
    type Seat = Node;
    type Common = ();
    type Down = Smoothed;
    type Up = Told;
    type Share = ();

    fn open(&self, _: ServerView<'_>, _: &mut PublicRng) -> Kin {
        Kin::default()
    }
    fn seat(&self, at: ServerView<'_>, _: &Member) -> Node {
        let zero = vec![0.0; at.run.dimension];
        Node { omega: zero.clone(), psi: zero, moments: Vec::new() }
    }
    fn phase(&self, _: &Kin, step: u32, run: &Run) -> Phase {
        match step {
            1 => Phase::Ask(SETUP),
            _ if step <= run.rounds + 1 => Phase::Ask(ROUND),
            _ => Phase::Deliver,
        }
    }
    fn plan(&self, _: &mut Kin, _: &mut Seats<'_, Node>, now: Now<'_>, rng: &mut PublicRng) -> Who {
        if now.label == SETUP { Who::All } else { now.at.draw(rng) }
    }
    fn down(&self, _: &Kin, seat: &Node, now: Now<'_>, _: &Member, out: &mut Smoothed) {
        out.psi.clear();
        if now.label != SETUP {
            out.psi.extend_from_slice(&seat.psi);
        }
    }
    fn fits(&self, _: &Node, now: Now<'_>, up: &Told) -> bool {
        let d = now.at.run.dimension;
        let lengths = if now.label == SETUP { (2 * d, 0) } else { (0, d) };
        (up.moments.len(), up.omega.len()) == lengths
    }
    fn cells(&self, _: ServerView<'_>) -> (usize, usize) {
        (0, 0)
    }
    fn absorb(&self, _: &Kin, seat: &mut Node, now: Now<'_>, _: &Member, up: &Told, _: &mut Cells) {
        if now.label == SETUP {
            seat.moments.clone_from(&up.moments);
        } else {
            seat.omega.clone_from(&up.omega);
        }
    }
    fn close(&self, server: &mut Kin, seats: &mut Seats<'_, Node>, closed: &Closed<'_>, _: &Cells) {
        let n = seats.len();
        if closed.now.label == SETUP {
            let points: Vec<&Vec<f64>> = seats.iter().map(|seat| &seat.moments).collect();
            server.weights = Self::graph(&points);
            return;
        }
        let omegas: Vec<Vec<f64>> = seats.iter().map(|seat| seat.omega.clone()).collect();
        if closed.now.step.is_multiple_of(self.refresh) {
            server.weights = Self::graph(&omegas.iter().collect::<Vec<_>>());
        }
        // One step of the filter: Psi = (omega + b sum_l A_kl omega_l) / (1 + b degree).
        for k in 0..n {
            let mut psi = omegas[k].clone();
            let row = &server.weights[k * n..(k + 1) * n];
            row.iter().zip(&omegas).for_each(|(weight, omega)| axpy(self.smooth * weight, omega, &mut psi));
            scale(1.0 / (1.0 + self.smooth * row.iter().sum::<f64>()), &mut psi);
            seats.get_mut(k).psi = psi;
        }
    }
    fn join(&self, data: &Arc<Dataset>, _: ServerView<'_>, _: &Member) -> Result<Self::Local, Unsolved> {
        Ok(Arc::clone(data))
    }
    fn client(
        &self,
        mine: &Self::Local,
        memory: &mut One,
        ask: Ask<'_, Self>,
        gate: &mut Gate<'_>,
        _: Told,
    ) -> Answer<Self> {
        let d = mine.columns();
        if ask.label() == SETUP {
            let mut moments = vec![0.0; 2 * d];
            for i in 0..mine.rows() {
                axpy(1.0 / mine.rows() as f64, mine.row(i), &mut moments[..d]);
                let squares: Vec<f64> = mine.row(i).iter().map(|x| x * x).collect();
                axpy(1.0 / mine.rows() as f64, &squares, &mut moments[d..]);
            }
            let released = gate.disclose("moments", moments)?;
            return Ok(released.post(&ask, |moments, _| Told { moments, omega: Vec::new() }));
        }
        let mut omega = ask.down().psi.clone();
        let mut gradient = vec![0.0; d];
        for _ in 0..5 {
            model_of(Loss::Squared).gradient(mine, 0.0, &omega, 1.0, &mut gradient, &mut Vec::new());
            axpy(-self.rate, &gradient, &mut omega);
        }
        let released = gate.disclose("model", omega.clone())?;
        memory.model = omega;
        Ok(released.post(&ask, |omega, _| Told { moments: Vec::new(), omega }))
    }
    fn personal(&self, _: &Self::Local, memory: &One, served: Ask<'_, Self>, out: &mut Personal<'_>) {
        out("omega", &memory.model);
        out("psi", &served.down().psi);
    }
}

// --------------------------------------------------------------------------------------------------- drivers

struct World {
    run: Run,
    federation: Federation,
    data: Vec<Arc<Dataset>>,
}

/// One server; clients alternate between two linear models, noise-free.
fn world(clients: usize, dimension: usize, samples: u32, rounds: u32) -> World {
    let mut rng = PublicRng::named(9, "stubs", clients as u32, dimension as u32);
    let truth: Vec<Vec<f64>> = (0..2).map(|_| (0..dimension).map(|_| 2.0 * rng.normal()).collect()).collect();
    let (mut data, mut entries) = (Vec::new(), Vec::new());
    for k in 0..clients {
        let samples = samples + rng.below(3);
        let mut features = Vec::new();
        let mut targets = Vec::new();
        for _ in 0..samples {
            // The two kinds also differ in their features' scale, which moments can see.
            let x: Vec<f64> = (0..dimension).map(|_| (1.0 + (k % 2) as f64) * rng.normal()).collect();
            targets.push(x.iter().zip(&truth[k % 2]).map(|(x, w)| x * w).sum());
            features.extend(x);
        }
        data.push(Arc::new(Dataset::new(dimension, features, targets).unwrap()));
        entries.push(Entry { name: format!("c{k:03}"), server: 0, cluster: 0, samples });
    }
    let (federation, _) =
        Federation::new(entries, vec!["s".into()], vec!["q".into()], Topology::none(1)).unwrap();
    let run = Run {
        seed: 9,
        rounds,
        clients_per_server: None,
        max_norm2: 1e12,
        dimension,
        clusters: 1,
        privacy: Privacy::None,
        targets: None,
    };
    World { run, federation, data }
}

type Named = Vec<Vec<(&'static str, Vec<f64>)>>;

/// What a run left behind.
struct Outcome {
    models: Named,
    ledger: Ledger,
    steps: u32,
    sent: u32,
}

fn in_a_loop<A: Algorithm>(algorithm: &A, world: &World) -> Outcome {
    let run = &world.run;
    let mut server = Server::open(algorithm, run, &world.federation, 0);
    let join = |member: &Member| {
        let data = &world.data[member.id as usize];
        let local = algorithm.join(data, server.view(run), member).unwrap();
        Client::<A>::new(local, run, simulated_secret(run.seed, member.id))
    };
    let mut clients: Vec<Client<A>> = server.members().iter().map(join).collect();
    let mut ledger = Ledger::default();
    let (mut scratch, mut tally) = (Scratch::default(), Tally::default());
    let (mut steps, mut sent) = (0, 0);
    while matches!(server.begin(algorithm, run, steps + 1), Phase::Ask(_)) {
        steps += 1;
        for (mut chunk, clients) in server.chunks(algorithm, run).zip(clients.chunks_mut(CHUNK)) {
            chunk.run(clients, &mut scratch);
        }
        let (share, counts) = server.close(algorithm, run, &mut tally);
        ledger.record(steps, 0, &mut tally);
        server.mix(algorithm, run, &[(0, &share)]);
        server.chunks(algorithm, run).for_each(|mut chunk| chunk.settle());
        sent += counts.values;
        assert!(!server.verdicts().contains(&Verdict::Asked));
        assert_eq!(counts.refused + counts.rejected, 0);
    }
    let mut models = Named::new();
    for (position, client) in clients.iter().enumerate() {
        let mut own = Vec::new();
        server.personal(algorithm, run, position, client, &mut scratch, &mut |name, model| {
            own.push((name, model.to_vec()));
        });
        models.push(own);
    }
    Outcome { models, ledger, steps, sent }
}

fn by_messages<A: Algorithm + Clone>(algorithm: &A, world: &World) -> Named {
    let run = &world.run;
    let setting = Arc::new(Setting { algorithm: algorithm.clone(), run: run.clone(), fingerprint: [1; 32] });
    let mut rng = PublicRng::named(1, "wire", 0, 0);
    let mut server = ServerNode::new(setting.clone(), &world.federation, 0, Mode::Strict);
    let join = |member: &Member| {
        let data = &world.data[member.id as usize];
        let local = algorithm.join(data, server.server().view(run), member).unwrap();
        let secret = simulated_secret(run.seed, member.id);
        ClientNode::<A>::new(setting.clone(), *member, local, secret, [2; 32], Chain::start("", &[2; 32]))
    };
    let mut clients: Vec<ClientNode<A>> = world.federation.members().iter().map(join).collect();
    let mut wire: Vec<Envelope> = Vec::new();
    let push = |effects: Vec<Effect>, wire: &mut Vec<Envelope>| {
        wire.extend(effects.into_iter().filter_map(|effect| match effect {
            Effect::Send(envelope) => Some(Envelope::from_bytes(&envelope.to_bytes()).unwrap()),
            Effect::Commit(_) | Effect::Note(_) | Effect::Done => None,
        }));
    };
    push(server.start(), &mut wire);
    for client in &clients {
        push(client.beat(), &mut wire);
    }
    let mut scratch = Scratch::default();
    while !wire.is_empty() {
        let envelope = wire.swap_remove(rng.below(wire.len() as u32) as usize);
        push(
            match envelope.to {
                Peer::Server(_) => server.receive(&envelope),
                Peer::Client(k) => clients[k as usize].receive(&envelope, &mut scratch),
            },
            &mut wire,
        );
    }
    assert!(server.ended());
    let mut models = Named::new();
    for client in &clients {
        let mut own = Vec::new();
        client.personal(&mut |name, model| own.push((name, model.to_vec())));
        models.push(own);
    }
    models
}

/// Runs a method both ways, compares the bits, and checks the names it promises.
fn drive<A: Algorithm + Clone>(algorithm: &A, world: &World) -> Outcome {
    let outcome = in_a_loop(algorithm, world);
    assert!(by_messages(algorithm, world) == outcome.models, "{}: the drivers disagree", A::NAME);
    for models in &outcome.models {
        assert_eq!(models.iter().map(|(name, _)| *name).collect::<Vec<_>>(), A::PERSONAL);
    }
    outcome
}

fn first(outcome: &Outcome) -> Vec<&Vec<f64>> {
    outcome.models.iter().map(|models| &models[0].1).collect()
}

/// FedPnP: moments leave once, at set-up; smooth = 0 is local training to the bit; smoothing pulls clients
/// together.
#[test]
fn fedpnp_with_no_smoothing_is_local_training() {
    let world = world(8, 3, 4, 10);
    let outcome = drive(&FedPnp { rate: 0.02, smooth: 0.0, refresh: 4 }, &world);
    for (k, model) in first(&outcome).into_iter().enumerate() {
        let mut local = vec![0.0; 3];
        let mut gradient = vec![0.0; 3];
        for _ in 0..50 {
            model_of(Loss::Squared).gradient(
                &world.data[k],
                0.0,
                &local,
                1.0,
                &mut gradient,
                &mut Vec::new(),
            );
            axpy(-0.02, &gradient, &mut local);
        }
        assert_eq!(*model, local, "client {k}");
    }
    assert_eq!((outcome.steps, outcome.sent), (11, 88));
    let moments: Vec<u32> =
        outcome.ledger.lines.iter().filter(|line| &*line.what == b"moments").map(|line| line.step).collect();
    assert_eq!(moments, [1]);
    let spread = |outcome: &Outcome| {
        let models = first(outcome);
        models.iter().map(|a| models.iter().map(|b| distance2(a, b)).sum::<f64>()).sum::<f64>()
    };
    let smooth = drive(&FedPnp { rate: 0.02, smooth: 5.0, refresh: 4 }, &world);
    assert!(spread(&smooth) < 0.7 * spread(&outcome));
}
