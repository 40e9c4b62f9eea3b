//! A server behind messages: plans, asks, folds in id order whatever order answers come in, shares, mixes.

use super::Setting;
use super::hello::Hello;
use super::messages::{Effect, Envelope, Message, Peer, words};
use super::server::{CHUNK, Server};
use super::stop::Stop;
use crate::algorithm::{Algorithm, Label, ROUND, Verdict};
use crate::federation::Federation;
use bytes::Bytes;
use fedkin_numeric::codec::{Codec, Encoder, Sink};
use fedkin_privacy::Refusal;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// When a step is closed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Mode {
    /// Every asked client is awaited, and every neighbour.
    Strict,
    /// Closed once this share of the asked clients has answered, or when the time is up. The rest is missing.
    Deadline {
        /// Between 0 (excluded) and 1.
        quorum: f64,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::round) enum Stage {
    /// Waits for the answers of its clients.
    Asking,
    /// Waits for the shares of its neighbours.
    Sharing,
    /// Delivers.
    Ended,
    /// Delivers because the run cannot go on: its last step is closed and was not mixed.
    Stopped,
}

fedkin_numeric::record! {
    /// What a server remembers of a client's hello and answers.
    pub struct Known {
        /// The digest of the client's data.
        data: [u8; 32],
        /// The most ledger lines it has shown.
        lines: u64,
        /// The hash it gave for that many lines; zero where it came with an upload.
        head: [u8; 32],
        /// Units it said it has spent.
        spent: u64,
        /// The last step it has answered.
        step: u32,
    }
}

/// How much a server holds for others, in messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Backlog {
    /// Shares, its own and its neighbours'.
    pub shares: usize,
    /// Answers that wait for those of clients with smaller ids.
    pub waiting: usize,
}

/// A server as a node of a network.
pub struct ServerNode<A: Algorithm> {
    pub(in crate::round) setting: Arc<Setting<A>>,
    pub(in crate::round) server: Server<A>,
    pub(in crate::round) mode: Mode,
    pub(in crate::round) hello: Hello,
    pub(in crate::round) step: u32,
    pub(in crate::round) stage: Stage,
    /// The label under which this step asks.
    pub(in crate::round) label: Label,
    /// The digest of everything this step asks.
    pub(in crate::round) asks: [u8; 32],
    /// Digests of this step's answers by position.
    pub(in crate::round) answered: BTreeMap<u32, [u8; 32]>,
    /// Answers that came before those of clients with smaller ids: an upload's bytes, or a refusal.
    pub(in crate::round) waiting: BTreeMap<u32, Result<Bytes, Refusal>>,
    /// All positions before this one are folded.
    pub(in crate::round) frontier: usize,
    /// Own shares of the last two steps, and neighbours' of this step and the next, by (step, server).
    pub(in crate::round) shares: BTreeMap<(u32, u32), Bytes>,
    pub(in crate::round) known: Vec<Option<Known>>,
    /// What earlier runs knew of the clients. Kept outside the run's own records.
    pub(in crate::round) past: Vec<Vec<Known>>,
    /// Positions whose entry in `known` is not on disk yet.
    pub(in crate::round) fresh: BTreeSet<u32>,
    /// Positions whose seat changed since the last record.
    pub(in crate::round) dirty: BTreeSet<u32>,
    /// Positions whose seat was settled since the last record.
    pub(in crate::round) settled: Vec<u32>,
    /// Neighbours that do not work with this server, or it not with them, where rounds have deadlines. Not on disk: what
    /// they say after a restart decides again.
    pub(in crate::round) refused: BTreeSet<u32>,
    /// How far each neighbour has come.
    pub(in crate::round) ahead: BTreeMap<u32, u32>,
    /// The servers whose shares the step before was mixed from, with the digests of the shares.
    pub(in crate::round) used: Vec<(u32, [u8; 32])>,
    /// The first reason it knows why the run cannot go on.
    pub(in crate::round) stop: Option<Stop>,
    /// The neighbours that have said that they know of a reason.
    pub(in crate::round) told: BTreeSet<u32>,
    /// Who has confirmed what it was served.
    pub(in crate::round) got: Vec<bool>,
    pub(in crate::round) done: bool,
    /// Size of the last full record, and of the changes since.
    pub(in crate::round) written: (usize, usize),
    /// Sizes of the last full record and of the last other one: room for the next.
    pub(in crate::round) sizes: (usize, usize),
}

