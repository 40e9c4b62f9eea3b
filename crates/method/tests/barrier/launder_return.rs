//! What a client answers is a released value, not a value.
use fedkin_method::Algorithm;
use fedkin_privacy::{Gate, Refusal, Released};

fn client<'g, A: Algorithm>(_: &mut Gate<'g>, private: A::Up) -> Result<Released<'g, A::Up>, Refusal> {
    Ok(private)
}

fn main() {}
