//! A learner, a method or a row of a registry has no access to the proofs behind enforced bounds.
use fedkin_core::model::Loss;
use fedkin_core::privacy::Bound;

fn lie() -> Option<Bound> {
    fedkin_core::privacy::certify::linear(Loss::Logistic, 1e-9)
}

fn main() {}
