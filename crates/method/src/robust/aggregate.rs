//! Aggregators that a few arbitrary contributions cannot move far.
//!
//! | word | what it is | paper |
//! |---|---|---|
//! | median, trimmed-mean | coordinate by coordinate | Yin, Chen, Ramchandran, Bartlett, "Byzantine-robust distributed learning: towards optimal statistical rates", 2018 |
//! | geometric-median | the point with the least sum of distances, by Weiszfeld's iteration | Pillutla, Kakade, Harchaoui, "Robust aggregation for federated learning", 2022 |
//! | multi-krum | the mean of the n - f contributions with the least sum of squared distances to their n - f - 2 nearest | Blanchard, El Mhamdi, Guerraoui, Stainer, "Machine learning with adversaries: Byzantine tolerant gradient descent", 2017 |
//! | centred-clipping | `v + mean of clip(x - v, radius)`, v the model before | Karimireddy, He, Jaggi, "Learning from history for Byzantine robust optimization", 2021 |
//!
//! Contributions are sorted first, so the bits depend on which there are and not on their order. Weights (records of a client)
//! count as that many copies; who is near whom in multi-krum does not depend on them.

use super::median;
use fedkin_numeric::{axpy, distance2, update};
use std::cmp::Ordering;

/// Weiszfeld's iteration ends when a step is this small against the median distance to the contributions,
const ACCURACY: f64 = 1e-10;
/// or after so many steps.
const STEPS: u32 = 200;
/// Distances below this share of the median distance count as this: the iteration does not stop at a contribution.
const SMOOTHING: f64 = 1e-6;
/// How often clipping starts again from its own result.
const CLIPS: u32 = 3;

/// How contributions become one.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Aggregator {
    /// The weighted mean, in sorted order.
    Mean,
    /// The weighted median of every coordinate.
    Median,
    /// Without this share of the weight at each end of a coordinate.
    TrimmedMean {
        /// Below one half.
        share: f64,
    },
    /// The weighted geometric median.
    GeometricMedian,
    /// The mean of the selected ones.
    MultiKrum {
        /// How many may lie.
        liars: usize,
    },
    /// Clipped around what `out` holds before.
    CentredClipping {
        /// The median distance where absent.
        radius: Option<f64>,
    },
}

impl Aggregator {
    /// Puts contributions (weight above 0, values) together. `out` holds the model before, and the result after; it stays where
    /// there is no contribution.
    pub fn aggregate(self, entries: &[(f64, &[f64])], out: &mut [f64]) {
        let mut sorted = entries.to_vec();
        sorted.sort_by(|a, b| order(a.1, b.1).then(a.0.total_cmp(&b.0)));
        if sorted.is_empty() {
            return;
        }
        match self {
            Self::Mean => mean(&sorted, out),
            Self::Median => by_coordinate(&sorted, out, |column, total| trimmed(column, total, 0.5)),
            Self::TrimmedMean { share } => {
                by_coordinate(&sorted, out, |column, total| trimmed(column, total, share));
            }
            Self::GeometricMedian => geometric_median(&sorted, out),
            Self::MultiKrum { liars } => mean(&selected(&sorted, liars), out),
            Self::CentredClipping { radius } => centred_clipping(&sorted, radius, out),
        }
    }
}

fn order(a: &[f64], b: &[f64]) -> Ordering {
    let differing = a.iter().zip(b).map(|(a, b)| a.total_cmp(b)).find(|order| *order != Ordering::Equal);
    differing.unwrap_or(Ordering::Equal)
}

fn mean(entries: &[(f64, &[f64])], out: &mut [f64]) {
    out.fill(0.0);
    let total = weights(entries);
    for (weight, values) in entries {
        axpy(*weight, values, out);
    }
    for value in out {
        *value /= total;
    }
}

fn weights(entries: &[(f64, &[f64])]) -> f64 {
    entries.iter().fold(0.0, |total, (weight, _)| total + weight)
}

/// Applies a function of weighted numbers, sorted by number, to every coordinate.
fn by_coordinate(entries: &[(f64, &[f64])], out: &mut [f64], f: impl Fn(&[(f64, f64)], f64) -> f64) {
    let total = weights(entries);
    let mut column = Vec::with_capacity(entries.len());
    for (i, out) in out.iter_mut().enumerate() {
        column.clear();
        column.extend(entries.iter().map(|(weight, values)| (values[i], *weight)));
        column.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.total_cmp(&b.1)));
        *out = f(&column, total);
    }
}

