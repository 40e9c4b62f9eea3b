//! Pairs of nodes as places in a vector: the upper triangle row by row, `(0,1), (0,2), .., (0,d-1), (1,2), ..`.

/// Number of pairs of `nodes` nodes; `None` where that is no number of this machine.
pub fn count(nodes: usize) -> Option<usize> {
    // One of the two factors is even: halve it before they are multiplied.
    let before = nodes.saturating_sub(1);
    if nodes.is_multiple_of(2) { (nodes / 2).checked_mul(before) } else { nodes.checked_mul(before / 2) }
}

/// The number of nodes whose pairs are that many: 1 for none, `None` for a length that no graph has.
pub fn nodes_of(pairs: usize) -> Option<usize> {
    // d (d - 1) / 2 = p has d = (1 + sqrt(1 + 8 p)) / 2; the root may be off by a rounding.
    let guess = f64::midpoint(1.0, (1.0 + 8.0 * pairs as f64).sqrt()) as usize;
    (guess.saturating_sub(1)..=guess + 1).find(|&nodes| nodes > 0 && count(nodes) == Some(pairs))
}

/// Where the pair of two different nodes stands, in either order; `None` for a node alone or one that is not there.
pub fn index(nodes: usize, a: usize, b: usize) -> Option<usize> {
    let (i, j) = (a.min(b), a.max(b));
    // Row i starts behind i rows of nodes - 1, nodes - 2, .. entries.
    (i < j && j < nodes).then(|| i * nodes - i * (i + 1) / 2 + (j - i - 1))
}

/// All pairs `(i, j)` with `i < j`, in the order of the vector.
pub fn all(nodes: usize) -> impl Iterator<Item = (usize, usize)> {
    (0..nodes).flat_map(move |i| (i + 1..nodes).map(move |j| (i, j)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_and_pairs_agree() {
        for nodes in 0..40 {
            let pairs: Vec<_> = all(nodes).collect();
            assert_eq!(count(nodes), Some(pairs.len()));
            for (at, &(i, j)) in pairs.iter().enumerate() {
                assert_eq!((index(nodes, i, j), index(nodes, j, i)), (Some(at), Some(at)));
            }
            assert_eq!((index(nodes, 0, nodes), index(nodes, 0, 0)), (None, None));
        }
        assert_eq!(all(4).collect::<Vec<_>>(), [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)]);
    }

    #[test]
    fn only_triangular_numbers_are_lengths() {
        let known: Vec<usize> = (0..30).filter(|&pairs| nodes_of(pairs).is_some()).collect();
        assert_eq!(known, [0, 1, 3, 6, 10, 15, 21, 28]);
        for nodes in [1usize, 2, 3, 1000, 100_000, 3_000_000_000] {
            let pairs = count(nodes).unwrap();
            assert_eq!(nodes_of(pairs), Some(nodes));
            assert_eq!(nodes_of(pairs + 1), if nodes == 1 { Some(2) } else { None });
        }
        assert_eq!((count(usize::MAX), nodes_of(usize::MAX)), (None, None));
    }
}
