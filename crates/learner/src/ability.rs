//! What a learner can do, and what a method needs of it.

use std::fmt;

/// A set of abilities.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Abilities(u16);

impl Abilities {
    /// Nothing.
    pub const NONE: Self = Self(0);
    /// Models are vectors of one fixed length that can be averaged.
    pub const PARAMETERS: Self = Self(1);
    /// The loss of a model on the client's records.
    pub const VALUE: Self = Self(1 << 1);
    /// The gradient of that loss.
    pub const GRADIENT: Self = Self(1 << 2);
    /// The gradient over some of the records: mini-batches.
    pub const BATCHES: Self = Self(1 << 3);
    /// Training by epochs of gradient steps.
    pub const DESCEND: Self = Self(1 << 4);
    /// The gradient of a single record, which DP-SGD clips.
    pub const RECORDS: Self = Self(1 << 5);
    /// The proximal step around a centre.
    pub const PROX: Self = Self(1 << 6);
    /// The model that fits the client's own records best.
    pub const MINIMISE: Self = Self(1 << 7);
    /// A fit of any weighted records.
    pub const FIT: Self = Self(1 << 8);
    /// Predictions for records.
    pub const PREDICT: Self = Self(1 << 9);
    /// Graphs of the columns, learnt from signals.
    pub const GRAPH: Self = Self(1 << 10);

    /// Each with what it is called in messages.
    const NAMES: &'static [(Self, &'static str)] = &[
        (Self::PARAMETERS, "parameters that can be averaged"),
        (Self::VALUE, "a loss"),
        (Self::GRADIENT, "gradients"),
        (Self::BATCHES, "gradients over mini-batches"),
        (Self::DESCEND, "training by gradient steps"),
        (Self::RECORDS, "gradients of single records"),
        (Self::PROX, "a proximal step"),
        (Self::MINIMISE, "a best fit of its own records"),
        (Self::FIT, "a fit of weighted records"),
        (Self::PREDICT, "predictions"),
        (Self::GRAPH, "graphs of the columns"),
    ];

    /// What is made from what, where a learner does not bring it: the fallbacks of [`Learner`](super::Learner).
    const MADE: &'static [(Self, Self)] = &[
        (Self::BATCHES, Self::GRADIENT),
        (Self::DESCEND, Self::BATCHES),
        (Self::PROX, Self::GRADIENT.and(Self::VALUE)),
        (Self::MINIMISE, Self::GRADIENT.and(Self::VALUE)),
    ];

    /// These and those.
    #[must_use]
    pub const fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Whether all of those are among these.
    pub const fn contain(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// These without those.
    #[must_use]
    pub const fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    /// Whether there is none.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// These and all that can be made from them.
    #[must_use]
    pub const fn with_fallbacks(self) -> Self {
        let (mut all, mut i) = (self, 0);
        // In the order of the table, so that what is made can serve what follows.
        while i < Self::MADE.len() {
            if all.contain(Self::MADE[i].1) {
                all = all.and(Self::MADE[i].0);
            }
            i += 1;
        }
        all
    }

    /// What of `needs` a learner with these abilities lacks, fallbacks counted.
    #[must_use]
    pub const fn lack(self, needs: Self) -> Self {
        needs.without(self.with_fallbacks())
    }
}

impl fmt::Display for Abilities {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> =
            Self::NAMES.iter().filter(|(one, _)| self.contain(*one)).map(|(_, name)| *name).collect();
        match names.as_slice() {
            [] => write!(f, "nothing"),
            [one] => write!(f, "{one}"),
            [head @ .., last] => write!(f, "{} and {last}", head.join(", ")),
        }
    }
}

/// What a registry knows of a method or a learner for a message: its name and its needs or abilities.
pub type Known<'a> = (&'a str, Abilities);

/// Why a method does not take a learner: what is missing, which learners the method takes, and which methods take the
/// learner. The names come from the registries; `place` is where the learner's keys stand in a config.
pub fn refusal<'a>(
    method: Known<'_>,
    learner: Known<'_>,
    place: &str,
    why: Option<&str>,
    methods: impl Iterator<Item = Known<'a>>,
    learners: impl Iterator<Item = Known<'a>>,
) -> String {
    let missing = learner.1.lack(method.1);
    let fitting: Vec<String> = learners
        .filter(|(_, has)| has.lack(method.1).is_empty())
        .map(|(name, _)| format!("{name:?}"))
        .collect();
    let taking: Vec<String> = methods
        .filter(|(_, needs)| learner.1.lack(*needs).is_empty())
        .map(|(name, _)| format!("{name:?}"))
        .collect();
    let either = |what: &str, names: &[String]| match names {
        [] => format!("nothing known as {what} would do"),
        [one] => format!("{what} = {one}"),
        [head @ .., last] => format!("{what} = {} or {last}", head.join(", ")),
    };
    format!(
        "{} needs {missing}, which the learner {:?} does not have{}: set {}, or {}",
        method.0,
        learner.0,
        why.map_or_else(String::new, |why| format!(" ({why})")),
        either(&format!("{place}.kind"), &fitting),
        either("algorithm.name", &taking),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_can_be_made_from_gradients() {
        let smooth = Abilities::PARAMETERS.and(Abilities::VALUE).and(Abilities::GRADIENT);
        let needs = Abilities::PARAMETERS.and(Abilities::PROX).and(Abilities::DESCEND);
        assert!(smooth.lack(needs).is_empty());
        assert_eq!(smooth.lack(Abilities::RECORDS.and(Abilities::VALUE)), Abilities::RECORDS);
        assert_eq!(Abilities::FIT.lack(needs), needs);
        assert_eq!(
            Abilities::FIT.and(Abilities::PREDICT).to_string(),
            "a fit of weighted records and predictions"
        );
    }

    #[test]
    fn a_refusal_names_what_is_missing_and_what_would_do() {
        let (tree, ridge) =
            (Abilities::FIT.and(Abilities::PREDICT), Abilities::PARAMETERS.and(Abilities::PROX));
        let methods = [("pgfl", ridge), ("local", Abilities::FIT), ("igl", Abilities::GRAPH)];
        let learners = [("ridge", ridge.and(Abilities::FIT)), ("tree", tree)];
        assert_eq!(
            refusal(
                ("pgfl", ridge),
                ("tree", tree),
                "model",
                None,
                methods.into_iter(),
                learners.into_iter()
            ),
            "pgfl needs parameters that can be averaged and a proximal step, which the learner \"tree\" does not have: \
             set model.kind = \"ridge\", or algorithm.name = \"local\""
        );
    }
}
