//! Sixteen records side by side: the unit of every buffer, and the few kernels that all layers share.
//!
//! A batch is cut into blocks of sixteen records. A buffer holds block after block, in a block feature after
//! feature, and for a feature the numbers of the sixteen records: every loop over records is a vector operation
//! whatever the layer, a block of a net stays in the second-level cache, and the left side of a product is read
//! as it lies. The lanes of a last block that is not full hold zeros at the input, whatever at the layers
//! between, and zeros again in every gradient.
//!
//! Sums are in the order written here, with fused products: `mul_add` is one exact operation of IEEE 754, so its
//! bits are the same on every processor (without the instruction it is computed, slowly). Nothing depends on the
//! size of a cache or on what the processor can do beyond that.
//!
//! A loop that gathers sums is a function of its own that is not inlined and returns them: where the compiler sees what
//! becomes of them, it keeps them in memory or across each other in the registers, to save a few moves at the end.

use wide::f32x8;

/// Records in a block.
pub(super) const LANES: usize = 16;
/// Lanes of a vector of the processor.
pub(super) const HALF: usize = LANES / 2;
/// Rows of a tile of [`Lanes`] that fit the registers beside what is loaded.
pub(super) const ROWS: usize = 6;

/// One number of each of sixteen records.
#[derive(Debug, Clone, Copy, PartialEq)]
#[repr(align(64))]
pub(super) struct Lanes(pub(super) [f32; LANES]);

impl Lanes {
    pub(super) const ZERO: Self = Self([0.0; LANES]);

    #[inline]
    pub(super) fn of(f: impl FnMut(usize) -> f32) -> Self {
        Self(std::array::from_fn(f))
    }

    /// Sum over the records in a fixed order: halves onto each other.
    #[inline(never)]
    pub(super) fn sum(self) -> f32 {
        fold(std::array::from_fn(|i| self.0[i] + self.0[i + HALF]))
    }
}

/// `a b + c`, rounded once.
#[allow(clippy::disallowed_methods, clippy::inline_always)]
// The lint is about products that a compiler may or may not fuse; this one is always fused.
#[inline(always)]
pub(super) fn fused(a: f32, b: f32, c: f32) -> f32 {
    a.mul_add(b, c)
}

#[inline]
fn fold(a: Eight) -> f32 {
    let b: [f32; 4] = std::array::from_fn(|i| a[i] + a[i + 4]);
    (b[0] + b[2]) + (b[1] + b[3])
}

#[allow(clippy::inline_always)] // A call would pass it through memory.
#[inline(always)]
fn half(lanes: &Lanes, number: usize) -> f32x8 {
    f32x8::new(lanes.0.as_chunks().0[number])
}

/// [`Lanes::sum`] of eight at once: the same sums, side by side.
#[inline]
pub(super) fn sums(lanes: &[Lanes; HALF]) -> Eight {
    let a = f32x8::transpose(std::array::from_fn(|i| half(&lanes[i], 0) + half(&lanes[i], 1)));
    let b: [f32x8; 4] = std::array::from_fn(|i| a[i] + a[i + 4]);
    ((b[0] + b[2]) + (b[1] + b[3])).to_array()
}

/// How many blocks hold this many records.
pub(super) fn blocks(records: usize) -> usize {
    records.div_ceil(LANES)
}

/// Cuts `count` rows into tiles of at most `most`, as equal as possible: `(first row, rows)` of each.
pub(super) fn tiles(count: usize, most: usize) -> impl Iterator<Item = (usize, usize)> {
    let number = count.div_ceil(most).max(1);
    (0..number).map(move |i| {
        let (from, to) = (i * count / number, (i + 1) * count / number);
        (from, to - from)
    })
}

/// Calls the function with the number of rows as a constant.
macro_rules! by_rows {
    ($rows:expr, $name:ident ( $($argument:expr),* $(,)? )) => {
        match $rows {
            1 => $name::<1>($($argument),*),
            2 => $name::<2>($($argument),*),
            3 => $name::<3>($($argument),*),
            4 => $name::<4>($($argument),*),
            5 => $name::<5>($($argument),*),
            _ => $name::<6>($($argument),*),
        }
    };
}
pub(super) use by_rows;

/// `sums[m] += weights[m] x` for a tile of rows.
#[allow(clippy::inline_always)] // A call would pass the sums through memory.
#[inline(always)]
pub(super) fn grow<const M: usize>(sums: &mut [[f32; LANES]; M], weights: &[f32; M], x: &[f32; LANES]) {
    for m in 0..M {
        for lane in 0..LANES {
            sums[m][lane] = fused(weights[m], x[lane], sums[m][lane]);
        }
    }
}

/// One vector of the processor.
pub(super) type Eight = [f32; HALF];

/// `sums[m][n] += sum over lanes of a[m] b[n]`, kept in eight lanes until [`close`].
#[allow(clippy::inline_always)] // As above.
#[inline(always)]
pub(super) fn cross<const M: usize, const N: usize>(
    sums: &mut [[Eight; N]; M],
    a: [&Lanes; M],
    b: &[Lanes; N],
) {
    let low = |lanes: &Lanes| -> Eight { std::array::from_fn(|i| lanes.0[i]) };
    let high = |lanes: &Lanes| -> Eight { std::array::from_fn(|i| lanes.0[i + HALF]) };
    cross_half(sums, a.map(low), b.each_ref().map(low));
    cross_half(sums, a.map(high), b.each_ref().map(high));
}

