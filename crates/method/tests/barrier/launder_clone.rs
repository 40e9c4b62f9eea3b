//! A released value leaves once; it cannot be kept for another step.
use fedkin_privacy::Released;

fn launder<'g>(released: &Released<'g, f64>) -> Released<'g, f64> {
    released.clone()
}

fn main() {}
