//! Hypotheses fitted to records of several classes.

use super::{
    CLASS_FOREST, CLASS_NEIGHBOURS, CLASS_TREE, ClassSample, Fitted, Kind, forest, neighbours, tree,
};
use crate::unsolved::Unsolved;

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
