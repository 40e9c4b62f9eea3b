//! Graphs that share a consensus graph, and smooth signals on them: section V-A of the FedGL paper.
//!
//! | symbol | meaning | key |
//! |---|---|---|
//! | d | nodes, uniform in the unit square | `nodes` |
//! | G0 | base graph, weights exp(-distance^2 / (2 width^2)), those below the threshold removed | `width`, `threshold` |
//! | q | share of the edges of G0 that a client keeps | `kept_share` |
//! | G1, G2, ... | kept edges, and a random one for each that was not kept, with their weights permuted | |
//! | sigma | x ~ N(0, (L + sigma^2 I)^-1), equation (33) | `noise` |
//!
//! The kept edges are nested: a client with a larger share keeps all that one with a smaller share keeps, and the
//! consensus graph is what all of them keep. A client graph in several pieces is drawn again, and where that does not
//! help the base graph is.

use super::smooth::{SmoothSignals, fits, signals};
use super::world::{Seat, assemble_signals, server_of};
use super::{node_names, pairs};
use crate::Request;
use crate::error::DataError;
use crate::options::Each;
use crate::prepare::check;
use crate::prepare::parallel::InOrder;
use crate::registry::Source;
use crate::world::{Nodes, World};
use fedkin_numeric as numeric;
use fedkin_numeric::rng::{PublicRng, Random};
use fedkin_settings::{Kind, Preset, choice, settings};
use rayon::prelude::*;

/// Draws of one client's own edges before the base graph is given up.
const CLIENT_TRIES: u32 = 100;
/// Base graphs before the world is given up.
const BASE_TRIES: u32 = 100;

choice! {
    /// Whose the base graph is.
    pub enum Base {
        /// Nobody's.
        Common = "common",
        /// The first client's, which keeps all of it.
        First = "first",
    }
}

settings! {
    /// `[data]` of graphs that share a consensus graph.
    pub struct GraphSignals {
        nodes: usize => Kind::Integer { least: 2, most: 5000 }, Preset::Integer(20),
            "number of nodes, uniform in the unit square";
        clients: usize => Kind::Integer { least: 1, most: 100_000 }, Preset::Integer(5),
            "number of clients, each with a graph of its own";
        kept_share: Each<f64> => Kind::Either(&[Kind::SHARE, Kind::List(&Kind::SHARE)]), Preset::Number(0.5),
            "share of the base graph's edges that a client keeps, the rest being random, or a list with one share per client";
        base: Base => Kind::Choice(Base::WORDS), Preset::Text("common"),
            "whose the base graph is: nobody's, or the first client's, which then keeps all of it";
        width: f64 => Kind::Number { least: 0.0, most: 1e6, open: true }, Preset::Number(0.5),
            "an edge weighs exp(-distance^2 / (2 width^2))";
        threshold: f64 => Kind::SHARE, Preset::Number(0.75),
            "edges of the base graph that weigh less are removed";
        flatten signals: SmoothSignals;
    }
}

/// The settings of the graphs, checked against each other.
struct Plan {
    nodes: usize,
    width: f64,
    threshold: f64,
    /// By client.
    shares: Vec<f64>,
    seed: u64,
}

/// The graphs of a world.
struct Graphs {
    positions: Vec<[f64; 2]>,
    common: Vec<f64>,
    clients: Vec<Vec<f64>>,
}

impl Plan {
    fn new(settings: &GraphSignals, seed: u64) -> Result<Self, DataError> {
        let mut shares = settings.kept_share.per_client("kept_share", settings.clients)?;
        if settings.base == Base::First {
            if shares[0] != 1.0 && matches!(settings.kept_share, Each::Listed(_)) {
                let message = format!(
                    "the first client has the base graph itself, so the list starts with 1, not with {}; or set \
                     `base = \"common\"`",
                    shares[0]
                );
                return Err(DataError::config("kept_share", message));
            }
            shares[0] = 1.0;
        }
        let GraphSignals { nodes, width, threshold, .. } = *settings;
        Ok(Self { nodes, width, threshold, shares, seed })
    }

    fn graphs(&self) -> Result<Graphs, DataError> {
        let mut edges = 0;
        for attempt in 0..BASE_TRIES {
            let mut rng = PublicRng::named(self.seed, "world/graph", attempt, 0);
            let positions: Vec<[f64; 2]> = (0..self.nodes).map(|_| [rng.uniform(), rng.uniform()]).collect();
            let base = self.base(&positions);
            let mut kept: Vec<usize> = (0..base.len()).filter(|&pair| base[pair] > 0.0).collect();
            edges = edges.max(kept.len());
            // The first edges of this order are kept, so that kept edges are nested.
            rng.shuffle(&mut kept);
            let drawn: Option<Vec<Vec<f64>>> = (self.shares.iter().zip(0u32..))
                .map(|(&share, client)| self.client(&base, &kept, share, attempt, client))
                .collect();
            if let Some(clients) = drawn {
                let least = self.shares.iter().copied().fold(1.0, f64::min);
                let common = only(&base, &kept[..count(kept.len(), least)]);
                return Ok(Graphs { positions, common, clients });
            }
        }
        let message = format!(
            "no connected graphs for all clients in {BASE_TRIES} base graphs of {} nodes, which had up to {edges} edges: lower \
             the threshold, raise `width`, or ask for more nodes",
            self.nodes
        );
        Err(DataError::config("threshold", message))
    }

