//! What crosses between nodes, and what a node wants done.

use super::hello::Hello;
use super::payload::{Out, Payload, Pieces, Plain};
use super::stop::Stop;
use crate::algorithm::Label;
use bytes::Bytes;
use fedkin_numeric::codec::{Codec, Damaged, Reader, Sink};
use fedkin_privacy::{ChainLine, Refusal};
use std::sync::Arc;

/// A node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Peer {
    /// A server by id.
    Server(u32),
    /// A client by id.
    Client(u32),
}

/// The contents of an envelope: encoded values of the method, and what nodes say about themselves.
#[derive(Debug, Clone, PartialEq)]
pub enum Message {
    /// Who a node is and how far it has come; also its sign of life.
    Hello(Hello),
    /// A server's answer to a client's hello: the last step it has closed, and how many ledger lines that hello
    /// had named.
    Welcome(u32, u64),
    /// A hello was turned away, for this reason; and how many ledger lines that hello had named.
    Turned(Box<[u8]>, u64),
    /// Server to client: label, then the encoded broadcast and the client's own part.
    Ask(Label, Arc<[u8]>, Bytes),
    /// Client to server: the encoded upload, and how many lines the client's ledger has with it.
    Up(Bytes, u64),
    /// Client to server: nothing leaves in this step, for this reason as far as a server may know it; and how many
    /// lines its ledger has.
    Refused(Refusal, u64),
    /// Server to server: the encoded share.
    Share(Bytes),
    /// Server to client: the encoded broadcast and the client's own part of what it is served.
    Served(Arc<[u8]>, Bytes),
    /// Client to server: what it was served is on its disk.
    Got,
    /// Server to client: the client's part of the run is over.
    Bye,
    /// Server to server: the run cannot go on.
    Stop(Stop),
}

/// A message with its way and its step.
#[derive(Debug, Clone, PartialEq)]
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

/// What must be on disk before anything after it is sent.
#[derive(Debug, Clone, PartialEq)]
pub enum Record {
    /// A client's whole state together with the ledger lines that pay for the bytes in it.
    Client {
        /// The new state, outbox included; it replaces the earlier one.
        state: Vec<u8>,
        /// The lines that join the client's ledger.
        lines: Vec<ChainLine>,
    },
    /// A server's whole state; it replaces all earlier records.
    Full(Vec<u8>),
    /// What changed at a server since the record before.
    Delta(Vec<u8>),
}

/// What happened that a person or a counter wants to know. Nothing here depends on a client's data
/// beyond what it released.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Note {
    /// A node has introduced itself and fits.
    Joined(Peer),
    /// A node does not fit and was turned away; or this node was.
    Turned(Peer, String),
    /// The same between this server and a neighbour where rounds have deadlines: this server goes on without the
    /// neighbour's shares until it introduces itself again and fits.
    Refused(Peer, String),
    /// A node fits but its numbers may differ in the last bits.
    OtherNumerics(Peer, String),
    /// A hello named fewer ledger lines (first number) than were seen: it is late, which a newer hello will show, or an
    /// old disk was restored.
    Behind(Peer, u64, u64),
    /// An answer came with fewer ledger lines (first number) than were seen: an old disk was restored.
    OldDisk(Peer, u64, u64),
    /// An upload was turned away at the door.
    Rejected {
        /// Whose.
        client: u32,
        /// In which step.
        step: u32,
        /// Why.
        reason: String,
    },
    /// A node said two different things about one step.
    Equivocation(Peer, u32),
    /// An answer came after its step was closed.
    Late(u32, u32),
    /// A message could not be read.
    Unreadable(Peer, u32),
    /// A client would not answer in this step.
    Withheld(u32, Refusal),
    /// A client's answer in this step is a constant with noise, because its own work failed for this reason. For its own
    /// people: nobody else can tell.
    Constant(u32, Refusal),
    /// A server has closed a step.
    Closed {
        /// Which.
        step: u32,
        /// How the answers were judged.
        counts: crate::algorithm::Counts,
        /// Who was asked and did not answer in time, by client id.
        missing: Vec<u32>,
    },
    /// This server knows that the run cannot go on, or knows of an earlier reason than before.
    Stopped(Stop),
    /// With deadlines: a neighbour says that it cannot go on. The others do without it.
    Left(u32, Stop),
    /// A server has mixed without these neighbours.
    Without(u32, Vec<u32>),
}

