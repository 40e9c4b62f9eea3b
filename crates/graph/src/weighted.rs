//! An undirected weighted graph as the vector of its weights.

use super::pairs;
use fedkin_numeric::eigen;
use thiserror::Error;

/// A graph without loops: `nodes` nodes and a weight of zero or more for each of their pairs.
#[derive(Debug, Clone, PartialEq)]
pub struct Weighted {
    nodes: usize,
    weights: Vec<f64>,
}

/// Why numbers are no weights of a graph.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum WeightedError {
    /// The length is not that of the upper triangle.
    #[error("{nodes} nodes have {expected} pairs, but there are {found} weights")]
    Length {
        /// Number of nodes.
        nodes: usize,
        /// Their pairs.
        expected: usize,
        /// The length given.
        found: usize,
    },
    /// So many pairs cannot be held.
    #[error("{0} nodes are too many")]
    Size(usize),
    /// A weight is negative, infinite or not a number.
    #[error("the weight of nodes {0} and {1} is {2}: it must be finite and not negative")]
    Weight(usize, usize, f64),
}

impl Weighted {
    /// A graph from its weights: the upper triangle row by row.
    pub fn new(nodes: usize, weights: Vec<f64>) -> Result<Self, WeightedError> {
        let expected = pairs::count(nodes).ok_or(WeightedError::Size(nodes))?;
        if weights.len() != expected {
            return Err(WeightedError::Length { nodes, expected, found: weights.len() });
        }
        let bad = weights
            .iter()
            .zip(pairs::all(nodes))
            .find(|(weight, _)| !(**weight >= 0.0 && weight.is_finite()));
        match bad {
            Some((&weight, (i, j))) => Err(WeightedError::Weight(i, j, weight)),
            None => Ok(Self { nodes, weights }),
        }
    }

    /// Number of nodes.
    pub fn nodes(&self) -> usize {
        self.nodes
    }

    /// The weights, one per pair in the order of [`pairs::all`].
    pub fn weights(&self) -> &[f64] {
        &self.weights
    }

    /// The weights, taken out.
    pub fn into_weights(self) -> Vec<f64> {
        self.weights
    }

    /// The weight between two nodes; zero for a node with itself and for nodes that are not there.
    pub fn weight(&self, a: usize, b: usize) -> f64 {
        pairs::index(self.nodes, a, b).map_or(0.0, |at| self.weights[at])
    }

    /// Every pair `(i, j)` with its weight, zeros included.
    pub fn iter(&self) -> impl Iterator<Item = (usize, usize, f64)> {
        pairs::all(self.nodes).zip(&self.weights).map(|((i, j), &weight)| (i, j, weight))
    }

    /// The pairs whose weight is above a threshold.
    pub fn edges(&self, threshold: f64) -> impl Iterator<Item = (usize, usize, f64)> {
        self.iter().filter(move |&(_, _, weight)| weight > threshold)
    }

    /// The same nodes with the edges above a threshold; all other weights are zero.
    #[must_use]
    pub fn above(&self, threshold: f64) -> Self {
        let weights =
            self.weights.iter().map(|&weight| if weight > threshold { weight } else { 0.0 }).collect();
        Self { nodes: self.nodes, weights }
    }

    /// Share of the pairs whose weight is above a threshold; zero where there are no pairs.
    pub fn density(&self, threshold: f64) -> f64 {
        let above = self.weights.iter().filter(|&&weight| weight > threshold).count();
        if self.weights.is_empty() { 0.0 } else { above as f64 / self.weights.len() as f64 }
    }

    /// Sum of the weights at each node: `S w`.
    pub fn degrees(&self) -> Vec<f64> {
        let mut degrees = vec![0.0; self.nodes];
        for (i, j, weight) in self.iter() {
            degrees[i] += weight;
            degrees[j] += weight;
        }
        degrees
    }

    /// Number of edges above a threshold at each node.
    pub fn neighbours(&self, threshold: f64) -> Vec<usize> {
        let mut counts = vec![0; self.nodes];
        for (i, j, _) in self.edges(threshold) {
            counts[i] += 1;
            counts[j] += 1;
        }
        counts
    }

    /// The component of every node over the edges above a threshold, numbered by their first nodes.
    pub fn components(&self, threshold: f64) -> Vec<u32> {
        // Every node points towards the least node of its component.
        let mut parent: Vec<usize> = (0..self.nodes).collect();
        for (i, j, _) in self.edges(threshold) {
            let (a, b) = (root(&mut parent, i), root(&mut parent, j));
            parent[a.max(b)] = a.min(b);
        }
        let mut numbers = vec![0; self.nodes];
        let mut next = 0;
        for node in 0..self.nodes {
            let top = root(&mut parent, node);
            if top == node {
                numbers[node] = next;
                next += 1;
            } else {
                numbers[node] = numbers[top];
            }
        }
        numbers
    }

