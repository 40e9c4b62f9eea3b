//! The end of a schedule: the same bits as the unfaulted run, or as the replay of what was decided and sent.

use super::checks::{Checked, Reference, Violation, hold};
use super::common::bits;
use super::world::World;
use fedkin_core::algorithm::{Algorithm, Phase};
use fedkin_core::codec::{Bytes, Codec, Digest, Sink};
use fedkin_core::privacy::{Refusal, Tally};
use fedkin_core::round::{CHUNK, ClientNode, Scratch, Server, Verdict};

type Named = Vec<(&'static str, Vec<u64>)>;

fn personal<A: Algorithm>(node: &ClientNode<A>) -> Named {
    let mut models = Named::new();
    node.personal(&mut |name, model| models.push((name, bits(model))));
    models
}

fn state<A: Algorithm>(server: &Server<A>) -> Vec<u8> {
    let mut bytes = Bytes::default();
    server.save(&mut bytes);
    bytes.0
}

impl<A: Algorithm> World<'_, A> {
    /// I7 in strict mode; I9 where the only trouble was the broker's.
    pub(crate) fn equals(&self, reference: &Reference) -> Checked {
        let name = if self.scenario.wipes_only { "I9" } else { "I7" };
        for (id, server) in self.servers.iter().enumerate() {
            hold(state(server.server()) == reference.states[id], name, || {
                format!("the state of server {id} differs from the unfaulted run")
            })?;
        }
        for (id, client) in self.clients.iter().enumerate() {
            let models = personal(client);
            hold(models.first().is_some_and(|(_, own)| *own == reference.models[id]), name, || {
                format!("the model of client {id} differs from the unfaulted run")
            })?;
        }
        self.checks.ledgers()?;
        self.served(|server, position, client, scratch| self.server_models(server, position, client, scratch))
    }

    fn server_models(
        &self,
        server: usize,
        position: usize,
        client: &ClientNode<A>,
        scratch: &mut Scratch<A>,
    ) -> Named {
        let mut models = Named::new();
        let (algorithm, run) = (&self.setting.algorithm, &self.setting.run);
        let mut each = |name, model: &[f64]| models.push((name, bits(model)));
        let server = self.servers[server].server();
        server.personal(algorithm, run, position, client.client(), scratch, &mut each);
        models
    }

    /// Every client that has not fallen silent holds what its server serves, in memory and on disk.
    fn served(&self, expected: impl Fn(usize, usize, &ClientNode<A>, &mut Scratch<A>) -> Named) -> Checked {
        let silent: Vec<u32> = self.scenario.silent.iter().map(|(client, _)| *client).collect();
        let mut scratch = Scratch::default();
        for (s, server) in self.servers.iter().enumerate() {
            let again = self.server_of(s as u32, &self.hosts[s].disk);
            hold(state(again.server()) == state(server.server()), "I7", || {
                format!("the disk of server {s} holds another state")
            })?;
            for (position, member) in server.server().members().iter().enumerate() {
                if silent.contains(&member.id) {
                    continue;
                }
                let client = &self.clients[member.id as usize];
                let models = personal(client);
                hold(models == expected(s, position, client, &mut scratch), "I7", || {
                    format!("client {} was served something else", member.id)
                })?;
                let disk = &self.hosts[self.servers.len() + member.id as usize].disk;
                let again = self.client_of(member.id, disk)?;
                hold(personal(&again) == models && again.is_served(), "I7", || {
                    format!("the disk of client {} holds other models", member.id)
                })?;
            }
        }
        Ok(())
    }

    /// I7 in deadline mode: the closed sets and the uploads, through the typed calls, give the same bits.
    pub(crate) fn equals_replay(&self) -> Checked {
        let (algorithm, run) = (&self.setting.algorithm, &self.setting.run);
        let federation = &self.scenario.world.federation;
        let mut servers: Vec<Server<A>> =
            (0..federation.servers() as u32).map(|id| Server::open(algorithm, run, federation, id)).collect();
        for step in 1.. {
            let phases: Vec<Phase> =
                servers.iter_mut().map(|server| server.begin(algorithm, run, step)).collect();
            if phases.contains(&Phase::Deliver) {
                break;
            }
            let mut shares = Vec::new();
            for server in &mut servers {
                self.fold(server, step)?;
                shares.push(server.close(algorithm, run, &mut Tally::default()).0);
            }
            for server in &mut servers {
                let Some(mixed) = self.checks.mixed.get(&(server.id(), step)) else {
                    return hold(false, "I7", || format!("server {} did not mix {step}", server.id()));
                };
                let near: Vec<(u32, &A::Share)> =
                    mixed.iter().map(|(id, _)| (*id, &shares[*id as usize])).collect();
                for ((id, digest), (_, share)) in mixed.iter().zip(&near) {
                    let mut replayed = Digest::default();
                    replayed.bytes(&share.to_bytes());
                    hold(replayed.finish() == *digest, "I7", || {
                        format!("step {step}: the replayed share of server {id} differs")
                    })?;
                }
                server.mix(algorithm, run, &near);
                server.chunks(algorithm, run).for_each(|mut chunk| chunk.settle());
            }
        }
        for (replayed, server) in servers.iter().zip(&self.servers) {
            hold(state(replayed) == state(server.server()), "I7", || {
                format!("the state of server {} differs from the replay", replayed.id())
            })?;
        }
        self.served(|server, position, client, scratch| {
            let mut models = Named::new();
            let mut each = |name, model: &[f64]| models.push((name, bits(model)));
            servers[server].personal(algorithm, run, position, client.client(), scratch, &mut each);
            models
        })
    }

    /// Folds the closed set of a step.
    fn fold(&self, server: &mut Server<A>, step: u32) -> Checked {
        let (algorithm, run, id) = (&self.setting.algorithm, &self.setting.run, server.id());
        let lost = |text: String| Violation { invariant: "I7", text };
        let (verdicts, _) = self
            .checks
            .closed
            .get(&(id, step))
            .ok_or_else(|| lost(format!("server {id} did not close {step}")))?;
        for (number, mut chunk) in server.chunks(algorithm, run).enumerate() {
            chunk.clear();
            for i in 0..chunk.members.len() {
                let client = chunk.members[i].id;
                match verdicts[number * CHUNK + i] {
                    Verdict::NotAsked => {}
                    Verdict::Asked => return Err(lost(format!("client {client} has no verdict"))),
                    Verdict::Value => {
                        let sent = self.checks.sent.get(&(client, step)).and_then(|(_, up)| up.as_ref());
                        let up = sent.and_then(|bytes| A::Up::from_bytes(bytes).ok());
                        let up = up.ok_or_else(|| lost(format!("no upload of client {client}")))?;
                        chunk.take(i, Ok(&up));
                    }
                    Verdict::Refused(_) => chunk.take(i, Err(Refusal::Budget)),
                    Verdict::Rejected(reason) => chunk.reject(i, reason),
                    Verdict::Missing => chunk.miss(i),
                }
            }
        }
        Ok(())
    }
}
