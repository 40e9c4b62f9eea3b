//! The statistics of a client's records: mean squared differences, and the scatter matrix they follow from.

use super::{Own, Records, Smooth};
use crate::Dataset;
use crate::unsolved::Unsolved;
use fedkin_numeric::norm2;
use fedkin_privacy::{Clip, NotFinite, Symmetric};

/// A hair below a bound, so that rounding cannot lift a norm above it.
const BELOW: f64 = 1.0 - 1e-12;

/// The mean squared differences of a client's records, with every record's own vector scaled down to at most `clip`
/// where there is one: (6) and the clipping of section IV-D.
pub fn means(problem: &Smooth, data: &Dataset, clip: Option<f64>) -> Result<Own, Unsolved> {
    let Some(nodes) = problem.nodes(data.columns()) else {
        return Err(Unsolved("a graph needs at least 2 nodes"));
    };
    let share = 1.0 / data.rows() as f64;
    let mut zbar = vec![0.0; super::pairs_of(nodes)];
    if let (Records::Signals, None) = (problem.records, clip) {
        add_all_differences(share, data, &mut zbar);
        return Own::new(zbar);
    }
    let mut one = Vec::new();
    for i in 0..data.rows() {
        let row = data.row(i);
        match (problem.records, clip) {
            (_, None) => add(share, row, &mut zbar)?,
            (records, Some(clip)) => {
                one.clear();
                one.resize(zbar.len(), 0.0);
                match records {
                    Records::Signals => add_differences(1.0, row, &mut one),
                    Records::Distances => add(1.0, row, &mut one)?,
                }
                let norm = norm2(&one).sqrt();
                let scale = if norm > clip { clip / norm * BELOW } else { 1.0 };
                add(share * scale, &one, &mut zbar)?;
            }
        }
    }
    Own::new(zbar)
}

fn add(share: f64, values: &[f64], zbar: &mut [f64]) -> Result<(), Unsolved> {
    for (zbar, value) in zbar.iter_mut().zip(values) {
        if *value < 0.0 {
            return Err(Unsolved("a squared difference is below 0"));
        }
        *zbar += share * value;
    }
    Ok(())
}

fn add_differences(share: f64, row: &[f64], zbar: &mut [f64]) {
    let mut rest = zbar;
    for (node, own) in row.iter().enumerate() {
        let others = &row[node + 1..];
        let (pairs, below) = rest.split_at_mut(others.len());
        for (z, other) in pairs.iter_mut().zip(others) {
            let difference = own - other;
            *z += share * (difference * difference);
        }
        rest = below;
    }
}

/// Records and columns that are worked on together: they stay in the nearest cache.
const RECORDS: usize = 32;
const COLUMNS: usize = 16;

/// `add_differences` for all records in turn, with the same bits: every pair adds up its records in their order, but some
/// of the records of some of the pairs at a time.
fn add_all_differences(share: f64, data: &Dataset, zbar: &mut [f64]) {
    let nodes = data.columns();
    // Where the pair (node, other) stands, less the other.
    let before = |node: usize| node * (2 * nodes - node - 1) / 2;
    let mut tile: Vec<[f64; COLUMNS]> = Vec::with_capacity(RECORDS);
    let mut turned = vec![0.0; nodes * RECORDS];
    for first in (0..data.rows()).step_by(RECORDS) {
        let count = RECORDS.min(data.rows() - first);
        for r in 0..count {
            for (node, x) in data.row(first + r).iter().enumerate() {
                turned[node * RECORDS + r] = *x;
            }
        }
        for begin in (0..nodes).step_by(COLUMNS) {
            let end = (begin + COLUMNS).min(nodes);
            tile.clear();
            tile.extend((first..first + count).map(|record| {
                let mut columns = [0.0; COLUMNS];
                columns[..end - begin].copy_from_slice(&data.row(record)[begin..end]);
                columns
            }));
            for node in 0..end - 1 {
                let own = &turned[node * RECORDS..node * RECORDS + count];
                let from = begin.max(node + 1);
                let place = before(node) + from - node - 1;
                let pairs = &mut zbar[place..place + end - from];
                let skip = from - begin;
                let mut sums = [0.0; COLUMNS];
                sums[skip..skip + pairs.len()].copy_from_slice(pairs);
                for (own, tile) in own.iter().zip(&tile) {
                    for (sum, other) in sums.iter_mut().zip(tile) {
                        let difference = own - other;
                        *sum += share * (difference * difference);
                    }
                }
                pairs.copy_from_slice(&sums[skip..skip + pairs.len()]);
            }
        }
    }
}

