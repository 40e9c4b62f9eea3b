//! Random forests: trees of bootstrap samples, each node looking at two features in three.
//!
//! Drawing n of n records with repetition multiplies their weights by whole numbers. The draws are named, not random: a
//! fit is a function of its records.

use super::tree::{Features, grow};
use super::{FOREST, Sample};
use crate::rng::{PublicRng, Random};

pub(super) fn fit(sample: &Sample<'_>, trees: u32, leaf: u32, depth: u32) -> Vec<f64> {
    let mut flat = vec![FOREST, sample.columns as f64, f64::from(trees.max(1))];
    let counted = sample.counted();
    let looked_at = (2 * sample.columns).div_ceil(3);
    for number in 0..trees.max(1) {
        let mut rng = PublicRng::named(0, "hypothesis/forest", 0, number);
        let mut weights = vec![0.0; sample.weights.len()];
        let mut times = vec![0; sample.weights.len()];
        for _ in 0..counted.len() {
            let i = counted[rng.below(counted.len() as u32) as usize] as usize;
            weights[i] += sample.weights[i];
            times[i] += 1;
        }
        grow(sample, (&weights, &times), (leaf, depth), &mut Features::Some(looked_at, &mut rng), &mut flat);
    }
    flat
}
