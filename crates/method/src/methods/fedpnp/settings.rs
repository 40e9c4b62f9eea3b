//! The keys of `FedPnP`, and what they say together.

use super::super::training::{Batches, Sampled, Steps, Training, Weighting};
use super::FedPnp;
use crate::algorithm::{Algorithm, Run};
use crate::federation::Federation;
use crate::registry::Context;
use fedkin_graph::denoise::{self, Decay, Denoisers, Strength};
use fedkin_graph::similarity;
use fedkin_numeric::power;
use fedkin_settings::{Kind, Preset, choice, settings};

choice! {
    /// Where the graph of clients comes from.
    pub enum GraphSource {
        /// A kernel over nearest neighbours by statistics of records.
        KnnKernel = "knn-kernel",
        /// (28) as printed.
        Paper28 = "paper-28",
        /// Correlation of records.
        Pearson = "pearson",
        /// Distances of models.
        Learned = "learned",
        /// Losses of each other's models.
        Rewards = "rewards",
        /// Graph learning with models as signals.
        FedGl = "fedgl",
        /// What the run brings.
        File = "file",
        /// The clusters of the roster.
        Clusters = "clusters",
        /// All pairs alike.
        Complete = "complete",
    }
}

choice! {
    /// What clients tell of their records for [`GraphSource::KnnKernel`].
    pub enum Statistic {
        /// Moments of features.
        Features = "features",
        /// Shares of labels.
        Labels = "labels",
    }
}

choice! {
    /// What becomes of the running statistics of batch norm.
    pub enum RunningStatistics {
        /// They are averaged over the graph with positive weights.
        Filter = "filter",
        /// Every client keeps its own.
        Local = "local",
    }
}

const NOT_NEGATIVE: Kind = Kind::Number { least: 0.0, most: 1e12, open: false };

settings! {
    /// Keys of `FedPnP`.
    pub struct FedPnpSettings {
        graph: GraphSource => Kind::Choice(GraphSource::WORDS), Preset::Text("knn-kernel"),
            "where the graph of clients comes from: a kernel over nearest neighbours by statistics, (28) as printed, \
             correlation of records, distances of models, losses of each other's models, graph learning with models as \
             signals, `kin.graph`, the clusters of the roster, or all alike";
        statistics: Vec<Statistic> => Kind::List(&Kind::Choice(Statistic::WORDS)), Preset::Absent,
            "what clients tell of their records for `knn-kernel`: moments of features (where absent), shares of labels";
        neighbours: usize => Kind::Integer { least: 1, most: 100_000 },
            Preset::Integer(similarity::NEIGHBOURS as i64),
            "nearest neighbours of a client in the graph (and of the filter \"knn-mean\"); all where there are fewer";
        weak: f64 => NOT_NEGATIVE, Preset::Number(similarity::WEAK),
            "weight between all clients, divided by their number, so that the graph is connected";
        refresh: Option<u32> => Kind::Integer { least: 1, most: 1_000_000 }, Preset::Absent,
            "rounds between two graphs for learned, fedgl (10 where absent) and rewards (once where absent)";
        warm_up: u32 => Kind::Integer { least: 1, most: 1_000_000 }, Preset::Integer(5),
            "rounds that every client trains alone before the first graph of learned, fedgl and rewards";
        filter: String => Kind::Text, Preset::Text("sound"),
            "how the server smooths models over the graph";
        beta1: f64 => NOT_NEGATIVE, Preset::Number(0.005),
            "final weight of differences over the graph; the time of heat, the weight of tv";
        beta2: f64 => NOT_NEGATIVE, Preset::Number(0.0005), "final weight of the squared Laplacian";
        tau: Option<usize> => Kind::Integer { least: 1, most: 1_000_000 }, Preset::Absent,
            "how many of the smoothest shapes \"hard\" and \"paper-16\" keep in the end; min(tau, t) in round t";
        nu0: f64 => NOT_NEGATIVE, Preset::Number(1.0),
            "weights of the first round, from which they fall to beta1 and beta2; a weight of 0 is 0 from the start";
        eta: f64 => Kind::SHARE, Preset::Number(0.1), "how fast they fall: by this share in every round";
        paced: bool => Kind::Flag, Preset::Flag(false),
            "weights also fall with the learning rate (`decay`), so that differences over the graph cost as much against \
             losses in the last round as in the first";
        bn: RunningStatistics => Kind::Choice(RunningStatistics::WORDS), Preset::Text("filter"),
            "running statistics of batch norm: averaged over the graph with positive weights, or every client's own";
        pull: f64 => Kind::FROM_ZERO, Preset::Number(0.2),
            "weight of half the squared distance to the served model (mu)";
        flatten batches: Batches;
        flatten sampled: Sampled;
    }
}

/// `refresh` where it is absent, for graphs of models.
const REFRESH: u32 = 10;

/// What to expect where a server goes on smoothing what is no longer trained.
pub(super) const UNPACED: &str = "the learning rate falls and the filter of fedpnp keeps its strength: late rounds smooth models more \
     than they train them, and clients become alike; set algorithm.paced = true";

impl FedPnpSettings {
    /// Whether the learning rate falls to a tenth or less under a filter that stays.
    pub(super) fn outlasts_training(&self, rounds: u32, denoisers: &Denoisers) -> bool {
        let weighs = || denoisers.get(&self.filter).is_some_and(|row| row.keys.contains(&"beta1"));
        !self.paced
            && self.beta1.max(self.beta2) > 0.0
            && power(self.batches.decay, rounds.saturating_sub(1)) <= 0.1
            && weighs()
    }
}

