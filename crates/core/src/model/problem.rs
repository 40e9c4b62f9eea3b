//! What the clients of a run fit: a linear model, or a graph.

use super::Model;
use crate::params::Values;
use crate::privacy::Bound;
use crate::signals::Smooth;

/// What every client fits.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Problem {
    /// A linear model of targets.
    Linear(Model),
    /// A graph of the columns.
    Graph(Smooth),
}

impl Problem {
    /// From the values of `[model]`.
    pub fn new(values: &Values) -> Result<Self, String> {
        match values.text("kind") {
            Some("graph") => Ok(Problem::Graph(Smooth::new(values))),
            _ => Model::new(values).map(Problem::Linear),
        }
    }

    /// The number of parameters for this many columns.
    pub fn dimension(&self, columns: usize) -> usize {
        match self {
            Problem::Linear(model) => model.dimension(columns),
            Problem::Graph(smooth) => smooth.dimension(columns),
        }
    }

    /// The linear model, for methods that fit one.
    pub fn linear(&self) -> Result<Model, String> {
        match self {
            Problem::Linear(model) => Ok(*model),
            Problem::Graph(_) => {
                Err("this fits linear models: set model.kind = \"ridge\" or \"logistic\", or \
                 learn graphs with algorithm.name = \"fedgl\", \"fedgl-average\" or \"igl\""
                    .into())
            }
        }
    }

    /// The graph, for methods that learn one.
    pub fn graph(&self) -> Result<Smooth, String> {
        match self {
            Problem::Graph(smooth) => Ok(*smooth),
            Problem::Linear(_) => Err("this learns graphs: set model.kind = \"graph\"".into()),
        }
    }

    /// The bound on one record's gradient that preparing the records enforces, if it does.
    pub fn enforced_bound(&self) -> Option<Bound> {
        match self {
            Problem::Linear(model) => model.enforced_bound(),
            Problem::Graph(_) => None,
        }
    }
}