/// The scatter matrix: the mean of `x x'` over records, each less its own mean over the nodes and scaled down to norm
/// `clip`. Squared differences do not see the mean of a record, so taking it away costs nothing and shortens the record.
pub fn scatter(data: &Dataset, clip: Clip) -> Result<Symmetric, NotFinite> {
    let nodes = data.columns();
    let share = 1.0 / data.rows() as f64;
    let mut sum = Symmetric::zero(nodes as u32);
    let mut one = vec![0.0; nodes];
    for i in 0..data.rows() {
        let row = data.row(i);
        let mean = row.iter().sum::<f64>() / nodes as f64;
        for (one, x) in one.iter_mut().zip(row) {
            *one = x - mean;
        }
        clip.apply(&mut one)?;
        let mut rest = sum.upper.as_mut_slice();
        for (node, own) in one.iter().enumerate() {
            let others = &one[node..];
            let (line, below) = rest.split_at_mut(others.len());
            let factor = share * own;
            for (entry, other) in line.iter_mut().zip(others) {
                *entry += factor * other;
            }
            rest = below;
        }
    }
    Ok(sum)
}

/// Mean squared differences of a scatter matrix with noise on it, made that of some signals again: the mean over nodes
/// is taken off both sides, and what is below zero in its spectrum is cut off. Both only look at what was released.
pub fn distances_of(scatter: &Symmetric) -> Option<Vec<f64>> {
    let nodes = scatter.rows as usize;
    let mut full = vec![0.0; nodes * nodes];
    let mut at = 0;
    for i in 0..nodes {
        for j in i..nodes {
            let entry = *scatter.upper.get(at)?;
            (full[i * nodes + j], full[j * nodes + i]) = (entry, entry);
            at += 1;
        }
    }
    let means: Vec<f64> =
        full.chunks_exact(nodes).map(|row| row.iter().sum::<f64>() / nodes as f64).collect();
    let mean = means.iter().sum::<f64>() / nodes as f64;
    for i in 0..nodes {
        for j in 0..nodes {
            full[i * nodes + j] += mean - means[i] - means[j];
        }
    }
    let eigen = fedkin_numeric::eigen::symmetric(&mut full, nodes)?;
    let mut whole = vec![0.0; nodes * nodes];
    for (value, vector) in eigen.values.iter().zip(eigen.vectors.chunks_exact(nodes)) {
        if *value > 0.0 {
            for (i, entry) in vector.iter().enumerate() {
                fedkin_numeric::axpy(value * entry, vector, &mut whole[i * nodes..(i + 1) * nodes]);
            }
        }
    }
    let mut zbar = Vec::with_capacity(super::pairs_of(nodes));
    for i in 0..nodes {
        for j in i + 1..nodes {
            let z = whole[i * nodes + i] + whole[j * nodes + j] - 2.0 * whole[i * nodes + j];
            zbar.push(z.max(0.0));
        }
    }
    Some(zbar)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differences_in_blocks_have_the_bits_of_differences_in_turn() {
        for (nodes, rows) in [(2, 1), (5, 31), (16, 33), (37, 70)] {
            let values: Vec<f64> =
                (0..nodes * rows).map(|i| ((i * 7919 + 13) % 1009) as f64 / 97.0).collect();
            let data = Dataset::new(nodes, values, vec![0.0; rows]).unwrap();
            let share = 1.0 / rows as f64;
            let mut turn = vec![0.0; super::super::pairs_of(nodes)];
            for i in 0..rows {
                add_differences(share, data.row(i), &mut turn);
            }
            let mut blocks = vec![0.0; turn.len()];
            add_all_differences(share, &data, &mut blocks);
            assert_eq!(turn, blocks, "{nodes} nodes, {rows} records");
        }
    }
}
