//! Fixed-order kernels: the same bits on every machine.
//!
//! Sums run in eight lanes (element `i` goes to lane `i mod 8`) that are combined in one fixed order.
//! The order is part of the source, so it does not depend on the cache, the SIMD width or the thread
//! count. No `mul_add`, and elementary functions come from `libm`: `std` leaves their precision open.

mod cholesky;

pub use cholesky::Cholesky;

use wide::f64x4;

const LANES: usize = 8;
/// A rest of half a block or more still goes through whole vectors, to the same lanes.
const HALF: usize = 4;

/// Lanes 0 to 3 and 4 to 7, each one vector of the processor.
type Lanes = [f64x4; 2];

#[allow(clippy::inline_always)] // A call would pass it through memory.
#[inline(always)]
fn quad(values: &[f64; HALF]) -> f64x4 {
    f64x4::new(*values)
}

#[inline]
fn fold([low, high]: Lanes) -> f64 {
    let [a, b, c, d] = (low + high).to_array();
    (a + c) + (b + d)
}

/// Fewer than four entries, with zeros behind them. A term of two zeros is zero, and as a lane starts from plus zero it
/// never holds minus zero: adding that term changes no bit.
fn padded(rest: &[f64]) -> f64x4 {
    f64x4::new(std::array::from_fn(|i| rest.get(i).copied().unwrap_or(0.0)))
}

/// For every row the sum over all pairs of its entries with those of `x`, of a term that is zero for two zeros, in eight
/// lanes. Rows side by side load `x` once; each has the sums that it would have alone. The vectors are spelt out, as a
/// compiler that may choose puts rows side by side in them.
#[allow(clippy::inline_always)] // As above.
#[inline(always)]
fn sums_of<const R: usize>(rows: [&[f64]; R], x: &[f64], term: impl Fn(f64x4, f64x4) -> f64x4) -> [Lanes; R] {
    let (xs, x_rest) = x.as_chunks::<LANES>();
    let blocks: [&[[f64; LANES]]; R] = rows.map(|row| &row.as_chunks().0[..xs.len()]);
    let mut sums = [[f64x4::ZERO; 2]; R];
    for (k, x) in xs.iter().enumerate() {
        let x = x.as_chunks().0;
        for r in 0..R {
            let row = blocks[r][k].as_chunks().0;
            for half in 0..2 {
                sums[r][half] += term(quad(&row[half]), quad(&x[half]));
            }
        }
    }
    if x_rest.is_empty() {
        return sums;
    }
    let rests: [&[f64]; R] = rows.map(|row| row.as_chunks::<LANES>().1);
    let Some((x, x_rest)) = x_rest.split_first_chunk() else {
        let x = padded(x_rest);
        for r in 0..R {
            sums[r][0] += term(padded(rests[r]), x);
        }
        return sums;
    };
    for r in 0..R {
        if let Some((row, row_rest)) = rests[r].split_first_chunk() {
            sums[r][0] += term(quad(row), quad(x));
            if !x_rest.is_empty() {
                sums[r][1] += term(padded(row_rest), padded(x_rest));
            }
        }
    }
    sums
}

/// Inner product of two vectors of the same length.
pub fn dot(a: &[f64], b: &[f64]) -> f64 {
    debug_assert_eq!(a.len(), b.len());
    // What `sums_of` does for one row: halves take turns.
    let ((halves, a_rest), (others, b_rest)) = (a.as_chunks::<HALF>(), b.as_chunks::<HALF>());
    let (mut next, mut last) = (f64x4::ZERO, f64x4::ZERO);
    for (a, b) in halves.iter().zip(others) {
        (next, last) = (last, next + quad(a) * quad(b));
    }
    if !a_rest.is_empty() {
        next += padded(a_rest) * padded(b_rest);
    }
    fold([next, last])
}

/// The sums of `dot` with `x`, of so many rows at the begin of a matrix.
#[allow(clippy::inline_always)] // As above.
#[inline(always)]
fn first_rows<const R: usize>(matrix: &[f64], x: &[f64]) -> [Lanes; R] {
    let rows = std::array::from_fn(|r| &matrix[r * x.len()..(r + 1) * x.len()]);
    sums_of::<R>(rows, x, |x, y| x * y)
}

