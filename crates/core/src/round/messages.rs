//! What crosses between nodes, and what a node wants done.

use crate::algorithm::Label;
use crate::codec::{Codec, Damaged, Reader, Sink};

/// A node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Peer {
    /// A server by id.
    Server(u32),
    /// A client by id.
    Client(u32),
}

/// The contents of an envelope: encoded values of the method.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Message {
    /// Server to client: label, then the encoded broadcast and the client's own part.
    Ask(Label, Vec<u8>, Vec<u8>),
    /// Client to server: the encoded upload.
    Up(Vec<u8>),
    /// Client to server: nothing leaves in this step.
    Refused,
    /// Server to server: the encoded share.
    Share(Vec<u8>),
    /// Server to client, the last message: the encoded broadcast and the client's own part.
    Served(Vec<u8>, Vec<u8>),
}

/// A message with its way and its step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Envelope {
    /// Who sent it.
    pub from: Peer,
    /// Who gets it.
    pub to: Peer,
    /// The step it belongs to.
    pub step: u32,
    /// What it says.
    pub message: Message,
}

/// What a node wants done, in this order: a commit is on disk before anything after it is sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Effect {
    /// Keep this record; it replaces the node's earlier one.
    Commit(Vec<u8>),
    /// Send this; again and again until it is answered.
    Send(Envelope),
    /// The node's part of the run is over.
    Done,
}

impl Codec for Peer {
    fn schema() -> String {
        "peer".into()
    }
    fn put<S: Sink>(&self, sink: &mut S) {
        let (kind, id) = match self {
            Peer::Server(id) => (0u8, id),
            Peer::Client(id) => (1u8, id),
        };
        kind.put(sink);
        id.put(sink);
    }
    fn get(reader: &mut Reader<'_>) -> Result<Self, Damaged> {
        let kind = u8::get(reader)?;
        let id = u32::get(reader)?;
        match kind {
            0 => Ok(Peer::Server(id)),
            1 => Ok(Peer::Client(id)),
            _ => Err(Damaged),
        }
    }
}

impl Codec for Label {
    fn schema() -> String {
        "label".into()
    }
    fn put<S: Sink>(&self, sink: &mut S) {
        self.kind.put(sink);
        self.part.put(sink);
    }
    fn get(reader: &mut Reader<'_>) -> Result<Self, Damaged> {
        Ok(Self { kind: u16::get(reader)?, part: u32::get(reader)? })
    }
}

impl Codec for Message {
    fn schema() -> String {
        "message".into()
    }
    fn put<S: Sink>(&self, sink: &mut S) {
        let mut part = |kind: u8, parts: &[&[u8]]| {
            kind.put(sink);
            for bytes in parts {
                (bytes.len() as u64).put(sink);
                sink.bytes(bytes);
            }
        };
        match self {
            Message::Ask(label, common, down) => part(0, &[&label.to_bytes(), common, down]),
            Message::Up(up) => part(1, &[up]),
            Message::Refused => part(2, &[]),
            Message::Share(share) => part(3, &[share]),
            Message::Served(common, down) => part(4, &[common, down]),
        }
    }
    fn get(reader: &mut Reader<'_>) -> Result<Self, Damaged> {
        fn part(reader: &mut Reader<'_>) -> Result<Vec<u8>, Damaged> {
            let length = reader.length(1)?;
            Ok(reader.take(length)?.to_vec())
        }
        match u8::get(reader)? {
            0 => {
                let label = Label::from_bytes(&part(reader)?)?;
                Ok(Message::Ask(label, part(reader)?, part(reader)?))
            }
            1 => Ok(Message::Up(part(reader)?)),
            2 => Ok(Message::Refused),
            3 => Ok(Message::Share(part(reader)?)),
            4 => Ok(Message::Served(part(reader)?, part(reader)?)),
            _ => Err(Damaged),
        }
    }
}

impl Codec for Envelope {
    fn schema() -> String {
        "envelope".into()
    }
    fn put<S: Sink>(&self, sink: &mut S) {
        self.from.put(sink);
        self.to.put(sink);
        self.step.put(sink);
        self.message.put(sink);
    }
    fn get(reader: &mut Reader<'_>) -> Result<Self, Damaged> {
        Ok(Self {
            from: Peer::get(reader)?,
            to: Peer::get(reader)?,
            step: u32::get(reader)?,
            message: Message::get(reader)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn envelopes_survive_the_wire_and_damage_is_noticed() {
        let messages = [
            Message::Ask(Label::new(3).part(7), vec![1, 2], vec![]),
            Message::Up(vec![9; 40]),
            Message::Refused,
            Message::Share(vec![]),
            Message::Served(vec![], vec![7]),
        ];
        for message in messages {
            let envelope = Envelope { from: Peer::Server(1), to: Peer::Client(7), step: 4, message };
            let bytes = envelope.to_bytes();
            assert_eq!(Envelope::from_bytes(&bytes), Ok(envelope));
            for cut in 0..bytes.len() {
                assert_eq!(Envelope::from_bytes(&bytes[..cut]), Err(Damaged));
            }
        }
    }
}
