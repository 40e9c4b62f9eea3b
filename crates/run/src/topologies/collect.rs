//! Edges by name, collected one after the other.

use super::{MOST_NODES, Named};
use fedkin_graph::{Weighted, pairs};
use std::collections::BTreeMap;

/// Nodes by first appearance, and the largest weight that was named for each pair.
#[derive(Debug, Default)]
pub(super) struct Collector {
    names: Vec<String>,
    places: BTreeMap<String, usize>,
    edges: BTreeMap<(usize, usize), f64>,
}

impl Collector {
    /// The place of a node, which is new if its name is.
    pub(super) fn node(&mut self, name: &str) -> usize {
        if let Some(&place) = self.places.get(name) {
            return place;
        }
        self.places.insert(name.to_string(), self.names.len());
        self.names.push(name.to_string());
        self.names.len() - 1
    }

    /// Takes an edge between two places.
    pub(super) fn edge(&mut self, a: usize, b: usize, weight: f64) -> Result<(), String> {
        let called = |place: usize| self.names.get(place).map_or("", String::as_str);
        let (from, to) = (called(a), called(b));
        if !(weight >= 0.0 && weight.is_finite()) {
            return Err(format!(
                "the weight of {from:?} and {to:?} is {weight}: weights are finite and 0 or more"
            ));
        }
        if a == b {
            if weight == 0.0 {
                return Ok(());
            }
            return Err(format!("node {from:?} is linked to itself: take the edge out"));
        }
        let largest = self.edges.entry((a.min(b), a.max(b))).or_insert(0.0);
        *largest = weight.max(*largest);
        Ok(())
    }

    /// The graph. Names that are all whole numbers are put in their order; all others stay as they came.
    pub(super) fn finish(self, sort_numbers: bool) -> Result<Named, String> {
        let Self { names, edges, .. } = self;
        let nodes = names.len();
        let pairs = fits(nodes)?;
        let mut order: Vec<usize> = (0..nodes).collect();
        let numbers: Option<Vec<u64>> = names.iter().map(|name| name.parse().ok()).collect();
        if let Some(numbers) = numbers.filter(|_| sort_numbers) {
            order.sort_by_key(|&place| numbers[place]);
        }
        let mut moved = vec![0; nodes];
        for (place, &from) in order.iter().enumerate() {
            moved[from] = place;
        }
        let mut weights = vec![0.0; pairs];
        for ((a, b), weight) in edges {
            if let Some(at) = pairs::index(nodes, moved[a], moved[b]) {
                weights[at] = weight;
            }
        }
        let graph = Weighted::new(nodes, weights).map_err(|error| error.to_string())?;
        let mut sorted = vec![String::new(); nodes];
        for (name, &place) in names.into_iter().zip(&moved) {
            sorted[place] = name;
        }
        Named::new(sorted, graph)
    }
}

/// Number of pairs, where so many nodes can be held.
pub(super) fn fits(nodes: usize) -> Result<usize, String> {
    pairs::count(nodes).filter(|_| nodes <= MOST_NODES).ok_or_else(|| {
        format!("the graph has {nodes} nodes: at most {MOST_NODES} can be held with all their pairs")
    })
}

/// The graph of a square matrix; of two directions the larger weight counts.
pub(super) fn from_adjacency(nodes: usize, matrix: &[f64]) -> Result<Weighted, String> {
    let pairs = fits(nodes)?;
    if nodes.checked_mul(nodes) != Some(matrix.len()) {
        return Err(format!("an adjacency of {nodes} rows must have {nodes} columns"));
    }
    if let Some(node) = (0..nodes).find(|node| matrix[node * nodes + node] != 0.0) {
        return Err(format!(
            "row {} of the adjacency links a node to itself: set the diagonal to 0",
            node + 1
        ));
    }
    let mut weights = Vec::with_capacity(pairs);
    for (i, j) in pairs::all(nodes) {
        let (there, back) = (matrix[i * nodes + j], matrix[j * nodes + i]);
        // `max` would hide a NaN or a negative number on one side.
        let bad = [there, back].into_iter().find(|weight| !(*weight >= 0.0 && weight.is_finite()));
        weights.push(bad.unwrap_or_else(|| there.max(back)));
    }
    from_weights(weights)
}

/// The graph of an upper triangle.
pub(super) fn from_weights(weights: Vec<f64>) -> Result<Weighted, String> {
    let nodes = pairs::nodes_of(weights.len()).ok_or_else(|| {
        format!(
            "{} weights are those of no graph: d nodes have d (d - 1) / 2 pairs, such as 3, 6, 10 or 15",
            weights.len()
        )
    })?;
    fits(nodes)?;
    // People count from 1.
    let bad =
        weights.iter().zip(pairs::all(nodes)).find(|(weight, _)| !(**weight >= 0.0 && weight.is_finite()));
    if let Some((weight, (i, j))) = bad {
        let (i, j) = (i + 1, j + 1);
        return Err(format!("the weight of nodes {i} and {j} is {weight}: weights are finite and 0 or more"));
    }
    Weighted::new(nodes, weights).map_err(|error| error.to_string())
}

/// A graph with the names of a file that may have none.
pub(super) fn with_names(names: Option<Vec<String>>, graph: Weighted) -> Result<Named, String> {
    match names {
        None => Ok(Named::numbered(graph)),
        Some(names) => Named::new(names, graph),
    }
}
