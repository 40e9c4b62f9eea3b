//! Envelopes to payloads and back: what goes to one process travels together.

use super::telemetry::Telemetry;
use crate::seal;
use crate::transport::{Event, Token, Transport, TransportError};
use bytes::Bytes;
use fedkin_method::round::{Envelope, Message, PROTOCOL, Peer, Unopened, open, seal as pack_up};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// Small payloads to one node take turns in so many slots, so that one does not replace another that is not read yet.
const TURNS: u32 = 32;
/// And large ones in so many.
const WIDE: u32 = 4;
/// Envelopes are packed up to about this size.
const PACK: usize = 192 * 1024;
/// A larger message is not sent again before this time, then twice as long, and so on. What was on its way would only
/// be pushed back by it, and nothing rests on it: a mailbox that was lost is announced ([`Mail::again`]).
const REST: Duration = Duration::from_secs(10);
const LONGEST_REST: Duration = Duration::from_secs(60);
/// What an envelope counts for, beside its contents.
const ENVELOPE: usize = 64;
/// So no payload of ours has more envelopes than this. An opened envelope takes far more memory than the few bytes
/// that it may have on the wire.
const MOST: u32 = (PACK / ENVELOPE) as u32;

/// Which process runs which server and hosts which client.
#[derive(Debug, Clone)]
pub struct Routes {
    /// Node of every server, by server id.
    pub servers: Vec<Token>,
    /// Node of every client, by client id.
    pub clients: Vec<Token>,
}

impl Routes {
    /// The node a peer lives on.
    pub fn node(&self, peer: Peer) -> Option<&Token> {
        match peer {
            Peer::Server(id) => self.servers.get(id as usize),
            Peer::Client(id) => self.clients.get(id as usize),
        }
    }
}

/// Why a payload, or an envelope in it, was not taken.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// The payload does not open.
    #[error(transparent)]
    Unopened(#[from] Unopened),
    /// The payload is sealed, and this node has no keys.
    #[error("is sealed, and this node was started without keys: give `key` and `directory` in [seal]")]
    Sealed,
    /// More envelopes than any node packs.
    #[error("announces {0} envelopes, a payload has at most {MOST}")]
    Crowd(u32),
    /// An envelope in somebody else's name.
    #[error("speaks as {0}, which lives on another node")]
    Impostor(Peer),
}

impl Refused {
    /// The same without what the sender chose: there are only so many of these, whatever comes.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Unopened(Unopened::Damaged) => "damaged or truncated",
            Self::Unopened(Unopened::Protocol { .. }) => "another protocol",
            Self::Unopened(Unopened::OtherRun { .. }) => "another run",
            Self::Sealed => seal::KIND,
            Self::Crowd(_) => "too many envelopes",
            Self::Impostor(_) => "speaks for another node",
        }
    }
}

/// Packs and unpacks a node's mail.
#[derive(Debug)]
pub struct Mail {
    run: [u8; 32],
    routes: Routes,
    turns: BTreeMap<Token, u32>,
    /// Large messages by way, kind and step: when they left last, and how long they rest.
    rests: BTreeMap<(Peer, Peer, u8, u32), (Instant, Duration)>,
}

impl Mail {
    /// Mail of a run.
    pub fn new(run: [u8; 32], routes: Routes) -> Self {
        Self { run, routes, turns: BTreeMap::new(), rests: BTreeMap::new() }
    }

    /// The node a peer lives on.
    pub fn routes(&self) -> &Routes {
        &self.routes
    }

    /// Sends envelopes, those for one node together. Returns how many bytes.
    pub fn send(
        &mut self,
        out: &mut impl Transport,
        envelopes: Vec<Envelope>,
    ) -> Result<usize, TransportError> {
        let mut by_node: BTreeMap<Token, Vec<Envelope>> = BTreeMap::new();
        for envelope in envelopes {
            if self.rests(&envelope) {
                continue;
            }
            let Some(node) = self.routes.node(envelope.to) else { continue };
            match by_node.get_mut(node) {
                Some(envelopes) => envelopes.push(envelope),
                None => drop(by_node.insert(node.clone(), vec![envelope])),
            }
        }
        let mut bytes = 0;
        for (node, envelopes) in by_node {
            let mut pack: Vec<Envelope> = Vec::new();
            let mut size = 0;
            for envelope in envelopes {
                let length = weight(&envelope.message);
                if length > PACK {
                    // Too large to be packed: a slot of its own, one per client and kind, holds the latest.
                    bytes += self.post(out, &node, &own_slot(&envelope), &[envelope])?;
                    continue;
                }
                if size + length > PACK {
                    bytes += self.pack(out, &node, &pack)?;
                    pack.clear();
                    size = 0;
                }
                size += length;
                pack.push(envelope);
            }
            bytes += self.pack(out, &node, &pack)?;
        }
        Ok(bytes)
    }

