//! A fitted hypothesis, read from the numbers it is kept as.

use super::neighbours::Near;
use super::tree::Tree;
use super::{FOREST, LINEAR, LOGISTIC, NEIGHBOURS, TREE, linear};
use crate::dataset::Dataset;
use crate::model::{Loss, Model};
use thiserror::Error;

/// Why a list of numbers is no hypothesis.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("these numbers are no hypothesis: {0}")]
pub struct Malformed(pub &'static str);

/// A hypothesis that can predict.
#[derive(Debug, Clone)]
pub struct Fitted<'a>(Form<'a>);

#[derive(Debug, Clone)]
enum Form<'a> {
    Tree(Tree<'a>),
    Near(Near<'a>),
    Forest(Vec<Tree<'a>>),
    Linear(Model, &'a [f64]),
}

/// A number of things, from a number.
pub(super) fn whole(x: f64) -> Option<usize> {
    // Far more than any list is long, and still exact.
    const MOST: f64 = (1u64 << 40) as f64;
    ((0.0..=MOST).contains(&x) && x.fract() == 0.0).then_some(x as usize)
}

impl<'a> Fitted<'a> {
    /// Reads a hypothesis about so many columns. Whatever the numbers are, this ends and does not panic, and neither does
    /// a prediction with what it gives.
    pub fn read(flat: &'a [f64], columns: usize) -> Result<Self, Malformed> {
        if flat.iter().any(|x| !x.is_finite()) {
            return Err(Malformed("one of them is not finite"));
        }
        let Some((&[tag, width], mut rest)) = flat.split_first_chunk::<2>() else {
            return Err(Malformed("there are too few"));
        };
        if columns == 0 || whole(width) != Some(columns) {
            return Err(Malformed("they are about another number of features"));
        }
        let list = &mut rest;
        let form = if tag == TREE {
            Tree::take(list, columns).map(Form::Tree).ok_or(Malformed("the tree is damaged"))
        } else if tag == NEIGHBOURS {
            Near::take(list, columns).map(Form::Near).ok_or(Malformed("the neighbours are damaged"))
        } else if tag == FOREST {
            forest(list, columns).map(Form::Forest).ok_or(Malformed("the forest is damaged"))
        } else if tag == LINEAR || tag == LOGISTIC {
            let loss = if tag == LINEAR { Loss::Squared } else { Loss::Logistic };
            let read = linear::take(list, columns, loss).map(|(model, w)| Form::Linear(model, w));
            read.ok_or(Malformed("the parameters are damaged"))
        } else {
            Err(Malformed("the kind is unknown"))
        }?;
        if rest.is_empty() { Ok(Self(form)) } else { Err(Malformed("there are too many")) }
    }

    /// The prediction for one record: a number, or the probability of label 1.
    pub fn predict(&self, row: &[f64]) -> f64 {
        match &self.0 {
            Form::Tree(tree) => tree.predict(row),
            Form::Near(near) => near.predict(row),
            Form::Forest(trees) => {
                let mut sum = 0.0;
                for tree in trees {
                    sum += tree.predict(row);
                }
                sum / trees.len() as f64
            }
            Form::Linear(model, w) => model.predict(row, w),
        }
    }

    /// The predictions for all rows.
    pub fn predictions(&self, features: &[f64], columns: usize) -> Vec<f64> {
        features.chunks_exact(columns).map(|row| self.predict(row)).collect()
    }

    /// Mean squared error: for labels 0 and 1, of the probability.
    pub fn squared_error(&self, data: &Dataset) -> f64 {
        let mut sum = 0.0;
        for (i, y) in data.targets().iter().enumerate() {
            let gap = self.predict(data.row(i)) - y;
            sum += gap * gap;
        }
        sum / data.rows() as f64
    }

    /// Share of records whose label is the likelier one; an even chance counts as label 1.
    pub fn accuracy(&self, data: &Dataset) -> f64 {
        let right = |i: &usize| (self.predict(data.row(*i)) >= 0.5) == (data.targets()[*i] >= 0.5);
        (0..data.rows()).filter(right).count() as f64 / data.rows() as f64
    }

    /// Number of leaves, where it is a tree.
    pub fn leaves(&self) -> Option<usize> {
        match &self.0 {
            Form::Tree(tree) => Some(tree.leaves()),
            _ => None,
        }
    }
}

fn forest<'a>(list: &mut &'a [f64], columns: usize) -> Option<Vec<Tree<'a>>> {
    let (&count, rest) = list.split_first()?;
    *list = rest;
    let count = whole(count)?;
    // A tree takes four numbers at least: no more room than the list can fill.
    if count == 0 || count > list.len() / 4 {
        return None;
    }
    (0..count).map(|_| Tree::take(list, columns)).collect()
}
