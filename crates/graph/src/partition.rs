//! How near two divisions of the same nodes are, whatever their parts are called.
//!
//! With `n_ij` the nodes in part `i` of one and part `j` of the other, `a_i` and `b_j` the sizes of the parts, and
//! pairs of nodes counted by whether they are together in the one, in the other, in both or in neither:
//!
//! ```text
//! NMI = I / ((H_a + H_b) / 2),  I = sum n_ij/n ln(n n_ij / (a_i b_j)),  H_a = -sum a_i/n ln(a_i/n)
//! RI  = (pairs together in both + pairs apart in both) / all pairs
//! FMI = pairs together in both / sqrt(pairs together in one * pairs together in the other)
//! ```
//!
//! The mutual information is divided by the arithmetic mean of the entropies (other authors take the largest, the
//! least or the geometric mean). Divisions that are the same up to names have 1 in all three, also where a formula
//! says 0/0: all nodes together, or each alone.

use fedkin_numeric::ln;

/// The three measures.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Agreement {
    /// Normalised mutual information, 0 to 1.
    pub nmi: f64,
    /// Rand index, 0 to 1.
    pub rand: f64,
    /// Index of Fowlkes and Mallows, 0 to 1.
    pub fowlkes_mallows: f64,
}

/// Compares two divisions, each given as the number of the part of every node. `None` where they are not about the
/// same number of nodes, or about none.
pub fn agreement(one: &[u32], other: &[u32]) -> Option<Agreement> {
    if one.len() != other.len() || one.is_empty() {
        return None;
    }
    let mut cells: Vec<(u32, u32)> = one.iter().copied().zip(other.iter().copied()).collect();
    let cells = sizes(&mut cells);
    let rows = sizes(&mut one.to_vec());
    let columns = sizes(&mut other.to_vec());
    if cells.len() == rows.len() && cells.len() == columns.len() {
        return Some(Agreement { nmi: 1.0, rand: 1.0, fowlkes_mallows: 1.0 });
    }
    let n = one.len() as f64;
    let entropy =
        |sizes: &[(u32, f64)]| -> f64 { sizes.iter().map(|(_, size)| size / n * ln(n / size)).sum() };
    let size_of = |sizes: &[(u32, f64)], part: u32| {
        sizes.binary_search_by_key(&part, |&(part, _)| part).map_or(1.0, |at| sizes[at].1)
    };
    let mutual: f64 = cells
        .iter()
        .map(|&((a, b), size)| size / n * ln(n * size / (size_of(&rows, a) * size_of(&columns, b))))
        .sum();
    // Not both are zero: then each had one part, and they were the same.
    let nmi = (mutual / f64::midpoint(entropy(&rows), entropy(&columns))).clamp(0.0, 1.0);
    let both = together(cells.iter().map(|cell| cell.1));
    let first = together(rows.iter().map(|row| row.1));
    let second = together(columns.iter().map(|column| column.1));
    let all = n * (n - 1.0) / 2.0;
    let rand = (all + 2.0 * both - first - second) / all;
    let fowlkes_mallows = if both > 0.0 { both / (first.sqrt() * second.sqrt()) } else { 0.0 };
    Some(Agreement { nmi, rand, fowlkes_mallows: fowlkes_mallows.min(1.0) })
}

/// The parts in ascending order with their sizes.
fn sizes<T: Ord + Copy>(labels: &mut [T]) -> Vec<(T, f64)> {
    labels.sort_unstable();
    labels.chunk_by(|a, b| a == b).map(|part| (part[0], part.len() as f64)).collect()
}

/// Pairs within parts of these sizes.
fn together(sizes: impl Iterator<Item = f64>) -> f64 {
    sizes.map(|size| size * (size - 1.0) / 2.0).sum()
}

/// How many parts a division has.
pub fn parts(labels: &[u32]) -> usize {
    let mut sorted = labels.to_vec();
    sorted.sort_unstable();
    sorted.dedup();
    sorted.len()
}

/// Which part of the other division each part of the one is best called after: pairs (part of one, part of other) that
/// together share most nodes, every part in one pair at most, by part of the one. Parts that share nothing with
/// their partner are left out.
pub fn matching(one: &[u32], other: &[u32]) -> Vec<(u32, u32)> {
    let overlap = Overlap::new(one, other);
    let pairs = overlap.best();
    pairs.into_iter().map(|(row, column)| (overlap.rows[row], overlap.columns[column])).collect()
}

/// Share of the nodes that are in the right part under that matching. NaN of nothing.
pub fn matched_share(one: &[u32], other: &[u32]) -> f64 {
    let overlap = Overlap::new(one, other);
    let right: usize = overlap.best().into_iter().map(|(row, column)| overlap.count(row, column)).sum();
    right as f64 / one.len().min(other.len()) as f64
}

