//! Multinomial logistic regression: a probability for every class.
//!
//! One row of parameters per class, one after the other: `w = (w_0, ..., w_{C-1})`, each as long as a prepared record.
//! With `z_c = x'w_c` and the label y in 0..C-1,
//!
//! ```text
//! p_c  = exp(z_c) / sum over b of exp(z_b)
//! f(w) = (1/D) sum_i -ln p_{y_i}(x_i) + strength |w|^2
//! ```
//!
//! All C rows are kept: the regulariser makes the fit unique, and no class is singled out. With two classes the
//! probabilities are those of a logistic model with the vector `w_1 - w_0` and half the strength.
//!
//! The fit is Newton's method with conjugate gradients, always from zero and in a fixed order: it ends where the gradient is
//! below 1e-10 of what it was at zero (where rounding hides any progress, below 1e-7). The proximal step around a centre v
//! is the same with the squares completed, from m on:
//!
//! ```text
//! strength |w|^2 + (weight/2) |w - v|^2 = (c/2) |w - m|^2 + constant,   c = 2 strength + weight,   m = (weight/c) v
//! ```

use super::settings;
use crate::Dataset;
use crate::unsolved::Unsolved;
use fedkin_numeric::{axpy, distance2, dot, exp, ln, norm2, scale};
use std::sync::Arc;

/// Size of the gradient, relative to that at zero, at which a problem counts as solved.
const TOLERANCE: f64 = 1e-10;
/// The same where no step can be seen to help any more.
const BLIND: f64 = 1e-7;
const ITERATIONS: usize = 200;
const HALVINGS: usize = 40;
/// Steps of conjugate gradients within one of Newton's.
const INNER: usize = 500;

/// A softmax model and how it is fitted.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Softmax {
    /// How many classes there are.
    pub classes: usize,
    /// lambda: the weight of |w|^2, shared by the clients of a server.
    pub regularisation: f64,
    /// Whether a constant feature is appended.
    pub bias: bool,
    /// Every feature vector (bias included) is scaled down to at most this norm.
    pub feature_norm: Option<f64>,
}

impl Softmax {
    /// A model from the keys of its kind; `known` is the number of classes of the data, where they say.
    pub fn new(keys: &settings::Softmax, known: Option<usize>) -> Result<Self, String> {
        let classes = keys.classes.or(known).ok_or(
            "kind = \"softmax\" needs `model.classes`: how many classes there are; their labels go from 0 to one less",
        )?;
        Ok(Self {
            classes,
            regularisation: keys.weight.regularisation,
            bias: keys.weight.bias,
            feature_norm: keys.product.feature_norm,
        })
    }

    /// The number of parameters for this many features.
    pub fn dimension(&self, features: usize) -> usize {
        self.classes * (features + usize::from(self.bias))
    }

    /// A client's records as this model sees them: bias appended, norms clipped.
    pub fn prepare(&self, data: &Arc<Dataset>) -> Arc<Dataset> {
        super::prepare(data, self.bias, self.feature_norm)
    }

    /// f(w) on prepared records.
    pub fn objective(&self, data: &Dataset, strength: f64, w: &[f64]) -> f64 {
        let mut p = vec![0.0; self.classes];
        let mut sum = 0.0;
        for (i, &y) in data.targets().iter().enumerate() {
            sum += probabilities(data.row(i), y, w, &mut p);
        }
        sum / data.rows() as f64 + strength * norm2(w)
    }

    /// `factor` times the gradient of `objective`.
    pub fn gradient(&self, data: &Dataset, strength: f64, w: &[f64], factor: f64, out: &mut [f64]) {
        out.copy_from_slice(w);
        scale(2.0 * strength * factor, out);
        let share = factor / data.rows() as f64;
        let mut p = vec![0.0; self.classes];
        for (i, &y) in data.targets().iter().enumerate() {
            probabilities(data.row(i), y, w, &mut p);
            spread(share, data.row(i), y, &p, out);
        }
    }

    /// Adds the gradient of one prepared record's loss.
    pub fn add_gradient(&self, row: &[f64], y: f64, w: &[f64], out: &mut [f64]) {
        self.loss_and_gradient(row, y, w, 1.0, out);
    }

