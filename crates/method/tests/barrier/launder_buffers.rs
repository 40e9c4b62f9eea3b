//! What passed the gate cannot be left in the buffers for the next client.
use fedkin_numeric::buffers::Buffers;
use fedkin_privacy::{Gate, Released};

fn keep<'g>(gate: &mut Gate<'g>, scratch: &mut Buffers) {
    *scratch.of::<Option<Released<'g, ()>>>() = Some(gate.nothing());
}

fn main() {}
