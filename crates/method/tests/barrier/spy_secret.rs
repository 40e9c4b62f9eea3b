//! A method does not see its client's secret.
use fedkin_privacy::Gate;

fn spy(gate: &Gate<'_>) -> [u8; 32] {
    (gate.secret)()
}

fn main() {}
