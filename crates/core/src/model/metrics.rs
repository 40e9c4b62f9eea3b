//! How good a model is on records.

use super::{Loss, Model, NetModel, Softmax};
use crate::dataset::Dataset;
use crate::numeric::ln;

fn mean(data: &Dataset, score: impl Fn(&[f64], f64) -> f64) -> f64 {
    let mut sum = 0.0;
    for (i, &y) in data.targets().iter().enumerate() {
        sum += score(data.row(i), y);
    }
    sum / data.rows() as f64
}

/// Mean squared error of the predictions.
pub fn mean_squared_error(model: &Model, data: &Dataset, w: &[f64]) -> f64 {
    mean(data, |x, y| {
        let gap = model.predict(x, w) - y;
        gap * gap
    })
}

/// Share of records whose label is the likelier one; an even chance counts as label 1.
pub fn accuracy(model: &Model, data: &Dataset, w: &[f64]) -> f64 {
    mean(data, |x, y| f64::from((model.predict(x, w) >= 0.5) == (y >= 0.5)))
}

/// Mean loss of the predictions, regularisation left out.
pub fn log_loss(model: &Model, data: &Dataset, w: &[f64]) -> f64 {
    mean(data, |x, y| {
        let p = model.predict(x, w);
        match model.loss {
            Loss::Logistic => {
                let p = p.clamp(1e-15, 1.0 - 1e-15);
                -(y * crate::numeric::ln(p) + (1.0 - y) * crate::numeric::ln(1.0 - p))
            }
            loss => loss.value(p, y),
        }
    })
}

/// A probability is never taken for less than this where its logarithm is.
const LEAST: f64 = 1e-15;
/// Bins of equal width over [0, 1], by which calibration is measured.
const BINS: usize = 10;

/// How good probabilities are on records.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Quality {
    /// Share of records whose label is the likeliest one.
    pub accuracy: f64,
    /// Mean of -ln of the label's probability.
    pub log_loss: f64,
    /// Mean squared distance of the probabilities from the truth: of two classes (p - y)^2, which is 0.25 for a coin; of more
    /// the sum over all classes of `(p_c - [c = y])^2`.
    pub brier: f64,
    /// Expected calibration error: the probabilities fall into ten bins of equal width, and the error is the mean over records
    /// of |mean probability - share of what happened| of their bin. Of two classes it is the probability of label 1 and the
    /// share of label 1; of more that of the likeliest class and the share of right answers.
    pub calibration: f64,
}

/// Sums on the way to a [`Quality`].
#[derive(Default)]
struct Tally {
    records: usize,
    right: f64,
    log_loss: f64,
    brier: f64,
    /// Sum of probabilities less what happened, by bin.
    gaps: [f64; BINS],
}

impl Tally {
    fn bin(&mut self, probability: f64, happened: bool) {
        let at = ((probability * BINS as f64) as usize).min(BINS - 1);
        self.gaps[at] += probability - f64::from(u8::from(happened));
    }

    fn quality(&self) -> Quality {
        let count = self.records as f64;
        Quality {
            accuracy: self.right / count,
            log_loss: self.log_loss / count,
            brier: self.brier / count,
            // n_b / n times |sum of gaps| / n_b: the sizes of the bins cancel.
            calibration: self.gaps.iter().map(|gap| gap.abs()).sum::<f64>() / count,
        }
    }
}

/// How good a logistic model is, in one pass over the records; an even chance counts as label 1.
pub fn quality(model: &Model, data: &Dataset, w: &[f64]) -> Quality {
    let mut tally = Tally { records: data.rows(), ..Tally::default() };
    for (i, &y) in data.targets().iter().enumerate() {
        let p = model.predict(data.row(i), w);
        tally.right += f64::from((p >= 0.5) == (y >= 0.5));
        let safe = p.clamp(LEAST, 1.0 - LEAST);
        tally.log_loss += -(y * ln(safe) + (1.0 - y) * ln(1.0 - safe));
        tally.brier += (p - y) * (p - y);
        tally.bin(p, y >= 0.5);
    }
    tally.quality()
}

/// How good a softmax model is, in one pass over the records; of equally likely classes the first counts.
pub fn quality_of_classes(model: &Softmax, data: &Dataset, w: &[f64]) -> Quality {
    let mut tally = Tally { records: data.rows(), ..Tally::default() };
    let mut p = vec![0.0; model.classes];
    for (i, &y) in data.targets().iter().enumerate() {
        model.predict(data.row(i), w, &mut p);
        tally.classes(&p, y);
    }
    tally.quality()
}

