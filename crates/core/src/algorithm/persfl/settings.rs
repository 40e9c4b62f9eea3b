//! The keys of the method, and what they mean together.

use super::draw::Sampling;
use super::{PersFl, Start};
use crate::algorithm::Context;
use crate::algorithm::registry::Method;
use crate::model::Problem;
use crate::params::{Kind, Param, Preset, Values};

impl Method for PersFl {
    const PARAMS: &'static [Param] = &[
        Param {
            name: "targets",
            kind: Kind::Either(&[Kind::Text, Kind::List(&Kind::Text)]),
            preset: Preset::Text("all"),
            help: "the clients that get a model: \"all\", a name, or a list of names; the others help",
        },
        Param {
            name: "candidates",
            kind: Kind::Integer { least: 1, most: 1_000_000 },
            preset: Preset::Absent,
            help: "clients that a target asks for a step in a round (B); 20 where absent, 5 with rewards",
        },
        Param {
            name: "learning_rate",
            kind: Kind::Number { least: 0.0, most: f64::INFINITY, open: true },
            preset: Preset::Absent,
            help: "size of a gradient step (eta); 0.01 where absent, 0.1 with rewards",
        },
        Param {
            name: "sampling",
            kind: Kind::Choice(&["uniform", "cluster", "bandit", "graph"]),
            preset: Preset::Text("uniform"),
            help: "who is drawn: anybody, clients of the target's own cluster in the roster (an oracle), those that were \
                   worth most (bandit), or the same for a while until groups of kin train together (graph)",
        },
        Param {
            name: "accept",
            kind: Kind::Choice(&["guard", "paper"]),
            preset: Preset::Text("guard"),
            help: "refuse a best step far worse than usual, or take the least bad one as printed",
        },
        Param {
            name: "gradient_scale",
            kind: Kind::Choice(&["mean", "sum"]),
            preset: Preset::Text("mean"),
            help: "gradient of the mean loss of a candidate, or half its number of records times that",
        },
        Param {
            name: "start",
            kind: Kind::Choice(&["zero", "uniform", "normal"]),
            preset: Preset::Text("zero"),
            help: "first models: zero, uniform in [0, 1), or standard normal",
        },
        Param {
            name: "warm_up",
            kind: Kind::Integer { least: 1, most: 1_000_000 },
            preset: Preset::Absent,
            help: "sampling = \"graph\": rounds of probing before groups are formed; 40 where absent",
        },
        Param {
            name: "purity",
            kind: Kind::Flag,
            preset: Preset::Absent,
            help: "sampling = \"graph\": let members whose loss stays high leave, and split and merge groups; true where \
                   absent",
        },
    ];

    fn build(values: &Values, context: &Context) -> Result<Self, String> {
        if context.privacy.demanded() {
            return Err(
                "persfl lets gradients, choices and losses out as they are, and has no mechanism for them: \
                        set privacy.mechanism = \"none\", or use pgfl (\"zcdp\") or fedavg (\"dp-sgd\")"
                    .into(),
            );
        }
        if let Problem::Net(_) = context.problem {
            return Err(
                "persfl takes single steps along gradients over all records of others, from zero or from plain random \
                        numbers, which trains no net: set algorithm.name = \"fedpnp\", \"ifca\", \"pfedme\" or \"per-fedavg\" for \
                        personal nets, or model.kind = \"ridge\", \"logistic\" or \"softmax\""
                    .into(),
            );
        }
        let sampling = match values.text("sampling") {
            Some("cluster") => Sampling::Cluster,
            Some("bandit") => Sampling::Bandit,
            Some("graph") => Sampling::Graph,
            _ => Sampling::Uniform,
        };
        if sampling != Sampling::Graph {
            for key in ["warm_up", "purity"] {
                if values.get(key).is_some() {
                    return Err(format!(
                        "algorithm.{key} is for sampling = \"graph\": remove it, or set that"
                    ));
                }
            }
        }
        // Rewards make small draws worth while, and the steps of several kin are averaged: they can be longer.
        let (candidates, learning_rate) = if sampling.remembers() { (5, 0.1) } else { (20, 0.01) };
        let wanted = values.integer("candidates").and_then(|b| u32::try_from(b).ok());
        Ok(Self {
            model: context.problem.parametric()?,
            candidates: wanted.unwrap_or(candidates),
            learning_rate: values.number("learning_rate").unwrap_or(learning_rate),
            sampling,
            guarded: values.text("accept") != Some("paper"),
            summed: values.text("gradient_scale") == Some("sum"),
            start: match values.text("start") {
                Some("uniform") => Start::Uniform,
                Some("normal") => Start::Normal,
                _ => Start::Zero,
            },
            warm_up: values.integer("warm_up").and_then(|rounds| u32::try_from(rounds).ok()).unwrap_or(40),
            watched: values.get("purity").is_none() || values.flag("purity"),
        })
    }
}
