//! Ordered weighted sums.

use crate::robust::{Robust, median};
use fedkin_numeric::{norm2, update};

/// Weighted sums in numbered cells. Sums start from their first term and grow in the order of calls;
/// partial sums of chunks are merged in chunk order. So the bits depend on the roster alone.
#[derive(Debug, Clone, Default)]
pub struct Cells {
    length: usize,
    sums: Vec<f64>,
    weights: Vec<f64>,
    /// The contributions themselves, where their mean is not what is wanted.
    kept: Option<Kept>,
}

/// Contributions side by side, in the order of calls.
#[derive(Debug, Clone)]
struct Kept {
    robust: Robust,
    /// Cell and weight.
    entries: Vec<(usize, f64)>,
    /// One after the other.
    values: Vec<f64>,
}

impl Cells {
    /// So many cells of this length.
    pub fn new(cells: usize, length: usize) -> Self {
        Self { length, sums: vec![0.0; cells * length], weights: vec![0.0; cells], kept: None }
    }

    /// The same, with contributions kept side by side where that is asked for.
    pub fn of(cells: usize, length: usize, robust: Option<&Robust>) -> Self {
        let kept = robust.filter(|robust| robust.keeps_uploads()).map(|robust| Kept {
            robust: robust.clone(),
            entries: Vec::new(),
            values: Vec::new(),
        });
        Self { kept, ..Self::new(cells, length) }
    }

    /// Empties all cells and keeps their memory.
    pub fn clear(&mut self) {
        // A cell without weight is written before it is read, so its numbers may stay.
        self.weights.fill(0.0);
        if let Some(kept) = &mut self.kept {
            kept.entries.clear();
            kept.values.clear();
        }
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
        if let Some(kept) = &mut self.kept {
            kept.entries.push((cell, weight));
            kept.values.extend(values.iter().map(|value| factor * value));
        }
        let scale = weight * factor;
        if first {
            update(sum, values, |_, value| scale * value);
        } else {
            update(sum, values, |sum, value| sum + scale * value);
        }
    }

    /// Adds the partial sums of a later chunk.
    pub fn merge(&mut self, later: &Cells) {
        if let (Some(kept), Some(later)) = (&mut self.kept, &later.kept) {
            kept.entries.extend_from_slice(&later.entries);
            kept.values.extend_from_slice(&later.values);
        }
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

    /// The contributions to a cell, in the order of calls.
    fn contributions(&self, cell: usize) -> Vec<(f64, &[f64])> {
        let Some(kept) = &self.kept else { return Vec::new() };
        let all = kept.entries.iter().zip(kept.values.chunks_exact(self.length.max(1)));
        all.filter(|((of, _), _)| *of == cell).map(|((_, weight), values)| (*weight, values)).collect()
    }

    /// How long a contribution to a cell may be, where the run has a bound: so many times the median length. A cell of two or
    /// less has none: its median would be the liar's own.
    pub fn longest(&self, cell: usize) -> Option<f64> {
        let times = self.kept.as_ref()?.robust.times()?;
        let lengths: Vec<f64> =
            self.contributions(cell).iter().map(|(_, values)| norm2(values).sqrt()).collect();
        (lengths.len() > 2).then(|| times * median(&lengths))
    }

    /// Writes what the run's aggregation makes of a cell; `out` holds the model before.
    fn robust_into(&self, kept: &Kept, cell: usize, out: &mut [f64]) {
        let longest = self.longest(cell).unwrap_or(f64::INFINITY);
        let cut: Vec<(f64, Vec<f64>)> = self
            .contributions(cell)
            .into_iter()
            .map(|(weight, values)| {
                let length = norm2(values).sqrt();
                let factor = if length > longest { longest / length } else { 1.0 };
                (weight, values.iter().map(|value| factor * value).collect())
            })
            .collect();
        let entries: Vec<(f64, &[f64])> = cut.iter().map(|(weight, values)| (*weight, &values[..])).collect();
        kept.robust.of_uploads().aggregate(&entries, out);
    }

    /// Writes the weighted mean of a cell, or what the run puts in its place: then `out` holds the model before. False, and nothing written, where the cell is empty.
    pub fn mean_into(&self, cell: usize, out: &mut [f64]) -> bool {
        let Some(sum) = self.sum(cell) else { return false };
        if let Some(kept) = &self.kept {
            self.robust_into(kept, cell, out);
            return true;
        }
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
