//! What `fedkin graph` says about graphs; the fields are those of its JSON.

use super::{Labels, Named, matched};
use crate::Error;
use fedkin_graph::communities::Louvain;
use fedkin_graph::compare::{Confusion, relative_error, scale_free_error};
use fedkin_graph::partition::agreement;
use serde::Serialize;

/// So many of the strongest nodes are named.
const STRONGEST: usize = 5;
/// The work for a spectrum grows with the cube of the nodes; above this it is left out.
const MOST_FOR_SPECTRUM: usize = 2000;

/// A graph at a glance. Everything is about the edges above the threshold.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Summary {
    /// The file.
    pub file: String,
    /// Number of nodes.
    pub nodes: usize,
    /// Number of edges.
    pub edges: usize,
    /// Edges over pairs.
    pub density: f64,
    /// What counts as an edge: a weight above this.
    pub threshold: f64,
    /// Sums of the weights at the nodes.
    pub degrees: Degrees,
    /// The nodes of the largest degrees.
    pub strongest: Vec<Strong>,
    /// The connected pieces, largest first.
    pub components: Vec<Piece>,
    /// The eigenvalues of the Laplacian; `None` for very large graphs and for weights beyond measure.
    pub spectrum: Option<Spectrum>,
}

/// Least, mean and largest degree.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Degrees {
    /// The least.
    pub min: f64,
    /// The mean.
    pub mean: f64,
    /// The largest.
    pub max: f64,
}

/// A node that is linked strongly.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Strong {
    /// Its name.
    pub node: String,
    /// The sum of its weights.
    pub degree: f64,
    /// The number of its edges.
    pub edges: usize,
}

/// A connected piece.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Piece {
    /// How many nodes.
    pub size: usize,
    /// Their names.
    pub nodes: Vec<String>,
}

/// The eigenvalues of the Laplacian.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Spectrum {
    /// The second of them: zero in a graph of several pieces, larger the harder it is to cut.
    pub algebraic_connectivity: f64,
    /// The largest.
    pub largest: f64,
    /// All, ascending.
    pub values: Vec<f64>,
}

impl Summary {
    /// Looks at a graph.
    pub fn of(file: &str, named: &Named, threshold: f64) -> Self {
        let graph = named.graph.above(threshold);
        let (degrees, edges) = (graph.degrees(), graph.neighbours(0.0));
        let mut ranks: Vec<usize> = (0..graph.nodes()).collect();
        ranks.sort_by(|&a, &b| degrees[b].total_cmp(&degrees[a]));
        let strongest = ranks.iter().take(STRONGEST).filter(|&&node| edges[node] > 0).map(|&node| Strong {
            node: named.nodes[node].clone(),
            degree: degrees[node],
            edges: edges[node],
        });
        let mut components: Vec<Piece> = Vec::new();
        for (node, number) in graph.components(0.0).into_iter().enumerate() {
            let at = number as usize;
            if at == components.len() {
                components.push(Piece { size: 0, nodes: Vec::new() });
            }
            components[at].size += 1;
            components[at].nodes.push(named.nodes[node].clone());
        }
        // Stable: pieces of one size stay in the order of their first nodes.
        components.sort_by_key(|piece| std::cmp::Reverse(piece.size));
        let values = if graph.nodes() <= MOST_FOR_SPECTRUM { graph.spectrum() } else { None };
        let spectrum = values.map(|mut values| {
            // A Laplacian has one zero per piece and nothing below; what else there is comes from rounding.
            for zero in values.iter_mut().take(components.len()) {
                *zero = 0.0;
            }
            Spectrum {
                algebraic_connectivity: values.get(1).copied().unwrap_or(0.0),
                largest: values.last().copied().unwrap_or(0.0),
                values,
            }
        });
        Self {
            file: file.to_string(),
            nodes: graph.nodes(),
            edges: graph.edges(0.0).count(),
            density: graph.density(0.0),
            threshold,
            degrees: Degrees {
                min: ranks.last().map_or(0.0, |&node| degrees[node]),
                mean: degrees.iter().sum::<f64>() / degrees.len().max(1) as f64,
                max: ranks.first().map_or(0.0, |&node| degrees[node]),
            },
            strongest: strongest.collect(),
            components,
            spectrum,
        }
    }
}

