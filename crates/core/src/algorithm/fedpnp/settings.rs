//! The keys of `FedPnP`, read once.

use super::super::fedprox::PULL;
use super::super::training::{
    BATCH, DECAY, EPOCHS, LEARNING_RATE, LOCAL_STEPS, MOMENTUM, SAMPLING_RATE, Training, WEIGHT_DECAY,
};
use super::super::{Context, Run};
use crate::denoise::{self, Decay, Strength};
use crate::federation::Federation;
use crate::graph::similarity;
use crate::model::{Loss, Parametric};
use crate::params::{Kind, Param, Preset, Value, Values};

const NOT_NEGATIVE: Kind = Kind::Number { least: 0.0, most: 1e12, open: false };

/// All keys.
pub(super) const PARAMS: &[Param] = &[
    Param {
        name: "graph",
        kind: Kind::Choice(&[
            "knn-kernel",
            "paper-28",
            "pearson",
            "learned",
            "rewards",
            "fedgl",
            "file",
            "clusters",
            "complete",
        ]),
        preset: Preset::Text("knn-kernel"),
        help: "where the graph of clients comes from: a kernel over nearest neighbours by statistics, (28) as printed, \
               correlation of records, distances of models, losses of each other's models, graph learning with models as \
               signals, `kin.graph`, the clusters of the roster, or all alike",
    },
    Param {
        name: "statistics",
        kind: Kind::List(&Kind::Choice(&["features", "labels"])),
        preset: Preset::Absent,
        help: "what clients tell of their records for `knn-kernel`: moments of features (where absent), shares of labels",
    },
    Param {
        name: "neighbours",
        kind: Kind::Integer { least: 1, most: 100_000 },
        preset: Preset::Integer(similarity::NEIGHBOURS as i64),
        help: "nearest neighbours of a client in the graph (and of the filter \"knn-mean\"); all where there are fewer",
    },
    Param {
        name: "weak",
        kind: NOT_NEGATIVE,
        preset: Preset::Number(similarity::WEAK),
        help: "weight between all clients, divided by their number, so that the graph is connected",
    },
    Param {
        name: "refresh",
        kind: Kind::Integer { least: 1, most: 1_000_000 },
        preset: Preset::Absent,
        help: "rounds between two graphs for learned, fedgl (10 where absent) and rewards (once where absent)",
    },
    Param {
        name: "warm_up",
        kind: Kind::Integer { least: 1, most: 1_000_000 },
        preset: Preset::Integer(5),
        help: "rounds that every client trains alone before the first graph of learned, fedgl and rewards",
    },
    Param {
        name: "filter",
        kind: Kind::Choice(&[
            "sound", "paper-10", "paper-12", "paper-13", "hard", "paper-16", "heat", "tv", "knn-mean",
        ]),
        preset: Preset::Text("sound"),
        help: "how the server smooths models over the graph",
    },
    Param {
        name: "beta1",
        kind: NOT_NEGATIVE,
        preset: Preset::Number(0.005),
        help: "final weight of differences over the graph; the time of heat, the weight of tv",
    },
    Param {
        name: "beta2",
        kind: NOT_NEGATIVE,
        preset: Preset::Number(0.0005),
        help: "final weight of the squared Laplacian",
    },
    Param {
        name: "tau",
        kind: Kind::Integer { least: 1, most: 1_000_000 },
        preset: Preset::Absent,
        help: "how many of the smoothest shapes \"hard\" and \"paper-16\" keep in the end; min(tau, t) in round t",
    },
    Param {
        name: "nu0",
        kind: NOT_NEGATIVE,
        preset: Preset::Number(1.0),
        help: "weights of the first round, from which they fall to beta1 and beta2; a weight of 0 is 0 from the start",
    },
    Param {
        name: "eta",
        kind: Kind::Number { least: 0.0, most: 1.0, open: false },
        preset: Preset::Number(0.1),
        help: "how fast they fall: by this share in every round",
    },
    Param {
        name: "paced",
        kind: Kind::Flag,
        preset: Preset::Flag(false),
        help: "weights also fall with the learning rate (`decay`), so that differences over the graph cost as much against \
               losses in the last round as in the first",
    },
    Param {
        name: "bn",
        kind: Kind::Choice(&["filter", "local"]),
        preset: Preset::Text("filter"),
        help: "running statistics of batch norm: averaged over the graph with positive weights, or every client's own",
    },
    Param {
        preset: Preset::Number(0.2),
        help: "weight of half the squared distance to the served model (mu)",
        ..PULL
    },
    EPOCHS,
    BATCH,
    LEARNING_RATE,
    DECAY,
    MOMENTUM,
    WEIGHT_DECAY,
    LOCAL_STEPS,
    SAMPLING_RATE,
];

/// Where the graph comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Source {
    /// What clients tell of their records at the set-up.
    Told(Told),
    /// Distances of models.
    Learned,
    /// Losses of each other's models.
    Rewards,
    /// Graph learning with clients as nodes.
    FedGl,
    /// What the run brings.
    File,
    /// Clients of one cluster of the roster.
    Clusters,
    /// All pairs alike.
    Complete,
}

/// What clients tell at the set-up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Told {
    /// Moments, shares of labels, or both, for the kernel.
    Kernel { features: bool, labels: bool },
    /// Moments, for (28).
    Printed,
    /// The mean of normalised records.
    Profile,
}

/// What a config says.
#[derive(Debug, Clone)]
pub(super) struct Settings {
    pub(super) training: Training,
    pub(super) pull: f64,
    pub(super) source: Source,
    pub(super) neighbours: usize,
    pub(super) weak: f64,
    pub(super) refresh: Option<u32>,
    pub(super) warm_up: u32,
    pub(super) filter: &'static denoise::Row,
    pub(super) strength: Strength,
    pub(super) decay: Decay,
    pub(super) paced: bool,
    pub(super) own_statistics: bool,
    /// How many classes labels have, where they are told.
    pub(super) classes: usize,
}