    /// The dense adjacency matrix, row by row.
    pub fn adjacency(&self) -> Vec<f64> {
        let mut matrix = vec![0.0; self.nodes * self.nodes];
        for (i, j, weight) in self.iter() {
            matrix[i * self.nodes + j] = weight;
            matrix[j * self.nodes + i] = weight;
        }
        matrix
    }

    /// The dense Laplacian `L = diag(S w) - W`, row by row.
    pub fn laplacian(&self) -> Vec<f64> {
        let mut matrix = self.adjacency();
        for entry in &mut matrix {
            *entry = 0.0 - *entry;
        }
        for (node, degree) in self.degrees().into_iter().enumerate() {
            matrix[node * self.nodes + node] = degree;
        }
        matrix
    }

    /// The eigenvalues of the Laplacian, ascending. `None` where degrees overflow.
    pub fn spectrum(&self) -> Option<Vec<f64>> {
        eigen::values(&mut self.laplacian(), self.nodes)
    }
}

/// The least node that a node's pointers lead to; the way is halved for those who come later.
fn root(parent: &mut [usize], mut node: usize) -> usize {
    while parent[node] != node {
        parent[node] = parent[parent[node]];
        node = parent[node];
    }
    node
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn sample() -> Weighted {
        // 0-1, 0-3 and 2-4 of five nodes.
        Weighted::new(5, vec![1.0, 0.0, 0.25, 0.0, 0.0, 0.0, 0.0, 0.0, 2.0, 0.0]).unwrap()
    }

    #[test]
    fn facts_of_a_small_graph() {
        let graph = sample();
        assert_eq!(graph.degrees(), [1.25, 1.0, 2.0, 0.25, 2.0]);
        assert_eq!(graph.neighbours(0.0), [2, 1, 1, 1, 1]);
        assert_eq!(graph.edges(0.5).collect::<Vec<_>>(), [(0, 1, 1.0), (2, 4, 2.0)]);
        assert_eq!(graph.above(0.5).edges(0.0).count(), 2);
        assert_eq!((graph.density(0.0), graph.density(0.5), graph.density(2.0)), (0.3, 0.2, 0.0));
        assert_eq!(graph.components(0.0), [0, 0, 1, 0, 1]);
        assert_eq!(graph.components(0.5), [0, 0, 1, 2, 1]);
        assert_eq!((graph.weight(3, 0), graph.weight(0, 0), graph.weight(0, 9)), (0.25, 0.0, 0.0));
        let spectrum = graph.spectrum().unwrap();
        assert!(spectrum[0].abs() < 1e-14 && spectrum[1].abs() < 1e-14 && spectrum[2] > 0.1);
    }

    #[test]
    fn the_least_graphs() {
        for nodes in [0, 1] {
            let graph = Weighted::new(nodes, vec![]).unwrap();
            assert_eq!((graph.density(0.0), graph.components(0.0).len()), (0.0, nodes));
            assert_eq!(graph.spectrum(), Some(vec![0.0; nodes]));
        }
    }

    #[test]
    fn what_is_no_graph_is_refused() {
        let length = WeightedError::Length { nodes: 3, expected: 3, found: 2 };
        assert_eq!(Weighted::new(3, vec![0.0; 2]), Err(length));
        assert_eq!(Weighted::new(usize::MAX, vec![]), Err(WeightedError::Size(usize::MAX)));
        assert_eq!(Weighted::new(3, vec![0.0, -1.0, 0.0]), Err(WeightedError::Weight(0, 2, -1.0)));
        let text = Weighted::new(3, vec![0.0, 0.0, f64::NAN]).unwrap_err().to_string();
        assert!(text.contains("nodes 1 and 2 is NaN"), "{text}");
        let huge = Weighted::new(3, vec![f64::MAX; 3]).unwrap();
        assert_eq!(huge.spectrum(), None);
    }

    proptest! {
        /// The multiplicity of zero counts the components, and the trace is the sum of the degrees.
        #[test]
        fn the_spectrum_counts_components(nodes in 1usize..14, picks in prop::collection::vec(0u8..5, 91)) {
            let p = pairs::count(nodes).unwrap();
            let weights: Vec<f64> = picks[..p].iter().map(|&pick| f64::from(pick.saturating_sub(3))).collect();
            let graph = Weighted::new(nodes, weights).unwrap();
            let spectrum = graph.spectrum().unwrap();
            let zeros = spectrum.iter().filter(|value| value.abs() < 1e-10).count();
            let pieces = graph.components(0.0).into_iter().max().map_or(0, |most| most as usize + 1);
            prop_assert_eq!(zeros, pieces);
            let trace: f64 = graph.degrees().iter().sum();
            prop_assert!((spectrum.iter().sum::<f64>() - trace).abs() < 1e-10);
        }
    }
}
