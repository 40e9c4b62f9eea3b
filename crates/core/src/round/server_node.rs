//! A server behind messages: plans, asks, folds in id order whatever order answers come in, shares, mixes.

use super::Setting;
use super::hello::{Hello, Misfit};
use super::messages::{Effect, Envelope, Message, Note, Peer};
use super::server::{CHUNK, Server, Verdict};
use crate::algorithm::{Algorithm, Label, Phase, ROUND};
use crate::codec::{Codec, Digest, Sink};
use crate::federation::Federation;
use crate::privacy::{Refusal, Tally};
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
}

crate::record! {
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

/// A server as a node of a network.
pub struct ServerNode<A: Algorithm> {
    pub(in crate::round) setting: Arc<Setting<A>>,
    pub(in crate::round) server: Server<A>,
    mode: Mode,
    hello: Hello,
    pub(in crate::round) step: u32,
    pub(in crate::round) stage: Stage,
    /// The label under which this step asks.
    pub(in crate::round) label: Label,
    /// The digest of everything this step asks.
    pub(in crate::round) asks: [u8; 32],
    /// Digests of this step's answers by position.
    pub(in crate::round) answered: BTreeMap<u32, [u8; 32]>,
    /// Answers that came before those of clients with smaller ids: an upload's bytes, or a refusal.
    waiting: BTreeMap<u32, Option<Vec<u8>>>,
    /// All positions before this one are folded.
    frontier: usize,
    /// Own shares of the last two steps, and neighbours' of this step and the next, by (step, server).
    pub(in crate::round) shares: BTreeMap<(u32, u32), Vec<u8>>,
    pub(in crate::round) known: Vec<Option<Known>>,
    /// Positions whose entry in `known` is not on disk yet.
    pub(in crate::round) fresh: BTreeSet<u32>,
    /// Positions whose seat changed since the last record.
    pub(in crate::round) dirty: BTreeSet<u32>,
    /// How far each neighbour has come.
    pub(in crate::round) ahead: BTreeMap<u32, u32>,
    got: Vec<bool>,
    done: bool,
    /// Size of the last full record, and of the changes since.
    pub(in crate::round) written: (usize, usize),
}

impl<A: Algorithm> ServerNode<A> {
    /// A server before the first step.
    pub fn new(setting: Arc<Setting<A>>, federation: &Federation, id: u32, mode: Mode) -> Self {
        let server = Server::open(&setting.algorithm, &setting.run, federation, id);
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
            fresh: BTreeSet::new(),
            dirty: BTreeSet::new(),
            ahead: BTreeMap::new(),
            got: vec![false; clients],
            done: false,
            written: (0, 0),
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
        self.stage == Stage::Ended
    }

    /// Whether it waits for its neighbours.
    pub fn sharing(&self) -> bool {
        self.stage == Stage::Sharing
    }

    /// What it knows of a client, by position.
    pub fn known(&self, position: usize) -> Option<&Known> {
        self.known[position].as_ref()
    }

    /// The ids of clients this step, or the delivery, still waits for.
    pub fn waits_for(&self) -> impl Iterator<Item = u32> + '_ {
        self.server.members().iter().enumerate().filter_map(|(i, member)| {
            let waits = match self.stage {
                Stage::Asking => self.asked(i) && !self.answered.contains_key(&(i as u32)),
                Stage::Sharing => false,
                Stage::Ended => !self.got[i],
            };
            waits.then_some(member.id)
        })
    }

    /// The ids of neighbours it waits for.
    pub fn waits_for_servers(&self) -> impl Iterator<Item = u32> + '_ {
        self.server.neighbours().iter().copied().filter(|id| match self.stage {
            Stage::Asking => false,
            Stage::Sharing => !self.shares.contains_key(&(self.step, *id)),
            Stage::Ended => self.ahead.get(id).is_none_or(|step| *step < self.step),
        })
    }

    fn asked(&self, position: usize) -> bool {
        // A folded client has another verdict by now, but it has answered as well.
        self.server.verdicts()[position] == Verdict::Asked
    }

    fn me(&self) -> Peer {
        Peer::Server(self.server.id())
    }

    fn send(&self, to: Peer, step: u32, message: Message) -> Effect {
        Effect::Send(Envelope { from: self.me(), to, step, message })
    }

    /// The first call of a node's life, new or restored.
    pub fn start(&mut self) -> Vec<Effect> {
        let mut effects = Vec::new();
        if self.step == 0 {
            self.begin(&mut effects);
        } else {
            self.resend(&mut effects);
        }
        effects.extend(self.beat());
        effects
    }

    /// A sign of life for the neighbours; they answer with the shares this server lacks.
    pub fn beat(&self) -> Vec<Effect> {
        let hello = Hello { step: self.mixed_steps(), ..self.hello.clone() };
        let greet = |id: &u32| self.send(Peer::Server(*id), self.step, Message::Hello(hello.clone()));
        self.server.neighbours().iter().map(greet).collect()
    }

    fn mixed_steps(&self) -> u32 {
        if self.stage == Stage::Ended { self.step } else { self.step.saturating_sub(1) }
    }

    /// Everything that may not have arrived yet.
    pub fn resend(&mut self, effects: &mut Vec<Effect>) {
        for &neighbour in self.server.neighbours() {
            self.offer(neighbour, 0, effects);
        }
        for position in 0..self.server.members().len() {
            self.remind(position, effects);
        }
    }

    /// Sends a neighbour the shares after the step it has finished.
    fn offer(&self, neighbour: u32, finished: u32, effects: &mut Vec<Effect>) {
        let own = self.server.id();
        for ((step, _), share) in self.shares.iter().filter(|((step, id), _)| *id == own && *step > finished)
        {
            effects.push(self.send(Peer::Server(neighbour), *step, Message::Share(share.clone())));
        }
    }

    /// Sends a client what it has not answered or confirmed.
    fn remind(&mut self, position: usize, effects: &mut Vec<Effect>) {
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
                let ask = Message::Ask(self.label, common, down.to_bytes());
                effects.push(self.send(client, self.step, ask));
            }
            Stage::Ended if !self.got[position] => {
                let common = self.server.farewell(algorithm, run).to_bytes().into();
                let mut down = A::Down::default();
                self.server.serve(algorithm, run, position, &mut down);
                let served = Message::Served(common, down.to_bytes());
                effects.push(self.send(client, self.step + 1, served));
            }
            _ => {}
        }
    }

    /// The asks of this step to all clients that are there, and the digest of the asks to all.
    pub(in crate::round) fn all_asks(&mut self) -> (Vec<Effect>, [u8; 32]) {
        let (setting, me, step, label) = (self.setting.clone(), self.me(), self.step, self.label);
        let common: Arc<[u8]> = self.server.common().to_bytes().into();
        let mut digest = Digest::default();
        step.put(&mut digest);
        label.put(&mut digest);
        digest.bytes(&common);
        let mut effects = Vec::new();
        let known = &self.known;
        let mut down = A::Down::default();
        for (c, chunk) in self.server.chunks(&setting.algorithm, &setting.run).enumerate() {
            for (i, member) in chunk.members.iter().enumerate().filter(|(i, _)| chunk.is_asked(*i)) {
                chunk.down(i, &mut down);
                member.id.put(&mut digest);
                down.put(&mut digest);
                if known[c * CHUNK + i].is_some() {
                    let message = Message::Ask(label, common.clone(), down.to_bytes());
                    let to = Peer::Client(member.id);
                    effects.push(Effect::Send(Envelope { from: me, to, step, message }));
                }
            }
        }
        (effects, digest.finish())
    }

    fn begin(&mut self, effects: &mut Vec<Effect>) {
        loop {
            let setting = self.setting.clone();
            match self.server.begin(&setting.algorithm, &setting.run, self.step + 1) {
                Phase::Deliver => {
                    self.stage = Stage::Ended;
                    effects.push(Effect::Commit(self.encode()));
                    (0..self.server.members().len()).for_each(|position| self.remind(position, effects));
                    effects.extend(self.beat());
                    self.finish(effects);
                    return;
                }
                Phase::Ask(label) => {
                    self.step += 1;
                    self.label = label;
                    self.stage = Stage::Asking;
                    self.answered.clear();
                    self.waiting.clear();
                    self.frontier = 0;
                    let (own, oldest) = (self.server.id(), self.step.saturating_sub(2));
                    let step = self.step;
                    self.shares.retain(|(at, id), _| *at >= if *id == own { oldest } else { step });
                    self.dirty.extend(self.server.touched());
                    let (asks, digest) = self.all_asks();
                    self.asks = digest;
                    effects.push(Effect::Commit(self.encode()));
                    effects.extend(asks);
                    self.server.chunks(&setting.algorithm, &setting.run).for_each(|mut chunk| chunk.clear());
                    if self.server.verdicts().contains(&Verdict::Asked) {
                        return;
                    }
                    // Nobody to wait for.
                    self.close(effects);
                    if !self.mixed(false, effects) {
                        return;
                    }
                }
            }
        }
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
            (Message::Turned(why, _), from) => {
                effects.push(Effect::Note(Note::Turned(from, String::from_utf8_lossy(why).into_owned())));
            }
            (Message::Up(..) | Message::Refused(_), Peer::Client(id)) => {
                self.answer(id, envelope, &mut effects);
            }
            (Message::Share(bytes), Peer::Server(id)) => {
                self.share(id, envelope.step, bytes, &mut effects);
            }
            (Message::Got, Peer::Client(id)) => {
                if let (Some(position), Stage::Ended) = (self.position(id), self.stage) {
                    self.got[position] = true;
                    effects.push(self.send(Peer::Client(id), self.step + 1, Message::Bye));
                    self.finish(&mut effects);
                }
            }
            _ => {}
        }
        effects
    }

    fn position(&self, client: u32) -> Option<usize> {
        self.server.members().binary_search_by_key(&client, |member| member.id).ok()
    }

    fn turn(&self, peer: Peer, hello: &Hello, why: String, effects: &mut Vec<Effect>) {
        effects.push(self.send(peer, self.step, Message::Turned(why.as_bytes().into(), hello.lines)));
        effects.push(Effect::Note(Note::Turned(peer, why)));
    }

    /// What all hellos must agree on.
    fn fits(&self, peer: Peer, hello: &Hello, first: bool, effects: &mut Vec<Effect>) -> bool {
        match self.hello.fits(hello) {
            Ok(()) => true,
            Err(Misfit::Warn(why)) => {
                if first {
                    effects.push(Effect::Note(Note::OtherNumerics(peer, why)));
                }
                true
            }
            Err(Misfit::Refuse(why)) => {
                self.turn(peer, hello, why, effects);
                false
            }
        }
    }

    fn client_hello(&mut self, id: u32, hello: &Hello, effects: &mut Vec<Effect>) {
        let peer = Peer::Client(id);
        let Some(position) = self.position(id) else {
            return self.turn(peer, hello, format!("{peer} is not on the roster of {}", self.me()), effects);
        };
        let first = self.known[position].is_none();
        if !self.fits(peer, hello, first, effects) {
            return;
        }
        let known = self.known[position].clone().unwrap_or_default();
        if hello.lines < known.lines {
            // Perhaps only late. If not, the client recognises its own number of lines and stops.
            let why = format!(
                "ledger: {} lines there, {} were seen here; an old disk was restored",
                hello.lines, known.lines
            );
            effects.push(self.send(peer, self.step, Message::Turned(why.as_bytes().into(), hello.lines)));
            return effects.push(Effect::Note(Note::Behind(peer, hello.lines, known.lines)));
        }
        let refused = if !first && known.data != hello.data {
            let (theirs, ours) = (super::hello::short(&hello.data), super::hello::short(&known.data));
            Some(format!(
                "data fingerprint: {theirs} there, {ours} when the run began; the data or the client's secret has changed"
            ))
        } else if hello.lines == known.lines && known.head != [0; 32] && known.head != hello.head {
            Some(format!("ledger: line {} is not the one that was seen here", hello.lines))
        } else if hello.step > self.step {
            Some(format!(
                "step: {} there, {} here; an old disk was restored at the server",
                hello.step, self.step
            ))
        } else {
            None
        };
        if let Some(why) = refused {
            return self.turn(peer, hello, why, effects);
        }
        let news = Known {
            data: hello.data,
            lines: hello.lines,
            head: hello.head,
            spent: hello.spent,
            step: hello.step.max(known.step),
        };
        if first || news != known {
            self.known[position] = Some(news);
            self.fresh.insert(position as u32);
        }
        if first {
            effects.push(Effect::Note(Note::Joined(peer)));
        }
        let closed = if self.stage == Stage::Asking { self.step - 1 } else { self.step };
        effects.push(self.send(peer, self.step, Message::Welcome(closed)));
        self.remind(position, effects);
    }

    fn server_hello(&mut self, id: u32, hello: &Hello, effects: &mut Vec<Effect>) {
        let peer = Peer::Server(id);
        if self.server.neighbours().binary_search(&id).is_err() {
            return self.turn(peer, hello, format!("{peer} is not a neighbour of {}", self.me()), effects);
        }
        let first = !self.ahead.contains_key(&id);
        if !self.fits(peer, hello, first, effects) {
            return;
        }
        if first {
            effects.push(Effect::Note(Note::Joined(peer)));
        }
        let progress = self.ahead.entry(id).or_default();
        *progress = (*progress).max(hello.step);
        self.offer(id, hello.step, effects);
        self.advance(false, effects);
        self.finish(effects);
    }

    fn answer(&mut self, id: u32, envelope: &Envelope, effects: &mut Vec<Effect>) {
        let Some(position) = self.position(id) else { return };
        let Some(known) = &mut self.known[position] else { return };
        if envelope.step < self.step || self.stage != Stage::Asking {
            // Of a step that is closed: a resend, or too late.
            if matches!(self.mode, Mode::Deadline { .. }) && known.step < envelope.step {
                known.step = envelope.step;
                effects.push(Effect::Note(Note::Late(id, envelope.step)));
            }
            return;
        }
        if envelope.step > self.step {
            return effects.push(Effect::Note(Note::Rejected {
                client: id,
                step: envelope.step,
                reason: format!("wrong round: this is round {}", self.step),
            }));
        }
        let digest = envelope.digest();
        if let Some(first) = self.answered.get(&(position as u32)) {
            if *first != digest {
                effects.push(Effect::Note(Note::Equivocation(Peer::Client(id), envelope.step)));
            }
            return;
        }
        if self.server.verdicts()[position] != Verdict::Asked {
            return effects.push(Effect::Note(Note::Rejected {
                client: id,
                step: envelope.step,
                reason: "not asked".into(),
            }));
        }
        let (up, lines) = match &envelope.message {
            Message::Up(bytes, lines) => (Some(bytes.clone()), *lines),
            Message::Refused(lines) => (None, *lines),
            _ => return,
        };
        known.step = envelope.step;
        if lines > known.lines {
            (known.lines, known.head) = (lines, [0; 32]);
        }
        self.fresh.insert(position as u32);
        self.answered.insert(position as u32, digest);
        self.waiting.insert(position as u32, up);
        self.fold(false, effects);
        if self.complete() {
            self.close(effects);
            self.advance(false, effects);
        }
    }

    /// Folds answers in id order as far as they are there; with `gaps`, past clients that have not answered.
    fn fold(&mut self, gaps: bool, effects: &mut Vec<Effect>) {
        let setting = self.setting.clone();
        while self.frontier < self.server.members().len() {
            let position = self.frontier;
            let answer = self.waiting.remove(&(position as u32));
            if self.server.verdicts()[position] == Verdict::Asked {
                let id = self.server.members()[position].id;
                let mut chunk = self.server.chunk(&setting.algorithm, &setting.run, position / CHUNK);
                let i = position % CHUNK;
                match answer {
                    Some(Some(bytes)) => match A::Up::from_bytes(&bytes) {
                        Ok(up) => chunk.take(i, Ok(&up)),
                        Err(_) => chunk.reject(i, "damaged or another shape"),
                    },
                    Some(None) => chunk.take(i, Err(Refusal::Budget)),
                    None if gaps => chunk.miss(i),
                    None => return,
                }
                if let Verdict::Rejected(reason) = self.server.verdicts()[position] {
                    let (client, step, reason) = (id, self.step, reason.into());
                    effects.push(Effect::Note(Note::Rejected { client, step, reason }));
                }
            }
            self.frontier += 1;
        }
    }

    /// Whether the step can be closed before its time is up.
    fn complete(&self) -> bool {
        match self.mode {
            Mode::Strict => self.frontier == self.server.members().len(),
            Mode::Deadline { quorum } => {
                let asked = self.server.asked() as f64;
                self.answered.len() as f64 >= (quorum * asked).ceil()
            }
        }
    }

    /// The time for this step, or for the delivery, is up. Nothing happens in strict mode.
    pub fn expire(&mut self, step: u32) -> Vec<Effect> {
        let mut effects = Vec::new();
        if self.mode == Mode::Strict || step != self.step {
            return effects;
        }
        match self.stage {
            Stage::Asking => {
                self.close(&mut effects);
                self.advance(false, &mut effects);
            }
            Stage::Sharing => self.advance(true, &mut effects),
            Stage::Ended if !self.done => {
                self.done = true;
                effects.push(Effect::Done);
            }
            Stage::Ended => {}
        }
        effects
    }

    fn finish(&mut self, effects: &mut Vec<Effect>) {
        if !self.done
            && self.stage == Stage::Ended
            && self.waits_for().next().is_none()
            && self.waits_for_servers().next().is_none()
        {
            self.done = true;
            effects.push(Effect::Done);
        }
    }

    /// Closes the step with the answers that are there and shares.
    fn close(&mut self, effects: &mut Vec<Effect>) {
        self.fold(true, effects);
        let setting = self.setting.clone();
        let (share, counts) = self.server.close(&setting.algorithm, &setting.run, &mut Tally::default());
        self.stage = Stage::Sharing;
        self.shares.insert((self.step, self.server.id()), share.to_bytes());
        self.dirty.extend(self.server.touched());
        self.dirty.extend(self.folded());
        effects.push(Effect::Commit(self.encode()));
        let missing = self.server.members().iter().zip(self.server.verdicts());
        let missing =
            missing.filter(|(_, verdict)| **verdict == Verdict::Missing).map(|(member, _)| member.id);
        effects.push(Effect::Note(Note::Closed { step: self.step, counts, missing: missing.collect() }));
        for &neighbour in self.server.neighbours() {
            self.offer(neighbour, self.step - 1, effects);
        }
    }

    fn folded(&self) -> Vec<u32> {
        let verdicts = self.server.verdicts().iter().enumerate();
        verdicts.filter(|(_, verdict)| **verdict == Verdict::Value).map(|(i, _)| i as u32).collect()
    }

    fn share(&mut self, id: u32, step: u32, bytes: &[u8], effects: &mut Vec<Effect>) {
        if self.server.neighbours().binary_search(&id).is_err() {
            return;
        }
        let progress = self.ahead.entry(id).or_default();
        *progress = (*progress).max(step - u32::from(step > 0));
        let due = step == self.step + 1 || step == self.step && self.stage != Stage::Ended;
        if !due {
            return;
        }
        match self.shares.get(&(step, id)) {
            Some(first) if *first != bytes => {
                effects.push(Effect::Note(Note::Equivocation(Peer::Server(id), step)));
            }
            Some(_) => {}
            // A damaged share counts as not arrived: its sender sends it again.
            None if A::Share::from_bytes(bytes).is_err() => {
                effects.push(Effect::Note(Note::Unreadable(Peer::Server(id), step)));
            }
            None => {
                self.shares.insert((step, id), bytes.to_vec());
                self.advance(false, effects);
            }
        }
    }

    fn advance(&mut self, late: bool, effects: &mut Vec<Effect>) {
        if self.mixed(late, effects) {
            self.begin(effects);
        }
    }

    /// Mixes once the shares of all neighbours are in; if `late`, of those that are.
    fn mixed(&mut self, late: bool, effects: &mut Vec<Effect>) -> bool {
        if self.stage != Stage::Sharing || self.step == 0 {
            return false;
        }
        let mut ids: Vec<u32> = self.server.neighbours().to_vec();
        let own = ids.partition_point(|p| *p < self.server.id());
        ids.insert(own, self.server.id());
        let mut shares = Vec::with_capacity(ids.len());
        let mut absent = Vec::new();
        for id in ids {
            let share = self.shares.get(&(self.step, id)).and_then(|bytes| A::Share::from_bytes(bytes).ok());
            match share {
                Some(share) => shares.push((id, share)),
                // A neighbour two steps ahead does not have this share any more.
                None if late || self.has_left(id) => absent.push(id),
                None => return false,
            }
        }
        if !absent.is_empty() {
            effects.push(Effect::Note(Note::Without(self.step, absent)));
        }
        let setting = self.setting.clone();
        let near: Vec<(u32, &A::Share)> = shares.iter().map(|(id, share)| (*id, share)).collect();
        self.server.mix(&setting.algorithm, &setting.run, &near);
        self.server.chunks(&setting.algorithm, &setting.run).for_each(|mut chunk| chunk.settle());
        self.dirty.extend(self.folded());
        true
    }

    fn has_left(&self, neighbour: u32) -> bool {
        matches!(self.mode, Mode::Deadline { .. })
            && self.ahead.get(&neighbour).is_some_and(|step| *step >= self.step + 2)
    }
}
