//! From closeness of pairs to groups, without knowing how many there are.
//!
//! 1. Pairs are of two kinds, kin and not: Otsu's threshold theta over all known pairs tells them apart.
//! 2. Groups grow by average linkage while the best two groups are closer than theta on average.
//! 3. Single clients move to the group they are drawn to most, until nobody moves: linkage cannot take back a mistake.

/// The groups, numbered in the order of their first member.
pub(super) fn groups(close: &[f64], clients: usize) -> Vec<u32> {
    let known: Vec<f64> = (0..clients)
        .flat_map(|a| (a + 1..clients).map(move |b| a * clients + b))
        .map(|at| close[at])
        .filter(|x| !x.is_nan())
        .collect();
    let theta = otsu(known);
    let pull = |a: usize, b: usize| {
        let x = close[a * clients + b];
        if a == b || x.is_nan() { None } else { Some(x - theta) }
    };
    let mut label = linkage(clients, &pull);
    settle(&mut label, clients, &pull);
    renumber(&mut label);
    label
}

/// The middle of the two means when values are cut so that the variance between the two parts is largest.
fn otsu(mut values: Vec<f64>) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    let (count, total) = (values.len() as f64, values.iter().sum::<f64>());
    let (mut below, mut best) = (0.0, (f64::NEG_INFINITY, 0.0));
    for (i, value) in values.iter().enumerate().take(values.len().saturating_sub(1)) {
        below += value;
        let (n, m) = ((i + 1) as f64, count - (i + 1) as f64);
        let (low, high) = (below / n, (total - below) / m);
        let between = n * m * (high - low) * (high - low);
        if between > best.0 {
            best = (between, f64::midpoint(low, high));
        }
    }
    best.1
}

/// Average linkage while the mean pull of two groups is positive; a label per client.
fn linkage(clients: usize, pull: &impl Fn(usize, usize) -> Option<f64>) -> Vec<u32> {
    let mut sums = vec![0.0; clients * clients];
    let mut counts = vec![0.0; clients * clients];
    for a in 0..clients {
        for b in 0..clients {
            if let Some(x) = pull(a, b) {
                (sums[a * clients + b], counts[a * clients + b]) = (x, 1.0);
            }
        }
    }
    let mut label: Vec<u32> = (0..clients as u32).collect();
    let mut alive = vec![true; clients];
    let nearest = |row: usize, alive: &[bool], sums: &[f64], counts: &[f64]| {
        let mut best: Option<(f64, usize)> = None;
        for other in (0..clients).filter(|&other| other != row && alive[other]) {
            let (sum, count) = (sums[row * clients + other], counts[row * clients + other]);
            if count > 0.0 && best.is_none_or(|(mean, _)| sum / count > mean) {
                best = Some((sum / count, other));
            }
        }
        best
    };
    let mut near: Vec<Option<(f64, usize)>> =
        (0..clients).map(|row| nearest(row, &alive, &sums, &counts)).collect();
    loop {
        let mut best: Option<(f64, usize, usize)> = None;
        for (row, near) in near.iter().enumerate() {
            if let Some((mean, other)) = near
                && alive[row]
                && best.is_none_or(|(most, ..)| *mean > most)
            {
                best = Some((*mean, row, *other));
            }
        }
        let Some((mean, a, b)) = best else { break };
        if mean <= 0.0 {
            break;
        }
        let (keep, gone) = (a.min(b), a.max(b));
        alive[gone] = false;
        for other in 0..clients {
            sums[keep * clients + other] += sums[gone * clients + other];
            counts[keep * clients + other] += counts[gone * clients + other];
        }
        for other in 0..clients {
            sums[other * clients + keep] = sums[keep * clients + other];
            counts[other * clients + keep] = counts[keep * clients + other];
        }
        label.iter_mut().filter(|x| **x == gone as u32).for_each(|x| *x = keep as u32);
        for row in (0..clients).filter(|&row| alive[row]) {
            // Only rows that lost their nearest, or may have a nearer one now.
            let touched = row == keep || near[row].is_some_and(|(_, other)| other == keep || other == gone);
            if touched {
                near[row] = nearest(row, &alive, &sums, &counts);
            } else if counts[row * clients + keep] > 0.0 {
                let mean = sums[row * clients + keep] / counts[row * clients + keep];
                if near[row].is_none_or(|(most, _)| mean > most) {
                    near[row] = Some((mean, keep));
                }
            }
        }
    }
    label
}

/// Moves single clients to the group with the largest sum of pulls, or to none, until nobody moves.
fn settle(label: &mut [u32], clients: usize, pull: &impl Fn(usize, usize) -> Option<f64>) {
    const SWEEPS: usize = 50;
    for _ in 0..SWEEPS {
        let mut moved = false;
        for a in 0..clients {
            let mut pulls = vec![0.0; clients];
            let mut members = vec![0u32; clients];
            for (b, group) in label.iter().enumerate() {
                if b != a {
                    members[*group as usize] += 1;
                    pulls[*group as usize] += pull(a, b).unwrap_or(0.0);
                }
            }
            let own = label[a] as usize;
            // Nobody pulls a client that is alone.
            let alone = (0..clients).find(|&group| members[group] == 0).unwrap_or(own);
            let mut best = own;
            for group in (0..clients).filter(|&group| members[group] > 0 || group == alone) {
                if pulls[group] > pulls[best] + 1e-12 {
                    best = group;
                }
            }
            if best != own {
                label[a] = best as u32;
                moved = true;
            }
        }
        if !moved {
            return;
        }
    }
}

/// Numbers groups in the order of their first member.
pub(super) fn renumber(label: &mut [u32]) {
    let mut known: Vec<u32> = Vec::new();
    for label in label {
        let number = known.iter().position(|x| x == label).unwrap_or_else(|| {
            known.push(*label);
            known.len() - 1
        });
        *label = number as u32;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fedkin_numeric::rng::{PublicRng, Random};

    /// Kin are near 1 and others near -0.5, with noise; pairs are known with this chance.
    fn noisy(sizes: &[usize], noise: f64, known: f64, seed: u64) -> (Vec<f64>, Vec<u32>) {
        let mut rng = PublicRng::named(seed, "cut test", 0, 0);
        let truth: Vec<u32> = sizes.iter().enumerate().flat_map(|(q, &size)| vec![q as u32; size]).collect();
        let n = truth.len();
        let mut close = vec![f64::NAN; n * n];
        for a in 0..n {
            for b in a + 1..n {
                let mean = if truth[a] == truth[b] { 1.0 } else { -0.5 };
                let value = if rng.uniform() < known { mean + noise * rng.normal() } else { f64::NAN };
                (close[a * n + b], close[b * n + a]) = (value, value);
            }
        }
        (close, truth)
    }

    #[test]
    fn groups_are_found_without_their_number() {
        for sizes in [&[20, 20][..], &[10, 10, 10, 10], &[30, 6, 4]] {
            for seed in 0..3 {
                let (close, truth) = noisy(sizes, 0.5, 0.7, seed);
                assert_eq!(groups(&close, truth.len()), truth, "{sizes:?} seed {seed}");
            }
        }
    }

    #[test]
    fn the_threshold_lies_between_two_heaps() {
        let heaps: Vec<f64> = (0..10).map(f64::from).chain((100..130).map(f64::from)).collect();
        assert_eq!(otsu(heaps), f64::midpoint(4.5, 114.5));
        assert_eq!(otsu(Vec::new()), 0.0);
    }

    #[test]
    fn nothing_known_leaves_everybody_alone() {
        assert_eq!(groups(&[f64::NAN; 9], 3), [0, 1, 2]);
    }
}
