//! The undirected graph of servers.

use fedkin_numeric::rng::Random;
use thiserror::Error;

/// An undirected graph without loops or double edges; neighbours are sorted by id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Topology {
    neighbours: Vec<Vec<u32>>,
}

/// Why a graph cannot be built.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum TopologyError {
    /// An edge names a node that does not exist.
    #[error("edge {0}-{1} names a server outside 0..{2}")]
    OutOfRange(u32, u32, usize),
    /// An edge from a node to itself.
    #[error("server {0} has an edge to itself")]
    Loop(u32),
    /// Fewer edges than a spanning tree needs, or more than a complete graph has.
    #[error(
        "{servers} servers with mean degree {mean_degree} need {edges} edges; a connected graph has {least} to {most}"
    )]
    Degree {
        /// Number of nodes.
        servers: usize,
        /// What was asked for.
        mean_degree: f64,
        /// What that means in edges.
        edges: usize,
        /// Edges of a tree.
        least: usize,
        /// Edges of the complete graph.
        most: usize,
    },
}

impl Topology {
    /// No edges: every server alone.
    pub fn none(servers: usize) -> Self {
        Self { neighbours: vec![Vec::new(); servers] }
    }

    /// A graph from its edges; repeated edges count once.
    pub fn from_edges(
        servers: usize,
        edges: impl IntoIterator<Item = (u32, u32)>,
    ) -> Result<Self, TopologyError> {
        let mut graph = Self::none(servers);
        for (a, b) in edges {
            if a as usize >= servers || b as usize >= servers {
                return Err(TopologyError::OutOfRange(a, b, servers));
            }
            if a == b {
                return Err(TopologyError::Loop(a));
            }
            graph.connect(a, b);
        }
        Ok(graph)
    }

    /// Each server linked to the next, the last to the first.
    pub fn ring(servers: usize) -> Self {
        let mut graph = Self::none(servers);
        for i in 1..servers {
            graph.connect(i as u32 - 1, i as u32);
        }
        if servers > 2 {
            graph.connect(0, servers as u32 - 1);
        }
        graph
    }

    /// The most square grid, filled row by row; the last row may be short.
    pub fn grid(servers: usize) -> Self {
        let width = (1..=servers).find(|w| w * w >= servers).unwrap_or(1);
        let mut graph = Self::none(servers);
        for i in 0..servers {
            if (i + 1) % width != 0 && i + 1 < servers {
                graph.connect(i as u32, i as u32 + 1);
            }
            if i + width < servers {
                graph.connect(i as u32, (i + width) as u32);
            }
        }
        graph
    }

    /// Server 0 linked to all others.
    pub fn star(servers: usize) -> Self {
        let mut graph = Self::none(servers);
        for i in 1..servers {
            graph.connect(0, i as u32);
        }
        graph
    }

    /// Every pair linked.
    pub fn complete(servers: usize) -> Self {
        let all = 0..servers as u32;
        Self { neighbours: all.clone().map(|s| all.clone().filter(|&p| p != s).collect()).collect() }
    }

    /// A random connected graph with `round(servers * mean_degree / 2)` edges: uniform over such graphs
    /// by rejection where that ends soon, else a random tree with random edges on top.
    pub fn random<R: Random>(servers: usize, mean_degree: f64, rng: &mut R) -> Result<Self, TopologyError> {
        const TRIES: usize = 200;
        let edges = (servers as f64 * mean_degree / 2.0).round().max(0.0) as usize;
        let least = servers.saturating_sub(1);
        let most = servers * least / 2;
        if edges < least || edges > most {
            return Err(TopologyError::Degree { servers, mean_degree, edges, least, most });
        }
        // Rejection is hopeless once a node is likely to stay alone.
        if servers <= 64 {
            for _ in 0..TRIES {
                let graph = Self::none(servers).with_random_edges(edges, rng);
                if graph.is_connected() {
                    return Ok(graph);
                }
            }
        }
        let mut order: Vec<u32> = (0..servers as u32).collect();
        for i in (1..servers).rev() {
            order.swap(i, rng.below(i as u32 + 1) as usize);
        }
        let mut tree = Self::none(servers);
        for i in 1..servers {
            tree.connect(order[i], order[rng.below(i as u32) as usize]);
        }
        Ok(tree.with_random_edges(edges - least, rng))
    }

