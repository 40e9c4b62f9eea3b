//! The steps of a server behind messages: begin, take answers, close, share, mix.

use super::messages::{Effect, Envelope, Message, Note, Peer};
use super::server::CHUNK;
use super::server_node::{Mode, ServerNode, Stage};
use super::stop::Stop;
use crate::algorithm::{Algorithm, Phase, Reject, Verdict};
use bytes::Bytes;
use fedkin_numeric::codec::{Codec, Digest, Door, Encoder, Shape, Sink};
use fedkin_privacy::mutants::{Mutant, active};
use fedkin_privacy::{Refusal, Tally};

impl<A: Algorithm> ServerNode<A> {
    pub(in crate::round) fn begin(&mut self, effects: &mut Vec<Effect>) {
        loop {
            let setting = self.setting.clone();
            let mixed = (!self.settled.is_empty()).then(|| self.state_bytes());
            let phase = self.server.begin(&setting.algorithm, &setting.run, self.step + 1);
            if mixed.is_some_and(|mixed| mixed != self.state_bytes()) {
                // The plan has changed the state: seats could not be settled from it again.
                self.dirty.extend(self.settled.drain(..));
            }
            match phase {
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
                    if self.halts(effects) || !self.mixed(false, effects) {
                        return;
                    }
                }
            }
        }
    }

    fn state_bytes(&self) -> Vec<u8> {
        let mut bytes = Encoder::default();
        self.server.save_state(&mut bytes);
        bytes.0
    }

    pub(in crate::round) fn answer(&mut self, id: u32, envelope: &Envelope, effects: &mut Vec<Effect>) {
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
        if envelope.step > self.step && !active(Mutant::AnyStep) {
            return effects.push(Effect::Note(Note::Rejected {
                client: id,
                step: envelope.step,
                reason: format!("wrong step: this is step {}", self.step),
            }));
        }
        let digest = envelope.digest();
        if let Some(first) = self.answered.get(&(position as u32)) {
            if *first != digest && !active(Mutant::DedupByKey) {
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
        let (answer, lines) = match &envelope.message {
            Message::Up(bytes, lines) => (Ok(bytes.clone()), *lines),
            Message::Refused(_, lines) if active(Mutant::RefusalAsBudget) => (Err(Refusal::Budget), *lines),
            // Whatever a client says: a verdict of a private run has no reason in it.
            Message::Refused(reason, lines) => (Err(reason.shown(&self.setting.run.privacy)), *lines),
            _ => return,
        };
        // Every answer adds to the client's ledger: one that does not was made from an old disk.
        if lines < known.lines || lines == known.lines && known.step < envelope.step {
            let why = format!(
                "ledger: {lines} lines with the answer to step {}, {} were seen here before; an old disk was restored",
                envelope.step, known.lines
            );
            let seen = known.lines;
            let turned = Message::Turned(why.as_bytes().into(), lines);
            effects.push(self.send(Peer::Client(id), self.step, turned));
            return effects.push(Effect::Note(Note::OldDisk(Peer::Client(id), lines, seen)));
        }
        known.step = envelope.step;
        if lines > known.lines {
            (known.lines, known.head) = (lines, [0; 32]);
        }
        self.fresh.insert(position as u32);
        self.answered.insert(position as u32, digest);
        self.waiting.insert(position as u32, answer);
        self.fold(false, effects);
        if self.complete() {
            self.close(effects);
            self.advance(false, effects);
        }
    }

    /// Folds answers in id order as far as they are there; with `gaps`, past clients that have not answered.
    pub(in crate::round) fn fold(&mut self, gaps: bool, effects: &mut Vec<Effect>) {
        if active(Mutant::ArrivalOrder) {
            let waiting: Vec<u32> = self.waiting.keys().copied().collect();
            for position in waiting {
                self.judge(position as usize, false, effects);
            }
        }
        while self.frontier < self.server.members().len() && self.judge(self.frontier, gaps, effects) {
            self.frontier += 1;
        }
    }

    /// Gives one client its verdict; false, and no verdict, where its answer is still to come.
    pub(in crate::round) fn judge(&mut self, position: usize, gaps: bool, effects: &mut Vec<Effect>) -> bool {
        let answer = self.waiting.remove(&(position as u32));
        if self.server.verdicts()[position] != Verdict::Asked {
            return true;
        }
        let setting = self.setting.clone();
        let mut chunk = self.server.chunk(&setting.algorithm, &setting.run, position / CHUNK);
        let i = position % CHUNK;
        match answer {
            Some(Ok(bytes)) => match A::Up::from_bytes(&bytes) {
                Ok(up) => chunk.take(i, Ok(&up)),
                Err(_) => chunk.reject(i, Reject::Unreadable),
            },
            Some(Err(reason)) => chunk.take(i, Err(reason)),
            None if gaps => chunk.miss(i),
            None => return false,
        }
        if let Verdict::Rejected(reason) = self.server.verdicts()[position] {
            let (client, step, reason) =
                (self.server.members()[position].id, self.step, reason.words().into());
            effects.push(Effect::Note(Note::Rejected { client, step, reason }));
        }
        true
    }

    /// Whether the step can be closed before its time is up.
    pub(in crate::round) fn complete(&self) -> bool {
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
            Stage::Ended | Stage::Stopped if !self.done => {
                self.done = true;
                effects.push(Effect::Done);
            }
            Stage::Ended | Stage::Stopped => {}
        }
        effects
    }

    pub(in crate::round) fn finish(&mut self, effects: &mut Vec<Effect>) {
        if !self.done
            && self.ended()
            && self.waits_for().next().is_none()
            && self.waits_for_servers().next().is_none()
        {
            self.done = true;
            effects.push(Effect::Done);
        }
    }

    /// Closes the step with the answers that are there and shares.
    pub(in crate::round) fn close(&mut self, effects: &mut Vec<Effect>) {
        self.fold(true, effects);
        let setting = self.setting.clone();
        let (share, counts) = self.server.close(&setting.algorithm, &setting.run, &mut Tally::default());
        self.stage = Stage::Sharing;
        let own = Stop::find(&*setting.algorithm, &self.server, self.step, counts);
        // With deadlines no single client ends a run.
        let heeded =
            |stop: &Stop| self.mode == Mode::Strict || active(Mutant::HeedsOne) || !stop.on_one_word(counts);
        let own = own.filter(heeded);
        let stops = own.filter(|stop| !active(Mutant::GoesOn) && self.learn(stop));
        self.shares.insert((self.step, self.server.id()), share.to_bytes().into());
        self.dirty.extend(self.server.touched());
        self.dirty.extend(self.folded());
        effects.push(Effect::Commit(self.encode()));
        let missing = self.server.members().iter().zip(self.server.verdicts());
        let missing =
            missing.filter(|(_, verdict)| **verdict == Verdict::Missing).map(|(member, _)| member.id);
        effects.push(Effect::Note(Note::Closed { step: self.step, counts, missing: missing.collect() }));
        if let Some(stop) = stops {
            effects.push(Effect::Note(Note::Stopped(stop)));
        }
        for &neighbour in self.server.neighbours() {
            self.offer(neighbour, self.step - 1, effects);
            self.tell(neighbour, effects);
        }
    }

    pub(in crate::round) fn folded(&self) -> Vec<u32> {
        let verdicts = self.server.verdicts().iter().enumerate();
        verdicts.filter(|(_, verdict)| **verdict == Verdict::Value).map(|(i, _)| i as u32).collect()
    }

    pub(in crate::round) fn share(&mut self, id: u32, step: u32, bytes: &Bytes, effects: &mut Vec<Effect>) {
        if self.server.neighbours().binary_search(&id).is_err() || self.refused.contains(&id) {
            return;
        }
        let progress = self.ahead.entry(id).or_default();
        *progress = (*progress).max(step - u32::from(step > 0));
        let due = step == self.step + 1 || step == self.step && !self.ended();
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
                self.shares.insert((step, id), bytes.clone());
                self.advance(false, effects);
            }
        }
    }

    pub(in crate::round) fn advance(&mut self, late: bool, effects: &mut Vec<Effect>) {
        if self.halts(effects) {
            return;
        }
        if self.mixed(late, effects) {
            self.begin(effects);
        }
    }

    /// Mixes once the shares of all neighbours are in; if `late`, of those that are.
    pub(in crate::round) fn mixed(&mut self, late: bool, effects: &mut Vec<Effect>) -> bool {
        if self.stage != Stage::Sharing || self.step == 0 {
            return false;
        }
        let mut ids: Vec<u32> = self.server.neighbours().to_vec();
        let own = ids.partition_point(|p| *p < self.server.id());
        ids.insert(own, self.server.id());
        let mut shares = Vec::with_capacity(ids.len());
        let mut absent = Vec::new();
        let mut used = Vec::with_capacity(ids.len());
        let own_id = self.server.id();
        let ours = self.shares.get(&(self.step, own_id));
        let shape = ours.and_then(|bytes| A::Share::from_bytes(bytes).ok()).map(|share| Shape::of(&share));
        for id in ids {
            let bytes = self.shares.get(&(self.step, id));
            // What cannot be computed with counts as not there: the neighbour has to send something else.
            let sound = |share: &A::Share| {
                let mut door = Door::default();
                share.put(&mut door);
                id == own_id || door.norm2.is_finite() && Some(Shape::of(share)) == shape
            };
            let share = bytes.and_then(|bytes| A::Share::from_bytes(bytes).ok()).filter(sound);
            if let (Some(_), None) = (bytes, &share) {
                effects.push(Effect::Note(Note::Unreadable(Peer::Server(id), self.step)));
                self.shares.remove(&(self.step, id));
            }
            let bytes = self.shares.get(&(self.step, id));
            match bytes.zip(share) {
                Some((bytes, share)) => {
                    let mut digest = Digest::default();
                    digest.bytes(bytes);
                    used.push((id, digest.finish()));
                    shares.push((id, share));
                }
                // A neighbour two steps ahead does not have this share any more.
                None if late || self.has_left(id) || self.refused.contains(&id) => absent.push(id),
                None => return false,
            }
        }
        if !absent.is_empty() {
            effects.push(Effect::Note(Note::Without(self.step, absent)));
        }
        let setting = self.setting.clone();
        self.used = used;
        let near: Vec<(u32, &A::Share)> = shares.iter().map(|(id, share)| (*id, share)).collect();
        self.server.mix(&setting.algorithm, &setting.run, &near);
        self.server.chunks(&setting.algorithm, &setting.run).for_each(|mut chunk| chunk.settle());
        self.settled = self.folded();
        true
    }

    pub(in crate::round) fn has_left(&self, neighbour: u32) -> bool {
        matches!(self.mode, Mode::Deadline { .. })
            && (self.told.contains(&neighbour)
                || self.ahead.get(&neighbour).is_some_and(|step| *step >= self.step + 2))
    }
}
