//! The end of a schedule: the same bits as the unfaulted run, or as the replay of what was decided and sent.

use super::checks::{Checked, Named, RUN, Reference, Violation, hold};
use super::world::World;
use crate::worlds::bits;
use fedkin_method::Verdict;
use fedkin_method::round::{ClientMachines, Peer, Serial, Stopped};
use fedkin_privacy::{ChainLine, Statement};
use std::collections::BTreeMap;
use std::sync::Arc;

/// A client's models, and what it was served as it came; empty before it was.
fn kept(node: &dyn ClientMachines) -> (Named, (Vec<u8>, Vec<u8>)) {
    let mut kept = (Named::new(), (Vec::new(), Vec::new()));
    node.outcomes(&mut |outcome| {
        kept.0 = outcome.models.iter().map(|(_, model)| bits(model)).collect();
        kept.1 = (outcome.served.0.to_vec(), outcome.served.1.to_vec());
    });
    kept
}

/// What a client's ledger says of this run: releases, and refusals with the client's own reasons.
fn stated(lines: &[ChainLine]) -> Statement {
    let mut statement = Statement::default();
    let here = lines.iter().filter(|line| line.run == RUN);
    here.for_each(|line| statement.follow(line));
    // A message that does not depend on the data has a line, and no place in a statement.
    statement.entries.retain(|entry| entry.mechanism != ChainLine::NOTHING);
    statement
}

impl World<'_> {
    /// I7 in strict mode; I9 where the only trouble was the broker's.
    pub(crate) fn equals(&self, reference: &Reference) -> Checked {
        let name = if self.scenario.wipes_only { "I9" } else { "I7" };
        let stops = self.servers.iter().filter_map(|server| server.stop());
        let stopped = stops.min_by_key(|stopped| (stopped.stop.step, stopped.stop.server));
        let said = |stopped: &Option<Stopped>| stopped.as_ref().map(ToString::to_string);
        let same = stopped == reference.stopped && said(&stopped) == said(&reference.stopped);
        hold(same, name, || {
            format!("the run ended with {stopped:?}, the unfaulted one with {:?}", reference.stopped)
        })?;
        // Servers that are far from one that stopped may have gone on for some steps, or have mixed the step in which
        // others stopped.
        let steps = reference.verdicts.len() as u32;
        let beyond = |server: u32| {
            let mixed = reference.stopped.is_some() && self.checks.mixed.contains_key(&(server, steps));
            mixed || self.servers[server as usize].standing().step > steps
        };
        for (id, server) in (0u32..).zip(&self.servers).filter(|(id, _)| !beyond(*id)) {
            hold(server.state() == reference.states[id as usize], name, || {
                format!("the state of server {id} differs from the unfaulted run")
            })?;
            let last = reference.verdicts.last().map_or(&[] as &[Verdict], |servers| &servers[id as usize]);
            hold(last.is_empty() || server.verdicts() == last, name, || {
                format!("server {id} ended with {:?} instead of {last:?}", server.verdicts())
            })?;
            hold(reference.stopped.is_none() || server.stop().is_some(), name, || {
                format!("server {id} does not know why it ended")
            })?;
        }
        for (id, client) in self.clients.iter().enumerate() {
            if beyond(self.scenario.world.federation.members()[id].server) {
                continue;
            }
            hold(kept(&**client).0 == reference.models[id], name, || {
                format!("the models of client {id} differ from the unfaulted run")
            })?;
            let left = stated(&self.hosts[self.servers.len() + id].disk.lines);
            hold(left == reference.statements[id], "I2", || {
                let expected = &reference.statements[id];
                format!("the ledger of client {id} comes to {left:?} instead of {expected:?}")
            })?;
        }
        self.checks.ledgers()?;
        self.durable()
    }

    /// Every client that has not fallen silent, with its server and position there.
    fn heard(&self) -> impl Iterator<Item = (u32, usize, u32)> {
        let gone = |id: u32| self.scenario.silent.iter().any(|(client, _)| *client == id);
        let silent = move |id: u32| gone(id) || self.lies(Peer::Client(id));
        let federation = &self.scenario.world.federation;
        let places = (0..self.servers.len() as u32).flat_map(|server| {
            federation.clients_of(server).iter().enumerate().map(move |(at, client)| (server, at, *client))
        });
        places.filter(move |(.., client)| !silent(*client))
    }

    /// What nodes have in memory is on their disks.
    fn durable(&self) -> Checked {
        for (s, server) in self.servers.iter().enumerate() {
            let again = self.server_of(s as u32, &self.hosts[s].disk);
            hold(again.state() == server.state(), "I7", || {
                format!("the disk of server {s} holds another state")
            })?;
        }
        for (.., id) in self.heard() {
            let disk = &self.hosts[self.servers.len() + id as usize].disk;
            let again = self.client_of(id, disk)?;
            let same = kept(&*again) == kept(&*self.clients[id as usize]);
            hold(same && again.served() == 1, "I7", || {
                format!("the disk of client {id} holds other models")
            })?;
        }
        Ok(())
    }

    /// I7 in deadline mode: the closed sets and the uploads, through the typed calls, give the same bits.
    pub(crate) fn equals_replay(&self) -> Checked {
        let small = &self.scenario.world;
        let lost = |text: String| Violation { invariant: "I7", text };
        let method = Arc::clone(&self.method);
        let mut replay = method.replay(small.run.clone(), &small.federation, Arc::new(Serial));
        let servers = 0..self.servers.len() as u32;
        for step in 1.. {
            // Where the run cannot go on, servers end after different steps.
            let mut shares = BTreeMap::new();
            for id in servers.clone() {
                let closed = self.checks.closed.get(&(id, step));
                if closed.is_none() && self.servers[id as usize].stop().is_some() || !replay.begin(id, step) {
                    continue;
                }
                let (verdicts, _) =
                    closed.ok_or_else(|| lost(format!("server {id} did not close {step}")))?;
                let sent = |client| self.checks.sent.get(&(client, step)).and_then(|(_, up)| up.clone());
                replay.fold(id, verdicts, &sent).map_err(lost)?;
                shares.insert(id, replay.close(id));
            }
            if shares.is_empty() {
                break;
            }
            for &id in shares.keys() {
                let Some(mixed) = self.checks.mixed.get(&(id, step)) else {
                    let node = &self.servers[id as usize];
                    hold(node.stop().is_some() && node.standing().step == step, "I7", || {
                        format!("server {id} did not mix {step}")
                    })?;
                    continue;
                };
                for (other, digest) in mixed {
                    hold(shares.get(other) == Some(digest), "I7", || {
                        format!("step {step}: the replayed share of server {other} differs")
                    })?;
                }
                let near: Vec<u32> = mixed.iter().map(|(other, _)| *other).collect();
                replay.mix(id, &near);
            }
        }
        for (id, server) in servers.zip(&self.servers) {
            hold(replay.state(id) == server.state(), "I7", || {
                format!("the state of server {id} differs from the replay")
            })?;
        }
        for (server, position, id) in self.heard() {
            let (_, served) = kept(&*self.clients[id as usize]);
            hold(served == replay.served(server, position), "I7", || {
                format!("client {id} was served something else")
            })?;
        }
        self.durable()
    }
}
