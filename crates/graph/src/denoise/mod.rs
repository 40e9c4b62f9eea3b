//! Denoisers of the `FedPnP` server step: the models of all clients, smoothed over a graph of clients.
//!
//! Row `k` of the signal `Omega` (`K` rows, `d` columns) is the model of client `k`; `Psi` is what comes back.
//! `L = D - A` is the Laplacian of the graph, `zeta_k` the share of the records that client `k` has, and
//! `P = K diag(zeta)`. Columns never mix: a caller may cut rows into blocks of columns and work on them at once.
//!
//! | name | `Psi` | limits |
//! |---|---|---|
//! | `sound` | `P^-1/2 h(P^-1/2 L P^-1/2) P^1/2 Omega` with `h` of (10) | `b = 0`: `Omega`; `b -> inf`: the weighted mean |
//! | `paper-10` | `(I + 2 b1 L + 2 b2 L^2)^-1 Omega` (10) | `b = 0`: `Omega`; `b -> inf`: the plain mean |
//! | `paper-12` | the same with `h(l) = 1 / (1 + b1 l + b2 l^2)` (12) | as (10) |
//! | `paper-13` | `H(L; b1, b2) diag(zeta) Omega` (13), `H` of (10) | `b = 0`: `zeta_k omega_k`; `b -> inf`: the weighted mean over `K` |
//! | `hard` | `h(l) = 1` for the `tau` least eigenvalues of `P^-1/2 L P^-1/2`, else 0 | `tau = K`: `Omega`; `tau = 1`: the weighted mean |
//! | `paper-16` | the same in the basis of `L` (16) | `tau = K`: `Omega`; `tau = 1`: the plain mean |
//! | `heat` | `exp(-b1 P^-1 L) Omega` | as `sound` |
//! | `tv` | least of `sum_k P_k (psi_k - omega_k)^2 / 2 + b1 sum_ij A_ij abs(psi_i - psi_j)`, per coordinate | as `sound`, at a finite `b1` |
//! | `knn-mean` | the weighted mean over a client and its `n` strongest neighbours | `n = 0`: `Omega`; `n = K - 1`: the weighted mean |
//!
//! The limits hold on a connected graph; else within each component. `sound` solves
//! `(P + 2 b1 L + 2 b2 L P^-1 L) Psi = P Omega`: half-quadratic splitting with both the penalty and the linear term
//! weighted by client size. Its rows sum to one and the weighted mean is kept. At a tie `hard` keeps the whole
//! eigenspace, else the result would depend on the basis; the eigenvalues of the constants are zero exactly.
//!
//! A [`Prepared`] belongs to a graph, an [`Operator`] to a graph and a strength, and is applied to many signals.

mod filters;
mod gradients;
mod lanes;
mod neighbours;
mod operator;
mod polynomial;
mod schedule;
mod spectrum;
mod variation;

pub use operator::Operator;
pub use schedule::{Decay, decayed, retained};

use crate::Sparse;
use fedkin_settings::{Named, Table, suggest};
use lanes::Flow;
use spectrum::Spectrum;
use std::fmt;
use std::sync::Arc;
use thiserror::Error;

/// Up to so many clients one eigendecomposition serves all strengths.
pub const EXACT: usize = 2000;

/// How far a denoiser goes. Each one reads the keys that its row names.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Strength {
    /// Weight of the differences: `b1`; the time of `heat` and the weight of `tv`.
    pub beta1: f64,
    /// Weight of the squared Laplacian: `b2`.
    pub beta2: f64,
    /// How many of the least eigenvalues are kept, 1 to `K`.
    pub tau: usize,
    /// How many neighbours a client is averaged with, up to `K - 1`.
    pub neighbours: usize,
}

impl Strength {
    /// Of a soft filter.
    pub fn soft(beta1: f64, beta2: f64) -> Self {
        Self { beta1, beta2, ..Self::default() }
    }

    /// Of a hard filter.
    pub fn hard(tau: usize) -> Self {
        Self { tau, ..Self::default() }
    }
}

/// How a filter is computed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Way {
    /// By the number of clients and the strength.
    #[default]
    Auto,
    /// All eigenvalues and eigenvectors once per graph, one matrix per strength.
    Exact,
    /// Chebyshev polynomials of the sparse Laplacian.
    Chebyshev,
    /// Conjugate gradients on the sparse Laplacian.
    Gradients,
}

impl Way {
    /// The words of all ways.
    pub const WORDS: &[&str] = &["auto", "exact", "chebyshev", "cg"];

    /// The way that a word names.
    pub fn parse(word: &str) -> Result<Self, String> {
        Ok(match word {
            "auto" => Self::Auto,
            "exact" => Self::Exact,
            "chebyshev" => Self::Chebyshev,
            "cg" => Self::Gradients,
            _ => {
                let hint = suggest(word, Self::WORDS.iter().copied());
                return Err(format!("unknown method {word:?}{hint}; known are {}", Self::WORDS.join(", ")));
            }
        })
    }
}

