//! An enforced bound made a million times smaller would still say that it is enforced.
use fedkin_privacy::Bound;

fn lie(bound: Bound) -> Bound {
    bound.times(1e-6)
}

fn main() {}
