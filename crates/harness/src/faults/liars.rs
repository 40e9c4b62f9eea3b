//! Peers that lie: a client or a server with a sound machine and a false tongue, or a broker that replays, holds back and
//! (where messages are not sealed) changes and makes up. Whatever they do, the ledgers of honest clients stay sound, and
//! no honest node waits for another honest one for ever.

use super::checks::{Checked, hold};
use super::network::Rates;
use super::scenario::Scenario;
use super::world::World;
use bytes::Bytes;
use fedkin_method::registry::Methods;
use fedkin_method::round::{Cause, Envelope, Message, Peer, Stop};
use fedkin_numeric::rng::{PublicRng, Random};
use fedkin_privacy::Refusal;
use std::collections::BTreeSet;
use std::sync::Arc;

/// Who lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Liar {
    /// One client, to its server.
    Client,
    /// One server, to its clients and neighbours.
    Server,
    /// The broker, where messages are sealed: it holds back, doubles, reorders and replays.
    Broker,
    /// The broker, where they are not: it also changes them and speaks in others' names.
    OpenBroker,
}

/// A liar of a schedule, and what it remembers.
#[derive(Debug)]
pub(crate) struct Lies {
    pub(crate) who: Liar,
    pub(crate) peer: Option<Peer>,
    /// Once in so many messages, and once in so many ticks, it lies.
    often: u32,
    /// What went over the wire: its own messages, or everybody's.
    past: Vec<Envelope>,
    /// A pair that the broker never connects.
    pub(crate) severed: Option<(Peer, Peer)>,
}

/// How much is remembered.
const MEMORY: usize = 200;

impl Scenario {
    /// What a seed stands for with this liar. A third of the schedules has no other trouble.
    pub fn lying(methods: &Arc<Methods>, seed: u64, deadline: bool, liar: Liar) -> Self {
        let mut rng = PublicRng::named(seed, "lying scenario", 0, u32::from(deadline));
        let rounds = 3 + rng.below(4);
        let mut scenario = Self::drawn(methods, seed, deadline, rounds, &mut rng);
        // A liar's messages come on top of those of unlucky clients: only one kind of trouble is for ever.
        (scenario.silent, scenario.severed, scenario.wipes_only) = (Vec::new(), Vec::new(), false);
        if seed.is_multiple_of(3) {
            scenario.rates = Rates { twice: 8, delay: 10, ..Rates::default() };
        }
        scenario.liar = Some(liar);
        scenario
    }
}

impl Lies {
    pub(crate) fn new(scenario: &Scenario, rng: &mut PublicRng) -> Option<Self> {
        let who = scenario.liar?;
        let federation = &scenario.world.federation;
        let member = federation.members()[rng.below(federation.members().len() as u32) as usize];
        let (client, server) = (Peer::Client(member.id), Peer::Server(member.server));
        let peer = match who {
            Liar::Client => Some(client),
            Liar::Server => Some(server),
            Liar::Broker | Liar::OpenBroker => None,
        };
        let often = [2, 5, 15][rng.below(3) as usize];
        let severed = (who == Liar::Broker && rng.below(3) == 0).then_some((server, client));
        Some(Self { who, peer, often, past: Vec::new(), severed })
    }
}

/// Any reason that a client can give.
fn reason(rng: &mut PublicRng) -> Refusal {
    [Refusal::Unsolved, Refusal::Diverged, Refusal::Budget, Refusal::Undisclosed][rng.below(4) as usize]
}

/// Bytes with something changed: a bit, the sign and size of a number, the length.
fn changed(bytes: &[u8], rng: &mut PublicRng) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    if bytes.is_empty() {
        return vec![rng.below(256) as u8];
    }
    let at = rng.below(bytes.len() as u32) as usize;
    match rng.below(4) {
        0 => bytes[at] ^= 1 << rng.below(8),
        1 => bytes.truncate(at),
        2 => bytes.extend([0; 8]),
        // The last byte of some number: sign, or size.
        _ => {
            let last = (at | 7).min(bytes.len() - 1);
            bytes[last] ^= [0x80, 0x01, 0x7f][rng.below(3) as usize];
        }
    }
    bytes
}

/// Near, far, or the same.
fn other(step: u32, rng: &mut PublicRng) -> u32 {
    match rng.below(5) {
        0 => step.wrapping_sub(1),
        1 => step.saturating_add(1),
        2 => step.saturating_add(2 + rng.below(5)),
        3 => u32::MAX,
        _ => 0,
    }
}

/// The same message with something false in it.
fn twisted(envelope: &Envelope, rng: &mut PublicRng) -> Envelope {
    let mut said = envelope.clone();
    if rng.below(3) == 0 {
        said.step = other(said.step, rng);
    }
    match &mut said.message {
        Message::Up(bytes, _) | Message::Share(bytes) | Message::Served(_, bytes) if rng.below(2) == 0 => {
            *bytes = changed(bytes, rng).into();
        }
        Message::Ask(label, common, down) => match rng.below(3) {
            0 => label.part = rng.below(9),
            1 => *common = changed(common, rng).into(),
            _ => *down = changed(down, rng).into(),
        },
        Message::Up(_, lines) => match rng.below(3) {
            0 => *lines = u64::from(rng.below(3)),
            1 => *lines += 1 + u64::from(rng.below(5)),
            _ => said.message = Message::Refused(reason(rng), *lines),
        },
        Message::Refused(why, _) => *why = reason(rng),
        Message::Hello(hello) => match rng.below(6) {
            0 => hello.lines = other(hello.lines as u32, rng).into(),
            1 => hello.head = [rng.below(256) as u8; 32],
            2 => hello.step = other(hello.step, rng),
            3 => hello.data = [7; 32],
            4 => hello.run = [7; 32],
            _ => hello.spent = u64::MAX,
        },
        Message::Welcome(closed, lines) => match rng.below(2) {
            0 => *closed = other(*closed, rng),
            _ => *lines += 1,
        },
        Message::Stop(stop) => stop.step = other(stop.step, rng),
        Message::Share(_) | Message::Served(..) | Message::Turned(..) | Message::Got | Message::Bye => {}
    }
    said
}

/// Something out of the blue.
fn made_up(from: Peer, to: Peer, step: u32, rng: &mut PublicRng) -> Envelope {
    let some: Bytes = vec![rng.below(256) as u8; rng.below(64) as usize].into();
    let message = match rng.below(9) {
        0 => Message::Turned(Box::from(*b"because"), u64::from(rng.below(4))),
        1 => Message::Got,
        2 => Message::Bye,
        3 => Message::Up(some, u64::from(rng.below(9))),
        4 => Message::Share(some),
        5 => Message::Welcome(other(step, rng), u64::from(rng.below(4))),
        6 => Message::Refused(reason(rng), u64::from(rng.below(9))),
        7 => Message::Served(Arc::from(&some[..]), some),
        _ => {
            let server = rng.below(4);
            Message::Stop(Stop {
                step: other(step, rng),
                server,
                cause: Cause::Silent { reason: reason(rng) },
            })
        }
    };
    let step = if rng.below(2) == 0 { step } else { other(step, rng) };
    Envelope { from, to, step, message }
}

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
