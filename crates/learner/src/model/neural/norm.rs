//! Batch norm and group norm: normalise, then scale and shift by channel.
//!
//! Batch norm takes mean and variance of a channel over all records and places of the batch (and the running ones
//! outside training), group norm those of a group of channels within each record. Variances here are biased; the
//! running variance is moved towards the unbiased one, as PyTorch does.

use super::lanes::{self, HALF, LANES, Lanes, fused};
use std::ops::Range;

/// Added to a variance before its root is taken.
const FLOOR: f32 = 1e-5;
/// By how much a batch moves the running statistics.
const MOMENTUM: f32 = 0.1;

/// Sizes of a normalised buffer.
#[derive(Debug, Clone, Copy)]
pub(super) struct Extent {
    pub(super) channels: usize,
    /// Height times width.
    pub(super) places: usize,
}

impl Extent {
    fn block(self) -> usize {
        self.channels * self.places
    }
}

/// Mean, root of the inverse variance and variance of one channel.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Moments {
    pub(super) mean: f32,
    pub(super) inverse: f32,
    pub(super) variance: f32,
    /// Sums over the batch while they are gathered.
    sums: [f64; 2],
    /// The way back: slope at the input, and what the mean and the variance take of it.
    slope: f32,
    level: f32,
    tilt: f32,
}

fn inverse_root(variance: f32) -> f32 {
    1.0 / (variance + FLOOR).sqrt()
}

/// Gathers `N` sums over all records and places of every channel, block after block. `each` adds a block's places of one
/// channel; the lanes without a record do not count.
fn gather<const N: usize>(
    extent: Extent,
    records: usize,
    moments: &mut [Moments],
    mut each: impl FnMut(&Moments, Range<usize>) -> [Lanes; N],
) {
    for moments in &mut *moments {
        moments.sums = [0.0; 2];
    }
    let mut at = 0;
    for left in (1..=records).rev().step_by(LANES) {
        for moments in moments.chunks_mut(HALF) {
            let mut sums = [[Lanes::ZERO; HALF]; N];
            for (channel, moments) in moments.iter().enumerate() {
                let own = each(moments, at..at + extent.places);
                at += extent.places;
                for (sums, own) in sums.iter_mut().zip(own) {
                    sums[channel] = own;
                    if left < LANES {
                        sums[channel].0[left..].fill(0.0);
                    }
                }
            }
            for (number, sums) in sums.iter().enumerate() {
                for (moments, sum) in moments.iter_mut().zip(lanes::sums(sums)) {
                    moments.sums[number] += f64::from(sum);
                }
            }
        }
    }
}

/// Statistics of every channel over the batch.
pub(super) fn batch_moments(x: &[Lanes], extent: Extent, records: usize, moments: &mut [Moments]) {
    let count = (records * extent.places) as f64;
    gather(extent, records, moments, |_, places| {
        let add = |sum: Lanes, x: &Lanes| Lanes::of(|i| sum.0[i] + x.0[i]);
        [x[places].iter().fold(Lanes::ZERO, add)]
    });
    for moments in &mut *moments {
        moments.mean = (moments.sums[0] / count) as f32;
    }
    gather(extent, records, moments, |&Moments { mean, .. }, places| {
        let add = |sum: Lanes, x: &Lanes| Lanes::of(|i| sum.0[i] + (x.0[i] - mean) * (x.0[i] - mean));
        [x[places].iter().fold(Lanes::ZERO, add)]
    });
    for moments in moments {
        moments.variance = (moments.sums[0] / count) as f32;
        moments.inverse = inverse_root(moments.variance);
    }
}

/// Running statistics as moments.
pub(super) fn running_moments(mean: &[f32], variance: &[f32], moments: &mut [Moments]) {
    for ((moments, &mean), &variance) in moments.iter_mut().zip(mean).zip(variance) {
        (moments.mean, moments.inverse, moments.variance) = (mean, inverse_root(variance), variance);
    }
}

/// Moves running statistics towards those of a batch of `count` numbers per channel.
pub(super) fn move_running(moments: &[Moments], count: usize, mean: &mut [f32], variance: &mut [f32]) {
    let unbias = count as f32 / (count - 1).max(1) as f32;
    for ((moments, mean), variance) in moments.iter().zip(mean).zip(variance) {
        *mean += MOMENTUM * (moments.mean - *mean);
        *variance += MOMENTUM * (moments.variance * unbias - *variance);
    }
}

/// `scale (x - mean) inverse + shift`, all blocks.
pub(super) fn batch_forward(
    moments: &[Moments],
    scale: &[f32],
    shift: &[f32],
    places: usize,
    x: &[Lanes],
    out: &mut [Lanes],
) {
    for (at, (x, out)) in x.chunks_exact(places).zip(out.chunks_exact_mut(places)).enumerate() {
        let channel = at % moments.len();
        let Moments { mean, inverse, .. } = moments[channel];
        let (slope, shift) = (scale[channel] * inverse, shift[channel]);
        for (x, out) in x.iter().zip(out) {
            *out = Lanes::of(|i| fused(x.0[i] - mean, slope, shift));
        }
    }
}

