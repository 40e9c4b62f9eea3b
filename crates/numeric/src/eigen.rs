//! Eigenvalues and eigenvectors of a dense symmetric matrix, in one fixed order of operations.
//!
//! ```text
//! A = Q T Q'        reflections make A tridiagonal, one column at a time
//! T = Z diag(l) Z'  shifted rotations push what is beside the diagonal to zero, from the last row up
//! A v_k = l_k v_k   v_k is column k of Q Z; it is kept as row k, so that every kernel walks along rows
//! ```
//!
//! Both halves are backward stable: what comes out belongs to a matrix within a few roundings of `A`, measured
//! by its largest eigenvalue. Repeated eigenvalues get orthonormal vectors of their space; which ones, the order
//! of the source decides.

use crate::{axpy, dot, norm2};

/// Rotations sweep over a block at most this often per eigenvalue; two or three times is usual.
const SWEEPS: usize = 60;
/// A column whose squared norm is below this is zero beside a largest entry of about one.
const NOTHING: f64 = 1e-280;

/// The eigenvalues of a symmetric matrix and their vectors.
#[derive(Debug, Clone, PartialEq)]
pub struct Eigen {
    /// Ascending.
    pub values: Vec<f64>,
    /// Row `k` is the vector of norm one that belongs to `values[k]`.
    pub vectors: Vec<f64>,
}

impl Eigen {
    /// The vector of `values[k]`; empty where there is no such value.
    pub fn vector(&self, k: usize) -> &[f64] {
        let order = self.values.len();
        self.vectors.get(k * order..(k + 1) * order).unwrap_or_default()
    }
}

/// Eigenvalues and eigenvectors of the symmetric matrix whose lower triangle stands in `matrix` (row-major,
/// `order` rows; the upper triangle is not read). `matrix` is scratch afterwards. `None` where the length is not
/// `order * order` or an entry is not finite.
pub fn symmetric(matrix: &mut [f64], order: usize) -> Option<Eigen> {
    let unit = prepare(matrix, order)?;
    let mut form = Tridiagonal::of(matrix, order);
    let mut vectors = form.basis(matrix);
    form.solve(|row, c, s| {
        let (upper, lower) = vectors[row * order..(row + 2) * order].split_at_mut(order);
        for (a, b) in upper.iter_mut().zip(lower) {
            (*a, *b) = (c * *a + s * *b, c * *b - s * *a);
        }
    })?;
    let mut ranks: Vec<usize> = (0..order).collect();
    // Stable: equal values stay in the order in which they were found.
    ranks.sort_by(|&a, &b| form.diagonal[a].total_cmp(&form.diagonal[b]));
    let mut sorted = Vec::with_capacity(order * order);
    for &row in &ranks {
        sorted.extend_from_slice(&vectors[row * order..(row + 1) * order]);
    }
    let values = ranks.iter().map(|&row| form.diagonal[row] * unit).collect();
    Some(Eigen { values, vectors: sorted })
}

/// The eigenvalues alone, ascending: as [`symmetric`], in a fraction of the time.
pub fn values(matrix: &mut [f64], order: usize) -> Option<Vec<f64>> {
    let unit = prepare(matrix, order)?;
    let mut form = Tridiagonal::of(matrix, order);
    form.solve(|_, _, _| {})?;
    let mut values = form.diagonal;
    values.sort_by(f64::total_cmp);
    for value in &mut values {
        *value *= unit;
    }
    Some(values)
}

/// Mirrors the lower triangle and divides by a power of two near the largest entry, which it returns: squares
/// then neither overflow nor vanish, and no bit is lost.
fn prepare(matrix: &mut [f64], order: usize) -> Option<f64> {
    if order.checked_mul(order) != Some(matrix.len()) {
        return None;
    }
    let mut largest = 0.0f64;
    for i in 0..order {
        for j in 0..=i {
            let value = matrix[i * order + j];
            if !value.is_finite() {
                return None;
            }
            largest = largest.max(value.abs());
            matrix[j * order + i] = value;
        }
    }
    if largest == 0.0 {
        return Some(1.0);
    }
    let unit = libm::ldexp(1.0, libm::ilogb(largest).clamp(-1000, 1000));
    for value in matrix.iter_mut() {
        *value /= unit;
    }
    Some(unit)
}

