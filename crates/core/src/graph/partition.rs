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

use crate::numeric::ln;

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

    proptest! {
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