/// How many parts of `found` hold more than half the nodes of two parts of `truth` or more.
pub fn merged(found: &[u32], truth: &[u32]) -> usize {
    let overlap = Overlap::new(found, truth);
    let size = |column| (0..overlap.rows.len()).map(|row| overlap.count(row, column)).sum::<usize>();
    let sizes: Vec<usize> = (0..overlap.columns.len()).map(size).collect();
    let swallows = |row: usize| (0..sizes.len()).filter(|&c| 2 * overlap.count(row, c) > sizes[c]).count();
    (0..overlap.rows.len()).filter(|&row| swallows(row) > 1).count()
}

/// How many nodes two divisions have in common, part by part.
struct Overlap {
    rows: Vec<u32>,
    columns: Vec<u32>,
    counts: Vec<usize>,
}

impl Overlap {
    fn new(one: &[u32], other: &[u32]) -> Self {
        let distinct = |labels: &[u32]| {
            let mut sorted = labels.to_vec();
            sorted.sort_unstable();
            sorted.dedup();
            sorted
        };
        let (rows, columns) = (distinct(one), distinct(other));
        let mut counts = vec![0; rows.len() * columns.len()];
        for (a, b) in one.iter().zip(other) {
            if let (Ok(row), Ok(column)) = (rows.binary_search(a), columns.binary_search(b)) {
                counts[row * columns.len() + column] += 1;
            }
        }
        Self { rows, columns, counts }
    }

    fn count(&self, row: usize, column: usize) -> usize {
        self.counts[row * self.columns.len() + column]
    }