/// Why a signal cannot be denoised like that.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum DenoiseError {
    /// The graph has no client.
    #[error("the graph has no client")]
    Empty,
    /// The sizes do not belong to the graph.
    #[error("there are {sizes} sizes for {clients} clients: give one size per client")]
    Sizes {
        /// Of the graph.
        clients: usize,
        /// Sizes that were given.
        sizes: usize,
    },
    /// A size is no size.
    #[error("the size of client {0} is {1}: it must be finite and above 0")]
    Size(usize, f64),
    /// The weights of the graph are too large for its spectrum.
    #[error("the weights of the graph are too large to be summed")]
    Weights,
    /// A strength is out of its range.
    #[error("{0} is {1}: it must be 0 or more")]
    Beta(&'static str, f64),
    /// A number of eigenvalues is out of its range.
    #[error("tau is {0}: it must be from 1 to the number of clients, {1}")]
    Tau(usize, usize),
    /// More neighbours than others.
    #[error("{0} neighbours are too many: a client has {1} others")]
    Neighbours(usize, usize),
    /// The signal has not one row per client.
    #[error("the signal has {rows} rows for {clients} clients: give one row per client")]
    Rows {
        /// Clients of the graph.
        clients: usize,
        /// Rows that were given.
        rows: usize,
    },
    /// Rows have different lengths.
    #[error("row {row} of the signal has {found} columns, and the first has {columns}")]
    Columns {
        /// The row, from 0 on.
        row: usize,
        /// Of the first row.
        columns: usize,
        /// Of this row.
        found: usize,
    },
    /// A matrix has not one row per client.
    #[error("{numbers} numbers are no matrix with {clients} rows")]
    Matrix {
        /// Clients of the graph.
        clients: usize,
        /// Numbers that were given.
        numbers: usize,
    },
    /// An iteration did not get near enough.
    #[error(
        "{what} did not come to an end: still {off:e} of the signal's deviation away; choose the method exact, or less strength"
    )]
    Unfinished {
        /// Which one.
        what: &'static str,
        /// How far the result may be from the solution, as a share of the signal's deviation.
        off: f64,
    },
    /// The filter cannot be computed that way.
    #[error("{name} over {clients} clients cannot be computed by {way}: {instead}")]
    Way {
        /// The filter.
        name: &'static str,
        /// Clients of the graph.
        clients: usize,
        /// What was asked for.
        way: &'static str,
        /// What to do.
        instead: &'static str,
    },
}

/// A way to smooth signals over a graph.
pub trait Denoiser: fmt::Debug + Send + Sync {
    /// Whether clients count by their sizes; otherwise all count alike.
    fn sized(&self) -> bool;

    /// What it works on where so many clients are to be served that way.
    fn base(&self, clients: usize, way: Way) -> Base;

    /// What is done to a signal at this strength.
    fn operator(&self, on: &Prepared, strength: &Strength) -> Result<Operator, DenoiseError>;
}

/// What a denoiser needs of a graph before any strength is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Base {
    /// The list of edges.
    Edges,
    /// Eigenvalues and eigenvectors.
    Spectrum,
    /// Products with the sparse Laplacian.
    Products,
}

/// A line of the table of denoisers.
#[derive(Debug, Clone, Copy)]
pub struct DenoiserRow {
    /// The name in a config.
    pub name: &'static str,
    /// What it is, in one line.
    pub summary: &'static str,
    /// The keys of [`Strength`] that it reads.
    pub keys: &'static [&'static str],
    /// The denoiser.
    pub denoiser: &'static dyn Denoiser,
}

/// All native denoisers.
const TABLE: &[DenoiserRow] = &[
    DenoiserRow {
        name: "sound",
        summary: "soft, weighted by client size: exactly local at 0 and exactly the weighted mean at infinity",
        keys: &["beta1", "beta2"],
        denoiser: &filters::SOUND,
    },
    DenoiserRow {
        name: "paper-10",
        summary: "soft, equation (10): all clients count alike",
        keys: &["beta1", "beta2"],
        denoiser: &filters::PAPER_10,
    },
    DenoiserRow {
        name: "paper-12",
        summary: "soft, equation (12): as (10) without the factor 2",
        keys: &["beta1", "beta2"],
        denoiser: &filters::PAPER_12,
    },
    DenoiserRow {
        name: "paper-13",
        summary: "soft, equation (13) as printed: (10) on models times their shares; for comparison",
        keys: &["beta1", "beta2"],
        denoiser: &filters::PAPER_13,
    },
    DenoiserRow {
        name: "hard",
        summary: "keeps the tau smoothest shapes, weighted by client size",
        keys: &["tau"],
        denoiser: &filters::HARD,
    },
    DenoiserRow {
        name: "paper-16",
        summary: "hard, equation (16): all clients count alike",
        keys: &["tau"],
        denoiser: &filters::PAPER_16,
    },
    DenoiserRow {
        name: "heat",
        summary: "heat that flows for a time beta1, weighted by client size",
        keys: &["beta1"],
        denoiser: &filters::HEAT,
    },
    DenoiserRow {
        name: "tv",
        summary: "total variation per coordinate at weight beta1: groups of clients come out equal",
        keys: &["beta1"],
        denoiser: &variation::TotalVariation,
    },
    DenoiserRow {
        name: "knn-mean",
        summary: "the mean over a client and its strongest neighbours, weighted by client size",
        keys: &["neighbours"],
        denoiser: &neighbours::NeighbourMean,
    },
];