    fn base(&self, positions: &[[f64; 2]]) -> Vec<f64> {
        let weight = |(a, b): (usize, usize)| {
            let [x, y] = [0, 1].map(|axis| positions[a][axis] - positions[b][axis]);
            let weight = numeric::exp(-(x * x + y * y) / (2.0 * self.width * self.width));
            if weight >= self.threshold { weight } else { 0.0 }
        };
        pairs(self.nodes).map(weight).collect()
    }

    /// The kept edges and random others, connected; none where the tries are used up.
    fn client(
        &self,
        base: &[f64],
        edges: &[usize],
        share: f64,
        attempt: u32,
        client: u32,
    ) -> Option<Vec<f64>> {
        if edges.len() + 1 < self.nodes {
            return None;
        }
        let (kept, removed) = edges.split_at(count(edges.len(), share));
        let common = only(base, kept);
        let mut free: Vec<usize> = (0..base.len()).filter(|&pair| common[pair] == 0.0).collect();
        let mut weights: Vec<f64> = removed.iter().map(|&pair| base[pair]).collect();
        let mut rng = PublicRng::named(self.seed, "world/graph/client", attempt, client);
        let tries = if removed.is_empty() { 1 } else { CLIENT_TRIES };
        (0..tries).find_map(|_| {
            rng.shuffle(&mut free);
            rng.shuffle(&mut weights);
            let mut graph = common.clone();
            for (&pair, &weight) in free.iter().zip(&weights) {
                graph[pair] = weight;
            }
            connected(&graph, self.nodes).then_some(graph)
        })
    }
}

/// How many of so many edges a share is.
fn count(edges: usize, share: f64) -> usize {
    ((edges as f64 * share).round() as usize).min(edges)
}

/// A graph with these edges of another.
fn only(graph: &[f64], edges: &[usize]) -> Vec<f64> {
    let mut kept = vec![0.0; graph.len()];
    for &pair in edges {
        kept[pair] = graph[pair];
    }
    kept
}

/// Whether every node can be reached from every other.
fn connected(graph: &[f64], nodes: usize) -> bool {
    // Each node points at another of its piece, and the pointers end at one node per piece.
    let mut towards: Vec<usize> = (0..nodes).collect();
    let end = |towards: &mut [usize], mut node: usize| {
        while towards[node] != node {
            towards[node] = towards[towards[node]];
            node = towards[node];
        }
        node
    };
    let mut pieces = nodes;
    for ((a, b), &weight) in pairs(nodes).zip(graph) {
        if weight > 0.0 {
            let (a, b) = (end(&mut towards, a), end(&mut towards, b));
            if a != b {
                towards[a] = b;
                pieces -= 1;
            }
        }
    }
    pieces <= 1
}

impl Source for GraphSignals {
    const NAME: &'static str = "synthetic.graph-signals";
    const SUMMARY: &'static str =
        "smooth signals on known graphs that share a consensus graph, as in the FedGL paper";

    fn load(&self, request: &Request<'_>) -> Result<World, DataError> {
        check::has_none(request.task, Self::NAME)?;
        let topology = server_of(request)?;
        let clients = self.clients;
        let plan = Plan::new(self, request.seed)?;
        let samples = self.signals.counts(clients)?;
        let SmoothSignals { noise, test_samples, .. } = self.signals;
        fits(plan.nodes, &samples, test_samples)?;
        let Graphs { positions, common, clients: graphs } = plan.graphs()?;
        let width = clients.to_string().len();
        let seats = graphs
            .into_par_iter()
            .zip(samples)
            .enumerate()
            .map(|(at, (graph, samples))| {
                let counts = [samples, test_samples];
                let [train, test] = signals((&graph, plan.nodes), noise, counts, (request.seed, at as u32))?;
                let name = format!("client-{:0width$}", at + 1);
                Ok::<_, DataError>(Seat { test, graph: Some(graph), ..Seat::new(name, train) })
            })
            .in_order()?;
        let nodes = Nodes { positions: Some(positions), labels: None };
        assemble_signals(node_names(plan.nodes), seats, topology, Some(common), Some(nodes))
    }
}
