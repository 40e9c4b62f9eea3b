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

// ---------------------------------------------------------------------------------------------------- FedAvg

record! {
    pub struct One { model: Vec<f64> }
}

fn model_of(loss: Loss) -> Model {
    Model { loss, regularisation: 0.0, bias: false, feature_norm: None }
}

/// FedAvg: one gradient step from the broadcast model, averaged with weights `D_k`. One server.
#[derive(Clone)]
struct FedAvg {
    rate: f64,
}

impl Algorithm for FedAvg {
    const NAME: &'static str = "fedavg";
    const PERSONAL: &'static [&'static str] = &["served"];
    type Local = Arc<Dataset>;
    type Memory = ();
    type Server = Vec<f64>;
    type Seat = ();
    type Common = One;
    type Down = One;
    type Up = One;
    type Share = ();

    fn open(&self, at: ServerView<'_>, _: &mut PublicRng) -> Vec<f64> {
        vec![0.0; at.run.dimension]
    }
    fn seat(&self, _: ServerView<'_>, _: &Member) {}
    fn common(&self, server: &Vec<f64>, _: Now<'_>) -> One {
        One { model: server.clone() }
    }
    fn down(&self, _: &Vec<f64>, (): &(), _: Now<'_>, _: &Member, out: &mut One) {
        out.model.clear();
    }
    fn serve(&self, server: &Vec<f64>, (): &(), _: Now<'_>, _: &Member, out: &mut One) {
        out.model.clone_from(server);
    }
    fn fits(&self, (): &(), now: Now<'_>, up: &One) -> bool {
        up.model.len() == now.at.run.dimension
    }
    fn cells(&self, at: ServerView<'_>) -> (usize, usize) {
        (1, at.run.dimension)
    }
    fn absorb(&self, _: &Vec<f64>, (): &mut (), _: Now<'_>, member: &Member, up: &One, sum: &mut Cells) {
        sum.add(0, f64::from(member.samples), 1.0, &up.model);
    }
    fn close(&self, server: &mut Vec<f64>, _: &mut Seats<'_, ()>, _: &Closed<'_>, sum: &Cells) {
        sum.mean_into(0, server);
    }
    fn join(&self, data: &Arc<Dataset>, _: ServerView<'_>, _: &Member) -> Result<Self::Local, Unsolved> {
        Ok(Arc::clone(data))
    }
    fn client(
        &self,
        mine: &Self::Local,
        (): &mut (),
        ask: Ask<'_, Self>,
        gate: &mut Gate<'_>,
        _: One,
    ) -> Answer<Self> {
        let mut gradient = vec![0.0; mine.columns()];
        model_of(Loss::Squared).gradient(mine, 0.0, &ask.common().model, &mut gradient);
        let mut model = ask.common().model.clone();
        axpy(-self.rate, &gradient, &mut model);
        gate.disclose("model", One { model })
    }
    fn personal(&self, _: &Self::Local, (): &(), served: Ask<'_, Self>, out: &mut Personal<'_>) {
        out("served", &served.down().model);
    }
}

// ---------------------------------------------------------------------------------------------------- PersFL

const PROBE: Label = Label::new(0);
const SELECT: Label = Label::new(1);

record! {
    /// As a target: its model, its candidates, the models their steps lead to. As a candidate: its targets,
    /// and first their models, then its gradients at them.
    pub struct Target {
        model: Vec<f64>,
        candidates: Box<[u32]>,
        steps: Box<[Vec<f64>]>,
        probes: Box<[u32]>,
        others: Box<[Vec<f64>]>,
    }
    /// PROBE: the models of the targets this client is a candidate for. SELECT: the steps to choose from.
    pub struct Offer { models: Box<[Vec<f64>]>, own: Vec<f64> }
    /// PROBE: one gradient per model offered. SELECT: the index of the best step.
    pub struct Reply { gradients: Box<[Vec<f64>]>, choice: u32 }
}

/// PersFL, every client a target: in PROBE the drawn candidates send gradients at the target's model, in
/// SELECT the target is offered the B models that result and answers with an index. The server, which has
/// every step, applies the chosen one. One server.
#[derive(Clone)]
struct PersFl {
    batch: u32,
    rate: f64,
}

