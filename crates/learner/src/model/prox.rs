//! The exact proximal step of one client, factored once.
//!
//! ```text
//! prox(v) = argmin_w f(w) + (rho/2) |w - v|^2
//! ```
//!
//! With c = 2 strength + rho the step is `w = (rho/c) v + X'a`: the unknown is one number per record.
//! So it is solved on the smaller side of X: in a (D numbers) where D <= d, in w (d numbers) otherwise.
//! For ridge the system does not change between rounds and is factored once:
//!
//! ```text
//! (X X' + (c D / 2) I) a = y - (rho/c) X v          D <= d
//! ((2/D) X'X + c I) w = (2/D) X'y + rho v           D > d
//! ```

use super::newton::{self, Curved};
use super::quantile::Pinball;
use super::{Loss, Model};
use crate::Dataset;
use crate::unsolved::Unsolved;
use fedkin_numeric::{
    Cholesky, add_diagonal, add_weighted_gram, axpy, combine, gram_of_rows, products, update,
};
use std::sync::Arc;

/// A client's problem, ready to be solved for any centre.
#[derive(Debug, Clone)]
pub struct Prox {
    data: Arc<Dataset>,
    /// rho
    penalty: f64,
    /// c = 2 strength + rho
    curvature: f64,
    form: Form,
}

#[derive(Debug, Clone)]
enum Form {
    RidgeRows(Cholesky),
    RidgeColumns { factor: Cholesky, moment: Vec<f64> },
    Curved(Curved),
    Kinked(Pinball),
}

impl Prox {
    /// Factors the problem of prepared `data` (see [`Model::prepare`]).
    pub fn new(model: &Model, data: Arc<Dataset>, strength: f64, penalty: f64) -> Result<Self, Unsolved> {
        let (rows, columns) = (data.rows(), data.columns());
        let curvature = 2.0 * strength + penalty;
        check_curvature(curvature)?;
        check(model.loss, &data)?;
        let singular = Unsolved("its system is singular");
        let form = match model.loss {
            Loss::Squared if rows <= columns => {
                let mut gram = gram_of_rows(data.features(), rows, columns);
                add_diagonal(&mut gram, rows, 0.5 * curvature * rows as f64);
                Form::RidgeRows(Cholesky::factor(gram, rows).ok_or(singular)?)
            }
            Loss::Squared => {
                let share = 2.0 / rows as f64;
                let mut gram = vec![0.0; columns * (columns + 1) / 2];
                add_weighted_gram(&mut gram, data.features(), columns, |_| share);
                add_diagonal(&mut gram, columns, curvature);
                let mut moment = vec![0.0; columns];
                for (i, &y) in data.targets().iter().enumerate() {
                    axpy(share * y, data.row(i), &mut moment);
                }
                Form::RidgeColumns { factor: Cholesky::factor(gram, columns).ok_or(singular)?, moment }
            }
            loss @ (Loss::Huber(_) | Loss::Logistic | Loss::Poisson) => {
                Form::Curved(Curved::new(loss, &data))
            }
            Loss::Quantile(level) => Form::Kinked(Pinball::new(level, &data, vec![1.0 / rows as f64; rows])?),
        };
        Ok(Self { data, penalty, curvature, form })
    }

    /// rho: the weight of the step.
    pub fn weight(&self) -> f64 {
        self.penalty
    }

    /// Writes `prox(centre)` to `out`. `work` is scratch space that keeps its allocation.
    ///
    /// The quantile loss is solved until its optimality conditions hold to 1e-12 of the numbers in them.
    /// Curved losses are solved until the gradient is below 1e-12 relative to the scale
    /// of the problem, always from the centre: the result depends on the data and the centre alone,
    /// never on what the client computed before.
    pub fn solve(&self, centre: &[f64], out: &mut [f64], work: &mut Vec<f64>) -> Result<(), Unsolved> {
        let pull = self.penalty / self.curvature;
        match &self.form {
            Form::RidgeRows(factor) => {
                work.resize(self.data.rows(), 0.0);
                products(self.data.features(), centre, work);
                update(work, self.data.targets(), |product, y| y - pull * product);
                factor.solve(work);
                combine(pull, centre, work, self.data.features(), out);
            }
            Form::RidgeColumns { factor, moment } => {
                for ((out, centre), moment) in out.iter_mut().zip(centre).zip(moment) {
                    *out = moment + self.penalty * centre;
                }
                factor.solve(out);
            }
            Form::Curved(curved) => {
                for (out, centre) in out.iter_mut().zip(centre) {
                    *out = pull * centre;
                }
                curved.solve(&self.data, self.curvature, out, work)?;
            }
            Form::Kinked(pinball) => {
                for (out, centre) in out.iter_mut().zip(centre) {
                    *out = pull * centre;
                }
                pinball.solve(&self.data, self.curvature, out, work)?;
            }
        }
        Ok(())
    }
}

