//! Sealing and opening of one payload.
//!
//! ```text
//! magic "FKSL" | version u16 | salt [24] | count u64 | sealed: payload, signature [64] | tag [16]
//! ```
//!
//! The pair's key follows from the secret that the two nodes share, the run, both names and both public keys, in this order:
//! each direction has its own. The key of a message follows from it and the salt, which a process draws once; the count,
//! which is the nonce, goes up with each message of the process. So no key meets a nonce twice, also when a node starts
//! again and remembers nothing.

use super::{Identity, PublicKeys, SealError};
use crate::transport::{Payload, Token};
use bytes::{Bytes, BytesMut};
use ring::aead::{Aad, CHACHA20_POLY1305, LessSafeKey, Nonce, UnboundKey};
use ring::signature::{ED25519, UnparsedPublicKey};

/// How a sealed payload begins.
pub const MAGIC: [u8; 4] = *b"FKSL";
/// Version of the seal. A receiver refuses any other.
pub const VERSION: u16 = 1;

const SALT: usize = 24;
const HEADER: usize = 4 + 2 + SALT + 8;
const SIGNATURE: usize = 64;
const TAG: usize = 16;
/// What a seal adds to a payload.
pub const OVERHEAD: usize = HEADER + SIGNATURE + TAG;

const PAIR: &str = "fedkin 2026 seal: key of a sender and a receiver in a run";
const STATEMENT: &str = "fedkin 2026 seal: what a node signs";

pub(super) type Salt = [u8; SALT];

/// Why a payload was not opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum Broken {
    #[error("is not sealed: the sender has no keys, or somebody else wrote it")]
    Plain,
    #[error("has seal version {0}, this node speaks {VERSION}")]
    Version(u16),
    #[error("does not open: changed on the way, not from this sender, or not for this node, run or slot")]
    Closed,
    #[error("is not signed by its sender")]
    Unsigned,
}

/// The way of a payload.
#[derive(Debug, Clone, Copy)]
pub(super) struct Way<'a> {
    pub(super) run: &'a [u8; 32],
    pub(super) from: &'a Token,
    pub(super) to: &'a Token,
}

impl Way<'_> {
    /// Run, sender and receiver so that no two ways give the same bytes.
    fn put(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(self.run);
        for name in [self.from.as_str(), self.to.as_str()] {
            out.extend_from_slice(&(name.len() as u64).to_le_bytes());
            out.extend_from_slice(name.as_bytes());
        }
    }

    /// What the seal covers beside the payload.
    fn bound(&self, header: &[u8], slot: &str) -> Vec<u8> {
        let mut bound = Vec::with_capacity(HEADER + 32 + 16 + 80 + slot.len());
        bound.extend_from_slice(header);
        self.put(&mut bound);
        bound.extend_from_slice(slot.as_bytes());
        bound
    }

    /// What a sender signs: the way, the slot and the digest of the payload, which names the step of each message in it.
    fn statement(&self, slot: &str, digest: &blake3::Hash) -> [u8; 32] {
        let mut said = Vec::with_capacity(256);
        self.put(&mut said);
        said.extend_from_slice(digest.as_bytes());
        said.extend_from_slice(slot.as_bytes());
        blake3::derive_key(STATEMENT, &said)
    }

    /// The key of this way, as both ends compute it.
    pub(super) fn key(
        &self,
        me: &Identity,
        other: &PublicKeys,
        sender: &PublicKeys,
        receiver: &PublicKeys,
    ) -> Result<Pair, SealError> {
        let Some(shared) = me.agree(other) else {
            return Err(SealError::Unusable("a public key in the directory is no key of a node".into()));
        };
        let mut material = Vec::with_capacity(256);
        material.extend_from_slice(&shared);
        self.put(&mut material);
        for keys in [sender, receiver] {
            material.extend_from_slice(&keys.agreement);
            material.extend_from_slice(&keys.signature);
        }
        Ok(Pair(blake3::derive_key(PAIR, &material)))
    }
}

