//! Mistakes that the checks must notice, each by name. Those inside nodes are switched on in the core.

use fedkin_method::round::{Effect, Message, Peer, Record};
use fedkin_privacy::mutants::Mutant;

/// What is done wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mistake {
    /// A client's answer leaves before its record is on disk. Proves that I1 sees the order of effects.
    SendBeforeCommit,
    /// A client's state and its ledger lines are two records, in either order. A crash between them sends bytes
    /// nobody paid for on paper, or pays twice: proves that I1 to I3 see crashes between any two effects.
    TwoRecords,
    /// A server's share leaves before its record is on disk: I5.
    ShareBeforeRecord,
    /// A server tells its neighbours why the run cannot go on before that is on disk: I5.
    StopBeforeRecord,
    /// A server repeats its newest share only. A neighbour one step behind never gets the one it lacks: I8.
    OneShare,
    /// What the broker has acknowledged is not sent again. Then its losses are for ever: I8, and I9 for wipes.
    TrustBroker,
    /// A server goes on from all but its last record: its steps go back (I6) or are decided anew (I4, I5).
    OldRecord,
    /// A client goes on without the first line of its ledger: the chain does not hold together, I3.
    LostLine,
    /// A client goes on with its ledger but without its state: it says an earlier step than before, I6.
    LostState,
    /// The network changes an answer and its checksum: the server folds what nobody sent, I4.
    Altered,
    /// The mailbox keeps everything: I11.
    EndlessMailbox,
    /// Inside a node.
    Inside(Mutant),
}

/// Name, mistake, and which invariants may notice it first. The first nine are those of the protocol's text, the
/// others show that the remaining checks can fail.
pub const MISTAKES: &[(&str, Mistake, &[&str])] = &[
    ("send before P6", Mistake::SendBeforeCommit, &["I1"]),
    ("state and ledger in two records", Mistake::TwoRecords, &["I1", "I2"]),
    ("Share before B", Mistake::ShareBeforeRecord, &["I5"]),
    ("stop before its record", Mistake::StopBeforeRecord, &["I5"]),
    // A repeated question gets a second line in the ledger.
    ("redraw on refusal", Mistake::Inside(Mutant::RedrawOnRefusal), &["I2"]),
    // Two different messages of one step pass without an alarm.
    ("dedup by key without digest", Mistake::Inside(Mutant::DedupByKey), &["I2"]),
    ("keep one Share only", Mistake::OneShare, &["I8"]),
    // Floating-point sums in another order are other bits.
    ("fold in arrival order", Mistake::Inside(Mutant::ArrivalOrder), &["I7"]),
    // An old copy of a client's disk, asked something else in the same step, draws the same noise.
    ("noise stream without the Ask digest", Mistake::Inside(Mutant::NoiseWithoutAsk), &["I10"]),
    ("broker trusted after ack", Mistake::TrustBroker, &["I8", "I9"]),
    ("last record of a server lost", Mistake::OldRecord, &["I4", "I5", "I6"]),
    ("first line of a ledger lost", Mistake::LostLine, &["I3"]),
    ("state of a client lost", Mistake::LostState, &["I6"]),
    ("answers altered on the way", Mistake::Altered, &["I4"]),
    ("mailbox without bound", Mistake::EndlessMailbox, &["I11"]),
    ("every refusal a spent budget", Mistake::Inside(Mutant::RefusalAsBudget), &["I4"]),
    ("reasons that leave", Mistake::Inside(Mutant::ReasonLeaves), &["reason"]),
    ("servers that go on", Mistake::Inside(Mutant::GoesOn), &["I4", "I6", "I7", "I8"]),
];

impl Mistake {
    /// The mistake inside a node, if it is one.
    pub(crate) fn inside(mistake: Option<Self>) -> Option<Mutant> {
        match mistake {
            Some(Mistake::Inside(mutant)) => Some(mutant),
            _ => None,
        }
    }

    /// What a driver that makes this mistake does with a node's effects. `coin` picks between two ways.
    pub(crate) fn spoil(self, peer: Peer, effects: Vec<Effect>, coin: bool) -> Vec<Effect> {
        let early = |effect: &Effect| match (self, effect) {
            (Mistake::SendBeforeCommit, Effect::Send(_)) => matches!(peer, Peer::Client(_)),
            (Mistake::ShareBeforeRecord, Effect::Send(envelope)) => {
                matches!(envelope.message, Message::Share(_))
            }
            (Mistake::StopBeforeRecord, Effect::Send(envelope)) => {
                matches!(envelope.message, Message::Stop(_))
            }
            _ => false,
        };
        let (mut first, later): (Vec<Effect>, Vec<Effect>) = effects.into_iter().partition(early);
        for effect in later {
            match effect {
                Effect::Commit(Record::Client { state, lines })
                    if self == Mistake::TwoRecords && !lines.is_empty() =>
                {
                    let mut halves = [(state, Vec::new()), (Vec::new(), lines)];
                    if coin {
                        halves.reverse();
                    }
                    let record = |(state, lines)| Effect::Commit(Record::Client { state, lines });
                    first.extend(halves.map(record));
                }
                other => first.push(other),
            }
        }
        first
    }
}
