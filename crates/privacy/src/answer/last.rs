//! The last answer of a client: stored before it leaves, and sent again as it is.

use super::ask::Label;
use super::client::AnswerScratch;
use crate::chain::{Chain, ChainLine};
use crate::mutants::{Mutant, active};
use crate::refusal::Refusal;
use bytes::Bytes;
use fedkin_numeric::codec::{Codec, Damaged, Digest, Reader, Sink};

/// What left a client in a step.
pub enum Sent {
    /// An upload.
    Up(Bytes),
    /// A refusal, and what the server sees of its reason.
    Refused(Refusal),
}

impl Codec for Sent {
    fn schema() -> String {
        "sent".into()
    }
    fn put<S: Sink>(&self, sink: &mut S) {
        match self {
            Sent::Up(bytes) => {
                true.put(sink);
                sink.length(bytes.len());
                sink.bytes(bytes);
            }
            Sent::Refused(reason) => {
                false.put(sink);
                reason.put(sink);
            }
        }
    }
    fn get(reader: &mut Reader<'_>) -> Result<Self, Damaged> {
        Ok(if bool::get(reader)? {
            Sent::Up(Vec::from(Box::<[u8]>::get(reader)?).into())
        } else {
            Sent::Refused(Codec::get(reader)?)
        })
    }
}

/// How an ask relates to the last answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Asked {
    /// It is for a later step.
    New,
    /// It is the one that was answered: the same bytes are sent again.
    Same,
    /// It is for the step that was answered and asks something else: the server contradicts itself.
    Other,
    /// It is for an earlier step.
    Old,
}

/// The last step that a client has answered: what was asked, what left, and how many lines the ledger had with it.
#[derive(Default)]
pub struct LastAnswer {
    step: u32,
    digest: [u8; 32],
    sent: Option<(Sent, u64)>,
}

impl LastAnswer {
    /// The step; 0 where there was none.
    pub fn step(&self) -> u32 {
        self.step
    }

    /// What left, and how many lines the ledger had with it.
    pub fn sent(&self) -> Option<(&Sent, u64)> {
        self.sent.as_ref().map(|(sent, lines)| (sent, *lines))
    }

    /// The digest of an ask: the broadcast by its own digest, which all clients of a process share.
    pub fn digest_of(step: u32, label: Label, broadcast: &[u8; 32], down: &[u8]) -> [u8; 32] {
        let mut digest = Digest::default();
        step.put(&mut digest);
        label.put(&mut digest);
        broadcast.put(&mut digest);
        digest.bytes(down);
        digest.finish()
    }

    /// How an ask of this step and digest relates to the last answer.
    pub fn compare(&self, step: u32, digest: &[u8; 32]) -> Asked {
        let redraw = active(Mutant::RedrawOnRefusal) && matches!(self.sent, Some((Sent::Refused(_), _)));
        if step == self.step && !(redraw && *digest == self.digest) {
            let same = *digest == self.digest || active(Mutant::DedupByKey);
            return if same { Asked::Same } else { Asked::Other };
        }
        if step < self.step { Asked::Old } else { Asked::New }
    }

    /// Writes an answer down: the lines that the ledger grows by, to be stored together with this. `client` and `server`
    /// are ids, `run` is the fingerprint of the run, `scratch` the one that [`answer`](super::ClientState::answer) had.
    pub fn commit(
        &mut self,
        (step, digest): (u32, [u8; 32]),
        (client, server, run): (u32, u32, &[u8; 32]),
        answer: Result<Bytes, Refusal>,
        scratch: &AnswerScratch,
        chain: &mut Chain,
    ) -> Vec<ChainLine> {
        let (sent, lines) = match answer {
            Ok(bytes) => {
                let sent = sent_digest(client, server, step, Some(&bytes));
                let lines = chain.extend(scratch.charges(), run, step, &sent);
                (Sent::Up(bytes), lines)
            }
            Err(shown) => {
                let own = scratch.refusal().unwrap_or(shown);
                let sent = sent_digest(client, server, step, None);
                let shown = if active(Mutant::ReasonLeaves) { own } else { shown };
                (Sent::Refused(shown), chain.refuse(own, run, step, &sent))
            }
        };
        *self = Self { step, digest, sent: Some((sent, chain.head.seq)) };
        lines
    }

    /// Writes what must survive a restart; `between` writes what the stored state has between ask and answer.
    pub fn save<S: Sink>(&self, sink: &mut S, between: impl FnOnce(&mut S)) {
        self.step.put(sink);
        self.digest.put(sink);
        between(sink);
        self.sent.put(sink);
    }

    /// Reads what `save` wrote.
    pub fn restore<'a>(
        reader: &mut Reader<'a>,
        between: impl FnOnce(&mut Reader<'a>) -> Result<(), Damaged>,
    ) -> Result<Self, Damaged> {
        let (step, digest) = (u32::get(reader)?, <[u8; 32]>::get(reader)?);
        between(reader)?;
        Ok(Self { step, digest, sent: Option::get(reader)? })
    }
}

/// The digest of what leaves a client in a step, as its ledger names it: of the upload, or of nothing.
pub fn sent_digest(client: u32, server: u32, step: u32, up: Option<&[u8]>) -> [u8; 32] {
    let mut digest = Digest::default();
    client.put(&mut digest);
    server.put(&mut digest);
    step.put(&mut digest);
    up.is_some().put(&mut digest);
    if let Some(up) = up {
        digest.length(up.len());
        digest.bytes(up);
    }
    digest.finish()
}
