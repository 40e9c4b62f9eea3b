//! An ask with private data in it would carry them to `finish`.
use fedkin_core::algorithm::{Algorithm, ROUND};
use fedkin_core::round::Ask;

fn forge<'a, A: Algorithm>(common: &'a A::Common, private: &'a A::Down) -> Ask<'a, A> {
    Ask { step: 1, label: ROUND, common, down: private }
}

fn main() {}
