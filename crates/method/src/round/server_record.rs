//! What a server keeps on disk: its whole state now and then, and what changed in between.

use super::messages::Record;
use super::server_node::{Known, ServerNode, Stage};
use super::stop::Stop;
use crate::algorithm::{Algorithm, Label, Reject, Verdict};
use fedkin_numeric::codec::{Codec, Damaged, Encoder, Reader};
use fedkin_privacy::Refusal;
use thiserror::Error;

/// A full record is written once the changes since the last one are this many times its size,
const PATIENCE: usize = 16;
/// or, where that is much, this many times.
const LITTLE_PATIENCE: usize = 4;
/// Much, in bytes.
const MUCH: usize = 64 << 20;

/// Why a server cannot go on from its disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum Lost {
    /// The record cannot be read.
    #[error("damaged or truncated record")]
    Damaged,
    /// The plan on disk gives other questions than the ones that were asked.
    #[error("this build or config asks something else than the one that began the step")]
    OtherAsks,
}

impl From<Damaged> for Lost {
    fn from(_: Damaged) -> Self {
        Lost::Damaged
    }
}

/// What a record says was decided, whatever the method. With the uploads, these are enough to replay a run.
#[derive(Debug, Clone, PartialEq)]
pub enum Decided {
    /// A step was planned.
    Planned {
        /// Which.
        step: u32,
        /// By position: asked or not.
        verdicts: Vec<Verdict>,
        /// The shares the step before was mixed from: server and digest.
        mixed: Vec<(u32, [u8; 32])>,
    },
    /// A step was closed.
    Closed {
        /// Which.
        step: u32,
        /// By position.
        verdicts: Vec<Verdict>,
        /// The digests of the answers, by position.
        answers: Vec<(u32, [u8; 32])>,
        /// The first reason this server knows why the run cannot go on.
        stop: Option<Stop>,
    },
    /// The run cannot go on: the step that was closed is the last.
    Stopped {
        /// Which.
        step: u32,
        /// The first reason this server knows.
        stop: Option<Stop>,
    },
    /// This server has learnt why the run cannot go on.
    Learnt {
        /// The first reason it knows.
        stop: Option<Stop>,
    },
    /// There is no further step.
    Ended {
        /// The last one.
        step: u32,
        /// The shares it was mixed from.
        mixed: Vec<(u32, [u8; 32])>,
    },
    /// A client has confirmed what it was served.
    Confirmed {
        /// Its position.
        position: u32,
    },
}

/// Reads what a server's record, full or not, says was decided.
pub fn decided(record: &[u8]) -> Result<Decided, Lost> {
    let head = Heading::read(&mut Reader::new(record))?;
    let verdicts = head.codes.iter().map(|code| verdict(*code)).collect::<Result<Vec<Verdict>, Damaged>>()?;
    let (step, mixed) = (head.step, head.mixed.into_vec());
    Ok(match head.stage {
        ASKING => Decided::Planned { step, verdicts, mixed },
        SHARING => Decided::Closed { step, verdicts, answers: head.closed.into_vec(), stop: head.stop },
        ENDED => Decided::Ended { step, mixed },
        STOPPED => Decided::Stopped { step, stop: head.stop },
        LEARNT => Decided::Learnt { stop: head.stop },
        _ => Decided::Confirmed { position: head.position },
    })
}

const ASKING: u8 = 0;
const SHARING: u8 = 1;
const ENDED: u8 = 2;
/// A record of one confirmation alone.
const CONFIRMED: u8 = 3;
const STOPPED: u8 = 4;
/// A record of a reason alone.
const LEARNT: u8 = 5;

fedkin_numeric::record! {
    /// How every record begins.
    struct Heading {
        step: u32,
        stage: u8,
        /// Who confirmed, where the record is of that alone.
        position: u32,
        label: (u32, u32),
        asks: [u8; 32],
        /// Whether the seats of the step before are to be settled with the state that follows.
        settle: bool,
        codes: Box<[u8]>,
        closed: Box<[(u32, [u8; 32])]>,
        mixed: Box<[(u32, [u8; 32])]>,
        /// The first reason it knows why the run cannot go on.
        stop: Option<Stop>,
    }
}