/// The inner product of every row of a matrix with `x`.
pub fn products(matrix: &[f64], x: &[f64], out: &mut [f64]) {
    let columns = x.len();
    debug_assert_eq!(matrix.len(), columns * out.len());
    // Of few whole vectors all stay in registers, and nothing is left to count.
    match (columns / HALF, columns % HALF) {
        (1, 0) => short_products::<1>(matrix, x, out),
        (2, 0) => short_products::<2>(matrix, x, out),
        (3, 0) => short_products::<3>(matrix, x, out),
        (4, 0) => short_products::<4>(matrix, x, out),
        (5, 0) => short_products::<5>(matrix, x, out),
        (6, 0) => short_products::<6>(matrix, x, out),
        (7, 0) => short_products::<7>(matrix, x, out),
        (8, 0) => short_products::<8>(matrix, x, out),
        _ => long_products(matrix, x, out),
    }
}

/// `products` for rows of any length. On its own, as the compiler allots its registers worse beside the short ones.
#[inline(never)]
fn long_products(matrix: &[f64], x: &[f64], out: &mut [f64]) {
    let columns = x.len();
    let mut left = matrix;
    let (fours, rest) = out.as_chunks_mut::<4>();
    for out in fours {
        *out = folds(first_rows(left, x).map(|[low, high]| low + high));
        left = &left[4 * columns..];
    }
    let (twos, rest) = rest.as_chunks_mut::<2>();
    for out in twos {
        *out = first_rows(left, x).map(fold);
        left = &left[2 * columns..];
    }
    if let Some(out) = rest.first_mut() {
        *out = dot(left, x);
    }
}

/// Four folds side by side, of lanes whose halves are added.
#[allow(clippy::inline_always)] // As above.
#[inline(always)]
fn folds(sums: [f64x4; 4]) -> [f64; 4] {
    let [a, b, c, d] = f64x4::transpose(sums);
    ((a + c) + (b + d)).to_array()
}

/// `products` for rows of `H` whole vectors, with the same sums.
fn short_products<const H: usize>(matrix: &[f64], x: &[f64], out: &mut [f64]) {
    let (rows, x) = (matrix.as_chunks::<HALF>().0.as_chunks::<H>().0, x.as_chunks::<HALF>().0);
    let Some(x) = x.first_chunk::<H>().map(|x| x.map(|x| quad(&x))) else { return };
    let lanes = |row: &[[f64; HALF]; H]| {
        let mut sums = [f64x4::ZERO; 2];
        for h in 0..H {
            sums[h % 2] += quad(&row[h]) * x[h];
        }
        sums
    };
    let ((fours, rest), (rows, rows_rest)) = (out.as_chunks_mut::<4>(), rows.as_chunks::<4>());
    for (out, rows) in fours.iter_mut().zip(rows) {
        let sums = [lanes(&rows[0]), lanes(&rows[1]), lanes(&rows[2]), lanes(&rows[3])];
        *out = folds(sums.map(|[low, high]| low + high));
    }
    for (out, row) in rest.iter_mut().zip(rows_rest) {
        *out = fold(lanes(row));
    }
}

/// Squared Euclidean norm.
pub fn norm2(a: &[f64]) -> f64 {
    // `dot` of a vector with itself, which is read once.
    let (halves, rest) = a.as_chunks::<HALF>();
    match (halves.len(), rest.len()) {
        (1, 0) => return short_norm2::<1>(halves),
        (2, 0) => return short_norm2::<2>(halves),
        (3, 0) => return short_norm2::<3>(halves),
        (4, 0) => return short_norm2::<4>(halves),
        (5, 0) => return short_norm2::<5>(halves),
        (6, 0) => return short_norm2::<6>(halves),
        (7, 0) => return short_norm2::<7>(halves),
        (8, 0) => return short_norm2::<8>(halves),
        _ => {}
    }
    let (mut next, mut last) = (f64x4::ZERO, f64x4::ZERO);
    for half in halves {
        let half = quad(half);
        (next, last) = (last, next + half * half);
    }
    if !rest.is_empty() {
        next += padded(rest) * padded(rest);
    }
    fold([next, last])
}