/// How good a net is that tells classes apart, in one pass over the records.
pub fn quality_of_net(model: &NetModel, data: &Dataset, w: &[f64]) -> Quality {
    let mut tally = Tally { records: data.rows(), ..Tally::default() };
    let mut p = Vec::with_capacity(model.outputs());
    model.outputs_of(data, w, |i, z| {
        probabilities_of_outputs(z, &mut p);
        tally.classes(&p, data.targets()[i]);
    });
    tally.quality()
}

/// The probabilities behind the outputs of a net.
pub fn probabilities_of_outputs(z: &[f32], p: &mut Vec<f64>) {
    let most = z.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    p.clear();
    p.extend(z.iter().map(|z| crate::numeric::exp(f64::from(z - most))));
    let sum: f64 = p.iter().sum();
    crate::numeric::scale(1.0 / sum, p);
}

impl Tally {
    /// Takes the probabilities of one record's classes.
    fn classes(&mut self, p: &[f64], y: f64) {
        let tally = self;
        let label = y as usize;
        let guess = likeliest(p);
        tally.right += f64::from(u8::from(guess == label));
        tally.log_loss += -ln(p.get(label).copied().unwrap_or(0.0).max(LEAST));
        if let [_, one] = p {
            tally.brier += (one - y) * (one - y);
            tally.bin(*one, label == 1);
        } else {
            for (c, p) in p.iter().enumerate() {
                let gap = p - f64::from(u8::from(c == label));
                tally.brier += gap * gap;
            }
            tally.bin(p[guess], guess == label);
        }
    }
}

/// The likeliest class; of equally likely ones the first.
pub fn likeliest(p: &[f64]) -> usize {
    let mut best = 0;
    for (c, value) in p.iter().enumerate() {
        if *value > p[best] {
            best = c;
        }
    }
    best
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_quality_of_a_known_case() {
        // A weight of ln 3 on features of -1, 0 and 1 says 1/4, 1/2 and 3/4.
        let data = Dataset::new(1, vec![1.0, 1.0, -1.0, 0.0], vec![1.0, 0.0, 0.0, 1.0]).unwrap();
        let model = Model { loss: Loss::Logistic, regularisation: 0.0, bias: false, feature_norm: None };
        let w = [ln(3.0)];
        let found = quality(&model, &data, &w);
        assert_eq!(found.accuracy, 0.75);
        assert!((found.log_loss - log_loss(&model, &data, &w)).abs() < 1e-15);
        assert!((found.brier - (0.0625 + 0.5625 + 0.0625 + 0.25) / 4.0).abs() < 1e-15);
        // Bins: two at 3/4 with one hit, one at 1/4 without, one at 1/2 with.
        assert!((found.calibration - (0.5 + 0.25 + 0.5) / 4.0).abs() < 1e-15);
        // The same probabilities from a softmax model of two classes.
        let softmax = Softmax { classes: 2, regularisation: 0.0, bias: false, feature_norm: None };
        let same = quality_of_classes(&softmax, &data, &[0.0, ln(3.0)]);
        assert!(
            (same.brier - found.brier).abs() < 1e-15 && (same.calibration - found.calibration).abs() < 1e-15
        );
        // Three equally likely classes: the first is the guess, and it is right one time in two.
        let three = Softmax { classes: 3, ..softmax };
        let even = Dataset::new(1, vec![1.0, 1.0], vec![0.0, 2.0]).unwrap();
        let found = quality_of_classes(&three, &even, &[0.0; 3]);
        assert_eq!(found.accuracy, 0.5);
        assert!((found.brier - 2.0 / 3.0).abs() < 1e-15 && (found.log_loss - ln(3.0)).abs() < 1e-15);
        assert!((found.calibration - (0.5 - 1.0 / 3.0)).abs() < 1e-15);
    }

    #[test]
    fn metrics_of_a_known_case() {
        let data = Dataset::new(1, vec![1.0, -1.0, 2.0, 0.0], vec![1.0, 0.0, 0.0, 1.0]).unwrap();
        let ridge = Model { loss: Loss::Squared, regularisation: 0.0, bias: false, feature_norm: None };
        assert_eq!(mean_squared_error(&ridge, &data, &[1.0]), (0.0 + 1.0 + 4.0 + 1.0) / 4.0);
        let logistic = Model { loss: Loss::Logistic, ..ridge };
        assert_eq!(accuracy(&logistic, &data, &[1.0]), 0.75);
        let even = Dataset::new(1, vec![0.0], vec![1.0]).unwrap();
        assert!((log_loss(&logistic, &even, &[1.0]) - std::f64::consts::LN_2).abs() < 1e-15);
    }
}
