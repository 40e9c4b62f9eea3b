//! A model that is a vector of parameters, for methods that need no more of it than values and gradients.

use super::net::round_to_narrow;
use super::neural::{Bench, Descent, Diverged, Narrow, Role};
use super::{Model, NetModel, Softmax, Unsolved, fit};
use crate::dataset::Dataset;
use crate::numeric::{axpy, dot, scale};
use crate::rng::PublicRng;
use std::ops::Range;
use std::sync::Arc;

/// A model given by a flat vector of parameters.
#[derive(Debug, Clone, PartialEq)]
pub enum Parametric {
    /// One number or one probability from one product.
    Linear(Model),
    /// A probability for every class.
    Softmax(Softmax),
    /// A neural net.
    Net(NetModel),
}

/// A client's records in the form its model is trained on.
#[derive(Debug)]
pub enum Records {
    /// Prepared records, and this client's share of the regulariser.
    Wide(Arc<Dataset>, f64),
    /// Records of a net.
    Narrow(Narrow),
}

impl Records {
    /// How many there are.
    pub fn rows(&self) -> usize {
        match self {
            Records::Wide(data, _) => data.rows(),
            Records::Narrow(narrow) => narrow.targets.len(),
        }
    }
}

impl Parametric {
    /// The number of parameters for this many columns.
    pub fn dimension(&self, columns: usize) -> usize {
        match self {
            Parametric::Linear(model) => model.dimension(columns),
            Parametric::Softmax(model) => model.dimension(columns),
            Parametric::Net(model) => model.net().length(),
        }
    }

    /// The weight of the squared parameters (lambda), shared by the clients of a server.
    pub fn regularisation(&self) -> f64 {
        match self {
            Parametric::Linear(model) => model.regularisation,
            Parametric::Softmax(model) => model.regularisation,
            // A net has `weight_decay` in its training instead.
            Parametric::Net(_) => 0.0,
        }
    }

    /// A client's records as this model sees them.
    pub fn prepare(&self, data: &Arc<Dataset>) -> Arc<Dataset> {
        match self {
            Parametric::Linear(model) => model.prepare(data),
            Parametric::Softmax(model) => model.prepare(data),
            Parametric::Net(_) => Arc::clone(data),
        }
    }

    /// The number of parameters for prepared records.
    pub fn length(&self, data: &Dataset) -> usize {
        match self {
            Parametric::Linear(_) => data.columns(),
            Parametric::Softmax(model) => data.columns() * model.classes,
            Parametric::Net(model) => model.net().length(),
        }
    }

    /// The number of columns of prepared records, from the number of parameters.
    pub fn prepared_columns(&self, dimension: usize) -> usize {
        match self {
            Parametric::Linear(_) => dimension,
            Parametric::Softmax(model) => dimension / model.classes,
            Parametric::Net(model) => model.columns(),
        }
    }

    /// Where training begins: zero, or what a net draws.
    pub fn start(&self, dimension: usize, rng: &mut PublicRng) -> Vec<f64> {
        match self {
            Parametric::Linear(_) | Parametric::Softmax(_) => vec![0.0; dimension],
            Parametric::Net(model) => model.start(rng),
        }
    }

    /// Rounds a mean or a mixture of models to numbers that a model can have.
    pub fn round(&self, w: &mut [f64]) {
        if let Parametric::Net(_) = self {
            round_to_narrow(w);
        }
    }

    /// The coordinates that belong to batch or group norm: `all` of them, or running statistics alone.
    pub fn norms(&self, all: bool) -> Vec<Range<usize>> {
        let Parametric::Net(model) = self else { return Vec::new() };
        let roles = [Role::RunningMean, Role::RunningVariance, Role::Scale, Role::Shift];
        model.ranges(if all { &roles } else { &roles[..2] })
    }

    /// A client's records in the form that [`Self::train`] takes; `clients` share the regulariser.
    pub fn records(&self, data: &Arc<Dataset>, clients: usize) -> Records {
        match self {
            Parametric::Net(_) => Records::Narrow(Narrow::of(data)),
            Parametric::Linear(_) | Parametric::Softmax(_) => {
                Records::Wide(self.prepare(data), self.regularisation() / clients as f64)
            }
        }
    }