/// What a node wants done, in this order: a commit is on disk before anything after it is sent.
#[derive(Debug, Clone, PartialEq)]
pub enum Effect {
    /// Keep this record.
    Commit(Record),
    /// Send this.
    Send(Envelope),
    /// Tell people.
    Note(Note),
    /// The node's part of the run is over. A client may leave; a server stays to answer those that have not
    /// heard it yet.
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

/// Most of a reason that another node gives.
const WORDS: usize = 400;

/// What another node wrote for people: so much of it, and in one line.
pub(in crate::round) fn words(text: &[u8]) -> String {
    let text = String::from_utf8_lossy(&text[..text.len().min(WORDS)]);
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

impl std::fmt::Display for Peer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Peer::Server(id) => write!(f, "server {id}"),
            Peer::Client(id) => write!(f, "client {id}"),
        }
    }
}

fn blob<S: Out>(bytes: &Bytes, sink: &mut S) {
    (bytes.len() as u64).put(sink);
    sink.shared(bytes);
}

fn take<'a>(reader: &mut Reader<'a>) -> Result<&'a [u8], Damaged> {
    let length = reader.length(1)?;
    reader.take(length)
}

impl Message {
    /// Writes the message. A broadcast that equals `last` is written as one byte: envelopes for the clients of one
    /// process travel together and share it.
    fn put<'a, S: Out>(&'a self, last: &mut Option<&'a Arc<[u8]>>, sink: &mut S) {
        let mut broadcast = |common: &'a Arc<[u8]>, sink: &mut S| {
            let same = last.is_some_and(|last| last == common);
            same.put(sink);
            if !same {
                blob(&Bytes::from_owner(Arc::clone(common)), sink);
                *last = Some(common);
            }
        };
        match self {
            Message::Hello(hello) => {
                0u8.put(sink);
                hello.put(sink);
            }
            Message::Welcome(step, lines) => {
                1u8.put(sink);
                step.put(sink);
                lines.put(sink);
            }
            Message::Turned(why, lines) => {
                2u8.put(sink);
                (why.len() as u64).put(sink);
                sink.bytes(why);
                lines.put(sink);
            }
            Message::Ask(label, common, down) => {
                3u8.put(sink);
                label.put(sink);
                broadcast(common, sink);
                blob(down, sink);
            }
            Message::Up(up, lines) => {
                4u8.put(sink);
                blob(up, sink);
                lines.put(sink);
            }
            Message::Refused(reason, lines) => {
                5u8.put(sink);
                reason.put(sink);
                lines.put(sink);
            }
            Message::Share(share) => {
                6u8.put(sink);
                blob(share, sink);
            }
            Message::Served(common, down) => {
                7u8.put(sink);
                broadcast(common, sink);
                blob(down, sink);
            }
            Message::Got => 8u8.put(sink),
            Message::Bye => 9u8.put(sink),
            Message::Stop(stop) => {
                10u8.put(sink);
                stop.put(sink);
            }
        }
    }

    /// Reads a message out of a payload; what is long stays where it is and is shared.
    fn get(last: &mut Option<Arc<[u8]>>, payload: &Bytes, reader: &mut Reader<'_>) -> Result<Self, Damaged> {
        let own = |reader: &mut Reader<'_>| take(reader).map(|part| payload.slice_ref(part));
        let mut broadcast = |reader: &mut Reader<'_>| -> Result<Arc<[u8]>, Damaged> {
            if !bool::get(reader)? {
                *last = Some(take(reader)?.into());
            }
            last.clone().ok_or(Damaged)
        };
        Ok(match u8::get(reader)? {
            0 => Message::Hello(Hello::get(reader)?),
            1 => Message::Welcome(u32::get(reader)?, u64::get(reader)?),
            2 => Message::Turned(take(reader)?.into(), u64::get(reader)?),
            3 => Message::Ask(Label::get(reader)?, broadcast(reader)?, own(reader)?),
            4 => Message::Up(own(reader)?, u64::get(reader)?),
            5 => Message::Refused(Refusal::get(reader)?, u64::get(reader)?),
            6 => Message::Share(own(reader)?),
            7 => Message::Served(broadcast(reader)?, own(reader)?),
            8 => Message::Got,
            9 => Message::Bye,
            10 => Message::Stop(Stop::get(reader)?),
            _ => return Err(Damaged),
        })
    }
}

