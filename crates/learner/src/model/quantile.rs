//! The exact proximal step of the quantile loss.
//!
//! ```text
//! minimise  sum_i weight_i pinball(x_i'w, y_i) + (c/2) |w - m|^2
//! ```
//!
//! Its point is `w = m + X'a` with one number per record in a box, and the dual problem is a quadratic one over that box:
//!
//! ```text
//! minimise  (1/2) |X'a|^2 - a'(y - X m),     -(1 - q) weight_i / c <= a_i <= q weight_i / c
//! ```
//!
//! With the residuals r = y - X w, the point is optimal where `r_i = 0` inside the box, `r_i >= 0` at its upper end and
//! `r_i <= 0` at its lower end. Coordinate descent finds most records that lie at an end; the rest is an active-set
//! method (bounded-variable least squares): the residuals inside the box are set to zero by Cholesky, a record that
//! would leave the box stops at its end, and when none is left to move the end that is violated most is released.
//!
//! With a regulariser `s N(w)` that is not smooth the point is `w = shrink(m + X'a, s/c)`. The dual problem is then convex
//! and piecewise smooth: the start comes from the accelerated proximal gradient method, and the active-set method takes
//! Newton's steps, by the derivative of the proximal map, as far as they decrease the dual value.

use crate::generic::{self, Work};
use crate::unsolved::Unsolved;
use crate::{Dataset, Regulariser};
use fedkin_numeric::{Cholesky, add_diagonal, axpy, combine, distance2, dot, norm2, products};

/// Violation of the optimality conditions, relative to the numbers in a residual, at which a problem counts as solved.
const TOLERANCE: f64 = 1e-12;
/// Sweeps of coordinate descent between two looks at what is left, and how many looks there are at most.
const SWEEPS: usize = 20;
const LOOKS: usize = 100;
/// Most halvings of a step that does not decrease the dual value.
const HALVINGS: usize = 40;

/// A quantile problem with what does not change between rounds.
#[derive(Debug, Clone)]
pub(super) struct Pinball {
    level: f64,
    /// Squared length of every record.
    squares: Vec<f64>,
    weights: Vec<f64>,
}

/// The numbers of one solution on its way.
struct Dual<'a> {
    data: &'a Dataset,
    /// The ends of the box.
    ends: &'a dyn Fn(usize) -> [f64; 2],
    middle: &'a [f64],
    /// A regulariser that is not smooth, and s/c.
    norm: Option<(&'a Regulariser, f64)>,
    a: &'a mut [f64],
    residuals: &'a mut [f64],
    /// m + X'a
    shifted: &'a mut [f64],
    w: &'a mut [f64],
}

impl Pinball {
    pub(super) fn new(level: f64, data: &Dataset, weights: Vec<f64>) -> Result<Self, Unsolved> {
        if !(level > 0.0 && level < 1.0) {
            return Err(Unsolved("the level of a quantile lies above 0 and below 1"));
        }
        if weights.iter().any(|weight| !weight.is_finite() || *weight < 0.0) {
            return Err(Unsolved("its weights are no finite numbers of at least 0"));
        }
        let squares = (0..data.rows()).map(|i| norm2(data.row(i))).collect();
        Ok(Self { level, squares, weights })
    }

    /// Moves `w`, which holds m, to the minimiser.
    pub(super) fn solve(
        &self,
        data: &Dataset,
        curvature: f64,
        w: &mut [f64],
        work: &mut Vec<f64>,
    ) -> Result<(), Unsolved> {
        let (rows, columns) = (data.rows(), data.columns());
        let ends = |i: usize| self.ends(i, curvature);
        let mut dual = Dual::new(data, curvature, &ends, None, w, work)?;
        for look in 1..=LOOKS {
            for _ in 0..SWEEPS {
                dual.sweep(&self.squares);
            }
            // As many records as parameters can have a residual of zero, and ties a few more.
            let inside = (0..rows).filter(|&i| dual.inside(i)).count();
            if inside <= columns + 64 || look == LOOKS {
                return dual.finish();
            }
        }
        Err(Unsolved("the quantile problem did not end"))
    }

