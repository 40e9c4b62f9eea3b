//! A client behind messages: answers each step once, keeps its answer, and sends the same bytes again.

use super::client::{Ask, Client, Scratch};
use super::messages::{Effect, Envelope, Message, Peer};
use crate::algorithm::{Algorithm, DELIVER, Run};
use crate::codec::{Bytes, Codec, Damaged, Reader};
use crate::federation::Member;

/// A client as a node of a network.
pub struct ClientNode<A: Algorithm> {
    member: Member,
    client: Client<A>,
    scratch: Scratch<A>,
    last: u32,
    digest: [u8; 32],
    outbox: Option<Envelope>,
    served: Option<(A::Common, A::Down)>,
}

impl<A: Algorithm> ClientNode<A> {
    /// A client before the first step.
    pub fn new(member: Member, local: A::Local, run: &Run, secret: [u8; 32]) -> Self {
        let client = Client::new(local, run, secret);
        let scratch = Scratch::default();
        Self { member, client, scratch, last: 0, digest: [0; 32], outbox: None, served: None }
    }

    /// The client.
    pub fn client(&self) -> &Client<A> {
        &self.client
    }

    /// What the client was served at the end.
    pub fn served(&self) -> Option<&(A::Common, A::Down)> {
        self.served.as_ref()
    }

    /// Calls `out` with the client's models, once it has been served.
    pub fn personal(&self, algorithm: &A, out: &mut crate::algorithm::Personal<'_>) {
        if let Some((common, down)) = &self.served {
            let ask = Ask::new(self.last, DELIVER, common, down);
            algorithm.personal(&self.client.local, &self.client.memory, ask, out);
        }
    }

    /// Takes a message. A step newer than the last is answered; the last one is answered with the stored
    /// bytes if it asks the same, and not at all if it asks something else; older ones are ignored.
    pub fn receive(&mut self, algorithm: &A, run: &Run, envelope: &Envelope) -> Vec<Effect> {
        if envelope.from != Peer::Server(self.member.server) || envelope.to != Peer::Client(self.member.id) {
            return Vec::new();
        }
        match &envelope.message {
            Message::Ask(label, common, down) => {
                let (Ok(common), Ok(down)) = (A::Common::from_bytes(common), A::Down::from_bytes(down))
                else {
                    return Vec::new();
                };
                let ask = Ask::new(envelope.step, *label, &common, &down);
                let digest = ask.digest();
                if envelope.step == self.last && digest == self.digest {
                    return self.outbox.iter().cloned().map(Effect::Send).collect();
                }
                if envelope.step <= self.last {
                    return Vec::new();
                }
                let scratch = &mut self.scratch;
                let answer = self.client.answer(algorithm, run, ask, scratch);
                let message = match answer {
                    Ok(up) => {
                        let bytes = up.to_bytes();
                        scratch.up = up;
                        Message::Up(bytes)
                    }
                    Err(_) => Message::Refused,
                };
                self.last = envelope.step;
                self.digest = digest;
                let reply = Envelope { from: envelope.to, to: envelope.from, step: envelope.step, message };
                self.outbox = Some(reply.clone());
                vec![Effect::Commit(self.record()), Effect::Send(reply)]
            }
            Message::Served(common, down) => {
                let (Ok(common), Ok(down)) = (A::Common::from_bytes(common), A::Down::from_bytes(down))
                else {
                    return Vec::new();
                };
                let first = self.served.is_none();
                self.served = Some((common, down));
                if first { vec![Effect::Commit(self.record()), Effect::Done] } else { Vec::new() }
            }
            Message::Up(_) | Message::Refused | Message::Share(_) => Vec::new(),
        }
    }

    /// One record: state, account and outbox together, so that none of them can be lost alone.
    fn record(&self) -> Vec<u8> {
        let mut bytes = Bytes::default();
        self.last.put(&mut bytes);
        bytes.0.extend_from_slice(&self.digest);
        self.client.save(&mut bytes);
        self.outbox.put(&mut bytes);
        self.served.put(&mut bytes);
        bytes.0
    }

    /// Goes on from the last committed record.
    pub fn restore(&mut self, record: &[u8]) -> Result<(), Damaged> {
        let mut reader = Reader::new(record);
        self.last = u32::get(&mut reader)?;
        self.digest.copy_from_slice(reader.take(32)?);
        self.client.restore(&mut reader)?;
        self.outbox = Option::get(&mut reader)?;
        self.served = Option::get(&mut reader)?;
        Ok(())
    }

    /// What is to be sent again after a restart.
    pub fn resend(&self) -> Vec<Effect> {
        self.outbox.iter().cloned().map(Effect::Send).collect()
    }
}
