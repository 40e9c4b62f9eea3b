//! What a learner claims of itself does not become enforced.
use fedkin_privacy::{Bound, Trust};

fn lie() -> Bound {
    Bound { trust: Trust::Enforced, ..Bound::claimed(1e-9) }
}

fn main() {}
