//! A genuine ask with its message replaced: the fields of `Ask` are public and `client` owns the ask.
//! Proposed: private fields with readers `step()`, `label()`, `common()`, `down()`.
use fedkin_core::algorithm::Algorithm;
use fedkin_core::privacy::{Gate, Released};
use fedkin_core::round::Ask;

fn launder<'a, A: Algorithm>(
    mut ask: Ask<'a, A>,
    gate: &mut Gate<'_>,
    private: &'a A::Down,
) -> Released<Vec<u8>> {
    ask.down = private;
    gate.nothing().post(&ask, |(), ask| fedkin_core::codec::Codec::to_bytes(ask.down))
}

fn main() {}