    fn with_random_edges<R: Random>(mut self, mut missing: usize, rng: &mut R) -> Self {
        let n = self.len() as u32;
        while missing > 0 {
            let (a, b) = (rng.below(n), rng.below(n));
            if a != b && self.connect(a, b) {
                missing -= 1;
            }
        }
        self
    }

    /// Adds an edge; false where it was there already.
    fn connect(&mut self, a: u32, b: u32) -> bool {
        let Err(at) = self.neighbours[a as usize].binary_search(&b) else { return false };
        self.neighbours[a as usize].insert(at, b);
        if let Err(at) = self.neighbours[b as usize].binary_search(&a) {
            self.neighbours[b as usize].insert(at, a);
        }
        true
    }

    /// Number of servers.
    pub fn len(&self) -> usize {
        self.neighbours.len()
    }

    /// Whether there is no server.
    pub fn is_empty(&self) -> bool {
        self.neighbours.is_empty()
    }

    /// The neighbours of a server, itself left out, by id.
    pub fn neighbours(&self, server: u32) -> &[u32] {
        &self.neighbours[server as usize]
    }

    /// Every edge once, the smaller id first.
    pub fn edges(&self) -> impl Iterator<Item = (u32, u32)> + '_ {
        self.neighbours
            .iter()
            .enumerate()
            .flat_map(|(a, list)| list.iter().map(move |&b| (a as u32, b)).filter(|(a, b)| a < b))
    }

    /// The connected components, each sorted by id, in order of their least id.
    pub fn components(&self) -> Vec<Vec<u32>> {
        let mut seen = vec![false; self.len()];
        let mut components = Vec::new();
        for start in 0..self.len() {
            if std::mem::replace(&mut seen[start], true) {
                continue;
            }
            let mut component = vec![start as u32];
            let mut next = 0;
            while next < component.len() {
                for &p in self.neighbours(component[next]) {
                    if !std::mem::replace(&mut seen[p as usize], true) {
                        component.push(p);
                    }
                }
                next += 1;
            }
            component.sort_unstable();
            components.push(component);
        }
        components
    }

    /// Whether every server reaches every other.
    pub fn is_connected(&self) -> bool {
        self.components().len() <= 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fedkin_numeric::rng::PublicRng;

    #[test]
    fn the_named_graphs_have_their_edges() {
        assert_eq!(Topology::ring(5).edges().count(), 5);
        assert_eq!(Topology::ring(2).edges().count(), 1);
        assert_eq!(Topology::ring(1).edges().count(), 0);
        assert_eq!(Topology::grid(9).edges().count(), 12);
        assert_eq!(Topology::grid(7).edges().count(), 8);
        assert_eq!(Topology::star(6).neighbours(0).len(), 5);
        assert_eq!(Topology::complete(6).edges().count(), 15);
        assert_eq!(Topology::none(3).components().len(), 3);
    }

    #[test]
    fn random_graphs_are_connected_with_the_wanted_edges() {
        for (servers, degree) in [(10, 3.0), (1000, 3.0), (2, 1.0), (1, 0.0), (64, 1.97)] {
            let mut rng = PublicRng::named(7, "graph", 0, servers as u32);
            let graph = Topology::random(servers, degree, &mut rng).unwrap();
            assert!(graph.is_connected(), "{servers} servers");
            assert_eq!(graph.edges().count(), (servers as f64 * degree / 2.0).round() as usize);
        }
    }

    #[test]
    fn impossible_graphs_are_refused() {
        let mut rng = PublicRng::named(7, "graph", 0, 0);
        assert!(matches!(Topology::random(10, 1.0, &mut rng), Err(TopologyError::Degree { .. })));
        assert!(matches!(Topology::random(4, 9.0, &mut rng), Err(TopologyError::Degree { .. })));
        assert_eq!(Topology::from_edges(2, [(0, 2)]), Err(TopologyError::OutOfRange(0, 2, 2)));
        assert_eq!(Topology::from_edges(2, [(1, 1)]), Err(TopologyError::Loop(1)));
    }
}