/// Whether regularisation and penalty make the solution unique.
pub(super) fn check_curvature(curvature: f64) -> Result<(), Unsolved> {
    if curvature <= 0.0 || curvature.is_nan() {
        return Err(Unsolved("without regularisation or penalty it has no unique solution"));
    }
    Ok(())
}

/// Whether the targets are ones of a loss that cannot be solved for others.
pub(super) fn check(loss: Loss, data: &Dataset) -> Result<(), Unsolved> {
    if loss == Loss::Poisson && !data.targets().iter().all(|y| loss.takes(*y)) {
        return Err(Unsolved("a Poisson model is one of counts, and one of its targets is negative"));
    }
    Ok(())
}

/// The minimiser of `sum_i weight_i loss(x_i'w, y_i) + strength |w|^2` on prepared data.
pub fn fit(model: &Model, data: &Dataset, weights: &[f64], strength: f64) -> Result<Vec<f64>, Unsolved> {
    if strength <= 0.0 && data.rows() < data.columns() {
        return Err(Unsolved(
            "without regularisation and with fewer records than parameters it has no unique solution",
        ));
    }
    check(model.loss, data)?;
    let mut w = vec![0.0; data.columns()];
    if let Loss::Quantile(level) = model.loss {
        if strength <= 0.0 {
            return Err(Unsolved("without regularisation a quantile model has no unique solution"));
        }
        Pinball::new(level, data, weights.to_vec())?.solve(data, 2.0 * strength, &mut w, &mut Vec::new())?;
        return Ok(w);
    }
    newton::in_parameters(model.loss, data, weights, 2.0 * strength, &mut w)?;
    Ok(w)
}

#[cfg(test)]
mod tests {
    use super::super::tests::sample;
    use super::*;
    use fedkin_numeric::norm2;

    fn check(loss: Loss, rows: usize, columns: usize) {
        let model = Model { loss, regularisation: 0.0, bias: false, feature_norm: None };
        let data = sample(rows, columns, matches!(loss, Loss::Logistic | Loss::Poisson));
        let (strength, penalty) = (0.02, 1.3);
        let prox = Prox::new(&model, Arc::clone(&data), strength, penalty).unwrap();
        let centre: Vec<f64> = (0..columns).map(|j| 3.0 * (j as f64).sin()).collect();
        let mut w = vec![f64::NAN; columns];
        prox.solve(&centre, &mut w, &mut Vec::new()).unwrap();
        // Stationarity: grad f(w) + rho (w - v) = 0.
        let mut gradient = vec![0.0; columns];
        model.gradient(&data, strength, &w, 1.0, &mut gradient, &mut Vec::new());
        for ((g, w), v) in gradient.iter_mut().zip(&w).zip(&centre) {
            *g += penalty * (w - v);
        }
        let size = norm2(&gradient).sqrt();
        assert!(size < 1e-10, "{loss:?} {rows} x {columns}: gradient {size}");
    }

    #[test]
    fn the_step_is_stationary_on_both_sides_of_x() {
        for loss in [Loss::Squared, Loss::Huber(0.3), Loss::Logistic, Loss::Poisson] {
            for (rows, columns) in [(1, 1), (1, 8), (5, 12), (8, 8), (30, 6), (40, 3)] {
                check(loss, rows, columns);
            }
        }
    }

    #[test]
    fn a_fit_is_the_proximal_step_without_a_centre() {
        for loss in [Loss::Squared, Loss::Huber(0.3), Loss::Logistic, Loss::Poisson, Loss::Quantile(0.7)] {
            let model = Model { loss, regularisation: 0.0, bias: false, feature_norm: None };
            let data = sample(9, 14, matches!(loss, Loss::Logistic | Loss::Poisson));
            let prox = Prox::new(&model, Arc::clone(&data), 0.05, 0.0).unwrap();
            let mut w = vec![0.0; 14];
            prox.solve(&[0.0; 14], &mut w, &mut Vec::new()).unwrap();
            let fitted = fit(&model, &data, &[1.0 / 9.0; 9], 0.05).unwrap();
            let gap = fedkin_numeric::distance2(&w, &fitted).sqrt();
            assert!(gap < 1e-9, "{loss:?}: {gap}");
        }
    }

