//! Models: objective, gradient, exact proximal step, prediction, metrics.
//!
//! The objective of client k, equation (16) of the PGFL paper:
//!
//! ```text
//! f_k(w) = (1/D_k) sum_i loss(x_i'w, y_i) + strength |w|^2,     strength = lambda / |C_s|
//! ```
//!
//! | loss | l(z, y) | bound on its gradient when all feature norms are at most B |
//! |---|---|---|
//! | ridge | (z - y)^2 | none: it grows with w |
//! | Huber at t | (z - y)^2 up to t, then 2 t abs(z - y) - t^2 | 2 B t |
//! | logistic | cross-entropy of y in {0, 1} at sigmoid(z) | B |
//! | Poisson | exp(z) - y z of a count y, with the mean exp(z) | none: it grows with w |
//! | quantile at q | q (y - z) for y >= z, (1 - q) (z - y) otherwise | B max(q, 1 - q) |
//! | softmax | cross-entropy of y in {0, ..., C-1}, one z per class | sqrt(2) B |
//!
//! A bias is one more coordinate with the constant feature 1, regularised like the others.

mod composite;
mod known;
mod loss;
mod net;
pub mod neural;
mod newton;
mod prox;
mod quantile;
pub mod settings;
mod softmax;

pub(crate) use composite::fit_quantile;
pub use composite::{ProxWork, RegularisedProx};
pub use known::Known;
pub use loss::Loss;
pub use net::{NETS, NetModel, loss as loss_of_outputs};
pub use prox::{Prox, fit};
pub use softmax::Softmax;

pub use crate::unsolved::Unsolved;

use crate::Dataset;
use fedkin_numeric::{combine, dot, norm2, products, update};
use fedkin_privacy::{Bound, proofs};
use std::sync::Arc;

/// A linear model and how it is fitted.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Model {
    /// The loss of one record.
    pub loss: Loss,
    /// lambda: the weight of |w|^2, shared by the clients of a server.
    pub regularisation: f64,
    /// Whether a constant feature is appended.
    pub bias: bool,
    /// Every feature vector (bias included) is scaled down to at most this norm.
    pub feature_norm: Option<f64>,
}

impl Model {
    /// The number of parameters for this many features.
    pub fn dimension(&self, features: usize) -> usize {
        features + usize::from(self.bias)
    }

    /// A client's records as this model sees them: bias appended, norms clipped.
    pub fn prepare(&self, data: &Arc<Dataset>) -> Arc<Dataset> {
        prepare(data, self.bias, self.feature_norm)
    }

    /// The bound on the gradient of one record's loss that `prepare` enforces, if it does.
    pub(crate) fn enforced_bound(&self) -> Option<Bound> {
        self.loss.steepest().zip(self.feature_norm).map(|(slope, norm)| proofs::linear_gradient(slope, norm))
    }

    /// f(w) of equation (16) on prepared data.
    pub fn objective(&self, data: &Dataset, strength: f64, w: &[f64]) -> f64 {
        // So many products at a time, which need no memory of their own.
        const BLOCK: usize = 16;
        let (mut sum, mut z) = (0.0, [0.0; BLOCK]);
        let (mut features, mut targets) = (data.features(), data.targets());
        while !targets.is_empty() {
            let rows = targets.len().min(BLOCK);
            let ((block, later), (y, y_later)) = (features.split_at(rows * w.len()), targets.split_at(rows));
            products(block, w, &mut z[..rows]);
            let pairs = z.iter().zip(y);
            match self.loss {
                // By far the most frequent: no choice inside the loop.
                Loss::Squared => pairs.for_each(|(z, y)| sum += Loss::Squared.value(*z, *y)),
                loss => pairs.for_each(|(z, y)| sum += loss.value(*z, *y)),
            }
            (features, targets) = (later, y_later);
        }
        let mean = sum / data.rows() as f64;
        if strength == 0.0 { mean } else { mean + strength * norm2(w) }
    }

    /// `objective` of every model of a list, with the same bits: all models meet a record before the next one does.
    pub fn objectives(&self, data: &Dataset, strength: f64, models: &[f64], out: &mut Vec<f64>) {
        let columns = data.columns();
        let count = models.len() / columns;
        out.clear();
        if count < 4 {
            return out.extend(models.chunks_exact(columns).map(|w| self.objective(data, strength, w)));
        }
        out.resize(2 * count, 0.0);
        let (sums, z) = out.split_at_mut(count);
        for (x, &y) in data.features().chunks_exact(columns).zip(data.targets()) {
            products(models, x, z);
            match self.loss {
                Loss::Squared => update(sums, z, |sum, z| sum + Loss::Squared.value(z, y)),
                loss => update(sums, z, |sum, z| sum + loss.value(z, y)),
            }
        }
        let rows = data.rows() as f64;
        for (sum, w) in sums.iter_mut().zip(models.chunks_exact(columns)) {
            *sum /= rows;
            if strength != 0.0 {
                *sum += strength * norm2(w);
            }
        }
        out.truncate(count);
    }

