//! When a run cannot go on. One definition, for one process and for nodes.
//!
//! Looked at server by server when a step is closed, before its shares are mixed: the method complains, or all uploads
//! that came were turned away, or everybody refused for a reason that stays. The run's reason is the first by step and
//! server. In one process the run ends there. On nodes a server that stops tells its neighbours, which tell theirs; whoever
//! knows of a stop at step n closes its step if that is n or later, mixes no more, and delivers what it has.
//!
//! With deadlines nobody can end a run for others: a server goes on without a neighbour that has stopped, and stops itself
//! for nothing that a single client could have made up.

use super::server::Server;
use crate::algorithm::{Algorithm, Counts, Halt, Reject, Verdict};
use fedkin_numeric::codec::{Codec, Damaged, Reader, Sink};
use fedkin_privacy::Refusal;

/// Why a server cannot go on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Cause {
    /// The method says so.
    Method(Halt),
    /// Uploads came, and all of them were turned away.
    Rejected {
        /// How many.
        uploads: u32,
        /// Why the first was.
        reason: Reject,
    },
    /// Every client that was asked refused, and one of them for a reason that will be the same in every later step.
    Silent {
        /// That reason.
        reason: Refusal,
    },
}

/// The end of a run before its time: where and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stop {
    /// The step whose closing showed it.
    pub step: u32,
    /// The server that closed it.
    pub server: u32,
    /// Why it cannot go on.
    pub cause: Cause,
}

impl Stop {
    /// Looks at a server that has just closed this step.
    pub fn find<A: Algorithm>(algorithm: &A, server: &Server<A>, step: u32, counts: Counts) -> Option<Self> {
        let cause = match algorithm.complaint(server.state()) {
            Some(halt) => Cause::Method(halt),
            None => Cause::of(server.verdicts(), counts)?,
        };
        Some(Self { step, server: server.id(), cause })
    }

    /// Whether a single client can bring it about, by what it says or fails to say.
    pub(in crate::round) fn on_one_word(&self, counts: Counts) -> bool {
        match &self.cause {
            Cause::Method(Halt::Diverged { .. }) | Cause::Silent { .. } => true,
            Cause::Method(Halt::Method { .. }) => false,
            Cause::Rejected { uploads, .. } => *uploads < 2 || counts.missing > 0,
        }
    }

    /// Whether it comes before another: the first of several is the reason of the run.
    pub fn is_before(&self, other: &Self) -> bool {
        (self.step, self.server) < (other.step, other.server)
    }

    /// The first of several.
    pub fn first(stops: impl IntoIterator<Item = Self>) -> Option<Self> {
        stops.into_iter().min_by_key(|stop| (stop.step, stop.server))
    }
}

impl Cause {
    /// What the answers to a step say, where they say that there is no point in another. A client that has not answered
    /// may do so later, and one whose budget is spent only leaves the run.
    fn of(verdicts: &[Verdict], counts: Counts) -> Option<Self> {
        if counts.values > 0 {
            return None;
        }
        if counts.rejected > 0 {
            let reason = verdicts.iter().find_map(|verdict| match verdict {
                Verdict::Rejected(reason) => Some(*reason),
                _ => None,
            })?;
            return Some(Cause::Rejected { uploads: counts.rejected, reason });
        }
        if counts.missing > 0 || counts.refused == 0 {
            return None;
        }
        verdicts.iter().find_map(|verdict| match verdict {
            Verdict::Refused(Refusal::Budget | Refusal::Undisclosed) => None,
            Verdict::Refused(reason) => Some(Cause::Silent { reason: *reason }),
            _ => None,
        })
    }
}