impl Envelope {
    fn put<'a, S: Out>(&'a self, last: &mut Option<&'a Arc<[u8]>>, sink: &mut S) {
        self.from.put(sink);
        self.to.put(sink);
        self.step.put(sink);
        self.message.put(last, sink);
    }

    fn get(last: &mut Option<Arc<[u8]>>, payload: &Bytes, reader: &mut Reader<'_>) -> Result<Self, Damaged> {
        Ok(Self {
            from: Peer::get(reader)?,
            to: Peer::get(reader)?,
            step: u32::get(reader)?,
            message: Message::get(last, payload, reader)?,
        })
    }

    /// What a server compares when the same client answers the same step twice.
    pub fn digest(&self) -> [u8; 32] {
        let mut digest = fedkin_numeric::codec::Digest::default();
        self.put(&mut None, &mut Plain(&mut digest));
        digest.finish()
    }
}

/// The version of everything in this file.
pub const PROTOCOL: u16 = 2;

/// Why a batch was not opened.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unopened {
    /// Not a batch at all, or cut short.
    #[error("damaged or truncated")]
    Damaged,
    /// Another version of the protocol.
    #[error("protocol {theirs}, this node speaks {PROTOCOL}")]
    Protocol {
        /// The version of the sender.
        theirs: u16,
    },
    /// A message of another run.
    #[error("run {theirs}, this node is in run {ours}")]
    OtherRun {
        /// The run of the sender.
        theirs: String,
        /// The run of this node.
        ours: String,
    },
}

/// Envelopes that travel together from one process to another: protocol, run, then the envelopes.
pub fn seal(run: &[u8; 32], envelopes: &[Envelope]) -> Payload {
    let mut bytes = Pieces::default();
    PROTOCOL.put(&mut bytes);
    run.put(&mut bytes);
    (envelopes.len() as u32).put(&mut bytes);
    let mut last = None;
    for envelope in envelopes {
        Envelope::put(envelope, &mut last, &mut bytes);
    }
    bytes.done()
}

