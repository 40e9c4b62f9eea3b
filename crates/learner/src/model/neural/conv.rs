//! Two-dimensional convolution, directly on blocks of records: no matrix of patches is ever made.

use super::lanes::{self, Eight, LANES, Lanes, ROWS, by_rows, fused};

/// Sizes of a convolution. Its input is padded already.
#[derive(Debug, Clone)]
pub(super) struct Conv {
    /// Channels, height and width of the input, and of the input with its zeros around.
    pub(super) input: [usize; 3],
    pub(super) padded: [usize; 3],
    pub(super) output: [usize; 3],
    pub(super) size: usize,
    pub(super) stride: usize,
    pub(super) padding: usize,
    /// Where each weight of an output channel finds its number, from the window's corner.
    offsets: Vec<u32>,
}

impl Conv {
    /// None if not even one window fits.
    pub(super) fn new(
        input: [usize; 3],
        channels: usize,
        size: usize,
        stride: usize,
        padding: usize,
    ) -> Option<Self> {
        let padded = [input[0], input[1] + 2 * padding, input[2] + 2 * padding];
        let places = |length: usize| length.checked_sub(size).map(|rest| rest / stride + 1);
        let output = [channels, places(padded[1])?, places(padded[2])?];
        let mut offsets = Vec::with_capacity(input[0] * size * size);
        for channel in 0..input[0] {
            for y in 0..size {
                offsets.extend((0..size).map(|x| ((channel * padded[1] + y) * padded[2] + x) as u32));
            }
        }
        Some(Self { input, padded, output, size, stride, padding, offsets })
    }

    /// Weights of one output channel.
    pub(super) fn taps(&self) -> usize {
        self.offsets.len()
    }

    fn places(&self) -> usize {
        self.output[1] * self.output[2]
    }

    /// Copies a block into the middle of its zeros, which are there already.
    pub(super) fn pad(&self, block: &[Lanes], padded: &mut [Lanes]) {
        let [_, height, width] = self.input;
        for (row, lanes) in block.chunks_exact(width).enumerate() {
            let (channel, y) = (row / height, row % height);
            let at = (channel * self.padded[1] + y + self.padding) * self.padded[2] + self.padding;
            padded[at..at + width].copy_from_slice(lanes);
        }
    }

    /// The weights tile by tile, in a tile tap by tap, as [`Self::forward`] reads them.
    pub(super) fn pack_forward(&self, weights: &[f32], pack: &mut [f32]) {
        let taps = self.taps();
        for (first, rows) in lanes::tiles(self.output[0], ROWS) {
            let pack = &mut pack[first * taps..(first + rows) * taps];
            for (m, row) in weights[first * taps..].chunks_exact(taps).take(rows).enumerate() {
                for (slot, weight) in pack.iter_mut().skip(m).step_by(rows).zip(row) {
                    *slot = *weight;
                }
            }
        }
    }

    /// One block: padded input to output.
    pub(super) fn forward(&self, pack: &[f32], bias: &[f32], x: &[Lanes], out: &mut [Lanes]) {
        let (taps, places) = (self.taps(), self.places());
        for (first, rows) in lanes::tiles(self.output[0], ROWS) {
            let pack = &pack[first * taps..(first + rows) * taps];
            let (bias, out) = (&bias[first..first + rows], &mut out[first * places..(first + rows) * places]);
            by_rows!(rows, forward_tile(self, pack, bias, x, out));
        }
    }

    /// The weights tile by tile of input channels, then by tap and output channel, for [`Self::back`].
    pub(super) fn pack_back(&self, weights: &[f32], pack: &mut [f32]) {
        let ([inputs, ..], [outputs, ..]) = (self.input, self.output);
        let square = self.size * self.size;
        let mut slots = pack.iter_mut();
        for (first, rows) in lanes::tiles(inputs, ROWS) {
            for tap in 0..square {
                for output in 0..outputs {
                    for (input, slot) in (first..first + rows).zip(&mut slots) {
                        *slot = weights[(output * inputs + input) * square + tap];
                    }
                }
            }
        }
    }

