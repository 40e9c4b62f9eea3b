//! Every method of the registry gives the same bits in the loop of one process and behind messages that
//! come late, twice and in any order, with nodes that crash and go on from their last record.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod common;

use common::{Small, bits, small};
use fedkin_core::Federation;
use fedkin_core::algorithm::Algorithm;
use fedkin_core::algorithm::registry::{self, Visitor};
use fedkin_core::params::Values;
use fedkin_core::privacy::{Chain, ChainLine};
use fedkin_core::rng::{PublicRng, Random, simulated_secret};
use fedkin_core::round::{ClientNode, Effect, Envelope, Mode, Peer, Record, Scratch, ServerNode, Setting};
use fedkin_runtime::{Progress, Simulation};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Own models by client id.
type Models = Vec<Vec<u64>>;

struct Looped<'a>(&'a Small, &'a Federation);

impl Visitor for Looped<'_> {
    type Output = Models;
    fn visit<A: Algorithm>(self, algorithm: A) -> Models {
        let mut simulation = Simulation::new(algorithm, self.0.run.clone(), self.1, &self.0.data).unwrap();
        while simulation.step().unwrap() != Progress::Ended {}
        let mut models = Vec::new();
        simulation.own_models(&mut |_, model| models.push(bits(model)));
        models
    }
}

/// A network that loses nothing for ever: messages are delayed at random, some twice, and nodes crash.
struct Messages<'a> {
    world: &'a Small,
    federation: &'a Federation,
    seed: u64,
    crashes: bool,
}

/// What a node has on disk.
#[derive(Default)]
struct Disk {
    records: Vec<Vec<u8>>,
    lines: Vec<ChainLine>,
}

impl Disk {
    fn commit(&mut self, record: Record) {
        match record {
            Record::Client { state, lines } => {
                self.records = vec![state];
                self.lines.extend(lines);
            }
            Record::Full(bytes) => self.records = vec![bytes],
            Record::Delta(bytes) => self.records.push(bytes),
        }
    }
}