/// `norm2` of `H` whole vectors, with the same sums.
#[allow(clippy::inline_always)] // As above.
#[inline(always)]
fn short_norm2<const H: usize>(halves: &[[f64; HALF]]) -> f64 {
    let mut sums = [f64x4::ZERO; 2];
    let Some(halves) = halves.first_chunk::<H>() else { return 0.0 };
    for (h, half) in halves.iter().enumerate() {
        sums[h % 2] += quad(half) * quad(half);
    }
    fold(sums)
}

/// Squared Euclidean distance of two vectors of the same length.
pub fn distance2(a: &[f64], b: &[f64]) -> f64 {
    debug_assert_eq!(a.len(), b.len());
    let [sum] = sums_of([a], b, |x, y| (x - y) * (x - y));
    fold(sum)
}

/// `y = f(y, x)` entry by entry, whole vectors first.
#[inline]
pub fn update(y: &mut [f64], x: &[f64], f: impl Fn(f64, f64) -> f64) {
    debug_assert_eq!(x.len(), y.len());
    let ((ys, y_rest), (xs, x_rest)) = (y.as_chunks_mut::<LANES>(), x.as_chunks::<LANES>());
    // A block is read before it is written: whatever the compiler knows about aliases, it may use vectors.
    for (y, x) in ys.iter_mut().zip(xs) {
        let (old, x) = (*y, *x);
        *y = std::array::from_fn(|i| f(old[i], x[i]));
    }
    let ((ys, y_rest), (xs, x_rest)) = (y_rest.as_chunks_mut::<HALF>(), x_rest.as_chunks::<HALF>());
    // At most one; a loop would invite the compiler to unroll it.
    if let (Some(y), Some(x)) = (ys.first_mut(), xs.first()) {
        let (old, x) = (*y, *x);
        *y = std::array::from_fn(|i| f(old[i], x[i]));
    }
    for (y, x) in y_rest.iter_mut().zip(x_rest) {
        *y = f(*y, *x);
    }
}

/// Appends `f(a, b)` entry by entry.
#[inline]
pub fn extend_with(out: &mut Vec<f64>, a: &[f64], b: &[f64], f: impl Fn(f64, f64) -> f64) {
    debug_assert_eq!(a.len(), b.len());
    let ((blocks, a_rest), (others, b_rest)) = (a.as_chunks::<HALF>(), b.as_chunks::<HALF>());
    for (a, b) in blocks.iter().zip(others) {
        let block: [f64; HALF] = std::array::from_fn(|i| f(a[i], b[i]));
        out.extend_from_slice(&block);
    }
    out.extend(a_rest.iter().zip(b_rest).map(|(a, b)| f(*a, *b)));
}

/// `y += alpha * x`.
#[inline]
pub fn axpy(alpha: f64, x: &[f64], y: &mut [f64]) {
    update(y, x, |y, x| y + alpha * x);
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
    update(mean, value, |mean, value| mean + weight * (value - mean));
}

/// `out = scale * start + sum_i weight_i * row_i`, every entry summed in the order of the rows.
pub fn combine(scale: f64, start: &[f64], weights: &[f64], rows: &[f64], out: &mut [f64]) {
    debug_assert_eq!(rows.len(), weights.len() * out.len());
    debug_assert_eq!(start.len(), out.len());
    let mut at = 0;
    // The fewer blocks the rows pass, the better: as wide as the registers allow, then all whole vectors.
    loop {
        let block = match (out.len() - at) / HALF {
            8.. => columns_of::<32>,
            7 => columns_of::<28>,
            6 => columns_of::<24>,
            5 => columns_of::<20>,
            4 => columns_of::<16>,
            3 => columns_of::<12>,
            2 => columns_of::<8>,
            1 => columns_of::<4>,
            0 if at < out.len() => columns_of::<1>,
            0 => return,
        };
        at += block(at, scale, start, weights, rows, out);
    }
}

