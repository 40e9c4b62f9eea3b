//! Proximal steps from values and gradients alone, for learners that have no exact one.
//!
//! ```text
//! prox(v) = argmin over w of F(w) = f(w) + R(w) + (weight/2) |w - v|^2
//! ```
//!
//! f is smooth and given by its value and gradient; R is given by its proximal map, or is absent.
//!
//! - Without R: L-BFGS, with a line search that goes by slopes where rounding hides the decrease of the value.
//! - With R: accelerated proximal gradient, whose step length is found by backtracking and whose momentum starts anew
//!   where it points uphill (O'Donoghue and Candès, 2015).
//!
//! Both start from the centre, so the result depends on f, R and the centre alone. The residual is the norm of an element
//! of the subdifferential of F at the answer (its gradient, where F is smooth). It bounds the norm of the proximal
//! gradient mapping from above, and the distance from the minimiser by `residual / weight` where f and R are convex.

use crate::unsolved::Unsolved;
use fedkin_numeric::{axpy, distance2, dot, norm2, scale};
use thiserror::Error;

/// Writes the gradient at a point and returns the value there.
pub type Objective<'a> = &'a mut dyn FnMut(&[f64], &mut [f64]) -> f64;
/// Replaces v by `argmin over w of t R(w) + (1/2) |w - v|^2`.
pub type Shrink<'a> = &'a dyn Fn(&mut [f64], f64);

/// Most iterations of the accelerated proximal gradient method.
const GRADIENT_STEPS: u32 = 50_000;
/// It ends after so many in which the residual has not fallen by a tenth: rounding lets it fall no further.
const PATIENCE: u32 = 5_000;
/// Most iterations of L-BFGS.
const NEWTON_STEPS: u32 = 10_000;
/// Pairs of steps and changes of the gradient that L-BFGS remembers.
const MEMORY: usize = 10;
/// Most trials of one line search, and most doublings of one curvature.
const TRIALS: u32 = 100;
/// A change of the value by less than this share of it is compared by slopes.
const HIDDEN: f64 = 1e-10;

/// How a problem was solved.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Reached {
    /// The norm of a subgradient of the whole objective at the answer.
    pub residual: f64,
    /// Iterations it took.
    pub iterations: u32,
}

impl Reached {
    /// Solved directly.
    pub const EXACT: Self = Self { residual: 0.0, iterations: 0 };
}

/// Why a problem was not solved.
#[derive(Debug, Clone, Copy, PartialEq, Error)]
pub enum Unreached {
    /// The residual stayed above what was asked for.
    #[error(
        "the residual is {residual:e} after {iterations} iterations, and at most {wanted:e} was asked for: scale the \
         features, regularise more or ask for less"
    )]
    Residual {
        /// The least residual that was reached.
        residual: f64,
        /// What was asked for.
        wanted: f64,
        /// Iterations that were made.
        iterations: u32,
    },
    /// A value or a gradient is infinite or no number.
    #[error("the value or the gradient at the centre, or at every point near it, is not finite")]
    NotFinite,
    /// A method of its own, exact where it ends, did not end.
    #[error(transparent)]
    Unsolved(#[from] Unsolved),
}

/// Memory of the solvers, which keeps its allocation.
#[derive(Debug, Clone, Default)]
pub struct Work(Vec<f64>);

impl Work {
    /// Room for `N` vectors of a length, and the rest.
    fn vectors<const N: usize>(&mut self, length: usize, more: usize) -> ([&mut [f64]; N], &mut [f64]) {
        self.0.clear();
        self.0.resize(N * length + more, 0.0);
        let mut rest = self.0.as_mut_slice();
        let vectors = std::array::from_fn(|_| {
            let (vector, later) = std::mem::take(&mut rest).split_at_mut(length);
            rest = later;
            vector
        });
        (vectors, rest)
    }
}

