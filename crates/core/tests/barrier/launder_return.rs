//! What a client answers is a released value, not a value.
use fedkin_core::algorithm::Algorithm;
use fedkin_core::privacy::{Gate, Refusal, Released};

fn client<'g, A: Algorithm>(_: &mut Gate<'g>, private: A::Up) -> Result<Released<'g, A::Up>, Refusal> {
    Ok(private)
}

fn main() {}
