//! Nearest neighbours: the weighted mean of the targets of the k nearest records. The model is the records.

use super::{CLASS_NEIGHBOURS, ClassSample, NEIGHBOURS, Sample};
use fedkin_numeric::{axpy, distance2, scale};

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

/// The same with one share per class in place of a target.
pub(super) fn fit_classes(sample: &ClassSample<'_>, count: u32) -> Vec<f64> {
    let counted: Vec<usize> = (0..sample.weights.len()).filter(|&i| sample.weights[i] > 0.0).collect();
    let [columns, classes] = [sample.columns, sample.classes].map(|x| x as f64);
    let mut flat = vec![CLASS_NEIGHBOURS, columns, classes, f64::from(count.max(1)), counted.len() as f64];
    flat.extend(counted.iter().map(|&i| sample.weights[i]));
    for &i in &counted {
        flat.extend_from_slice(sample.shares_of(i));
    }
    for &i in &counted {
        flat.extend_from_slice(&sample.features[i * sample.columns..(i + 1) * sample.columns]);
    }
    flat
}

/// The records as they are read.
#[derive(Debug, Clone, Copy)]
pub(super) struct Near<'a> {
    count: usize,
    columns: usize,
    weights: &'a [f64],
    /// One number per record, or one share per class and record.
    targets: &'a [f64],
    classes: usize,
    features: &'a [f64],
}

impl<'a> Near<'a> {
    /// Takes records off the front of a list of finite numbers; without classes a target is one number.
    pub(super) fn take(list: &mut &'a [f64], columns: usize, classes: Option<usize>) -> Option<Self> {
        let (&[count, rows], rest) = list.split_first_chunk::<2>()?;
        let (count, rows) = (super::whole(count)?, super::whole(rows)?);
        let (weights, rest) = rest.split_at_checked(rows)?;
        let (targets, rest) = rest.split_at_checked(rows.checked_mul(classes.unwrap_or(1))?)?;
        let (features, rest) = rest.split_at_checked(rows.checked_mul(columns)?)?;
        *list = rest;
        let sound = count > 0
            && rows > 0
            && weights.iter().all(|w| *w > 0.0)
            && classes.is_none_or(|classes| super::are_shares(targets, classes));
        sound.then_some(Self { count, columns, weights, targets, classes: classes.unwrap_or(1), features })
    }

    /// The records nearest to a row, nearest first; of equally near ones the earlier.
    fn nearest(&self, row: &[f64]) -> Vec<(f64, usize)> {
        let count = self.count.min(self.weights.len());
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
        nearest
    }

    /// Writes the weighted mean of the shares of the nearest.
    pub(super) fn shares(&self, row: &[f64], out: &mut [f64]) {
        out.fill(0.0);
        let mut total = 0.0;
        for (_, i) in self.nearest(row) {
            axpy(self.weights[i], &self.targets[i * self.classes..(i + 1) * self.classes], out);
            total += self.weights[i];
        }
        scale(1.0 / total, out);
    }

    pub(super) fn predict(&self, row: &[f64]) -> f64 {
        let (mut sum, mut total) = (0.0, 0.0);
        for (_, i) in self.nearest(row) {
            sum += self.weights[i] * self.targets[i];
            total += self.weights[i];
        }
        sum / total
    }
}