impl Visitor for Messages<'_> {
    type Output = Models;
    fn visit<A: Algorithm>(self, algorithm: A) -> Models {
        let setting =
            Arc::new(Setting { algorithm, run: self.world.run.clone(), fingerprint: [self.seed as u8; 32] });
        let run = &setting.run;
        let mut rng = PublicRng::named(self.seed, "network", 0, 0);
        let new_server = |id| ServerNode::new(setting.clone(), self.federation, id, Mode::Strict);
        let new_client = |server: &ServerNode<A>, k: usize, disk: Option<&Disk>| {
            let member = self.federation.members()[k];
            let local =
                setting.algorithm.join(&self.world.data[k], server.server().view(run), &member).unwrap();
            let chain = Chain::start("client", &[2; 32]);
            let chain = chain.verify(disk.iter().flat_map(|disk| &disk.lines)).unwrap();
            let secret = simulated_secret(run.seed, k as u32);
            ClientNode::<A>::new(setting.clone(), member, local, secret, [2; 32], chain)
        };
        let mut servers: Vec<ServerNode<A>> = (0..self.federation.servers() as u32).map(new_server).collect();
        let mut clients: Vec<ClientNode<A>> = self
            .federation
            .members()
            .iter()
            .map(|member| new_client(&servers[member.server as usize], member.id as usize, None))
            .collect();
        let mut disk: BTreeMap<Peer, Disk> = BTreeMap::new();
        let mut wire: Vec<Envelope> = Vec::new();
        let act =
            |peer: Peer, effects: Vec<Effect>, wire: &mut Vec<Envelope>, disk: &mut BTreeMap<_, Disk>| {
                for effect in effects {
                    match effect {
                        Effect::Commit(record) => disk.entry(peer).or_default().commit(record),
                        Effect::Send(envelope) => wire.push(envelope),
                        Effect::Note(_) | Effect::Done => {}
                    }
                }
            };
        let mut scratch = Scratch::default();
        for server in &mut servers {
            let effects = server.start();
            act(Peer::Server(server.server().id()), effects, &mut wire, &mut disk);
        }
        for tick in 0.. {
            assert!(tick < 10_000_000, "the run does not end");
            if self.crashes && rng.below(200) == 0 {
                // A node loses its memory and what it had under way, and goes on from its disk.
                if rng.below(2) == 0 {
                    let id = rng.below(servers.len() as u32);
                    let (peer, server) = (Peer::Server(id), &mut servers[id as usize]);
                    *server = new_server(id);
                    let (full, changes) = disk[&peer].records.split_first().unwrap();
                    server.restore(full, changes.iter().map(Vec::as_slice)).unwrap();
                    let effects = server.start();
                    act(peer, effects, &mut wire, &mut disk);
                } else {
                    let k = rng.below(clients.len() as u32) as usize;
                    let server = &servers[self.federation.members()[k].server as usize];
                    let disk = disk.get(&Peer::Client(k as u32));
                    clients[k] = new_client(server, k, disk);
                    if let Some(state) = disk.and_then(|disk| disk.records.last()) {
                        clients[k].restore(state).unwrap();
                    }
                }
            }
            if wire.is_empty() || rng.below(300) == 0 {
                for server in &servers {
                    act(Peer::Server(server.server().id()), server.beat(), &mut wire, &mut disk);
                }
                for client in &clients {
                    act(Peer::Client(client.member().id), client.beat(), &mut wire, &mut disk);
                }
            }
            if wire.is_empty() {
                break;
            }
            let at = rng.below(wire.len() as u32) as usize;
            let envelope = if rng.below(8) == 0 { wire[at].clone() } else { wire.swap_remove(at) };
            if self.crashes && rng.below(20) == 0 {
                continue; // lost
            }
            let effects = match envelope.to {
                Peer::Server(id) => servers[id as usize].receive(&envelope),
                Peer::Client(id) => clients[id as usize].receive(&envelope, &mut scratch),
            };
            act(envelope.to, effects, &mut wire, &mut disk);
            if clients.iter().all(ClientNode::is_over) {
                break;
            }
        }
        clients
            .iter()
            .map(|client| {
                let mut own = Vec::new();
                client.personal(&mut |name, model| {
                    if name == A::PERSONAL[0] {
                        own = bits(model);
                    }
                });
                own
            })
            .collect()
    }
}

fn compare(world: &Small, name: &str, crashes: bool, seed: u64) {
    let row = registry::find(name).unwrap();
    let values = Values::check(row.params, &BTreeMap::new()).unwrap();
    let federation = world.federation.arranged(row.arrange);
    let world = &Small {
        federation: federation.clone(),
        data: world.data.clone(),
        run: fedkin_core::algorithm::Run { clusters: federation.clusters(), ..world.run.clone() },
        context: world.context,
    };
    let looped = registry::visit(name, &values, &world.context, Looped(world, &federation)).unwrap();
    let messages = Messages { world, federation: &federation, seed, crashes };
    let sent = registry::visit(name, &values, &world.context, messages).unwrap();
    assert!(looped.iter().flatten().any(|bits| *bits != 0), "{name} learnt nothing");
    assert!(looped == sent, "{name}: the bits differ (crashes: {crashes}, seed {seed})");
}

#[test]
fn every_method_gives_the_same_bits_behind_messages() {
    for row in registry::TABLE {
        compare(&small(1, 30, 8, 12), row.name, false, 1);
        compare(&small(2, 30, 8, 12).some(2), row.name, false, 2);
    }
}

#[test]
fn every_method_gives_the_same_bits_with_noise_loss_and_crashes() {
    for row in registry::TABLE.iter().filter(|row| !row.simulation_only) {
        for seed in 0..5 {
            compare(&small(seed, 24, 6, 10).some(3).private(), row.name, true, seed);
        }
    }
}
