//! Hypotheses that need not have parameters to average: trees, nearest neighbours, forests, linear models.
//!
//! A [`Kind`] says how a hypothesis is fitted to weighted records; what it fits is a list of numbers, so that it travels,
//! is kept and is hashed like any other model. [`Fitted`] reads such a list: everything in it is checked first, because
//! it may come from anybody. Class labels are 0 and 1, and a hypothesis of them gives the probability of 1: the squared
//! loss of a tree is then half its Gini impurity.
//!
//! | first number | hypothesis | the rest, after the number of columns |
//! |---|---|---|
//! | 1 | tree | number of nodes; three numbers per node in preorder: feature, threshold, right child, or -1, value, 0 |
//! | 2 | nearest neighbours | k; number of records; their weights; their targets; their features |
//! | 3 | forest | number of trees; each as above, from its number of nodes on |
//! | 4 | linear | bias (0 or 1); bound on the norm of features, 0 for none; parameters |
//! | 5 | logistic | as linear |
//! | 6 | Poisson | as linear |
//! | 7 | tree of several classes | number of classes; a tree whose leaves are numbered; their shares of the classes |
//! | 8 | nearest neighbours of several classes | number of classes; as 2, with one share per class for a target |
//! | 9 | forest of several classes | number of classes; number of trees; each as 7, from its number of nodes on |
//!
//! Only the ratios of weights matter, and a record of weight 0 is as good as absent.

mod classes;
mod fitted;
mod forest;
mod linear;
mod neighbours;
mod shares;
#[cfg(test)]
mod tests;
mod tree;

pub use crate::model::settings::DEEPEST;
pub use fitted::{Fitted, Malformed};
pub use shares::{ClassSample, one_hot};

use shares::are_shares;

use crate::model::{Loss, Model};
use crate::unsolved::Unsolved;

const TREE: f64 = 1.0;
const NEIGHBOURS: f64 = 2.0;
const FOREST: f64 = 3.0;
const LINEAR: f64 = 4.0;
const LOGISTIC: f64 = 5.0;
const POISSON: f64 = 6.0;
const CLASS_TREE: f64 = 7.0;
const CLASS_NEIGHBOURS: f64 = 8.0;
const CLASS_FOREST: f64 = 9.0;

/// More classes than this are refused.
pub const MOST_CLASSES: usize = 1000;

/// What is fitted, and how.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Kind {
    /// A regression tree: constant on boxes.
    Tree {
        /// Least number of records in a leaf.
        leaf: u32,
        /// Most splits from the root to a leaf.
        depth: u32,
    },
    /// The weighted mean of the nearest records.
    Neighbours {
        /// How many records are near.
        count: u32,
    },
    /// The mean of trees, each of a bootstrap sample.
    Forest {
        /// How many trees.
        trees: u32,
        /// Least number of records in a leaf.
        leaf: u32,
        /// Most splits from the root to a leaf.
        depth: u32,
    },
    /// A linear or logistic model.
    Linear(Model),
}

/// A number of things, from a number.
fn whole(x: f64) -> Option<usize> {
    // Far more than any list is long, and still exact.
    const MOST: f64 = (1u64 << 40) as f64;
    ((0.0..=MOST).contains(&x) && x.fract() == 0.0).then_some(x as usize)
}

/// Records with weights.
#[derive(Debug, Clone, Copy)]
pub struct Sample<'a> {
    /// Features per record.
    pub columns: usize,
    /// Features by rows.
    pub features: &'a [f64],
    /// One target per record.
    pub targets: &'a [f64],
    /// One weight per record: not negative, and not all of them 0.
    pub weights: &'a [f64],
}

impl Sample<'_> {
    fn row(&self, i: usize) -> &[f64] {
        &self.features[i * self.columns..(i + 1) * self.columns]
    }

    /// The records that count.
    fn counted(&self) -> Vec<u32> {
        (0..self.targets.len()).filter(|&i| self.weights[i] > 0.0).map(|i| i as u32).collect()
    }

    fn sound(&self) -> bool {
        let rows = self.targets.len();
        self.columns > 0
            && self.features.len() == rows * self.columns
            && self.weights.len() == rows
            && self.weights.iter().all(|w| w.is_finite() && *w >= 0.0)
            && self.weights.iter().any(|w| *w > 0.0)
            && self.features.iter().chain(self.targets).all(|x| x.is_finite())
    }
}