/// `W` columns of `combine` from column `at` on; gives `W`.
fn columns_of<const W: usize>(
    at: usize,
    scale: f64,
    start: &[f64],
    weights: &[f64],
    rows: &[f64],
    out: &mut [f64],
) -> usize {
    let columns = out.len();
    if let (Some(out), Some(start)) = (out[at..].first_chunk_mut::<W>(), start[at..].first_chunk::<W>()) {
        // The columns stay in registers while all rows pass.
        let mut sum = start.map(|start| scale * start);
        let mut pass = |weight: f64, row: &[f64; W]| {
            for i in 0..W {
                sum[i] += weight * row[i];
            }
        };
        if columns == W {
            weights.iter().zip(rows.as_chunks::<W>().0).for_each(|(weight, row)| pass(*weight, row));
        } else {
            let mut left = &rows[at..];
            for weight in weights {
                let Some(row) = left.first_chunk::<W>() else { break };
                pass(*weight, row);
                left = left.get(columns..).unwrap_or_default();
            }
        }
        *out = sum;
    }
    W
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

/// Sine with the same bits everywhere.
#[inline]
pub fn sin(x: f64) -> f64 {
    libm::sin(x)
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

/// log10 x, the same bits everywhere.
pub fn log10(x: f64) -> f64 {
    libm::log10(x)
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

    /// The order of the sums as it is written at the top, one number after the other.
    fn by_lanes(a: &[f64], b: &[f64], term: impl Fn(f64, f64) -> f64) -> f64 {
        let mut lanes = [0.0; LANES];
        for (i, (a, b)) in a.iter().zip(b).enumerate() {
            lanes[i % LANES] += term(*a, *b);
        }
        let [a, b, c, d]: [f64; HALF] = std::array::from_fn(|i| lanes[i] + lanes[i + HALF]);
        (a + c) + (b + d)
    }

    #[test]
    fn sums_have_the_order_of_the_lanes_alone_and_side_by_side() {
        // Numbers of many sizes: another order would show in the last bits.
        let value = |i: usize| (1.0 + 0.37 * i as f64).sin() * 10f64.powi((i % 9) as i32 - 4);
        for columns in 1..40 {
            let x: Vec<f64> = (0..columns).map(|i| value(7 * i + 3)).collect();
            for rows in 0..12 {
                let matrix: Vec<f64> = (0..rows * columns).map(value).collect();
                let mut out = vec![f64::NAN; rows];
                products(&matrix, &x, &mut out);
                for (row, out) in matrix.chunks_exact(columns).zip(out) {
                    assert_eq!(out.to_bits(), by_lanes(row, &x, |a, b| a * b).to_bits());
                    assert_eq!(out.to_bits(), dot(row, &x).to_bits());
                    let apart = by_lanes(row, &x, |a, b| (a - b) * (a - b));
                    assert_eq!(distance2(row, &x).to_bits(), apart.to_bits());
                    assert_eq!(norm2(row).to_bits(), by_lanes(row, row, |a, b| a * b).to_bits());
                }
            }
        }
    }

    #[test]
    fn combining_rows_equals_adding_them_one_by_one() {
        for columns in [1, 4, 7, 8, 9, 20, 32, 36, 60] {
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
    fn entries_are_appended_one_by_one() {
        for length in 0..20u8 {
            let a: Vec<f64> = (0..length).map(f64::from).collect();
            let mut out = vec![-1.0];
            extend_with(&mut out, &a, &a, |x, y| 2.0 * x + y);
            assert_eq!(out[0], -1.0);
            assert_eq!(out[1..], a.iter().map(|x| 3.0 * x).collect::<Vec<f64>>());
        }
    }

    #[test]
    fn power_is_a_repeated_product() {
        assert_eq!(power(2.0, 10), 1024.0);
        assert_eq!(power(0.99, 0), 1.0);
    }
}
