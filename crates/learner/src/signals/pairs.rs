//! Sums over pairs of nodes, in the order of [`fedkin_graph::pairs`].

use fedkin_graph::pairs;

/// The number of pairs of so many nodes.
pub fn pairs_of(nodes: usize) -> usize {
    pairs::count(nodes).unwrap_or(usize::MAX)
}

/// The number of nodes with so many pairs, where there is one; at least 2.
pub fn nodes_of(pairs: usize) -> Option<usize> {
    pairs::nodes_of(pairs).filter(|nodes| *nodes >= 2)
}

/// Sums of eight lanes, always in this order.
#[inline]
pub fn lanes(sum: [f64; 8]) -> f64 {
    ((sum[0] + sum[4]) + (sum[1] + sum[5])) + ((sum[2] + sum[6]) + (sum[3] + sum[7]))
}

/// zbar'w and |w|^2, and the degrees of all nodes, in one pass.
pub(super) fn weigh(zbar: &[f64], w: &[f64], degree: &mut [f64]) -> (f64, f64) {
    degree.fill(0.0);
    let (mut z_rest, mut w_rest) = (zbar, w);
    let (mut product, mut square) = ([0.0; 8], [0.0; 8]);
    let (mut last_product, mut last_square) = (0.0, 0.0);
    for node in 0..degree.len() {
        let (own, others) = degree[node..].split_at_mut(1);
        let ((z, z_below), (w, w_below)) = (z_rest.split_at(others.len()), w_rest.split_at(others.len()));
        (z_rest, w_rest) = (z_below, w_below);
        let ((z, z_last), (w, w_last)) = (z.as_chunks::<8>(), w.as_chunks::<8>());
        let (others, others_last) = others.as_chunks_mut::<8>();
        let mut sum = [0.0; 8];
        for ((z, w), others) in z.iter().zip(w).zip(others) {
            for lane in 0..8 {
                sum[lane] += w[lane];
                others[lane] += w[lane];
                product[lane] += z[lane] * w[lane];
                square[lane] += w[lane] * w[lane];
            }
        }
        let mut last = lanes(sum);
        for ((z, w), other) in z_last.iter().zip(w_last).zip(others_last) {
            last += w;
            *other += w;
            last_product += z * w;
            last_square += w * w;
        }
        own[0] += last;
    }
    (lanes(product) + last_product, lanes(square) + last_square)
}

/// The degrees of all nodes: `S w`.
pub fn degrees(w: &[f64], out: &mut [f64]) {
    out.fill(0.0);
    let mut rest = w;
    for node in 0..out.len() {
        let (own, others) = out[node..].split_at_mut(1);
        let (row, below) = rest.split_at(others.len());
        rest = below;
        let ((row, row_rest), (others, others_rest)) = (row.as_chunks::<8>(), others.as_chunks_mut::<8>());
        let mut sum = [0.0; 8];
        for (row, others) in row.iter().zip(others) {
            for lane in 0..8 {
                sum[lane] += row[lane];
                others[lane] += row[lane];
            }
        }
        let mut last = lanes(sum);
        for (w, other) in row_rest.iter().zip(others_rest) {
            last += w;
            *other += w;
        }
        own[0] += last;
    }
}

/// `out_jk += factor (y_j + y_k)`: the transpose of the degrees.
pub fn add_back(factor: f64, y: &[f64], out: &mut [f64]) {
    let mut rest = out;
    for (node, own) in y.iter().enumerate() {
        let others = &y[node + 1..];
        let (row, below) = rest.split_at_mut(others.len());
        for (w, other) in row.iter_mut().zip(others) {
            *w += factor * (own + other);
        }
        rest = below;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_of_pairs_and_nodes_invert_each_other() {
        for nodes in 2..4000 {
            let pairs = pairs_of(nodes);
            assert_eq!(nodes_of(pairs), Some(nodes));
            if nodes > 2 {
                assert_eq!(nodes_of(pairs + 1), None);
            }
        }
        assert_eq!((nodes_of(0), nodes_of(2)), (None, None));
    }

    #[test]
    fn degrees_and_their_transpose_are_adjoint() {
        for nodes in [2, 3, 9, 30] {
            let w: Vec<f64> = (0..pairs_of(nodes)).map(|i| ((i * 37 + 11) % 101) as f64).collect();
            let y: Vec<f64> = (0..nodes).map(|i| ((i * 53 + 7) % 29) as f64).collect();
            let mut degree = vec![1.0; nodes];
            degrees(&w, &mut degree);
            let mut back = vec![0.0; w.len()];
            add_back(1.0, &y, &mut back);
            let left: f64 = degree.iter().zip(&y).map(|(a, b)| a * b).sum();
            let right: f64 = back.iter().zip(&w).map(|(a, b)| a * b).sum();
            assert!((left - right).abs() < 1e-9);
            assert!((degree.iter().sum::<f64>() - 2.0 * w.iter().sum::<f64>()).abs() < 1e-9);
        }
    }
}
