//! A client's records as a model with parameters sees them.

use super::ServerView;
use crate::dataset::Dataset;
use crate::model::Parametric;
use std::sync::Arc;

/// Prepared records, and this client's share of the regulariser.
#[derive(Debug)]
pub struct Prepared {
    pub(super) data: Arc<Dataset>,
    /// The weight of |w|^2.
    pub(super) strength: f64,
}

impl Prepared {
    /// Prepares a client's records.
    pub(super) fn new(model: &Parametric, data: &Arc<Dataset>, at: ServerView<'_>) -> Self {
        let strength = model.regularisation() / at.members.len() as f64;
        Self { data: model.prepare(data), strength }
    }
}
