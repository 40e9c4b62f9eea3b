//! What a server keeps on disk: its whole state now and then, and what changed in between.

use super::messages::Record;
use super::server::Verdict;
use super::server_node::{Known, ServerNode, Stage};
use crate::algorithm::{Algorithm, Label};
use crate::codec::{Bytes, Codec, Damaged, Reader};
use thiserror::Error;

/// A full record is written once the changes since the last one are this many times its size.
const PATIENCE: usize = 4;

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

impl<A: Algorithm> ServerNode<A> {
    /// The record of this moment: everything, or what changed since the last record.
    pub(in crate::round) fn encode(&mut self) -> Record {
        let (full, changes) = self.written;
        let all = full == 0 || changes > PATIENCE * full;
        if all {
            self.dirty.extend(0..self.server.members().len() as u32);
            self.fresh = (0..self.known.len() as u32).collect();
        }
        let mut bytes = Bytes::default();
        self.step.put(&mut bytes);
        let stage = match self.stage {
            Stage::Asking => 0u8,
            Stage::Sharing => 1,
            Stage::Ended => 2,
        };
        stage.put(&mut bytes);
        self.label.put(&mut bytes);
        self.asks.put(&mut bytes);
        let codes: Vec<u8> = self.server.verdicts().iter().map(|verdict| code(*verdict)).collect();
        codes.into_boxed_slice().put(&mut bytes);
        let closed: Vec<(u32, [u8; 32])> = match self.stage {
            Stage::Sharing => self.answered.iter().map(|(position, digest)| (*position, *digest)).collect(),
            _ => Vec::new(),
        };
        closed.into_boxed_slice().put(&mut bytes);
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
            .map(|((step, _), share)| (*step, share.clone().into_boxed_slice()))
            .collect();
        shares.into_boxed_slice().put(&mut bytes);
        let known: Vec<(u32, Option<Known>)> =
            self.fresh.iter().map(|&position| (position, self.known[position as usize].clone())).collect();
        known.into_boxed_slice().put(&mut bytes);
        self.dirty.clear();
        self.fresh.clear();
        if all {
            self.written = (bytes.0.len().max(1), 0);
            Record::Full(bytes.0)
        } else {
            self.written.1 += bytes.0.len();
            Record::Delta(bytes.0)
        }
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

    fn apply(&mut self, record: &[u8]) -> Result<(), Lost> {
        let mut reader = Reader::new(record);
        self.step = u32::get(&mut reader)?;
        self.stage = match u8::get(&mut reader)? {
            0 => Stage::Asking,
            1 => Stage::Sharing,
            2 => Stage::Ended,
            _ => return Err(Lost::Damaged),
        };
        self.label = Label::get(&mut reader)?;
        self.asks = <[u8; 32]>::get(&mut reader)?;
        let codes = Box::<[u8]>::get(&mut reader)?;
        let verdicts: Result<Vec<Verdict>, Damaged> = codes.iter().map(|code| verdict(*code)).collect();
        self.server.set_verdicts(&verdicts?)?;
        let closed = Box::<[(u32, [u8; 32])]>::get(&mut reader)?;
        self.answered = closed.into_iter().collect();
        self.server.load_state(&mut reader)?;
        for _ in 0..u64::get(&mut reader)? {
            let position = u32::get(&mut reader)? as usize;
            self.server.load_seat(position, &mut reader)?;
        }
        let own = self.server.id();
        self.shares.clear();
        for (step, share) in Box::<[(u32, Box<[u8]>)]>::get(&mut reader)? {
            self.shares.insert((step, own), share.into_vec());
        }
        for (position, known) in Box::<[(u32, Option<Known>)]>::get(&mut reader)? {
            *self.known.get_mut(position as usize).ok_or(Damaged)? = known;
        }
        if reader.left() == 0 { Ok(()) } else { Err(Lost::Damaged) }
    }
}

fn code(verdict: Verdict) -> u8 {
    match verdict {
        Verdict::NotAsked => 0,
        Verdict::Asked => 1,
        Verdict::Value => 2,
        Verdict::Refused(_) => 3,
        Verdict::Rejected(_) => 4,
        Verdict::Missing => 5,
    }
}

fn verdict(code: u8) -> Result<Verdict, Damaged> {
    Ok(match code {
        0 => Verdict::NotAsked,
        1 => Verdict::Asked,
        2 => Verdict::Value,
        3 => Verdict::Refused(crate::privacy::Refusal::Budget),
        4 => Verdict::Rejected("before the restart"),
        5 => Verdict::Missing,
        _ => return Err(Damaged),
    })
}