impl Algorithm for PersFl {
    const NAME: &'static str = "persfl";
    const LABELS: &'static [&'static str] = &["probe", "select"];
    const PERSONAL: &'static [&'static str] = &["client"];
    type Local = Arc<Dataset>;
    type Memory = ();
    type Server = ();
    type Seat = Target;
    type Common = ();
    type Down = Offer;
    type Up = Reply;
    type Share = ();

    fn open(&self, _: ServerView<'_>, _: &mut PublicRng) {}
    fn seat(&self, at: ServerView<'_>, _: &Member) -> Target {
        Target { model: vec![0.0; at.run.dimension], ..Target::default() }
    }
    fn phase(&self, (): &(), step: u32, run: &Run) -> Phase {
        match step {
            _ if step > 2 * run.rounds => Phase::Deliver,
            _ if step % 2 == 1 => Phase::Ask(PROBE),
            _ => Phase::Ask(SELECT),
        }
    }
    fn plan(&self, (): &mut (), seats: &mut Seats<'_, Target>, now: Now<'_>, rng: &mut PublicRng) -> Who {
        if now.label == PROBE {
            let n = seats.len() as u32;
            let mut probes = vec![Vec::new(); n as usize];
            for target in 0..n {
                // Without repetition, never the target itself.
                let drawn = rng.choose(n - 1, self.batch).into_iter().map(|c| c + u32::from(c >= target));
                let candidates: Box<[u32]> = drawn.collect();
                candidates.iter().for_each(|&c| probes[c as usize].push(target));
                seats.get_mut(target as usize).candidates = candidates;
            }
            for (candidate, targets) in probes.into_iter().enumerate() {
                let others = targets.iter().map(|&t| seats.get(t as usize).model.clone()).collect();
                let seat = seats.get_mut(candidate);
                (seat.probes, seat.others) = (targets.into(), others);
            }
        }
        Who::All
    }
    fn down(&self, (): &(), seat: &Target, now: Now<'_>, _: &Member, out: &mut Offer) {
        out.models = if now.label == PROBE { seat.others.clone() } else { seat.steps.clone() };
    }
    fn serve(&self, (): &(), seat: &Target, _: Now<'_>, _: &Member, out: &mut Offer) {
        *out = Offer { models: Box::default(), own: seat.model.clone() };
    }
    fn fits(&self, seat: &Target, now: Now<'_>, up: &Reply) -> bool {
        let d = now.at.run.dimension;
        if now.label == PROBE {
            up.gradients.len() == seat.probes.len() && up.gradients.iter().all(|g| g.len() == d)
        } else {
            up.gradients.is_empty() && (up.choice as usize) < seat.steps.len()
        }
    }
    fn cells(&self, _: ServerView<'_>) -> (usize, usize) {
        (0, 0)
    }
    fn absorb(&self, (): &(), seat: &mut Target, now: Now<'_>, _: &Member, up: &Reply, _: &mut Cells) {
        if now.label == PROBE {
            // The place of the models it was shown now holds its gradients at them.
            seat.others.clone_from(&up.gradients);
        } else {
            seat.model.clone_from(&seat.steps[up.choice as usize]);
        }
    }
    fn close(&self, (): &mut (), seats: &mut Seats<'_, Target>, closed: &Closed<'_>, _: &Cells) {
        if closed.now.label != PROBE {
            return;
        }
        let mut steps: Vec<Vec<Vec<f64>>> = seats.iter().map(|_| Vec::new()).collect();
        for position in closed.values() {
            let seat = seats.get(position);
            for (&target, gradient) in seat.probes.iter().zip(&seat.others) {
                let mut model = seats.get(target as usize).model.clone();
                axpy(-self.rate, gradient, &mut model);
                steps[target as usize].push(model);
            }
        }
        for (target, steps) in steps.into_iter().enumerate() {
            seats.get_mut(target).steps = steps.into();
        }
    }
    fn join(&self, data: &Arc<Dataset>, _: ServerView<'_>, _: &Member) -> Result<Self::Local, Unsolved> {
        Ok(Arc::clone(data))
    }
    fn client(
        &self,
        mine: &Self::Local,
        (): &mut (),
        ask: Ask<'_, Self>,
        gate: &mut Gate<'_>,
        _: Reply,
    ) -> Answer<Self> {
        let model = model_of(Loss::Squared);
        if ask.label() == PROBE {
            let gradient = |w: &Vec<f64>| {
                let mut out = vec![0.0; w.len()];
                model.gradient(mine, 0.0, w, &mut out);
                out
            };
            let gradients: Box<[Vec<f64>]> = ask.down().models.iter().map(gradient).collect();
            return gate.disclose("gradients", Reply { gradients, choice: 0 });
        }
        let losses: Vec<f64> = ask.down().models.iter().map(|w| model.objective(mine, 0.0, w)).collect();
        let best = (0..losses.len()).min_by(|&a, &b| losses[a].total_cmp(&losses[b]));
        let choice = best.ok_or(Refusal::Unsolved)? as u32;
        gate.disclose("choice", Reply { gradients: Box::default(), choice })
    }
    fn personal(&self, _: &Self::Local, (): &(), served: Ask<'_, Self>, out: &mut Personal<'_>) {
        out("client", &served.down().own);
    }
}

