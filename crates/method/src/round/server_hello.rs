//! How a server receives those who introduce themselves: who does not fit is turned away, with both sides named.

use super::hello::{Hello, Misfit};
use super::messages::{Effect, Message, Note, Peer};
use super::server_node::{Known, Mode, ServerNode, Stage};
use crate::algorithm::Algorithm;

impl<A: Algorithm> ServerNode<A> {
    pub(in crate::round) fn turn(
        &mut self,
        peer: Peer,
        hello: &Hello,
        why: String,
        effects: &mut Vec<Effect>,
    ) {
        effects.push(self.send(peer, self.step, Message::Turned(why.as_bytes().into(), hello.lines)));
        self.turned(peer, why, effects);
    }

    /// Two nodes do not work together, whoever said so. Where rounds have deadlines, a neighbour is then absent: one that
    /// is wrong, or lies, costs its own shares and nothing else.
    pub(in crate::round) fn turned(&mut self, peer: Peer, why: String, effects: &mut Vec<Effect>) {
        let near = match peer {
            Peer::Server(id) if self.mode != Mode::Strict => {
                self.server.neighbours().binary_search(&id).is_ok().then_some(id)
            }
            _ => None,
        };
        let Some(id) = near else { return effects.push(Effect::Note(Note::Turned(peer, why))) };
        if self.refused.insert(id) {
            self.shares.retain(|(_, from), _| *from != id);
            effects.push(Effect::Note(Note::Refused(peer, why)));
            self.advance(false, effects);
            self.finish(effects);
        }
    }

    /// What all hellos must agree on.
    pub(in crate::round) fn fits(
        &mut self,
        peer: Peer,
        hello: &Hello,
        first: bool,
        effects: &mut Vec<Effect>,
    ) -> bool {
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

    pub(in crate::round) fn client_hello(&mut self, id: u32, hello: &Hello, effects: &mut Vec<Effect>) {
        let peer = Peer::Client(id);
        let Some(position) = self.position(id) else {
            return self.turn(peer, hello, format!("{peer} is not on the roster of {}", self.me()), effects);
        };
        let first = self.known[position].is_none();
        if !self.fits(peer, hello, first, effects) {
            return;
        }
        let known = self.known[position].clone().unwrap_or_else(|| self.before(position, hello));
        if known.data == hello.data && hello.lines < known.lines {
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
        let known = self.known[position].clone().unwrap_or_default();
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
        effects.push(self.send(peer, self.step, Message::Welcome(closed, hello.lines)));
        self.remind(position, effects);
    }

    /// What an earlier run knew of a client's ledger on the same data. Its step belongs to that run.
    fn before(&self, position: usize, hello: &Hello) -> Known {
        let past = self.past[position].iter().find(|past| past.data == hello.data);
        past.map_or_else(Known::default, |past| Known { step: 0, ..past.clone() })
    }

    pub(in crate::round) fn server_hello(&mut self, id: u32, hello: &Hello, effects: &mut Vec<Effect>) {
        let peer = Peer::Server(id);
        if self.server.neighbours().binary_search(&id).is_err() {
            return self.turn(peer, hello, format!("{peer} is not a neighbour of {}", self.me()), effects);
        }
        let first = !self.ahead.contains_key(&id);
        if !self.fits(peer, hello, first, effects) {
            return;
        }
        let shared = if self.stage == Stage::Asking { self.step - 1 } else { self.step };
        if self.mode == Mode::Strict && hello.step > shared {
            // It cannot have finished that step without this server's share.
            let why = format!(
                "step: {} finished there, {shared} shared here; an old disk was restored here",
                hello.step
            );
            return self.turn(peer, hello, why, effects);
        }
        // It fits now, whatever was said before.
        if self.refused.remove(&id) || first {
            effects.push(Effect::Note(Note::Joined(peer)));
        }
        let progress = self.ahead.entry(id).or_default();
        *progress = (*progress).max(hello.step);
        self.offer(id, hello.step, effects);
        self.tell(id, effects);
        self.advance(false, effects);
        self.finish(effects);
    }
}
