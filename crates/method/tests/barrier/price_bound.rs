//! Nor is a bound put together from its parts.
use fedkin_privacy::{Bound, Trust};

fn lie() -> Bound {
    Bound { value: 1e-9, trust: Trust::Enforced }
}

fn main() {}
