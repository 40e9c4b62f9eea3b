//! A client behind messages: answers each step once, keeps its answer, and sends the same bytes again.

use super::Setting;
use super::client::{Ask, Broadcast, Client, Scratch};
use super::hello::Hello;
use super::messages::{Effect, Envelope, Message, Note, Peer, Record};
use super::mutants::{Mutant, active};
use crate::algorithm::{Algorithm, DELIVER, Label, Personal};
use crate::codec::{Bytes, Codec, Damaged, Digest, Reader, Sink};
use crate::federation::Member;
use crate::privacy::{Chain, Refusal};
use std::sync::Arc;

/// A client as a node of a network.
pub struct ClientNode<A: Algorithm> {
    setting: Arc<Setting<A>>,
    member: Member,
    client: Client<A>,
    /// The client's ledger on its data, all runs together.
    chain: Chain,
    hello: Hello,
    /// The last step that was answered and committed.
    last: u32,
    /// What that step asked.
    digest: [u8; 32],
    /// The answer to it.
    outbox: Option<Answer>,
    /// The last step the server has closed, as far as this client knows.
    seen: u32,
    /// Whether the server has welcomed the ledger that this life began with.
    welcomed: bool,
    served: Option<Served>,
    over: bool,
}

/// An answer as it left, and how many lines the ledger had with it.
type Answer = (Sent, u64);

/// What left a client in a step.
enum Sent {
    /// An upload.
    Up(Box<[u8]>),
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
                bytes.put(sink);
            }
            Sent::Refused(reason) => {
                false.put(sink);
                reason.put(sink);
            }
        }
    }
    fn get(reader: &mut Reader<'_>) -> Result<Self, Damaged> {
        Ok(if bool::get(reader)? {
            Sent::Up(Codec::get(reader)?)
        } else {
            Sent::Refused(Codec::get(reader)?)
        })
    }
}

/// What the client was served at the end: broadcast and own part.
type Served = (Box<[u8]>, Box<[u8]>);

impl<A: Algorithm> ClientNode<A> {
    /// A client before the first step. `data` is the digest of its records that it shows to its server, `chain`
    /// what was spent on them so far, in this run and others.
    pub fn new(
        setting: Arc<Setting<A>>,
        member: Member,
        local: A::Local,
        secret: [u8; 32],
        data: [u8; 32],
        chain: Chain,
    ) -> Self {
        let mut client = Client::new(local, &setting.run, secret);
        client.account = chain.account(setting.run.privacy.budget_units());
        let hello = Hello { data, ..Hello::of::<A>(setting.fingerprint) };
        Self {
            setting,
            member,
            client,
            chain,
            hello,
            last: 0,
            digest: [0; 32],
            outbox: None,
            seen: 0,
            welcomed: false,
            served: None,
            over: false,
        }
    }

    /// Who it is.
    pub fn member(&self) -> &Member {
        &self.member
    }

    /// The client.
    pub fn client(&self) -> &Client<A> {
        &self.client
    }

    /// The client's ledger.
    pub fn chain(&self) -> &Chain {
        &self.chain
    }

    /// The last step it has answered.
    pub fn step(&self) -> u32 {
        self.last
    }

    /// Whether it has its served model on disk.
    pub fn is_served(&self) -> bool {
        self.served.is_some()
    }

    /// What it was served, as it came: broadcast and own part.
    pub fn served(&self) -> Option<(&[u8], &[u8])> {
        self.served.as_ref().map(|(common, down)| (&**common, &**down))
    }

    /// Whether its server needs nothing more from it.
    pub fn is_over(&self) -> bool {
        self.over
    }

    /// Calls `out` with the client's models, once it has been served.
    pub fn personal(&self, out: &mut Personal<'_>) {
        if let Some((common, down)) = &self.served
            && let (Ok(common), Ok(down)) = (A::Common::from_bytes(common), A::Down::from_bytes(down))
        {
            let ask = Ask::new(self.last, DELIVER, &common, &down);
            self.setting.algorithm.personal(&self.client.local, &self.client.memory.look(), ask, out);
        }
    }

    fn send(&self, step: u32, message: Message) -> Effect {
        let (from, to) = (Peer::Client(self.member.id), Peer::Server(self.member.server));
        Effect::Send(Envelope { from, to, step, message })
    }

