//! Systems of equations with a symmetric positive definite matrix.

use super::{axpy, dot, norm2};

/// A Cholesky factor, lower triangle packed by rows: `n (n + 1) / 2` numbers. The diagonal holds
/// reciprocals: a solve multiplies where it would divide.
#[derive(Debug, Clone, Default)]
pub struct Cholesky {
    order: usize,
    lower: Vec<f64>,
}

fn row(packed: &[f64], i: usize) -> &[f64] {
    let start = i * (i + 1) / 2;
    &packed[start..=start + i]
}

impl Cholesky {
    /// Factors a symmetric positive definite matrix given by its packed lower triangle.
    /// `None` where a pivot is not positive (the matrix is not positive definite, or not finite).
    pub fn factor(mut packed: Vec<f64>, order: usize) -> Option<Self> {
        debug_assert_eq!(packed.len(), order * (order + 1) / 2);
        for i in 0..order {
            let (done, rest) = packed.split_at_mut(i * (i + 1) / 2);
            let current = &mut rest[..=i];
            for j in 0..i {
                let above = row(done, j);
                current[j] = (current[j] - dot(&current[..j], &above[..j])) * above[j];
            }
            let pivot = current[i] - norm2(&current[..i]);
            if !(pivot > 0.0 && pivot.is_finite()) {
                return None;
            }
            current[i] = 1.0 / pivot.sqrt();
        }
        Some(Self { order, lower: packed })
    }

    /// The number of rows.
    pub fn order(&self) -> usize {
        self.order
    }

    /// Replaces `b` by the solution of `A x = b`.
    pub fn solve(&self, b: &mut [f64]) {
        debug_assert_eq!(b.len(), self.order);
        // Every step waits for the one before: with the order known, sums wait in registers.
        match self.order {
            1 => return solve_short::<1>(&self.lower, b),
            2 => return solve_short::<2>(&self.lower, b),
            3 => return solve_short::<3>(&self.lower, b),
            4 => return solve_short::<4>(&self.lower, b),
            5 => return solve_short::<5>(&self.lower, b),
            6 => return solve_short::<6>(&self.lower, b),
            7 => return solve_short::<7>(&self.lower, b),
            8 => return solve_short::<8>(&self.lower, b),
            9 => return solve_short::<9>(&self.lower, b),
            10 => return solve_short::<10>(&self.lower, b),
            _ => {}
        }
        for i in 0..self.order {
            let current = row(&self.lower, i);
            b[i] = (b[i] - short_dot(&current[..i], &b[..i])) * current[i];
        }
        for i in (0..self.order).rev() {
            let current = row(&self.lower, i);
            let x = b[i] * current[i];
            b[i] = x;
            axpy(-x, &current[..i], &mut b[..i]);
        }
    }

    /// Replaces `b` by the solution of `R' x = b`, where `A = R R'`. From a standard normal `b` comes a normal
    /// `x` whose covariance is the inverse of `A`.
    pub fn solve_transposed(&self, b: &mut [f64]) {
        debug_assert_eq!(b.len(), self.order);
        for i in (0..self.order).rev() {
            let current = row(&self.lower, i);
            let x = b[i] * current[i];
            b[i] = x;
            axpy(-x, &current[..i], &mut b[..i]);
        }
    }
}

/// The solve of a system of `N` equations, at most 16: the same sums in the same order as the long way.
fn solve_short<const N: usize>(lower: &[f64], out: &mut [f64]) {
    let (Some(lower), Some(out)) = (lower.get(..N * (N + 1) / 2), out.first_chunk_mut::<N>()) else { return };
    let mut b = *out;
    for i in 0..N {
        let start = i * (i + 1) / 2;
        let mut sum = 0.0;
        for j in 0..i {
            sum += lower[start + j] * b[j];
        }
        b[i] = (b[i] - sum) * lower[start + i];
    }
    for i in (0..N).rev() {
        let start = i * (i + 1) / 2;
        let x = b[i] * lower[start + i];
        b[i] = x;
        for j in 0..i {
            b[j] += -x * lower[start + j];
        }
    }
    *out = b;
}

/// `dot`, but one plain sum where the vectors are so short that eight lanes cost more than they bring.
/// Which of the two it is depends on the length alone.
#[inline]
fn short_dot(a: &[f64], b: &[f64]) -> f64 {
    if a.len() > 16 {
        return dot(a, b);
    }
    let mut sum = 0.0;
    for (x, y) in a.iter().zip(b) {
        sum += x * y;
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cholesky_solves_and_refuses_what_is_not_positive() {
        // A = [[4, 2], [2, 3]]; A [1, -1] = [2, -1]
        let factor = Cholesky::factor(vec![4.0, 2.0, 3.0], 2).unwrap();
        let mut b = [2.0, -1.0];
        factor.solve(&mut b);
        assert!((b[0] - 1.0).abs() < 1e-15 && (b[1] + 1.0).abs() < 1e-15);
        // R' = [[2, 1], [0, sqrt 2]]; R' [1, 1] = [3, sqrt 2]
        let mut b = [3.0, 2f64.sqrt()];
        factor.solve_transposed(&mut b);
        assert!((b[0] - 1.0).abs() < 1e-15 && (b[1] - 1.0).abs() < 1e-15);
        assert!(Cholesky::factor(vec![1.0, 2.0, 1.0], 2).is_none());
        assert!(Cholesky::factor(vec![f64::NAN], 1).is_none());
    }
}
