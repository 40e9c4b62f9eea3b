//! What a family from outside says of its gradients is a number, never a bound.
use fedkin_learner::{Dataset, Abilities, Family, Learner, Output, Terms};
use fedkin_learner::model::Unsolved;
use fedkin_privacy::Bound;
use std::sync::Arc;

#[derive(Debug)]
struct Mine;

impl Family for Mine {
    fn name(&self) -> &str {
        "mine"
    }
    fn has(&self) -> Abilities {
        Abilities::NONE
    }
    fn output(&self) -> Output {
        Output::Number
    }
    fn dimension(&self, columns: usize) -> usize {
        columns
    }
    fn join(&self, _: &Arc<Dataset>, _: Terms) -> Result<Box<dyn Learner>, Unsolved> {
        Err(Unsolved("never"))
    }
    fn predict(&self, _: &[f64], _: &Dataset, _: &mut dyn FnMut(usize, &[f64])) {}
    fn claimed_bound(&self) -> Option<Bound> {
        Some(Bound::assumed(1e-9))
    }
}

fn main() {}
