//! A fitted hypothesis, read from the numbers it is kept as.

use super::neighbours::Near;
use super::tree::{ClassTree, Tree};
use super::{
    CLASS_FOREST, CLASS_NEIGHBOURS, CLASS_TREE, FOREST, MOST_CLASSES, NEIGHBOURS, TREE, linear, whole,
};
use crate::model::Model;
use crate::{Dataset, likeliest};
use fedkin_numeric::{axpy, scale};
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
    ClassTree(usize, ClassTree<'a>),
    ClassNear(usize, Near<'a>),
    ClassForest(usize, Vec<ClassTree<'a>>),
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
            Near::take(list, columns, None).map(Form::Near).ok_or(Malformed("the neighbours are damaged"))
        } else if tag == FOREST {
            forest(list, |list| Tree::take(list, columns))
                .map(Form::Forest)
                .ok_or(Malformed("the forest is damaged"))
        } else if let Some(loss) = linear::loss(tag) {
            let read = linear::take(list, columns, loss).map(|(model, w)| Form::Linear(model, w));
            read.ok_or(Malformed("the parameters are damaged"))
        } else if [CLASS_TREE, CLASS_NEIGHBOURS, CLASS_FOREST].contains(&tag) {
            of_classes(tag, list, columns).ok_or(Malformed("the model of several classes is damaged"))
        } else {
            Err(Malformed("the kind is unknown"))
        }?;
        if rest.is_empty() { Ok(Self(form)) } else { Err(Malformed("there are too many")) }
    }

    /// How many classes it tells apart; none where it gives one number, or the probability of label 1.
    pub fn classes(&self) -> Option<usize> {
        match self.0 {
            Form::Tree(_) | Form::Near(_) | Form::Forest(_) | Form::Linear(..) => None,
            Form::ClassTree(classes, _) | Form::ClassNear(classes, _) | Form::ClassForest(classes, _) => {
                Some(classes)
            }
        }
    }

    /// Writes the probabilities of the classes for one record, as many as there is room for. A hypothesis of labels 0 and 1
    /// has two classes.
    pub fn probabilities(&self, row: &[f64], out: &mut [f64]) {
        let mut all = vec![0.0; self.classes().unwrap_or(2)];
        match &self.0 {
            Form::Tree(_) | Form::Near(_) | Form::Forest(_) | Form::Linear(..) => {
                let one = self.predict(row);
                all.copy_from_slice(&[1.0 - one, one]);
            }
            Form::ClassTree(_, tree) => all.copy_from_slice(tree.shares(row)),
            Form::ClassNear(_, near) => near.shares(row, &mut all),
            Form::ClassForest(_, trees) => {
                for tree in trees {
                    axpy(1.0, tree.shares(row), &mut all);
                }
                scale(1.0 / trees.len() as f64, &mut all);
            }
        }
        for (at, out) in out.iter_mut().enumerate() {
            *out = all.get(at).copied().unwrap_or(0.0);
        }
    }

    /// The prediction for one record: a number, the probability of label 1, or of several classes the likeliest, and of
    /// equally likely ones the first.
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
            Form::ClassTree(classes, _) | Form::ClassNear(classes, _) | Form::ClassForest(classes, _) => {
                let mut p = vec![0.0; *classes];
                self.probabilities(row, &mut p);
                likeliest(&p) as f64
            }
        }
    }

    /// The predictions for all rows.
    pub fn predictions(&self, features: &[f64], columns: usize) -> Vec<f64> {
        features.chunks_exact(columns).map(|row| self.predict(row)).collect()
    }

    /// Mean squared error: for labels 0 and 1, of the probability; for several classes, summed over their probabilities.
    pub fn squared_error(&self, data: &Dataset) -> f64 {
        let mut sum = 0.0;
        if let Some(classes) = self.classes() {
            let mut p = vec![0.0; classes];
            for (i, y) in data.targets().iter().enumerate() {
                self.probabilities(data.row(i), &mut p);
                for (class, p) in p.iter().enumerate() {
                    let gap = p - f64::from(u8::from(class as f64 == *y));
                    sum += gap * gap;
                }
            }
            return sum / data.rows() as f64;
        }
        for (i, y) in data.targets().iter().enumerate() {
            let gap = self.predict(data.row(i)) - y;
            sum += gap * gap;
        }
        sum / data.rows() as f64
    }

    /// Share of records whose label is the likelier one; an even chance counts as label 1.
    pub fn accuracy(&self, data: &Dataset) -> f64 {
        let several = self.classes().is_some();
        let right = |i: &usize| {
            let (made, y) = (self.predict(data.row(*i)), data.targets()[*i]);
            if several { made == y } else { (made >= 0.5) == (y >= 0.5) }
        };
        (0..data.rows()).filter(right).count() as f64 / data.rows() as f64
    }

    /// Number of leaves, where it is a tree.
    pub fn leaves(&self) -> Option<usize> {
        match &self.0 {
            Form::Tree(tree) => Some(tree.leaves()),
            Form::ClassTree(_, tree) => Some(tree.leaves()),
            Form::Near(_)
            | Form::Forest(_)
            | Form::Linear(..)
            | Form::ClassNear(..)
            | Form::ClassForest(..) => None,
        }
    }
}

/// A hypothesis of several classes, from behind the number of columns on.
fn of_classes<'a>(tag: f64, list: &mut &'a [f64], columns: usize) -> Option<Form<'a>> {
    let (&classes, rest) = list.split_first()?;
    *list = rest;
    let classes = whole(classes).filter(|classes| (2..=MOST_CLASSES).contains(classes))?;
    if tag == CLASS_TREE {
        ClassTree::take(list, columns, classes).map(|tree| Form::ClassTree(classes, tree))
    } else if tag == CLASS_NEIGHBOURS {
        Near::take(list, columns, Some(classes)).map(|near| Form::ClassNear(classes, near))
    } else {
        let trees = forest(list, |list| ClassTree::take(list, columns, classes));
        trees.map(|trees| Form::ClassForest(classes, trees))
    }
}

fn forest<'a, T>(list: &mut &'a [f64], mut take: impl FnMut(&mut &'a [f64]) -> Option<T>) -> Option<Vec<T>> {
    let (&count, rest) = list.split_first()?;
    *list = rest;
    let count = whole(count)?;
    // A tree takes four numbers at least: no more room than the list can fill.
    if count == 0 || count > list.len() / 4 {
        return None;
    }
    (0..count).map(|_| take(list)).collect()
}
