//! What ends a run before its time, and what keeps an upload out of a step: values, which become sentences where names
//! are known.

use super::{Closed, Verdict};
use fedkin_numeric::codec::{Codec, Damaged, Reader, Sink};
use fedkin_privacy::Refusal;

/// Why a method cannot go on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Halt {
    /// The training of a client gave numbers that are not finite.
    Diverged {
        /// Which client.
        client: u32,
    },
    /// What a method found out about its own work.
    Method {
        /// What is wrong.
        cause: String,
        /// What to do; empty where the cause says it.
        remedy: String,
    },
}

impl Halt {
    /// The first client of a closed step whose training diverged.
    pub fn first_diverged(closed: &Closed<'_>) -> Option<u32> {
        let diverged =
            |position: &&u32| closed.verdicts[**position as usize] == Verdict::Refused(Refusal::Diverged);
        closed.asked.iter().find(diverged).map(|&position| closed.now.at.members[position as usize].id)
    }
}

impl Codec for Halt {
    fn schema() -> String {
        "halt".into()
    }
    fn put<S: Sink>(&self, sink: &mut S) {
        match self {
            Halt::Diverged { client } => {
                0u8.put(sink);
                client.put(sink);
            }
            Halt::Method { cause, remedy } => {
                1u8.put(sink);
                put_text(cause, sink);
                put_text(remedy, sink);
            }
        }
    }
    fn get(reader: &mut Reader<'_>) -> Result<Self, Damaged> {
        Ok(match u8::get(reader)? {
            0 => Halt::Diverged { client: u32::get(reader)? },
            1 => Halt::Method { cause: get_text(reader)?, remedy: get_text(reader)? },
            _ => return Err(Damaged),
        })
    }
}

fn put_text<S: Sink>(text: &str, sink: &mut S) {
    sink.length(text.len());
    sink.bytes(text.as_bytes());
}

fn get_text(reader: &mut Reader<'_>) -> Result<String, Damaged> {
    let length = reader.length(1)?;
    String::from_utf8(reader.take(length)?.to_vec()).map_err(|_| Damaged)
}

/// Why an upload was turned away.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reject {
    /// Its lengths or indices are not those that were asked for.
    Shape,
    /// It holds a number that is not finite.
    NotFinite,
    /// Its norm is above what the run allows.
    Norm,
    /// Its bytes are not those of an upload.
    Unreadable,
}

impl Reject {
    const ALL: [Reject; 4] = [Reject::Shape, Reject::NotFinite, Reject::Norm, Reject::Unreadable];

    /// The reason as a constant.
    pub fn words(self) -> &'static str {
        match self {
            Reject::Shape => "wrong shape",
            Reject::NotFinite => "not finite",
            Reject::Norm => "norm too large",
            Reject::Unreadable => "damaged or another shape",
        }
    }

    /// Its number in records and messages.
    pub(crate) fn code(self) -> u8 {
        self as u8
    }

    /// The reason of this number.
    pub(crate) fn of_code(code: u8) -> Result<Self, Damaged> {
        Self::ALL.get(usize::from(code)).copied().ok_or(Damaged)
    }
}

impl std::fmt::Display for Reject {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.words())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reason_has_a_number_of_its_own() {
        for reject in Reject::ALL {
            assert_eq!(Reject::of_code(reject.code()), Ok(reject));
        }
        assert_eq!(Reject::of_code(Reject::ALL.len() as u8), Err(Damaged));
    }

    #[test]
    fn what_halts_a_method_crosses_whole() {
        let texts = || Halt::Method { cause: "é: it grows".into(), remedy: String::new() };
        for halt in [Halt::Diverged { client: 7 }, texts()] {
            let bytes = halt.to_bytes();
            assert_eq!(Halt::from_bytes(&bytes), Ok(halt));
            assert!((0..bytes.len()).all(|cut| Halt::from_bytes(&bytes[..cut]).is_err()));
        }
        assert_eq!(Halt::from_bytes(&[2]), Err(Damaged));
    }
}