/// Where the graph comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Source {
    /// What clients tell of their records at the set-up.
    SetupStatistics(SetupStatistics),
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
pub(super) enum SetupStatistics {
    /// Moments, shares of labels, or both, for the kernel.
    Kernel { features: bool, labels: bool },
    /// Moments, for (28).
    Printed,
    /// The mean of normalised records.
    Profile,
}

/// What the settings say together.
#[derive(Debug, Clone)]
pub(super) struct Resolved {
    pub(super) training: Training,
    pub(super) pull: f64,
    pub(super) source: Source,
    pub(super) neighbours: usize,
    pub(super) weak: f64,
    pub(super) refresh: Option<u32>,
    pub(super) warm_up: u32,
    pub(super) filter: denoise::DenoiserRow,
    pub(super) strength: Strength,
    pub(super) decay: Decay,
    pub(super) paced: bool,
    pub(super) own_statistics: bool,
    /// How many classes labels have, where they are told.
    pub(super) classes: usize,
}

impl Resolved {
    pub(super) fn new(settings: FedPnpSettings, context: &Context) -> Result<Self, String> {
        let FedPnpSettings { graph, statistics, neighbours, tau, paced, batches, sampled, .. } = settings;
        let steps = Steps { batches, sampled: Some(sampled), weights: Weighting::Samples };
        let training = Training::new(FedPnp::NAME, &steps, context)?;
        if !statistics.is_empty() && graph != GraphSource::KnnKernel {
            return Err(format!(
                "`algorithm.statistics` is for graph = \"knn-kernel\"; this one is {:?}",
                graph.word()
            ));
        }
        let labels = statistics.contains(&Statistic::Labels);
        let source = match graph {
            GraphSource::KnnKernel => Source::SetupStatistics(SetupStatistics::Kernel {
                features: statistics.is_empty() || statistics.contains(&Statistic::Features),
                labels,
            }),
            GraphSource::Paper28 => Source::SetupStatistics(SetupStatistics::Printed),
            GraphSource::Pearson => Source::SetupStatistics(SetupStatistics::Profile),
            GraphSource::Learned => Source::Learned,
            GraphSource::Rewards => Source::Rewards,
            GraphSource::FedGl => Source::FedGl,
            GraphSource::File => Source::File,
            GraphSource::Clusters => Source::Clusters,
            GraphSource::Complete => Source::Complete,
        };
        if context.privacy.demanded()
            && matches!(
                source,
                Source::Rewards
                    | Source::SetupStatistics(SetupStatistics::Printed | SetupStatistics::Profile)
            )
        {
            return Err(format!(
                "graph = {:?} lets numbers out that no mechanism covers: take \"knn-kernel\" (noisy sums through the \
                 ledger), \"learned\" or \"fedgl\" (private models alone), or \"file\"",
                graph.word()
            ));
        }
        let classes = training.family().output().classes();
        if labels && context.families.all().any(|family| family.output().classes() != classes) {
            return Err(
                "statistics = [\"labels\"] compares histograms of labels, and the learners of this run tell \
                        different classes apart: leave \"labels\" out"
                    .into(),
            );
        }
        if labels && classes == 0 {
            return Err("statistics = [\"labels\"] needs classes, and this model predicts a number".into());
        }
        let filter = *context.registry.denoisers.find(&settings.filter).map_err(|error| error.to_string())?;
        let hard = filter.keys.contains(&"tau");
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
        if paced && !filter.keys.contains(&"beta1") {
            return Err(format!(
                "`algorithm.paced` lets weights fall, and the filter {:?} has none: leave it out",
                filter.name
            ));
        }
        Ok(Self {
            training,
            pull: settings.pull,
            source,
            neighbours,
            weak: settings.weak,
            refresh: settings.refresh,
            warm_up: settings.warm_up,
            filter,
            // Filters without shapes to keep do not read tau.
            strength: Strength {
                beta1: settings.beta1,
                beta2: settings.beta2,
                tau: tau.unwrap_or(1),
                neighbours,
            },
            decay: Decay { start: settings.nu0, rate: settings.eta },
            paced,
            own_statistics: settings.bn == RunningStatistics::Local,
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
        self.training.suits(federation, run)
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
        matches!(self.source, Source::SetupStatistics(_))
    }

    /// Whether clients are asked about each other's models.
    pub(super) fn probes(&self) -> bool {
        self.source == Source::Rewards
    }

    /// Whether a graph is due after this round, where it comes from models.
    pub(super) fn due(&self, round: u32) -> bool {
        let refresh = match self.source {
            Source::Learned | Source::FedGl => self.refresh.or(Some(REFRESH)),
            Source::Rewards => self.refresh,
            Source::SetupStatistics(_) | Source::File | Source::Clusters | Source::Complete => return false,
        };
        match round.checked_sub(self.warm_up) {
            None => false,
            Some(0) => true,
            Some(after) => refresh.is_some_and(|refresh| after.is_multiple_of(refresh)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fedkin_settings::{Settings, named};

    #[test]
    fn the_help_tells_what_holds_for_absent_keys() {
        let help = named(FedPnpSettings::PARAMS, "refresh").help;
        assert!(help.contains(&format!("fedgl ({REFRESH} where absent)")));
    }
}