impl<A: Algorithm> ServerNode<A> {
    /// A server before the first step.
    pub fn new(setting: Arc<Setting<A>>, federation: &Federation, id: u32, mode: Mode) -> Self {
        let server = Server::open(&*setting.algorithm, &setting.run, federation, id);
        let clients = server.members().len();
        Self {
            hello: Hello::of::<A>(setting.fingerprint),
            setting,
            server,
            mode,
            step: 0,
            stage: Stage::Sharing,
            label: ROUND,
            asks: [0; 32],
            answered: BTreeMap::new(),
            waiting: BTreeMap::new(),
            frontier: 0,
            shares: BTreeMap::new(),
            known: vec![None; clients],
            past: vec![Vec::new(); clients],
            fresh: BTreeSet::new(),
            dirty: BTreeSet::new(),
            settled: Vec::new(),
            refused: BTreeSet::new(),
            ahead: BTreeMap::new(),
            used: Vec::new(),
            stop: None,
            told: BTreeSet::new(),
            got: vec![false; clients],
            done: false,
            written: (0, 0),
            sizes: (0, 0),
        }
    }

    /// The server.
    pub fn server(&self) -> &Server<A> {
        &self.server
    }

    /// The step it is in.
    pub fn step(&self) -> u32 {
        self.step
    }

    /// Whether the last step is over and models are being delivered.
    pub fn ended(&self) -> bool {
        matches!(self.stage, Stage::Ended | Stage::Stopped)
    }

    /// The first reason it knows why the run cannot go on; nothing where it can, or could to the end.
    pub fn stop(&self) -> Option<&Stop> {
        self.stop.as_ref()
    }

    /// Whether it waits for its neighbours.
    pub fn sharing(&self) -> bool {
        self.stage == Stage::Sharing
    }

    /// What it knows of a client, by position.
    pub fn known(&self, position: usize) -> Option<&Known> {
        self.known[position].as_ref()
    }

    /// Tells it what an earlier run knew of a client: a ledger that is behind that is an old copy.
    pub fn remember(&mut self, client: u32, known: Known) {
        if let Some(position) = self.position(client) {
            self.past[position].push(known);
        }
    }

    /// What it holds for others.
    pub fn backlog(&self) -> Backlog {
        Backlog { shares: self.shares.len(), waiting: self.waiting.len() }
    }