impl Heading {
    fn read(reader: &mut Reader<'_>) -> Result<Self, Lost> {
        let head = Self::get(reader)?;
        if head.stage > LEARNT { Err(Lost::Damaged) } else { Ok(head) }
    }
}

impl<A: Algorithm> ServerNode<A> {
    /// Notes that a client has what it was served, in a record of its own.
    pub(in crate::round) fn confirm(&mut self, position: usize) -> Record {
        self.got[position] = true;
        let head =
            Heading { step: self.step, stage: CONFIRMED, position: position as u32, ..Heading::default() };
        let bytes = head.to_bytes();
        self.written.1 += bytes.len();
        Record::Delta(bytes)
    }

    /// Notes why the run cannot go on, in a record of its own.
    pub(in crate::round) fn note_stop(&mut self) -> Record {
        let head = Heading { step: self.step, stage: LEARNT, stop: self.stop.clone(), ..Heading::default() };
        let bytes = head.to_bytes();
        self.written.1 += bytes.len();
        Record::Delta(bytes)
    }

    /// The record of this moment: everything, or what changed since the last record.
    pub(in crate::round) fn encode(&mut self) -> Record {
        let (full, changes) = self.written;
        let most = PATIENCE.saturating_mul(full).min(MUCH.max(LITTLE_PATIENCE.saturating_mul(full)));
        let all = full == 0 || changes > most;
        if all {
            self.dirty.extend(0..self.server.members().len() as u32);
            self.fresh = (0..self.known.len() as u32).collect();
        }
        // Written once per step: what settling does to a seat follows from the seat and the mixed state.
        let settle = !all && !self.settled.is_empty() && self.stage != Stage::Sharing;
        if !settle {
            self.dirty.extend(&self.settled);
        }
        self.settled.clear();
        let (full, changes) = self.sizes;
        let mut bytes = Encoder(Vec::with_capacity(if all { full } else { changes }));
        let mut head = Heading {
            settle,
            step: self.step,
            label: (u32::from(self.label.kind), self.label.part),
            asks: self.asks,
            stop: self.stop.clone(),
            codes: self.server.verdicts().iter().map(|verdict| code(*verdict)).collect(),
            ..Heading::default()
        };
        match self.stage {
            Stage::Asking => (head.stage, head.mixed) = (ASKING, self.used.clone().into()),
            Stage::Ended => (head.stage, head.mixed) = (ENDED, self.used.clone().into()),
            Stage::Stopped => head.stage = STOPPED,
            Stage::Sharing => {
                head.stage = SHARING;
                head.closed = self.answered.iter().map(|(position, digest)| (*position, *digest)).collect();
            }
        }
        head.put(&mut bytes);
        self.server.save_state(&mut bytes);
        (self.dirty.len() as u64).put(&mut bytes);
        for &position in &self.dirty {
            position.put(&mut bytes);
            self.server.save_seat(position as usize, &mut bytes);
        }
        let own = self.server.id();
        let shares: Vec<(u32, Box<[u8]>)> = self
            .shares
            .iter()
            .filter(|((_, id), _)| *id == own)
            .map(|((step, _), share)| (*step, Box::from(&share[..])))
            .collect();
        shares.into_boxed_slice().put(&mut bytes);
        let known: Vec<(u32, Option<Known>)> =
            self.fresh.iter().map(|&position| (position, self.known[position as usize].clone())).collect();
        known.into_boxed_slice().put(&mut bytes);
        self.dirty.clear();
        self.fresh.clear();
        if all {
            self.written = (bytes.0.len().max(1), 0);
            self.sizes.0 = bytes.0.len();
            Record::Full(bytes.0)
        } else {
            self.written.1 += bytes.0.len();
            self.sizes.1 = bytes.0.len();
            Record::Delta(bytes.0)
        }
    }

    /// Brings the seats of the step that was closed up to date with the mixed state, as `mixed` did.
    fn settle_again(&mut self) -> Result<(), Damaged> {
        if self.stage != Stage::Sharing {
            return Err(Damaged);
        }
        let setting = self.setting.clone();
        self.server.resume(self.step, self.label);
        self.server.chunks(&setting.algorithm, &setting.run).for_each(|mut chunk| chunk.settle());
        Ok(())
    }

