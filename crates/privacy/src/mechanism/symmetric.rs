//! Symmetric matrices: a scatter, a covariance.

use super::Perturbed;

fedkin_numeric::record! {
    /// A symmetric matrix by its upper triangle, row after row, the diagonal first in each.
    pub struct Symmetric {
        /// Number of rows.
        rows: u32,
        /// rows (rows + 1) / 2 numbers.
        upper: Vec<f64>,
    }
}

impl Symmetric {
    /// The zero matrix.
    pub fn zero(rows: u32) -> Self {
        Self { rows, upper: vec![0.0; places(rows as usize)] }
    }

    /// The number at row i and column j; `None` outside.
    pub fn at(&self, i: u32, j: u32) -> Option<f64> {
        let (i, j) = (i.min(j) as usize, i.max(j) as usize);
        let rows = self.rows as usize;
        (j < rows).then(|| self.upper.get(i * rows - i * i.saturating_sub(1) / 2 + j - i).copied())?
    }
}

fn places(rows: usize) -> usize {
    rows * (rows + 1) / 2
}

impl Perturbed for Symmetric {
    fn numbers(&self) -> usize {
        self.upper.len()
    }

    fn fits(&self, length: usize) -> bool {
        self.rows as usize == length && self.upper.len() == places(length)
    }

    fn coordinates(length: usize) -> f64 {
        length as f64 * length as f64
    }

    fn runs(&mut self, mut visit: impl FnMut(&mut [f64], bool)) {
        let mut rest = self.upper.as_mut_slice();
        for beside in (0..self.rows as usize).rev() {
            if rest.len() <= beside {
                return;
            }
            let (row, below) = rest.split_at_mut(beside + 1);
            let (diagonal, others) = row.split_at_mut(1);
            visit(diagonal, false);
            visit(others, true);
            rest = below;
        }
    }
}
