//! Graphs of the columns, learnt from smooth signals.

use super::{Abilities, Family, Learner, Output, Terms};
use crate::Dataset;
use crate::signals::Smooth;
use crate::unsolved::Unsolved;
use std::sync::Arc;

/// A graph of the columns. Methods that learn graphs work with its statistics directly ([`Family::signals`]).
#[derive(Debug, Clone, PartialEq)]
pub struct Graph {
    smooth: Smooth,
}

impl Graph {
    /// This objective as a family.
    pub fn new(smooth: Smooth) -> Self {
        Self { smooth }
    }
}

/// What a graph learner can do.
pub(super) const HAS: Abilities = Abilities::GRAPH;

impl Family for Graph {
    fn name(&self) -> &'static str {
        "graph"
    }

    fn has(&self) -> Abilities {
        HAS
    }

    fn output(&self) -> Output {
        Output::Graph
    }

    fn dimension(&self, columns: usize) -> usize {
        self.smooth.dimension(columns)
    }

    fn join(&self, _: &Arc<Dataset>, _: Terms) -> Result<Box<dyn Learner>, Unsolved> {
        Err(Unsolved("a graph has no targets to fit"))
    }

    fn predict(&self, _: &[f64], _: &Dataset, _: &mut dyn FnMut(usize, &[f64])) {}

    fn signals(&self) -> Option<&Smooth> {
        Some(&self.smooth)
    }
}
