//! Which nodes belong together: modularity, and Louvain's way to a division with a large one.
//!
//! ```text
//! Q = sum over communities c of  in_c / 2m - resolution (tot_c / 2m)^2
//! ```
//!
//! with `in_c` the weight inside `c` counted from both ends, `tot_c` the sum of its degrees and `2m` that of all
//! degrees. Louvain (Blondel, Guillaume, Lambiotte, Lefebvre 2008): nodes move, one at a time and in a random order,
//! to the neighbouring community that raises Q most; when none moves, each community becomes one node with its inner
//! weight as a loop, and the nodes of that smaller graph move. When that ends, too, it begins again from the division
//! that was found, until nothing improves: no single node and no whole community would then rather be elsewhere.
//!
//! Own code: of the crates with Louvain on weighted graphs rust-igraph 0.7 is under the GPL, and graphrs 0.12 and
//! geometric-traits 0.2 draw their orders from `rand`, whose streams change between versions, and bring a dozen
//! dependencies.

use super::Weighted;
use fedkin_numeric::rng::{PublicRng, Random};

/// A move must raise Q by more than rounding.
const WORTHWHILE: f64 = 1e-12;

/// How to look for communities.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Louvain {
    /// Larger values give more and smaller communities; 1 is plain modularity.
    pub resolution: f64,
    /// So many times anew, each in another order and every second time from a random division; the best is kept. At
    /// least one.
    pub restarts: u32,
    /// What the orders follow from.
    pub seed: u64,
}

impl Default for Louvain {
    fn default() -> Self {
        Self { resolution: 1.0, restarts: 10, seed: 0 }
    }
}

/// A division of the nodes.
#[derive(Debug, Clone, PartialEq)]
pub struct Communities {
    /// The community of every node, numbered by their first nodes.
    pub labels: Vec<u32>,
    /// What the division is worth, at the resolution asked for.
    pub modularity: f64,
}

impl Communities {
    /// The nodes of every community, in order.
    pub fn members(&self) -> Vec<Vec<usize>> {
        let mut members = vec![Vec::new(); self.labels.iter().max().map_or(0, |most| *most as usize + 1)];
        for (node, &label) in self.labels.iter().enumerate() {
            members[label as usize].push(node);
        }
        members
    }
}

/// Modularity of a division; zero for a graph without edges. `None` where there is not one label per node.
pub fn modularity(graph: &Weighted, labels: &[u32], resolution: f64) -> Option<f64> {
    if labels.len() != graph.nodes() {
        return None;
    }
    let mut names = labels.to_vec();
    names.sort_unstable();
    names.dedup();
    let place = |node: usize| names.binary_search(&labels[node]).unwrap_or(0);
    let (mut inside, mut total) = (vec![0.0; names.len()], vec![0.0; names.len()]);
    for (i, j, weight) in graph.edges(0.0) {
        let (a, b) = (place(i), place(j));
        total[a] += weight;
        total[b] += weight;
        if a == b {
            inside[a] += 2.0 * weight;
        }
    }
    let all: f64 = total.iter().sum();
    if all == 0.0 {
        return Some(0.0);
    }
    Some(
        inside
            .iter()
            .zip(&total)
            .map(|(inside, total)| inside / all - resolution * (total / all) * (total / all))
            .sum(),
    )
}

impl Louvain {
    /// The best division that was found.
    pub fn find(&self, graph: &Weighted) -> Communities {
        let level = Level::of(graph);
        let mut best: Option<Communities> = None;
        for restart in 0..self.restarts.max(1) {
            let mut rng = PublicRng::named(self.seed, "communities", restart, 0);
            // Half of the restarts begin with every node alone, half with a random division: from single nodes the moves do
            // not reach every local maximum of the modularity.
            let n = level.len() as u32;
            let mut labels: Vec<u32> = (0..n).collect();
            if restart % 2 == 1 && n > 0 {
                let parts = 1 + rng.below(n);
                labels.fill_with(|| rng.below(parts));
            }
            while self.ascend(&level, &mut labels, &mut rng) {}
            renumber(&mut labels);
            let modularity = modularity(graph, &labels, self.resolution).unwrap_or(0.0);
            // The first of equals, up to rounding: another order must not rename the answer.
            if best.as_ref().is_none_or(|best| modularity > best.modularity + WORTHWHILE) {
                best = Some(Communities { labels, modularity });
            }
        }
        best.unwrap_or(Communities { labels: Vec::new(), modularity: 0.0 })
    }

