//! Scores of learnt graphs: edges and weights against the truth, communities against labels.

use super::{Metric, Wanted, next_identity};
use fedkin_data::World;
use fedkin_graph::Weighted;
use fedkin_graph::communities::Louvain;
use fedkin_graph::compare::{Confusion, relative_error, scale_free_error};
use fedkin_graph::partition::{Agreement, agreement};
use fedkin_learner::signals::{Smooth, means};
use fedkin_method::Member;
use fedkin_method::round::Judge;

/// What is measured on a graph.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum OfGraph {
    Mcc,
    RelativeError,
    ScaledError,
    Nmi,
    Rand,
    Fmi,
    HeldOut,
    Density,
}

impl OfGraph {
    fn name(self) -> &'static str {
        let metric = match self {
            OfGraph::Mcc => Metric::Mcc,
            OfGraph::RelativeError => Metric::RelativeError,
            OfGraph::ScaledError => Metric::ScaledError,
            OfGraph::Nmi => Metric::Nmi,
            OfGraph::Rand => Metric::Rand,
            OfGraph::Fmi => Metric::Fmi,
            OfGraph::HeldOut => Metric::HeldOut,
            OfGraph::Density => Metric::Density,
        };
        metric.name()
    }
}

/// The name of the graph that is the same for all clients.
const CONSENSUS: &str = "consensus";

pub(crate) struct GraphScorer {
    columns: Vec<(String, OfGraph, usize)>,
    identity: u64,
    nodes: usize,
    smooth: Smooth,
    threshold: f64,
    /// The true graph of each client, by client id.
    truth: Vec<Option<Weighted>>,
    /// What they have in common.
    common: Option<Weighted>,
    labels: Option<Vec<u32>>,
    /// Mean squared differences of each client's test records.
    held_out: Vec<Option<Vec<f64>>>,
    /// Which of the models is the consensus.
    consensus: Option<usize>,
}

impl GraphScorer {
    pub(crate) fn new(
        world: &World,
        smooth: &Smooth,
        personal: &[&'static str],
        wanted: &Wanted<'_>,
    ) -> Self {
        let nodes = smooth.nodes(world.schema.columns()).unwrap_or(0);
        let graph = |weights: &Vec<f64>| Weighted::new(nodes, weights.clone()).ok();
        let truth: Vec<Option<Weighted>> = match &world.truth {
            Some(truth) => {
                truth.cluster.iter().map(|&k| truth.models.get(k as usize).and_then(graph)).collect()
            }
            None => Vec::new(),
        };
        let common = world.truth.as_ref().and_then(|truth| truth.common.as_ref()).and_then(graph);
        let labels = world.nodes.as_ref().and_then(|nodes| nodes.labels.clone());
        let held_out: Vec<Option<Vec<f64>>> = world
            .test
            .iter()
            .map(|test| {
                let own = means(smooth, test.as_ref()?, None).ok()?;
                Some(own.zbar.to_vec())
            })
            .collect();
        let mut columns = Vec::new();
        for (which, &name) in personal.iter().enumerate() {
            if !wanted.models.is_empty() && wanted.models.iter().all(|wanted| wanted != name) {
                continue;
            }
            let mut metrics = Vec::new();
            let known = if name == CONSENSUS { common.is_some() } else { !truth.is_empty() };
            if known {
                metrics.extend([OfGraph::Mcc, OfGraph::RelativeError, OfGraph::ScaledError]);
            }
            if labels.is_some() {
                metrics.extend([OfGraph::Nmi, OfGraph::Rand, OfGraph::Fmi]);
            }
            if name != CONSENSUS && held_out.iter().any(Option::is_some) {
                metrics.push(OfGraph::HeldOut);
            }
            metrics.push(OfGraph::Density);
            columns.extend(
                metrics.into_iter().map(|metric| (format!("{}.{name}", metric.name()), metric, which)),
            );
        }
        // The first column is the headline: what is compared with a truth comes first.
        columns.sort_by_key(|(_, metric, which)| (*metric, *which));
        Self {
            columns,
            identity: next_identity(),
            nodes,
            smooth: *smooth,
            threshold: wanted.threshold,
            truth,
            common,
            labels,
            held_out,
            consensus: personal.iter().position(|name| *name == CONSENSUS),
        }
    }

    pub(crate) fn names(&self) -> Vec<String> {
        self.columns.iter().map(|(name, ..)| name.clone()).collect()
    }
}

impl Judge for GraphScorer {
    fn columns(&self) -> usize {
        self.columns.len()
    }

    fn score(&self, member: &Member, _: bool, which: usize, weights: &[f64], row: &mut [f64]) {
        let id = member.id as usize;
        let Ok(graph) = Weighted::new(self.nodes, weights.to_vec()) else { return };
        let truth = if Some(which) == self.consensus {
            self.common.as_ref()
        } else {
            self.truth.get(id).and_then(Option::as_ref)
        };
        // Communities are looked for once for all that is measured on them.
        let mut known: Option<Option<Agreement>> = None;
        let mut agreed = || {
            *known.get_or_insert_with(|| {
                let found = Louvain::default().find(&graph.above(self.threshold));
                self.labels.as_ref().and_then(|labels| agreement(&found.labels, labels))
            })
        };
        for (column, (_, metric, model)) in self.columns.iter().enumerate() {
            if *model != which {
                continue;
            }
            let against = |score: fn(&Weighted, &Weighted) -> Option<f64>| {
                truth.and_then(|truth| score(&graph, truth)).unwrap_or(f64::NAN)
            };
            row[column] = match metric {
                OfGraph::Mcc => truth
                    .and_then(|truth| Confusion::count(&graph, truth, self.threshold))
                    .map_or(f64::NAN, |confusion| confusion.mcc()),
                OfGraph::RelativeError => against(relative_error),
                OfGraph::ScaledError => {
                    against(|graph, truth| scale_free_error(graph, truth).map(|(error, _)| error))
                }
                OfGraph::Nmi => agreed().map_or(f64::NAN, |agreed| agreed.nmi),
                OfGraph::Rand => agreed().map_or(f64::NAN, |agreed| agreed.rand),
                OfGraph::Fmi => agreed().map_or(f64::NAN, |agreed| agreed.fowlkes_mallows),
                OfGraph::HeldOut => match self.held_out.get(id) {
                    Some(Some(zbar)) => self.smooth.value(zbar, weights, &mut Vec::new()),
                    _ => f64::NAN,
                },
                OfGraph::Density => graph.density(self.threshold),
            };
        }
    }

    fn identity(&self) -> Option<u64> {
        Some(self.identity)
    }
}