impl Codec for Cause {
    fn schema() -> String {
        "cause".into()
    }
    fn put<S: Sink>(&self, sink: &mut S) {
        match self {
            Cause::Method(halt) => {
                0u8.put(sink);
                halt.put(sink);
            }
            Cause::Rejected { uploads, reason } => {
                1u8.put(sink);
                uploads.put(sink);
                reason.code().put(sink);
            }
            Cause::Silent { reason } => {
                2u8.put(sink);
                reason.put(sink);
            }
        }
    }
    fn get(reader: &mut Reader<'_>) -> Result<Self, Damaged> {
        Ok(match u8::get(reader)? {
            0 => Cause::Method(Halt::get(reader)?),
            1 => Cause::Rejected { uploads: u32::get(reader)?, reason: Reject::of_code(u8::get(reader)?)? },
            2 => Cause::Silent { reason: Refusal::get(reader)? },
            _ => return Err(Damaged),
        })
    }
}

impl Codec for Stop {
    fn schema() -> String {
        "stop".into()
    }
    fn put<S: Sink>(&self, sink: &mut S) {
        self.step.put(sink);
        self.server.put(sink);
        self.cause.put(sink);
    }
    fn get(reader: &mut Reader<'_>) -> Result<Self, Damaged> {
        Ok(Self { step: u32::get(reader)?, server: u32::get(reader)?, cause: Cause::get(reader)? })
    }
}

/// A stop together with what its method says of it: all that a sentence needs beside names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stopped {
    /// Where and why.
    pub stop: Stop,
    /// The configured round that the step belongs to.
    pub round: u32,
    /// What the method advises where uploads grow beyond the bound; empty where it has no advice.
    pub advice: String,
}

impl Stopped {
    /// A stop of this method.
    pub fn new<A: Algorithm>(stop: Stop, algorithm: &A, run: &crate::Run) -> Self {
        let (round, advice) = (algorithm.rounds(stop.step, run), algorithm.advice().to_string());
        Self { stop, round, advice }
    }

    /// The sentence for people. `client` names a client; `server` names a server, or nothing where there is only one.
    pub fn sentence(
        &self,
        client: impl FnOnce(u32) -> String,
        server: impl FnOnce(u32) -> Option<String>,
    ) -> String {
        let round = self.round;
        let at = server(self.stop.server).map_or_else(String::new, |name| format!(" at server {name}"));
        let then = |remedy: &str| if remedy.is_empty() { String::new() } else { format!("; {remedy}") };
        match &self.stop.cause {
            Cause::Method(Halt::Diverged { client: id }) => format!(
                "stopped in round {round}: the training of client {} diverged: its loss is not finite any more; lower \
                 `algorithm.learning_rate`, or look at its records",
                client(*id)
            ),
            Cause::Method(Halt::Method { cause, remedy }) => {
                format!("stopped in round {round}{at}: {cause}{}", then(remedy))
            }
            Cause::Rejected { uploads, reason } => format!(
                "diverged: all {uploads} uploads of round {round}{at} were rejected ({reason}){}",
                then(&self.advice)
            ),
            Cause::Silent { reason } => format!("nobody answered in round {round}{at}: {reason}"),
        }
    }
}

