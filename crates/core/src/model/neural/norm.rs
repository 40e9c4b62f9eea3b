//! Batch norm and group norm: normalise, then scale and shift by channel.
//!
//! Batch norm takes mean and variance of a channel over all records and places of the batch (and the running ones
//! outside training), group norm those of a group of channels within each record. Variances here are biased; the
//! running variance is moved towards the unbiased one, as PyTorch does.

use super::lanes::{LANES, Lanes, fused};

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
}

fn inverse_root(variance: f32) -> f32 {
    1.0 / (variance + FLOOR).sqrt()
}

/// The sum of a term over all records and places of one channel. The lanes without a record do not count.
fn total(x: &[Lanes], channel: usize, extent: Extent, records: usize, term: impl Fn(f32) -> f32) -> f64 {
    let range = channel * extent.places..(channel + 1) * extent.places;
    let mut all = 0.0;
    for (block, x) in x.chunks_exact(extent.block()).enumerate() {
        let mut sum = Lanes::ZERO;
        for x in &x[range.clone()] {
            let old = sum;
            sum = Lanes::of(|i| old.0[i] + term(x.0[i]));
        }
        let used = records - block * LANES;
        if used < LANES {
            sum.0[used..].fill(0.0);
        }
        all += f64::from(sum.sum());
    }
    all
}

/// The sums of a channel's gradients and of their products with the distance of `x` from the mean. Gradients are zero in
/// the lanes without a record.
fn total_slopes(x: &[Lanes], g: &[Lanes], channel: usize, extent: Extent, mean: f32) -> (f64, f64) {
    let range = channel * extent.places..(channel + 1) * extent.places;
    let (mut all, mut tilted) = (0.0, 0.0);
    for (x, g) in x.chunks_exact(extent.block()).zip(g.chunks_exact(extent.block())) {
        let (mut sum, mut product) = (Lanes::ZERO, Lanes::ZERO);
        for (x, g) in x[range.clone()].iter().zip(&g[range.clone()]) {
            let (old, tilt) = (sum, product);
            sum = Lanes::of(|i| old.0[i] + g.0[i]);
            product = Lanes::of(|i| fused(g.0[i], x.0[i] - mean, tilt.0[i]));
        }
        all += f64::from(sum.sum());
        tilted += f64::from(product.sum());
    }
    (all, tilted)
}

/// Statistics of every channel over the batch.
pub(super) fn batch_moments(x: &[Lanes], extent: Extent, records: usize, moments: &mut [Moments]) {
    let count = (records * extent.places) as f64;
    for (channel, moments) in moments.iter_mut().enumerate() {
        let mean = (total(x, channel, extent, records, |x| x) / count) as f32;
        let square = total(x, channel, extent, records, |x| (x - mean) * (x - mean));
        let variance = (square / count) as f32;
        *moments = Moments { mean, inverse: inverse_root(variance), variance };
    }
}

/// Running statistics as moments.
pub(super) fn running_moments(mean: &[f32], variance: &[f32], moments: &mut [Moments]) {
    for ((moments, &mean), &variance) in moments.iter_mut().zip(mean).zip(variance) {
        *moments = Moments { mean, inverse: inverse_root(variance), variance };
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

/// The gradient through the statistics of the batch, in place; gradients of scale and shift.
pub(super) fn batch_back(
    moments: &[Moments],
    scale: &[f32],
    (extent, records): (Extent, usize),
    x: &[Lanes],
    g: &mut [Lanes],
    (scale_out, shift_out): (&mut [f32], &mut [f32]),
) {
    let count = (records * extent.places) as f64;
    for (channel, &Moments { mean, inverse, .. }) in moments.iter().enumerate() {
        let (sum, tilted) = total_slopes(x, g, channel, extent, mean);
        let product = tilted * f64::from(inverse);
        (scale_out[channel], shift_out[channel]) = (product as f32, sum as f32);
        let slope = scale[channel] * inverse;
        let level = (sum / count) as f32;
        let tilt = (product / count) as f32 * inverse;
        for (x, g) in x.chunks_exact(extent.block()).zip(g.chunks_exact_mut(extent.block())) {
            let range = channel * extent.places..(channel + 1) * extent.places;
            for (x, g) in x[range.clone()].iter().zip(&mut g[range]) {
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
