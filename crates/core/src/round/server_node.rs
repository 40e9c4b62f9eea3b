//! A server behind messages: plans, asks, folds in id order whatever order answers come in, shares, mixes.

use super::messages::{Effect, Envelope, Message, Peer};
use super::server::{CHUNK, Server, Verdict};
use crate::algorithm::{Algorithm, Label, Phase, ROUND, Run};
use crate::codec::{Bytes, Codec, Damaged, Reader};
use crate::federation::Federation;
use crate::privacy::{Refusal, Tally};
use std::collections::BTreeMap;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// Waits for the answers of its clients.
    Asking,
    /// Waits for the shares of its neighbours.
    Sharing,
    /// Has delivered.
    Ended,
}

/// A server as a node of a network.
pub struct ServerNode<A: Algorithm> {
    server: Server<A>,
    step: u32,
    stage: Stage,
    /// Answers of this step by position: an upload's bytes, or a refusal.
    answers: BTreeMap<u32, Option<Vec<u8>>>,
    /// Shares by (step, server): neighbours may be one step ahead.
    shares: BTreeMap<(u32, u32), Vec<u8>>,
    /// The label under which this step asks.
    label: Label,
}

impl<A: Algorithm> ServerNode<A> {
    /// A server before the first step.
    pub fn new(algorithm: &A, run: &Run, federation: &Federation, id: u32) -> Self {
        let server = Server::open(algorithm, run, federation, id);
        Self {
            server,
            step: 0,
            stage: Stage::Asking,
            answers: BTreeMap::new(),
            shares: BTreeMap::new(),
            label: ROUND,
        }
    }

    /// The server.
    pub fn server(&self) -> &Server<A> {
        &self.server
    }

    /// Whether the run is over for this server.
    pub fn ended(&self) -> bool {
        self.stage == Stage::Ended
    }

    fn me(&self) -> Peer {
        Peer::Server(self.server.id())
    }

    fn send(&self, to: Peer, step: u32, message: Message) -> Effect {
        Effect::Send(Envelope { from: self.me(), to, step, message })
    }

    /// Begins the next step, or goes on after a restart: the first call of a node's life.
    pub fn start(&mut self, algorithm: &A, run: &Run) -> Vec<Effect> {
        match self.stage {
            Stage::Asking if self.step == 0 => {
                let mut effects = Vec::new();
                self.begin(algorithm, run, &mut effects);
                effects
            }
            _ => self.resend(algorithm, run),
        }
    }

    /// Everything that may not have arrived yet.
    pub fn resend(&mut self, algorithm: &A, run: &Run) -> Vec<Effect> {
        match self.stage {
            Stage::Asking => self.asks(algorithm, run),
            Stage::Sharing => self.share_effects(self.step),
            Stage::Ended => {
                let mut effects = self.share_effects(self.step);
                effects.extend(self.serves(algorithm, run));
                effects
            }
        }
    }

    /// Sends this server's share of a step, and of the one before: a neighbour may be one step behind.
    fn share_effects(&self, step: u32) -> Vec<Effect> {
        let mut effects = Vec::new();
        for step in step.saturating_sub(1)..=step {
            if let Some(share) = self.shares.get(&(step, self.server.id())) {
                for &neighbour in self.server.neighbours() {
                    effects.push(self.send(Peer::Server(neighbour), step, Message::Share(share.clone())));
                }
            }
        }
        effects
    }

    fn asks(&mut self, algorithm: &A, run: &Run) -> Vec<Effect> {
        let (me, step, label) = (self.me(), self.step, self.label);
        let common = self.server.common().to_bytes();
        let mut effects = self.share_effects(step.saturating_sub(1));
        let answers = &self.answers;
        let mut down = A::Down::default();
        for (c, chunk) in self.server.chunks(algorithm, run).enumerate() {
            for (i, member) in chunk.members.iter().enumerate() {
                let position = (c * CHUNK + i) as u32;
                if chunk.is_asked(i) && !answers.contains_key(&position) {
                    chunk.down(i, &mut down);
                    let message = Message::Ask(label, common.clone(), down.to_bytes());
                    effects.push(Effect::Send(Envelope {
                        from: me,
                        to: Peer::Client(member.id),
                        step,
                        message,
                    }));
                }
            }
        }
        effects
    }

