//! Fixed-order kernels: the same bits on every machine.
//!
//! Sums run in eight lanes (element `i` goes to lane `i mod 8`) that are combined in one fixed order.
//! The order is part of the source, so it does not depend on the cache, the SIMD width or the thread
//! count. No `mul_add`, and elementary functions come from `libm`: `std` leaves their precision open.

const LANES: usize = 8;
/// A rest of half a block or more still goes through whole vectors, to the same lanes.
const HALF: usize = 4;

fn fold(lanes: [f64; LANES]) -> f64 {
    let [a, b, c, d, e, f, g, h] = lanes;
    ((a + e) + (c + g)) + ((b + f) + (d + h))
}

/// The sum over all pairs of entries of a term, in eight lanes.
#[inline]
fn sum_of(a: &[f64], b: &[f64], term: impl Fn(f64, f64) -> f64) -> f64 {
    debug_assert_eq!(a.len(), b.len());
    let mut lanes = [0.0; LANES];
    let (left, left_rest) = a.as_chunks::<LANES>();
    let (right, right_rest) = b.as_chunks::<LANES>();
    for (x, y) in left.iter().zip(right) {
        for i in 0..LANES {
            lanes[i] += term(x[i], y[i]);
        }
    }
    let (left, left_rest) = left_rest.as_chunks::<HALF>();
    let (right, right_rest) = right_rest.as_chunks::<HALF>();
    let mut lane = 0;
    for (x, y) in left.iter().zip(right) {
        for i in 0..HALF {
            lanes[i] += term(x[i], y[i]);
        }
        lane = HALF;
    }
    for (x, y) in left_rest.iter().zip(right_rest) {
        lanes[lane] += term(*x, *y);
        lane += 1;
    }
    fold(lanes)
}

/// Inner product of two vectors of the same length.
pub fn dot(a: &[f64], b: &[f64]) -> f64 {
    sum_of(a, b, |x, y| x * y)
}

/// Squared Euclidean norm.
#[inline]
pub fn norm2(a: &[f64]) -> f64 {
    dot(a, a)
}

/// Squared Euclidean distance of two vectors of the same length.
pub fn distance2(a: &[f64], b: &[f64]) -> f64 {
    sum_of(a, b, |x, y| (x - y) * (x - y))
}

/// `y += alpha * x`.
#[inline]
pub fn axpy(alpha: f64, x: &[f64], y: &mut [f64]) {
    debug_assert_eq!(x.len(), y.len());
    for (y, x) in y.iter_mut().zip(x) {
        *y += alpha * x;
    }
}

/// `y *= alpha`.
#[inline]
pub fn scale(alpha: f64, y: &mut [f64]) {
    for y in y {
        *y *= alpha;
    }
}

/// `mean += weight * (value - mean)`: one step of an exponential average.
pub fn blend(mean: &mut [f64], value: &[f64], weight: f64) {
    for (mean, value) in mean.iter_mut().zip(value) {
        *mean += weight * (value - *mean);
    }
}

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

/// `out = scale * start + sum_i weight_i * row_i`, every entry summed in the order of the rows.
pub fn combine(scale: f64, start: &[f64], weights: &[f64], rows: &[f64], out: &mut [f64]) {
    let columns = out.len();
    debug_assert_eq!(rows.len(), weights.len() * columns);
    let (blocks, _) = out.as_chunks_mut::<LANES>();
    let whole = blocks.len() * LANES;
    for (b, block) in blocks.iter_mut().enumerate() {
        // A block of columns stays in registers while all rows pass.
        let at = b * LANES;
        let mut sum = [0.0; LANES];
        for (sum, start) in sum.iter_mut().zip(&start[at..at + LANES]) {
            *sum = scale * start;
        }
        for (weight, row) in weights.iter().zip(rows.chunks_exact(columns)) {
            for (sum, x) in sum.iter_mut().zip(&row[at..at + LANES]) {
                *sum += weight * x;
            }
        }
        *block = sum;
    }
    for j in whole..columns {
        let mut sum = scale * start[j];
        for (weight, row) in weights.iter().zip(rows.chunks_exact(columns)) {
            sum += weight * row[j];
        }
        out[j] = sum;
    }
}