    /// Adds `share` times that, and returns the loss.
    pub fn loss_and_gradient(&self, row: &[f64], y: f64, w: &[f64], share: f64, out: &mut [f64]) -> f64 {
        let mut p = vec![0.0; self.classes];
        let loss = probabilities(row, y, w, &mut p);
        spread(share, row, y, &p, out);
        loss
    }

    /// The probabilities of the classes for one record as it came, bias and clipping not yet applied.
    pub fn predict(&self, features: &[f64], w: &[f64], p: &mut [f64]) {
        let width = features.len() + usize::from(self.bias);
        let length = (norm2(features) + f64::from(u8::from(self.bias))).sqrt();
        let shrink = self.feature_norm.map_or(1.0, |norm| if length > norm { norm / length } else { 1.0 });
        for (p, w) in p.iter_mut().zip(w.chunks_exact(width)) {
            let constant = if self.bias { w[features.len()] } else { 0.0 };
            *p = shrink * (dot(features, &w[..features.len()]) + constant);
        }
        normalise(p);
    }

    /// The minimiser of `sum_i weight_i loss_i + strength |w|^2` on prepared records.
    pub fn fit(&self, data: &Dataset, weights: &[f64], strength: f64) -> Result<Vec<f64>, Unsolved> {
        if strength <= 0.0 {
            return Err(Unsolved("without regularisation a softmax model has no unique solution"));
        }
        let mut w = vec![0.0; self.classes * data.columns()];
        Fit { model: self, data, weights, strength, middle: &w.clone(), least: 0.0, products: 0.0 }
            .solve(&mut w)?;
        Ok(w)
    }

    /// Writes the minimiser of `objective(w) + (weight/2) |w - centre|^2` on prepared records to `out`: the gradient is
    /// below 1e-10 of what it is at the start, or of `1 + c |m|` where that is more.
    pub fn prox(
        &self,
        data: &Dataset,
        strength: f64,
        centre: &[f64],
        weight: f64,
        out: &mut [f64],
    ) -> Result<(), Unsolved> {
        let curvature = 2.0 * strength + weight;
        if curvature <= 0.0 || curvature.is_nan() {
            return Err(Unsolved("without regularisation or penalty a softmax model has no unique solution"));
        }
        let weights = vec![1.0 / data.rows() as f64; data.rows()];
        for (out, centre) in out.iter_mut().zip(centre) {
            *out = weight / curvature * centre;
        }
        let middle = out.to_vec();
        let length = norm2(&middle).sqrt();
        let least = 1.0 + curvature * length;
        let longest = (0..data.rows()).map(|i| norm2(data.row(i)).sqrt()).fold(0.0, f64::max);
        let products = 1.0 + longest * length;
        Fit {
            model: self,
            data,
            weights: &weights,
            strength: 0.5 * curvature,
            middle: &middle,
            least,
            products,
        }
        .solve(out)
    }
}

/// Writes the probabilities of a prepared record and returns the loss of its label.
fn probabilities(row: &[f64], y: f64, w: &[f64], p: &mut [f64]) -> f64 {
    for (p, w) in p.iter_mut().zip(w.chunks_exact(row.len())) {
        *p = dot(row, w);
    }
    let label = p.get(y as usize).copied().unwrap_or(f64::NAN);
    normalise(p) - label
}

/// Adds `share (p_c - [c = y]) x` to the row of each class.
fn spread(share: f64, row: &[f64], y: f64, p: &[f64], out: &mut [f64]) {
    for (c, (p, out)) in p.iter().zip(out.chunks_exact_mut(row.len())).enumerate() {
        let hit = if c == y as usize { 1.0 } else { 0.0 };
        axpy(share * (p - hit), row, out);
    }
}

/// Turns exponents into probabilities; returns the logarithm of the sum of their exponentials.
fn normalise(z: &mut [f64]) -> f64 {
    let most = z.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let mut sum = 0.0;
    for z in z.iter_mut() {
        *z = exp(*z - most);
        sum += *z;
    }
    scale(1.0 / sum, z);
    most + ln(sum)
}

