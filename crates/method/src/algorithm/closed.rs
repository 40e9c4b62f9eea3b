//! What became of the clients of a server in a step.

use super::{Now, Reject};
use fedkin_privacy::Refusal;

/// What became of a client in a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Verdict {
    /// It was not asked.
    #[default]
    NotAsked,
    /// It was asked and has not answered.
    Asked,
    /// Its upload was folded.
    Value,
    /// It refused.
    Refused(Refusal),
    /// Its upload was turned away at the door.
    Rejected(Reject),
    /// It was asked and the step was closed without it.
    Missing,
}

/// How many of each verdict a step had.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Folded uploads.
    pub values: u32,
    /// Refusals.
    pub refused: u32,
    /// Rejected uploads.
    pub rejected: u32,
    /// Clients that did not answer in time.
    pub missing: u32,
}

/// The closed set of a step: who was folded.
#[derive(Debug, Clone, Copy)]
pub struct Closed<'a> {
    /// Where in the run.
    pub now: Now<'a>,
    /// What became of each client, by position.
    pub verdicts: &'a [Verdict],
    /// The positions with a verdict, sorted.
    pub asked: &'a [u32],
    /// How many of each verdict there are.
    pub counts: Counts,
}

impl Closed<'_> {
    /// Whether an upload was turned away at the door.
    pub fn rejected(&self) -> bool {
        self.counts.rejected > 0
    }

    /// The positions of the clients that were folded.
    pub fn values(&self) -> impl Iterator<Item = usize> + '_ {
        self.positions(Verdict::Value)
    }

    /// The positions of the clients that the step was closed without.
    pub fn missing(&self) -> impl Iterator<Item = usize> + '_ {
        self.positions(Verdict::Missing)
    }

    fn positions(&self, wanted: Verdict) -> impl Iterator<Item = usize> + '_ {
        self.asked.iter().map(|&position| position as usize).filter(move |&i| self.verdicts[i] == wanted)
    }
}

impl Counts {
    /// Adds another count.
    pub fn add(&mut self, other: Counts) {
        self.values += other.values;
        self.refused += other.refused;
        self.rejected += other.rejected;
        self.missing += other.missing;
    }
}