/// A symmetric tridiagonal matrix, and how the dense one became it.
struct Tridiagonal {
    diagonal: Vec<f64>,
    /// `beside[k]` couples rows `k` and `k + 1`.
    beside: Vec<f64>,
    /// Reflection `k` is `I - factor v v'`; `v` stands in row `k` of the dense matrix, behind the diagonal.
    factors: Vec<f64>,
}

impl Tridiagonal {
    /// Reflects column after column of the scaled matrix onto the entry below the diagonal.
    fn of(matrix: &mut [f64], order: usize) -> Self {
        let mut diagonal = vec![0.0; order];
        let mut beside = vec![0.0; order.saturating_sub(1)];
        let mut factors = vec![0.0; order.saturating_sub(1)];
        let mut image = vec![0.0; order];
        for k in 0..order {
            let (head, tail) = matrix.split_at_mut((k + 1) * order);
            let row = &mut head[k * order + k..];
            diagonal[k] = row[0];
            let Some((v, image)) =
                row.get_mut(1..).zip(image.get_mut(k + 1..)).filter(|(v, _)| !v.is_empty())
            else {
                break;
            };
            beside[k] = v[0];
            if norm2(&v[1..]) < NOTHING {
                continue;
            }
            let norm = norm2(v).sqrt();
            let factor = 1.0 / (norm * (norm + v[0].abs()));
            // Away from the first entry: nothing cancels.
            beside[k] = if v[0] > 0.0 { -norm } else { norm };
            v[0] -= beside[k];
            factors[k] = factor;
            // H B H = B - v u' - u v' with u = factor B v - (factor^2 / 2) (v' B v) v, for what lies below.
            for (u, below) in image.iter_mut().zip(tail.chunks_exact(order)) {
                *u = factor * dot(&below[k + 1..], v);
            }
            let half = -0.5 * factor * dot(image, v);
            axpy(half, v, image);
            for (i, below) in tail.chunks_exact_mut(order).enumerate() {
                let (vi, ui) = (v[i], image[i]);
                for ((entry, v), u) in below[k + 1..].iter_mut().zip(&*v).zip(&*image) {
                    *entry -= vi * u + ui * v;
                }
            }
        }
        Self { diagonal, beside, factors }
    }

    /// `Q'`: the product of the reflections, last one first so that only the part they touch is walked.
    fn basis(&self, matrix: &[f64]) -> Vec<f64> {
        let order = self.diagonal.len();
        let mut rows = vec![0.0; order * order];
        for k in 0..order {
            rows[k * order + k] = 1.0;
        }
        for (k, &factor) in self.factors.iter().enumerate().rev() {
            if factor == 0.0 {
                continue;
            }
            let v = &matrix[k * order + k + 1..(k + 1) * order];
            for row in rows[(k + 1) * order..].chunks_exact_mut(order) {
                let row = &mut row[k + 1..];
                axpy(-factor * dot(row, v), v, row);
            }
        }
        rows
    }

    /// Whether rows `k` and `k + 1` are coupled by no more than rounding; if so they are cut apart.
    fn cut(&mut self, k: usize) -> bool {
        let size = self.diagonal[k].abs() + self.diagonal[k + 1].abs();
        let cut = self.beside[k].abs() <= f64::EPSILON * size + NOTHING;
        if cut {
            self.beside[k] = 0.0;
        }
        cut
    }

    /// Makes it diagonal; `rotate` is told of each rotation of two neighbouring rows, its cosine and its sine.
    fn solve(&mut self, mut rotate: impl FnMut(usize, f64, f64)) -> Option<()> {
        let mut last = self.diagonal.len().saturating_sub(1);
        let mut sweeps = SWEEPS * (last + 1);
        while last > 0 {
            if self.cut(last - 1) {
                last -= 1;
                continue;
            }
            let mut first = last - 1;
            while first > 0 && !self.cut(first - 1) {
                first -= 1;
            }
            sweeps = sweeps.checked_sub(1)?;
            self.sweep(first, last, &mut rotate);
        }
        Some(())
    }

