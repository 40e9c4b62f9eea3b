//! The metrics of an experiment: what is measured on which of a client's models.
//!
//! A column is named `metric.model`, such as `nmsd.served`. In a simulation the truth is known, and the
//! scores are taken outside the privacy model: no client releases anything for them.

mod classes;
mod graph;
mod hypothesis;
mod linear;
mod metric;

pub use metric::{Metric, Shown};

use classes::ClassScorer;
use fedkin_core::Member;
use fedkin_core::learner::{Abilities, Families, Linear, Quality};
use fedkin_core::round::Judge;
use fedkin_data::World;
use graph::GraphScorer;
use hypothesis::HypothesisScorer;
use linear::LinearScorer;
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
            _ => f64::NAN,
        }
    }
}

/// Scores the models of a world's clients.
pub struct Scorer(Kind);

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
        let family = families.first();
        Self(match (family.signals(), family.downcast::<Linear>()) {
            (Some(smooth), _) => Kind::Graph(GraphScorer::new(world, smooth, personal, wanted)),
            (None, Some(linear)) if families.count() == 1 => {
                Kind::Linear(LinearScorer::new(world, linear, personal, wanted.models, wanted.headline))
            }
            _ if families.count() == 1 && family.has().contain(Abilities::PARAMETERS) => {
                Kind::Classes(ClassScorer::new(world, families, personal, wanted))
            }
            _ => Kind::Hypothesis(HypothesisScorer::new(world, families, learners, personal, wanted)),
        })
    }

    /// The names of the columns.
    pub fn names(&self) -> Vec<String> {
        match &self.0 {
            Kind::Linear(scorer) => scorer.names(),
            Kind::Classes(scorer) => scorer.names(),
            Kind::Graph(scorer) => scorer.names(),
            Kind::Hypothesis(scorer) => scorer.names(),
        }
    }

    fn judge(&self) -> &dyn Judge {
        match &self.0 {
            Kind::Linear(scorer) => scorer,
            Kind::Classes(scorer) => scorer,
            Kind::Graph(scorer) => scorer,
            Kind::Hypothesis(scorer) => scorer,
        }
    }
}

impl Judge for Scorer {
    fn columns(&self) -> usize {
        self.judge().columns()
    }

    fn score(&self, member: &Member, active: bool, which: usize, model: &[f64], row: &mut [f64]) {
        self.judge().score(member, active, which, model, row);
    }

    fn group(&self, member: &Member) -> Option<u32> {
        self.judge().group(member)
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
