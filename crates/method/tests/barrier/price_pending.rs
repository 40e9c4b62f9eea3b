//! The charges of a step are not the method's to remove.
use fedkin_privacy::Gate;

fn refund(gate: &mut Gate<'_>) {
    gate.pending.clear();
    gate.demands_privacy = false;
}

fn main() {}