    /// One shifted step on rows `first..=last`: the first rotation makes an entry two off the diagonal, the
    /// others push it down and out.
    fn sweep(&mut self, first: usize, last: usize, rotate: &mut impl FnMut(usize, f64, f64)) {
        let (d, e) = (&mut self.diagonal, &mut self.beside);
        // The shift: the eigenvalue of the last two rows that is nearer to the last entry.
        let gap = 0.5 * (d[last - 1] - d[last]);
        let coupling = e[last - 1];
        let root = libm::hypot(gap, coupling);
        let shift = d[last] - coupling * (coupling / (if gap < 0.0 { gap - root } else { gap + root }));
        let (mut along, mut across) = (d[first] - shift, e[first]);
        for k in first..last {
            let length = libm::hypot(along, across);
            let (c, s) = if length > 0.0 { (along / length, across / length) } else { (1.0, 0.0) };
            if k > first {
                e[k - 1] = length;
            }
            let t = s * (d[k + 1] - d[k]) + 2.0 * c * e[k];
            d[k] += s * t;
            d[k + 1] -= s * t;
            e[k] = c * t - e[k];
            if k + 1 < last {
                along = e[k];
                across = s * e[k + 1];
                e[k + 1] *= c;
            }
            rotate(k, c, s);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Checks `A v = l v`, orthonormality, order and trace, all relative to the largest eigenvalue.
    fn check(matrix: &[f64], order: usize) -> Eigen {
        let eigen = symmetric(&mut matrix.to_vec(), order).unwrap();
        let alone = values(&mut matrix.to_vec(), order).unwrap();
        assert_eq!(alone.len(), order);
        let size = eigen.values.iter().fold(f64::MIN_POSITIVE, |most, value| most.max(value.abs()));
        let slack = 1e-14 * (order as f64 + 4.0);
        for (k, single) in alone.iter().enumerate() {
            let v = eigen.vector(k);
            for i in 0..order {
                let image: f64 = (0..order).map(|j| matrix[i.max(j) * order + i.min(j)] / size * v[j]).sum();
                let off = (image - eigen.values[k] / size * v[i]).abs();
                assert!(off < slack, "vector {k} of {order}, entry {i}: {off}");
            }
            for l in 0..=k {
                let expected = f64::from(u8::from(k == l));
                let off = (dot(v, eigen.vector(l)) - expected).abs();
                assert!(off < slack, "vectors {k} and {l} of {order}: {off}");
            }
            assert!((single - eigen.values[k]).abs() <= slack * size);
        }
        assert!(eigen.values.is_sorted());
        let trace: f64 = (0..order).map(|k| matrix[k * order + k] / size).sum();
        let sum: f64 = eigen.values.iter().map(|value| value / size).sum();
        assert!((trace - sum).abs() < slack * order as f64, "trace {trace} and sum {sum}");
        eigen
    }

    fn laplacian(order: usize, edges: impl IntoIterator<Item = (usize, usize)>) -> Vec<f64> {
        let mut matrix = vec![0.0; order * order];
        for (a, b) in edges {
            matrix[a * order + b] -= 1.0;
            matrix[b * order + a] -= 1.0;
            matrix[a * order + a] += 1.0;
            matrix[b * order + b] += 1.0;
        }
        matrix
    }

    fn compare(found: &[f64], mut expected: Vec<f64>) {
        expected.sort_by(f64::total_cmp);
        let size = expected.last().unwrap().abs().max(1.0);
        assert_eq!(found.len(), expected.len());
        for (a, b) in found.iter().zip(&expected) {
            assert!((a - b).abs() < 1e-13 * size * found.len() as f64, "{a} is not {b}");
        }
    }

    #[test]
    fn known_spectra() {
        use std::f64::consts::PI;
        for n in [1, 2, 3, 4, 7, 24, 61] {
            let angle = |k: usize, share: f64| 2.0 - 2.0 * (share * PI * k as f64 / n as f64).cos();
            let path = laplacian(n, (1..n).map(|i| (i - 1, i)));
            compare(&check(&path, n).values, (0..n).map(|k| angle(k, 1.0)).collect());
            let complete = laplacian(n, (0..n).flat_map(|i| (0..i).map(move |j| (i, j))));
            let mut expected = vec![n as f64; n];
            expected[0] = 0.0;
            compare(&check(&complete, n).values, expected);
            if n > 2 {
                let ring = laplacian(n, (0..n).map(|i| (i, (i + 1) % n)));
                compare(&check(&ring, n).values, (0..n).map(|k| angle(k, 2.0)).collect());
                let star = laplacian(n, (1..n).map(|i| (0, i)));
                let mut expected = vec![1.0; n];
                (expected[0], expected[n - 1]) = (0.0, n as f64);
                compare(&check(&star, n).values, expected);
            }
        }
    }

    #[test]
    fn many_zeros_and_wild_scales() {
        let n = 30;
        check(&vec![0.0; n * n], n);
        check(&vec![1.0; n * n], n);
        for scale in [1e-320, 1e-300, 1e-150, 1.0, 1e150, 1e300] {
            let one = |i: usize| scale * (1.0 + i as f64 / 7.0).sin();
            let rank_one: Vec<f64> =
                (0..n * n).map(|at| one(at / n) * (1.0 + (at % n) as f64 / 7.0).sin()).collect();
            if scale > 1e-310 {
                check(&rank_one, n);
            } else {
                assert!(
                    symmetric(&mut rank_one.clone(), n).unwrap().values.iter().all(|value| value.is_finite())
                );
            }
        }
        // Graded: the entries fall by nine orders of magnitude.
        let graded: Vec<f64> = (0..n * n).map(|at| 0.5f64.powi((at / n + at % n) as i32)).collect();
        check(&graded, n);
        // Several components: zero once for each.
        let pieces = laplacian(9, [(0, 1), (2, 3), (3, 4), (5, 6), (6, 7), (5, 7)]);
        let zeros = check(&pieces, 9).values.iter().filter(|value| value.abs() < 1e-12).count();
        assert_eq!(zeros, 4);
    }

    #[test]
    fn the_upper_triangle_is_not_read() {
        let mut matrix = vec![2.0, f64::NAN, 1.0, 3.0];
        let found = symmetric(&mut matrix, 2).unwrap().values;
        compare(&found, vec![2.5 - 1.25f64.sqrt(), 2.5 + 1.25f64.sqrt()]);
    }

    #[test]
    fn what_is_no_matrix_has_no_spectrum() {
        assert_eq!(symmetric(&mut [], 0), Some(Eigen { values: vec![], vectors: vec![] }));
        assert_eq!(symmetric(&mut [-3.0], 1), Some(Eigen { values: vec![-3.0], vectors: vec![1.0] }));
        assert_eq!(symmetric(&mut [1.0, 2.0, 3.0], 2), None);
        assert_eq!(values(&mut [1.0], usize::MAX), None);
        assert_eq!(symmetric(&mut [1.0, 0.0, f64::NAN, 1.0], 2), None);
        assert_eq!(values(&mut [f64::INFINITY], 1), None);
        assert!(check(&[1.0], 1).vector(1).is_empty());
    }

    #[test]
    fn five_hundred_rows() {
        let n = 500;
        let ring = laplacian(n, (0..n).map(|i| (i, (i + 1) % n)));
        let eigen = symmetric(&mut ring.clone(), n).unwrap();
        let angle = |k: usize| 2.0 - 2.0 * (std::f64::consts::TAU * k as f64 / n as f64).cos();
        compare(&eigen.values, (0..n).map(angle).collect());
        assert_eq!(eigen, symmetric(&mut ring.clone(), n).unwrap());
    }

    proptest! {
        #[test]
        fn any_symmetric_matrix(order in 1usize..24, seed in any::<u64>(), values in 1u32..5) {
            use crate::rng::{PublicRng, Random};
            let mut rng = PublicRng::named(seed, "eigen", 0, 0);
            let mut draw = || match values {
                1 => rng.normal(),
                2 => f64::from(rng.below(3)) - 1.0,
                3 => f64::from(rng.below(2)),
                _ => rng.normal() * libm::exp2(rng.between(-30.0, 30.0)),
            };
            let mut matrix = vec![0.0; order * order];
            for i in 0..order {
                for j in 0..=i {
                    matrix[i * order + j] = draw();
                }
            }
            check(&matrix, order);
        }

        /// Built from its eigenvalues, some of them equal, and given back.
        #[test]
        fn repeated_values_come_back(order in 1usize..20, seed in any::<u64>()) {
            use crate::rng::{PublicRng, Random};
            let mut rng = PublicRng::named(seed, "eigen", 0, 1);
            let wanted: Vec<f64> = (0..order).map(|_| f64::from(rng.below(3))).collect();
            let mut noise: Vec<f64> = (0..order * order).map(|_| rng.normal()).collect();
            let basis = symmetric(&mut noise, order).unwrap();
            let mut matrix = vec![0.0; order * order];
            for (k, value) in wanted.iter().enumerate() {
                let v = basis.vector(k);
                for i in 0..order {
                    axpy(value * v[i], v, &mut matrix[i * order..(i + 1) * order]);
                }
            }
            compare(&check(&matrix, order).values, wanted);
        }
    }
}