impl Settings {
    pub(super) fn new(values: &Values, context: &Context) -> Result<Self, String> {
        let training = Training::new("fedpnp", values, context, true)?;
        let whole = |name: &str| values.integer(name).and_then(|value| usize::try_from(value).ok());
        let number = |name: &str| values.number(name).unwrap_or(0.0);
        let words: Vec<&str> = values
            .list("statistics")
            .iter()
            .filter_map(|value| if let Value::Text(word) = value { Some(word.as_str()) } else { None })
            .collect();
        let graph = values.text("graph").unwrap_or("knn-kernel");
        if !words.is_empty() && graph != "knn-kernel" {
            return Err(format!(
                "`algorithm.statistics` is for graph = \"knn-kernel\"; this one is {graph:?}"
            ));
        }
        let labels = words.contains(&"labels");
        let source = match graph {
            "paper-28" => Source::Told(Told::Printed),
            "pearson" => Source::Told(Told::Profile),
            "learned" => Source::Learned,
            "rewards" => Source::Rewards,
            "fedgl" => Source::FedGl,
            "file" => Source::File,
            "clusters" => Source::Clusters,
            "complete" => Source::Complete,
            _ => Source::Told(Told::Kernel {
                features: words.is_empty() || words.contains(&"features"),
                labels,
            }),
        };
        if context.privacy.demanded()
            && matches!(source, Source::Rewards | Source::Told(Told::Printed | Told::Profile))
        {
            return Err(format!(
                "graph = {graph:?} lets numbers out that no mechanism covers: take \"knn-kernel\" (noisy sums through the \
                 ledger), \"learned\" or \"fedgl\" (private models alone), or \"file\""
            ));
        }
        let classes = classes(&training.model);
        if labels && classes == 0 {
            return Err("statistics = [\"labels\"] needs classes, and this model predicts a number".into());
        }
        let filter = denoise::find(values.text("filter").unwrap_or("sound"))?;
        let hard = filter.keys.contains(&"tau");
        let tau = whole("tau");
        if hard && tau.is_none() {
            return Err(format!(
                "filter = {:?} needs `algorithm.tau`: how many shapes it keeps",
                filter.name
            ));
        }
        if !hard && tau.is_some() {
            return Err(format!(
                "`algorithm.tau` is for \"hard\" and \"paper-16\"; this filter is {:?}",
                filter.name
            ));
        }
        let paced = values.flag("paced");
        if paced && !filter.keys.contains(&"beta1") {
            return Err(format!(
                "`algorithm.paced` lets weights fall, and the filter {:?} has none: leave it out",
                filter.name
            ));
        }
        let neighbours = whole("neighbours").unwrap_or(similarity::NEIGHBOURS);
        let strength =
            Strength { beta1: number("beta1"), beta2: number("beta2"), tau: tau.unwrap_or(1), neighbours };
        Ok(Self {
            training,
            pull: number("pull"),
            source,
            neighbours,
            weak: number("weak"),
            refresh: whole("refresh").map(|rounds| rounds as u32),
            warm_up: whole("warm_up").unwrap_or(5) as u32,
            filter,
            strength,
            decay: Decay { start: number("nu0"), rate: number("eta") },
            paced,
            own_statistics: values.text("bn") == Some("local"),
            classes,
        })
    }

    /// What is wrong with a federation.
    pub(super) fn suits(&self, federation: &Federation, run: &Run) -> Result<(), String> {
        let clients = federation.members().len();
        if clients < 2 {
            return Err("fedpnp smooths models over a graph of clients, and there is one client".into());
        }
        if self.filter.keys.contains(&"tau") && self.strength.tau > clients {
            return Err(format!(
                "algorithm.tau = {}, but there are {clients} clients: set it to {clients} or less",
                self.strength.tau
            ));
        }
        if self.source == Source::File && run.kin.is_none() {
            return Err("graph = \"file\" needs `kin.graph`: the file with the edges between clients".into());
        }
        self.training.suits(federation)
    }

    /// The strength of the filter in a round, from 1.
    pub(super) fn strength(&self, round: u32) -> Strength {
        let strength = self.decay.at(&self.strength, round);
        if !self.paced {
            return strength;
        }
        let part = self.training.rate(round) / self.training.rate(1);
        Strength { beta1: part * strength.beta1, beta2: part * strength.beta2, ..strength }
    }

    /// Whether the first step asks for statistics.
    pub(super) fn asks_first(&self) -> bool {
        matches!(self.source, Source::Told(_))
    }

    /// Whether clients are asked about each other's models.
    pub(super) fn probes(&self) -> bool {
        self.source == Source::Rewards
    }

    /// Whether a graph is due after this round, where it comes from models.
    pub(super) fn due(&self, round: u32) -> bool {
        let refresh = match self.source {
            Source::Learned | Source::FedGl => self.refresh.or(Some(10)),
            Source::Rewards => self.refresh,
            Source::Told(_) | Source::File | Source::Clusters | Source::Complete => return false,
        };
        match round.checked_sub(self.warm_up) {
            None => false,
            Some(0) => true,
            Some(after) => refresh.is_some_and(|refresh| after.is_multiple_of(refresh)),
        }
    }
}

/// How many classes a model tells apart; none where it predicts a number.
fn classes(model: &Parametric) -> usize {
    match model {
        Parametric::Linear(model) if model.loss == Loss::Logistic => 2,
        Parametric::Softmax(model) => model.classes,
        Parametric::Net(net) if net.classifies() => net.outputs(),
        Parametric::Linear(_) | Parametric::Net(_) => 0,
    }
}