    fn serves(&self, algorithm: &A, run: &Run) -> Vec<Effect> {
        let mut down = A::Down::default();
        let common = self.server.farewell(algorithm, run).to_bytes();
        let mut effects = Vec::new();
        for (position, member) in self.server.members().iter().enumerate() {
            self.server.serve(algorithm, run, position, &mut down);
            effects.push(self.send(
                Peer::Client(member.id),
                self.step + 1,
                Message::Served(common.clone(), down.to_bytes()),
            ));
        }
        effects
    }

    fn begin(&mut self, algorithm: &A, run: &Run, effects: &mut Vec<Effect>) {
        loop {
            match self.server.begin(algorithm, run, self.step + 1) {
                Phase::Deliver => {
                    self.stage = Stage::Ended;
                    effects.push(Effect::Commit(self.record()));
                    effects.extend(self.serves(algorithm, run));
                    effects.push(Effect::Done);
                    return;
                }
                Phase::Ask(label) => {
                    self.step += 1;
                    self.label = label;
                    self.stage = Stage::Asking;
                    self.answers.clear();
                    let oldest = self.step.saturating_sub(2);
                    self.shares.retain(|(step, _), _| *step >= oldest);
                    effects.push(Effect::Commit(self.record()));
                    effects.extend(self.asks(algorithm, run));
                    if !self.server.verdicts().contains(&Verdict::Asked) {
                        // Nobody to wait for.
                        self.fold(algorithm, run, effects);
                        if self.mixed(algorithm, run, effects) {
                            continue;
                        }
                    }
                    return;
                }
            }
        }
    }

    /// Takes a message; the first answer of a client to a step stands.
    pub fn receive(&mut self, algorithm: &A, run: &Run, envelope: &Envelope) -> Vec<Effect> {
        let mut effects = Vec::new();
        if envelope.to != self.me() {
            return effects;
        }
        match (&envelope.message, envelope.from) {
            (Message::Up(_) | Message::Refused, Peer::Client(id)) => {
                let position = self.server.members().binary_search_by_key(&id, |member| member.id);
                let (Ok(position), true) =
                    (position, self.stage == Stage::Asking && envelope.step == self.step)
                else {
                    return effects;
                };
                if self.server.verdicts()[position] != Verdict::Asked {
                    return effects;
                }
                let answer = match &envelope.message {
                    Message::Up(bytes) => Some(bytes.clone()),
                    _ => None,
                };
                self.answers.entry(position as u32).or_insert(answer);
                let asked =
                    self.server.verdicts().iter().filter(|verdict| **verdict == Verdict::Asked).count();
                if self.answers.len() == asked {
                    self.fold(algorithm, run, &mut effects);
                    self.advance(algorithm, run, &mut effects);
                }
            }
            (Message::Share(bytes), Peer::Server(id)) => {
                let near = self.server.neighbours().binary_search(&id).is_ok();
                // A damaged share counts as not arrived: its sender sends it again.
                let due = envelope.step.abs_diff(self.step) <= 1 && A::Share::from_bytes(bytes).is_ok();
                if near && due {
                    self.shares.entry((envelope.step, id)).or_insert_with(|| bytes.clone());
                    self.advance(algorithm, run, &mut effects);
                }
            }
            _ => {}
        }
        effects
    }

    fn advance(&mut self, algorithm: &A, run: &Run, effects: &mut Vec<Effect>) {
        if self.mixed(algorithm, run, effects) {
            self.begin(algorithm, run, effects);
        }
    }

