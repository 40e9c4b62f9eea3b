//! The metrics of an experiment: what is measured on which of a client's models.
//!
//! A column is named `metric.model`, such as `nmsd.served`. In a simulation the truth is known, and the
//! scores are taken outside the privacy model: no client releases anything for them.

mod graph;
mod linear;
mod metric;

pub use metric::{Metric, Shown};

use fedkin_core::Member;
use fedkin_core::model::Problem;
use fedkin_data::World;
use fedkin_runtime::Judge;
use graph::GraphScorer;
use linear::LinearScorer;
use std::sync::atomic::{AtomicU64, Ordering};

/// Above this a weight is an edge, where the config does not say.
pub(crate) const EDGE: f64 = 1e-4;

/// Scores the models of a world's clients.
pub struct Scorer(Kind);

enum Kind {
    Linear(LinearScorer),
    Graph(GraphScorer),
}

/// What the config asks for.
pub struct Wanted<'a> {
    /// Which personal models; all where empty.
    pub models: &'a [String],
    /// The headline metric.
    pub headline: Option<&'a str>,
    /// Above this a weight is an edge.
    pub threshold: f64,
}

impl Scorer {
    /// What can be measured in this world on a method's models.
    /// Scores on training records beside a test set are taken only where the headline asks for them.
    pub fn new(world: &World, problem: &Problem, personal: &[&'static str], wanted: &Wanted<'_>) -> Self {
        Self(match problem {
            Problem::Linear(model) => {
                Kind::Linear(LinearScorer::new(world, model, personal, wanted.models, wanted.headline))
            }
            Problem::Graph(smooth) => Kind::Graph(GraphScorer::new(world, smooth, personal, wanted)),
        })
    }

    /// The names of the columns.
    pub fn names(&self) -> Vec<String> {
        match &self.0 {
            Kind::Linear(scorer) => scorer.names(),
            Kind::Graph(scorer) => scorer.names(),
        }
    }

    fn judge(&self) -> &dyn Judge {
        match &self.0 {
            Kind::Linear(scorer) => scorer,
            Kind::Graph(scorer) => scorer,
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