/// The key of a sender and a receiver in a run.
pub(super) struct Pair([u8; 32]);

impl Pair {
    /// The key of the messages with this salt.
    pub(super) fn session(&self, salt: &Salt) -> Result<Session, SealError> {
        let key = blake3::keyed_hash(&self.0, salt);
        let key = UnboundKey::new(&CHACHA20_POLY1305, key.as_bytes())
            .map_err(|_| SealError::Unusable("a key of the wrong length".into()))?;
        Ok(Session { salt: *salt, key: LessSafeKey::new(key) })
    }
}

/// The key of the messages of one process to one node.
pub(super) struct Session {
    pub(super) salt: Salt,
    key: LessSafeKey,
}

fn nonce(count: u64) -> Nonce {
    let mut nonce = [0; 12];
    nonce[4..].copy_from_slice(&count.to_le_bytes());
    Nonce::assume_unique_for_key(nonce)
}

impl Session {
    /// Seals a payload; it is copied once. The caller never gives a count twice.
    pub(super) fn seal(
        &self,
        me: &Identity,
        way: Way<'_>,
        slot: &str,
        count: u64,
        payload: &Payload,
    ) -> Result<Bytes, SealError> {
        let mut sealed = Vec::with_capacity(payload.len() + OVERHEAD);
        sealed.extend_from_slice(&MAGIC);
        sealed.extend_from_slice(&VERSION.to_le_bytes());
        sealed.extend_from_slice(&self.salt);
        sealed.extend_from_slice(&count.to_le_bytes());
        let bound = way.bound(&sealed, slot);
        let mut hash = blake3::Hasher::new();
        for piece in payload.pieces() {
            hash.update(piece);
            sealed.extend_from_slice(piece);
        }
        sealed.extend_from_slice(&me.sign(&way.statement(slot, &hash.finalize())));
        let tag = self
            .key
            .seal_in_place_separate_tag(nonce(count), Aad::from(&bound), &mut sealed[HEADER..])
            .map_err(|_| SealError::Unusable("the payload is too long to be sealed".into()))?;
        sealed.extend_from_slice(tag.as_ref());
        Ok(sealed.into())
    }

    /// Opens a payload, in place where nobody else holds its bytes.
    pub(super) fn open(
        &self,
        way: Way<'_>,
        slot: &str,
        sender: &PublicKeys,
        sealed: Bytes,
    ) -> Result<Bytes, Broken> {
        let (_, count) = head(&sealed)?;
        let bound = way.bound(&sealed[..HEADER], slot);
        let mut bytes = sealed.try_into_mut().unwrap_or_else(|shared| BytesMut::from(&shared[..]));
        let plain = self
            .key
            .open_in_place(nonce(count), Aad::from(&bound), &mut bytes[HEADER..])
            .map_err(|_| Broken::Closed)?;
        let end = plain.len().checked_sub(SIGNATURE).ok_or(Broken::Closed)?;
        let (payload, signature) = plain.split_at(end);
        let statement = way.statement(slot, &blake3::hash(payload));
        UnparsedPublicKey::new(&ED25519, sender.signature)
            .verify(&statement, signature)
            .map_err(|_| Broken::Unsigned)?;
        Ok(bytes.freeze().slice(HEADER..HEADER + end))
    }
}

/// Salt and count of a sealed payload.
pub(super) fn head(sealed: &[u8]) -> Result<(Salt, u64), Broken> {
    let rest = sealed.strip_prefix(&MAGIC).ok_or(Broken::Plain)?;
    let (version, rest) = rest.split_first_chunk().ok_or(Broken::Closed)?;
    let version = u16::from_le_bytes(*version);
    if version != VERSION {
        return Err(Broken::Version(version));
    }
    let (salt, rest) = rest.split_first_chunk().ok_or(Broken::Closed)?;
    let (count, rest) = rest.split_first_chunk().ok_or(Broken::Closed)?;
    if rest.len() < SIGNATURE + TAG {
        return Err(Broken::Closed);
    }
    Ok((*salt, u64::from_le_bytes(*count)))
}
