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
use super::{Loss, Model};
use crate::dataset::Dataset;
use crate::numeric::{
    Cholesky, add_diagonal, add_weighted_gram, axpy, combine, gram_of_rows, products, update,
};
use std::sync::Arc;
use thiserror::Error;

/// A problem without a unique solution, or one that Newton's method did not solve.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("the client's problem was not solved: {0}")]
pub struct Unsolved(pub &'static str);

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
}

impl Prox {
    /// Factors the problem of prepared `data` (see [`Model::prepare`]).
    pub fn new(model: &Model, data: Arc<Dataset>, strength: f64, penalty: f64) -> Result<Self, Unsolved> {
        let (rows, columns) = (data.rows(), data.columns());
        let curvature = 2.0 * strength + penalty;
        if curvature <= 0.0 {
            return Err(Unsolved("without regularisation or penalty it has no unique solution"));
        }
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
            loss => Form::Curved(Curved::new(loss, &data)),
        };
        Ok(Self { data, penalty, curvature, form })
    }

    /// The number of parameters.
    pub fn dimension(&self) -> usize {
        self.data.columns()
    }

    /// The records of the problem.
    pub fn data(&self) -> &Arc<Dataset> {
        &self.data
    }

    /// Writes `prox(centre)` to `out`. `work` is scratch space that keeps its allocation.
    ///
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
        }
        Ok(())
    }
}

/// The minimiser of `sum_i weight_i loss(x_i'w, y_i) + strength |w|^2` on prepared data.
pub fn fit(model: &Model, data: &Dataset, weights: &[f64], strength: f64) -> Result<Vec<f64>, Unsolved> {
    if strength <= 0.0 && data.rows() < data.columns() {
        return Err(Unsolved(
            "without regularisation and with fewer records than parameters it has no unique solution",
        ));
    }
    let mut w = vec![0.0; data.columns()];
    newton::in_parameters(model.loss, data, weights, 2.0 * strength, &mut w)?;
    Ok(w)
}

#[cfg(test)]
mod tests {
    use super::super::tests::sample;
    use super::*;
    use crate::numeric::norm2;

    fn check(loss: Loss, rows: usize, columns: usize) {
        let model = Model { loss, regularisation: 0.0, bias: false, feature_norm: None };
        let data = sample(rows, columns, loss == Loss::Logistic);
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
        for loss in [Loss::Squared, Loss::Huber(0.3), Loss::Logistic] {
            for (rows, columns) in [(1, 1), (1, 8), (5, 12), (8, 8), (30, 6), (40, 3)] {
                check(loss, rows, columns);
            }
        }
    }

    #[test]
    fn a_fit_is_the_proximal_step_without_a_centre() {
        for loss in [Loss::Squared, Loss::Huber(0.3), Loss::Logistic] {
            let model = Model { loss, regularisation: 0.0, bias: false, feature_norm: None };
            let data = sample(9, 14, loss == Loss::Logistic);
            let prox = Prox::new(&model, Arc::clone(&data), 0.05, 0.0).unwrap();
            let mut w = vec![0.0; 14];
            prox.solve(&[0.0; 14], &mut w, &mut Vec::new()).unwrap();
            let fitted = fit(&model, &data, &[1.0 / 9.0; 9], 0.05).unwrap();
            let gap = crate::numeric::distance2(&w, &fitted).sqrt();
            assert!(gap < 1e-9, "{loss:?}: {gap}");
        }
    }

    #[test]
    fn a_problem_without_a_unique_solution_is_refused() {
        let model = Model { loss: Loss::Squared, regularisation: 0.0, bias: false, feature_norm: None };
        assert!(Prox::new(&model, sample(2, 5, false), 0.0, 0.0).is_err());
    }
}
