//! One answer of the audited client as numbers, and where the noise stands in it.

use fedkin_numeric::codec::{Codec, Sink};
use fedkin_privacy::{Charge, Sampler};

/// How loud the noise of a release is on every number of a message, in units of the charged sigma; 0 for a number
/// that is the same whatever the data. `None` where all are alike.
#[derive(Debug, Clone, Default)]
pub struct Layout(Option<Vec<f64>>);

impl Layout {
    /// A graph of so many pairs, and behind it the value and the size of a matrix that are not sent.
    pub fn graph(pairs: usize) -> Self {
        let mut scales = vec![1.0; pairs];
        scales.extend([0.0, 0.0]);
        Self(Some(scales))
    }

    /// A symmetric matrix behind a value that is not sent and its own size; beside the diagonal the noise has half the
    /// variance.
    pub fn symmetric(rows: usize) -> Self {
        let mut scales = vec![0.0, 0.0];
        for beside in (0..rows).rev() {
            scales.push(1.0);
            scales.extend(std::iter::repeat_n(std::f64::consts::FRAC_1_SQRT_2, beside));
        }
        Self(Some(scales))
    }

    fn fill(&self, sigma: f64, size: usize, length: usize, noise: &mut Vec<f64>) {
        match &self.0 {
            None if size == length => noise.resize(length, sigma),
            Some(scales) if scales.len() == length && scales.iter().filter(|s| **s > 0.0).count() == size => {
                noise.extend(scales.iter().map(|scale| scale * sigma));
            }
            _ => {}
        }
    }
}

/// One answer of the audited client, and what an observer can compute beside it: he knows both data sets and
/// all that was asked, and lacks the client's randomness and which of the two data sets it is.
#[derive(Debug, Default)]
pub struct Moment {
    /// What was sent, as numbers.
    pub sent: Vec<f64>,
    /// What it was charged.
    pub charges: Vec<Charge>,
    /// The deviation of the noise on every number, where all that was sent is one Gaussian release; else empty.
    pub noise: Vec<f64>,
    /// The answer on the other data set with the same private randomness.
    pub twin: Option<Vec<f64>>,
    /// The answers without noise on the first and the second data set.
    pub expected: Option<[Vec<f64>; 2]>,
    /// Answers with other private randomness on the first and the second data set.
    pub copies: Vec<[Vec<f64>; 2]>,
}

impl Moment {
    pub(super) fn take<U: Codec>(&mut self, up: &U, charges: &[Charge], layout: &Layout) {
        self.sent = numbers(up);
        self.charges.clear();
        self.charges.extend_from_slice(charges);
        self.twin = None;
        self.expected = None;
        self.copies.clear();
        self.noise.clear();
        if let [charge] = charges
            && Sampler::is_gaussian(charge.mechanism)
        {
            layout.fill(charge.sigma, charge.size as usize, self.sent.len(), &mut self.noise);
        }
    }
}

/// Everything in a message as numbers: words and indices count, too.
pub(super) fn numbers<T: Codec>(value: &T) -> Vec<f64> {
    struct Numbers(Vec<f64>);
    impl Sink for Numbers {
        fn bytes(&mut self, bytes: &[u8]) {
            // An index is put as one little-endian word; longer strings of bytes one by one.
            if bytes.len() <= 8 {
                self.0.push(bytes.iter().rev().fold(0.0, |sum, byte| 256.0 * sum + f64::from(*byte)));
            } else {
                self.0.extend(bytes.iter().map(|byte| f64::from(*byte)));
            }
        }
        fn numbers(&mut self, numbers: &[f64]) {
            self.0.extend_from_slice(numbers);
        }
        fn length(&mut self, _: usize) {}
    }
    let mut numbers = Numbers(Vec::new());
    value.put(&mut numbers);
    numbers.0
}
