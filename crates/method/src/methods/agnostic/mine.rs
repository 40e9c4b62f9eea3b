//! A client's half of (6).

use super::PersFlAgnostic;
use crate::algorithm::ServerView;
use crate::federation::Member;
use fedkin_learner::hypothesis::Sample;
use fedkin_learner::model::Unsolved;
use fedkin_learner::{Abilities, Dataset, Family, Share};
use std::sync::Arc;

/// A client's records, ready for (6).
#[derive(Debug)]
pub struct Mine {
    data: Arc<Dataset>,
    /// Features of the records to fit, then those of the points of D.
    features: Vec<f64>,
    /// The targets of the records to fit.
    pub(super) targets: Vec<f64>,
    /// One weight per row of `features`.
    pub(super) weights: Vec<f64>,
    /// How many clients share a regularisation.
    clients: usize,
    /// The kind of its own model.
    kind: usize,
}

/// Whether record i of a client is held out: as many as the share says, spread evenly.
fn held_out(share: f64, i: usize) -> bool {
    let before = |i: usize| (i as f64 * share).floor();
    before(i + 1) > before(i)
}

impl Mine {
    pub(super) fn new(
        method: &PersFlAgnostic,
        data: &Arc<Dataset>,
        at: ServerView<'_>,
        member: &Member,
    ) -> Self {
        let (mut features, mut targets) = (Vec::new(), Vec::new());
        let mut points = method.points(at.run);
        // One record cannot be parted: its input then is D as well.
        let parted = method.public == 0 && data.rows() > 1;
        for i in 0..data.rows() {
            if parted && held_out(method.held_out, i) {
                points.extend_from_slice(data.row(i));
            } else {
                features.extend_from_slice(data.row(i));
                targets.push(data.targets()[i]);
            }
        }
        if points.is_empty() {
            points.extend_from_slice(data.features());
        }
        let (rows, others) = (targets.len(), points.len() / data.columns());
        let mut weights = vec![method.learning_rate / rows as f64; rows];
        weights.resize(rows + others, 1.0 / others as f64);
        features.extend(points);
        let (clients, kind) = (at.members.len(), at.run.learner(member.id));
        Self { data: Arc::clone(data), features, targets, weights, clients, kind }
    }

    pub(super) fn data(&self) -> &Dataset {
        &self.data
    }

    pub(super) fn kind(&self) -> usize {
        self.kind
    }

    /// The points of D.
    pub(super) fn points(&self) -> &[f64] {
        &self.features[self.targets.len() * self.data.columns()..]
    }

    /// A model of all own records.
    pub(super) fn alone(&self, family: &dyn Family) -> Result<Vec<f64>, Unsolved> {
        let (features, targets) = (self.data.features(), self.data.targets());
        self.fit(family, features, targets, &vec![1.0; self.data.rows()])
    }

    /// A weighted fit. A model with parameters and a regulariser is fitted to means: its weights sum to one.
    fn fit(
        &self,
        family: &dyn Family,
        features: &[f64],
        targets: &[f64],
        weights: &[f64],
    ) -> Result<Vec<f64>, Unsolved> {
        let (columns, share) = (self.data.columns(), Share::one_of(self.clients));
        if !family.has().contain(Abilities::PARAMETERS) {
            return family.fit(&Sample { columns, features, targets, weights }, share);
        }
        let mut total = 0.0;
        for weight in weights {
            total += weight;
        }
        let means: Vec<f64> = weights.iter().map(|weight| weight / total).collect();
        family.fit(&Sample { columns, features, targets, weights: &means }, share)
    }

    /// (6) for a hypothesis with these labels on D.
    pub(super) fn retrained(&self, family: &dyn Family, labels: &[f64]) -> Result<Vec<f64>, Unsolved> {
        let targets = [self.targets.as_slice(), labels].concat();
        self.fit(family, &self.features, &targets, &self.weights)
    }
}
