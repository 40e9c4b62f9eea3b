//! Why a run could not go on, as a node leaves it in `outcome.json`.

use fedkin_method::round::{Cause, Stop, Stopped};
use fedkin_method::{Halt, Reject};
use fedkin_privacy::Refusal;
use serde::{Deserialize, Serialize};

/// A stop in `outcome.json`. Servers and clients by number, as the run counts them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StopOutcome {
    /// The step whose closing showed it.
    pub step: u32,
    /// The configured round that the step belongs to.
    pub round: u32,
    /// The server that closed it.
    pub server: u32,
    /// Why it could not go on.
    pub cause: StopCause,
    /// What the method advises; empty where it has no advice.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub advice: String,
}

/// Its cause.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum StopCause {
    /// The training of a client gave numbers that are not finite.
    Diverged {
        /// Which client.
        client: u32,
    },
    /// What the method found out about its own work.
    Method {
        /// What is wrong.
        cause: String,
        /// What to do; empty where the cause says it.
        remedy: String,
    },
    /// Uploads came, and all of them were turned away.
    Rejected {
        /// How many.
        uploads: u32,
        /// Why the first was.
        #[serde(with = "Rejects")]
        reason: Reject,
    },
    /// Every client that was asked refused.
    Silent {
        /// Why, for a reason that stays.
        #[serde(with = "Refusals")]
        reason: Refusal,
    },
}

/// [`Reject`] in words of the file.
#[derive(Serialize, Deserialize)]
#[serde(remote = "Reject", rename_all = "kebab-case")]
enum Rejects {
    Shape,
    NotFinite,
    Norm,
    Unreadable,
}

/// [`Refusal`] in words of the file.
#[derive(Serialize, Deserialize)]
#[serde(remote = "Refusal", rename_all = "kebab-case")]
enum Refusals {
    Budget,
    NotPrivate,
    NoMechanism,
    Unsolved,
    Diverged,
    Undisclosed,
    BadAsk,
}

impl From<Stopped> for StopOutcome {
    fn from(stopped: Stopped) -> Self {
        let Stopped { stop: Stop { step, server, cause }, round, advice } = stopped;
        let cause = match cause {
            Cause::Method(Halt::Diverged { client }) => StopCause::Diverged { client },
            Cause::Method(Halt::Method { cause, remedy }) => StopCause::Method { cause, remedy },
            Cause::Rejected { uploads, reason } => StopCause::Rejected { uploads, reason },
            Cause::Silent { reason } => StopCause::Silent { reason },
        };
        Self { step, round, server, cause, advice }
    }
}

impl From<StopOutcome> for Stopped {
    fn from(left: StopOutcome) -> Self {
        let StopOutcome { step, round, server, cause, advice } = left;
        let cause = match cause {
            StopCause::Diverged { client } => Cause::Method(Halt::Diverged { client }),
            StopCause::Method { cause, remedy } => Cause::Method(Halt::Method { cause, remedy }),
            StopCause::Rejected { uploads, reason } => Cause::Rejected { uploads, reason },
            StopCause::Silent { reason } => Cause::Silent { reason },
        };
        Self { stop: Stop { step, server, cause }, round, advice }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_node_leaves_is_what_it_knew() {
        let causes = [
            Cause::Method(Halt::Diverged { client: 3 }),
            Cause::Method(Halt::Method { cause: "it grows".into(), remedy: "lower it".into() }),
            Cause::Rejected { uploads: 4, reason: Reject::NotFinite },
            Cause::Silent { reason: Refusal::NoMechanism },
        ];
        for cause in causes {
            let stopped = Stopped { stop: Stop { step: 7, server: 2, cause }, round: 4, advice: "a".into() };
            let text = serde_json::to_string(&StopOutcome::from(stopped.clone())).unwrap();
            let left: StopOutcome = serde_json::from_str(&text).unwrap();
            assert_eq!(Stopped::from(left), stopped, "{text}");
        }
    }
}
