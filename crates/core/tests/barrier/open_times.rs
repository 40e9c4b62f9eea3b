//! An enforced bound made a million times smaller still says that it is enforced.
//! Proposed: `Bound::times` visible in the crate only, where the proofs are.
use fedkin_core::model::Model;
use fedkin_core::privacy::{Bound, Trust};

fn lie(model: &Model) -> Option<Bound> {
    let bound = model.enforced_bound()?.times(1e-6);
    assert_eq!(bound.trust(), Trust::Enforced);
    Some(bound)
}

fn main() {}