    /// `scale` times the gradient of `objective`. `work` is scratch space that keeps its allocation.
    pub fn gradient(
        &self,
        data: &Dataset,
        strength: f64,
        w: &[f64],
        scale: f64,
        out: &mut [f64],
        work: &mut Vec<f64>,
    ) {
        let share = scale / data.rows() as f64;
        work.resize(data.rows(), 0.0);
        products(data.features(), w, work);
        match self.loss {
            Loss::Squared => update(work, data.targets(), |z, y| share * Loss::Squared.slope(z, y)),
            loss => update(work, data.targets(), |z, y| share * loss.slope(z, y)),
        }
        combine(scale * 2.0 * strength, w, work, data.features(), out);
    }

    /// The prediction for one record as it came, bias and clipping not yet applied:
    /// a number, the probability of label 1, or the mean of a count.
    pub fn predict(&self, features: &[f64], w: &[f64]) -> f64 {
        let mut z = dot(features, &w[..features.len()]);
        let mut length2 = norm2(features);
        if self.bias {
            z += w[features.len()];
            length2 += 1.0;
        }
        if let Some(norm) = self.feature_norm
            && length2.sqrt() > norm
        {
            z *= norm / length2.sqrt();
        }
        self.loss.prediction(z)
    }
}

/// Records with a bias appended where asked for, and with bounded norms.
fn prepare(data: &Arc<Dataset>, bias: bool, feature_norm: Option<f64>) -> Arc<Dataset> {
    let with_bias = if bias { Arc::new(data.with_bias()) } else { Arc::clone(data) };
    match feature_norm {
        Some(norm) => Arc::new(with_bias.clipped(norm)),
        None => with_bias,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fedkin_numeric::rng::{PublicRng, Random};

    pub(super) fn sample(rows: usize, columns: usize, binary: bool) -> Arc<Dataset> {
        let mut rng = PublicRng::named(3, "model test", rows as u32, columns as u32);
        let features = (0..rows * columns).map(|_| rng.normal()).collect();
        let targets =
            (0..rows).map(|_| if binary { f64::from(rng.below(2)) } else { rng.normal() }).collect();
        Arc::new(Dataset::new(columns, features, targets).unwrap())
    }

    fn models() -> [Model; 5] {
        let base = Model { loss: Loss::Squared, regularisation: 0.1, bias: false, feature_norm: None };
        [Loss::Squared, Loss::Huber(0.7), Loss::Logistic, Loss::Poisson, Loss::Quantile(0.3)]
            .map(|loss| Model { loss, ..base })
    }

    #[test]
    fn clipped_features_bound_the_gradient_where_the_slope_is_bounded() {
        let bounds = models().map(|model| {
            let model = Model { feature_norm: Some(2.0), ..model };
            model.enforced_bound().map(Bound::value)
        });
        assert_eq!(bounds, [None, Some(2.8), Some(2.0), None, Some(1.4)]);
        assert!(models().iter().all(|model| model.enforced_bound().is_none()));
    }

    #[test]
    fn gradients_agree_with_finite_differences() {
        for model in models() {
            let data = sample(7, 4, model.loss == Loss::Logistic);
            let w = [0.3, -0.2, 0.5, 0.1];
            let mut gradient = [0.0; 4];
            model.gradient(&data, 0.05, &w, 1.0, &mut gradient, &mut Vec::new());
            for j in 0..4 {
                let h = 1e-6;
                let mut up = w;
                let mut down = w;
                up[j] += h;
                down[j] -= h;
                let slope =
                    (model.objective(&data, 0.05, &up) - model.objective(&data, 0.05, &down)) / (2.0 * h);
                assert!((slope - gradient[j]).abs() < 1e-7, "{model:?} coordinate {j}");
            }
        }
    }

    #[test]
    fn objectives_of_a_list_are_those_of_its_models() {
        for model in models() {
            for (rows, columns, strength) in [(7, 4, 0.05), (40, 3, 0.0), (1, 21, 0.3)] {
                let data = sample(rows, columns, model.loss == Loss::Logistic);
                let mut rng = PublicRng::named(4, "models", rows as u32, 0);
                for count in [0, 1, 3, 4, 9] {
                    let list: Vec<f64> = (0..count * columns).map(|_| rng.normal()).collect();
                    let mut found = vec![1.0; 5];
                    model.objectives(&data, strength, &list, &mut found);
                    let alone = list.chunks_exact(columns).map(|w| model.objective(&data, strength, w));
                    assert_eq!(found, alone.collect::<Vec<f64>>());
                }
            }
        }
    }

    #[test]
    fn prediction_of_a_raw_record_equals_that_of_the_prepared_one() {
        let model = Model { loss: Loss::Squared, regularisation: 0.0, bias: true, feature_norm: Some(1.5) };
        let data = sample(6, 3, false);
        let prepared = model.prepare(&data);
        let w = [0.4, -1.0, 0.2, 0.7];
        for i in 0..6 {
            assert!((model.predict(data.row(i), &w) - dot(prepared.row(i), &w)).abs() < 1e-11);
        }
    }
}
