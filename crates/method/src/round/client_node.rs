//! A client behind messages: answers each step once, keeps its answer, and sends the same bytes again.

use super::Setting;
use super::client::{Broadcast, Client, Scratch};
use super::hello::Hello;
use super::messages::{Effect, Envelope, Message, Note, Peer, Record, words};
use crate::algorithm::{Algorithm, DELIVER, Label, Personal};
use crate::federation::Member;
use fedkin_numeric::codec::{Codec, Damaged, Encoder, Reader};
use fedkin_privacy::{Asked, Chain, LastAnswer, Sent, proofs};
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
    last: LastAnswer,
    /// The last step the server has closed, as far as this client knows.
    seen: u32,
    /// Whether the server has welcomed the ledger that this life began with.
    welcomed: bool,
    /// Why the server does not want this client's ledger or build; nothing where it does.
    turned: Option<String>,
    served: Option<Served>,
    over: bool,
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
        client.state_mut().continue_account(chain.account(setting.run.privacy.budget_units()));
        let hello = Hello { data, ..Hello::of::<A>(setting.fingerprint) };
        Self {
            setting,
            member,
            client,
            chain,
            hello,
            last: LastAnswer::default(),
            seen: 0,
            welcomed: false,
            turned: None,
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
        self.last.step()
    }

    /// Whether it has its served model on disk.
    pub fn is_served(&self) -> bool {
        self.served.is_some()
    }

    /// What it was served, as it came: broadcast and own part.
    pub fn served(&self) -> Option<(&[u8], &[u8])> {
        self.served.as_ref().map(|(common, down)| (&**common, &**down))
    }

    /// Why its server has turned it away; nothing where it has not, or has welcomed it since.
    pub fn turned(&self) -> Option<&str> {
        self.turned.as_deref().filter(|_| !self.over)
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
            let ask = proofs::ask(self.last.step(), DELIVER, &common, &down);
            self.client.personal(&self.setting.algorithm, ask, out);
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
        let hello = Hello { lines, head, spent, step: self.last.step(), ..self.hello.clone() };
        let mut effects = vec![self.send(self.last.step(), Message::Hello(hello))];
        if self.last.step() > self.seen {
            effects.extend(self.resend());
        }
        if self.served.is_some() {
            effects.push(self.send(self.last.step(), Message::Got));
        }
        effects
    }

    fn resend(&self) -> Option<Effect> {
        let (sent, lines) = self.last.sent()?;
        let message = match sent {
            Sent::Up(up) => Message::Up(up.clone(), lines),
            Sent::Refused(reason) => Message::Refused(*reason, lines),
        };
        Some(self.send(self.last.step(), message))
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
                if *lines == self.chain.head.seq {
                    self.welcomed = true;
                    self.turned = None;
                }
                Vec::new()
            }
            // Said of an older hello that was late, it means nothing.
            Message::Turned(why, lines) if *lines == self.chain.head.seq => {
                let why = words(why);
                // Nothing is answered before the server has welcomed this ledger again.
                self.welcomed = false;
                if self.turned.as_ref() == Some(&why) {
                    return Vec::new();
                }
                self.turned = Some(why.clone());
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
        let ask = proofs::ask(step, label, &broadcast.value, &down);
        if !self.setting.algorithm.fits_ask(self.client.local(), &ask) {
            return vec![Effect::Note(Note::Unreadable(server, step))];
        }
        let digest = LastAnswer::digest_of(step, label, &broadcast.digest, bytes);
        match self.last.compare(step, &digest) {
            Asked::Same => return self.resend().into_iter().collect(),
            Asked::Other => return vec![Effect::Note(Note::Equivocation(server, step))],
            Asked::Old => return Vec::new(),
            // An answer to a step that is closed could not be used, but would be paid for.
            Asked::New if step <= self.seen || self.served.is_some() => return Vec::new(),
            Asked::New => {}
        }
        if !self.welcomed {
            // The server may know a longer ledger than the one on this disk; it must have its say first.
            return self.beat();
        }
        let spare = std::mem::take(&mut scratch.spare);
        let work = (&mut scratch.answer, &mut scratch.buffers);
        let answer = self.client.answer(&self.setting.algorithm, &self.setting.run, ask, work, spare);
        let mut effects = Vec::with_capacity(3);
        let answer = match answer {
            Ok(up) => {
                let bytes = up.to_bytes().into();
                scratch.spare = up;
                if let Some(why) = scratch.answer.failure() {
                    effects.push(Effect::Note(Note::Constant(step, why)));
                }
                Ok(bytes)
            }
            Err(shown) => {
                let own = scratch.answer.refusal().unwrap_or(shown);
                effects.push(Effect::Note(Note::Withheld(step, own)));
                Err(shown)
            }
        };
        let from = (self.member.id, self.member.server, &self.setting.fingerprint);
        let lines = self.last.commit((step, digest), from, answer, &scratch.answer, &mut self.chain);
        effects.push(Effect::Commit(Record::Client { state: self.state(), lines }));
        effects.extend(self.resend());
        effects
    }

    fn serve(&mut self, step: u32, common: &[u8], down: &[u8]) -> Vec<Effect> {
        let server = Peer::Server(self.member.server);
        let read = A::Common::from_bytes(common).and_then(|common| Ok((common, A::Down::from_bytes(down)?)));
        let fits = read.is_ok_and(|(common, down)| {
            let ask = proofs::ask(step, DELIVER, &common, &down);
            self.setting.algorithm.fits_ask(self.client.local(), &ask)
        });
        if !fits {
            return vec![Effect::Note(Note::Unreadable(server, step))];
        }
        let got = self.send(self.last.step(), Message::Got);
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
        let upload = if let Some((Sent::Up(up), _)) = self.last.sent() { up.len() } else { 0 };
        let mut bytes = Encoder(Vec::with_capacity(256 + 2 * upload));
        self.last.save(&mut bytes, |bytes| self.client.state().memory().put(bytes));
        self.served.put(&mut bytes);
        bytes.0
    }

    /// Goes on from the last committed state. What was spent is known from the ledger given to `new`.
    pub fn restore(&mut self, state: &[u8]) -> Result<(), Damaged> {
        let mut reader = Reader::new(state);
        let client = self.client.state_mut();
        self.last = LastAnswer::restore(&mut reader, |reader| client.restore_memory(reader))?;
        self.served = Option::get(&mut reader)?;
        if reader.left() == 0 { Ok(()) } else { Err(Damaged) }
    }
}
