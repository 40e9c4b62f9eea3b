//! Payloads that only their receiver reads and only their sender can have written, over any transport.
//!
//! [`Sealed`] stands between a node and its [`Transport`]. What goes out is signed, encrypted and bound to run, sender,
//! receiver and slot; the steps are inside. What comes in and does not open is an [`Incident`] and goes no further. Names of
//! nodes, slots, sizes and times stay visible, and whoever carries messages can still lose, delay, double and reorder them.
//! The protocol above takes that from every transport: it is idempotent by step and digest, so a sealed payload that is
//! played again says nothing new. The reasons are in `docs/decisions/0029-sealed-messages.md`.

mod cipher;
mod directory;
mod keys;
#[cfg(test)]
mod tests;

pub use cipher::{MAGIC, OVERHEAD, VERSION};
pub use directory::Directory;
pub use keys::{Identity, PublicKeys};

use crate::transport::{Delivery, Event, Incident, Payload, Token, Transport, TransportError};
use bytes::Bytes;
use cipher::{Broken, Pair, Salt, Session, Way};
use std::collections::BTreeMap;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The kind of an [`Incident`] of something that does not open.
pub const KIND: &str = "seal";

/// Why a node cannot seal.
#[derive(Debug, thiserror::Error)]
pub enum SealError {
    /// A file is not what it should be.
    #[error("{}: {why}", path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// What is wrong.
        why: String,
    },
    /// A text or a key cannot be used.
    #[error("{0}")]
    Unusable(String),
    /// The operating system gives no random numbers.
    #[error("the operating system gives no random numbers: {0}")]
    Entropy(String),
    /// A node is not in the directory.
    #[error(
        "the node {0} has no keys in the directory: provision again and bring the new directory to all nodes"
    )]
    Unknown(Token),
    /// This node's keys are others than the directory says.
    #[error(
        "the directory has other keys for the node {0} than its own file: bring key and directory of the same provisioning"
    )]
    Other(Token),
    /// A process has sent all it may.
    #[error("this process has sealed 2^64 payloads: start it again")]
    Exhausted,
}

impl From<SealError> for TransportError {
    fn from(error: SealError) -> Self {
        Self(error.to_string())
    }
}

/// A text file that is not longer than this.
fn read_text(path: &Path, longest: u64) -> Result<String, SealError> {
    let wrong = |why: String| SealError::File { path: path.to_path_buf(), why };
    let mut text = String::new();
    let file = std::fs::File::open(path).map_err(|error| wrong(format!("cannot be read: {error}")))?;
    file.take(longest + 1)
        .read_to_string(&mut text)
        .map_err(|error| wrong(format!("cannot be read: {error}")))?;
    if text.len() as u64 > longest {
        return Err(wrong(format!("has more than {longest} bytes")));
    }
    Ok(text)
}

/// What a node needs to seal in a run.
#[derive(Debug)]
pub struct Keys {
    /// This node.
    pub me: Token,
    /// The digest all nodes of the run agree on.
    pub run: [u8; 32],
    /// Its private keys.
    pub identity: Identity,
    /// Everybody's public keys.
    pub directory: Directory,
}

/// One other node: the keys of both directions, and the sessions in use.
struct Peer {
    keys: PublicKeys,
    inward: Pair,
    outgoing: Session,
    /// The session that opened something last.
    incoming: Option<Session>,
}

/// A transport whose payloads are sealed.
pub struct Sealed<T> {
    inner: T,
    keys: Keys,
    own: PublicKeys,
    salt: Salt,
    count: u64,
    peers: BTreeMap<Token, Peer>,
}

impl<T: Transport> Sealed<T> {
    /// Seals what goes through a transport. Refuses keys that are not those of the directory.
    pub fn new(inner: T, keys: Keys) -> Result<Self, SealError> {
        let own = keys.identity.public();
        match keys.directory.get(&keys.me) {
            None => return Err(SealError::Unknown(keys.me)),
            Some(known) if *known != own => return Err(SealError::Other(keys.me)),
            Some(_) => {}
        }
        let mut salt = Salt::default();
        getrandom::fill(&mut salt).map_err(|error| SealError::Entropy(error.to_string()))?;
        Ok(Self { inner, keys, own, salt, count: 0, peers: BTreeMap::new() })
    }

    /// The other node, met for the first time or known.
    fn meet(&mut self, node: &Token) -> Result<(&mut Peer, &Keys), SealError> {
        if !self.peers.contains_key(node) {
            let keys = *self.keys.directory.get(node).ok_or_else(|| SealError::Unknown(node.clone()))?;
            let Keys { me, run, identity, .. } = &self.keys;
            let inward = Way { run, from: node, to: me }.key(identity, &keys, &keys, &self.own)?;
            let outward = Way { run, from: me, to: node }.key(identity, &keys, &self.own, &keys)?;
            let outgoing = outward.session(&self.salt)?;
            self.peers.insert(node.clone(), Peer { keys, inward, outgoing, incoming: None });
        }
        match self.peers.get_mut(node) {
            Some(peer) => Ok((peer, &self.keys)),
            None => Err(SealError::Unknown(node.clone())),
        }
    }

    fn seal(&mut self, to: &Token, slot: &str, payload: &Payload) -> Result<Bytes, SealError> {
        // One count for all receivers: it only must not come twice.
        let count = self.count;
        self.count = count.checked_add(1).ok_or(SealError::Exhausted)?;
        let (peer, keys) = self.meet(to)?;
        let way = Way { run: &keys.run, from: &keys.me, to };
        peer.outgoing.seal(&keys.identity, way, slot, count, payload)
    }

    fn open(&mut self, from: &Token, slot: &str, sealed: Bytes) -> Result<Bytes, String> {
        let (salt, _) = cipher::head(&sealed).map_err(|broken| broken.to_string())?;
        let (peer, keys) = self.meet(from).map_err(|error| format!("cannot be opened: {error}"))?;
        let way = Way { run: &keys.run, from, to: &keys.me };
        if let Some(session) = peer.incoming.as_ref().filter(|session| session.salt == salt) {
            return session.open(way, slot, &peer.keys, sealed).map_err(|broken| broken.to_string());
        }
        // The sender has started again, or this is from before it did, or forged.
        let session = peer.inward.session(&salt).map_err(|error| error.to_string())?;
        let opened =
            session.open(way, slot, &peer.keys, sealed).map_err(|broken: Broken| broken.to_string())?;
        peer.incoming = Some(session);
        Ok(opened)
    }
}

impl<T: Transport> Transport for Sealed<T> {
    fn send(&mut self, to: &Token, slot: &str, payload: Payload) -> Result<(), TransportError> {
        let sealed = self.seal(to, slot, &payload)?;
        self.inner.send(to, slot, sealed.into())
    }

    async fn next(&mut self) -> Event {
        match self.inner.next().await {
            Event::Delivery(Delivery { from, slot, payload }) => match self.open(&from, &slot, payload) {
                Ok(payload) => Event::Delivery(Delivery { from, slot, payload }),
                Err(reason) => Event::Incident(Incident { from, kind: KIND, reason }),
            },
            other => other,
        }
    }

    fn flush(&mut self, patience: Duration) -> impl Future<Output = bool> + Send {
        self.inner.flush(patience)
    }

    fn publish_status(&mut self, status: Bytes) -> impl Future<Output = Result<(), TransportError>> + Send {
        self.inner.publish_status(status)
    }
}