    /// A sign of life, and everything the server may not have yet.
    pub fn beat(&self) -> Vec<Effect> {
        if self.over {
            return Vec::new();
        }
        let (lines, head, spent) = (self.chain.head.seq, self.chain.head.hash, self.chain.spent);
        let hello = Hello { lines, head, spent, step: self.last, ..self.hello.clone() };
        let mut effects = vec![self.send(self.last, Message::Hello(hello))];
        if self.last > self.seen {
            effects.extend(self.resend());
        }
        if self.served.is_some() {
            effects.push(self.send(self.last, Message::Got));
        }
        effects
    }

    fn resend(&self) -> Option<Effect> {
        let (sent, lines) = self.outbox.as_ref()?;
        let message = match sent {
            Sent::Up(up) => Message::Up(up.to_vec(), *lines),
            Sent::Refused(reason) => Message::Refused(*reason, *lines),
        };
        Some(self.send(self.last, message))
    }

    /// Takes a message. A step newer than the last is answered; the last one is answered with the stored
    /// bytes if it asks the same, and not at all if it asks something else; older ones are ignored, and so are
    /// those the server has closed. Nothing is answered before the server has welcomed this client's ledger.
    pub fn receive(&mut self, envelope: &Envelope, scratch: &mut Scratch<A>) -> Vec<Effect> {
        let server = Peer::Server(self.member.server);
        if envelope.from != server || envelope.to != Peer::Client(self.member.id) {
            return Vec::new();
        }
        match &envelope.message {
            Message::Ask(label, common, down) => self.asked(envelope.step, *label, common, down, scratch),
            Message::Served(common, down) => self.serve(envelope.step, common, down),
            Message::Welcome(seen, lines) => {
                self.seen = self.seen.max(*seen);
                // Said of a hello from before a restart, it is no welcome for this ledger.
                self.welcomed |= *lines == self.chain.head.seq;
                Vec::new()
            }
            // Said of an older hello that was late, it means nothing.
            Message::Turned(why, lines) if *lines == self.chain.head.seq => {
                let why = String::from_utf8_lossy(why).into_owned();
                vec![Effect::Note(Note::Turned(server, why))]
            }
            Message::Bye if self.served.is_some() && !self.over => {
                self.over = true;
                vec![Effect::Done]
            }
            _ => Vec::new(),
        }
    }

    fn asked(
        &mut self,
        step: u32,
        label: Label,
        common: &Arc<[u8]>,
        bytes: &[u8],
        scratch: &mut Scratch<A>,
    ) -> Vec<Effect> {
        let last = scratch.broadcast.take();
        let Ok(broadcast) = Broadcast::of(common, last) else {
            return vec![Effect::Note(Note::Unreadable(Peer::Server(self.member.server), step))];
        };
        let effects = self.asked_with(step, label, &broadcast, bytes, scratch);
        scratch.broadcast = Some(broadcast);
        effects
    }