    /// The assignment of rows to columns with the largest sum, by shortest augmenting paths with potentials (the
    /// Hungarian method); pairs that share nothing are left out.
    fn best(&self) -> Vec<(usize, usize)> {
        let size = self.rows.len().max(self.columns.len());
        let cost = |row: usize, column: usize| -> i64 {
            if row < self.rows.len() && column < self.columns.len() {
                -(self.count(row, column) as i64)
            } else {
                0
            }
        };
        // Row `size` stands for the row that is being placed; columns are shifted by one, 0 is where it waits.
        let (mut of_row, mut of_column) = (vec![0i64; size + 1], vec![0i64; size + 1]);
        let mut placed: Vec<usize> = vec![size; size + 1];
        for row in 0..size {
            placed[0] = row;
            let mut column = 0;
            let mut least = vec![i64::MAX; size + 1];
            let mut from = vec![0; size + 1];
            let mut done = vec![false; size + 1];
            while placed[column] != size {
                done[column] = true;
                let here = placed[column];
                let (mut step, mut next) = (i64::MAX, 0);
                for to in (1..=size).filter(|to| !done[*to]) {
                    let gap = cost(here, to - 1) - of_row[here] - of_column[to];
                    if gap < least[to] {
                        (least[to], from[to]) = (gap, column);
                    }
                    if least[to] < step {
                        (step, next) = (least[to], to);
                    }
                }
                for to in 0..=size {
                    if done[to] {
                        of_row[placed[to]] += step;
                        of_column[to] -= step;
                    } else if to > 0 {
                        least[to] -= step;
                    }
                }
                column = next;
            }
            while column != 0 {
                placed[column] = placed[from[column]];
                column = from[column];
            }
        }
        let mut pairs: Vec<(usize, usize)> = (1..=size)
            .map(|column| (placed[column], column - 1))
            .filter(|&(row, column)| {
                row < self.rows.len() && column < self.columns.len() && self.count(row, column) > 0
            })
            .collect();
        pairs.sort_unstable();
        pairs
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn computed_by_hand() {
        // Six nodes: {0,1,2} {3,4,5} against {0,1} {2,3} {4,5}.
        let found = agreement(&[0, 0, 0, 1, 1, 1], &[0, 0, 1, 1, 2, 2]).unwrap();
        // Together in both: 0-1 and 4-5; in one 6, in the other 3; apart in both 15 - 6 - 3 + 2 = 8.
        assert!((found.rand - 10.0 / 15.0).abs() < 1e-15);
        assert!((found.fowlkes_mallows - 2.0 / 18f64.sqrt()).abs() < 1e-15);
        // Cells 2, 1, 1, 2: I = 2/3 ln 2, entropies ln 2 and ln 3.
        let expected = (2.0 / 3.0) * 2f64.ln() / (0.5 * 6f64.ln());
        assert!((found.nmi - expected).abs() < 1e-14, "{} {expected}", found.nmi);
    }

    #[test]
    fn the_ends_of_the_scale() {
        let same = Agreement { nmi: 1.0, rand: 1.0, fowlkes_mallows: 1.0 };
        for labels in [&[0u32, 0, 0][..], &[0, 1, 2], &[5, 5, 7], &[9]] {
            assert_eq!(agreement(labels, labels), Some(same));
        }
        let apart = agreement(&[0, 0, 0, 0], &[0, 1, 2, 3]).unwrap();
        assert_eq!(apart, Agreement { nmi: 0.0, rand: 0.0, fowlkes_mallows: 0.0 });
        // Independent: every cell has one node.
        let crossed = agreement(&[0, 0, 1, 1], &[0, 1, 0, 1]).unwrap();
        assert!(
            crossed.nmi.abs() < 1e-15
                && crossed.fowlkes_mallows == 0.0
                && (crossed.rand - 1.0 / 3.0).abs() < 1e-15
        );
        assert_eq!((agreement(&[], &[]), agreement(&[1], &[1, 2])), (None, None));
    }

    #[test]
    fn parts_are_matched_and_merges_counted() {
        // Three true parts; two of them found as one, and one node astray.
        let truth = [0, 0, 0, 1, 1, 1, 2, 2, 2];
        let found = [7, 7, 7, 7, 7, 7, 3, 3, 7];
        assert_eq!(matching(&found, &truth), [(3, 2), (7, 0)]);
        assert!((matched_share(&found, &truth) - 5.0 / 9.0).abs() < 1e-15);
        assert_eq!((merged(&found, &truth), parts(&found)), (1, 2));
        // Renamed only.
        let renamed = [5, 5, 5, 0, 0, 0, 9, 9, 9];
        assert_eq!((matched_share(&renamed, &truth), merged(&renamed, &truth)), (1.0, 0));
        // One true part in two: nothing is merged, and one half has no partner.
        let split = [0, 0, 1, 2, 2, 2, 3, 3, 3];
        assert_eq!((merged(&split, &truth), matching(&split, &truth).len()), (0, 3));
        assert!(matched_share(&[], &[]).is_nan());
    }

    /// The best of all permutations.
    fn by_force(one: &[u32], other: &[u32]) -> usize {
        fn go(overlap: &Overlap, row: usize, taken: &mut Vec<bool>) -> usize {
            if row == overlap.rows.len() {
                return 0;
            }
            let mut best = go(overlap, row + 1, taken);
            for column in 0..taken.len() {
                if !taken[column] {
                    taken[column] = true;
                    best = best.max(overlap.count(row, column) + go(overlap, row + 1, taken));
                    taken[column] = false;
                }
            }
            best
        }
        let overlap = Overlap::new(one, other);
        go(&overlap, 0, &mut vec![false; overlap.columns.len()])
    }

    proptest! {
        #[test]
        fn the_matching_is_the_best(labels in prop::collection::vec((0u32..5, 0u32..5), 1..40)) {
            let (one, other): (Vec<u32>, Vec<u32>) = labels.into_iter().unzip();
            let share = matched_share(&one, &other);
            prop_assert!((share * one.len() as f64 - by_force(&one, &other) as f64).abs() < 1e-9);
        }

        /// By the definitions over pairs, and blind to names and to which of the two comes first.
        #[test]
        fn names_and_order_do_not_matter(labels in prop::collection::vec((0u32..4, 0u32..4), 2..20), shift in 1u32..9) {
            let one: Vec<u32> = labels.iter().map(|pair| pair.0).collect();
            let other: Vec<u32> = labels.iter().map(|pair| pair.1).collect();
            let renamed: Vec<u32> = one.iter().map(|part| (7 * part + shift) % 29).collect();
            let found = agreement(&one, &other).unwrap();
            for again in [agreement(&renamed, &other), agreement(&other, &one)] {
                let again = again.unwrap();
                prop_assert!((again.nmi - found.nmi).abs() < 1e-12);
                prop_assert!((again.rand - found.rand).abs() < 1e-12);
                prop_assert!((again.fowlkes_mallows - found.fowlkes_mallows).abs() < 1e-12);
            }
            let exact = agreement(&one, &renamed).unwrap();
            prop_assert_eq!((exact.nmi, exact.rand, exact.fowlkes_mallows), (1.0, 1.0, 1.0));
            let (mut agree, mut pairs) = (0, 0);
            for i in 0..one.len() {
                for j in 0..i {
                    pairs += 1;
                    agree += usize::from((one[i] == one[j]) == (other[i] == other[j]));
                }
            }
            prop_assert!((found.rand - agree as f64 / f64::from(pairs)).abs() < 1e-12);
        }
    }
}
