//! Ordered weighted sums.

use fedkin_numeric::update;

/// Weighted sums in numbered cells. Sums start from their first term and grow in the order of calls;
/// partial sums of chunks are merged in chunk order. So the bits depend on the roster alone.
#[derive(Debug, Clone, Default)]
pub struct Cells {
    length: usize,
    sums: Vec<f64>,
    weights: Vec<f64>,
}

impl Cells {
    /// So many cells of this length.
    pub fn new(cells: usize, length: usize) -> Self {
        Self { length, sums: vec![0.0; cells * length], weights: vec![0.0; cells] }
    }

    /// Empties all cells and keeps their memory.
    pub fn clear(&mut self) {
        // A cell without weight is written before it is read, so its numbers may stay.
        self.weights.fill(0.0);
    }

    /// Number of cells.
    pub fn len(&self) -> usize {
        self.weights.len()
    }

    /// Whether there is no cell.
    pub fn is_empty(&self) -> bool {
        self.weights.is_empty()
    }

    /// Adds `factor * values` with this (positive) weight: the sum grows by `weight * factor * values`.
    pub fn add(&mut self, cell: usize, weight: f64, factor: f64, values: &[f64]) {
        let first = self.weights[cell] == 0.0;
        self.weights[cell] += weight;
        let sum = &mut self.sums[cell * self.length..(cell + 1) * self.length];
        let scale = weight * factor;
        if first {
            update(sum, values, |_, value| scale * value);
        } else {
            update(sum, values, |sum, value| sum + scale * value);
        }
    }

    /// Adds the partial sums of a later chunk.
    pub fn merge(&mut self, later: &Cells) {
        for cell in 0..later.len() {
            if later.weights[cell] == 0.0 {
                continue;
            }
            let range = cell * self.length..(cell + 1) * self.length;
            if self.weights[cell] == 0.0 {
                self.sums[range.clone()].copy_from_slice(&later.sums[range]);
            } else {
                for (sum, value) in self.sums[range.clone()].iter_mut().zip(&later.sums[range]) {
                    *sum += value;
                }
            }
            self.weights[cell] += later.weights[cell];
        }
    }

    /// The weight in a cell; 0 where nothing was added.
    pub fn weight(&self, cell: usize) -> f64 {
        self.weights[cell]
    }

    /// The sum in a cell, if anything was added.
    pub fn sum(&self, cell: usize) -> Option<&[f64]> {
        (self.weights[cell] != 0.0).then(|| &self.sums[cell * self.length..(cell + 1) * self.length])
    }

    /// Writes the weighted mean of a cell; false, and nothing written, where the cell is empty.
    pub fn mean_into(&self, cell: usize, out: &mut [f64]) -> bool {
        let Some(sum) = self.sum(cell) else { return false };
        let weight = self.weights[cell];
        update(out, sum, |_, sum| sum / weight);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_start_from_the_first_term_and_empty_cells_stay_empty() {
        let mut cells = Cells::new(2, 2);
        cells.add(0, 2.0, 1.0, &[-0.0, 1.0]);
        assert!(cells.sum(0).unwrap()[0].is_sign_negative());
        cells.add(0, 1.0, -1.0, &[3.0, 4.0]);
        let mut mean = [9.0; 2];
        assert!(cells.mean_into(0, &mut mean));
        assert_eq!(mean, [-1.0, -2.0 / 3.0]);
        assert!(!cells.mean_into(1, &mut mean));
        cells.clear();
        assert_eq!(cells.sum(0), None);
    }

    #[test]
    fn merging_chunks_equals_one_fold_on_whole_numbers() {
        let (mut all, mut left, mut right) = (Cells::new(1, 1), Cells::new(1, 1), Cells::new(1, 1));
        for i in 0..10 {
            let part = if i < 6 { &mut left } else { &mut right };
            part.add(0, 1.0, 1.0, &[f64::from(i)]);
            all.add(0, 1.0, 1.0, &[f64::from(i)]);
        }
        left.merge(&right);
        assert_eq!((left.sum(0), left.weight(0)), (all.sum(0), all.weight(0)));
    }
}