/// Writes the minimiser of `f(w) + R(w) + (weight/2) |w - centre|^2` to `out`. It ends where the residual is at most
/// `accuracy (1 + |gradient of f at the centre| + weight |centre|)`. `shrink` is absent where there is no R.
pub fn prox(
    objective: Objective<'_>,
    shrink: Option<Shrink<'_>>,
    centre: &[f64],
    weight: f64,
    accuracy: f64,
    out: &mut [f64],
    work: &mut Work,
) -> Result<Reached, Unreached> {
    let whole = Whole { objective, centre, weight };
    out.copy_from_slice(centre);
    match shrink {
        None => quasi_newton(whole, accuracy, out, work),
        Some(shrink) => accelerated(whole, shrink, accuracy, out, work),
    }
}

/// Writes the minimiser of `f(w) + R(w)`, where there is one alone, to `out`; the same as [`prox`] of weight 0 from
/// `start`.
pub fn minimise(
    objective: Objective<'_>,
    shrink: Option<Shrink<'_>>,
    start: &[f64],
    accuracy: f64,
    out: &mut [f64],
    work: &mut Work,
) -> Result<Reached, Unreached> {
    prox(objective, shrink, start, 0.0, accuracy, out, work)
}

/// The smooth part of the whole objective.
struct Whole<'a> {
    objective: Objective<'a>,
    centre: &'a [f64],
    weight: f64,
}

impl Whole<'_> {
    fn at(&mut self, w: &[f64], gradient: &mut [f64]) -> f64 {
        let value = (self.objective)(w, gradient);
        if self.weight == 0.0 {
            return value;
        }
        for ((gradient, w), centre) in gradient.iter_mut().zip(w).zip(self.centre) {
            *gradient += self.weight * (w - centre);
        }
        value + 0.5 * self.weight * distance2(w, self.centre)
    }

    /// The residual at which the problem counts as solved, from the gradient at the centre.
    fn goal(&self, accuracy: f64, size: f64) -> f64 {
        accuracy * (1.0 + size + self.weight * norm2(self.centre).sqrt())
    }

    /// The curvature along the gradient at w, by a short step; `probe` and `there` are overwritten.
    fn curvature(&mut self, w: &[f64], gradient: &[f64], probe: &mut [f64], there: &mut [f64]) -> f64 {
        let least = if self.weight > 0.0 { self.weight } else { 1e-12 };
        let size = norm2(gradient).sqrt();
        if size == 0.0 {
            return least.max(1.0);
        }
        let step = 1e-6 * (1.0 + norm2(w).sqrt()) / size;
        probe.copy_from_slice(w);
        axpy(-step, gradient, probe);
        self.at(probe, there);
        let found = distance2(there, gradient).sqrt() / (step * size);
        if found.is_finite() { found.max(least) } else { least.max(1.0) }
    }
}

