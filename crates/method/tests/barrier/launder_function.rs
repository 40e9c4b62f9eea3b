//! A function that private data have chosen does not pass the gate, for whoever finishes the upload to call.
use fedkin_privacy::{Gate, Refusal, Released};

type Finish = fn(f64) -> f64;

fn launder<'g>(gate: &mut Gate<'g>, private: bool) -> Result<Released<'g, Finish>, Refusal> {
    let (yes, no): (Finish, Finish) = (f64::abs, |value| -value.abs());
    gate.disclose("choice", if private { yes } else { no })
}

fn main() {}
