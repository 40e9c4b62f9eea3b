//! The keys of IFCA, and what they say together.

use super::{Ifca, Work};
use crate::algorithm::Algorithm;
use crate::methods::scale::GradientScale;
use crate::methods::training::{Batches, Steps, Training, Weighting, of_batches};
use crate::registry::{Context, Method, TARGETS, Targets};
use fedkin_learner::Abilities;
use fedkin_privacy::Protection;
use fedkin_settings::{Kind, Param, Preset, choice, settings};

choice! {
    /// What clients send.
    pub enum Averaging {
        /// The gradient at the picked model.
        Gradient = "gradient",
        /// The model after their steps.
        Model = "model",
    }
}

choice! {
    /// What the sum over the clients that picked a model is divided by.
    pub enum Divisor {
        /// Their number.
        Pickers = "pickers",
        /// The number of all that answered.
        All = "all",
    }
}

choice! {
    /// Where models begin.
    pub enum IfcaStart {
        /// Normal.
        Normal = "normal",
        /// Uniform in [0, 1).
        Uniform = "uniform",
    }
}

settings! {
    /// Keys of IFCA.
    pub struct IfcaSettings {
        models: Option<usize> => Kind::Integer { least: 1, most: 10_000 }, Preset::Absent,
            "how many models are trained (k); as many as the roster has clusters where absent";
        learning_rate: f64 => Kind::ABOVE_ZERO, Preset::Number(0.1), "size of a gradient step (eta)";
        averaging: Option<Averaging> => Kind::Choice(Averaging::WORDS), Preset::Absent,
            "what clients send: the gradient at the picked model, or the model after `local_steps` steps or `epochs`; \
             the latter for nets and with `epochs`, the former else";
        local_steps: u32 => Kind::Integer { least: 1, most: 100_000 }, Preset::Integer(1),
            "gradient steps of a client in a round, for averaging = \"model\"";
        divide: Divisor => Kind::Choice(Divisor::WORDS), Preset::Text("pickers"),
            "what the sum over the clients that picked a model is divided by: their number, or that of all";
        gradient_scale: GradientScale => Kind::Choice(GradientScale::WORDS), Preset::Text("mean"),
            "gradient of the mean loss of a client, or half its number of records times that";
        restarts: u32 => Kind::Integer { least: 1, most: 1_000 }, Preset::Integer(1),
            "how often to begin with fresh models; each takes all rounds, and the least loss wins";
        start: IfcaStart => Kind::Choice(IfcaStart::WORDS), Preset::Text("normal"),
            "first models: normal, or uniform in [0, 1), times `start_scale`; nets begin as in other methods";
        start_scale: f64 => Kind::Number { least: 0.0, most: 1e9, open: true }, Preset::Number(1.0),
            "how far apart the first models are";
        /// The clients whose models are wanted.
        targets: Targets => param Param {
            help: "the clients whose models are wanted, for scores and for queries per target; all are asked anyway",
            ..TARGETS
        };
        /// Times a client goes through its records in a round, in mini-batches.
        epochs: Option<u32> => param of_batches("epochs");
        /// Records in a mini-batch.
        batch: usize => param of_batches("batch");
        /// Factor of the learning rate from one round to the next, with mini-batches.
        decay: f64 => param of_batches("decay");
        /// Share of the last step that is taken again, with mini-batches.
        momentum: f64 => param of_batches("momentum");
        /// Added to the gradient times the parameters, with mini-batches.
        weight_decay: f64 => param of_batches("weight_decay");
    }
}

impl Method for Ifca {
    type Settings = IfcaSettings;
    const NEEDS: Abilities = Abilities::PARAMETERS.and(Abilities::VALUE).and(Abilities::DESCEND);

    fn build(settings: IfcaSettings, context: &Context) -> Result<Self, String> {
        if context.privacy.demanded() {
            return Err(format!(
                "{} lets picks, losses and gradients out as they are, and has no mechanism for them: set \
                 privacy.mechanism = \"none\", or use {}",
                Self::NAME,
                context.covered(&[Protection::Zcdp, Protection::DpSgd])
            ));
        }
        let IfcaSettings { learning_rate, local_steps, gradient_scale, .. } = settings;
        // A learner without the gradient over all records, such as a net, is trained over mini-batches.
        let net = !context.families.can(Abilities::GRADIENT);
        let mini_batches = net || settings.epochs.is_some();
        let work = match settings.averaging {
            Some(Averaging::Gradient) if mini_batches => {
                return Err(format!(
                    "averaging = \"gradient\" is one gradient over all records: leave it out, and models after mini-batches \
                     are averaged{}",
                    if net { ", which is how nets are trained" } else { "; or leave `algorithm.epochs` out" }
                ));
            }
            _ if mini_batches && gradient_scale == GradientScale::Sum => {
                return Err("gradient_scale = \"sum\" is for gradients over all records; mini-batches take means: leave it \
                            out"
                    .into());
            }
            _ if mini_batches => {
                Work::Batches(Box::new(Training::new(Self::NAME, &settings.steps(), context)?))
            }
            Some(Averaging::Model) => Work::Steps(local_steps),
            Some(Averaging::Gradient) | None => Work::Gradient,
        };
        if matches!(work, Work::Gradient) && local_steps > 1 {
            return Err("algorithm.local_steps is for averaging = \"model\": a gradient is one step".into());
        }
        Ok(Self {
            families: context.families.clone(),
            models: settings.models,
            learning_rate,
            work,
            divide: settings.divide,
            gradient_scale,
            restarts: settings.restarts,
            start: settings.start,
            start_scale: settings.start_scale,
        })
    }

    fn targets(settings: &IfcaSettings) -> Targets {
        settings.targets.clone()
    }
}

impl IfcaSettings {
    /// What they say about mini-batches.
    fn steps(&self) -> Steps {
        let IfcaSettings { learning_rate, epochs, batch, decay, momentum, weight_decay, .. } = *self;
        Steps {
            batches: Batches { epochs, batch, learning_rate, decay, momentum, weight_decay },
            sampled: None,
            weights: Weighting::Uniform,
        }
    }
}
