//! Only privacy code may say that a bound is enforced.
use fedkin_privacy::Bound;

fn lie() -> Bound {
    Bound::enforced(1e-9)
}

fn main() {}
