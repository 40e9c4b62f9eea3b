//! What passed the gate cannot be left in the buffers for the next client.
use fedkin_core::buffers::Buffers;
use fedkin_core::privacy::{Gate, Released};

fn keep<'g>(gate: &mut Gate<'g>, scratch: &mut Buffers) {
    *scratch.of::<Option<Released<'g, ()>>>() = Some(gate.nothing());
}

fn main() {}