    /// The same with `strength` times the part of a regulariser that is not smooth.
    pub(super) fn solve_with(
        &self,
        data: &Dataset,
        curvature: f64,
        (regulariser, strength): (&Regulariser, f64),
        w: &mut [f64],
        work: &mut Vec<f64>,
    ) -> Result<(), Unsolved> {
        let rows = data.rows();
        let ends = |i: usize| self.ends(i, curvature);
        let mut dual = Dual::new(data, curvature, &ends, Some((regulariser, strength / curvature)), w, work)?;
        let (mut solver, mut start) = (Work::default(), vec![0.0; rows]);
        let mut end = Err(Unsolved("the quantile problem did not end"));
        for accuracy in [1e-3, 1e-5, 1e-7, 1e-9] {
            start.copy_from_slice(dual.a);
            let mut next = start.clone();
            let mut objective = |a: &[f64], out: &mut [f64]| {
                dual.a.copy_from_slice(a);
                dual.refresh();
                for (out, residual) in out.iter_mut().zip(&*dual.residuals) {
                    *out = -residual;
                }
                dual.value()
            };
            let clip = |a: &mut [f64], _: f64| {
                for (i, a) in a.iter_mut().enumerate() {
                    let [low, high] = ends(i);
                    *a = a.clamp(low, high);
                }
            };
            // How far it came is seen below, in the conditions themselves.
            let _ = generic::minimise(&mut objective, Some(&clip), &start, accuracy, &mut next, &mut solver);
            clip(&mut next, 0.0);
            dual.a.copy_from_slice(&next);
            end = dual.finish();
            if end.is_ok() {
                break;
            }
        }
        end
    }

    /// The ends of the box of record i.
    fn ends(&self, i: usize, curvature: f64) -> [f64; 2] {
        let width = self.weights[i] / curvature;
        [-(1.0 - self.level) * width, self.level * width]
    }
}

impl<'a> Dual<'a> {
    fn new(
        data: &'a Dataset,
        curvature: f64,
        ends: &'a dyn Fn(usize) -> [f64; 2],
        norm: Option<(&'a Regulariser, f64)>,
        w: &'a mut [f64],
        work: &'a mut Vec<f64>,
    ) -> Result<Self, Unsolved> {
        if w.iter().any(|w| !w.is_finite()) || !(curvature > 0.0 && curvature.is_finite()) {
            return Err(Unsolved("its centre or its penalty is not finite"));
        }
        let (rows, columns) = (data.rows(), data.columns());
        work.clear();
        work.resize(2 * (rows + columns), 0.0);
        let (a, rest) = work.split_at_mut(rows);
        let (residuals, rest) = rest.split_at_mut(rows);
        let (middle, shifted) = rest.split_at_mut(columns);
        middle.copy_from_slice(w);
        Ok(Self { data, ends, middle, norm, a, residuals, shifted, w })
    }
}

impl Dual<'_> {
    fn inside(&self, i: usize) -> bool {
        let [low, high] = (self.ends)(i);
        low < self.a[i] && self.a[i] < high
    }

    /// One pass of coordinate descent: every record goes where its residual is zero, or to an end of its box.
    fn sweep(&mut self, squares: &[f64]) {
        for (i, &square) in squares.iter().enumerate() {
            let [low, high] = (self.ends)(i);
            let residual = self.data.targets()[i] - dot(self.data.row(i), self.w);
            let step = if square > 0.0 { residual / square } else { residual * f64::MAX };
            let next = if step == 0.0 { self.a[i] } else { (self.a[i] + step).clamp(low, high) };
            if next != self.a[i] {
                axpy(next - self.a[i], self.data.row(i), self.w);
                self.a[i] = next;
            }
        }
    }

    /// The point and the residuals anew, so that rounding does not add up.
    fn refresh(&mut self) {
        combine(1.0, self.middle, self.a, self.data.features(), self.shifted);
        self.w.copy_from_slice(self.shifted);
        if let Some((regulariser, t)) = self.norm {
            regulariser.shrink(self.w, t);
        }
        products(self.data.features(), self.w, self.residuals);
        for (residual, y) in self.residuals.iter_mut().zip(self.data.targets()) {
            *residual = y - *residual;
        }
    }

    /// The dual value where a was last refreshed: `(X'a)'w - |w - m|^2/2 - t N(w) - a'y`.
    fn value(&self) -> f64 {
        let mut value = -0.5 * distance2(self.w, self.middle) - dot(self.a, self.data.targets());
        for ((shifted, middle), w) in self.shifted.iter().zip(self.middle).zip(&*self.w) {
            value += (shifted - middle) * w;
        }
        if let Some((regulariser, t)) = self.norm {
            value -= t * (regulariser.value(self.w, 1.0) - regulariser.squared_share() * norm2(self.w));
        }
        value
    }

    /// By how much record i violates its optimality condition, relative to the numbers in its residual.
    fn violation(&self, i: usize, length: f64) -> f64 {
        let [low, high] = (self.ends)(i);
        let residual = self.residuals[i];
        let wrong = if low >= high {
            // A record without weight has no condition.
            0.0
        } else if self.a[i] <= low {
            residual.max(0.0)
        } else if self.a[i] >= high {
            (-residual).max(0.0)
        } else {
            residual.abs()
        };
        wrong / (1.0 + self.data.targets()[i].abs() + norm2(self.data.row(i)).sqrt() * length)
    }

