//! An undirected weighted graph as lists of neighbours, over a weak complete graph.

use super::{Weighted, WeightedError, pairs};
use thiserror::Error;

/// A graph without loops whose edges are listed, plus the same small weight between every two nodes. The common
/// weight costs nothing: it enters sums over all nodes once, and no edge stands for it.
#[derive(Debug, Clone, PartialEq)]
pub struct Sparse {
    /// The neighbours of node `i` stand at `starts[i]..starts[i + 1]`.
    starts: Vec<usize>,
    others: Vec<u32>,
    weights: Vec<f64>,
    everywhere: f64,
}

/// Why edges are no graph.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum SparseError {
    /// So many nodes have no numbers.
    #[error("{0} nodes are too many: at most 4294967295 have numbers")]
    Size(usize),
    /// An edge leads to a node that is not there.
    #[error("an edge joins nodes {0} and {1}, but there are {2} nodes, counted from 0")]
    Node(usize, usize, usize),
    /// A weight is negative, infinite or not a number.
    #[error("the weight of nodes {0} and {1} is {2}: it must be finite and not negative")]
    Weight(usize, usize, f64),
    /// The weight between all nodes is negative, infinite or not a number.
    #[error("the weight between all nodes is {0}: it must be finite and not negative")]
    Everywhere(f64),
}

impl Sparse {
    /// A graph from its edges, each once and in either direction. Edges that are listed again add up, weights of
    /// zero and loops are left out: neither moves a difference.
    pub fn new(
        nodes: usize,
        edges: impl IntoIterator<Item = (usize, usize, f64)>,
        everywhere: f64,
    ) -> Result<Self, SparseError> {
        if u32::try_from(nodes).is_err() {
            return Err(SparseError::Size(nodes));
        }
        if !(everywhere >= 0.0 && everywhere.is_finite()) {
            return Err(SparseError::Everywhere(everywhere));
        }
        let mut list = Vec::new();
        for (a, b, weight) in edges {
            if a >= nodes || b >= nodes {
                return Err(SparseError::Node(a, b, nodes));
            }
            if !(weight >= 0.0 && weight.is_finite()) {
                return Err(SparseError::Weight(a, b, weight));
            }
            if a != b && weight > 0.0 {
                list.push((a.min(b) as u32, a.max(b) as u32, weight));
            }
        }
        // Stable: what is listed twice adds up in the order of the list.
        list.sort_by_key(|&(a, b, _)| (a, b));
        list.dedup_by(|next, kept| {
            let same = (next.0, next.1) == (kept.0, kept.1);
            if same {
                kept.2 += next.2;
            }
            same
        });
        Ok(Self::sorted(nodes, &list, everywhere))
    }

    /// From edges that are sorted by their two nodes, the lesser first.
    fn sorted(nodes: usize, list: &[(u32, u32, f64)], everywhere: f64) -> Self {
        let mut starts = vec![0usize; nodes + 1];
        for &(a, b, _) in list {
            starts[a as usize + 1] += 1;
            starts[b as usize + 1] += 1;
        }
        for node in 0..nodes {
            starts[node + 1] += starts[node];
        }
        let mut next = starts.clone();
        let (mut others, mut weights) = (vec![0u32; 2 * list.len()], vec![0.0; 2 * list.len()]);
        let mut place = |node: u32, other: u32, weight: f64| {
            let at = next[node as usize];
            (others[at], weights[at]) = (other, weight);
            next[node as usize] += 1;
        };
        // Lesser neighbours first, then greater ones: every list comes out sorted.
        for &(a, b, weight) in list {
            place(b, a, weight);
        }
        for &(a, b, weight) in list {
            place(a, b, weight);
        }
        Self { starts, others, weights, everywhere }
    }

    /// Number of nodes.
    pub fn nodes(&self) -> usize {
        self.starts.len() - 1
    }

    /// Number of listed edges.
    pub fn listed(&self) -> usize {
        self.others.len() / 2
    }

    /// The weight between every two nodes.
    pub fn everywhere(&self) -> f64 {
        self.everywhere
    }

    /// The listed neighbours of a node, ascending, with the weights of the listed edges.
    pub fn neighbours(&self, node: usize) -> impl Iterator<Item = (usize, f64)> {
        let range = self.starts[node]..self.starts[node + 1];
        self.others[range.clone()].iter().zip(&self.weights[range]).map(|(&other, &w)| (other as usize, w))
    }

