//! What the clients of a run fit: a linear model, one of several classes, a graph, or a hypothesis without parameters to
//! average.

use super::{Loss, Model, NetModel, Parametric, Softmax};
use crate::hypothesis::{Kind, Kinds};
use crate::params::Values;
use crate::privacy::Bound;
use crate::signals::Smooth;

/// What every client fits.
#[derive(Debug, Clone, PartialEq)]
pub enum Problem {
    /// A linear model of targets.
    Linear(Model),
    /// A probability for each of several classes.
    Classes(Softmax),
    /// A graph of the columns.
    Graph(Smooth),
    /// Hypotheses of one or several kinds: trees, nearest neighbours, forests, linear models.
    Agnostic(Kinds),
    /// A neural net.
    Net(NetModel),
}

/// What data say of themselves, where they do.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Known {
    /// How many classes their labels have.
    pub classes: Option<usize>,
    /// Channels, height and width of a record.
    pub shape: Option<[usize; 3]>,
}

/// Why a method that fits a client's problem exactly refuses nets.
const NO_EXACT_FIT: &str = "this solves every client's problem exactly, which a net has no way for: take algorithm.name = \"fedpnp\", \
     \"fedavg\", \"fedprox\", \"fedbn\", \"per-fedavg\", \"pfedme\", \"ifca\" or \"local\", or model.kind = \"ridge\", \"logistic\" or \"softmax\"";

/// Why a method that computes with parameters refuses trees and the like.
fn no_parameters(kinds: &Kinds) -> String {
    let what = if kinds.all().len() > 1 { "different kinds of model have" } else { "this kind of model has" };
    format!(
        "{what} no parameters in common, and this method averages or steps along parameters (parametric averaging over \
         different kinds of model): set algorithm.name = \"persfl-agnostic\", or \"local\", \"centralized\" or \"pooled\" to \
         compare with, or model.kind = \"ridge\" or \"logistic\""
    )
}

impl Problem {
    /// From the values of `[model]`.
    pub fn new(values: &Values) -> Result<Self, String> {
        Self::knowing(values, Known::default())
    }

    /// The same where the data say something of themselves.
    pub fn knowing(values: &Values, known: Known) -> Result<Self, String> {
        match values.text("kind") {
            Some("softmax") => Softmax::new(values, known.classes).map(Problem::Classes),
            Some("net") => NetModel::of(values, known.classes, known.shape).map(Problem::Net),
            Some("graph") => Ok(Problem::Graph(Smooth::new(values))),
            Some("tree" | "knn" | "forest" | "mixed") => Kinds::new(values).map(Problem::Agnostic),
            _ => Model::new(values).map(Problem::Linear),
        }
    }

    /// The number of parameters for this many columns; of columns, where models have no fixed number of parameters.
    pub fn dimension(&self, columns: usize) -> usize {
        match self {
            Problem::Linear(model) => model.dimension(columns),
            Problem::Classes(model) => model.dimension(columns),
            Problem::Graph(smooth) => smooth.dimension(columns),
            Problem::Agnostic(_) => columns,
            Problem::Net(model) => model.net().length(),
        }
    }

    /// Whether records of this many columns are what the model takes.
    pub fn takes(&self, columns: usize) -> Result<(), String> {
        match self {
            Problem::Net(model) if model.columns() != columns => {
                let [channels, height, width] = model.net().input();
                Err(format!(
                    "the net takes records of {} numbers ({channels} x {height} x {width}), but the data have {columns} \
                     columns: set `model.input` to their shape",
                    model.columns()
                ))
            }
            _ => Ok(()),
        }
    }

    /// The linear model, for methods that fit one.
    pub fn linear(&self) -> Result<Model, String> {
        match self {
            Problem::Linear(model) => Ok(*model),
            Problem::Classes(_) => {
                Err("this fits models of one product x'w: set model.kind = \"ridge\" or \"logistic\", or take \
                     algorithm.name = \"persfl\", \"ifca\", \"fedavg\", \"local\", \"centralized\" or \"pooled\", which fit several classes"
                    .into())
            }
            Problem::Graph(_) => {
                Err("this fits linear models: set model.kind = \"ridge\" or \"logistic\", or \
                 learn graphs with algorithm.name = \"fedgl\", \"fedgl-average\" or \"igl\""
                    .into())
            }
            Problem::Agnostic(kinds) => Err(no_parameters(kinds)),
            Problem::Net(_) => Err(NO_EXACT_FIT.into()),
        }
    }

    /// The kinds of hypothesis, for methods that need no more of a model than to fit and to predict. A linear model is one.
    pub fn hypotheses(&self) -> Result<Kinds, String> {
        match self {
            Problem::Agnostic(kinds) => Ok(*kinds),
            Problem::Linear(model) => Ok(Kinds::one(Kind::Linear(*model), model.loss == Loss::Logistic)),
            Problem::Graph(_) | Problem::Net(_) => self.linear().map(|model| Kinds::one(Kind::Linear(model), false)),
            Problem::Classes(_) => Err("this re-trains models of one number or one probability: set model.kind = \"ridge\", \
                 \"logistic\", \"tree\", \"knn\" or \"forest\", or take algorithm.name = \"persfl\" for several classes"
                .into()),
        }
    }

    /// The model as a vector of parameters, for methods that need values and gradients only.
    pub fn parametric(&self) -> Result<Parametric, String> {
        match self {
            Problem::Classes(model) => Ok(Parametric::Softmax(*model)),
            Problem::Net(model) => Ok(Parametric::Net(model.clone())),
            Problem::Linear(_) | Problem::Graph(_) | Problem::Agnostic(_) => {
                self.linear().map(Parametric::Linear)
            }
        }
    }

    /// The same for methods that fit it exactly, which cannot be done with a net.
    pub fn solvable(&self) -> Result<Parametric, String> {
        match self.parametric()? {
            Parametric::Net(_) => Err(NO_EXACT_FIT.into()),
            other => Ok(other),
        }
    }

    /// The graph, for methods that learn one.
    pub fn graph(&self) -> Result<Smooth, String> {
        match self {
            Problem::Graph(smooth) => Ok(*smooth),
            Problem::Linear(_) | Problem::Classes(_) | Problem::Agnostic(_) | Problem::Net(_) => {
                Err("this learns graphs: set model.kind = \"graph\"".into())
            }
        }
    }

    /// The bound on one record's gradient that preparing the records enforces, if it does.
    pub fn enforced_bound(&self) -> Option<Bound> {
        match self {
            Problem::Linear(model) => model.enforced_bound(),
            // Methods that use the bound take linear models alone.
            Problem::Classes(_) | Problem::Graph(_) | Problem::Agnostic(_) | Problem::Net(_) => None,
        }
    }
}