    /// From the nodes up to the coarsest graph on which something moves. Whether anything did.
    fn ascend(&self, level: &Level, labels: &mut [u32], rng: &mut PublicRng) -> bool {
        let mut moved = self.settle(level, labels, rng);
        let mut parts = renumber(labels);
        let mut coarse = level.merged(labels, parts);
        loop {
            let mut above: Vec<u32> = (0..parts as u32).collect();
            if !self.settle(&coarse, &mut above, rng) {
                return moved;
            }
            moved = true;
            parts = renumber(&mut above);
            for label in labels.iter_mut() {
                *label = above[*label as usize];
            }
            renumber(labels);
            coarse = coarse.merged(&above, parts);
        }
    }

    /// Moves the nodes of one level until none would rather be elsewhere. Whether any moved.
    fn settle(&self, level: &Level, labels: &mut [u32], rng: &mut PublicRng) -> bool {
        let n = level.len();
        if level.all <= 0.0 || !level.all.is_finite() {
            return false;
        }
        let (mut total, mut size) = (vec![0.0; n], vec![0u32; n]);
        for (node, &label) in labels.iter().enumerate() {
            total[label as usize] += level.degrees[node];
            size[label as usize] += 1;
        }
        let mut free: Vec<u32> = (0..n as u32).rev().filter(|&label| size[label as usize] == 0).collect();
        let mut order: Vec<u32> = (0..n as u32).collect();
        rng.shuffle(&mut order);
        let mut links = vec![0.0; n];
        let mut near: Vec<u32> = Vec::with_capacity(n);
        let mut any = false;
        loop {
            let mut moved = false;
            for &node in &order {
                let node = node as usize;
                let (home, degree) = (labels[node], level.degrees[node]);
                near.push(home);
                for &(neighbour, weight) in level.neighbours(node) {
                    let label = labels[neighbour as usize];
                    if links[label as usize] == 0.0 && label != home {
                        near.push(label);
                    }
                    links[label as usize] += weight;
                }
                total[home as usize] -= degree;
                size[home as usize] -= 1;
                if size[home as usize] == 0 {
                    // No community is left with the roundings of those who went.
                    total[home as usize] = 0.0;
                }
                // Half of what Q gains, in units of the whole weight, when the node joins a community.
                let worth = |label: u32| {
                    links[label as usize] / level.all
                        - self.resolution * (degree / level.all) * (total[label as usize] / level.all)
                };
                let (mut to, mut most) = (home, worth(home) + WORTHWHILE);
                for &label in &near[1..] {
                    let gain = worth(label);
                    if gain > most || (gain == most && to != home && label < to) {
                        (to, most) = (label, gain);
                    }
                }
                // No community gains anything and staying costs modularity: the node gets a community of its own.
                if most < 0.0 && size[home as usize] > 0 {
                    to = free.pop().unwrap_or(to);
                }
                if to != home && size[home as usize] == 0 {
                    free.push(home);
                }
                total[to as usize] += degree;
                size[to as usize] += 1;
                labels[node] = to;
                moved |= to != home;
                for label in near.drain(..) {
                    links[label as usize] = 0.0;
                }
            }
            if !moved {
                return any;
            }
            any = true;
        }
    }
}

/// Gives labels the numbers 0, 1, .. in the order of their first nodes; how many there are.
fn renumber(labels: &mut [u32]) -> usize {
    let most = labels.iter().max().map_or(0, |most| *most as usize + 1);
    let mut names = vec![u32::MAX; most];
    let mut next = 0;
    for label in labels {
        let name = &mut names[*label as usize];
        if *name == u32::MAX {
            *name = next;
            next += 1;
        }
        *label = *name;
    }
    next as usize
}

/// A graph whose nodes may be communities of a finer one: a loop is the weight inside, and counts in the degree.
struct Level {
    starts: Vec<usize>,
    links: Vec<(u32, f64)>,
    degrees: Vec<f64>,
    all: f64,
}

impl Level {
    fn of(graph: &Weighted) -> Self {
        let mut rows: Vec<Vec<(u32, f64)>> = vec![Vec::new(); graph.nodes()];
        for (i, j, weight) in graph.edges(0.0) {
            rows[i].push((j as u32, weight));
            rows[j].push((i as u32, weight));
        }
        Self::from_rows(rows, graph.degrees())
    }

    fn from_rows(rows: Vec<Vec<(u32, f64)>>, degrees: Vec<f64>) -> Self {
        let mut starts = vec![0];
        let mut links = Vec::new();
        for row in rows {
            links.extend(row);
            starts.push(links.len());
        }
        let all = degrees.iter().sum();
        Self { starts, links, degrees, all }
    }

    fn len(&self) -> usize {
        self.degrees.len()
    }