/// The gradient through the statistics of the batch, in place; gradients of scale and shift. Gradients are zero in the
/// lanes without a record.
pub(super) fn batch_back(
    moments: &mut [Moments],
    scale: &[f32],
    (extent, records): (Extent, usize),
    x: &[Lanes],
    g: &mut [Lanes],
    (scale_out, shift_out): (&mut [f32], &mut [f32]),
) {
    let count = (records * extent.places) as f64;
    gather(extent, records, moments, |&Moments { mean, .. }, places| {
        let (mut sum, mut product) = (Lanes::ZERO, Lanes::ZERO);
        for (x, g) in x[places.clone()].iter().zip(&g[places]) {
            let (old, tilted) = (sum, product);
            sum = Lanes::of(|i| old.0[i] + g.0[i]);
            product = Lanes::of(|i| fused(g.0[i], x.0[i] - mean, tilted.0[i]));
        }
        [sum, product]
    });
    for (channel, moments) in moments.iter_mut().enumerate() {
        let ([sum, tilted], inverse) = (moments.sums, moments.inverse);
        let product = tilted * f64::from(inverse);
        (scale_out[channel], shift_out[channel]) = (product as f32, sum as f32);
        moments.slope = scale[channel] * inverse;
        moments.level = (sum / count) as f32;
        moments.tilt = (product / count) as f32 * inverse;
    }
    for (x, g) in x.chunks_exact(extent.block()).zip(g.chunks_exact_mut(extent.block())) {
        let places = x.chunks_exact(extent.places).zip(g.chunks_exact_mut(extent.places));
        for (&Moments { mean, slope, level, tilt, .. }, (x, g)) in moments.iter().zip(places) {
            for (x, g) in x.iter().zip(g) {
                *g = Lanes::of(|i| slope * (fused(mean - x.0[i], tilt, g.0[i]) - level));
            }
        }
    }
}

/// Mean and inverse root of every group of every record: two [`Lanes`] for each block and group.
pub(super) fn group_forward(
    groups: usize,
    extent: Extent,
    (scale, shift): (&[f32], &[f32]),
    x: &[Lanes],
    (out, kept): (&mut [Lanes], &mut [[Lanes; 2]]),
) {
    let length = extent.block() / groups;
    let count = 1.0 / length as f32;
    for (at, (x, out)) in x.chunks_exact(length).zip(out.chunks_exact_mut(length)).enumerate() {
        let mut mean = Lanes::ZERO;
        for x in x {
            mean = Lanes::of(|i| mean.0[i] + x.0[i]);
        }
        mean = Lanes::of(|i| mean.0[i] * count);
        let mut square = Lanes::ZERO;
        for x in x {
            square = Lanes::of(|i| fused(x.0[i] - mean.0[i], x.0[i] - mean.0[i], square.0[i]));
        }
        let inverse = Lanes::of(|i| inverse_root(square.0[i] * count));
        kept[at] = [mean, inverse];
        for (place, (x, out)) in x.iter().zip(out).enumerate() {
            let channel = (at % groups * length + place) / extent.places;
            let (scale, shift) = (scale[channel], shift[channel]);
            *out = Lanes::of(|i| fused((x.0[i] - mean.0[i]) * inverse.0[i], scale, shift));
        }
    }
}

/// The gradient through the statistics of each group, in place; gradients of scale and shift are added to, and so are the
/// squared norms of each record's, by block, if asked for.
pub(super) fn group_back(
    groups: usize,
    extent: Extent,
    scale: &[f32],
    (x, kept): (&[Lanes], &[[Lanes; 2]]),
    g: &mut [Lanes],
    (scale_out, shift_out): (&mut [f32], &mut [f32]),
    mut squares: Option<&mut [Lanes]>,
) {
    let length = extent.block() / groups;
    let count = 1.0 / length as f32;
    for (at, (x, g)) in x.chunks_exact(length).zip(g.chunks_exact_mut(length)).enumerate() {
        let [mean, inverse] = kept[at];
        let first = at % groups * (extent.channels / groups);
        // Sums over the group of the gradient at the normalised numbers, and of its product with them.
        let (mut level, mut tilt) = (Lanes::ZERO, Lanes::ZERO);
        let channels = x.chunks_exact(extent.places).zip(g.chunks_exact(extent.places));
        for (channel, (x, g)) in (first..).zip(channels) {
            let (mut sum, mut product) = (Lanes::ZERO, Lanes::ZERO);
            for (x, g) in x.iter().zip(g) {
                sum = Lanes::of(|i| sum.0[i] + g.0[i]);
                product = Lanes::of(|i| fused((x.0[i] - mean.0[i]) * inverse.0[i], g.0[i], product.0[i]));
            }
            if let Some(squares) = &mut squares {
                let out = &mut squares[at / groups];
                let old = *out;
                *out = Lanes::of(|i| old.0[i] + (sum.0[i] * sum.0[i] + product.0[i] * product.0[i]));
            }
            shift_out[channel] += sum.sum();
            scale_out[channel] += product.sum();
            level = Lanes::of(|i| fused(scale[channel], sum.0[i], level.0[i]));
            tilt = Lanes::of(|i| fused(scale[channel], product.0[i], tilt.0[i]));
        }
        for (place, (x, g)) in x.iter().zip(g).enumerate() {
            let scale = scale[first + place / extent.places];
            *g = Lanes::of(|i| {
                let normal = (x.0[i] - mean.0[i]) * inverse.0[i];
                inverse.0[i] * (scale * g.0[i] - count * (level.0[i] + normal * tilt.0[i]))
            });
        }
    }
}
