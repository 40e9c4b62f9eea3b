//! What a row says of its method to code that knows no method: tables, figures, messages.

use super::{Methods, Row};
use fedkin_privacy::Protection;

/// What others are measured against.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Baseline {
    /// Every client alone.
    Alone,
    /// One model for all clients.
    OneModel,
    /// All records at one place, which no federation has.
    Pooled,
}

/// What the weight of an edge between two clients says, in the graph that a method finds or uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EdgeMeaning {
    /// What the one was worth to the other, as the method measures it.
    Worth,
    /// By how much a step of the one lowered the loss of the other.
    Reward,
    /// Models were denoised over the graph, and this is its weight.
    Denoising,
}

/// How a method is drawn. A colour is a number of the palette of reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Colours {
    /// The colour of the method; absent: any that is free.
    pub own: Option<usize>,
    /// Words that a curve may give as its `method`, for variants of this one, with their colours.
    pub variants: &'static [(&'static str, usize)],
}

impl Row {
    /// The same as a baseline.
    #[must_use]
    pub const fn baseline(mut self, baseline: Baseline) -> Self {
        self.baseline = Some(baseline);
        self
    }

    /// The same where edges between clients mean this.
    #[must_use]
    pub const fn edges(mut self, edges: EdgeMeaning) -> Self {
        self.edges = edges;
        self
    }

    /// The same in a colour of its own. Where two share one, the row that comes first keeps it.
    #[must_use]
    pub const fn colour(mut self, own: usize) -> Self {
        self.colours.own = Some(own);
        self
    }

    /// The same with colours for variants that curves name.
    #[must_use]
    pub const fn variants(mut self, variants: &'static [(&'static str, usize)]) -> Self {
        self.colours.variants = variants;
        self
    }
}

/// The methods whose uploads a mechanism covers, in words: `"dp-sgd" (fedavg, fedprox)`, several joined by "or". For
/// messages that say what would do.
pub(super) fn covered(methods: &Methods, by: &[Protection]) -> String {
    let each = by.iter().filter_map(|mechanism| {
        let able = methods.iter().filter(|row| row.covered_by.contains(mechanism)).map(|row| row.name);
        let names: Vec<&str> = able.collect();
        (!names.is_empty()).then(|| format!("{:?} ({})", mechanism.word(), names.join(", ")))
    });
    each.collect::<Vec<_>>().join(" or ")
}

#[cfg(test)]
mod tests {
    use super::super::Context;
    use super::super::native;
    use super::*;
    use crate::Families;
    use fedkin_learner::model::{Loss, Model};
    use fedkin_learner::signals::{Records, Smooth};
    use fedkin_learner::{Graph, Linear};
    use fedkin_privacy::{Privacy, PrivacySettings};
    use fedkin_settings::{Value, Values};

    /// What is asked for, with the keys that each mechanism needs.
    fn privacy(mechanism: Protection) -> Privacy {
        let settings = PrivacySettings {
            mechanism,
            clip: Some(1.0),
            epsilon: Some(1.0),
            noise_multiplier: Some(1.0),
            ..PrivacySettings::default()
        };
        Privacy::new(&settings).unwrap()
    }

    /// A method takes the mechanisms of its row, and no other. Where nothing leaves a client, any will do.
    #[test]
    fn every_method_takes_the_mechanisms_that_its_row_names() {
        let linear = Model { loss: Loss::Logistic, regularisation: 0.1, bias: true, feature_norm: Some(1.0) };
        let smooth = Smooth { alpha: 1.0, beta: 1.0, records: Records::Signals };
        for row in &native() {
            if row.baseline == Some(Baseline::Alone) {
                continue;
            }
            let families = if row.graphs {
                Families::one(Graph::new(smooth))
            } else {
                Families::one(Linear::new(linear))
            };
            for mechanism in [Protection::Zcdp, Protection::DpSgd, Protection::OneShot, Protection::Paper] {
                let context = Context::new(families.clone(), privacy(mechanism));
                // The noise of the paper is in the steps of the paper's solver.
                let solver = row.params.iter().find(|param| param.name == "solver");
                let raw = solver
                    .map(|key| (key.name.to_string(), Value::Text("paper".into())))
                    .into_iter()
                    .collect();
                let built = row.build(&Values::check(row.params, &raw).unwrap(), &context);
                assert_eq!(
                    built.is_ok(),
                    row.covered_by.contains(&mechanism),
                    "{} with {mechanism:?}",
                    row.name
                );
            }
        }
    }

    #[test]
    fn a_message_names_who_takes_a_mechanism() {
        let methods = native();
        assert_eq!(covered(&methods, &[Protection::DpSgd]), "\"dp-sgd\" (fedavg, fedprox, fedpnp)");
        assert!(
            covered(&methods, &[Protection::Zcdp, Protection::DpSgd]).contains(") or \"dp-sgd\" (fedavg")
        );
    }
}
