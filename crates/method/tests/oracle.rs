//! The refusal oracle: a server that lies asks whatever it likes, and whether a client answers, refuses or keeps
//! silent, what it pays and how much it sends, must be the same on neighbouring data sets. Only the numbers in an upload
//! may differ: those the price is for.
#![allow(
    missing_docs,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::disallowed_methods,
    clippy::disallowed_macros,
    clippy::disallowed_types
)]

use fedkin_harness::small::{Small, number, small, values};
use fedkin_learner::Dataset;
use fedkin_learner::Linear;
use fedkin_learner::model::{Loss, Model};
use fedkin_method::round::{
    AnyMethod, Blueprint, Effect, Envelope, Joining, Message, Mode, Note, Peer, Record, Serial,
};
use fedkin_method::{Families, Label};
use fedkin_numeric::rng::{PublicRng, Random, simulated_secret};
use fedkin_privacy::{Chain, Privacy, Sampler};
use fedkin_settings::Values;
use std::sync::Arc;

const ASKS: usize = 10_000;
const CLIENT: u32 = 1;
const ROUNDS: u32 = 5;

/// A world whose clients fit this loss to records of a norm of at most 1.
fn linear(loss: Loss, feature_norm: Option<f64>) -> Small {
    let mut world = small(7, 12, 3, ROUNDS);
    for data in &mut world.data {
        let targets = data.targets().iter().map(|y| target(loss, *y)).collect();
        *data = Arc::new(Dataset::new(data.columns(), data.features().to_vec(), targets).unwrap());
    }
    let model = Model { loss, regularisation: 0.1, bias: feature_norm.is_some(), feature_norm };
    world.run.dimension = model.dimension(world.data[0].columns());
    world.context.families = Families::one(Linear::new(model));
    world.model = model;
    world
}

fn target(loss: Loss, y: f64) -> f64 {
    match loss {
        Loss::Logistic => f64::from(u8::from(y > 0.0)),
        Loss::Poisson => y.abs().min(50.0).round(),
        Loss::Squared | Loss::Huber(_) | Loss::Quantile(_) => y,
    }
}

/// Noise of a bound that the learner enforces.
fn enforced(world: Small) -> Small {
    let mut world = world.zcdp(0.01, 1.0, 1.0, None);
    if let Privacy::Zcdp(zcdp) = &mut world.run.privacy {
        zcdp.assumed = None;
    }
    world.context.privacy = world.run.privacy;
    world
}

/// A number that somebody sends who wants to see something break.
fn nasty(rng: &mut PublicRng) -> f64 {
    const WORST: [f64; 16] = [
        0.0,
        -0.0,
        1.0,
        1e6,
        3.99e6,
        4.01e6,
        1e9,
        1e12,
        1e77,
        1.3e154,
        8.9e307,
        f64::MAX,
        f64::INFINITY,
        f64::NAN,
        f64::MIN_POSITIVE,
        5e-324,
    ];
    let sign = if rng.below(2) == 0 { 1.0 } else { -1.0 };
    sign * match rng.below(3) {
        0 => WORST[rng.below(WORST.len() as u32) as usize],
        1 => rng.normal() * 1e6,
        _ => 10f64.powf(rng.uniform() * 616.0 - 308.0),
    }
}

/// The same records but one.
fn neighbour(data: &Dataset, loss: Loss, largest: f64, rng: &mut PublicRng) -> Dataset {
    let (d, mut features, mut targets) = (data.columns(), data.features().to_vec(), data.targets().to_vec());
    let size = |rng: &mut PublicRng| largest.powf(rng.uniform()) * rng.normal();
    features[..d].iter_mut().for_each(|x| *x = size(rng));
    targets[0] = target(loss, size(rng));
    Dataset::new(d, features, targets).unwrap()
}

/// What the server can see of an answer, and what the client pays for it.
fn seen(effects: &[Effect]) -> Vec<String> {
    let one = |effect: &Effect| match effect {
        Effect::Commit(Record::Client { lines, .. }) => {
            let paid: Vec<_> = lines.iter().map(|line| (line.units, line.size, line.count)).collect();
            Some(format!("pays {paid:?}"))
        }
        Effect::Send(Envelope { message: Message::Up(bytes, lines), .. }) => {
            Some(format!("sends {} bytes, {lines} lines", bytes.len()))
        }
        Effect::Send(Envelope { message: Message::Refused(why, lines), .. }) => {
            Some(format!("refuses ({why}), {lines} lines"))
        }
        // What a client notes down for its own people is not sent.
        Effect::Note(Note::Withheld(..) | Note::Constant(..)) => None,
        other => Some(format!("{other:?}")),
    };
    effects.iter().filter_map(one).collect()
}

/// How many of so many asks were answered with an upload, and how many refused.
#[derive(Default, Debug)]
struct Count {
    uploads: usize,
    refusals: usize,
    silent: usize,
}

struct Oracle {
    world: Small,
    method: Arc<dyn AnyMethod>,
    name: &'static str,
}

impl Oracle {
    fn new(world: &Small, name: &'static str, settings: &Values) -> Self {
        let world = world.arranged(name);
        let method = world.row(name).build(settings, &world.context).unwrap();
        assert!(world.run.privacy.demanded());
        Self { world, method, name }
    }

