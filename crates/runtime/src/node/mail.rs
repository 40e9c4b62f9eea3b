//! Envelopes to payloads and back: what goes to one process travels together.

use crate::nats::{PART, PostError, Sender, Token};
use fedkin_core::round::{Envelope, Message, Peer, Unopened, open, seal};
use std::collections::BTreeMap;

/// Small payloads to one node take turns in so many slots, so that one does not replace another that is not read yet.
const TURNS: u32 = 32;
/// And large ones in so many.
const WIDE: u32 = 4;
/// Envelopes are packed up to about this size.
const PACK: usize = PART;

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
    /// An envelope in somebody else's name.
    #[error("speaks as {0}, which lives on another node")]
    Impostor(Peer),
}

/// Packs and unpacks a node's mail.
#[derive(Debug)]
pub struct Mail {
    run: [u8; 32],
    routes: Routes,
    turns: BTreeMap<Token, u32>,
}

impl Mail {
    /// Mail of a run.
    pub fn new(run: [u8; 32], routes: Routes) -> Self {
        Self { run, routes, turns: BTreeMap::new() }
    }

    /// The node a peer lives on.
    pub fn routes(&self) -> &Routes {
        &self.routes
    }

    /// Sends envelopes, those for one node together. Returns how many bytes.
    pub fn send(&mut self, sender: &Sender, envelopes: Vec<Envelope>) -> Result<usize, PostError> {
        let mut by_node: BTreeMap<Token, Vec<Envelope>> = BTreeMap::new();
        for envelope in envelopes {
            if let Some(node) = self.routes.node(envelope.to) {
                by_node.entry(node.clone()).or_default().push(envelope);
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
                    bytes += self.post(sender, &node, &own_slot(&envelope), &[envelope])?;
                    continue;
                }
                if size + length > PACK {
                    bytes += self.pack(sender, &node, &pack)?;
                    pack.clear();
                    size = 0;
                }
                size += length;
                pack.push(envelope);
            }
            bytes += self.pack(sender, &node, &pack)?;
        }
        Ok(bytes)
    }

    fn pack(&mut self, sender: &Sender, node: &Token, pack: &[Envelope]) -> Result<usize, PostError> {
        if pack.is_empty() {
            return Ok(0);
        }
        let turn = self.turns.entry(node.clone()).or_default();
        *turn = (*turn + 1) % TURNS;
        let slot = format!("turn-{turn}");
        self.post(sender, node, &slot, pack)
    }

    fn post(&self, sender: &Sender, node: &Token, slot: &str, pack: &[Envelope]) -> Result<usize, PostError> {
        let payload = seal(&self.run, pack);
        let length = payload.len();
        // A large broadcast: few slots, or the broker would keep a long row of them.
        let wide = format!("wide-{}", self.turns.get(node).map_or(0, |turn| turn % WIDE));
        let slot = if length > 2 * PACK && pack.len() > 1 { &wide } else { slot };
        sender.send(node, slot, payload.into())?;
        Ok(length)
    }

    /// Opens a payload from a node; envelopes in another node's name are left out and named.
    pub fn open(&self, from: &Token, payload: &[u8]) -> Result<(Vec<Envelope>, Vec<Refused>), Refused> {
        let mut refused = Vec::new();
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
    64 + match message {
        Message::Ask(_, _, own) | Message::Up(own, _) | Message::Share(own) | Message::Served(_, own) => {
            own.len()
        }
        Message::Hello(_) => 200,
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