    /// Goes on from the last full record and the changes after it, in order; then call `start`.
    pub fn restore<'a>(
        &mut self,
        full: &'a [u8],
        changes: impl IntoIterator<Item = &'a [u8]>,
    ) -> Result<(), Lost> {
        self.apply(full)?;
        self.written = (full.len().max(1), 0);
        for change in changes {
            self.apply(change)?;
            self.written.1 += change.len();
        }
        self.server.resume(self.step, self.label);
        if self.stage == Stage::Asking {
            let setting = self.setting.clone();
            self.server.broadcast(&setting.algorithm, &setting.run);
            let (_, digest) = self.all_asks();
            if digest != self.asks {
                return Err(Lost::OtherAsks);
            }
            self.server.chunks(&setting.algorithm, &setting.run).for_each(|mut chunk| chunk.clear());
        }
        Ok(())
    }

    /// Takes a record.
    fn apply(&mut self, record: &[u8]) -> Result<(), Lost> {
        let mut reader = Reader::new(record);
        let head = Heading::read(&mut reader)?;
        let stage = match head.stage {
            ASKING => Stage::Asking,
            SHARING => Stage::Sharing,
            ENDED => Stage::Ended,
            STOPPED => Stage::Stopped,
            LEARNT => {
                self.stop = head.stop;
                return if reader.left() == 0 { Ok(()) } else { Err(Lost::Damaged) };
            }
            _ => {
                *self.got.get_mut(head.position as usize).ok_or(Damaged)? = true;
                return if reader.left() == 0 { Ok(()) } else { Err(Lost::Damaged) };
            }
        };
        self.server.load_state(&mut reader)?;
        if head.settle {
            self.settle_again()?;
        }
        self.stage = stage;
        self.step = head.step;
        let kind = u16::try_from(head.label.0).map_err(|_| Damaged)?;
        self.label = Label { kind, part: head.label.1 };
        self.asks = head.asks;
        let verdicts: Result<Vec<Verdict>, Damaged> = head.codes.iter().map(|code| verdict(*code)).collect();
        self.server.set_verdicts(&verdicts?)?;
        self.answered = head.closed.into_iter().collect();
        self.used = head.mixed.into_vec();
        self.stop = head.stop;
        for _ in 0..u64::get(&mut reader)? {
            let position = u32::get(&mut reader)? as usize;
            self.server.load_seat(position, &mut reader)?;
        }
        let own = self.server.id();
        self.shares.clear();
        for (step, share) in Box::<[(u32, Box<[u8]>)]>::get(&mut reader)? {
            self.shares.insert((step, own), share.into_vec().into());
        }
        for (position, known) in Box::<[(u32, Option<Known>)]>::get(&mut reader)? {
            *self.known.get_mut(position as usize).ok_or(Damaged)? = known;
        }
        if reader.left() == 0 { Ok(()) } else { Err(Lost::Damaged) }
    }
}

/// Verdicts with a reason are numbered from here on, by reason.
const REFUSED: u8 = 16;
const REJECTED: u8 = 32;

fn code(verdict: Verdict) -> u8 {
    match verdict {
        Verdict::NotAsked => 0,
        Verdict::Asked => 1,
        Verdict::Value => 2,
        Verdict::Missing => 3,
        Verdict::Refused(reason) => REFUSED + reason.code(),
        Verdict::Rejected(reason) => REJECTED + reason.code(),
    }
}

fn verdict(code: u8) -> Result<Verdict, Damaged> {
    Ok(match code {
        0 => Verdict::NotAsked,
        1 => Verdict::Asked,
        2 => Verdict::Value,
        3 => Verdict::Missing,
        REFUSED..REJECTED => Verdict::Refused(Refusal::of_code(code - REFUSED)?),
        REJECTED.. => Verdict::Rejected(Reject::of_code(code - REJECTED)?),
        _ => return Err(Damaged),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_restart_forgets_no_reason() {
        let known: Vec<Verdict> = (0..=u8::MAX).filter_map(|code| verdict(code).ok()).collect();
        assert!(known.contains(&Verdict::Refused(Refusal::Diverged)));
        assert!(known.contains(&Verdict::Refused(Refusal::Undisclosed)));
        assert!(known.contains(&Verdict::Rejected(Reject::Unreadable)));
        assert_eq!(known.len(), 4 + 7 + 4);
        for kept in known {
            assert_eq!(verdict(code(kept)), Ok(kept));
        }
    }
}