impl std::fmt::Display for Stopped {
    /// With numbers in place of names.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.sentence(|id| format!("number {id}"), |id| Some(format!("number {id}"))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(verdicts: &[Verdict]) -> Option<Cause> {
        let mut counts = Counts::default();
        for verdict in verdicts {
            match verdict {
                Verdict::Value => counts.values += 1,
                Verdict::Refused(_) => counts.refused += 1,
                Verdict::Rejected(_) => counts.rejected += 1,
                Verdict::Missing => counts.missing += 1,
                Verdict::NotAsked | Verdict::Asked => {}
            }
        }
        Cause::of(verdicts, counts)
    }

    #[test]
    fn a_server_goes_on_while_one_upload_counts_or_one_may_still_come() {
        let (value, missing, idle) = (Verdict::Value, Verdict::Missing, Verdict::NotAsked);
        let rejected = Verdict::Rejected(Reject::Norm);
        let refused = Verdict::Refused;
        let silent = |reason| Some(Cause::Silent { reason });
        let all = |uploads| Some(Cause::Rejected { uploads, reason: Reject::Norm });
        let cases: [(&[Verdict], Option<Cause>); 12] = [
            (&[], None),
            (&[idle, idle], None),
            (&[value, rejected], None),
            (&[value, refused(Refusal::Unsolved)], None),
            (&[rejected, rejected, idle], all(2)),
            (&[refused(Refusal::Unsolved), rejected], all(1)),
            (&[missing, rejected], all(1)),
            (&[missing, missing], None),
            (&[missing, refused(Refusal::Unsolved)], None),
            (&[refused(Refusal::Budget), refused(Refusal::Undisclosed)], None),
            (&[refused(Refusal::Budget), refused(Refusal::Unsolved)], silent(Refusal::Unsolved)),
            (&[refused(Refusal::Diverged), refused(Refusal::Unsolved)], silent(Refusal::Diverged)),
        ];
        for (verdicts, expected) in cases {
            assert_eq!(judged(verdicts), expected, "{verdicts:?}");
        }
    }

    #[test]
    fn what_a_single_client_can_bring_about_is_told_from_the_rest() {
        let alone = |cause, missing| {
            Stop { step: 1, server: 0, cause }.on_one_word(Counts { missing, ..Counts::default() })
        };
        let [diverged, method, rejected, silent] = causes();
        assert!(alone(diverged, 0) && alone(silent, 0) && !alone(method, 0));
        assert!(!alone(rejected.clone(), 0) && alone(rejected, 3));
        assert!(alone(Cause::Rejected { uploads: 1, reason: Reject::NotFinite }, 0));
    }

    fn causes() -> [Cause; 4] {
        [
            Cause::Method(Halt::Diverged { client: 3 }),
            Cause::Method(Halt::Method { cause: "it grows".into(), remedy: "lower it".into() }),
            Cause::Rejected { uploads: 4, reason: Reject::NotFinite },
            Cause::Silent { reason: Refusal::Unsolved },
        ]
    }

    #[test]
    fn a_stop_crosses_whole_and_the_first_by_step_and_server_counts() {
        for cause in causes() {
            let stop = Stop { step: 7, server: 2, cause };
            let bytes = stop.to_bytes();
            assert_eq!(Stop::from_bytes(&bytes), Ok(stop));
            assert!((0..bytes.len()).all(|cut| Stop::from_bytes(&bytes[..cut]).is_err()));
        }
        let at = |step, server| Stop { step, server, cause: causes()[0].clone() };
        assert!(
            at(2, 5).is_before(&at(3, 1)) && at(2, 1).is_before(&at(2, 5)) && !at(2, 1).is_before(&at(2, 1))
        );
        assert_eq!(Stop::first([at(3, 0), at(2, 5), at(2, 1)]), Some(at(2, 1)));
    }

    #[test]
    fn sentences_have_names_and_what_to_do() {
        let told = |cause, advice: &str, server: Option<&str>| {
            let stop = Stop { step: 9, server: 1, cause };
            let stopped = Stopped { stop, round: 5, advice: advice.into() };
            stopped.sentence(|_| "\"north\"".into(), |_| server.map(Into::into))
        };
        let [diverged, grows, rejected, silent] = causes();
        assert!(
            told(diverged, "", None)
                .starts_with("stopped in round 5: the training of client \"north\" diverged")
        );
        assert_eq!(told(grows, "", Some("\"s\"")), "stopped in round 5 at server \"s\": it grows; lower it");
        assert_eq!(
            told(rejected.clone(), "raise it", None),
            "diverged: all 4 uploads of round 5 were rejected (not finite); raise it"
        );
        assert_eq!(
            told(rejected, "", Some("\"s\"")),
            "diverged: all 4 uploads of round 5 at server \"s\" were rejected (not finite)"
        );
        assert_eq!(told(silent, "", None), "nobody answered in round 5: the client's problem was not solved");
    }
}