    /// All answers are in: folds them in id order, closes the step, shares.
    fn fold(&mut self, algorithm: &A, run: &Run, effects: &mut Vec<Effect>) {
        let answers = &self.answers;
        for (c, mut chunk) in self.server.chunks(algorithm, run).enumerate() {
            chunk.clear();
            for i in 0..chunk.members.len() {
                match answers.get(&((c * CHUNK + i) as u32)) {
                    Some(Some(bytes)) => match A::Up::from_bytes(bytes) {
                        Ok(up) => chunk.take(i, Ok(&up)),
                        Err(Damaged) => chunk.reject(i, "damaged"),
                    },
                    Some(None) => chunk.take(i, Err(Refusal::Budget)),
                    None => {}
                }
            }
        }
        let (share, _) = self.server.close(algorithm, run, &mut Tally::default());
        self.stage = Stage::Sharing;
        self.shares.insert((self.step, self.server.id()), share.to_bytes());
        effects.push(Effect::Commit(self.record()));
        effects.extend(
            self.share_effects(self.step)
                .into_iter()
                .filter(|effect| matches!(effect, Effect::Send(envelope) if envelope.step == self.step)),
        );
    }

    /// Mixes once the shares of all neighbours are in.
    fn mixed(&mut self, algorithm: &A, run: &Run, _: &mut Vec<Effect>) -> bool {
        if self.stage != Stage::Sharing {
            return false;
        }
        let mut ids: Vec<u32> = self.server.neighbours().to_vec();
        let own = ids.partition_point(|p| *p < self.server.id());
        ids.insert(own, self.server.id());
        let mut shares = Vec::with_capacity(ids.len());
        for id in ids {
            let Some(bytes) = self.shares.get(&(self.step, id)) else { return false };
            let Ok(share) = A::Share::from_bytes(bytes) else { return false };
            shares.push((id, share));
        }
        let near: Vec<(u32, &A::Share)> = shares.iter().map(|(id, share)| (*id, share)).collect();
        self.server.mix(algorithm, run, &near);
        self.server.chunks(algorithm, run).for_each(|mut chunk| chunk.settle());
        true
    }

    fn record(&self) -> Vec<u8> {
        let mut bytes = Bytes::default();
        self.step.put(&mut bytes);
        let stage = match self.stage {
            Stage::Asking => 0u8,
            Stage::Sharing => 1,
            Stage::Ended => 2,
        };
        stage.put(&mut bytes);
        self.label.put(&mut bytes);
        let verdicts: Vec<u8> = self
            .server
            .verdicts()
            .iter()
            .map(|verdict| match verdict {
                Verdict::NotAsked => 0,
                Verdict::Asked => 1,
                Verdict::Value => 2,
                Verdict::Refused(_) | Verdict::Rejected(_) => 3,
            })
            .collect();
        verdicts.into_boxed_slice().put(&mut bytes);
        self.server.save(&mut bytes);
        self.server.common().put(&mut bytes);
        (self.shares.len() as u64).put(&mut bytes);
        for ((step, id), share) in &self.shares {
            step.put(&mut bytes);
            id.put(&mut bytes);
            (share.len() as u64).put(&mut bytes);
            bytes.0.extend_from_slice(share);
        }
        bytes.0
    }

    /// Goes on from the last committed record; then call `start`.
    pub fn restore(&mut self, record: &[u8]) -> Result<(), Damaged> {
        let mut reader = Reader::new(record);
        self.step = u32::get(&mut reader)?;
        self.stage = match u8::get(&mut reader)? {
            0 => Stage::Asking,
            1 => Stage::Sharing,
            2 => Stage::Ended,
            _ => return Err(Damaged),
        };
        self.label = Label::get(&mut reader)?;
        let verdicts = Box::<[u8]>::get(&mut reader)?;
        self.server.restore(&mut reader)?;
        let common = A::Common::get(&mut reader)?;
        self.server.resume(self.step, self.label, common, &verdicts);
        self.answers.clear();
        self.shares.clear();
        for _ in 0..u64::get(&mut reader)? {
            let key = (u32::get(&mut reader)?, u32::get(&mut reader)?);
            let length = reader.length(1)?;
            self.shares.insert(key, reader.take(length)?.to_vec());
        }
        Ok(())
    }
}
