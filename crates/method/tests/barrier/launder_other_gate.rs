//! What passed one gate is no part of what passes another.
use fedkin_privacy::{Gate, Released};

fn launder<'earlier, 'g>(
    released: Released<'earlier, f64>,
    gate: &mut Gate<'g>,
) -> Released<'g, (f64, ())> {
    released.zip(gate.nothing())
}

fn main() {}