    /// Whether a message is large and was sent not long ago.
    fn rests(&mut self, envelope: &Envelope) -> bool {
        let (kind, size) = match &envelope.message {
            Message::Ask(_, common, own) => (0, common.len() + own.len()),
            Message::Up(own, _) => (1, own.len()),
            Message::Share(own) => (2, own.len()),
            Message::Served(common, own) => (3, common.len() + own.len()),
            _ => return false,
        };
        if size <= PACK {
            return false;
        }
        let (from, to, step) = (envelope.from, envelope.to, envelope.step);
        let now = Instant::now();
        match self.rests.get_mut(&(from, to, kind, step)) {
            Some((left, rest)) if now.duration_since(*left) < *rest => true,
            Some(known) => {
                *known = (now, (known.1 * 2).min(LONGEST_REST));
                false
            }
            None => {
                // Of the steps before, the last may still matter.
                let old = (from, to, kind, 0)..(from, to, kind, step.saturating_sub(1));
                let old: Vec<_> = self.rests.range(old).map(|(key, _)| *key).collect();
                for key in old {
                    self.rests.remove(&key);
                }
                self.rests.insert((from, to, kind, step), (now, REST));
                false
            }
        }
    }

    /// What was sent may be lost: nothing rests any more.
    pub fn again(&mut self) {
        self.rests.clear();
    }

    fn pack(
        &mut self,
        out: &mut impl Transport,
        node: &Token,
        pack: &[Envelope],
    ) -> Result<usize, TransportError> {
        if pack.is_empty() {
            return Ok(0);
        }
        let turn = self.turns.entry(node.clone()).or_default();
        *turn = (*turn + 1) % TURNS;
        let slot = format!("turn-{turn}");
        self.post(out, node, &slot, pack)
    }

    fn post(
        &self,
        out: &mut impl Transport,
        node: &Token,
        slot: &str,
        pack: &[Envelope],
    ) -> Result<usize, TransportError> {
        let payload = pack_up(&self.run, pack);
        let length = payload.len();
        // A large broadcast: few slots, or the broker would keep a long row of them.
        let wide = format!("wide-{}", self.turns.get(node).map_or(0, |turn| turn % WIDE));
        let slot = if length > 2 * PACK && pack.len() > 1 { &wide } else { slot };
        out.send(node, slot, payload)?;
        Ok(length)
    }

    /// How many envelopes a payload of this protocol and run says it has.
    fn announced(&self, payload: &[u8]) -> Option<u32> {
        let rest = payload.strip_prefix(&PROTOCOL.to_le_bytes())?.strip_prefix(&self.run)?;
        Some(u32::from_le_bytes(*rest.first_chunk()?))
    }

    /// Takes an event of the transport apart, counts and logs what is wrong with it, and adds the envelopes it brought.
    /// True where the mailbox may have lost something.
    pub fn take(&mut self, event: Event, telemetry: &Telemetry, envelopes: &mut Vec<Envelope>) -> bool {
        match event {
            Event::Delivery(delivery) => {
                telemetry.received_bytes.inc_by(delivery.payload.len() as u64);
                let refused = match self.open(&delivery.from, &delivery.payload) {
                    Ok((genuine, refused)) => {
                        envelopes.extend(genuine);
                        refused
                    }
                    Err(refused) => vec![refused],
                };
                for refused in refused {
                    telemetry.incident(delivery.from.as_str(), refused.kind(), &refused.to_string());
                }
            }
            Event::Incident(incident) => {
                telemetry.incident(incident.from.as_str(), incident.kind, &incident.reason);
            }
            Event::Reconnected => {
                self.again();
                telemetry.connected.set(1);
                telemetry.reconnects.inc();
                telemetry.link_trouble(None);
                return true;
            }
            Event::Disconnected => {
                tracing::warn!("the broker is out of reach");
                telemetry.connected.set(0);
                telemetry.link_trouble(Some("the broker is out of reach".into()));
            }
        }
        false
    }

    /// Opens a payload from a node; envelopes in another node's name are left out and named.
    pub fn open(&self, from: &Token, payload: &Bytes) -> Result<(Vec<Envelope>, Vec<Refused>), Refused> {
        let mut refused = Vec::new();
        if payload.starts_with(&seal::MAGIC) {
            return Err(Refused::Sealed);
        }
        if let Some(count) = self.announced(payload).filter(|count| *count > MOST) {
            return Err(Refused::Crowd(count));
        }
        let mut envelopes = open(&self.run, payload)?;
        envelopes.retain(|envelope| {
            let genuine = self.routes.node(envelope.from) == Some(from);
            if !genuine {
                refused.push(Refused::Impostor(envelope.from));
            }
            genuine
        });
        Ok((envelopes, refused))
    }
}

fn weight(message: &Message) -> usize {
    ENVELOPE
        + match message {
            Message::Ask(_, _, own) | Message::Up(own, _) | Message::Share(own) | Message::Served(_, own) => {
                own.len()
            }
            Message::Hello(_) | Message::Stop(_) => 200,
            _ => 0,
        }
}

fn own_slot(envelope: &Envelope) -> String {
    let id = |peer: Peer| match peer {
        Peer::Server(id) => format!("s{id}"),
        Peer::Client(id) => format!("c{id}"),
    };
    let (from, to) = (id(envelope.from), id(envelope.to));
    // A neighbour may still need the share before the last.
    match &envelope.message {
        Message::Share(_) => format!("{from}-{to}-{}", envelope.step % 2),
        _ => format!("{from}-{to}"),
    }
}