/// Accelerated proximal gradient from w.
fn accelerated(
    mut whole: Whole<'_>,
    shrink: Shrink<'_>,
    accuracy: f64,
    w: &mut [f64],
    work: &mut Work,
) -> Result<Reached, Unreached> {
    let ([y, at_y, next, at_next, change], _) = work.vectors::<5>(w.len(), 0);
    let mut value = whole.at(w, at_y);
    let size = norm2(at_y).sqrt();
    if !(value.is_finite() && size.is_finite()) {
        return Err(Unreached::NotFinite);
    }
    let goal = whole.goal(accuracy, size);
    let mut curvature = whole.curvature(w, at_y, next, at_next);
    y.copy_from_slice(w);
    let mut momentum = 1.0_f64;
    let (mut best, mut mark, mut mark_at) = (f64::INFINITY, f64::INFINITY, 0);
    for iteration in 1..=GRADIENT_STEPS {
        // The first curvature that the objective does not exceed between y and where it leads.
        let mut found = None;
        for _ in 0..TRIALS {
            next.copy_from_slice(y);
            axpy(-1.0 / curvature, at_y, next);
            shrink(next, 1.0 / curvature);
            let there = whole.at(next, at_next);
            for ((change, next), y) in change.iter_mut().zip(&*next).zip(&*y) {
                *change = next - y;
            }
            let moved = norm2(change);
            let model = 0.5 * curvature * moved;
            let (along, along_next) = (dot(at_y, change), dot(at_next, change));
            let enough = if model <= HIDDEN * value.abs() {
                let rounding = 1e-15 * (norm2(at_y) * moved).sqrt();
                along_next - along <= 2.0 * model * (1.0 + 1e-9) + rounding
            } else {
                there <= value + along + model
            };
            if enough && there.is_finite() && along_next.is_finite() {
                found = Some(there);
                break;
            }
            curvature *= 2.0;
        }
        let Some(there) = found else { return Err(Unreached::NotFinite) };
        // curvature (y - next) - gradient(y) is a subgradient of R at the next point.
        let mut residual = 0.0_f64;
        for ((change, at_next), at_y) in change.iter().zip(&*at_next).zip(&*at_y) {
            let part = at_next - at_y - curvature * change;
            residual += part * part;
        }
        // The next point is rounded, and the curvature multiplies that.
        let residual = residual.sqrt() + 0.5 * f64::EPSILON * curvature * norm2(next).sqrt();
        best = best.min(residual);
        if residual <= goal {
            w.copy_from_slice(next);
            return Ok(Reached { residual, iterations: iteration });
        }
        if residual < 0.9 * mark {
            (mark, mark_at) = (residual, iteration);
        } else if iteration - mark_at > PATIENCE {
            return Err(Unreached::Residual { residual: best, wanted: goal, iterations: iteration });
        }
        let mut uphill = 0.0;
        for ((change, next), w) in change.iter().zip(&*next).zip(&*w) {
            uphill -= change * (next - w);
        }
        if uphill > 0.0 {
            // The momentum has led too far; a longer step may do from here on.
            momentum = 1.0;
            curvature *= 0.5;
            y.copy_from_slice(next);
            at_y.copy_from_slice(at_next);
            value = there;
        } else {
            let later = 0.5 * (1.0 + (1.0 + 4.0 * momentum * momentum).sqrt());
            let keep = (momentum - 1.0) / later;
            momentum = later;
            for ((y, next), w) in y.iter_mut().zip(&*next).zip(&*w) {
                *y = next + keep * (next - w);
            }
            value = whole.at(y, at_y);
            if !value.is_finite() {
                momentum = 1.0;
                y.copy_from_slice(next);
                at_y.copy_from_slice(at_next);
                value = there;
            }
        }
        w.copy_from_slice(next);
    }
    Err(Unreached::Residual { residual: best, wanted: goal, iterations: GRADIENT_STEPS })
}

/// L-BFGS from w.
fn quasi_newton(
    mut whole: Whole<'_>,
    accuracy: f64,
    w: &mut [f64],
    work: &mut Work,
) -> Result<Reached, Unreached> {
    let d = w.len();
    let ([gradient, direction, next, at_next], rest) = work.vectors::<4>(d, 2 * MEMORY * (d + 1));
    let (steps, rest) = rest.split_at_mut(MEMORY * d);
    let (changes, numbers) = rest.split_at_mut(MEMORY * d);
    let (curvatures, shares) = numbers.split_at_mut(MEMORY);
    let mut pairs = Pairs { steps, changes, curvatures, shares, first: 0, count: 0 };
    let mut value = whole.at(w, gradient);
    let mut size = norm2(gradient).sqrt();
    if !(value.is_finite() && size.is_finite()) {
        return Err(Unreached::NotFinite);
    }
    let goal = whole.goal(accuracy, size);
    let mut curvature = whole.curvature(w, gradient, next, at_next);
    let mut best = size;
    for iteration in 0..NEWTON_STEPS {
        best = best.min(size);
        if size <= goal {
            return Ok(Reached { residual: size, iterations: iteration });
        }
        direction.copy_from_slice(gradient);
        pairs.multiply(direction, 1.0 / curvature);
        scale(-1.0, direction);
        let slope = dot(gradient, direction);
        let found = if slope < 0.0 {
            line_search(&mut whole, (value, slope), w, direction, next, at_next)
        } else {
            None
        };
        let Some(there) = found else {
            if pairs.count > 0 {
                // What is remembered leads nowhere: along the gradient then.
                pairs.count = 0;
                continue;
            }
            return Err(Unreached::Residual { residual: best, wanted: goal, iterations: iteration });
        };
        if let Some(bent) = pairs.push(w, next, gradient, at_next) {
            curvature = bent;
        }
        w.copy_from_slice(next);
        gradient.copy_from_slice(at_next);
        value = there;
        size = norm2(gradient).sqrt();
    }
    Err(Unreached::Residual { residual: best, wanted: goal, iterations: NEWTON_STEPS })
}

