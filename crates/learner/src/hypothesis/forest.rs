//! Random forests: trees of bootstrap samples, each node looking at two features in three.
//!
//! Drawing n of n records with repetition multiplies their weights by whole numbers. The draws are named, not random: a
//! fit is a function of its records.

use super::tree::{Features, grow, grow_classes};
use super::{CLASS_FOREST, ClassSample, FOREST, Sample};
use fedkin_numeric::rng::{PublicRng, Random};

pub(super) fn fit(sample: &Sample<'_>, trees: u32, leaf: u32, depth: u32) -> Vec<f64> {
    let mut flat = vec![FOREST, sample.columns as f64, f64::from(trees.max(1))];
    draw(sample.columns, sample.weights, trees, |drawn, features| {
        grow(sample, drawn, (leaf, depth), features, &mut flat);
    });
    flat
}

/// The same of several classes.
pub(super) fn fit_classes(sample: &ClassSample<'_>, trees: u32, leaf: u32, depth: u32) -> Vec<f64> {
    let [columns, classes] = [sample.columns, sample.classes].map(|x| x as f64);
    let mut flat = vec![CLASS_FOREST, columns, classes, f64::from(trees.max(1))];
    draw(sample.columns, sample.weights, trees, |drawn, features| {
        grow_classes(sample, drawn, (leaf, depth), features, &mut flat);
    });
    flat
}

/// Calls `grow` with the weights and repetitions of each tree's sample, and the features its nodes look at.
fn draw(
    columns: usize,
    given: &[f64],
    trees: u32,
    mut grow: impl FnMut((&[f64], &[u32]), &mut Features<'_>),
) {
    let counted: Vec<usize> = (0..given.len()).filter(|&i| given[i] > 0.0).collect();
    let looked_at = (2 * columns).div_ceil(3);
    for number in 0..trees.max(1) {
        let mut rng = PublicRng::named(0, "hypothesis/forest", 0, number);
        let mut weights = vec![0.0; given.len()];
        let mut times = vec![0; given.len()];
        for _ in 0..counted.len() {
            let i = counted[rng.below(counted.len() as u32) as usize];
            weights[i] += given[i];
            times[i] += 1;
        }
        grow((&weights, &times), &mut Features::Some(looked_at, &mut rng));
    }
}
