//! Regression trees by CART: split where the weighted squared error falls most.
//!
//! The records of a node with weights w and targets y have mean a = sum(w y) / W. Splitting off records with weight L and
//! sum s of w (y - a) lowers the squared error by `s^2 W / (L (W - L))`. The first best split wins, by feature and
//! threshold; a threshold lies halfway between two records.
//!
//! Of several classes a target is one share per class, and the squared error sums over them: of labels that is the Gini
//! impurity. The leaves are numbered in the order of the nodes, and a table behind the nodes has the shares of each.

use super::{CLASS_TREE, ClassSample, Sample, TREE};
use fedkin_numeric::rng::{PublicRng, Random};
use fedkin_numeric::{axpy, distance2, norm2, scale};

/// A leaf has no feature.
const LEAF: f64 = -1.0;
/// A split that lowers the squared error by less than this share is rounding, and so is a gain that is better by less.
const WORTH: f64 = 1e-12;

/// Which features a node may split at.
pub(super) enum Features<'a> {
    /// Any.
    All,
    /// So many of them, drawn anew for each node.
    Some(usize, &'a mut PublicRng),
}

pub(super) fn fit(sample: &Sample<'_>, leaf: u32, depth: u32) -> Vec<f64> {
    let mut flat = vec![TREE, sample.columns as f64];
    let once = vec![1; sample.weights.len()];
    grow(sample, (sample.weights, &once), (leaf, depth), &mut Features::All, &mut flat);
    flat
}

/// A tree of several classes.
pub(super) fn fit_classes(sample: &ClassSample<'_>, leaf: u32, depth: u32) -> Vec<f64> {
    let mut flat = vec![CLASS_TREE, sample.columns as f64, sample.classes as f64];
    let once = vec![1; sample.weights.len()];
    grow_classes(sample, (sample.weights, &once), (leaf, depth), &mut Features::All, &mut flat);
    flat
}

/// Adds a tree of several classes: the number of nodes, the nodes, the shares of the leaves.
pub(super) fn grow_classes(
    sample: &ClassSample<'_>,
    drawn: (&[f64], &[u32]),
    limits: (u32, u32),
    features: &mut Features<'_>,
    flat: &mut Vec<f64>,
) {
    let (mut table, mut leaves) = (Vec::new(), 0);
    let mut look = |orders: &[Vec<u32>], part: &Part| {
        let split = look_at_classes(sample, drawn, orders, part, limits, features, &mut table);
        let number = f64::from(leaves);
        leaves += u32::from(split.is_none());
        (number, split)
    };
    grow_by(sample.columns, sample.features, drawn.0, flat, &mut look);
    flat.append(&mut table);
}

/// Adds a tree of one leaf.
pub(super) fn put_leaf(flat: &mut Vec<f64>, value: f64) {
    flat.extend([1.0, LEAF, value, 0.0]);
}

/// Part of the records, on the way to becoming a node.
struct Part {
    start: usize,
    end: usize,
    depth: u32,
    /// The node whose right child this is.
    right_of: Option<usize>,
}

struct Split {
    feature: usize,
    threshold: f64,
}

/// Adds a tree: the number of nodes, then the nodes. `drawn`: the weight of each record, and how often it is there, which
/// is what leaves count. `limits`: least number of records in a leaf, most splits in a row.
pub(super) fn grow(
    sample: &Sample<'_>,
    drawn: (&[f64], &[u32]),
    limits: (u32, u32),
    features: &mut Features<'_>,
    flat: &mut Vec<f64>,
) {
    let mut look = |orders: &[Vec<u32>], part: &Part| look(sample, drawn, orders, part, limits, features);
    grow_by(sample.columns, sample.features, drawn.0, flat, &mut look);
}