/// Denoisers by name.
pub type Denoisers = Table<DenoiserRow>;

impl Named for DenoiserRow {
    fn name(&self) -> &str {
        self.name
    }
}

/// The denoisers that come with Fedkin; the first is the default.
pub fn native() -> Denoisers {
    let mut denoisers = Denoisers::new("filter");
    for row in TABLE {
        // A test holds that no name is there twice.
        let added = denoisers.add(*row);
        debug_assert!(added.is_ok());
    }
    denoisers
}

/// A denoiser and what it needs of a graph, whatever the strength.
#[derive(Debug, Clone)]
pub struct Prepared {
    row: DenoiserRow,
    graph: Sparse,
    /// `zeta`: they sum to one.
    shares: Vec<f64>,
    /// The diagonal of `P`, or ones.
    mass: Vec<f64>,
    spectrum: Option<Spectrum>,
    flow: Option<Arc<Flow>>,
    way: Way,
}

impl Prepared {
    /// Prepares a denoiser for a graph of clients of these sizes (numbers of records).
    pub fn new(row: DenoiserRow, graph: Sparse, sizes: &[f64], way: Way) -> Result<Self, DenoiseError> {
        let clients = graph.nodes();
        if clients == 0 {
            return Err(DenoiseError::Empty);
        }
        if sizes.len() != clients {
            return Err(DenoiseError::Sizes { clients, sizes: sizes.len() });
        }
        if let Some((at, &size)) =
            sizes.iter().enumerate().find(|(_, size)| !(**size > 0.0 && size.is_finite()))
        {
            return Err(DenoiseError::Size(at, size));
        }
        // By the largest: the sum of sizes must not overflow.
        let most = sizes.iter().copied().fold(0.0, f64::max);
        let sum: f64 = sizes.iter().map(|size| size / most).sum();
        let shares: Vec<f64> = sizes.iter().map(|size| size / most / sum).collect();
        let mass: Vec<f64> = if row.denoiser.sized() {
            shares.iter().map(|share| share * clients as f64).collect()
        } else {
            vec![1.0; clients]
        };
        if mass.contains(&0.0) {
            let at = mass.iter().position(|&mass| mass == 0.0).unwrap_or(0);
            return Err(DenoiseError::Size(at, sizes[at]));
        }
        let (mut spectrum, mut flow) = (None, None);
        match row.denoiser.base(clients, way) {
            Base::Edges => {}
            Base::Spectrum => spectrum = Some(Spectrum::of(&graph, &mass).ok_or(DenoiseError::Weights)?),
            Base::Products => flow = Some(Arc::new(Flow::new(&graph, &mass))),
        }
        if flow.as_ref().is_some_and(|flow| !flow.reach.is_finite()) {
            return Err(DenoiseError::Weights);
        }
        Ok(Self { row, graph, shares, mass, spectrum, flow, way })
    }

    /// What is done to signals at this strength.
    pub fn at(&self, strength: &Strength) -> Result<Operator, DenoiseError> {
        self.row.denoiser.operator(self, strength)
    }

    /// The table's row of the denoiser.
    pub fn row(&self) -> &DenoiserRow {
        &self.row
    }

    /// The graph.
    pub fn graph(&self) -> &Sparse {
        &self.graph
    }

    /// The share of all records that each client has.
    pub fn shares(&self) -> &[f64] {
        &self.shares
    }

    /// Number of clients.
    pub fn clients(&self) -> usize {
        self.shares.len()
    }

    /// The eigenvalues of the Laplacian between the roots of the masses, ascending, where they were computed.
    pub fn eigenvalues(&self) -> Option<&[f64]> {
        self.spectrum.as_ref().map(Spectrum::values)
    }
}

/// A weight of zero or more; infinity is the limit.
fn check(key: &'static str, beta: f64) -> Result<f64, DenoiseError> {
    if beta >= 0.0 { Ok(beta) } else { Err(DenoiseError::Beta(key, beta)) }
}

#[cfg(test)]
mod tests;
