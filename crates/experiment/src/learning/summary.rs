//! What a call of `fedkin graph learn` says of itself.

use serde::Serialize;

/// `summary.json`, and `--json`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Summary {
    /// What wrote this: how a folder is known as ours.
    pub made_by: &'static str,
    /// The name of the method.
    pub method: &'static str,
    /// Number of nodes.
    pub nodes: usize,
    /// The value of the objective at the graphs: (8), or the sum of all `g_i` where every client is alone.
    pub objective: f64,
    /// Distance from its optimality conditions, relative to the largest graph; found without the solver.
    pub kkt: f64,
    /// What the solver was asked for.
    pub tolerance: f64,
    /// Whether the solver got there.
    pub converged: bool,
    /// Rounds of the solver.
    pub rounds: u32,
    /// Weight of the logarithms of the degrees.
    pub alpha: f64,
    /// Weight of the squared weights.
    pub beta: f64,
    /// How strongly graphs are tied to the consensus; absent where every client is alone.
    pub rho: Option<f64>,
    /// How sparse the consensus is; absent where every client is alone.
    pub lambda: Option<f64>,
    /// An edge is a weight above this share of the largest of its graph.
    pub threshold: f64,
    /// Where the parameters come from, in words.
    pub chosen: Chosen,
    /// How they were selected.
    pub selected: Option<Selected>,
    /// What protects the records.
    pub privacy: Option<Protected>,
    /// The clients by name.
    pub clients: Vec<Learner>,
    /// The consensus; absent where every client is alone.
    pub consensus: Option<Consensus>,
    /// What the user should know.
    pub warnings: Vec<String>,
    /// The files below the folder, where there is one.
    pub files: Vec<String>,
}

/// Where the parameters come from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Chosen {
    /// beta.
    pub beta: String,
    /// rho; absent where every client is alone.
    pub rho: Option<String>,
    /// lambda; absent where every client is alone.
    pub lambda: Option<String>,
    /// The threshold of edges.
    pub threshold: String,
}

/// What parameters were selected by.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Selected {
    /// Parameters that were tried.
    pub tried: usize,
    /// How often the records were cut into halves.
    pub splits: u32,
    /// Mean log-likelihood of a record that was held out, less a constant.
    pub log_likelihood: f64,
    /// Cohen's kappa of the edges that two halves find; absent where the threshold was given.
    pub agreement: Option<f64>,
}

/// The one release.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Protected {
    /// `one-shot`.
    pub mechanism: &'static str,
    /// Epsilon.
    pub epsilon: f64,
    /// Delta.
    pub delta: f64,
    /// The largest norm of one record.
    pub clip: f64,
    /// What a neighbouring data set differs in.
    pub unit: &'static str,
    /// What leaves a client.
    pub leaves: String,
    /// Whether the noise can be repeated from the seed.
    pub seeded: bool,
}

/// One client's graph.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Learner {
    /// Its name.
    pub name: String,
    /// Its records; 1 where distances were given.
    pub records: usize,
    /// Its edges.
    pub edges: usize,
    /// Edges over pairs.
    pub density: f64,
    /// Connected pieces.
    pub components: usize,
    /// Sums of the weights at the nodes.
    pub degrees: Degrees,
    /// Distance of its graph from the consensus; absent without one.
    pub distance: Option<f64>,
    /// gamma of (20): one over that distance.
    pub gamma: Option<f64>,
}

/// The graph all share.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Consensus {
    /// Its edges.
    pub edges: usize,
    /// Edges over pairs.
    pub density: f64,
    /// Connected pieces, nodes without an edge included.
    pub components: usize,
    /// Sums of the weights at the nodes.
    pub degrees: Degrees,
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