/// Adds a tree whose parts are split, or given a number as leaves, by `look`.
fn grow_by(
    columns: usize,
    numbers: &[f64],
    weights: &[f64],
    flat: &mut Vec<f64>,
    look: &mut impl FnMut(&[Vec<u32>], &Part) -> (f64, Option<Split>),
) {
    let counted: Vec<u32> = (0..weights.len()).filter(|&i| weights[i] > 0.0).map(|i| i as u32).collect();
    // The records of a node are one range in the order of each feature: sorted once, parted stably from then on.
    let mut orders: Vec<Vec<u32>> = (0..columns)
        .map(|j| {
            let mut order = counted.clone();
            let value = |i: u32| numbers[i as usize * columns + j];
            order.sort_by(|&a, &b| value(a).total_cmp(&value(b)));
            order
        })
        .collect();
    let head = flat.len();
    flat.push(0.0);
    let node_at = |node: usize| head + 1 + 3 * node;
    let (mut nodes, mut right, mut moved) = (0, vec![false; weights.len()], Vec::new());
    let mut waiting = vec![Part { start: 0, end: counted.len(), depth: 0, right_of: None }];
    while let Some(part) = waiting.pop() {
        if let Some(parent) = part.right_of {
            flat[node_at(parent) + 2] = nodes as f64;
        }
        let (leaf, split) = look(&orders, &part);
        let node = nodes;
        nodes += 1;
        let Some(split) = split else {
            flat.extend([LEAF, leaf, 0.0]);
            continue;
        };
        flat.extend([split.feature as f64, split.threshold, 0.0]);
        for &i in &orders[0][part.start..part.end] {
            right[i as usize] = numbers[i as usize * columns + split.feature] > split.threshold;
        }
        let mut middle = part.start;
        for order in &mut orders {
            moved.clear();
            middle = part.start;
            for at in part.start..part.end {
                let i = order[at];
                if right[i as usize] {
                    moved.push(i);
                } else {
                    order[middle] = i;
                    middle += 1;
                }
            }
            order[middle..part.end].copy_from_slice(&moved);
        }
        let depth = part.depth + 1;
        waiting.push(Part { start: middle, end: part.end, depth, right_of: Some(node) });
        waiting.push(Part { start: part.start, end: middle, depth, right_of: None });
    }
    flat[head] = nodes as f64;
}

/// The mean of a part, and where it is best split.
fn look(
    sample: &Sample<'_>,
    (weights, times): (&[f64], &[u32]),
    orders: &[Vec<u32>],
    part: &Part,
    (leaf, depth): (u32, u32),
    features: &mut Features<'_>,
) -> (f64, Option<Split>) {
    let records = &orders[0][part.start..part.end];
    let target = |i: u32| sample.targets[i as usize];
    let weight = |i: u32| weights[i as usize];
    let first = records.first().map_or(0.0, |&i| target(i));
    if records.iter().all(|&i| target(i) == first) {
        return (first, None);
    }
    let (mut total, mut sum) = (0.0, 0.0);
    for &i in records {
        total += weight(i);
        sum += weight(i) * target(i);
    }
    let mean = sum / total;
    let leaf = leaf.max(1);
    let mut there = 0;
    for &i in records {
        there += times[i as usize];
    }
    if part.depth >= depth || there / 2 < leaf {
        return (mean, None);
    }
    let mut error = 0.0;
    for &i in records {
        error += weight(i) * (target(i) - mean) * (target(i) - mean);
    }
    let drawn;
    let allowed: &mut dyn Iterator<Item = usize> = match features {
        Features::All => &mut (0..sample.columns),
        Features::Some(count, rng) => {
            drawn = rng.choose(sample.columns as u32, *count as u32);
            &mut drawn.iter().map(|&j| j as usize)
        }
    };
    let (mut best, mut split) = (WORTH * error, None);
    for feature in allowed {
        let value = |i: u32| sample.features[i as usize * sample.columns + feature];
        let order = &orders[feature][part.start..part.end];
        let (mut left, mut gathered, mut count) = (0.0, 0.0, 0);
        for pair in order.windows(2) {
            let (here, next) = (pair[0], pair[1]);
            count += times[here as usize];
            left += weight(here);
            gathered += weight(here) * (target(here) - mean);
            let (low, high) = (value(here), value(next));
            if count < leaf || there - count < leaf || low >= high {
                continue;
            }
            let gain = gathered * gathered * total / (left * (total - left));
            if gain > best * (1.0 + WORTH) {
                best = gain;
                split = Some(Split { feature, threshold: between(low, high) });
            }
        }
    }
    (mean, split)
}

