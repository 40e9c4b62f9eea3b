//! There is no empty released value to start from.
use fedkin_privacy::Released;

fn forge<'g>() -> Released<'g, f64> {
    Released::default()
}

fn main() {}