impl Kind {
    /// Fits weighted records. `clients` share the regularisation of a linear model.
    pub fn fit(&self, sample: &Sample<'_>, clients: usize) -> Result<Vec<f64>, Unsolved> {
        if !sample.sound() {
            return Err(Unsolved("its records or their weights are no finite numbers"));
        }
        match self {
            Kind::Tree { leaf, depth } => Ok(tree::fit(sample, *leaf, *depth)),
            Kind::Neighbours { count } => Ok(neighbours::fit(sample, *count)),
            Kind::Forest { trees, leaf, depth } => Ok(forest::fit(sample, *trees, *leaf, *depth)),
            Kind::Linear(model) => linear::fit(sample, model, clients),
        }
    }

    /// Its word in a config.
    pub fn name(&self) -> &'static str {
        match self {
            Kind::Tree { .. } => "tree",
            Kind::Neighbours { .. } => "knn",
            Kind::Forest { .. } => "forest",
            Kind::Linear(model) => match model.loss {
                Loss::Squared | Loss::Huber(_) => "ridge",
                Loss::Logistic => "logistic",
                Loss::Poisson => "poisson",
                Loss::Quantile(_) => "quantile",
            },
        }
    }

    /// The first number of what it fits.
    fn tag(&self) -> f64 {
        match self {
            Kind::Tree { .. } => TREE,
            Kind::Neighbours { .. } => NEIGHBOURS,
            Kind::Forest { .. } => FOREST,
            Kind::Linear(model) => linear::tag(model.loss),
        }
    }

    /// Whether a list of numbers is a hypothesis of this kind that so many records can have given.
    pub fn made(&self, flat: &[f64], columns: usize, rows: usize) -> bool {
        flat.first() == Some(&self.tag())
            && flat.len() <= self.longest(columns, rows)
            && Fitted::read(flat, columns).is_ok()
    }

    /// Most numbers of a hypothesis of so many records.
    fn longest(&self, columns: usize, rows: usize) -> usize {
        let tree = 1 + 3 * (2 * rows).saturating_sub(1);
        match self {
            Kind::Tree { .. } => 2 + tree,
            Kind::Neighbours { .. } => 4 + rows * (columns + 2),
            Kind::Forest { trees, .. } => 3 + *trees as usize * tree,
            Kind::Linear(_) => 4 + columns + 1,
        }
    }

    /// Whether it can pass through every record it is fitted to. Then (6) of the PersFL paper moves nothing but
    /// single points.
    pub fn interpolates(&self) -> bool {
        match self {
            // Sixteen splits part more records than a client has.
            Kind::Tree { leaf, depth } => *leaf == 1 && *depth >= 16,
            Kind::Neighbours { count } => *count == 1,
            Kind::Forest { trees, leaf, depth } => *trees == 1 && *leaf == 1 && *depth >= 16,
            Kind::Linear(_) => false,
        }
    }

    /// Whether few records leave its fit open.
    pub fn unregularised(&self) -> bool {
        matches!(self, Kind::Linear(model) if model.regularisation <= 0.0)
    }

    /// Whether what it fits holds the records it was fitted to.
    pub fn holds_records(&self) -> bool {
        matches!(self, Kind::Neighbours { .. })
    }
}

/// The hypothesis that says the same of everything.
pub fn constant(columns: usize, value: f64) -> Vec<f64> {
    let mut flat = vec![TREE, columns as f64];
    tree::put_leaf(&mut flat, value);
    flat
}

/// The linear model whose parameters are 0.
pub fn zero(columns: usize, model: &Model) -> Vec<f64> {
    linear::put(columns, model, &vec![0.0; model.dimension(columns)])
}

/// The parameters of a linear model as it is kept; nothing of anything else.
pub fn parameters(flat: &[f64]) -> &[f64] {
    match flat {
        [tag, _, _, _, parameters @ ..] if [LINEAR, LOGISTIC, POISSON].contains(tag) => parameters,
        _ => &[],
    }
}
