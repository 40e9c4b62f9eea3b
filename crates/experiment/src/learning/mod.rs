//! Graphs from files of signals, in one call: the work behind `fedkin graph learn`.
//!
//! The methods are those of a run, driven in one process: `igl` for a client alone, `fedgl` for several. Around them
//! stands what a person with files needs: reading and refusing ([`Input`]), parameters that follow the scale of the data
//! (`choice`), parameters without a truth (`select`), an independent look at the optimality conditions (`optimality`), and
//! files for other tools ([`Folder`]).
//!
//! Scale. With zbar s times as large the same graph over s comes from beta s^2, rho s and lambda s times as large. All
//! choices made here follow that rule, and the solver works on data whose mean squared difference is near 1: signals
//! are divided by a power of two, which changes no bit of the result.

mod choice;
mod input;
mod learn;
mod likelihood;
mod optimality;
mod output;
mod private;
mod select;
mod solve;
mod summary;

pub use input::{Input, Sources};
pub use learn::{Learnt, learn};
pub use output::Folder;
pub use private::Shield;
pub use select::{SPLITS, fits as selection_fits};
pub use summary::{Chosen, Consensus, Degrees, Learner, Protected, Selected, Summary};

/// What to learn, and how.
#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    /// Weight of the logarithms of the degrees.
    pub alpha: f64,
    /// Weight of the squared weights.
    pub beta: Option<f64>,
    /// The density that beta is to give, where beta is not given.
    pub density: Option<f64>,
    /// How strongly the graphs are tied to the consensus.
    pub rho: Option<f64>,
    /// How sparse the consensus is.
    pub lambda: Option<f64>,
    /// Choose what is not given by held-out records.
    pub select: bool,
    /// Every client for itself.
    pub alone: bool,
    /// Distance from the optimality conditions at which the solver ends.
    pub tolerance: f64,
    /// Rounds after which it ends in any case.
    pub rounds: u32,
    /// An edge is a weight above this share of the largest of its graph.
    pub threshold: Option<f64>,
    /// What drawn numbers follow from.
    pub seed: u64,
    /// What protects the records.
    pub shield: Option<Shield>,
}

/// The share of the largest weight above which a weight is an edge, where nobody says otherwise.
pub const THRESHOLD: f64 = 1e-4;

/// The three numbers of an objective.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Parameters {
    beta: f64,
    /// rho and lambda; absent where every client is alone.
    tie: Option<(f64, f64)>,
}

#[cfg(test)]
mod tests;