#[allow(clippy::inline_always)] // As above.
#[inline(always)]
fn cross_half<const M: usize, const N: usize>(sums: &mut [[Eight; N]; M], a: [Eight; M], b: [Eight; N]) {
    for n in 0..N {
        for m in 0..M {
            let sum = sums[m][n];
            sums[m][n] = std::array::from_fn(|i| fused(a[m][i], b[n][i], sum[i]));
        }
    }
}

/// Partial sums of [`cross`] before the first term.
pub(super) const fn open<const M: usize, const N: usize>() -> [[Eight; N]; M] {
    [[[0.0; HALF]; N]; M]
}

/// Adds the sums that [`cross`] gathered: the first row of `out`, then the one `stride` behind it, and so on.
pub(super) fn close<const M: usize, const N: usize>(sums: &[[Eight; N]; M], out: &mut [f32], stride: usize) {
    for (m, sums) in sums.iter().enumerate() {
        for (out, sum) in out[m * stride..].iter_mut().zip(sums) {
            *out += fold(*sum);
        }
    }
}

/// Some records: features by rows, and which rows in which order (all in theirs if not said).
#[derive(Clone, Copy)]
pub(super) struct Rows<'a> {
    pub(super) features: &'a [f32],
    pub(super) columns: usize,
    pub(super) order: Option<&'a [u32]>,
}

impl<'a> Rows<'a> {
    pub(super) fn count(self) -> usize {
        self.order.map_or(self.features.len() / self.columns, <[u32]>::len)
    }

    pub(super) fn row(self, i: usize) -> &'a [f32] {
        let i = self.order.map_or(i, |order| order[i] as usize);
        &self.features[i * self.columns..(i + 1) * self.columns]
    }

    /// Into blocks; lanes without a record are zero.
    pub(super) fn load(self, out: &mut [Lanes]) {
        let count = self.count();
        for (block, out) in out.chunks_exact_mut(self.columns).enumerate() {
            let first = block * LANES;
            if count - first >= LANES {
                let rows: [&[f32]; LANES] = std::array::from_fn(|i| self.row(first + i));
                let (squares, rest) = out.as_chunks_mut::<LANES>();
                let mut at = 0;
                for square in squares {
                    let mut features = [Lanes::ZERO; LANES];
                    for (features, row) in features.iter_mut().zip(rows) {
                        features.0.copy_from_slice(&row[at..at + LANES]);
                    }
                    turn(&features, square);
                    at += LANES;
                }
                for (f, lanes) in (at..).zip(rest) {
                    *lanes = Lanes::of(|i| rows[i][f]);
                }
            } else {
                out.fill(Lanes::ZERO);
                for i in 0..count - first {
                    for (lanes, x) in out.iter_mut().zip(self.row(first + i)) {
                        lanes.0[i] = *x;
                    }
                }
            }
        }
    }
}

/// Rows of a square into its columns, quarter by quarter.
#[inline]
pub(super) fn turn(rows: &[Lanes; LANES], out: &mut [Lanes; LANES]) {
    for (down, rows) in rows.as_chunks::<HALF>().0.iter().enumerate() {
        for (right, out) in out.as_chunks_mut::<HALF>().0.iter_mut().enumerate() {
            let quarter = f32x8::transpose(std::array::from_fn(|i| half(&rows[i], right)));
            for (out, column) in out.iter_mut().zip(quarter) {
                out.0.as_chunks_mut().0[down] = column.to_array();
            }
        }
    }
}

/// Blocks into records by rows.
pub(super) fn unload(blocks: &[Lanes], columns: usize, rows: &mut [f32]) {
    for (block, rows) in blocks.chunks_exact(columns).zip(rows.chunks_mut(columns * LANES)) {
        for (i, row) in rows.chunks_exact_mut(columns).enumerate() {
            for (x, lanes) in row.iter_mut().zip(block) {
                *x = lanes.0[i];
            }
        }
    }
}

/// Zeroes the lanes behind the last record.
pub(super) fn clear_rest(blocks: &mut [Lanes], columns: usize, records: usize) {
    let used = records % LANES;
    if used != 0 {
        for lanes in &mut blocks[records / LANES * columns..records.div_ceil(LANES) * columns] {
            lanes.0[used..].fill(0.0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_square_is_turned_and_eight_sums_are_the_single_ones() {
        // Numbers of many sizes: another order of a sum would show in its last bits.
        let value =
            |f: usize, i: usize| (1.0 + 0.37 * (17 * f + i) as f32).sin() * 10f32.powi((i % 5) as i32);
        let rows: [Lanes; LANES] = std::array::from_fn(|f| Lanes::of(|i| value(f, i)));
        let mut turned = [Lanes::ZERO; LANES];
        turn(&rows, &mut turned);
        for (i, lanes) in turned.iter().enumerate() {
            assert_eq!(*lanes, Lanes::of(|f| value(f, i)));
        }
        for eight in rows.as_chunks::<HALF>().0 {
            let single: Vec<u32> = eight.iter().map(|lanes| lanes.sum().to_bits()).collect();
            assert_eq!(sums(eight).map(f32::to_bits).to_vec(), single);
        }
    }
}