    /// The active-set method.
    fn finish(&mut self) -> Result<(), Unsolved> {
        let rows = self.data.rows();
        let mut free: Vec<usize> = (0..rows).filter(|&i| self.inside(i)).collect();
        let (mut step, mut moved) = (Vec::new(), vec![0.0; self.w.len()]);
        let mut settled = 0;
        for _ in 0..10 * (rows + self.w.len()) + 100 {
            self.refresh();
            let length = norm2(self.w).sqrt();
            let worst_free = free.iter().map(|&i| self.violation(i, length)).fold(0.0, f64::max);
            // A free part that rounding keeps from zero is left after a few whole steps.
            let patience = if self.norm.is_some() { 50 } else { 3 };
            if worst_free > TOLERANCE && settled < patience {
                settled = if self.advance(&mut free, &mut step, &mut moved)? { settled + 1 } else { 0 };
                continue;
            }
            settled = 0;
            let mut worst = (worst_free, None);
            for i in 0..rows {
                let violation = self.violation(i, length);
                if violation > worst.0 && free.binary_search(&i).is_err() {
                    worst = (violation, Some(i));
                }
            }
            match worst {
                (violation, _) if violation <= TOLERANCE => return self.finite(),
                (_, Some(i)) => {
                    let at = free.partition_point(|&known| known < i);
                    free.insert(at, i);
                }
                (violation, None) if violation <= 1e-9 => return self.finite(),
                (_, None) => return Err(Unsolved("its records are too nearly dependent")),
            }
        }
        Err(Unsolved("the active set of the quantile problem did not settle"))
    }

    fn finite(&self) -> Result<(), Unsolved> {
        if self.w.iter().all(|w| w.is_finite()) {
            Ok(())
        } else {
            Err(Unsolved("the solution is not finite"))
        }
    }

    /// Puts the free records so far along a step from where they were.
    fn place(&mut self, free: &[usize], before: &[f64], step: &[f64], length: f64) {
        for ((&i, before), step) in free.iter().zip(before).zip(step) {
            let [low, high] = (self.ends)(i);
            self.a[i] = (before + length * step).clamp(low, high);
        }
    }

    /// Moves the free records towards residuals of zero until one of them meets an end of its box, which then is no
    /// longer free. Returns whether all of them came through.
    fn advance(
        &mut self,
        free: &mut Vec<usize>,
        step: &mut Vec<f64>,
        moved: &mut [f64],
    ) -> Result<bool, Unsolved> {
        let order = free.len();
        let mut packed = Vec::with_capacity(order * (order + 1) / 2);
        for (at, &i) in free.iter().enumerate() {
            moved.copy_from_slice(self.data.row(i));
            if let Some((regulariser, t)) = self.norm {
                regulariser.shrink_slope(self.shifted, t, moved);
            }
            packed.extend(free[..=at].iter().map(|&j| dot(moved, self.data.row(j))));
        }
        let largest = (0..order).map(|i| packed[i * (i + 1) / 2 + i]).fold(0.0, f64::max);
        // Dependent records make it singular: then as little as possible is added to the diagonal.
        let mut added = 0.0;
        let factor = loop {
            let mut trial = packed.clone();
            add_diagonal(&mut trial, order, added);
            match Cholesky::factor(trial, order) {
                Some(factor) => break factor,
                None if added < largest => added = (100.0 * added).max(1e-14 * largest),
                None => return Err(Unsolved("the system of the quantile problem is singular")),
            }
        };
        step.clear();
        step.extend(free.iter().map(|&i| self.residuals[i]));
        factor.solve(step);
        // The best length along the step, of at most what the box allows.
        moved.fill(0.0);
        let mut gain = 0.0;
        for (&i, step) in free.iter().zip(&*step) {
            gain += step * self.residuals[i];
            axpy(*step, self.data.row(i), moved);
        }
        let bend = norm2(moved);
        let best = if self.norm.is_some() {
            1.0
        } else if bend > 0.0 {
            gain / bend
        } else {
            f64::INFINITY
        };
        let (mut length, mut stopped) = (best, None);
        for (at, (&i, step)) in free.iter().zip(&*step).enumerate() {
            let [low, high] = (self.ends)(i);
            let room = if *step > 0.0 { high - self.a[i] } else { low - self.a[i] };
            if *step != 0.0 && room / step < length {
                length = room / step;
                stopped = Some(at);
            }
        }
        if !length.is_finite() || length < 0.0 {
            return Ok(true);
        }
        let before: Vec<f64> = free.iter().map(|&i| self.a[i]).collect();
        if self.norm.is_some() {
            let value = self.value();
            for _ in 0..HALVINGS {
                self.place(free, &before, step, length);
                self.refresh();
                let enough = self.value() <= value - 1e-4 * length * gain;
                if enough || length * gain <= 1e-12 * value.abs() {
                    break;
                }
                length *= 0.5;
                stopped = None;
            }
        } else {
            self.place(free, &before, step, length);
        }
        let Some(at) = stopped else { return Ok(true) };
        let i = free.remove(at);
        let [low, high] = (self.ends)(i);
        self.a[i] = if step[at] > 0.0 { high } else { low };
        Ok(false)
    }
}

#[cfg(test)]
mod tests;
