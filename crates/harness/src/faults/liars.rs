//! Peers that lie: a client or a server with a sound machine and a false tongue, or a broker that replays, holds back and
//! (where messages are not sealed) changes and makes up. Whatever they do, the ledgers of honest clients stay sound, and
//! no honest node waits for another honest one for ever.

use super::checks::{Checked, hold};
use super::lies::{Liar, MEMORY, made_up, twisted};
use super::world::World;
use fedkin_method::round::{Envelope, Peer};
use fedkin_numeric::rng::Random;
use std::collections::BTreeSet;

impl World<'_> {
    /// Whether this node, or the broker in everybody's name, may say what is false.
    pub(crate) fn lies(&self, peer: Peer) -> bool {
        self.lies.as_ref().is_some_and(|lies| lies.peer == Some(peer) || lies.who == Liar::OpenBroker)
    }

    /// What a message becomes on the tongue of a liar: nothing, one or two.
    pub(crate) fn told(&mut self, envelope: &Envelope) -> Vec<Envelope> {
        let (rng, Some(lies)) = (&mut self.rng, &mut self.lies) else { return vec![envelope.clone()] };
        let own = lies.peer == Some(envelope.from);
        if lies.peer.is_none() || own {
            if lies.past.len() == MEMORY {
                lies.past.swap_remove(rng.below(MEMORY as u32) as usize);
            }
            lies.past.push(envelope.clone());
        }
        let false_tongue = own || lies.who == Liar::OpenBroker;
        if !false_tongue || rng.below(lies.often) > 0 {
            return vec![envelope.clone()];
        }
        self.stats.forged += 1;
        match rng.below(4) {
            0 => Vec::new(),
            1 => vec![envelope.clone(), twisted(envelope, rng)],
            _ => vec![twisted(envelope, rng)],
        }
    }

    /// Now and then a liar says something unasked: an old message again, or something it made up.
    pub(crate) fn intrude(&mut self) {
        let (rng, Some(lies)) = (&mut self.rng, &self.lies) else { return };
        if lies.past.is_empty() || rng.below(4 * lies.often) > 0 {
            return;
        }
        let old = &lies.past[rng.below(lies.past.len() as u32) as usize];
        let said = match lies.who {
            Liar::Broker => old.clone(),
            _ => match rng.below(3) {
                0 => old.clone(),
                1 => twisted(old, rng),
                _ => made_up(old.from, old.to, old.step, rng),
            },
        };
        self.stats.forged += 1;
        self.checks.overheard(&said);
        self.broker.put(&said, 0);
    }

    /// The run does not end any more: nobody but those behind the liar waits, and servers name it.
    pub(crate) fn stands(&self) -> Checked {
        let Some(lies) = &self.lies else { return hold(false, "I8", || self.waits()) };
        if lies.who == Liar::OpenBroker {
            return Ok(());
        }
        let federation = &self.scenario.world.federation;
        let culprit = match (lies.peer, lies.severed) {
            (Some(peer), _) | (None, Some((_, peer))) => Some(peer),
            _ => None,
        };
        let mut held: BTreeSet<u32> = BTreeSet::new();
        let blames = |server: &u32, held: &BTreeSet<u32>| {
            let node = &self.servers[*server as usize];
            let clients = node.waits_for();
            let near = node.waits_for_servers();
            culprit == Some(Peer::Server(*server))
                || (!clients.is_empty() || !near.is_empty())
                    && clients.iter().all(|id| culprit == Some(Peer::Client(*id)))
                    && near.iter().all(|id| culprit == Some(Peer::Server(*id)) || held.contains(id))
        };
        // With deadlines only a liar's own clients have to wait for it.
        let passes = if self.scenario.strict() { self.servers.len() } else { 0 };
        held.extend(culprit.and_then(|peer| match peer {
            Peer::Server(id) => Some(id),
            Peer::Client(_) => None,
        }));
        for _ in 0..passes {
            let next = (0..self.servers.len() as u32).filter(|id| blames(id, &held)).collect::<Vec<_>>();
            held.extend(next);
        }
        for (host, life) in self.hosts.iter().enumerate() {
            let peer = self.peer(host);
            let excused = match peer {
                Peer::Server(id) => held.contains(&id),
                Peer::Client(id) => held.contains(&federation.members()[id as usize].server),
            };
            hold(life.done || life.gone || excused || culprit == Some(peer), "I8", || {
                format!("{peer} waits for ever, and not for {culprit:?}: {}", self.waits())
            })?;
        }
        Ok(())
    }
}
