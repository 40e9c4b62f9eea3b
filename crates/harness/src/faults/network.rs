//! The broker: a mailbox that keeps a few messages per subject and promises nothing.

use bytes::Bytes;
use fedkin_method::round::{Envelope, Message, Peer, open, seal};
use fedkin_numeric::rng::{PublicRng, Random};
use std::collections::BTreeMap;

/// How often something goes wrong: once in so many messages or ticks, 0 for never.
#[derive(Debug, Clone, Copy, Default)]
pub struct Rates {
    /// Messages lost.
    pub drop: u32,
    /// Messages that come twice.
    pub twice: u32,
    /// Messages that come late.
    pub delay: u32,
    /// Messages with changed bytes.
    pub damage: u32,
    /// The broker loses everything.
    pub wipe: u32,
    /// Two nodes cannot reach each other.
    pub cut: u32,
    /// Nodes die.
    pub crash: u32,
    /// Disks are full.
    pub full: u32,
}

impl Rates {
    /// Every kind of fault is absent in a third of the schedules, so that each is also met without the others.
    pub(crate) fn draw(rng: &mut PublicRng) -> Self {
        let mut rate = |often: u32, seldom: u32| match rng.below(3) {
            0 => 0,
            1 => often,
            _ => seldom,
        };
        Self {
            drop: rate(4, 15),
            twice: rate(3, 8),
            delay: rate(4, 10),
            damage: rate(6, 25),
            wipe: rate(60, 300),
            cut: rate(80, 300),
            crash: rate(40, 150),
            full: rate(150, 400),
        }
    }
}

/// Whether an event of this rate happens now.
pub(crate) fn one_in(rng: &mut PublicRng, rate: u32) -> bool {
    rate > 0 && rng.below(rate) == 0
}

/// Sealed envelopes with a checksum, as a transport frames them.
#[derive(Debug, Clone)]
struct Frame {
    from: Peer,
    to: Peer,
    subject: u8,
    born: u64,
    ready: u64,
    bytes: Vec<u8>,
}

/// What became of a frame that was picked.
pub(crate) enum Arrival {
    /// It arrived.
    Envelope(Box<Envelope>),
    /// It was damaged, and this was noticed.
    Damaged,
    /// It was damaged and nobody noticed.
    Unnoticed,
    /// The receiver cannot be reached now.
    Unreachable,
}

#[derive(Debug, Default)]
pub(crate) struct Broker {
    run: [u8; 32],
    frames: Vec<Frame>,
    born: u64,
    /// Pairs that cannot reach each other, and until when.
    cuts: BTreeMap<(Peer, Peer), u64>,
    /// It keeps everything; only a mutant does.
    endless: bool,
    /// The most frames it ever held.
    pub(crate) most: usize,
}

/// The subject of a message and how many messages its stream keeps.
fn subject(message: &Message) -> (u8, usize) {
    match message {
        Message::Hello(_) => (0, 1),
        Message::Welcome(..) | Message::Turned(..) => (1, 1),
        Message::Ask(..) | Message::Served(..) | Message::Bye => (2, 1),
        Message::Up(..) | Message::Refused(..) | Message::Got => (3, 1),
        Message::Share(_) => (4, 2),
        Message::Stop(_) => (5, 1),
    }
}

fn checksum(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

fn frame(run: &[u8; 32], envelope: &Envelope) -> Vec<u8> {
    let mut bytes = seal(run, std::slice::from_ref(envelope)).to_bytes().to_vec();
    bytes.extend(checksum(&bytes).to_le_bytes());
    bytes
}

fn unframe(run: &[u8; 32], bytes: &[u8]) -> Option<Envelope> {
    let (payload, sum) = bytes.split_last_chunk::<8>()?;
    if checksum(payload) != u64::from_le_bytes(*sum) {
        return None;
    }
    open(run, &Bytes::copy_from_slice(payload)).ok()?.pop()
}

impl Broker {
    pub(crate) fn new(run: [u8; 32], endless: bool) -> Self {
        Self { run, endless, ..Self::default() }
    }

    /// How many frames it can hold for so many clients and edges between servers, whatever the number of rounds.
    pub(crate) fn bound(clients: usize, edges: usize) -> usize {
        4 * clients + 2 * 5 * edges
    }

    pub(crate) fn put(&mut self, envelope: &Envelope, ready: u64) {
        let (subject, limit) = subject(&envelope.message);
        let (from, to) = (envelope.from, envelope.to);
        let same = |frame: &Frame| (frame.subject, frame.from, frame.to) == (subject, from, to);
        if !self.endless && self.frames.iter().filter(|frame| same(frame)).count() >= limit {
            let old = self.frames.iter().enumerate().filter(|(_, frame)| same(frame));
            if let Some((oldest, _)) = old.min_by_key(|(_, frame)| frame.born) {
                self.frames.swap_remove(oldest);
            }
        }
        self.born += 1;
        let bytes = frame(&self.run, envelope);
        self.frames.push(Frame { from, to, subject, born: self.born, ready, bytes });
        self.most = self.most.max(self.frames.len());
    }

    /// All messages are gone, acknowledged or not.
    pub(crate) fn wipe(&mut self) {
        self.frames.clear();
    }

    pub(crate) fn len(&self) -> usize {
        self.frames.len()
    }

    pub(crate) fn cut(&mut self, a: Peer, b: Peer, until: u64) {
        let end = self.cuts.entry((a.min(b), a.max(b))).or_default();
        *end = until.max(*end);
    }

    /// All cuts that are not for ever heal, and nothing is late any more.
    pub(crate) fn heal(&mut self) {
        self.cuts.retain(|_, until| *until == u64::MAX);
        self.frames.iter_mut().for_each(|frame| frame.ready = 0);
    }

    /// Picks one frame in no order. It stays if it is to come twice or cannot arrive now.
    pub(crate) fn pick(
        &mut self,
        rng: &mut PublicRng,
        rates: &Rates,
        tick: u64,
        up: impl Fn(Peer) -> bool,
    ) -> Option<Arrival> {
        if self.frames.is_empty() {
            return None;
        }
        let at = rng.below(self.frames.len() as u32) as usize;
        let Frame { from, to, ready, .. } = self.frames[at];
        let cut = self.cuts.get(&(from.min(to), from.max(to))).is_some_and(|until| *until > tick);
        if cut || ready > tick || !up(to) {
            return Some(Arrival::Unreachable);
        }
        let stays = one_in(rng, rates.twice);
        if one_in(rng, rates.damage) {
            let bytes = &self.frames[at].bytes;
            let mut damaged = bytes.clone();
            if rng.below(2) == 0 {
                let bit = rng.below(bytes.len() as u32 * 8) as usize;
                damaged[bit / 8] ^= 1 << (bit % 8);
            } else {
                damaged.truncate(rng.below(bytes.len() as u32) as usize);
                // Cut short, even an envelope without a checksum does not open.
                if damaged.len() < bytes.len() - 8
                    && open(&self.run, &Bytes::copy_from_slice(&damaged)).is_ok()
                {
                    return Some(Arrival::Unnoticed);
                }
            }
            let noticed = unframe(&self.run, &damaged).is_none();
            if !stays {
                self.frames.swap_remove(at);
            }
            return Some(if noticed { Arrival::Damaged } else { Arrival::Unnoticed });
        }
        let bytes = if stays { self.frames[at].bytes.clone() } else { self.frames.swap_remove(at).bytes };
        Some(
            unframe(&self.run, &bytes)
                .map_or(Arrival::Unnoticed, |envelope| Arrival::Envelope(Box::new(envelope))),
        )
    }
}
