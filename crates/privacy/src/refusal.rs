//! Why a client sent nothing.

use super::plan::Privacy;
use fedkin_numeric::codec::{Codec, Damaged, Reader, Sink};
use thiserror::Error;

/// Why a client sent nothing. A refusal is an answer like an upload, and costs nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("{}", self.words())]
pub enum Refusal {
    /// The release would exceed the client's budget.
    Budget,
    /// The run demands privacy and this value would leave without it.
    NotPrivate,
    /// The mechanism cannot be built for this client (for example, no positive sensitivity).
    NoMechanism,
    /// The client's own problem was not solved.
    Unsolved,
    /// The client's training gave numbers that are not finite.
    Diverged,
    /// A reason that the client keeps to itself: all that a server sees of a refusal where privacy is demanded.
    Undisclosed,
    /// No honest server asks that: a number is not finite or beyond all bounds, or the run has no such step.
    BadAsk,
}

impl Refusal {
    const ALL: [Refusal; 7] = [
        Refusal::Budget,
        Refusal::NotPrivate,
        Refusal::NoMechanism,
        Refusal::Unsolved,
        Refusal::Diverged,
        Refusal::Undisclosed,
        Refusal::BadAsk,
    ];

    /// The reason as a constant.
    pub fn words(self) -> &'static str {
        match self {
            Refusal::Budget => "the privacy budget is spent",
            Refusal::NotPrivate => "the run demands privacy and this value has no mechanism",
            Refusal::NoMechanism => "no mechanism can be built for this release",
            Refusal::Unsolved => "the client's problem was not solved",
            Refusal::Diverged => "the loss of the client's training grew beyond all bounds",
            Refusal::Undisclosed => "the client keeps its reason to itself",
            Refusal::BadAsk => {
                "what the server asked is not finite, beyond all bounds, or not a step of this run"
            }
        }
    }

    /// What a server sees of it. Why a client refuses may depend on its records, so where privacy is demanded every
    /// refusal looks the same.
    #[must_use]
    pub fn shown(self, privacy: &Privacy) -> Self {
        if privacy.demanded() { Refusal::Undisclosed } else { self }
    }

    /// Its number in records and messages.
    pub fn code(self) -> u8 {
        self as u8
    }

    /// The reason of this number.
    pub fn of_code(code: u8) -> Result<Self, Damaged> {
        Self::ALL.get(usize::from(code)).copied().ok_or(Damaged)
    }
}

impl Codec for Refusal {
    fn schema() -> String {
        "refusal".into()
    }
    fn put<S: Sink>(&self, sink: &mut S) {
        self.code().put(sink);
    }
    fn get(reader: &mut Reader<'_>) -> Result<Self, Damaged> {
        Self::of_code(u8::get(reader)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{DpSgd, Sampler};

    #[test]
    fn with_privacy_every_refusal_looks_the_same() {
        let clip = crate::Clip::new(1.0);
        let sgd = |sampler| clip.map(|clip| DpSgd { clip, multiplier: 1.0, budget: None, sampler });
        let Some((private, open)) = sgd(Sampler::Discrete).zip(sgd(Sampler::None)) else { panic!("no clip") };
        for refusal in Refusal::ALL {
            assert_eq!(Refusal::of_code(refusal.code()), Ok(refusal));
            assert_eq!(refusal.shown(&Privacy::DpSgd(private)), Refusal::Undisclosed);
            assert_eq!(refusal.shown(&Privacy::DpSgd(open)), refusal);
            assert_eq!(refusal.shown(&Privacy::None), refusal);
        }
    }
}
