//! Every method of the registry gives the same bits in the loop of one process and behind messages that
//! come late, twice and in any order, with nodes that crash and go on from their last record.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod common;

use common::{Small, bits, small};
use fedkin_core::Federation;
use fedkin_core::algorithm::Algorithm;
use fedkin_core::algorithm::registry::{self, Visitor};
use fedkin_core::params::Values;
use fedkin_core::rng::{PublicRng, Random, simulated_secret};
use fedkin_core::round::{ClientNode, Effect, Envelope, Peer, ServerNode};
use fedkin_runtime::{Progress, Simulation};
use std::collections::BTreeMap;

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

impl Visitor for Messages<'_> {
    type Output = Models;
    fn visit<A: Algorithm>(self, algorithm: A) -> Models {
        let run = &self.world.run;
        let mut rng = PublicRng::named(self.seed, "network", 0, 0);
        let new_server = |id| ServerNode::new(&algorithm, run, self.federation, id);
        let new_client = |server: &ServerNode<A>, k: usize| {
            let member = self.federation.members()[k];
            let local = algorithm.join(&self.world.data[k], server.server().view(run), &member).unwrap();
            ClientNode::<A>::new(member, local, run, simulated_secret(run.seed, k as u32))
        };
        let mut servers: Vec<ServerNode<A>> = (0..self.federation.servers() as u32).map(new_server).collect();
        let mut clients: Vec<ClientNode<A>> = self
            .federation
            .members()
            .iter()
            .map(|member| new_client(&servers[member.server as usize], member.id as usize))
            .collect();
        let mut disk: BTreeMap<Peer, Vec<u8>> = BTreeMap::new();
        let mut wire: Vec<Envelope> = Vec::new();
        let mut done = 0;
        let mut act =
            |peer: Peer, effects: Vec<Effect>, wire: &mut Vec<Envelope>, disk: &mut BTreeMap<_, _>| {
                for effect in effects {
                    match effect {
                        Effect::Commit(record) => {
                            disk.insert(peer, record);
                        }
                        Effect::Send(envelope) => wire.push(envelope),
                        Effect::Done => done += 1,
                    }
                }
                done
            };
        for server in &mut servers {
            let effects = server.start(&algorithm, run);
            act(Peer::Server(server.server().id()), effects, &mut wire, &mut disk);
        }
        let all = servers.len() + clients.len();
        for tick in 0.. {
            assert!(tick < 10_000_000, "the run does not end");
            if self.crashes && rng.below(200) == 0 {
                // A node loses its memory and what it had under way, and goes on from its disk.
                if rng.below(2) == 0 {
                    let id = rng.below(servers.len() as u32) as usize;
                    servers[id] = new_server(id as u32);
                    servers[id].restore(&disk[&Peer::Server(id as u32)]).unwrap();
                } else {
                    let k = rng.below(clients.len() as u32) as usize;
                    let server = &servers[self.federation.members()[k].server as usize];
                    clients[k] = new_client(server, k);
                    if let Some(record) = disk.get(&Peer::Client(k as u32)) {
                        clients[k].restore(record).unwrap();
                    }
                }
            }
            if wire.is_empty() || rng.below(300) == 0 {
                for server in &mut servers {
                    let peer = Peer::Server(server.server().id());
                    let effects = server.resend(&algorithm, run);
                    act(peer, effects, &mut wire, &mut disk);
                }
            }
            let at = rng.below(wire.len() as u32) as usize;
            let envelope = if rng.below(8) == 0 { wire[at].clone() } else { wire.swap_remove(at) };
            if self.crashes && rng.below(20) == 0 {
                continue; // lost
            }
            let effects = match envelope.to {
                Peer::Server(id) => servers[id as usize].receive(&algorithm, run, &envelope),
                Peer::Client(id) => clients[id as usize].receive(&algorithm, run, &envelope),
            };
            let finished = act(envelope.to, effects, &mut wire, &mut disk);
            if finished >= all && clients.iter().all(|client| client.served().is_some()) {
                break;
            }
        }
        clients
            .iter()
            .map(|client| {
                let mut own = Vec::new();
                client.personal(&algorithm, &mut |name, model| {
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
