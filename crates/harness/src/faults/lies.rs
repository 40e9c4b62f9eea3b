//! What a liar says: who lies, what it remembers, and how a message is changed or made up.

use bytes::Bytes;
use fedkin_method::Federation;
use fedkin_method::round::{Cause, Envelope, Message, Peer, Stop};
use fedkin_numeric::rng::{PublicRng, Random};
use fedkin_privacy::Refusal;
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
    pub(crate) often: u32,
    /// What went over the wire: its own messages, or everybody's.
    pub(crate) past: Vec<Envelope>,
    /// A pair that the broker never connects.
    pub(crate) severed: Option<(Peer, Peer)>,
}

/// How much is remembered.
pub(crate) const MEMORY: usize = 200;

impl Lies {
    pub(crate) fn new(who: Liar, federation: &Federation, rng: &mut PublicRng) -> Self {
        let member = federation.members()[rng.below(federation.members().len() as u32) as usize];
        let (client, server) = (Peer::Client(member.id), Peer::Server(member.server));
        let peer = match who {
            Liar::Client => Some(client),
            Liar::Server => Some(server),
            Liar::Broker | Liar::OpenBroker => None,
        };
        let often = [2, 5, 15][rng.below(3) as usize];
        let severed = (who == Liar::Broker && rng.below(3) == 0).then_some((server, client));
        Self { who, peer, often, past: Vec::new(), severed }
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
pub(crate) fn twisted(envelope: &Envelope, rng: &mut PublicRng) -> Envelope {
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
pub(crate) fn made_up(from: Peer, to: Peer, step: u32, rng: &mut PublicRng) -> Envelope {
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
