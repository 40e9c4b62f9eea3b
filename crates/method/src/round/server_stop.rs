//! How servers behind messages end a run that cannot go on: each tells its neighbours the first reason it knows.

use super::messages::{Effect, Message, Note, Peer};
use super::server_node::{Mode, ServerNode, Stage};
use super::stop::Stop;
use crate::algorithm::Algorithm;
use fedkin_privacy::mutants::{Mutant, active};

impl<A: Algorithm> ServerNode<A> {
    /// Keeps a reason if it comes before the one that is known; the next record has it.
    pub(in crate::round) fn learn(&mut self, stop: &Stop) -> bool {
        let news = self.stop.as_ref().is_none_or(|known| stop.is_before(known));
        if news {
            self.stop = Some(stop.clone());
        }
        news
    }

    /// A neighbour knows of a reason. With deadlines the others go on without it. In strict mode all end, and what is new is
    /// on disk before it is passed on: a server that forgot it could wait for ever for neighbours that have left.
    pub(in crate::round) fn hear(&mut self, neighbour: u32, stop: &Stop, effects: &mut Vec<Effect>) {
        if self.server.neighbours().binary_search(&neighbour).is_err() {
            return;
        }
        let news = self.told.insert(neighbour);
        if matches!(self.mode, Mode::Deadline { .. }) && !active(Mutant::HeedsOne) {
            // True or not, it ends this neighbour's part only.
            if news {
                effects.push(Effect::Note(Note::Left(neighbour, stop.clone())));
            }
        } else if self.learn(stop) {
            effects.push(Effect::Commit(self.note_stop()));
            effects.push(Effect::Note(Note::Stopped(stop.clone())));
            for &neighbour in self.server.neighbours() {
                self.tell(neighbour, effects);
            }
        }
        self.advance(false, effects);
        self.finish(effects);
    }

    /// Tells a neighbour what this server knows.
    pub(in crate::round) fn tell(&self, neighbour: u32, effects: &mut Vec<Effect>) {
        if let Some(stop) = &self.stop {
            effects.push(self.send(Peer::Server(neighbour), self.step, Message::Stop(stop.clone())));
        }
    }

    /// Ends where the step that was closed is the one in which the run stops, or a later one: nothing is mixed any more.
    pub(in crate::round) fn halts(&mut self, effects: &mut Vec<Effect>) -> bool {
        let due = self.stop.as_ref().is_some_and(|stop| self.step >= stop.step);
        if !due || self.stage != Stage::Sharing || self.step == 0 {
            return false;
        }
        self.stage = Stage::Stopped;
        effects.push(Effect::Commit(self.encode()));
        (0..self.server.members().len()).for_each(|position| self.remind(position, effects));
        effects.extend(self.beat());
        self.finish(effects);
        true
    }
}