    /// The other nodes it is linked to: a loop pulls nowhere.
    fn neighbours(&self, node: usize) -> &[(u32, f64)] {
        &self.links[self.starts[node]..self.starts[node + 1]]
    }

    /// The graph of the communities `0..parts`.
    fn merged(&self, labels: &[u32], parts: usize) -> Self {
        let mut members: Vec<Vec<usize>> = vec![Vec::new(); parts];
        let mut degrees = vec![0.0; parts];
        for (node, &label) in labels.iter().enumerate() {
            members[label as usize].push(node);
            degrees[label as usize] += self.degrees[node];
        }
        let mut sums = vec![0.0; parts];
        let rows = members.iter().enumerate().map(|(part, members)| {
            let mut near: Vec<u32> = Vec::new();
            for &node in members {
                for &(neighbour, weight) in self.neighbours(node) {
                    let label = labels[neighbour as usize];
                    if label as usize != part {
                        if sums[label as usize] == 0.0 {
                            near.push(label);
                        }
                        sums[label as usize] += weight;
                    }
                }
            }
            near.sort_unstable();
            near.into_iter().map(|label| (label, std::mem::take(&mut sums[label as usize]))).collect()
        });
        let rows = rows.collect();
        Self::from_rows(rows, degrees)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{pairs, partition::agreement};
    use proptest::prelude::*;

    fn graph(nodes: usize, weight: impl Fn(usize, usize) -> f64) -> Weighted {
        Weighted::new(nodes, pairs::all(nodes).map(|(i, j)| weight(i, j)).collect()).unwrap()
    }

    /// `count` cliques of `size` nodes, each joined to the next by one edge.
    fn cliques(count: usize, size: usize, bridge: f64, closed: bool) -> Weighted {
        graph(count * size, |i, j| {
            let (a, b) = (i / size, j / size);
            let last = closed && a == 0 && b == count - 1 && count > 2;
            if a == b {
                1.0
            } else if (b == a + 1 && i % size == size - 1 && j % size == 0)
                || (last && i == 0 && j % size == size - 1)
            {
                bridge
            } else {
                0.0
            }
        })
    }

    fn random(nodes: usize, seed: u64, share: f64) -> Weighted {
        let mut rng = PublicRng::named(seed, "graph", 0, 0);
        let mut draw = || if rng.uniform() < share { rng.between(0.1, 2.0) } else { 0.0 };
        Weighted::new(nodes, pairs::all(nodes).map(|_| draw()).collect()).unwrap()
    }

    #[test]
    fn modularity_in_closed_form() {
        for k in 2..6usize {
            // Cliques apart: every one holds 1/k of the degrees, so Q = 1 - 1/k.
            let apart = cliques(k, 4, 0.0, false);
            let labels: Vec<u32> = (0..4 * k as u32).map(|node| node / 4).collect();
            let q = modularity(&apart, &labels, 1.0).unwrap();
            assert!((q - (1.0 - 1.0 / k as f64)).abs() < 1e-14);
            let q = modularity(&apart, &labels, 0.5).unwrap();
            assert!((q - (1.0 - 0.5 / k as f64)).abs() < 1e-14);
            assert!(modularity(&apart, &vec![7; 4 * k], 1.0).unwrap().abs() < 1e-14);
        }
        // Two triangles and a bridge: 6 / 7 - 1 / 2.
        let q = modularity(&cliques(2, 3, 1.0, false), &[0, 0, 0, 1, 1, 1], 1.0).unwrap();
        assert!((q - 5.0 / 14.0).abs() < 1e-15, "{q}");
        // Each alone in a complete graph of n: -1/n.
        let q = modularity(&graph(5, |_, _| 3.0), &[0, 1, 2, 3, 4], 1.0).unwrap();
        assert!((q + 0.2).abs() < 1e-15, "{q}");
        assert_eq!(
            (modularity(&graph(2, |_, _| 0.0), &[0, 1], 1.0), modularity(&graph(2, |_, _| 1.0), &[0], 1.0)),
            (Some(0.0), None)
        );
    }

    #[test]
    fn cliques_are_found() {
        for (count, size, closed) in [(2, 3, false), (2, 10, false), (6, 5, true), (12, 4, true)] {
            let found = Louvain::default().find(&cliques(count, size, 1.0, closed));
            let expected: Vec<u32> = (0..(count * size) as u32).map(|node| node / size as u32).collect();
            assert_eq!(found.labels, expected);
            assert_eq!(found.members().len(), count);
        }
    }

    /// Thirty triangles in a ring: pairs of triangles have the larger modularity (the resolution limit), and a
    /// higher resolution gives the triangles back.
    #[test]
    fn the_resolution_limit() {
        let ring = cliques(30, 3, 1.0, true);
        let (plain, fine) = (Louvain::default(), Louvain { resolution: 5.0, ..Louvain::default() });
        let merged = plain.find(&ring).members().len();
        assert!(merged < 30, "{merged}");
        let triangles: Vec<u32> = (0..90).map(|node| node / 3).collect();
        assert_eq!(fine.find(&ring).labels, triangles);
    }

    #[test]
    fn graphs_without_anything_to_find() {
        for nodes in [0usize, 1, 3] {
            let found = Louvain::default().find(&graph(nodes, |_, _| 0.0));
            assert_eq!((found.labels.len(), found.modularity), (nodes, 0.0));
            assert_eq!(found.members().len(), nodes);
        }
        assert_eq!(Louvain::default().find(&graph(6, |_, _| 2.5)).members().len(), 1);
    }

    /// Four groups of 25; inside 0.5 of the pairs are joined, between them 0.05. Seeded; both signals are far from
    /// the limit below which no method could find them.
    #[test]
    fn a_planted_partition_is_recovered() {
        for seed in 0..5 {
            let mut rng = PublicRng::named(seed, "planted", 0, 0);
            let weights = pairs::all(100)
                .map(|(i, j)| {
                    let chance = if i % 4 == j % 4 { 0.5 } else { 0.05 };
                    if rng.uniform() < chance { rng.between(0.5, 1.5) } else { 0.0 }
                })
                .collect();
            let found = Louvain { seed, ..Louvain::default() }.find(&Weighted::new(100, weights).unwrap());
            let planted: Vec<u32> = (0..100).map(|node| node % 4).collect();
            assert_eq!(agreement(&found.labels, &planted).unwrap().nmi, 1.0, "seed {seed}");
        }
    }

    /// All divisions of eight nodes tried: the best one is found on each of 40 seeded graphs.
    #[test]
    fn small_graphs_are_solved() {
        fn best(graph: &Weighted, labels: &mut Vec<u32>, most: &mut f64) {
            if labels.len() == graph.nodes() {
                *most = most.max(modularity(graph, labels, 1.0).unwrap());
                return;
            }
            for label in 0..=labels.iter().max().map_or(0, |top| top + 1) {
                labels.push(label);
                best(graph, labels, most);
                labels.pop();
            }
        }
        for seed in 0..40 {
            let graph = random(8, seed, 0.5);
            let mut most = f64::MIN;
            best(&graph, &mut Vec::new(), &mut most);
            let found = Louvain { restarts: 20, ..Louvain::default() }.find(&graph).modularity;
            assert!((found - most).abs() < 1e-12, "seed {seed}: {found} of {most}");
        }
    }

    #[test]
    fn no_random_division_is_better() {
        for seed in 0..50 {
            let nodes = 5 + (seed as usize % 30);
            let graph = random(nodes, seed, 0.3);
            let found = Louvain::default().find(&graph).modularity;
            let mut rng = PublicRng::named(seed, "division", 0, 0);
            for _ in 0..50 {
                let parts = 1 + rng.below(nodes as u32);
                let labels: Vec<u32> = (0..nodes).map(|_| rng.below(parts)).collect();
                assert!(modularity(&graph, &labels, 1.0).unwrap() <= found + 1e-12);
            }
        }
    }

    proptest! {
        /// Nothing improves by moving one node, whatever the graph; and the same seed gives the same answer.
        #[test]
        fn no_single_move_improves(nodes in 1usize..25, seed in any::<u64>(), share in 0.05f64..1.0, resolution in 0.2f64..3.0) {
            let graph = random(nodes, seed, share);
            let louvain = Louvain { resolution, restarts: 2, seed };
            let found = louvain.find(&graph);
            prop_assert_eq!(&found, &louvain.find(&graph));
            let q = modularity(&graph, &found.labels, resolution).unwrap();
            prop_assert_eq!(q, found.modularity);
            let alone: Vec<u32> = (0..nodes as u32).collect();
            prop_assert!(q >= modularity(&graph, &alone, resolution).unwrap() - 1e-12);
            let parts = found.members().len() as u32;
            let mut labels = found.labels.clone();
            for node in 0..nodes {
                // The last is a community of its own.
                for to in 0..=parts {
                    let home = std::mem::replace(&mut labels[node], to);
                    prop_assert!(modularity(&graph, &labels, resolution).unwrap() <= q + 1e-10);
                    labels[node] = home;
                }
            }
        }
    }
}
