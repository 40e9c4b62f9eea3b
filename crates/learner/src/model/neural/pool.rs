//! The largest number of each window.

use super::lanes::Lanes;

/// Sizes of a pool.
#[derive(Debug, Clone)]
pub(super) struct Pool {
    pub(super) input: [usize; 3],
    pub(super) output: [usize; 3],
    pub(super) size: usize,
    pub(super) stride: usize,
}

impl Pool {
    /// None if not even one window fits.
    pub(super) fn new(input: [usize; 3], size: usize, stride: usize) -> Option<Self> {
        let places = |length: usize| length.checked_sub(size).map(|rest| rest / stride + 1);
        let output = [input[0], places(input[1])?, places(input[2])?];
        Some(Self { input, output, size, stride })
    }

    /// Calls `each` with every place of the output and the corner of its window.
    fn windows(&self, mut each: impl FnMut(usize, usize)) {
        let ([channels, height, width], [_, rows, columns]) = (self.input, self.output);
        for channel in 0..channels {
            for y in 0..rows {
                let (at, corner) =
                    ((channel * rows + y) * columns, (channel * height + y * self.stride) * width);
                for x in 0..columns {
                    each(at + x, corner + x * self.stride);
                }
            }
        }
    }

    /// One block.
    pub(super) fn forward(&self, x: &[Lanes], out: &mut [Lanes]) {
        let width = self.input[2];
        self.windows(|at, corner| {
            let mut most = x[corner];
            for row in 0..self.size {
                for x in &x[corner + row * width..][..self.size] {
                    let old = most;
                    most = Lanes::of(|i| if x.0[i] > old.0[i] { x.0[i] } else { old.0[i] });
                }
            }
            out[at] = most;
        });
    }

    /// One block: gradient at the output to gradient at the input. It goes to the first place of the window, row by row,
    /// that holds the largest number.
    pub(super) fn back(&self, x: &[Lanes], y: &[Lanes], g: &[Lanes], out: &mut [Lanes]) {
        let width = self.input[2];
        out.fill(Lanes::ZERO);
        self.windows(|at, corner| {
            let (y, mut left) = (y[at], g[at]);
            for row in 0..self.size {
                let from = corner + row * width;
                for (x, out) in x[from..from + self.size].iter().zip(&mut out[from..from + self.size]) {
                    let (old, here) = (*out, left);
                    *out = Lanes::of(|i| old.0[i] + if x.0[i] == y.0[i] { here.0[i] } else { 0.0 });
                    left = Lanes::of(|i| if x.0[i] == y.0[i] { 0.0 } else { here.0[i] });
                }
            }
        });
    }
}
