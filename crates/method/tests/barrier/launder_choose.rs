//! Nor a function that private data choose: the choice itself would be a free bit.
use fedkin_method::{Algorithm, Ask};
use fedkin_privacy::Released;

fn launder<'g, A: Algorithm>(released: Released<'g, f64>, ask: &Ask<'_, A>, private: bool) -> Released<'g, f64> {
    let yes: fn(f64, &Ask<'_, A>) -> f64 = |value, _| value.abs();
    let no: fn(f64, &Ask<'_, A>) -> f64 = |value, _| -value.abs();
    released.post(ask, if private { yes } else { no })
}

fn main() {}
