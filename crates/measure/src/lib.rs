//! The metrics of an experiment: what is measured on which of a client's models.
//!
//! A column is named `metric.model`, such as `nmsd.served`. In a simulation the truth is known, and the
//! scores are taken outside the privacy model: no client releases anything for them.
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used))]

mod classes;
mod graph;
mod hypothesis;
mod linear;
mod metric;
mod own;
mod shown;
mod spread;
mod statistics;

pub use fedkin_numeric::statistics::Estimate;
pub use metric::{Metric, MetricRow, MetricTable, Need, OwnMetric};
pub use shown::Shown;
pub use spread::Spread;
pub use statistics::{estimate, paired};

use classes::ClassScorer;
use fedkin_data::World;
use fedkin_learner::{Abilities, Linear, Quality};
use fedkin_method::round::Judge;
use fedkin_method::{Families, Member};
use graph::GraphScorer;
use hypothesis::HypothesisScorer;
use linear::LinearScorer;
use own::OwnScorer;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// What is measured on probabilities of labels.
const PROBABLE: [Metric; 4] = [Metric::Accuracy, Metric::LogLoss, Metric::Brier, Metric::Calibration];

impl Metric {
    /// Its part of what one pass over the records found.
    fn of(self, quality: &Quality) -> f64 {
        match self {
            Metric::Accuracy
            | Metric::TrainAccuracy
            | Metric::GlobalAccuracy
            | Metric::ValidationAccuracy => quality.accuracy,
            Metric::LogLoss | Metric::TrainLoss | Metric::GlobalLogLoss | Metric::ValidationLogLoss => {
                quality.log_loss
            }
            Metric::Brier => quality.brier,
            Metric::Calibration => quality.calibration,
            // Not of probabilities.
            Metric::Nmsd
            | Metric::Reference
            | Metric::Msd
            | Metric::LogMsd
            | Metric::Distance
            | Metric::Mse
            | Metric::StoppedAccuracy
            | Metric::Mcc
            | Metric::RelativeError
            | Metric::ScaledError
            | Metric::Nmi
            | Metric::Rand
            | Metric::Fmi
            | Metric::HeldOut
            | Metric::Density => f64::NAN,
        }
    }
}

/// Scores the models of a world's clients.
pub struct Scorer {
    kind: Kind,
    /// What a program measures besides.
    own: Option<OwnScorer>,
}

enum Kind {
    Linear(LinearScorer),
    Classes(ClassScorer),
    Graph(GraphScorer),
    Hypothesis(HypothesisScorer),
}

/// What the config asks for.
pub struct Wanted<'a> {
    /// Which personal models; all where empty.
    pub models: &'a [String],
    /// The headline metric.
    pub headline: Option<&'a str>,
    /// All metrics that there are.
    pub metrics: &'a MetricTable,
    /// Above this a weight is an edge.
    pub threshold: f64,
    /// Whether, and how, models are measured on records of all clients.
    pub global: Option<Global>,
}

/// What models of classes are measured on besides the client's own records.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Global {
    /// At most so many records; all where absent.
    pub most: Option<usize>,
    /// What chooses them.
    pub seed: u64,
}

impl Scorer {
    /// What can be measured in this world on a method's models.
    /// Some metrics are taken only where the headline asks for them.
    pub fn new(
        world: &World,
        families: &Families,
        learners: Option<Arc<[u32]>>,
        personal: &[&'static str],
        wanted: &Wanted<'_>,
    ) -> Self {
        let linear: Option<Vec<Linear>> =
            families.all().map(|family| family.downcast::<Linear>().cloned()).collect();
        let parameters = families.all().all(|family| family.has().contain(Abilities::PARAMETERS));
        let own = OwnScorer::new(world, families, learners.clone(), personal, wanted);
        let kind = match (families.first().signals(), linear) {
            (Some(smooth), _) => Kind::Graph(GraphScorer::new(world, smooth, personal, wanted)),
            (None, Some(linear)) => Kind::Linear(LinearScorer::new(
                world,
                linear,
                learners,
                personal,
                wanted.models,
                wanted.headline,
            )),
            (None, None) if parameters => {
                Kind::Classes(ClassScorer::new(world, families, learners, personal, wanted))
            }
            _ => Kind::Hypothesis(HypothesisScorer::new(world, families, learners, personal, wanted)),
        };
        Self { kind, own }
    }

    /// The names of the columns.
    pub fn names(&self) -> Vec<String> {
        let mut names = match &self.kind {
            Kind::Linear(scorer) => scorer.names(),
            Kind::Classes(scorer) => scorer.names(),
            Kind::Graph(scorer) => scorer.names(),
            Kind::Hypothesis(scorer) => scorer.names(),
        };
        names.extend(self.own.iter().flat_map(OwnScorer::names));
        names
    }

    fn judge(&self) -> &dyn Judge {
        match &self.kind {
            Kind::Linear(scorer) => scorer,
            Kind::Classes(scorer) => scorer,
            Kind::Graph(scorer) => scorer,
            Kind::Hypothesis(scorer) => scorer,
        }
    }
}

impl Judge for Scorer {
    fn columns(&self) -> usize {
        self.judge().columns() + self.own.as_ref().map_or(0, OwnScorer::columns)
    }

    fn score(&self, member: &Member, active: bool, which: usize, model: &[f64], row: &mut [f64]) {
        let (native, own) = row.split_at_mut(self.judge().columns());
        self.judge().score(member, active, which, model, native);
        if let Some(scorer) = &self.own {
            scorer.score(member, which, model, own);
        }
    }

    fn group(&self, member: &Member) -> Option<u32> {
        // Clients that a scorer judges alike may have test records of their own.
        if self.own.is_some() { None } else { self.judge().group(member) }
    }

    fn identity(&self) -> Option<u64> {
        self.judge().identity()
    }
}

/// The number of a new scorer.
fn next_identity() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    NEXT.fetch_add(1, Ordering::Relaxed)
}