/// Opens what [`seal`] closed; refuses another protocol or run by name.
pub fn open(run: &[u8; 32], bytes: &Bytes) -> Result<Vec<Envelope>, Unopened> {
    let mut reader = Reader::new(bytes);
    let theirs = u16::get(&mut reader).map_err(|_| Unopened::Damaged)?;
    if theirs != PROTOCOL {
        return Err(Unopened::Protocol { theirs });
    }
    let read = |reader: &mut Reader<'_>| -> Result<([u8; 32], Vec<Envelope>), Damaged> {
        let theirs = <[u8; 32]>::get(reader)?;
        if theirs != *run {
            return Ok((theirs, Vec::new()));
        }
        let count = u32::get(reader)? as usize;
        // The count is not to be believed: an envelope has at least 15 bytes.
        let mut envelopes = Vec::with_capacity(count.min(reader.left() / 15));
        let mut last = None;
        for _ in 0..count {
            envelopes.push(Envelope::get(&mut last, bytes, reader)?);
        }
        if reader.left() == 0 { Ok((theirs, envelopes)) } else { Err(Damaged) }
    };
    match read(&mut reader) {
        Err(Damaged) => Err(Unopened::Damaged),
        Ok((theirs, _)) if theirs != *run => {
            Err(Unopened::OtherRun { theirs: super::hello::short(&theirs), ours: super::hello::short(run) })
        }
        Ok((_, envelopes)) => Ok(envelopes),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn envelopes() -> Vec<Envelope> {
        let common: Arc<[u8]> = Arc::from([1u8, 2, 3]);
        let messages = [
            Message::Hello(Hello::default()),
            Message::Ask(Label::new(3).part(7), common.clone(), Bytes::new()),
            Message::Ask(Label::new(3), common.clone(), vec![5].into()),
            Message::Up(vec![9; 40].into(), 3),
            Message::Refused(Refusal::Unsolved, 2),
            Message::Share(Bytes::new()),
            Message::Served(common, vec![7].into()),
            Message::Welcome(4, 2),
            Message::Turned(Box::from(*b"no"), 1),
            Message::Got,
            Message::Bye,
        ];
        let wrap = |message| Envelope { from: Peer::Server(1), to: Peer::Client(7), step: 4, message };
        messages.into_iter().map(wrap).collect()
    }

    #[test]
    fn batches_survive_the_wire_and_damage_is_noticed() {
        let run = [7; 32];
        let bytes = seal(&run, &envelopes()).to_bytes();
        assert_eq!(open(&run, &bytes), Ok(envelopes()));
        for cut in 0..bytes.len() {
            assert_eq!(open(&run, &bytes.slice(..cut)), Err(Unopened::Damaged), "cut at {cut}");
        }
        let longer = [&bytes[..], &[0]].concat().into();
        assert_eq!(open(&run, &longer), Err(Unopened::Damaged));
    }

    /// From the stored answer to the wire an upload is copied once, by the transport; none on the way back.
    #[test]
    fn a_long_upload_is_shared_by_payload_and_envelopes() {
        let upload = Bytes::from(vec![7u8; 100_000]);
        let message = Message::Up(upload.clone(), 1);
        let envelope = Envelope { from: Peer::Client(7), to: Peer::Server(1), step: 4, message };
        let payload = seal(&[7; 32], std::slice::from_ref(&envelope));
        assert!(payload.pieces().iter().any(|piece| piece.as_ptr() == upload.as_ptr()));
        let wire = payload.to_bytes();
        assert_eq!(wire.len(), payload.len());
        let opened = open(&[7; 32], &wire).unwrap();
        assert_eq!(opened[..], [envelope]);
        let Message::Up(found, _) = &opened[0].message else { panic!() };
        assert!(wire.as_ptr_range().contains(&found.as_ptr()));
    }

    #[test]
    fn another_protocol_or_run_is_refused_by_name() {
        let bytes = seal(&[7; 32], &envelopes()).to_bytes();
        assert!(matches!(open(&[8; 32], &bytes), Err(Unopened::OtherRun { .. })));
        let mut other = bytes.to_vec();
        other[0] = 9;
        assert_eq!(open(&[7; 32], &other.into()), Err(Unopened::Protocol { theirs: 9 }));
    }

    #[test]
    fn a_shared_broadcast_is_written_once() {
        let common: Arc<[u8]> = vec![1u8; 1000].into();
        let ask = |k| Envelope {
            from: Peer::Server(0),
            to: Peer::Client(k),
            step: 1,
            message: Message::Ask(Label::new(0), common.clone(), vec![k as u8].into()),
        };
        let all: Vec<Envelope> = (0..10).map(ask).collect();
        let bytes = seal(&[0; 32], &all).to_bytes();
        assert!(bytes.len() < 1500, "{}", bytes.len());
        assert_eq!(open(&[0; 32], &bytes), Ok(all));
    }
}