    /// One block: gradient at the output to gradient at the input, without its padding.
    pub(super) fn back(&self, pack: &[f32], g: &[Lanes], out: &mut [Lanes]) {
        let area = self.input[1] * self.input[2];
        let each = self.size * self.size * self.output[0];
        for (first, rows) in lanes::tiles(self.input[0], ROWS) {
            let pack = &pack[first * each..(first + rows) * each];
            let out = &mut out[first * area..(first + rows) * area];
            by_rows!(rows, back_tile(self, pack, g, out));
        }
    }

    /// Places of the output whose window holds this row (or column) of the input.
    fn holders(&self, at: usize, places: usize) -> std::ops::Range<usize> {
        let at = at + self.padding;
        let first = (at + 1).saturating_sub(self.size).div_ceil(self.stride);
        first..(at / self.stride + 1).min(places)
    }

    /// One block: adds to the gradients of weights and bias.
    pub(super) fn slope(&self, x: &[Lanes], g: &[Lanes], weights: &mut [f32], bias: &mut [f32]) {
        for (bias, g) in bias.iter_mut().zip(g.chunks_exact(self.places())) {
            let mut sum = Lanes::ZERO;
            for g in g {
                sum = Lanes::of(|i| sum.0[i] + g.0[i]);
            }
            *bias += sum.sum();
        }
        for (column, width) in lanes::tiles(self.size, 5) {
            let most = if width == 5 { 2 } else { 3 };
            for (first, rows) in lanes::tiles(self.output[0], most) {
                let mut run = |tile: fn(&Self, Corner, &[Lanes], &[Lanes], &mut [f32])| {
                    for row in 0..self.input[0] * self.size {
                        tile(self, Corner { channel: first, row, column }, x, g, weights);
                    }
                };
                match (rows, width) {
                    (1, 1) => run(slope_tile::<1, 1>),
                    (1, 2) => run(slope_tile::<1, 2>),
                    (1, 3) => run(slope_tile::<1, 3>),
                    (1, 4) => run(slope_tile::<1, 4>),
                    (1, _) => run(slope_tile::<1, 5>),
                    (2, 1) => run(slope_tile::<2, 1>),
                    (2, 2) => run(slope_tile::<2, 2>),
                    (2, 3) => run(slope_tile::<2, 3>),
                    (2, 4) => run(slope_tile::<2, 4>),
                    (2, _) => run(slope_tile::<2, 5>),
                    (_, 1) => run(slope_tile::<3, 1>),
                    (_, 2) => run(slope_tile::<3, 2>),
                    (_, 3) => run(slope_tile::<3, 3>),
                    _ => run(slope_tile::<3, 4>),
                }
            }
        }
    }
    /// One block: adds the squared norm of each record's gradient of weights and bias.
    pub(super) fn squares(&self, x: &[Lanes], g: &[Lanes], out: &mut Lanes) {
        for g in g.chunks_exact(self.places()) {
            let mut sum = Lanes::ZERO;
            for g in g {
                sum = Lanes::of(|i| sum.0[i] + g.0[i]);
            }
            *out = Lanes::of(|i| fused(sum.0[i], sum.0[i], out.0[i]));
        }
        for (channel, rows) in lanes::tiles(self.output[0], ROWS) {
            for row in 0..self.input[0] * self.size {
                for column in 0..self.size {
                    by_rows!(rows, square_tile(self, Corner { channel, row, column }, x, g, out));
                }
            }
        }
    }
}

fn forward_tile<const M: usize>(conv: &Conv, pack: &[f32], bias: &[f32], x: &[Lanes], out: &mut [Lanes]) {
    let (weights, places) = (pack.as_chunks::<M>().0, conv.places());
    for y in 0..conv.output[1] {
        for column in 0..conv.output[2] {
            let x = &x[(y * conv.padded[2] + column) * conv.stride..];
            let mut sums: [[f32; LANES]; M] = std::array::from_fn(|m| [bias[m]; LANES]);
            for (weights, offset) in weights.iter().zip(&conv.offsets) {
                lanes::grow(&mut sums, weights, &x[*offset as usize].0);
            }
            for (m, sum) in sums.iter().enumerate() {
                out[m * places + y * conv.output[2] + column].0 = *sum;
            }
        }
    }
}

