//! The keys of the method, and what they mean together.

use super::PersFlAgnostic;
use crate::algorithm::Algorithm;
use crate::methods::guard::{ACCEPT, Accept};
use crate::registry::{Context, Method, TARGETS, Targets};
use fedkin_learner::{Abilities, Family, Output};
use fedkin_privacy::Protection;
use fedkin_settings::{Kind, Param, Preset, choice, settings};

choice! {
    /// First hypotheses of targets.
    pub enum AgnosticStart {
        /// Of the target's own records.
        Own = "own",
        /// A constant.
        Constant = "constant",
    }
}

choice! {
    /// How public points are drawn.
    pub enum PublicLaw {
        /// Standard normal.
        Normal = "normal",
        /// Uniform in [-1, 1].
        Uniform = "uniform",
    }
}

settings! {
    /// Keys of `PersFL` for any model.
    pub struct PersFlAgnosticSettings {
        /// The clients that get a model; the others help.
        targets: Targets => param TARGETS;
        candidates: u32 => Kind::Integer { least: 1, most: 1_000_000 }, Preset::Integer(10),
            "clients that a target asks to re-train its model in a round (B)";
        learning_rate: f64 => Kind::Number { least: 0.0, most: 1e12, open: true }, Preset::Number(1.0),
            "weight of a candidate's records against the predictions so far (eta)";
        /// Which of the offers a target takes.
        accept: Accept => param Param {
            help: "refuse a best offer far worse than usual, or take the least bad one as printed",
            ..ACCEPT
        };
        start: AgnosticStart => Kind::Choice(AgnosticStart::WORDS), Preset::Text("own"),
            "first hypotheses: of the target's own records, or a constant (0, for labels 1/2)";
        public: u32 => Kind::Integer { least: 0, most: 1_000_000 }, Preset::Integer(100),
            "public points on which predictions are compared (|D|); 0: inputs of the candidates instead";
        public_law: PublicLaw => Kind::Choice(PublicLaw::WORDS), Preset::Text("normal"),
            "how public points are drawn, each feature alike: standard normal, or uniform in [-1, 1]";
        held_out: f64 => Kind::Number { least: 0.0, most: 0.9, open: true }, Preset::Number(0.5),
            "without public points: share of a candidate's records that only their inputs are used of";
    }
}

/// What to expect of a model that passes through every record.
const INTERPOLATES: &str = "this kind of model can pass through every record (leaf = 1 without a depth, or neighbours = 1): \
     what others re-train of it changes at single points only, and little is learnt from them; set model.leaf to 10, or \
     model.neighbours to 5";

impl Method for PersFlAgnostic {
    type Settings = PersFlAgnosticSettings;
    const NEEDS: Abilities = Abilities::FIT.and(Abilities::PREDICT);

    fn build(settings: PersFlAgnosticSettings, context: &Context) -> Result<Self, String> {
        if context.privacy.demanded() {
            return Err(format!(
                "{} lets fitted models, choices and losses out as they are (a nearest-neighbour model is the records \
                 themselves), and no mechanism is known for trees and neighbours: set privacy.mechanism = \"none\", or \
                 use, with a linear model, {}",
                Self::NAME,
                context.covered(&[Protection::Zcdp, Protection::DpSgd])
            ));
        }
        let several = |family: &&dyn Family| matches!(family.output(), Output::Classes(_));
        if let Some(family) = context.families.all().find(several) {
            return Err(format!(
                "{} re-trains models of one number or one probability, and the learner {:?} tells several classes apart",
                Self::NAME,
                family.name()
            ));
        }
        if context.families.all().any(|family| !family.is_determined()) {
            return Err(format!(
                "{} fits linear models to few records: it needs `model.regularisation` above 0",
                Self::NAME
            ));
        }
        Ok(Self {
            families: context.families.clone(),
            candidates: settings.candidates,
            learning_rate: settings.learning_rate,
            accept: settings.accept,
            start: settings.start,
            public: settings.public,
            law: settings.public_law,
            held_out: settings.held_out,
        })
    }

    fn targets(settings: &PersFlAgnosticSettings) -> Targets {
        settings.targets.clone()
    }

    fn caveat(_: &PersFlAgnosticSettings, context: &Context, _: u32) -> Option<&'static str> {
        let families = &context.families;
        families.all().any(Family::interpolates).then_some(INTERPOLATES)
    }
}