    fn blueprint(&self) -> Blueprint<'_> {
        let (run, federation) = (&self.world.run, &self.world.federation);
        Blueprint {
            algorithm: self.name,
            method: Arc::clone(&self.method),
            run,
            federation,
            fingerprint: [1; 32],
        }
    }

    fn joining(&self, data: &Arc<Dataset>) -> Joining {
        let (secret, chain) =
            (simulated_secret(self.world.run.seed, CLIENT), Chain::start("client", &[2; 32]));
        Joining { id: CLIENT, data: Arc::clone(data), secret, shown: [2; 32], chain }
    }

    /// What an honest server asks the client first.
    fn honest(&self) -> (Label, Vec<u8>, Vec<u8>) {
        let server = self.world.federation.members()[CLIENT as usize].server;
        let mut servers = self.blueprint().servers(&[server], Mode::Strict).unwrap();
        let data = &self.world.data[CLIENT as usize];
        let clients = self.blueprint().clients(vec![self.joining(data)], Arc::new(Serial)).unwrap();
        let mut effects = servers[0].start();
        for effect in clients.beat() {
            if let Effect::Send(hello) = effect {
                effects.extend(servers[0].receive(&hello));
            }
        }
        effects.extend(servers[0].resend());
        let ask = effects.into_iter().find_map(|effect| match effect {
            Effect::Send(Envelope {
                to: Peer::Client(CLIENT),
                message: Message::Ask(label, common, down),
                ..
            }) => Some((label, common.to_vec(), down.to_vec())),
            _ => None,
        });
        ask.expect("no ask")
    }

    /// What a client with these records does when asked this as its first step.
    fn answer(
        &self,
        data: &Arc<Dataset>,
        step: u32,
        (label, common, down): &(Label, Vec<u8>, Vec<u8>),
    ) -> Vec<String> {
        let mut clients = match self.blueprint().clients(vec![self.joining(data)], Arc::new(Serial)) {
            Ok(clients) => clients,
            Err(fault) => return vec![format!("does not join: {fault}")],
        };
        let from = Peer::Server(self.world.federation.members()[CLIENT as usize].server);
        let to = Peer::Client(CLIENT);
        let welcome = Message::Welcome(0, clients.chain(CLIENT).unwrap().head.seq);
        clients.receive(vec![Envelope { from, to, step: 0, message: welcome }]);
        let message = Message::Ask(*label, Arc::from(&common[..]), down.clone().into());
        let effects = clients.receive(vec![Envelope { from, to, step, message }]);
        effects.iter().flat_map(|(_, effects)| seen(effects)).collect()
    }

    /// Asks so often; `largest` is the size of what stands in a record.
    fn try_all(&self, asks: usize, loss: Loss, largest: f64) -> Count {
        let honest = self.honest();
        let data = &self.world.data[CLIENT as usize];
        let mut rng = PublicRng::named(3, "oracle", 0, 0);
        let mut count = Count::default();
        for number in 0..asks {
            let mut ask = honest.clone();
            for _ in 0..rng.below(6) {
                let bytes = if ask.2.len() < 8 || (ask.1.len() >= 8 && rng.below(2) == 0) {
                    &mut ask.1
                } else {
                    &mut ask.2
                };
                if bytes.len() >= 8 {
                    // Numbers stand at every eighth byte after a length; sometimes anywhere.
                    let places = (bytes.len() - 8) as u32;
                    let place =
                        if rng.below(8) == 0 { rng.below(places + 1) } else { rng.below(places / 4 + 1) * 4 }
                            as usize;
                    bytes[place..place + 8].copy_from_slice(&nasty(&mut rng).to_le_bytes());
                }
            }
            if rng.below(16) == 0 {
                ask.0 = Label::new(rng.below(4) as u16).part(rng.below(3));
            }
            let steps = [1, 1, 1, 2, ROUNDS, ROUNDS + 1, u32::MAX];
            let step = steps[rng.below(steps.len() as u32) as usize];
            let pair = [data.clone(), Arc::new(neighbour(data, loss, largest, &mut rng))];
            let [here, there] = pair.map(|data| self.answer(&data, step, &ask));
            assert_eq!(here, there, "{} {loss:?}: ask {number} in step {step}", self.name);
            match here.last() {
                Some(last) if last.starts_with("sends") => count.uploads += 1,
                Some(last) if last.starts_with("refuses") => count.refusals += 1,
                _ => count.silent += 1,
            }
        }
        // The test is empty unless asks of each sort were among them.
        assert!(
            count.uploads > asks / 20 && count.silent + count.refusals > asks / 20,
            "{} {count:?}",
            self.name
        );
        count
    }
}

#[test]
fn pgfl_with_a_bound_that_is_enforced() {
    for loss in [Loss::Huber(1.0), Loss::Logistic] {
        // Records are clipped, whatever stands in them.
        let oracle = Oracle::new(&enforced(linear(loss, Some(1.0))), "pgfl", &values("pgfl", &[]));
        eprintln!("{loss:?}: {:?}", oracle.try_all(ASKS, loss, 1e100));
    }
}

#[test]
fn pgfl_and_gfedmtl_with_a_bound_on_trust() {
    for loss in [Loss::Squared, Loss::Huber(0.5), Loss::Poisson, Loss::Quantile(0.3)] {
        for name in ["pgfl", "gfedmtl"] {
            let world = linear(loss, None).zcdp(0.01, 1.0, 1.0, None);
            Oracle::new(&world, name, &values(name, &[])).try_all(ASKS, loss, 1e3);
        }
    }
}

#[test]
fn methods_with_dp_sgd() {
    for name in ["fedavg", "fedprox"] {
        let world = linear(Loss::Logistic, Some(1.0)).dp_sgd(1.0, 1.0, None, Sampler::Discrete);
        let set = values(name, &[("sampling_rate", number(0.5))]);
        Oracle::new(&world, name, &set).try_all(ASKS, Loss::Logistic, 1e100);
    }
}

#[test]
fn graphs_in_one_shot() {
    let world = small(7, 12, 3, ROUNDS).zcdp(0.01, 1.0, 1.0, None);
    Oracle::new(&world, "fedgl", &values("fedgl", &[])).try_all(ASKS, Loss::Squared, 1e100);
}