    fn asked_with(
        &mut self,
        step: u32,
        label: Label,
        broadcast: &Broadcast<A>,
        bytes: &[u8],
        scratch: &mut Scratch<A>,
    ) -> Vec<Effect> {
        let server = Peer::Server(self.member.server);
        let Ok(down) = A::Down::from_bytes(bytes) else {
            return vec![Effect::Note(Note::Unreadable(server, step))];
        };
        let ask = Ask::new(step, label, &broadcast.value, &down);
        if !self.setting.algorithm.fits_ask(&self.client.local, &ask) {
            return vec![Effect::Note(Note::Unreadable(server, step))];
        }
        let digest = {
            let mut digest = Digest::default();
            step.put(&mut digest);
            label.put(&mut digest);
            broadcast.digest.put(&mut digest);
            digest.bytes(bytes);
            digest.finish()
        };
        let redraw = active(Mutant::RedrawOnRefusal) && matches!(self.outbox, Some((Sent::Refused(_), _)));
        if step == self.last && !(redraw && digest == self.digest) {
            if digest == self.digest || active(Mutant::DedupByKey) {
                return self.resend().into_iter().collect();
            }
            return vec![Effect::Note(Note::Equivocation(server, step))];
        }
        // An answer to a step that is closed could not be used, but would be paid for.
        if step < self.last || step <= self.seen || self.served.is_some() {
            return Vec::new();
        }
        if !self.welcomed {
            // The server may know a longer ledger than the one on this disk; it must have its say first.
            return self.beat();
        }
        let spare = std::mem::take(&mut scratch.spare);
        let answer =
            self.client.answer(&self.setting.algorithm, &self.setting.run, ask, &mut scratch.desk, spare);
        let mut effects = Vec::with_capacity(3);
        let fingerprint = &self.setting.fingerprint;
        let (sent, lines) = match answer {
            Ok(up) => {
                let bytes = up.to_bytes().into_boxed_slice();
                scratch.spare = up;
                let sent = sent_digest(&self.member, step, Some(&bytes));
                let lines = self.chain.extend(scratch.charges(), fingerprint, step, &sent);
                (Sent::Up(bytes), lines)
            }
            Err(shown) => {
                let own = scratch.desk.refusal.unwrap_or(shown);
                effects.push(Effect::Note(Note::Withheld(step, own)));
                let sent = sent_digest(&self.member, step, None);
                let shown = if active(Mutant::ReasonLeaves) { own } else { shown };
                (Sent::Refused(shown), self.chain.refuse(own, fingerprint, step, &sent))
            }
        };
        self.last = step;
        self.digest = digest;
        self.outbox = Some((sent, self.chain.head.seq));
        effects.push(Effect::Commit(Record::Client { state: self.state(), lines }));
        effects.extend(self.resend());
        effects
    }

    fn serve(&mut self, step: u32, common: &[u8], down: &[u8]) -> Vec<Effect> {
        let server = Peer::Server(self.member.server);
        let read = A::Common::from_bytes(common).and_then(|common| Ok((common, A::Down::from_bytes(down)?)));
        let fits = read.is_ok_and(|(common, down)| {
            let ask = Ask::new(step, DELIVER, &common, &down);
            self.setting.algorithm.fits_ask(&self.client.local, &ask)
        });
        if !fits {
            return vec![Effect::Note(Note::Unreadable(server, step))];
        }
        let got = self.send(self.last, Message::Got);
        match &self.served {
            Some((known, own)) if **known == *common && **own == *down => vec![got],
            Some(_) => vec![Effect::Note(Note::Equivocation(server, step))],
            None => {
                self.served = Some((common.into(), down.into()));
                vec![Effect::Commit(Record::Client { state: self.state(), lines: Vec::new() }), got]
            }
        }
    }

    /// Memory and outbox together; the ledger lines join them in the record, so that none can be lost alone.
    fn state(&self) -> Vec<u8> {
        // The outbox is the longest part, the memory often as long.
        let upload = if let Some((Sent::Up(up), _)) = &self.outbox { up.len() } else { 0 };
        let mut bytes = Bytes(Vec::with_capacity(256 + 2 * upload));
        self.last.put(&mut bytes);
        self.digest.put(&mut bytes);
        self.client.memory.look().put(&mut bytes);
        self.outbox.put(&mut bytes);
        self.served.put(&mut bytes);
        bytes.0
    }

    /// Goes on from the last committed state. What was spent is known from the ledger given to `new`.
    pub fn restore(&mut self, state: &[u8]) -> Result<(), Damaged> {
        let mut reader = Reader::new(state);
        self.last = u32::get(&mut reader)?;
        self.digest = <[u8; 32]>::get(&mut reader)?;
        self.client.memory.set(A::Memory::get(&mut reader)?);
        self.outbox = Option::get(&mut reader)?;
        self.served = Option::get(&mut reader)?;
        if reader.left() == 0 { Ok(()) } else { Err(Damaged) }
    }
}

/// The digest of what leaves a client in a step, as its ledger names it: of the upload, or of nothing.
pub fn sent_digest(member: &Member, step: u32, up: Option<&[u8]>) -> [u8; 32] {
    let mut digest = Digest::default();
    member.id.put(&mut digest);
    member.server.put(&mut digest);
    step.put(&mut digest);
    up.is_some().put(&mut digest);
    if let Some(up) = up {
        digest.length(up.len());
        digest.bytes(up);
    }
    digest.finish()
}