    /// Listed edges `(i, j, weight)` with `i < j`, in the order of their nodes.
    pub fn edges(&self) -> impl Iterator<Item = (usize, usize, f64)> {
        (0..self.nodes()).flat_map(move |i| {
            self.neighbours(i).filter(move |&(j, _)| i < j).map(move |(j, weight)| (i, j, weight))
        })
    }

    /// Sum of the listed weights at each node, without the common one.
    pub fn listed_degrees(&self) -> Vec<f64> {
        (0..self.nodes()).map(|node| self.neighbours(node).map(|(_, weight)| weight).sum()).collect()
    }

    /// The component of every node, numbered by their first nodes.
    pub fn components(&self) -> Vec<u32> {
        if self.everywhere > 0.0 {
            return vec![0; self.nodes()];
        }
        let mut numbers = vec![u32::MAX; self.nodes()];
        let (mut next, mut open) = (0, Vec::new());
        for first in 0..self.nodes() {
            if numbers[first] != u32::MAX {
                continue;
            }
            numbers[first] = next;
            open.push(first);
            while let Some(node) = open.pop() {
                for (other, _) in self.neighbours(node) {
                    if numbers[other] == u32::MAX {
                        numbers[other] = next;
                        open.push(other);
                    }
                }
            }
            next += 1;
        }
        numbers
    }

    /// The dense Laplacian `L = D - A`, row by row, the common weight included.
    pub fn laplacian(&self) -> Vec<f64> {
        let n = self.nodes();
        let mut matrix = vec![0.0 - self.everywhere; n * n];
        for (i, degree) in self.listed_degrees().into_iter().enumerate() {
            for (j, weight) in self.neighbours(i) {
                matrix[i * n + j] -= weight;
            }
            matrix[i * n + i] = degree + self.everywhere * (n - 1) as f64;
        }
        matrix
    }

    /// The graph as the vector of all its weights, the common one added to each.
    pub fn weighted(&self) -> Result<Weighted, WeightedError> {
        let n = self.nodes();
        let mut weights = vec![self.everywhere; pairs::count(n).ok_or(WeightedError::Size(n))?];
        for (i, j, weight) in self.edges() {
            if let Some(at) = pairs::index(n, i, j) {
                weights[at] += weight;
            }
        }
        Weighted::new(n, weights)
    }
}

impl From<&Weighted> for Sparse {
    fn from(graph: &Weighted) -> Self {
        let list: Vec<_> = graph.edges(0.0).map(|(i, j, weight)| (i as u32, j as u32, weight)).collect();
        Self::sorted(graph.nodes(), &list, 0.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_sorted_and_edges_add_up() {
        let graph = Sparse::new(
            5,
            [(3, 0, 1.0), (0, 1, 2.0), (2, 3, 0.5), (0, 3, 0.25), (2, 2, 9.0), (1, 4, 0.0)],
            0.0,
        )
        .unwrap();
        assert_eq!(graph.edges().collect::<Vec<_>>(), [(0, 1, 2.0), (0, 3, 1.25), (2, 3, 0.5)]);
        assert_eq!(graph.neighbours(3).collect::<Vec<_>>(), [(0, 1.25), (2, 0.5)]);
        assert_eq!((graph.listed(), graph.nodes()), (3, 5));
        assert_eq!(graph.components(), [0, 0, 0, 0, 1]);
        assert_eq!(Sparse::from(&graph.weighted().unwrap()), graph);
        assert_eq!(graph.laplacian(), graph.weighted().unwrap().laplacian());
    }

    #[test]
    fn the_common_weight_joins_all() {
        let graph = Sparse::new(4, [(0, 1, 1.0)], 0.25).unwrap();
        assert_eq!(graph.components(), [0; 4]);
        let weighted = graph.weighted().unwrap();
        assert_eq!(weighted.weights(), [1.25, 0.25, 0.25, 0.25, 0.25, 0.25]);
        assert_eq!(graph.laplacian(), weighted.laplacian());
    }

    #[test]
    fn what_is_no_edge_is_refused() {
        assert_eq!(Sparse::new(2, [(0, 2, 1.0)], 0.0), Err(SparseError::Node(0, 2, 2)));
        assert_eq!(Sparse::new(2, [(0, 1, -1.0)], 0.0), Err(SparseError::Weight(0, 1, -1.0)));
        assert_eq!(Sparse::new(2, [], -1.0), Err(SparseError::Everywhere(-1.0)));
        assert!(matches!(Sparse::new(2, [(0, 1, f64::NAN)], 0.0), Err(SparseError::Weight(0, 1, _))));
        assert_eq!(Sparse::new(0, [], 0.0).unwrap().nodes(), 0);
    }
}