/// A step that decreases the value and flattens the slope enough, left in `next` with its gradient; its value, or none.
fn line_search(
    whole: &mut Whole<'_>,
    (value, slope): (f64, f64),
    w: &[f64],
    direction: &[f64],
    next: &mut [f64],
    at_next: &mut [f64],
) -> Option<f64> {
    let (mut low, mut high, mut step) = (0.0, f64::INFINITY, 1.0);
    for _ in 0..TRIALS {
        next.copy_from_slice(w);
        axpy(step, direction, next);
        let there = whole.at(next, at_next);
        let end = dot(at_next, direction);
        let hidden = -step * slope <= HIDDEN * value.abs();
        let decreased = if hidden { end <= -0.9 * slope } else { there <= value + 1e-4 * step * slope };
        if !(decreased && there.is_finite() && end.is_finite()) {
            high = step;
        } else if end < 0.9 * slope {
            low = step;
        } else {
            return Some(there);
        }
        step = if high.is_finite() { 0.5 * (low + high) } else { 2.0 * step };
    }
    None
}

/// What L-BFGS remembers: a ring of steps and changes of the gradient.
struct Pairs<'a> {
    steps: &'a mut [f64],
    changes: &'a mut [f64],
    /// Step times change, by pair.
    curvatures: &'a mut [f64],
    shares: &'a mut [f64],
    first: usize,
    count: usize,
}

impl Pairs<'_> {
    /// The pairs' places, oldest first.
    fn places(&self) -> impl DoubleEndedIterator<Item = usize> + use<> {
        let first = self.first;
        (0..self.count).map(move |i| (first + i) % MEMORY)
    }

    /// Replaces v by the inverse curvature times v; `start` is that before the pairs.
    fn multiply(&mut self, v: &mut [f64], start: f64) {
        let d = v.len();
        for at in self.places().rev() {
            let range = at * d..(at + 1) * d;
            let share = dot(&self.steps[range.clone()], v) / self.curvatures[at];
            self.shares[at] = share;
            axpy(-share, &self.changes[range], v);
        }
        scale(start, v);
        for at in self.places() {
            let range = at * d..(at + 1) * d;
            let share = dot(&self.changes[range.clone()], v) / self.curvatures[at];
            axpy(self.shares[at] - share, &self.steps[range], v);
        }
    }

    /// Remembers a step, where the objective bends upwards along it; returns how much.
    fn push(&mut self, w: &[f64], next: &[f64], gradient: &[f64], at_next: &[f64]) -> Option<f64> {
        let d = w.len();
        let at = (self.first + self.count) % MEMORY;
        let (step, change) = (&mut self.steps[at * d..(at + 1) * d], &mut self.changes[at * d..(at + 1) * d]);
        for j in 0..d {
            step[j] = next[j] - w[j];
            change[j] = at_next[j] - gradient[j];
        }
        let (along, length, bent) = (dot(step, change), norm2(step), norm2(change));
        // Rounding or a non-convex objective: nothing to learn from, and its place is as good as empty.
        let sound = along > 1e-12 * (length * bent).sqrt() && along.is_finite();
        if !sound {
            if self.count == MEMORY {
                (self.first, self.count) = ((self.first + 1) % MEMORY, MEMORY - 1);
            }
            return None;
        }
        self.curvatures[at] = along;
        if self.count == MEMORY {
            self.first = (self.first + 1) % MEMORY;
        } else {
            self.count += 1;
        }
        Some(bent / along)
    }
}

#[cfg(test)]
mod tests;
