//! The graph of clients: from what they told, from their models, or from losses.

use super::settings::{Resolved, SetupStatistics, Source};
use super::{Edges, Seat};
use crate::federation::Member;
use fedkin_graph::{Sparse, Weighted, similarity};
use fedkin_learner::signals::{self, Smooth};
use fedkin_numeric::{distance2, exp, ln};

/// The graph from what clients told at the set-up, by their positions. A client that told nothing counts as the mean of the
/// others.
pub(super) fn from_told(settings: &Resolved, told: SetupStatistics, seats: &[&Seat]) -> Option<Sparse> {
    let length = seats.iter().map(|seat| seat.told.len()).max()?;
    let known: Vec<&Vec<f64>> =
        seats.iter().map(|seat| &seat.told).filter(|told| told.len() == length).collect();
    let mut mean = vec![0.0; length];
    for told in &known {
        fedkin_numeric::axpy(1.0 / known.len() as f64, told, &mut mean);
    }
    let all: Vec<Vec<f64>> = seats
        .iter()
        .map(|seat| if seat.told.len() == length { seat.told.clone() } else { mean.clone() })
        .collect();
    match told {
        SetupStatistics::Printed => similarity::paper_28(&all).ok().and_then(|graph| sparse(&graph)),
        SetupStatistics::Profile => similarity::pearson(&all).ok().and_then(|graph| sparse(&graph)),
        SetupStatistics::Kernel { features, labels } => {
            // Features first, labels after them.
            let cut = if labels { length.saturating_sub(settings.classes) } else { length };
            let first: Vec<Vec<f64>> = all.iter().map(|told| told[..cut].to_vec()).collect();
            let last: Vec<Vec<f64>> = all.iter().map(|told| told[cut..].to_vec()).collect();
            let mut kinds: Vec<&[Vec<f64>]> = Vec::new();
            if features {
                kinds.push(&first);
            }
            if labels {
                kinds.push(&last);
            }
            let points = similarity::Points::standardised(&kinds).ok()?;
            similarity::knn_kernel(&points, settings.neighbours, settings.weak).ok()
        }
    }
}

/// The graph from the models of all clients.
pub(super) fn from_models(settings: &Resolved, models: &[&[f64]]) -> Option<Sparse> {
    if settings.source != Source::FedGl {
        let points = similarity::Points::models(models).ok()?;
        return similarity::knn_kernel(&points, settings.neighbours, settings.weak).ok();
    }

    // Clients are the nodes, coordinates the signals; distances are brought to mean one, so that the weights of the
    // problem mean the same at every stage of training.
    let mut zbar = Vec::with_capacity(signals::pairs_of(models.len()));
    for (i, a) in models.iter().enumerate() {
        zbar.extend(models[i + 1..].iter().map(|b| distance2(a, b)));
    }
    let mean = zbar.iter().sum::<f64>() / zbar.len() as f64;
    if mean.is_nan() || mean <= 0.0 {
        return None;
    }
    fedkin_numeric::scale(1.0 / mean, &mut zbar);
    fedkin_numeric::scale(2.0, &mut zbar);
    let (mut graph, mut dual) = (zbar, Vec::new());
    signals::solve(Smooth::ALPHA, 4.0 * Smooth::BETA, &mut graph, &mut dual, &mut Vec::new()).ok()?;
    // The largest weight is one, as with a kernel.
    let most = graph.iter().copied().fold(0.0, f64::max);
    fedkin_numeric::scale(1.0 / most, &mut graph);
    with_weak(&Weighted::new(models.len(), graph).ok()?, settings.weak)
}

