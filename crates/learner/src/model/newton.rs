//! Damped Newton for curved losses, on the smaller side of X.
//!
//! On the record side the point is `w = m + X'a` and, with G = X X' and z = X m + G a,
//!
//! ```text
//! minimise  sum_i weight_i l(z_i) + (c/2) a'G a
//! step      (c I + W G) delta = -(weight l' + c a),   W = diag(weight l'')
//! ```
//!
//! solved symmetrically through `c I + S G S` with S = sqrt(W). Each iteration costs D^3 whatever d is.

use super::Loss;
use crate::Dataset;
use crate::unsolved::Unsolved;
use fedkin_numeric::{Cholesky, add_diagonal, add_weighted_gram, axpy, dot, norm2};

/// Relative size of the gradient at which a curved problem counts as solved.
pub(super) const TOLERANCE: f64 = 1e-12;
const ITERATIONS: usize = 200;
const HALVINGS: usize = 60;
/// Predicted decrease, relative to the value, below which the value's rounding hides it.
const HIDDEN: f64 = 1e-13;

/// A curved problem with what does not change between rounds.
#[derive(Debug, Clone)]
pub(super) struct Curved {
    loss: Loss,
    /// G = X X', row by row, where there are at most as many records as parameters; else empty.
    gram: Vec<f64>,
    weights: Vec<f64>,
}

impl Curved {
    pub(super) fn new(loss: Loss, data: &Dataset) -> Self {
        let rows = data.rows();
        let mut gram = Vec::new();
        if rows <= data.columns() {
            gram.reserve(rows * rows);
            for i in 0..rows {
                gram.extend((0..rows).map(|j| dot(data.row(i), data.row(j))));
            }
        }
        Self { loss, gram, weights: vec![1.0 / rows as f64; rows] }
    }

    /// Moves `w`, which holds m = (rho/c) v, to the minimiser of `mean loss + (c/2) |w - m|^2`.
    pub(super) fn solve(
        &self,
        data: &Dataset,
        curvature: f64,
        w: &mut [f64],
        work: &mut Vec<f64>,
    ) -> Result<(), Unsolved> {
        if self.gram.is_empty() {
            return in_parameters(self.loss, data, &self.weights, curvature, w);
        }
        let n = data.rows();
        // a, delta, G a, G delta, z at the start, r, scaled right-hand side
        work.clear();
        work.resize(7 * n, 0.0);
        let (a, rest) = work.split_at_mut(n);
        let (delta, rest) = rest.split_at_mut(n);
        let (ga, rest) = rest.split_at_mut(n);
        let (gd, rest) = rest.split_at_mut(n);
        let (z, rest) = rest.split_at_mut(n);
        let (r, s) = rest.split_at_mut(n);
        for (i, z) in z.iter_mut().enumerate() {
            *z = dot(data.row(i), w);
        }
        let y = data.targets();
        let scale = 1.0 + curvature * norm2(w).sqrt() + largest_terms(self.loss, data, &self.weights);
        let value = |t: f64, a: &[f64], delta: &[f64], ga: &[f64], gd: &[f64], z: &[f64]| {
            let mut sum = 0.0;
            for i in 0..n {
                let shift = ga[i] + t * gd[i];
                sum += self.weights[i] * self.loss.value(z[i] + shift, y[i])
                    + 0.5 * curvature * (a[i] + t * delta[i]) * shift;
            }
            sum
        };
        let mut now = value(0.0, a, delta, ga, gd, z);
        let mut blind = f64::INFINITY;
        let mut solved = false;
        for _ in 0..ITERATIONS {
            for i in 0..n {
                r[i] = -(self.weights[i] * self.loss.slope(z[i] + ga[i], y[i]) + curvature * a[i]);
            }
            multiply(&self.gram, r, gd);
            // |gradient in w|^2 = r' G r
            let gradient2 = dot(r, gd).max(0.0);
            if gradient2.sqrt() <= TOLERANCE * scale {
                solved = true;
                break;
            }
            // delta = (r - S (c I + S G S)^-1 S G r) / c
            for i in 0..n {
                s[i] = (self.weights[i] * self.loss.curve(z[i] + ga[i], y[i])).sqrt();
            }
            let mut packed = Vec::with_capacity(n * (n + 1) / 2);
            for i in 0..n {
                packed.extend((0..=i).map(|j| s[i] * self.gram[i * n + j] * s[j]));
            }
            add_diagonal(&mut packed, n, curvature);
            let factor = Cholesky::factor(packed, n).ok_or(Unsolved("its Newton system is singular"))?;
            for i in 0..n {
                delta[i] = s[i] * gd[i];
            }
            factor.solve(delta);
            for i in 0..n {
                delta[i] = (r[i] - s[i] * delta[i]) / curvature;
            }
            multiply(&self.gram, delta, gd);
            let descent = dot(r, gd);
            let (step, next) = match search(now, descent, |t| value(t, a, delta, ga, gd, z)) {
                Some(found) => found,
                // No decrease can be seen in the value any more, but in the gradient: full steps while it halves.
                None if gradient2.sqrt() < 0.5 * blind && gradient2.sqrt() <= 1e-5 * scale => {
                    blind = gradient2.sqrt();
                    (1.0, value(1.0, a, delta, ga, gd, z))
                }
                None if gradient2.sqrt() <= 1e-7 * scale => {
                    solved = true;
                    break;
                }
                None => {
                    let slope = |t: f64| {
                        let mut sum = 0.0;
                        for i in 0..n {
                            let force = self.weights[i] * self.loss.slope(z[i] + ga[i] + t * gd[i], y[i]);
                            sum += (force + curvature * (a[i] + t * delta[i])) * gd[i];
                        }
                        sum
                    };
                    let step = by_slope(slope).ok_or(Unsolved("Newton's method found no decrease"))?;
                    (step, value(step, a, delta, ga, gd, z))
                }
            };
            axpy(step, delta, a);
            axpy(step, gd, ga);
            now = next;
        }
        if !solved {
            return Err(Unsolved("Newton's method did not end"));
        }
        for (i, a) in a.iter().enumerate() {
            axpy(*a, data.row(i), w);
        }
        if w.iter().all(|w| w.is_finite()) { Ok(()) } else { Err(Unsolved("the solution is not finite")) }
    }
}

