//! What a client answers is a released value, not a value.
use fedkin_core::algorithm::Algorithm;
use fedkin_core::privacy::{Gate, Refusal, Released};

fn client<A: Algorithm>(_: &mut Gate<'_>, private: A::Up) -> Result<Released<A::Up>, Refusal> {
    Ok(private)
}

fn main() {}
