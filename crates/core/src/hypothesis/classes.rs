//! Records of several classes, and the hypotheses fitted to them.

use super::{
    CLASS_FOREST, CLASS_NEIGHBOURS, CLASS_TREE, Fitted, Kind, MOST_CLASSES, forest, neighbours, tree,
};
use crate::model::Unsolved;

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

    fn sound(&self) -> bool {
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

impl Kind {
    /// Fits weighted records of several classes. The squared error over the shares is split by, which of labels is the
    /// Gini impurity, and a leaf has the weighted mean of the shares.
    pub fn fit_classes(&self, sample: &ClassSample<'_>) -> Result<Vec<f64>, Unsolved> {
        if !sample.sound() {
            return Err(Unsolved(
                "its records, their shares of the classes or their weights are out of range",
            ));
        }
        match self {
            Kind::Tree { leaf, depth } => Ok(tree::fit_classes(sample, *leaf, *depth)),
            Kind::Neighbours { count } => Ok(neighbours::fit_classes(sample, *count)),
            Kind::Forest { trees, leaf, depth } => Ok(forest::fit_classes(sample, *trees, *leaf, *depth)),
            Kind::Linear(_) => Err(Unsolved("a linear model of several classes is a softmax model")),
        }
    }

    /// Whether a list of numbers is a hypothesis of this kind and so many classes that so many records can have given.
    pub fn made_of_classes(&self, flat: &[f64], columns: usize, rows: usize, classes: usize) -> bool {
        // Of a tree the nodes, and the shares of its leaves.
        let tree =
            (2 * rows).saturating_sub(1).saturating_mul(3).saturating_add(rows.saturating_mul(classes));
        let (tag, longest) = match self {
            Kind::Tree { .. } => (CLASS_TREE, 4 + tree),
            Kind::Neighbours { .. } => (CLASS_NEIGHBOURS, 5 + rows * (columns + 1 + classes)),
            Kind::Forest { trees, .. } => (CLASS_FOREST, 4 + *trees as usize * (1 + tree)),
            Kind::Linear(_) => return false,
        };
        flat.first() == Some(&tag)
            && flat.len() <= longest
            && Fitted::read(flat, columns).is_ok_and(|fitted| fitted.classes() == Some(classes))
    }
}

#[cfg(test)]
mod tests;