// ------------------------------------------------------------------------------------------------------ IFCA

record! {
    pub struct Attempts { models: Box<[Vec<f64>]>, best: Box<[Vec<f64>]>, least: Option<f64> }
    pub struct Menu { models: Box<[Vec<f64>]> }
    /// The picked model, its loss before the step, the model after it.
    pub struct Pick { index: u32, loss: f64, model: Vec<f64> }
}

/// IFCA with restarts: the label is the number of the restart, so that a step says which attempt it belongs
/// to. The index and the loss are functions of the data: they leave as releases of their own. One server.
#[derive(Clone)]
struct Ifca {
    models: usize,
    rate: f64,
}

const RESTARTS: [&str; 3] = ["restart 0", "restart 1", "restart 2"];

impl Algorithm for Ifca {
    const NAME: &'static str = "ifca";
    const LABELS: &'static [&'static str] = &RESTARTS;
    const PERSONAL: &'static [&'static str] = &["client"];
    type Local = Arc<Dataset>;
    type Memory = ();
    type Server = Attempts;
    type Seat = ();
    type Common = Menu;
    type Down = Menu;
    type Up = Pick;
    type Share = ();

    fn open(&self, _: ServerView<'_>, _: &mut PublicRng) -> Attempts {
        Attempts::default()
    }
    fn seat(&self, _: ServerView<'_>, _: &Member) {}
    fn phase(&self, _: &Attempts, step: u32, run: &Run) -> Phase {
        let restart = (step - 1) / run.rounds;
        if (restart as usize) < RESTARTS.len() { Phase::Ask(ROUND.part(restart)) } else { Phase::Deliver }
    }
    fn plan(&self, server: &mut Attempts, _: &mut Seats<'_, ()>, now: Now<'_>, rng: &mut PublicRng) -> Who {
        if (now.step - 1).is_multiple_of(now.at.run.rounds) {
            let fresh = |_| (0..now.at.run.dimension).map(|_| rng.normal()).collect();
            server.models = (0..self.models).map(fresh).collect();
        }
        Who::All
    }
    fn common(&self, server: &Attempts, _: Now<'_>) -> Menu {
        Menu { models: server.models.clone() }
    }
    fn down(&self, _: &Attempts, (): &(), _: Now<'_>, _: &Member, _: &mut Menu) {}
    fn serve(&self, server: &Attempts, (): &(), _: Now<'_>, _: &Member, out: &mut Menu) {
        out.models.clone_from(&server.best);
    }
    fn fits(&self, (): &(), now: Now<'_>, up: &Pick) -> bool {
        (up.index as usize) < self.models && up.model.len() == now.at.run.dimension
    }
    fn cells(&self, at: ServerView<'_>) -> (usize, usize) {
        (self.models, at.run.dimension + 1)
    }
    fn absorb(&self, _: &Attempts, (): &mut (), _: Now<'_>, _: &Member, up: &Pick, sum: &mut Cells) {
        // Divided by the number of pickers: the loss rides along as one more coordinate.
        let row: Vec<f64> = up.model.iter().copied().chain([up.loss]).collect();
        sum.add(up.index as usize, 1.0, 1.0, &row);
    }
    fn close(&self, server: &mut Attempts, _: &mut Seats<'_, ()>, closed: &Closed<'_>, sum: &Cells) {
        let d = closed.now.at.run.dimension;
        let mut loss = 0.0;
        for (index, model) in server.models.iter_mut().enumerate() {
            let mut mean = vec![0.0; d + 1];
            if sum.mean_into(index, &mut mean) {
                loss += mean[d] * sum.weight(index);
                model.copy_from_slice(&mean[..d]);
            }
        }
        let last = closed.now.step.is_multiple_of(closed.now.at.run.rounds);
        if last && server.least.is_none_or(|least| loss < least) {
            (server.least, server.best) = (Some(loss), server.models.clone());
        }
    }
    fn join(&self, data: &Arc<Dataset>, _: ServerView<'_>, _: &Member) -> Result<Self::Local, Unsolved> {
        Ok(Arc::clone(data))
    }
    fn client(
        &self,
        mine: &Self::Local,
        (): &mut (),
        ask: Ask<'_, Self>,
        gate: &mut Gate<'_>,
        _: Pick,
    ) -> Answer<Self> {
        let model = model_of(Loss::Squared);
        let (index, loss) = pick(mine, &ask.common().models);
        let mut stepped = ask.common().models[index].clone();
        let mut gradient = vec![0.0; stepped.len()];
        model.gradient(mine, 0.0, &stepped, &mut gradient);
        axpy(-self.rate, &gradient, &mut stepped);
        let picked = gate.disclose("picked model", index as u32)?;
        let loss = gate.disclose("loss", loss)?;
        let model = gate.disclose("model", stepped)?;
        Ok(picked.zip(loss).zip(model).post(&ask, |((index, loss), model), _| Pick { index, loss, model }))
    }
    fn personal(&self, mine: &Self::Local, (): &(), served: Ask<'_, Self>, out: &mut Personal<'_>) {
        if !served.down().models.is_empty() {
            out("client", &served.down().models[pick(mine, &served.down().models).0]);
        }
    }
}

fn pick(data: &Dataset, models: &[Vec<f64>]) -> (usize, f64) {
    let losses: Vec<f64> = models.iter().map(|w| model_of(Loss::Squared).objective(data, 0.0, w)).collect();
    let best = (0..losses.len()).min_by(|&a, &b| losses[a].total_cmp(&losses[b])).unwrap_or(0);
    (best, losses[best])
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
            model_of(Loss::Squared).gradient(mine, 0.0, &omega, &mut gradient);
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
    truth: Vec<Vec<f64>>,
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
    };
    World { run, federation, data, truth }
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

/// FedAvg with one gradient step is gradient descent on the sample-weighted mean of the objectives.
#[test]
fn fedavg_is_the_weighted_mean_of_the_clients_steps() {
    let world = world(7, 4, 3, 5);
    let outcome = drive(&FedAvg { rate: 0.01 }, &world);
    let mut model = vec![0.0; 4];
    for _ in 0..5 {
        let mut next = vec![0.0; 4];
        let all: f64 = world.data.iter().map(|data| data.rows() as f64).sum();
        for data in &world.data {
            let mut gradient = vec![0.0; 4];
            model_of(Loss::Squared).gradient(data, 0.0, &model, &mut gradient);
            for j in 0..4 {
                next[j] += data.rows() as f64 / all * (model[j] - 0.01 * gradient[j]);
            }
        }
        model = next;
    }
    for served in first(&outcome) {
        assert!(distance2(served, &model).sqrt() < 1e-13);
    }
    assert_eq!((outcome.steps, outcome.sent), (5, 35));
}

/// PersFL finds kin: with one of its kind among the candidates every time (7 of 11, 6 are strangers) every
/// client ends at the truth of its own kind; only indices leave in SELECT,
/// and every step goes to B candidates that are never the target.
#[test]
fn persfl_learns_the_model_of_its_kind_from_indices() {
    let world = world(12, 3, 12, 150);
    let outcome = drive(&PersFl { batch: 7, rate: 0.05 }, &world);
    for (k, model) in first(&outcome).into_iter().enumerate() {
        let (own, other) = (distance2(model, &world.truth[k % 2]), distance2(model, &world.truth[1 - k % 2]));
        assert!(own.sqrt() < 1e-2 && other > 1.0, "client {k}: {own} {other}");
    }
    assert_eq!(outcome.steps, 300);
    for line in &outcome.ledger.lines {
        let expected: (&[u8], u32) = if line.step % 2 == 1 { (b"gradients", 0) } else { (b"choice", 1) };
        assert_eq!(&*line.what, expected.0);
        assert!(line.step % 2 == 1 || line.size == expected.1);
    }
}

/// IFCA keeps the best of its restarts: clients of a kind end with one model, near their truth; three
/// releases leave in every step.
#[test]
fn ifca_keeps_the_best_restart() {
    let world = world(12, 3, 12, 60);
    let outcome = drive(&Ifca { models: 2, rate: 0.05 }, &world);
    let models = first(&outcome);
    for (k, model) in models.iter().enumerate() {
        assert!(distance2(model, &world.truth[k % 2]).sqrt() < 1e-2, "client {k}: {model:?}");
        assert_eq!(*model, models[k % 2]);
    }
    assert_eq!(outcome.steps, 180);
    let what: Vec<&[u8]> = outcome.ledger.lines[..3].iter().map(|line| &*line.what).collect();
    assert_eq!(what, [&b"picked model"[..], b"loss", b"model"]);
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
            model_of(Loss::Squared).gradient(&world.data[k], 0.0, &local, &mut gradient);
            axpy(-0.02, &gradient, &mut local);
        }
        assert_eq!(*model, local, "client {k}");
    }
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
