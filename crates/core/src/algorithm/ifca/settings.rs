//! The keys of IFCA, and what they say together.

use super::{Ifca, Start, Work};
use crate::algorithm::Context;
use crate::algorithm::registry::Method;
use crate::algorithm::training::{BATCH, DECAY, EPOCHS, MOMENTUM, Training, WEIGHT_DECAY};
use crate::model::Parametric;
use crate::params::{Kind, Param, Preset, Values};

impl Method for Ifca {
    const PARAMS: &'static [Param] = &[
        Param {
            name: "models",
            kind: Kind::Integer { least: 1, most: 10_000 },
            preset: Preset::Absent,
            help: "how many models are trained (k); as many as the roster has clusters where absent",
        },
        Param {
            name: "learning_rate",
            kind: Kind::Number { least: 0.0, most: f64::INFINITY, open: true },
            preset: Preset::Number(0.1),
            help: "size of a gradient step (eta)",
        },
        Param {
            name: "averaging",
            kind: Kind::Choice(&["gradient", "model"]),
            preset: Preset::Absent,
            help: "what clients send: the gradient at the picked model, or the model after `local_steps` steps or `epochs`; \
                   the latter for nets and with `epochs`, the former else",
        },
        Param {
            name: "local_steps",
            kind: Kind::Integer { least: 1, most: 100_000 },
            preset: Preset::Integer(1),
            help: "gradient steps of a client in a round, for averaging = \"model\"",
        },
        Param {
            name: "divide",
            kind: Kind::Choice(&["pickers", "all"]),
            preset: Preset::Text("pickers"),
            help: "what the sum over the clients that picked a model is divided by: their number, or that of all",
        },
        Param {
            name: "gradient_scale",
            kind: Kind::Choice(&["mean", "sum"]),
            preset: Preset::Text("mean"),
            help: "gradient of the mean loss of a client, or half its number of records times that",
        },
        Param {
            name: "restarts",
            kind: Kind::Integer { least: 1, most: 1_000 },
            preset: Preset::Integer(1),
            help: "how often to begin with fresh models; each takes all rounds, and the least loss wins",
        },
        Param {
            name: "start",
            kind: Kind::Choice(&["normal", "uniform"]),
            preset: Preset::Text("normal"),
            help: "first models: normal, or uniform in [0, 1), times `start_scale`; nets begin as in other methods",
        },
        Param {
            name: "start_scale",
            kind: Kind::Number { least: 0.0, most: 1e9, open: true },
            preset: Preset::Number(1.0),
            help: "how far apart the first models are",
        },
        Param {
            name: "targets",
            kind: Kind::Either(&[Kind::Text, Kind::List(&Kind::Text)]),
            preset: Preset::Text("all"),
            help: "the clients whose models are wanted, for scores and for queries per target; all are asked anyway",
        },
        EPOCHS,
        BATCH,
        DECAY,
        MOMENTUM,
        WEIGHT_DECAY,
    ];

    fn build(values: &Values, context: &Context) -> Result<Self, String> {
        if context.privacy.demanded() {
            return Err(
                "ifca lets picks, losses and gradients out as they are, and has no mechanism for them: set \
                        privacy.mechanism = \"none\", or use pgfl (\"zcdp\") or fedavg (\"dp-sgd\")"
                    .into(),
            );
        }
        let whole = |name: &str| values.integer(name).and_then(|value| u32::try_from(value).ok());
        let scale = values.number("start_scale").unwrap_or(1.0);
        let model = context.problem.parametric()?;
        let net = matches!(model, Parametric::Net(_));
        let mini_batches = net || values.get("epochs").is_some();
        let local_steps = whole("local_steps").unwrap_or(1);
        let summed = values.text("gradient_scale") == Some("sum");
        let work = match values.text("averaging") {
            Some("gradient") if mini_batches => {
                return Err(format!(
                    "averaging = \"gradient\" is one gradient over all records: leave it out, and models after mini-batches \
                     are averaged{}",
                    if net { ", which is how nets are trained" } else { "; or leave `algorithm.epochs` out" }
                ));
            }
            _ if mini_batches && summed => {
                return Err("gradient_scale = \"sum\" is for gradients over all records; mini-batches take means: leave it \
                            out"
                    .into());
            }
            _ if mini_batches => Work::Batches(Box::new(Training::new("ifca", values, context, false)?)),
            Some("model") => Work::Steps(local_steps),
            _ => Work::Gradient,
        };
        if matches!(work, Work::Gradient) && local_steps > 1 {
            return Err("algorithm.local_steps is for averaging = \"model\": a gradient is one step".into());
        }
        Ok(Self {
            model,
            models: whole("models").map(|models| models as usize),
            learning_rate: values.number("learning_rate").unwrap_or(0.1),
            work,
            divide_by_all: values.text("divide") == Some("all"),
            summed,
            restarts: whole("restarts").unwrap_or(1),
            start: match values.text("start") {
                Some("uniform") => Start::Uniform(scale),
                _ => Start::Normal(scale),
            },
        })
    }
}