/// The mean of sorted weighted numbers without this share of the weight at each end; with half of it, the median.
fn trimmed(column: &[(f64, f64)], total: f64, share: f64) -> f64 {
    let (from, to) = (share * total, (1.0 - share) * total);
    if to - from <= 1e-9 * total {
        return weighted_median(column, total);
    }
    let (mut before, mut sum, mut kept) = (0.0f64, 0.0, 0.0);
    for &(value, weight) in column {
        let part = (before + weight).min(to) - before.max(from);
        if part > 0.0 {
            sum += part * value;
            kept += part;
        }
        before += weight;
    }
    sum / kept
}

/// The number in the middle of the weight; the mean of two where the middle lies between them.
fn weighted_median(column: &[(f64, f64)], total: f64) -> f64 {
    let mut before = 0.0;
    for (i, &(value, weight)) in column.iter().enumerate() {
        before += weight;
        if (before - 0.5 * total).abs() <= 1e-12 * total && i + 1 < column.len() {
            return value.midpoint(column[i + 1].0);
        }
        if before > 0.5 * total {
            return value;
        }
    }
    column.last().map_or(0.0, |last| last.0)
}

fn geometric_median(entries: &[(f64, &[f64])], out: &mut [f64]) {
    by_coordinate(entries, out, |column, total| trimmed(column, total, 0.5));
    let mut next = vec![0.0; out.len()];
    for _ in 0..STEPS {
        let distances: Vec<f64> = entries.iter().map(|(_, values)| distance2(values, out).sqrt()).collect();
        let scale = median(&distances);
        if scale == 0.0 {
            // Half of the contributions are one point: no other has a smaller sum.
            return;
        }
        next.fill(0.0);
        let mut total = 0.0;
        for ((weight, values), distance) in entries.iter().zip(&distances) {
            let weight = weight / distance.max(SMOOTHING * scale);
            axpy(weight, values, &mut next);
            total += weight;
        }
        for value in &mut next {
            *value /= total;
        }
        let moved = distance2(&next, out).sqrt();
        out.copy_from_slice(&next);
        if moved <= ACCURACY * scale {
            return;
        }
    }
}

/// The contributions that multi-krum takes; all where there are too few to judge by.
fn selected<'a>(entries: &[(f64, &'a [f64])], liars: usize) -> Vec<(f64, &'a [f64])> {
    let count = entries.len();
    // n >= 2 f + 3 is what the paper asks for: with fewer, fewer can be left out.
    let liars = liars.min(count.saturating_sub(3) / 2);
    if liars == 0 {
        return entries.to_vec();
    }
    let mut scores: Vec<(f64, usize)> = (0..count)
        .map(|i| {
            let others = (0..count).filter(|j| *j != i);
            let mut near: Vec<f64> = others.map(|j| distance2(entries[i].1, entries[j].1)).collect();
            near.sort_by(f64::total_cmp);
            (near.iter().take(count - liars - 2).fold(0.0, |sum, d| sum + d), i)
        })
        .collect();
    scores.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
    let mut chosen: Vec<usize> = scores[..count - liars].iter().map(|(_, i)| *i).collect();
    chosen.sort_unstable();
    chosen.into_iter().map(|i| entries[i]).collect()
}

fn centred_clipping(entries: &[(f64, &[f64])], radius: Option<f64>, out: &mut [f64]) {
    let total = weights(entries);
    for _ in 0..CLIPS {
        let distances: Vec<f64> = entries.iter().map(|(_, values)| distance2(values, out).sqrt()).collect();
        let radius = radius.unwrap_or_else(|| median(&distances));
        let mut step = vec![0.0; out.len()];
        for ((weight, values), distance) in entries.iter().zip(&distances) {
            let factor = if *distance > radius { radius / distance } else { 1.0 };
            let factor = weight * factor / total;
            for ((step, value), centre) in step.iter_mut().zip(*values).zip(&*out) {
                *step += factor * (value - centre);
            }
        }
        update(out, &step, |value, step| value + step);
    }
}