    /// Mini-batch descent from w, in place: the mean loss, and `(mu/2) |w - centre|^2` where there is a pull
    /// `(centre, mu)`. Batches come in the order that `shuffle` gives the record numbers in every epoch. Returns the mean
    /// loss of the last epoch, the pull left out.
    pub fn train(
        &self,
        records: &Records,
        descent: &Descent,
        pull: Option<(&[f64], f64)>,
        shuffle: &mut dyn FnMut(&mut [u32]),
        w: &mut [f64],
        bench: &mut Bench,
    ) -> Result<f64, Diverged> {
        if let (Parametric::Net(model), Records::Narrow(records)) = (self, records) {
            return model.train(records, descent, pull, shuffle, w, bench);
        }
        let mut order: Vec<u32> = (0..records.rows() as u32).collect();
        let (mut gradient, mut speed) = (vec![0.0; w.len()], vec![0.0; w.len()]);
        let mut mean = 0.0;
        for epoch in 1..=descent.epochs {
            shuffle(&mut order);
            mean = 0.0;
            for batch in order.chunks(descent.batch.max(1)) {
                mean += self.batch_gradient(records, batch, w, &mut gradient, bench) * batch.len() as f64;
                axpy(descent.weight_decay, w, &mut gradient);
                if let Some((centre, mu)) = pull {
                    for ((g, w), c) in gradient.iter_mut().zip(w.iter()).zip(centre) {
                        *g += mu * (w - c);
                    }
                }
                scale(descent.momentum, &mut speed);
                axpy(1.0, &gradient, &mut speed);
                axpy(-descent.rate, &speed, w);
            }
            mean /= records.rows() as f64;
            if !(mean.is_finite() && w.iter().all(|w| w.is_finite())) {
                return Err(Diverged { epoch, batch: 1, loss: mean as f32 });
            }
        }
        Ok(mean)
    }

    /// The gradient of the mean loss over these records (regularised as the client's objective is), running statistics of
    /// a net's norms moving along in w and having no gradient. Returns the loss.
    pub fn batch_gradient(
        &self,
        records: &Records,
        rows: &[u32],
        w: &mut [f64],
        out: &mut [f64],
        bench: &mut Bench,
    ) -> f64 {
        out.fill(0.0);
        match (self, records) {
            (Parametric::Net(model), Records::Narrow(records)) => {
                model.batch_gradient(records, rows, w, out, bench)
            }
            (_, Records::Wide(data, strength)) => {
                let share = 1.0 / rows.len() as f64;
                let mut loss = 0.0;
                for &row in rows {
                    let row = row as usize;
                    loss += self.loss_and_gradient(data.row(row), data.targets()[row], w, share, out);
                }
                axpy(2.0 * strength, w, out);
                loss * share + strength * crate::numeric::norm2(w)
            }
            // Records are made by the model they are for.
            (_, Records::Narrow(_)) => f64::NAN,
        }
    }

    /// Adds `share` times the gradient of one prepared record's loss, and returns the loss.
    fn loss_and_gradient(&self, row: &[f64], y: f64, w: &[f64], share: f64, out: &mut [f64]) -> f64 {
        match self {
            Parametric::Linear(model) => {
                let z = dot(row, w);
                axpy(share * model.loss.slope(z, y), row, out);
                model.loss.value(z, y)
            }
            Parametric::Softmax(model) => model.loss_and_gradient(row, y, w, share, out),
            Parametric::Net(_) => f64::NAN,
        }
    }

    /// The mean loss on prepared records plus `strength |w|^2`, of every model of a list of models.
    pub fn objectives(&self, data: &Dataset, strength: f64, models: &[f64], out: &mut Vec<f64>) {
        let each = models.chunks_exact(self.length(data));
        match self {
            Parametric::Linear(model) => model.objectives(data, strength, models, out),
            Parametric::Softmax(model) => {
                out.clear();
                out.extend(each.map(|w| model.objective(data, strength, w)));
            }
            Parametric::Net(model) => {
                out.clear();
                out.extend(each.map(|w| model.objective(data, w)));
            }
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
        if let (Parametric::Linear(model), true) = (self, models.len() == length) {
            return model.gradient(data, strength, models, scale, out, work);
        }
        if let Parametric::Net(model) = self {
            // All records are one batch; what running statistics would become is not kept.
            let (records, mut bench) = (Narrow::of(data), Bench::default());
            let rows: Vec<u32> = (0..data.rows() as u32).collect();
            for (w, out) in models.chunks_exact(length).zip(out.chunks_exact_mut(length)) {
                model.batch_gradient(&records, &rows, &mut w.to_vec(), out, &mut bench);
                crate::numeric::scale(scale, out);
            }
            return;
        }
        for (w, out) in models.chunks_exact(length).zip(out.chunks_exact_mut(length)) {
            match self {
                Parametric::Linear(model) => model.gradient(data, strength, w, scale, out, work),
                Parametric::Softmax(model) => model.gradient(data, strength, w, scale, out),
                Parametric::Net(_) => {}
            }
        }
    }

    /// Adds the gradient of the loss of one prepared record, regularisation left out.
    pub fn add_gradient(&self, row: &[f64], y: f64, w: &[f64], out: &mut [f64], bench: &mut Bench) {
        match self {
            Parametric::Linear(model) => axpy(model.loss.slope(dot(row, w), y), row, out),
            Parametric::Softmax(model) => model.add_gradient(row, y, w, out),
            Parametric::Net(model) => model.add_gradient(row, y, w, out, bench),
        }
    }

    /// The minimiser of `sum_i weight_i loss_i + strength |w|^2` on prepared records.
    pub fn fit(&self, data: &Dataset, weights: &[f64], strength: f64) -> Result<Vec<f64>, Unsolved> {
        match self {
            Parametric::Linear(model) => fit(model, data, weights, strength),
            Parametric::Softmax(model) => model.fit(data, weights, strength),
            Parametric::Net(_) => Err(Unsolved("a net is trained step by step and has no exact fit")),
        }
    }
}