/// Where a part is best split by its shares of classes; where it is not, they are added to the table.
fn look_at_classes(
    sample: &ClassSample<'_>,
    (weights, times): (&[f64], &[u32]),
    orders: &[Vec<u32>],
    part: &Part,
    (leaf, depth): (u32, u32),
    features: &mut Features<'_>,
    table: &mut Vec<f64>,
) -> Option<Split> {
    let records = &orders[0][part.start..part.end];
    let shares = |i: u32| sample.shares_of(i as usize);
    let weight = |i: u32| weights[i as usize];
    let first = records.first().map_or(&[][..], |&i| shares(i));
    if records.iter().all(|&i| shares(i) == first) {
        table.extend_from_slice(first);
        return None;
    }
    let (mut total, mut mean, mut there) = (0.0, vec![0.0; sample.classes], 0);
    for &i in records {
        total += weight(i);
        axpy(weight(i), shares(i), &mut mean);
        there += times[i as usize];
    }
    scale(1.0 / total, &mut mean);
    let leaf = leaf.max(1);
    let mut split = None;
    if part.depth < depth && there / 2 >= leaf {
        let mut error = 0.0;
        for &i in records {
            error += weight(i) * distance2(shares(i), &mean);
        }
        let drawn;
        let allowed: &mut dyn Iterator<Item = usize> = match features {
            Features::All => &mut (0..sample.columns),
            Features::Some(count, rng) => {
                drawn = rng.choose(sample.columns as u32, *count as u32);
                &mut drawn.iter().map(|&j| j as usize)
            }
        };
        let (mut best, mut gathered) = (WORTH * error, vec![0.0; sample.classes]);
        for feature in allowed {
            let value = |i: u32| sample.features[i as usize * sample.columns + feature];
            let order = &orders[feature][part.start..part.end];
            let (mut left, mut count) = (0.0, 0);
            gathered.fill(0.0);
            for pair in order.windows(2) {
                let (here, next) = (pair[0], pair[1]);
                count += times[here as usize];
                left += weight(here);
                for ((gathered, share), mean) in gathered.iter_mut().zip(shares(here)).zip(&mean) {
                    *gathered += weight(here) * (share - mean);
                }
                let (low, high) = (value(here), value(next));
                if count < leaf || there - count < leaf || low >= high {
                    continue;
                }
                let gain = norm2(&gathered) * total / (left * (total - left));
                if gain > best * (1.0 + WORTH) {
                    best = gain;
                    split = Some(Split { feature, threshold: between(low, high) });
                }
            }
        }
    }
    if split.is_none() {
        table.append(&mut mean);
    }
    split
}

/// A threshold that parts two numbers; two neighbouring numbers have nothing between them.
fn between(low: f64, high: f64) -> f64 {
    let middle = low + (high - low) / 2.0;
    if middle < high { middle } else { low }
}

/// A tree of several classes as it is read.
#[derive(Debug, Clone, Copy)]
pub(super) struct ClassTree<'a> {
    tree: Tree<'a>,
    classes: usize,
    table: &'a [f64],
}

impl<'a> ClassTree<'a> {
    /// Takes a tree of so many classes off the front of a list of finite numbers.
    pub(super) fn take(list: &mut &'a [f64], columns: usize, classes: usize) -> Option<Self> {
        let tree = Tree::take(list, columns)?;
        let leaves = tree.leaves();
        let (table, rest) = list.split_at_checked(leaves.checked_mul(classes)?)?;
        *list = rest;
        let numbered = tree.leaf_values().enumerate().all(|(number, value)| value == number as f64);
        (numbered && super::are_shares(table, classes)).then_some(Self { tree, classes, table })
    }

    /// The shares of the classes where a record belongs.
    pub(super) fn shares(&self, row: &[f64]) -> &'a [f64] {
        let at = self.tree.predict(row) as usize * self.classes;
        self.table.get(at..at + self.classes).unwrap_or_default()
    }

    /// Number of leaves.
    pub(super) fn leaves(&self) -> usize {
        self.tree.leaves()
    }
}

/// A tree as it is read: nodes in preorder, three numbers each.
#[derive(Debug, Clone, Copy)]
pub(super) struct Tree<'a>(&'a [f64]);

impl<'a> Tree<'a> {
    /// Takes a tree off the front of a list of finite numbers.
    pub(super) fn take(list: &mut &'a [f64], columns: usize) -> Option<Self> {
        let (&count, rest) = list.split_first()?;
        let count = super::whole(count)?;
        let (nodes, rest) = rest.split_at_checked(count.checked_mul(3)?)?;
        *list = rest;
        // In preorder the left child follows its parent; a leaf is followed by the right child that has waited least.
        let mut waiting: Vec<usize> = Vec::new();
        let mut expected = Some(0);
        for (at, node) in nodes.chunks_exact(3).enumerate() {
            if expected != Some(at) {
                return None;
            }
            if node[0] == LEAF {
                expected = waiting.pop();
            } else {
                let (feature, right) = (super::whole(node[0])?, super::whole(node[2])?);
                if feature >= columns || right <= at + 1 || waiting.last().is_some_and(|&last| right >= last)
                {
                    return None;
                }
                waiting.push(right);
                expected = Some(at + 1);
            }
        }
        (count > 0 && expected.is_none()).then_some(Self(nodes))
    }

    pub(super) fn predict(&self, row: &[f64]) -> f64 {
        let mut at = 0;
        // Children come after their parents, so this ends.
        while let Some(&[feature, number, right]) = self.0.get(3 * at..3 * at + 3) {
            if feature == LEAF {
                return number;
            }
            at = if row[feature as usize] <= number { at + 1 } else { right as usize };
        }
        f64::NAN
    }

    /// Number of leaves.
    pub(super) fn leaves(&self) -> usize {
        self.leaf_values().count()
    }

    /// The numbers of the leaves, in the order of the nodes.
    fn leaf_values(&self) -> impl Iterator<Item = f64> {
        self.0.chunks_exact(3).filter(|node| node[0] == LEAF).map(|node| node[1])
    }
}