/// The graph from losses: `told[j]` of client i is its loss with the model of client j, its own at j = i. The distance of two
/// clients is how much worse each does with the other's model, as a logarithm: 0 where neither loses.
pub(super) fn from_losses(settings: &Resolved, seats: &[&Seat]) -> Option<Sparse> {
    let count = seats.len();
    let worse = |i: usize, j: usize| {
        let told = &seats[i].told;
        let (own, other) = (told.get(i)?, told.get(j)?);
        let gap = ln(other.max(1e-12)) - ln(own.max(1e-12));
        gap.is_finite().then_some(gap)
    };
    let mut gaps = vec![f64::INFINITY; count * count];
    for i in 0..count {
        for j in 0..count {
            if i != j
                && let (Some(a), Some(b)) = (worse(i, j), worse(j, i))
            {
                gaps[i * count + j] = (0.5 * (a + b)).max(0.0);
            }
        }
    }
    let near = settings.neighbours.min(count - 1);
    let mut edges = vec![false; count * count];
    let mut reach = Vec::with_capacity(count);
    for i in 0..count {
        let mut order: Vec<usize> = (0..count).filter(|&j| j != i).collect();
        order.sort_by(|&a, &b| gaps[i * count + a].total_cmp(&gaps[i * count + b]).then(a.cmp(&b)));
        for &j in &order[..near] {
            edges[i * count + j] = true;
        }
        reach.push(gaps[i * count + order[near - 1]]);
    }
    reach.sort_by(f64::total_cmp);
    let scale = reach[count / 2].max(1e-9);
    let mut listed = Vec::new();
    for i in 0..count {
        for j in i + 1..count {
            let gap = gaps[i * count + j];
            if (edges[i * count + j] || edges[j * count + i]) && gap.is_finite() {
                listed.push((i, j, exp(-(gap / scale) * (gap / scale))));
            }
        }
    }
    Sparse::new(count, listed, settings.weak / count as f64).ok()
}

/// What the run brings, by client id.
pub(super) fn from_run(settings: &Resolved, edges: &[(u32, u32, f64)], ids: &[u32]) -> Option<Sparse> {
    let place = |id: u32| ids.binary_search(&id).ok();
    let listed = edges.iter().filter_map(|&(a, b, weight)| Some((place(a)?, place(b)?, weight)));
    Sparse::new(ids.len(), listed, settings.weak / ids.len() as f64).ok()
}

/// All pairs of clients of one cluster, with weights that sum to one at a client: what knowing the clusters is worth.
pub(super) fn clusters(settings: &Resolved, members: &[Member]) -> Option<Sparse> {
    let count = members.len();
    let size = |cluster: u32| members.iter().filter(|member| member.cluster == cluster).count();
    let mut listed = Vec::new();
    for (i, a) in members.iter().enumerate() {
        let weight = 1.0 / (size(a.cluster) as f64 - 1.0).max(1.0);
        let alike = members.iter().enumerate().skip(i + 1).filter(|(_, b)| b.cluster == a.cluster);
        listed.extend(alike.map(|(j, _)| (i, j, weight)));
    }
    Sparse::new(count, listed, settings.weak / count as f64).ok()
}

/// Every pair alike, with weights that sum to one at a client.
pub(super) fn complete(count: usize) -> Option<Sparse> {
    Sparse::new(count, std::iter::empty(), 1.0 / (count as f64 - 1.0).max(1.0)).ok()
}

fn sparse(graph: &Weighted) -> Option<Sparse> {
    with_weak(graph, 0.0)
}

fn with_weak(graph: &Weighted, weak: f64) -> Option<Sparse> {
    let count = graph.nodes();
    Sparse::new(count, graph.edges(0.0), weak / count as f64).ok()
}

impl Edges {
    /// In the form that is kept.
    pub(super) fn of(graph: &Sparse) -> Self {
        let (mut ends, mut weights) =
            (Vec::with_capacity(2 * graph.listed()), Vec::with_capacity(graph.listed()));
        for (i, j, weight) in graph.edges() {
            ends.extend([i as u32, j as u32]);
            weights.push(weight);
        }
        Self { ends: ends.into_boxed_slice(), weights, everywhere: graph.everywhere() }
    }

    /// Pairs with their weights.
    pub(super) fn iter(&self) -> impl Iterator<Item = (u32, u32, f64)> + '_ {
        self.ends.as_chunks::<2>().0.iter().zip(&self.weights).map(|(&[i, j], &weight)| (i, j, weight))
    }

    /// In the form that filters take.
    pub(super) fn graph(&self, count: usize) -> Option<Sparse> {
        let listed = self.iter().map(|(i, j, weight)| (i as usize, j as usize, weight));
        Sparse::new(count, listed, self.everywhere).ok()
    }
}
