//! Nearest neighbours: the weighted mean of the targets of the k nearest records. The model is the records.

use super::{NEIGHBOURS, Sample};
use crate::numeric::distance2;

pub(super) fn fit(sample: &Sample<'_>, count: u32) -> Vec<f64> {
    let counted = sample.counted();
    let mut flat = Vec::with_capacity(4 + counted.len() * (sample.columns + 2));
    flat.extend([NEIGHBOURS, sample.columns as f64, f64::from(count.max(1)), counted.len() as f64]);
    flat.extend(counted.iter().map(|&i| sample.weights[i as usize]));
    flat.extend(counted.iter().map(|&i| sample.targets[i as usize]));
    for &i in &counted {
        flat.extend_from_slice(sample.row(i as usize));
    }
    flat
}

/// The records as they are read.
#[derive(Debug, Clone, Copy)]
pub(super) struct Near<'a> {
    count: usize,
    columns: usize,
    weights: &'a [f64],
    targets: &'a [f64],
    features: &'a [f64],
}

impl<'a> Near<'a> {
    pub(super) fn take(list: &mut &'a [f64], columns: usize) -> Option<Self> {
        let (&[count, rows], rest) = list.split_first_chunk::<2>()?;
        let (count, rows) = (super::fitted::whole(count)?, super::fitted::whole(rows)?);
        let (weights, rest) = rest.split_at_checked(rows)?;
        let (targets, rest) = rest.split_at_checked(rows)?;
        let (features, rest) = rest.split_at_checked(rows.checked_mul(columns)?)?;
        *list = rest;
        let sound = count > 0 && rows > 0 && weights.iter().all(|w| *w > 0.0);
        sound.then_some(Self { count, columns, weights, targets, features })
    }

    pub(super) fn predict(&self, row: &[f64]) -> f64 {
        let count = self.count.min(self.targets.len());
        // The nearest so far, nearest first; of equally near records the earlier one.
        let mut nearest: Vec<(f64, usize)> = Vec::with_capacity(count + 1);
        for (i, other) in self.features.chunks_exact(self.columns).enumerate() {
            let distance = distance2(row, other);
            if nearest.len() == count && nearest.last().is_some_and(|&(last, _)| distance >= last) {
                continue;
            }
            let at = nearest.partition_point(|&(known, _)| known <= distance);
            nearest.insert(at, (distance, i));
            nearest.truncate(count);
        }
        let (mut sum, mut total) = (0.0, 0.0);
        for (_, i) in nearest {
            sum += self.weights[i] * self.targets[i];
            total += self.weights[i];
        }
        sum / total
    }
}
