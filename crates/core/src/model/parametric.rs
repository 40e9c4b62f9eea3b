//! A model that is a vector of parameters, for methods that need no more of it than values and gradients.

use super::{Model, Softmax, Unsolved, fit};
use crate::dataset::Dataset;
use crate::numeric::{axpy, dot};
use std::sync::Arc;

/// A model given by a flat vector of parameters.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Parametric {
    /// One number or one probability from one product.
    Linear(Model),
    /// A probability for every class.
    Softmax(Softmax),
}

impl Parametric {
    /// The number of parameters for this many columns.
    pub fn dimension(&self, columns: usize) -> usize {
        match self {
            Parametric::Linear(model) => model.dimension(columns),
            Parametric::Softmax(model) => model.dimension(columns),
        }
    }

    /// The weight of the squared parameters (lambda), shared by the clients of a server.
    pub fn regularisation(&self) -> f64 {
        match self {
            Parametric::Linear(model) => model.regularisation,
            Parametric::Softmax(model) => model.regularisation,
        }
    }

    /// A client's records as this model sees them.
    pub fn prepare(&self, data: &Arc<Dataset>) -> Arc<Dataset> {
        match self {
            Parametric::Linear(model) => model.prepare(data),
            Parametric::Softmax(model) => model.prepare(data),
        }
    }

    /// The number of parameters for prepared records.
    pub fn length(&self, data: &Dataset) -> usize {
        data.columns() * self.outputs()
    }

    /// How many products of a record with parameters the model takes.
    fn outputs(&self) -> usize {
        match self {
            Parametric::Linear(_) => 1,
            Parametric::Softmax(model) => model.classes,
        }
    }

    /// The number of columns of prepared records, from the number of parameters.
    pub fn prepared_columns(&self, dimension: usize) -> usize {
        dimension / self.outputs()
    }

    /// The mean loss on prepared records plus `strength |w|^2`, of every model of a list of models.
    pub fn objectives(&self, data: &Dataset, strength: f64, models: &[f64], out: &mut Vec<f64>) {
        out.clear();
        for w in models.chunks_exact(self.length(data)) {
            out.push(match self {
                Parametric::Linear(model) => model.objective(data, strength, w),
                Parametric::Softmax(model) => model.objective(data, strength, w),
            });
        }
    }

    /// `scale` times the gradients of those. `work` is scratch space that keeps its allocation.
    pub fn gradients(
        &self,
        data: &Dataset,
        strength: f64,
        models: &[f64],
        scale: f64,
        out: &mut [f64],
        work: &mut Vec<f64>,
    ) {
        let length = self.length(data);
        for (w, out) in models.chunks_exact(length).zip(out.chunks_exact_mut(length)) {
            match self {
                Parametric::Linear(model) => model.gradient(data, strength, w, scale, out, work),
                Parametric::Softmax(model) => model.gradient(data, strength, w, scale, out),
            }
        }
    }

    /// Adds the gradient of the loss of one prepared record, regularisation left out.
    pub fn add_gradient(&self, row: &[f64], y: f64, w: &[f64], out: &mut [f64]) {
        match self {
            Parametric::Linear(model) => axpy(model.loss.slope(dot(row, w), y), row, out),
            Parametric::Softmax(model) => model.add_gradient(row, y, w, out),
        }
    }

    /// The minimiser of `sum_i weight_i loss_i + strength |w|^2` on prepared records.
    pub fn fit(&self, data: &Dataset, weights: &[f64], strength: f64) -> Result<Vec<f64>, Unsolved> {
        match self {
            Parametric::Linear(model) => fit(model, data, weights, strength),
            Parametric::Softmax(model) => model.fit(data, weights, strength),
        }
    }
}