/// One problem to be solved.
struct Fit<'a> {
    model: &'a Softmax,
    data: &'a Dataset,
    weights: &'a [f64],
    strength: f64,
    /// m: the regulariser is `strength |w - m|^2`.
    middle: &'a [f64],
    /// The gradient is compared with its size at the start, or with this where it is more.
    least: f64,
    /// How large the products x'w are where it starts, whose rounding the value has.
    products: f64,
}

impl Fit<'_> {
    /// The value at w, its gradient, and the probabilities of every record.
    fn value(&self, w: &[f64], gradient: &mut [f64], all: &mut [f64]) -> f64 {
        for ((gradient, w), middle) in gradient.iter_mut().zip(w).zip(self.middle) {
            *gradient = 2.0 * self.strength * (w - middle);
        }
        let mut sum = self.strength * distance2(w, self.middle);
        for (i, p) in all.chunks_exact_mut(self.model.classes).enumerate() {
            let (row, y) = (self.data.row(i), self.data.targets()[i]);
            sum += self.weights[i] * probabilities(row, y, w, p);
            spread(self.weights[i], row, y, p, gradient);
        }
        sum
    }

    /// The curvature along v: `sum_i weight_i (diag(p) - p p') x x' v + 2 strength v`.
    fn curvature(&self, all: &[f64], v: &[f64], out: &mut [f64]) {
        out.copy_from_slice(v);
        scale(2.0 * self.strength, out);
        let columns = self.data.columns();
        let mut z = vec![0.0; self.model.classes];
        for (i, p) in all.chunks_exact(self.model.classes).enumerate() {
            let row = self.data.row(i);
            let mut mean = 0.0;
            for ((z, v), p) in z.iter_mut().zip(v.chunks_exact(columns)).zip(p) {
                *z = dot(row, v);
                mean += p * *z;
            }
            for ((z, p), out) in z.iter().zip(p).zip(out.chunks_exact_mut(columns)) {
                axpy(self.weights[i] * p * (z - mean), row, out);
            }
        }
    }

    /// Conjugate gradients for `H d = -g`, until the residual is below `forcing` of g.
    fn direction(&self, all: &[f64], gradient: &[f64], forcing: f64) -> Vec<f64> {
        let mut d = vec![0.0; gradient.len()];
        let mut residual: Vec<f64> = gradient.iter().map(|g| -g).collect();
        let mut search = residual.clone();
        let mut bent = vec![0.0; gradient.len()];
        let mut size = norm2(&residual);
        let goal = forcing * forcing * size;
        for _ in 0..INNER {
            if size <= goal {
                break;
            }
            self.curvature(all, &search, &mut bent);
            let along = dot(&search, &bent);
            // The regulariser keeps this above zero; rounding and overflow might not.
            if along.is_nan() || along <= 0.0 {
                break;
            }
            let step = size / along;
            axpy(step, &search, &mut d);
            axpy(-step, &bent, &mut residual);
            let next = norm2(&residual);
            let keep = next / size;
            for (s, r) in search.iter_mut().zip(&residual) {
                *s = r + keep * *s;
            }
            size = next;
        }
        d
    }

    /// Moves w, where it starts, to the minimiser.
    fn solve(&self, out: &mut [f64]) -> Result<(), Unsolved> {
        let mut w = out.to_vec();
        let mut gradient = vec![0.0; w.len()];
        let mut all = vec![0.0; self.data.rows() * self.model.classes];
        let mut now = self.value(&w, &mut gradient, &mut all);
        let first = norm2(&gradient).sqrt();
        if !first.is_finite() {
            return Err(Unsolved("its records or labels are out of range"));
        }
        let first = first.max(self.least);
        let (mut trial, mut trial_gradient, mut trial_all) = (w.clone(), gradient.clone(), all.clone());
        for _ in 0..ITERATIONS {
            let size = norm2(&gradient).sqrt();
            if size <= TOLERANCE * first {
                out.copy_from_slice(&w);
                return Ok(());
            }
            let d = self.direction(&all, &gradient, (size / first).sqrt().min(0.1));
            let descent = -dot(&gradient, &d);
            let mut step = 1.0;
            let mut found = false;
            for _ in 0..HALVINGS {
                trial.copy_from_slice(&w);
                axpy(step, &d, &mut trial);
                let value = self.value(&trial, &mut trial_gradient, &mut trial_all);
                // Near the end rounding hides the decrease of the value, but not that of the gradient.
                let hidden = step * descent <= 1e-12 * now.abs().max(self.products);
                if value <= now - 1e-4 * step * descent
                    || (hidden && norm2(&trial_gradient).sqrt() <= 0.5 * size)
                {
                    now = value;
                    found = true;
                    break;
                }
                step *= 0.5;
            }
            if !found {
                if size > BLIND * first {
                    return Err(Unsolved("Newton's method found no decrease"));
                }
                out.copy_from_slice(&w);
                return Ok(());
            }
            std::mem::swap(&mut w, &mut trial);
            std::mem::swap(&mut gradient, &mut trial_gradient);
            std::mem::swap(&mut all, &mut trial_all);
        }
        Err(Unsolved("Newton's method did not end"))
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Loss, Model, fit};
    use super::*;
    use fedkin_numeric::rng::{PublicRng, Random};

    fn sample(rows: usize, columns: usize, classes: u32) -> Arc<Dataset> {
        let mut rng = PublicRng::named(5, "softmax test", rows as u32, columns as u32);
        let features = (0..rows * columns).map(|_| rng.normal()).collect();
        let targets = (0..rows).map(|_| f64::from(rng.below(classes))).collect();
        Arc::new(Dataset::new(columns, features, targets).unwrap())
    }

    fn model(classes: usize) -> Softmax {
        Softmax { classes, regularisation: 0.1, bias: false, feature_norm: None }
    }

    #[test]
    fn the_gradient_agrees_with_finite_differences() {
        let (model, data) = (model(3), sample(9, 4, 3));
        let mut rng = PublicRng::named(5, "softmax point", 0, 0);
        let w: Vec<f64> = (0..12).map(|_| rng.normal()).collect();
        let mut gradient = vec![0.0; 12];
        model.gradient(&data, 0.05, &w, 1.0, &mut gradient);
        for j in 0..12 {
            let (mut up, mut down, h) = (w.clone(), w.clone(), 1e-6);
            up[j] += h;
            down[j] -= h;
            let slope = (model.objective(&data, 0.05, &up) - model.objective(&data, 0.05, &down)) / (2.0 * h);
            assert!((slope - gradient[j]).abs() < 1e-7, "coordinate {j}: {slope} against {}", gradient[j]);
        }
        // Record by record it is the same sum.
        let mut sum: Vec<f64> = w.iter().map(|w| 0.1 * 9.0 * w).collect();
        for (i, &y) in data.targets().iter().enumerate() {
            model.add_gradient(data.row(i), y, &w, &mut sum);
        }
        for (sum, gradient) in sum.iter().zip(&gradient) {
            assert!((sum / 9.0 - gradient).abs() < 1e-12);
        }
    }

    #[test]
    fn a_fit_is_stationary_whatever_the_shape() {
        for (rows, columns, classes, strength) in
            [(1, 1, 2, 0.1), (3, 20, 4, 1e-3), (60, 5, 6, 1e-4), (200, 12, 3, 1e-6)]
        {
            let (model, data) = (model(classes), sample(rows, columns, classes as u32));
            let w = model.fit(&data, &vec![1.0 / rows as f64; rows], strength).unwrap();
            let mut gradient = vec![0.0; w.len()];
            model.gradient(&data, strength, &w, 1.0, &mut gradient);
            assert!(norm2(&gradient).sqrt() < 1e-9, "{rows} x {columns}: {}", norm2(&gradient).sqrt());
        }
    }

    #[test]
    fn a_proximal_step_is_stationary_whatever_the_shape_and_the_centre() {
        for (rows, columns, classes) in [(1, 1, 2), (3, 20, 4), (60, 5, 6), (200, 12, 3)] {
            let (model, data) = (model(classes), sample(rows, columns, classes as u32));
            for (strength, weight, size) in
                [(0.0, 1.0, 0.0), (0.01, 0.4, 1.0), (1e-4, 3.0, 30.0), (0.2, 0.0, 5.0)]
            {
                let mut rng = PublicRng::named(7, "softmax centre", rows as u32, 0);
                let centre: Vec<f64> = (0..classes * columns).map(|_| size * rng.normal()).collect();
                let (mut w, mut again) = (vec![f64::NAN; centre.len()], vec![0.0; centre.len()]);
                model.prox(&data, strength, &centre, weight, &mut w).unwrap();
                let mut gradient = vec![0.0; w.len()];
                model.gradient(&data, strength, &w, 1.0, &mut gradient);
                for ((g, w), v) in gradient.iter_mut().zip(&w).zip(&centre) {
                    *g += weight * (w - v);
                }
                let gap = norm2(&gradient).sqrt() / (1.0 + weight * norm2(&centre).sqrt());
                assert!(gap < 1e-9, "{rows} x {columns}, {strength}, {weight}, {size}: {gap:e}");
                model.prox(&data, strength, &centre, weight, &mut again).unwrap();
                assert_eq!(w, again);
            }
        }
        let (mut w, data) = ([0.0; 2], sample(4, 1, 2));
        assert!(model(2).prox(&data, 0.1, &[f64::NAN; 2], 1.0, &mut w).is_err());
        assert!(model(2).prox(&data, 0.0, &[0.0; 2], 0.0, &mut w).is_err());
    }

    /// Around zero with a weight of twice the strength it is the fit.
    #[test]
    fn a_proximal_step_around_zero_is_a_fit() {
        let data = sample(40, 3, 3);
        let fitted = model(3).fit(&data, &[1.0 / 40.0; 40], 0.5).unwrap();
        let mut w = [0.0; 9];
        model(3).prox(&data, 0.0, &[0.0; 9], 1.0, &mut w).unwrap();
        assert!(distance2(&w, &fitted).sqrt() < 1e-9);
    }

    #[test]
    fn two_classes_are_a_logistic_model_of_half_the_strength() {
        let data = sample(40, 3, 2);
        let weights = [1.0 / 40.0; 40];
        let w = model(2).fit(&data, &weights, 0.02).unwrap();
        let logistic = Model { loss: Loss::Logistic, regularisation: 0.0, bias: false, feature_norm: None };
        let v = fit(&logistic, &data, &weights, 0.01).unwrap();
        for j in 0..3 {
            assert!((w[3 + j] - w[j] - v[j]).abs() < 1e-8, "{} against {}", w[3 + j] - w[j], v[j]);
        }
        let mut p = [0.0; 2];
        model(2).predict(data.row(0), &w, &mut p);
        assert!((p[1] - logistic.predict(data.row(0), &v)).abs() < 1e-8);
    }

    #[test]
    fn a_raw_record_is_predicted_like_the_prepared_one() {
        let model = Softmax { bias: true, feature_norm: Some(1.2), ..model(3) };
        let data = sample(8, 4, 3);
        let prepared = model.prepare(&data);
        let w: Vec<f64> = (0..15).map(|j| f64::from(j % 4) - 1.5).collect();
        for i in 0..8 {
            let (mut raw, mut direct) = ([0.0; 3], [0.0; 3]);
            model.predict(data.row(i), &w, &mut raw);
            probabilities(prepared.row(i), 0.0, &w, &mut direct);
            for c in 0..3 {
                assert!((raw[c] - direct[c]).abs() < 1e-10);
            }
            assert!((raw.iter().sum::<f64>() - 1.0).abs() < 1e-14);
        }
    }

    #[test]
    fn large_exponents_stay_finite_and_no_regularisation_is_refused() {
        let data = Dataset::new(1, vec![1.0, -1.0], vec![0.0, 1.0]).unwrap();
        let w = [900.0, -900.0];
        assert_eq!(model(2).objective(&data, 0.0, &w), 0.0);
        assert_eq!(model(2).objective(&data, 0.0, &[-900.0, 900.0]), 1800.0);
        assert!(model(2).fit(&data, &[0.5; 2], 0.0).is_err());
        let w = model(2).fit(&data, &[0.5; 2], 1e-9).unwrap();
        assert!(w[0] > 0.0 && (w[0] + w[1]).abs() < 1e-6);
    }
}
