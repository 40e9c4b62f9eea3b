//! What carries messages between nodes.
//!
//! A [`Transport`] moves opaque payloads between named nodes. It is trusted with nothing: it may lose, double, delay and
//! reorder, because whoever needs a payload to arrive sends it again until the receiver says so. [`nats`](crate::nats) is
//! one (feature `nats`), [`Memory`] another, for tests and for runs in one process; a program may bring its own.

mod memory;

pub use fedkin_method::round::Payload;
pub use memory::Memory;

use bytes::Bytes;
use std::fmt;
use std::ops::RangeInclusive;
use std::time::Duration;

/// In a transport, the name under which nodes say how they are. No node has it.
pub const STATUS: &str = "status";
const PLAIN: RangeInclusive<usize> = 1..=40;
const MARK: &str = "x-";

/// A node's name in the form in which transports use it.
///
/// A plain name (`[A-Za-z0-9_-]`, 1 to 40 characters) is its own token. Any other name, one that starts with
/// `x-`, and the reserved `status` become `x-` and 32 hexadecimal digits of the name's BLAKE3 hash, so two
/// names never share a token.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Token(String);

impl Token {
    /// The token of a node's name.
    pub fn of(name: &str) -> Self {
        if is_plain(name) && !name.starts_with(MARK) && name != STATUS {
            return Self(name.to_owned());
        }
        let hash = blake3::hash(name.as_bytes()).to_hex();
        Self(format!("{MARK}{}", &hash.as_str()[..32]))
    }

    /// What already is a token, such as one read from a subject.
    pub fn parse(text: &str) -> Option<Self> {
        let escaped = text.strip_prefix(MARK).is_some_and(is_escape);
        let plain = is_plain(text) && !text.starts_with(MARK) && text != STATUS;
        (plain || escaped).then(|| Self(text.to_owned()))
    }

    /// The text of the token.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Whether a text is a name that needs no escape: `[A-Za-z0-9_-]`, 1 to 40 characters.
pub fn is_plain(text: &str) -> bool {
    PLAIN.contains(&text.len()) && text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_')
}

fn is_escape(digits: &str) -> bool {
    digits.len() == 32 && digits.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b))
}

/// A payload for this node. It may come twice, late, or after a newer one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Delivery {
    /// The sender, as far as the transport knows.
    pub from: Token,
    /// The slot.
    pub slot: String,
    /// What was sent.
    pub payload: Bytes,
}

/// What a node hears from its transport. `I` is what a transport says of something that is no payload.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event<I = Incident> {
    /// A payload.
    Delivery(Delivery),
    /// No payload: counted and dropped.
    Incident(I),
    /// The mailbox is open again. What was in it may be lost: send again what still matters.
    Reconnected,
    /// The connection is lost; it comes back by itself.
    Disconnected,
}

/// Something in a sender's name that is no payload.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Incident {
    /// The sender, as far as the transport knows.
    pub from: Token,
    /// What is wrong, without anything that the sender chose: there are only so many of these.
    pub kind: &'static str,
    /// What is wrong, in words.
    pub reason: String,
}

/// Why a transport does not work.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct TransportError(pub String);

/// A node's end of a transport. Closed when dropped.
pub trait Transport: Send {
    /// Hands a payload over for sending and returns at once. A newer payload for the same receiver and slot may replace
    /// an older one that was not read yet. An error says that it can never be sent; a loss on the way is no error.
    fn send(&mut self, to: &Token, slot: &str, payload: Payload) -> Result<(), TransportError>;

    /// The next event. Cancelling it loses nothing.
    fn next(&mut self) -> impl Future<Output = Event> + Send;

    /// Waits until nothing waits to be sent. `false`: the time was over first.
    fn flush(&mut self, _patience: Duration) -> impl Future<Output = bool> + Send {
        std::future::ready(true)
    }

    /// Says how this node is, in JSON, to whoever may read it; a newer word replaces it. Nothing rests on it.
    fn publish_status(&mut self, _status: Bytes) -> impl Future<Output = Result<(), TransportError>> + Send {
        std::future::ready(Ok(()))
    }
}

/// Where nodes of one process get their ends from.
pub trait Network: Send + Sync {
    /// A node's end.
    type End: Transport + 'static;

    /// Lets a node in. A node that starts again joins again, under the same name.
    fn join(&self, node: &Token) -> Result<Self::End, TransportError>;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_plain_names_or_their_hashes() {
        assert_eq!(Token::of("host-1").as_str(), "host-1");
        for name in ["", "a.b", "status", "x-1", "Ward 1", &"a".repeat(41)] {
            let token = Token::of(name);
            assert!(token.as_str().starts_with("x-") && token.as_str().len() == 34, "{name:?}: {token}");
            assert_eq!(Token::parse(token.as_str()), Some(token));
        }
        assert_eq!(Token::parse("status"), None);
        assert_eq!(Token::parse("x-1"), None);
    }
}
