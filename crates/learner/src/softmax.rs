//! A probability for every class, from one product each.

use super::{Abilities, Failure, Family, Learner, Output, Reached, Share, Terms};
use crate::Dataset;
use crate::hypothesis::Sample;
use crate::model::{Softmax, Unsolved};
use fedkin_numeric::buffers::Buffers;
use fedkin_numeric::{axpy, norm2};
use std::sync::Arc;

/// Multinomial logistic regression.
#[derive(Debug, Clone, PartialEq)]
pub struct SoftmaxFamily {
    model: Softmax,
}

impl SoftmaxFamily {
    /// This model as a family.
    pub fn new(model: Softmax) -> Self {
        Self { model }
    }
}

/// What a softmax model can do.
pub(super) const HAS: Abilities = Abilities::PARAMETERS
    .and(Abilities::VALUE)
    .and(Abilities::GRADIENT)
    .and(Abilities::BATCHES)
    .and(Abilities::DESCEND)
    .and(Abilities::RECORDS)
    .and(Abilities::MINIMISE)
    .and(Abilities::FIT)
    .and(Abilities::PREDICT);

impl Family for SoftmaxFamily {
    fn name(&self) -> &'static str {
        "softmax"
    }

    fn has(&self) -> Abilities {
        HAS
    }

    fn output(&self) -> Output {
        Output::Classes(self.model.classes)
    }

    fn dimension(&self, columns: usize) -> usize {
        self.model.dimension(columns)
    }

    fn is_determined(&self) -> bool {
        self.model.regularisation > 0.0
    }

    fn squared_norm(&self) -> f64 {
        self.model.regularisation
    }

    fn join(&self, data: &Arc<Dataset>, terms: Terms) -> Result<Box<dyn Learner>, Unsolved> {
        let strength = terms.share.times(self.model.regularisation);
        Ok(Box::new(SoftmaxLearner { model: self.model, data: self.model.prepare(data), strength }))
    }

    fn fit(&self, sample: &Sample<'_>, share: Share) -> Result<Vec<f64>, Unsolved> {
        let data = Dataset::new(sample.columns, sample.features.to_vec(), sample.targets.to_vec())
            .map_err(|_| Unsolved("its records are no finite numbers"))?;
        let data = self.model.prepare(&Arc::new(data));
        self.model.fit(&data, sample.weights, share.times(self.model.regularisation))
    }

    fn predict(&self, w: &[f64], data: &Dataset, each: &mut dyn FnMut(usize, &[f64])) {
        if w.len() != self.model.dimension(data.columns()) {
            return;
        }
        let mut p = vec![0.0; self.model.classes];
        for i in 0..data.rows() {
            self.model.predict(data.row(i), w, &mut p);
            each(i, &p);
        }
    }
}

/// One client's records, prepared.
struct SoftmaxLearner {
    model: Softmax,
    data: Arc<Dataset>,
    /// This client's share of lambda.
    strength: f64,
}

impl Learner for SoftmaxLearner {
    fn rows(&self) -> usize {
        self.data.rows()
    }

    fn dimension(&self) -> usize {
        self.data.columns() * self.model.classes
    }

    fn loss(&self, w: &[f64], _: &mut Buffers) -> Result<f64, Failure> {
        Ok(self.model.objective(&self.data, 0.0, w))
    }

    fn smooth(&self, w: &[f64], _: &mut Buffers) -> Result<f64, Failure> {
        Ok(self.model.objective(&self.data, self.strength, w))
    }

    fn gradient(&self, w: &[f64], factor: f64, out: &mut [f64], _: &mut Buffers) -> Result<(), Failure> {
        self.model.gradient(&self.data, self.strength, w, factor, out);
        Ok(())
    }

    fn batch_gradient(
        &self,
        rows: &[u32],
        w: &mut [f64],
        out: &mut [f64],
        _: &mut Buffers,
    ) -> Result<f64, Failure> {
        out.fill(0.0);
        let share = 1.0 / rows.len() as f64;
        let mut sum = 0.0;
        for &row in rows {
            let (x, y) = (self.data.row(row as usize), self.data.targets()[row as usize]);
            sum += self.model.loss_and_gradient(x, y, w, share, out);
        }
        axpy(2.0 * self.strength, w, out);
        Ok(sum * share + self.strength * norm2(w))
    }

    fn record_gradient(
        &self,
        row: usize,
        w: &[f64],
        out: &mut [f64],
        _: &mut Buffers,
    ) -> Result<(), Failure> {
        self.model.add_gradient(self.data.row(row), self.data.targets()[row], w, out);
        Ok(())
    }

    /// By Newton's method to 1e-10 of the gradient at the centre: nearer than a step from gradients, not exact.
    fn prox(
        &self,
        centre: &[f64],
        weight: f64,
        out: &mut [f64],
        _: &mut Buffers,
    ) -> Result<Reached, Failure> {
        self.model.prox(&self.data, self.strength, centre, weight, out)?;
        let mut gradient = vec![0.0; out.len()];
        self.model.gradient(&self.data, self.strength, out, 1.0, &mut gradient);
        for ((g, w), c) in gradient.iter_mut().zip(out.iter()).zip(centre) {
            *g += weight * (w - c);
        }
        Ok(Reached { residual: norm2(&gradient).sqrt(), iterations: 0 })
    }

    fn minimise(&self, _: &mut Buffers) -> Result<Vec<f64>, Failure> {
        let weights = vec![1.0 / self.data.rows() as f64; self.data.rows()];
        Ok(self.model.fit(&self.data, &weights, self.strength)?)
    }
}