    /// The ids of clients this step, or the delivery, still waits for.
    pub fn waits_for(&self) -> impl Iterator<Item = u32> + '_ {
        self.server.members().iter().enumerate().filter_map(|(i, member)| {
            let waits = match self.stage {
                Stage::Asking => self.asked(i) && !self.answered.contains_key(&(i as u32)),
                Stage::Sharing => false,
                Stage::Ended | Stage::Stopped => !self.got[i],
            };
            waits.then_some(member.id)
        })
    }

    /// The ids of neighbours it waits for.
    pub fn waits_for_servers(&self) -> impl Iterator<Item = u32> + '_ {
        let near = self.server.neighbours().iter().copied().filter(|id| !self.refused.contains(id));
        near.filter(|id| match self.stage {
            Stage::Asking => false,
            Stage::Sharing => !self.shares.contains_key(&(self.step, *id)),
            Stage::Ended => !self.told.contains(id) && self.finished(*id) < self.step,
            // It needs the shares of the steps before the one in which the run stops.
            Stage::Stopped => {
                let last = self.stop.as_ref().map_or(self.step, |stop| stop.step);
                !self.told.contains(id) || self.finished(*id).saturating_add(1) < last
            }
        })
    }

    /// The last step that a neighbour has finished, as far as this server knows.
    fn finished(&self, neighbour: u32) -> u32 {
        self.ahead.get(&neighbour).copied().unwrap_or(0)
    }

    pub(in crate::round) fn asked(&self, position: usize) -> bool {
        // A folded client has another verdict by now, but it has answered as well.
        self.server.verdicts()[position] == Verdict::Asked
    }

    pub(in crate::round) fn me(&self) -> Peer {
        Peer::Server(self.server.id())
    }

    pub(in crate::round) fn send(&self, to: Peer, step: u32, message: Message) -> Effect {
        Effect::Send(Envelope { from: self.me(), to, step, message })
    }

    /// The first call of a node's life, new or restored.
    pub fn start(&mut self) -> Vec<Effect> {
        let mut effects = Vec::new();
        if self.step == 0 {
            self.begin(&mut effects);
        } else {
            self.resend(&mut effects);
            // No message will come where there is nobody to wait for.
            if self.stage == Stage::Asking && !self.server.verdicts().contains(&Verdict::Asked) {
                self.close(&mut effects);
            }
            self.advance(false, &mut effects);
        }
        effects.extend(self.beat());
        self.finish(&mut effects);
        effects
    }

    /// A sign of life for the neighbours; they answer with the shares this server lacks.
    pub fn beat(&self) -> Vec<Effect> {
        let hello = Hello { step: self.mixed_steps(), ..self.hello.clone() };
        let greet = |id: &u32| self.send(Peer::Server(*id), self.step, Message::Hello(hello.clone()));
        self.server.neighbours().iter().map(greet).collect()
    }

    pub(in crate::round) fn mixed_steps(&self) -> u32 {
        if self.stage == Stage::Ended { self.step } else { self.step.saturating_sub(1) }
    }

    /// Everything that may not have arrived yet.
    pub fn resend(&mut self, effects: &mut Vec<Effect>) {
        for &neighbour in self.server.neighbours() {
            self.offer(neighbour, 0, effects);
            self.tell(neighbour, effects);
        }
        for position in 0..self.server.members().len() {
            self.remind(position, effects);
        }
    }

    /// Sends a neighbour the shares after the step it has finished, but none of a step in which the run stops.
    pub(in crate::round) fn offer(&self, neighbour: u32, finished: u32, effects: &mut Vec<Effect>) {
        let own = self.server.id();
        let end = self.stop.as_ref().map_or(u32::MAX, |stop| stop.step);
        let lacking = |step: u32| step > finished && step < end;
        for ((step, _), share) in self.shares.iter().filter(|((step, id), _)| *id == own && lacking(*step)) {
            effects.push(self.send(Peer::Server(neighbour), *step, Message::Share(share.clone())));
        }
    }

    /// Sends a client what it has not answered or confirmed.
    pub(in crate::round) fn remind(&mut self, position: usize, effects: &mut Vec<Effect>) {
        let Some(known) = &self.known[position] else { return };
        let setting = self.setting.clone();
        let (algorithm, run) = (&setting.algorithm, &setting.run);
        let client = Peer::Client(self.server.members()[position].id);
        match self.stage {
            Stage::Asking
                if self.asked(position)
                    && known.step < self.step
                    && !self.answered.contains_key(&(position as u32)) =>
            {
                let common = self.server.common().to_bytes().into();
                let mut down = A::Down::default();
                self.server.chunk(algorithm, run, position / CHUNK).down(position % CHUNK, &mut down);
                let ask = Message::Ask(self.label, common, down.to_bytes().into());
                effects.push(self.send(client, self.step, ask));
            }
            Stage::Ended | Stage::Stopped if !self.got[position] => {
                let common = self.server.farewell(algorithm, run).to_bytes().into();
                let mut down = A::Down::default();
                self.server.serve(algorithm, run, position, &mut down);
                let served = Message::Served(common, down.to_bytes().into());
                effects.push(self.send(client, self.step + 1, served));
            }
            _ => {}
        }
    }

    /// The asks of this step to all clients that are there, and the digest of the asks to all.
    pub(in crate::round) fn all_asks(&mut self) -> (Vec<Effect>, [u8; 32]) {
        let (setting, me, step, label) = (self.setting.clone(), self.me(), self.step, self.label);
        let common: Arc<[u8]> = self.server.common().to_bytes().into();
        // Hashed in one go: a long input is several times as fast as many short ones.
        let mut all = Encoder::default();
        step.put(&mut all);
        label.put(&mut all);
        all.bytes(&common);
        let mut effects = Vec::new();
        let known = &self.known;
        let mut down = A::Down::default();
        for (c, chunk) in self.server.chunks(&setting.algorithm, &setting.run).enumerate() {
            for (i, member) in chunk.members.iter().enumerate().filter(|(i, _)| chunk.is_asked(*i)) {
                chunk.down(i, &mut down);
                let bytes = down.to_bytes();
                member.id.put(&mut all);
                all.bytes(&bytes);
                if known[c * CHUNK + i].is_some() {
                    let message = Message::Ask(label, common.clone(), bytes.into());
                    let to = Peer::Client(member.id);
                    effects.push(Effect::Send(Envelope { from: me, to, step, message }));
                }
            }
        }
        (effects, *blake3::hash(&all.0).as_bytes())
    }

    /// Takes a message; the first answer of a client to a step stands.
    pub fn receive(&mut self, envelope: &Envelope) -> Vec<Effect> {
        let mut effects = Vec::new();
        if envelope.to != self.me() {
            return effects;
        }
        match (&envelope.message, envelope.from) {
            (Message::Hello(hello), Peer::Client(id)) => self.client_hello(id, hello, &mut effects),
            (Message::Hello(hello), Peer::Server(id)) => self.server_hello(id, hello, &mut effects),
            (Message::Turned(why, _), from) => self.turned(from, words(why), &mut effects),
            (Message::Up(..) | Message::Refused(..), Peer::Client(id)) => {
                self.answer(id, envelope, &mut effects);
            }
            (Message::Share(bytes), Peer::Server(id)) => {
                self.share(id, envelope.step, bytes, &mut effects);
            }
            (Message::Stop(stop), Peer::Server(id)) => self.hear(id, stop, &mut effects),
            (Message::Got, Peer::Client(id)) => {
                if let (Some(position), true) = (self.position(id), self.ended()) {
                    // On disk before the client leaves: a restart must not wait for it again.
                    if !self.got[position] {
                        effects.push(Effect::Commit(self.confirm(position)));
                    }
                    effects.push(self.send(Peer::Client(id), self.step + 1, Message::Bye));
                    self.finish(&mut effects);
                }
            }
            _ => {}
        }
        effects
    }

    pub(in crate::round) fn position(&self, client: u32) -> Option<usize> {
        self.server.members().binary_search_by_key(&client, |member| member.id).ok()
    }
}