/// How large the terms of the gradient are at a solution, where that is not about 1: counts have no unit.
fn largest_terms(loss: Loss, data: &Dataset, weights: &[f64]) -> f64 {
    match loss {
        Loss::Squared | Loss::Huber(_) | Loss::Logistic | Loss::Quantile(_) => 0.0,
        Loss::Poisson => {
            let mut sum = 0.0;
            for (i, y) in data.targets().iter().enumerate() {
                sum += weights[i] * y * norm2(data.row(i)).sqrt();
            }
            sum
        }
    }
}

fn multiply(square: &[f64], x: &[f64], out: &mut [f64]) {
    for (row, out) in square.chunks_exact(x.len()).zip(out) {
        *out = dot(row, x);
    }
}

/// Armijo backtracking: the first of 1, 1/2, 1/4, ... that decreases the value enough.
fn search(now: f64, descent: f64, value: impl Fn(f64) -> f64) -> Option<(f64, f64)> {
    if descent <= HIDDEN * now.abs() {
        return None;
    }
    let mut step = 1.0;
    for _ in 0..HALVINGS {
        let next = value(step);
        if next <= now - 1e-4 * step * descent && next < now {
            return Some((step, next));
        }
        step *= 0.5;
    }
    None
}

/// For values so large that no decrease shows in them: the first of 1, 1/2, 1/4, ... at which the slope along the step is
/// not yet positive, or half as steep as at 0. Slopes stay small where values do not.
fn by_slope(slope: impl Fn(f64) -> f64) -> Option<f64> {
    let start = slope(0.0);
    let mut step = 1.0;
    for _ in 0..HALVINGS {
        let there = slope(step);
        if start < 0.0 && there <= 0.5 * start.abs() && there.is_finite() {
            return Some(step);
        }
        step *= 0.5;
    }
    None
}

/// Moves `w`, which holds m, to the minimiser of `sum_i weight_i l(x_i'w) + (c/2) |w - m|^2`: d numbers.
pub(super) fn in_parameters(
    loss: Loss,
    data: &Dataset,
    weights: &[f64],
    curvature: f64,
    w: &mut [f64],
) -> Result<(), Unsolved> {
    let (n, d) = (data.rows(), data.columns());
    let y = data.targets();
    let middle = w.to_vec();
    let scale = 1.0 + curvature * norm2(w).sqrt() + largest_terms(loss, data, weights);
    let mut gradient = vec![0.0; d];
    let mut z: Vec<f64> = (0..n).map(|i| dot(data.row(i), w)).collect();
    let value = |w: &[f64]| {
        let mut sum = 0.5 * curvature * fedkin_numeric::distance2(w, &middle);
        for i in 0..n {
            sum += weights[i] * loss.value(dot(data.row(i), w), y[i]);
        }
        sum
    };
    let mut now = value(w);
    let mut blind = f64::INFINITY;
    for _ in 0..ITERATIONS {
        for j in 0..d {
            gradient[j] = curvature * (w[j] - middle[j]);
        }
        for i in 0..n {
            axpy(weights[i] * loss.slope(z[i], y[i]), data.row(i), &mut gradient);
        }
        let size = norm2(&gradient).sqrt();
        if size <= TOLERANCE * scale {
            return Ok(());
        }
        let mut hessian = vec![0.0; d * (d + 1) / 2];
        add_weighted_gram(&mut hessian, data.features(), d, |i| weights[i] * loss.curve(z[i], y[i]));
        // A hair of damping keeps a flat direction (every residual beyond Huber's threshold) solvable.
        add_diagonal(&mut hessian, d, curvature.max(1e-10));
        let factor = Cholesky::factor(hessian, d).ok_or(Unsolved("its Newton system is singular"))?;
        let mut step: Vec<f64> = gradient.iter().map(|g| -g).collect();
        factor.solve(&mut step);
        let descent = -dot(&gradient, &step);
        let trial = |t: f64| {
            let mut trial = w.to_vec();
            axpy(t, &step, &mut trial);
            trial
        };
        let (t, next) = match search(now, descent, |t| value(&trial(t))) {
            Some(found) => found,
            None if size < 0.5 * blind && size <= 1e-5 * scale => {
                blind = size;
                (1.0, value(&trial(1.0)))
            }
            None if size <= 1e-7 * scale => return Ok(()),
            None => {
                let slope = |t: f64| {
                    let at = trial(t);
                    let mut sum = 0.0;
                    for j in 0..d {
                        sum += curvature * (at[j] - middle[j]) * step[j];
                    }
                    for i in 0..n {
                        let force = weights[i] * loss.slope(dot(data.row(i), &at), y[i]);
                        sum += force * dot(data.row(i), &step);
                    }
                    sum
                };
                let t = by_slope(slope).ok_or(Unsolved("Newton's method found no decrease"))?;
                (t, value(&trial(t)))
            }
        };
        axpy(t, &step, w);
        now = next;
        for (i, z) in z.iter_mut().enumerate() {
            *z = dot(data.row(i), w);
        }
    }
    Err(Unsolved("Newton's method did not end"))
}