/// The packed lower triangle of `X X'` for `rows` row vectors of length `columns`.
pub fn gram_of_rows(x: &[f64], rows: usize, columns: usize) -> Vec<f64> {
    let mut packed = Vec::with_capacity(rows * (rows + 1) / 2);
    for i in 0..rows {
        let a = &x[i * columns..(i + 1) * columns];
        for j in 0..=i {
            packed.push(dot(a, &x[j * columns..(j + 1) * columns]));
        }
    }
    packed
}

/// Adds `sum_i weight_i x_i x_i'` to the packed lower triangle of a `columns` square matrix.
pub fn add_weighted_gram(packed: &mut [f64], x: &[f64], columns: usize, weight: impl Fn(usize) -> f64) {
    for (i, sample) in x.chunks_exact(columns).enumerate() {
        let weight = weight(i);
        for j in 0..columns {
            let start = j * (j + 1) / 2;
            axpy(weight * sample[j], &sample[..=j], &mut packed[start..=start + j]);
        }
    }
}

/// Adds `value` to the diagonal of a packed lower triangle.
pub fn add_diagonal(packed: &mut [f64], order: usize, value: f64) {
    for i in 0..order {
        packed[i * (i + 1) / 2 + i] += value;
    }
}

/// Natural logarithm with the same bits everywhere.
#[inline]
pub fn ln(x: f64) -> f64 {
    libm::log(x)
}

/// Exponential with the same bits everywhere.
#[inline]
pub fn exp(x: f64) -> f64 {
    libm::exp(x)
}

/// `10 log10(x)`: decibels of a power ratio.
pub fn decibel(x: f64) -> f64 {
    10.0 * libm::log10(x)
}

/// `base^exponent` by repeated product, the same bits everywhere.
pub fn power(base: f64, exponent: u32) -> f64 {
    let mut result = 1.0;
    let (mut square, mut left) = (base, exponent);
    while left > 0 {
        if left & 1 == 1 {
            result *= square;
        }
        square *= square;
        left >>= 1;
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dot_equals_the_plain_sum_on_integers_of_every_length() {
        for n in 0..40 {
            let a: Vec<f64> = (0..n).map(f64::from).collect();
            let b: Vec<f64> = (0..n).map(|i| f64::from(i - 7)).collect();
            let plain: f64 = a.iter().zip(&b).map(|(x, y)| x * y).sum();
            assert_eq!(dot(&a, &b), plain);
            let gap: f64 = a.iter().zip(&b).map(|(x, y)| (x - y) * (x - y)).sum();
            assert_eq!(distance2(&a, &b), gap);
        }
    }

    #[test]
    fn cholesky_solves_and_refuses_what_is_not_positive() {
        // A = [[4, 2], [2, 3]]; A [1, -1] = [2, -1]
        let factor = Cholesky::factor(vec![4.0, 2.0, 3.0], 2).unwrap();
        let mut b = [2.0, -1.0];
        factor.solve(&mut b);
        assert!((b[0] - 1.0).abs() < 1e-15 && (b[1] + 1.0).abs() < 1e-15);
        assert!(Cholesky::factor(vec![1.0, 2.0, 1.0], 2).is_none());
        assert!(Cholesky::factor(vec![f64::NAN], 1).is_none());
    }

    #[test]
    fn combining_rows_equals_adding_them_one_by_one() {
        for columns in [1, 7, 8, 9, 60] {
            let rows: Vec<f64> = (0..3 * columns).map(|i| 0.1 * i as f64 - 1.0).collect();
            let start: Vec<f64> = (0..columns).map(|i| 0.3 * i as f64).collect();
            let weights = [0.7, -1.3, 2.1];
            let mut out = vec![f64::NAN; columns];
            combine(0.9, &start, &weights, &rows, &mut out);
            let mut plain: Vec<f64> = start.iter().map(|x| 0.9 * x).collect();
            for (weight, row) in weights.iter().zip(rows.chunks_exact(columns)) {
                axpy(*weight, row, &mut plain);
            }
            assert_eq!(out, plain);
        }
    }

    #[test]
    fn power_is_a_repeated_product() {
        assert_eq!(power(2.0, 10), 1024.0);
        assert_eq!(power(0.99, 0), 1.0);
    }
}
