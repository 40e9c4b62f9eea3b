//! How good a model is on records, by its predictions.

use super::{Family, Output};
use crate::Dataset;
use crate::model::{Loss, Model};
use fedkin_numeric::ln;

/// Mean squared error of the predictions; of a probability, its distance from the label. Not a number where the model
/// predicts nothing.
pub fn mean_squared_error(family: &dyn Family, data: &Dataset, w: &[f64]) -> f64 {
    mean(
        data,
        |each| family.predict(w, data, each),
        |prediction, y| {
            let gap = prediction.first().map_or(f64::NAN, |value| value - y);
            gap * gap
        },
    )
}

/// Predictions, one record after the other.
type Predictions<'a> = dyn FnMut(&mut dyn FnMut(usize, &[f64])) + 'a;

fn mean(
    data: &Dataset,
    mut predictions: impl FnMut(&mut dyn FnMut(usize, &[f64])),
    score: impl Fn(&[f64], f64) -> f64,
) -> f64 {
    let (mut sum, mut count) = (0.0, 0);
    predictions(&mut |i, prediction| {
        sum += score(prediction, data.targets()[i]);
        count += 1;
    });
    if count == data.rows() { sum / count as f64 } else { f64::NAN }
}

/// The mean loss of predictions where a family has no loss of its own: squared error, or -ln of the label's probability.
pub(super) fn plain_loss(output: Output, predictions: &mut Predictions<'_>, data: &Dataset) -> f64 {
    mean(data, predictions, |prediction, y| match (output, prediction) {
        (Output::Probability, [p]) => cross_entropy(*p, y),
        (Output::Classes(_), p) => -ln(p.get(y as usize).copied().unwrap_or(0.0).max(LEAST)),
        (_, [value]) => (value - y) * (value - y),
        _ => f64::NAN,
    })
}

fn cross_entropy(p: f64, y: f64) -> f64 {
    let p = p.clamp(LEAST, 1.0 - LEAST);
    -(y * ln(p) + (1.0 - y) * ln(1.0 - p))
}

/// Mean loss of a linear model on records as they came, regularisation left out.
pub(super) fn linear_loss(model: &Model, data: &Dataset, w: &[f64]) -> f64 {
    let mut sum = 0.0;
    for (i, &y) in data.targets().iter().enumerate() {
        let prediction = model.predict(data.row(i), w);
        sum += match model.loss {
            Loss::Logistic => cross_entropy(prediction, y),
            loss => loss.value(prediction, y),
        };
    }
    sum / data.rows() as f64
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

/// How good a model of labels is, in one pass over the records: an even chance of two labels counts as label 1, and of
/// equally likely classes the first counts. `None` where the family predicts no labels, or these numbers are none of its
/// models.
pub fn quality(family: &dyn Family, data: &Dataset, w: &[f64]) -> Option<Quality> {
    let output = family.output();
    let mut tally = Tally::default();
    family.predict(w, data, &mut |i, p| {
        let y = data.targets()[i];
        tally.records += 1;
        match (output, p) {
            (Output::Probability, [p]) => tally.probability(*p, y),
            _ => tally.classes(p, y),
        }
    });
    (output.classes() > 0 && tally.records == data.rows()).then(|| tally.quality())
}

/// The probabilities behind the outputs of a net.
pub fn probabilities_of_outputs(z: &[f32], p: &mut Vec<f64>) {
    let most = z.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    p.clear();
    p.extend(z.iter().map(|z| fedkin_numeric::exp(f64::from(z - most))));
    let sum: f64 = p.iter().sum();
    fedkin_numeric::scale(1.0 / sum, p);
}

impl Tally {
    /// Takes the probability of label 1.
    fn probability(&mut self, p: f64, y: f64) {
        self.right += f64::from((p >= 0.5) == (y >= 0.5));
        self.log_loss += cross_entropy(p, y);
        self.brier += (p - y) * (p - y);
        self.bin(p, y >= 0.5);
    }

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
    use super::super::{Linear, SoftmaxFamily};
    use super::*;
    use crate::model::Softmax;

    fn linear(loss: Loss) -> Linear {
        Linear::new(Model { loss, regularisation: 0.0, bias: false, feature_norm: None })
    }

    #[test]
    fn the_quality_of_a_known_case() {
        // A weight of ln 3 on features of -1, 0 and 1 says 1/4, 1/2 and 3/4.
        let data = Dataset::new(1, vec![1.0, 1.0, -1.0, 0.0], vec![1.0, 0.0, 0.0, 1.0]).unwrap();
        let (model, w) = (linear(Loss::Logistic), [ln(3.0)]);
        let found = quality(&model, &data, &w).unwrap();
        assert_eq!(found.accuracy, 0.75);
        assert!((found.log_loss - model.mean_loss(&w, &data)).abs() < 1e-15);
        assert!((found.brier - (0.0625 + 0.5625 + 0.0625 + 0.25) / 4.0).abs() < 1e-15);
        // Bins: two at 3/4 with one hit, one at 1/4 without, one at 1/2 with.
        assert!((found.calibration - (0.5 + 0.25 + 0.5) / 4.0).abs() < 1e-15);
        // The same probabilities from a softmax model of two classes.
        let softmax = Softmax { classes: 2, regularisation: 0.0, bias: false, feature_norm: None };
        let same = quality(&SoftmaxFamily::new(softmax), &data, &[0.0, ln(3.0)]).unwrap();
        assert!((same.brier - found.brier).abs() < 1e-15);
        assert!((same.calibration - found.calibration).abs() < 1e-15);
        // Three equally likely classes: the first is the guess, and it is right one time in two.
        let three = SoftmaxFamily::new(Softmax { classes: 3, ..softmax });
        let even = Dataset::new(1, vec![1.0, 1.0], vec![0.0, 2.0]).unwrap();
        let found = quality(&three, &even, &[0.0; 3]).unwrap();
        assert_eq!(found.accuracy, 0.5);
        assert!((found.brier - 2.0 / 3.0).abs() < 1e-15 && (found.log_loss - ln(3.0)).abs() < 1e-15);
        assert!((found.calibration - (0.5 - 1.0 / 3.0)).abs() < 1e-15);
        assert_eq!(quality(&linear(Loss::Squared), &data, &w), None);
    }

    #[test]
    fn metrics_of_a_known_case() {
        let data = Dataset::new(1, vec![1.0, -1.0, 2.0, 0.0], vec![1.0, 0.0, 0.0, 1.0]).unwrap();
        let ridge = linear(Loss::Squared);
        assert_eq!(mean_squared_error(&ridge, &data, &[1.0]), (0.0 + 1.0 + 4.0 + 1.0) / 4.0);
        let logistic = linear(Loss::Logistic);
        assert_eq!(quality(&logistic, &data, &[1.0]).unwrap().accuracy, 0.75);
        let even = Dataset::new(1, vec![0.0], vec![1.0]).unwrap();
        assert!((logistic.mean_loss(&[1.0], &even) - std::f64::consts::LN_2).abs() < 1e-15);
        assert!(mean_squared_error(&ridge, &data, &[1.0, 2.0]).is_nan(), "no model of this family");
    }
}
