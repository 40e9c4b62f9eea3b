//! What the user should know of a run, as values: they become text where they are shown, and are compared as they are.

use crate::spending::{ASSUMED, REFUTED};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;

/// Something the user should know of a run or a comparison. In JSON it is its text.
#[derive(Debug, Clone, PartialEq)]
pub enum Warning {
    /// An epsilon rests on a bound that nothing enforces.
    Assumed,
    /// The epsilon of a config is a claim that an audit refuted.
    Refuted,
    /// From round to round the servers' models move further.
    Diverging {
        /// How many times as far.
        times: f64,
        /// As so many rounds ago.
        rounds: u32,
    },
    /// Uploads were turned away.
    Rejected {
        /// In the last round with any.
        last: u64,
        /// In all rounds.
        total: u64,
        /// Whether the method has a penalty, which may help.
        penalty: bool,
    },
    /// Clients refused to send.
    Refused {
        /// How many.
        clients: u64,
        /// Of so many.
        of: usize,
        /// The first round in which one did.
        from: u32,
        /// Whether the only reason was a spent budget.
        budget: bool,
    },
    /// Clients refused to send, and no statements were kept that say why.
    RefusedTimes {
        /// How often.
        times: u64,
    },
    /// The step of the FedGL paper's Algorithm 1 is longer than its Proposition 1 allows.
    LongStep {
        /// How many times as long, at most.
        times: f64,
    },
    /// Learnt graphs are not connected.
    Pieces {
        /// Of how many clients.
        clients: usize,
        /// Of so many.
        of: usize,
        /// The first of them.
        first: String,
        /// In how many pieces its graph is.
        pieces: u32,
    },
    /// Another run was charged to the ledger while this one was interrupted.
    BeganAgain,
    /// Earlier runs let something out without noise that protects.
    DisclosedBefore {
        /// About the data of so many clients.
        clients: usize,
    },
    /// Nodes are measured once, at the end.
    MeasuredOnce,
    /// Nodes run one repeat.
    OneRepeat {
        /// Of so many.
        of: u32,
    },
    /// Several points of a grid have the best score.
    Tie {
        /// The curve.
        curve: String,
        /// How many.
        points: usize,
    },
    /// A text that was read from the file of a run that was complete already.
    Read(String),
}

impl Warning {
    /// One warning of each kind: repeats say the same with other numbers.
    pub fn distinct(warnings: impl IntoIterator<Item = Self>) -> Vec<Self> {
        let mut kept: Vec<Self> = Vec::new();
        for warning in warnings {
            if !kept.iter().any(|known| known.is_like(&warning)) {
                kept.push(warning);
            }
        }
        kept
    }

    fn is_like(&self, other: &Self) -> bool {
        match (self, other) {
            (Warning::Read(a), Warning::Read(b))
            | (Warning::Tie { curve: a, .. }, Warning::Tie { curve: b, .. }) => a == b,
            _ => std::mem::discriminant(self) == std::mem::discriminant(other),
        }
    }

    /// Whether it is said before a run begins as well.
    pub fn is_said_before(&self) -> bool {
        matches!(self, Warning::Assumed | Warning::Refuted)
    }
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Warning::Assumed => f.write_str(ASSUMED),
            Warning::Refuted => f.write_str(REFUTED),
            Warning::Diverging { times, rounds } => write!(
                f,
                "the iteration is diverging: from round to round the served models move {times:.1} times as far as {rounds} \
                 rounds ago; raise `algorithm.penalty` or, where the method has the key, set algorithm.dual = \"aggregate\""
            ),
            Warning::Rejected { last, total, penalty } => write!(
                f,
                "uploads were rejected, {last} in the last round with any and {total} in all: not finite, or a norm above \
                 run.max_norm; the iteration may be diverging{}",
                if *penalty { ", and a larger `algorithm.penalty` may help" } else { "" }
            ),
            Warning::Refused { clients, of, from, budget } => {
                let why = if *budget {
                    "their privacy budget is spent"
                } else {
                    "see the ledger for their reasons"
                };
                write!(
                    f,
                    "{clients} of {of} clients refused to send, from round {from} on: {why}; the run went on without them"
                )
            }
            Warning::RefusedTimes { times } => {
                write!(f, "{times} times a client refused, most likely because its privacy budget was spent")
            }
            Warning::LongStep { times } => write!(
                f,
                "the step of Algorithm 1 was up to {times:.1} times what Proposition 1 allows: the graphs need not be near an \
                 optimum; lower algorithm.step, or set algorithm.solver = \"exact\""
            ),
            Warning::Pieces { clients, of, first, pieces } => write!(
                f,
                "the graphs of {clients} of {of} clients are not connected (that of {first:?} is in {pieces} pieces): raise \
                 model.beta for more edges, or give them more records"
            ),
            Warning::BeganAgain => f.write_str(
                "the ledger was charged by another run since this one was interrupted: it began again",
            ),
            Warning::DisclosedBefore { clients } => write!(
                f,
                "NOT PRIVATE: earlier runs let something out without noise that protects, about the data of {clients} clients \
                 (`fedkin ledger` shows whom); no noise of this run can take that back"
            ),
            Warning::MeasuredOnce => {
                f.write_str("nodes do not report between rounds: metrics are those after the last round")
            }
            Warning::OneRepeat { of } => write!(f, "nodes run the first of the {of} repeats"),
            Warning::Tie { curve, points } => write!(
                f,
                "{curve}: {points} points of the grid have the best validation score, and the first was taken; more \
                 tune.rounds, tune.repeats or validation records may tell them apart"
            ),
            Warning::Read(text) => f.write_str(text),
        }
    }
}

impl Serialize for Warning {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Warning {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Ok(match text.as_str() {
            ASSUMED => Warning::Assumed,
            REFUTED => Warning::Refuted,
            _ => Warning::Read(text),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repeats_say_a_thing_once() {
        let rejected = |last| Warning::Rejected { last, total: 9, penalty: true };
        let tie = |curve: &str| Warning::Tie { curve: curve.into(), points: 2 };
        let all = [rejected(1), Warning::Assumed, rejected(2), tie("a"), tie("b"), Warning::Assumed];
        assert_eq!(Warning::distinct(all), [rejected(1), Warning::Assumed, tie("a"), tie("b")]);
    }

    #[test]
    fn in_json_a_warning_is_its_text() {
        for warning in [Warning::Assumed, Warning::Refuted, Warning::Read("so".into())] {
            let text = serde_json::to_string(&warning).unwrap();
            assert_eq!(text, serde_json::to_string(&warning.to_string()).unwrap());
            assert_eq!(serde_json::from_str::<Warning>(&text).unwrap(), warning);
        }
        let text = serde_json::to_string(&Warning::OneRepeat { of: 3 }).unwrap();
        let read: Warning = serde_json::from_str(&text).unwrap();
        assert_eq!(read.to_string(), Warning::OneRepeat { of: 3 }.to_string());
    }
}