    /// From where exp(z) overflows, from where it is zero, and with counts by the thousand.
    #[test]
    fn counts_are_fitted_from_any_centre() {
        let model = Model { loss: Loss::Poisson, regularisation: 0.0, bias: false, feature_norm: None };
        for (rows, columns) in [(3, 5), (30, 2)] {
            let data = sample(rows, columns, true);
            let counts = data.targets().iter().map(|y| 4000.0 * y).collect();
            let many = Arc::new(Dataset::new(columns, data.features().to_vec(), counts).unwrap());
            for data in [data, many] {
                for size in [-900.0, -60.0, 0.0, 60.0, 900.0] {
                    let prox = Prox::new(&model, Arc::clone(&data), 0.01, 0.5).unwrap();
                    let centre = vec![size; columns];
                    let mut w = vec![0.0; columns];
                    let end = prox.solve(&centre, &mut w, &mut Vec::new());
                    assert!(end.is_ok(), "{rows} x {columns} from {size}: {end:?}");
                    let mut gradient = vec![0.0; columns];
                    model.gradient(&data, 0.01, &w, 1.0, &mut gradient, &mut Vec::new());
                    for ((g, w), v) in gradient.iter_mut().zip(&w).zip(&centre) {
                        *g += 0.5 * (w - v);
                    }
                    let gap = norm2(&gradient).sqrt();
                    assert!(gap < 1e-11 * (4000.0 + size.abs()), "{rows} x {columns} from {size}: {gap:e}");
                }
            }
        }
        let negative = Arc::new(Dataset::new(1, vec![1.0], vec![-1.0]).unwrap());
        assert!(Prox::new(&model, Arc::clone(&negative), 0.1, 1.0).is_err());
        assert!(fit(&model, &negative, &[1.0], 0.1).is_err());
    }

    /// The losses whose bound is enforced have an answer for any centre a client takes and any record it may hold: whether a
    /// step is solved tells nothing. Records are clipped to a norm of 1, targets are not.
    #[test]
    fn bounded_losses_are_solved_from_any_centre_whatever_the_targets() {
        for loss in [Loss::Huber(1.0), Loss::Huber(1e-3), Loss::Logistic] {
            let model = Model { loss, regularisation: 0.0, bias: false, feature_norm: Some(1.0) };
            for (rows, columns) in [(1, 3), (3, 5), (30, 2)] {
                let data = sample(rows, columns, loss == Loss::Logistic);
                let mut features = data.features().to_vec();
                fedkin_privacy::Clip::new(1.0).unwrap().records(&mut features, columns).unwrap();
                for outlier in [0.0, 1.0, 1e6, 1e15, 1e100, -1e300] {
                    let mut targets = data.targets().to_vec();
                    if loss != Loss::Logistic {
                        targets[0] = outlier;
                    }
                    let data = Arc::new(Dataset::new(columns, features.clone(), targets).unwrap());
                    for size in [-1e12, -4e6, -1e3, -1.0, 0.0, 1e-9, 7.0, 1e5, 4e6, 1e12] {
                        for (strength, penalty) in [(0.0, 1e-3), (0.02, 1.3), (0.1, 50.0)] {
                            let prox = Prox::new(&model, Arc::clone(&data), strength, penalty).unwrap();
                            let centre: Vec<f64> = (0..columns).map(|j| size * (1.0 + j as f64)).collect();
                            let mut w = vec![0.0; columns];
                            let end = prox.solve(&centre, &mut w, &mut Vec::new());
                            let what =
                                format!("{loss:?} {rows} x {columns}, {outlier:e}, {size:e}, {penalty}");
                            assert!(end.is_ok(), "{what}: {end:?}");
                            let mut gradient = vec![0.0; columns];
                            model.gradient(&data, strength, &w, 1.0, &mut gradient, &mut Vec::new());
                            for ((g, w), v) in gradient.iter_mut().zip(&w).zip(&centre) {
                                *g += penalty * (w - v);
                            }
                            let scale = 1.0 + (2.0 * strength + penalty) * norm2(&centre).sqrt();
                            assert!(
                                norm2(&gradient).sqrt() < 1e-11 * scale,
                                "{what}: {:e}",
                                norm2(&gradient).sqrt() / scale
                            );
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn a_problem_without_a_unique_solution_is_refused() {
        let model = Model { loss: Loss::Squared, regularisation: 0.0, bias: false, feature_norm: None };
        assert!(Prox::new(&model, sample(2, 5, false), 0.0, 0.0).is_err());
    }
}