fn back_tile<const M: usize>(conv: &Conv, pack: &[f32], g: &[Lanes], out: &mut [Lanes]) {
    let ([_, height, width], [outputs, rows, columns]) = (conv.input, conv.output);
    let (weights, places) = (pack.as_chunks::<M>().0, conv.places());
    for y in 0..height {
        for x in 0..width {
            let mut sums = [[0.0; LANES]; M];
            for row in conv.holders(y, rows) {
                for column in conv.holders(x, columns) {
                    let tap_y = y + conv.padding - row * conv.stride;
                    let tap = tap_y * conv.size + x + conv.padding - column * conv.stride;
                    let weights = &weights[tap * outputs..(tap + 1) * outputs];
                    for (weights, g) in weights.iter().zip(g[row * columns + column..].iter().step_by(places))
                    {
                        lanes::grow(&mut sums, weights, &g.0);
                    }
                }
            }
            for (m, sum) in sums.iter().enumerate() {
                out[(m * height + y) * width + x].0 = *sum;
            }
        }
    }
}

/// Where a tile of weights begins: output channel, row of the kernel (counted through the input channels), column.
#[derive(Clone, Copy)]
struct Corner {
    channel: usize,
    row: usize,
    column: usize,
}

fn slope_tile<const M: usize, const N: usize>(
    conv: &Conv,
    at: Corner,
    x: &[Lanes],
    g: &[Lanes],
    out: &mut [f32],
) {
    let sums = slope_sums::<M, N>(conv, at, x, g);
    let from = at.channel * conv.taps() + at.row * conv.size + at.column;
    lanes::close(&sums, &mut out[from..], conv.taps());
}

#[inline(never)]
fn slope_sums<const M: usize, const N: usize>(
    conv: &Conv,
    at: Corner,
    x: &[Lanes],
    g: &[Lanes],
) -> [[Eight; N]; M] {
    let ([_, height, width], [_, rows, columns]) = (conv.padded, conv.output);
    let places = conv.places();
    let (channel, row) = (at.row / conv.size, at.row % conv.size);
    let mut sums = lanes::open::<M, N>();
    for y in 0..rows {
        let x = &x[(channel * height + y * conv.stride + row) * width + at.column..];
        let g: [&[Lanes]; M] =
            std::array::from_fn(|m| &g[(at.channel + m) * places + y * columns..][..columns]);
        for column in 0..columns {
            if let Some(x) = x[column * conv.stride..].first_chunk::<N>() {
                lanes::cross(&mut sums, std::array::from_fn(|m| &g[m][column]), x);
            }
        }
    }
    sums
}

fn square_tile<const M: usize>(conv: &Conv, at: Corner, x: &[Lanes], g: &[Lanes], out: &mut Lanes) {
    for sum in record_sums::<M>(conv, at, x, g) {
        *out = Lanes::of(|i| fused(sum.0[i], sum.0[i], out.0[i]));
    }
}

/// The gradient of one weight in each of some output channels, for every record.
#[inline(never)]
fn record_sums<const M: usize>(conv: &Conv, at: Corner, x: &[Lanes], g: &[Lanes]) -> [Lanes; M] {
    let ([_, height, width], [_, rows, columns]) = (conv.padded, conv.output);
    let places = conv.places();
    let (channel, row) = (at.row / conv.size, at.row % conv.size);
    let mut sums = [Lanes::ZERO; M];
    for y in 0..rows {
        let x =
            x[(channel * height + y * conv.stride + row) * width + at.column..].iter().step_by(conv.stride);
        let g: [&[Lanes]; M] =
            std::array::from_fn(|m| &g[(at.channel + m) * places + y * columns..][..columns]);
        for (column, x) in x.take(columns).enumerate() {
            for m in 0..M {
                let old = sums[m];
                sums[m] = Lanes::of(|i| fused(g[m][column].0[i], x.0[i], old.0[i]));
            }
        }
    }
    sums
}
