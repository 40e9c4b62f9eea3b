//! So could a clip that nothing is clipped with.
use fedkin_privacy::{Bound, Clip};

fn lie() -> Option<Bound> {
    Some(Clip::new(1e-9)?.bound())
}

fn main() {}