/// A graph next to the truth.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Found {
    /// The file that was judged.
    pub file: String,
    /// The file it was judged by.
    pub truth: String,
    /// Number of nodes.
    pub nodes: usize,
    /// What counts as an edge: a weight above this.
    pub threshold: f64,
    /// Nodes were matched by place, as one of the files has no names.
    pub by_place: bool,
    /// Edges that were found and are true.
    pub hits: usize,
    /// Edges that were found and are not true.
    pub extra: usize,
    /// True edges that were not found.
    pub missed: usize,
    /// Pairs that are joined in neither.
    pub absent: usize,
    /// Matthews' correlation coefficient.
    pub mcc: f64,
    /// Share of the found edges that are true.
    pub precision: f64,
    /// Share of the true edges that were found.
    pub recall: f64,
    /// Their harmonic mean.
    pub f1: f64,
    /// Relative error of the weights as they are; `None` where the truth has no edge.
    pub relative_error: Option<f64>,
    /// Relative error after the best multiple.
    pub scale_free_error: Option<f64>,
    /// That multiple.
    pub scale: Option<f64>,
}

impl Found {
    /// Compares a graph with the truth; both come with the names of their files.
    pub fn of(file: (&str, &Named), truth: (&str, &Named), threshold: f64) -> Result<Self, Error> {
        let ((file, found), (truth_file, truth)) = (file, truth);
        let real = matched(found, file, truth, truth_file)?;
        // `matched` gives a graph of the same nodes: the counts are there.
        let counts = Confusion::count(&found.graph, &real, threshold).ok_or_else(|| {
            Error::Usage(format!("{file} and {truth_file} have not the same number of nodes"))
        })?;
        let free = scale_free_error(&found.graph, &real);
        Ok(Self {
            file: file.to_string(),
            truth: truth_file.to_string(),
            nodes: found.nodes.len(),
            threshold,
            by_place: found.numbered || truth.numbered,
            hits: counts.hits,
            extra: counts.extra,
            missed: counts.missed,
            absent: counts.absent,
            mcc: counts.mcc(),
            precision: counts.precision(),
            recall: counts.recall(),
            f1: counts.f1(),
            relative_error: relative_error(&found.graph, &real),
            scale_free_error: free.map(|(error, _)| error),
            scale: free.map(|(_, scale)| scale),
        })
    }
}

/// The communities of a graph.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Divided {
    /// The file.
    pub file: String,
    /// Number of nodes.
    pub nodes: usize,
    /// What the orders followed from.
    pub seed: u64,
    /// Larger values give more and smaller communities.
    pub resolution: f64,
    /// What the division is worth.
    pub modularity: f64,
    /// The communities, by their first nodes.
    pub communities: Vec<Community>,
    /// Normalised mutual information with the labels, where there are some.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nmi: Option<f64>,
    /// Rand index with the labels.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ri: Option<f64>,
    /// Index of Fowlkes and Mallows with the labels.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fmi: Option<f64>,
}

/// One community.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Community {
    /// How many nodes.
    pub size: usize,
    /// Their names.
    pub nodes: Vec<String>,
    /// How many of them have each label, most frequent first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub labels: Vec<(String, usize)>,
}

impl Divided {
    /// Looks for communities, and compares them with what is known of the nodes.
    pub fn of(file: &str, named: &Named, louvain: Louvain, known: Option<&Labels>) -> Self {
        let found = louvain.find(&named.graph);
        let measures = known.and_then(|known| agreement(&found.labels, &known.labels));
        let community = |members: Vec<usize>| {
            let mut labels: Vec<(String, usize)> = known.map_or_else(Vec::new, |known| {
                let count = |label: u32| members.iter().filter(|&&node| known.labels[node] == label).count();
                known.names.iter().zip(0..).map(|(name, label)| (name.clone(), count(label))).collect()
            });
            labels.retain(|(_, count)| *count > 0);
            labels.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
            let nodes: Vec<String> = members.iter().map(|&node| named.nodes[node].clone()).collect();
            Community { size: nodes.len(), nodes, labels }
        };
        Self {
            file: file.to_string(),
            nodes: named.nodes.len(),
            seed: louvain.seed,
            resolution: louvain.resolution,
            modularity: found.modularity,
            communities: found.members().into_iter().map(community).collect(),
            nmi: measures.map(|measures| measures.nmi),
            ri: measures.map(|measures| measures.rand),
            fmi: measures.map(|measures| measures.fowlkes_mallows),
        }
    }
}
