//! Records of several classes.

use super::MOST_CLASSES;

/// Records with weights, each with one share per class: of a label all of it in one class, of a prediction the
/// probabilities.
#[derive(Debug, Clone, Copy)]
pub struct ClassSample<'a> {
    /// Features per record.
    pub columns: usize,
    /// How many classes there are.
    pub classes: usize,
    /// Features by rows.
    pub features: &'a [f64],
    /// Shares by rows: not negative, and 1 in all for each record.
    pub shares: &'a [f64],
    /// One weight per record: not negative, and not all of them 0.
    pub weights: &'a [f64],
}

impl<'a> ClassSample<'a> {
    pub(super) fn shares_of(&self, i: usize) -> &'a [f64] {
        &self.shares[i * self.classes..(i + 1) * self.classes]
    }

    pub(super) fn sound(&self) -> bool {
        let rows = self.weights.len();
        self.columns > 0
            && (2..=MOST_CLASSES).contains(&self.classes)
            && self.features.len() == rows * self.columns
            && self.shares.len() == rows * self.classes
            && self.weights.iter().all(|w| w.is_finite() && *w >= 0.0)
            && self.weights.iter().any(|w| *w > 0.0)
            && self.features.iter().all(|x| x.is_finite())
            && are_shares(self.shares, self.classes)
    }
}

/// Whether every row is one of shares: none negative, and 1 in all but for rounding.
pub(super) fn are_shares(rows: &[f64], classes: usize) -> bool {
    rows.chunks(classes).all(|row| {
        let sum: f64 = row.iter().sum();
        row.len() == classes && row.iter().all(|share| *share >= 0.0) && (sum - 1.0).abs() <= 1e-9
    })
}

/// The shares of labels 0 to one less than the number of classes; none where a label is not one of them.
pub fn one_hot(labels: &[f64], classes: usize) -> Option<Vec<f64>> {
    let mut shares = vec![0.0; labels.len() * classes];
    for (row, label) in shares.chunks_exact_mut(classes).zip(labels) {
        let place = (label.fract() == 0.0 && *label >= 0.0).then_some(*label as usize)?;
        *row.get_mut(place)? = 1.0;
    }
    Some(shares)
}
