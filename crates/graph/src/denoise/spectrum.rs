//! The eigendecomposition of `P^-1/2 L P^-1/2`, and matrices made of it.

use super::operator::product;
use crate::Sparse;
use fedkin_numeric::eigen::{self, Eigen};

/// Eigenvalues nearer than this share of the largest are one eigenvalue: which vectors span its space is chance.
const TIE: f64 = 1e-9;

#[derive(Debug, Clone)]
pub(super) struct Spectrum {
    eigen: Eigen,
    /// The diagonal of `P^1/2`.
    roots: Vec<f64>,
}

impl Spectrum {
    /// `None` where weights overflow.
    pub(super) fn of(graph: &Sparse, mass: &[f64]) -> Option<Self> {
        let clients = mass.len();
        let roots: Vec<f64> = mass.iter().map(|mass| mass.sqrt()).collect();
        let mut matrix = graph.laplacian();
        for (row, own) in matrix.chunks_exact_mut(clients).zip(&roots) {
            for (entry, other) in row.iter_mut().zip(&roots) {
                *entry /= own * other;
            }
        }
        let mut eigen = eigen::symmetric(&mut matrix, clients)?;
        // One zero for each component, whatever rounding made of it; none is negative.
        let zeros = graph.components().into_iter().max().map_or(0, |last| last as usize + 1);
        for (at, value) in eigen.values.iter_mut().enumerate() {
            *value = if at < zeros { 0.0 } else { value.max(0.0) };
        }
        Some(Self { eigen, roots })
    }

    pub(super) fn values(&self) -> &[f64] {
        &self.eigen.values
    }

    /// How many eigenvalues are kept where the least `tau` are asked for: all that tie with the last of them too.
    pub(super) fn kept(&self, tau: usize) -> usize {
        let values = &self.eigen.values;
        let near = TIE * values.last().copied().unwrap_or(0.0);
        let mut kept = tau;
        while kept > 0 && kept < values.len() && values[kept] - values[kept - 1] <= near {
            kept += 1;
        }
        kept
    }

    /// `P^-1/2 V diag(h) V' P^1/2`, row by row; `response` gives `h` of the eigenvalue of a number.
    pub(super) fn matrix(&self, response: impl Fn(usize, f64) -> f64) -> Vec<f64> {
        let clients = self.roots.len();
        let gains: Vec<f64> =
            self.eigen.values.iter().enumerate().map(|(at, &value)| response(at, value)).collect();
        // Ascending eigenvalues and falling responses: what is behind the last that counts is not summed.
        let used = gains.iter().rposition(|&gain| gain != 0.0).map_or(0, |last| last + 1);
        let mut left = vec![0.0; clients * used];
        for (k, gain) in gains[..used].iter().enumerate() {
            for (i, entry) in self.eigen.vector(k).iter().enumerate() {
                left[i * used + k] = gain * entry;
            }
        }
        let right: Vec<&[f64]> = self.eigen.vectors[..used * clients].chunks_exact(clients).collect();
        let mut matrix = vec![0.0; clients * clients];
        if used > 0 {
            let mut out: Vec<&mut [f64]> = matrix.chunks_exact_mut(clients).collect();
            product(&left, &right, &mut out, None);
        }
        for (row, own) in matrix.chunks_exact_mut(clients).zip(&self.roots) {
            for (entry, other) in row.iter_mut().zip(&self.roots) {
                *entry *= other / own;
            }
        }
        matrix
    }
}
