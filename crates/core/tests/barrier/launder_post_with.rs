//! Post-processing takes an ask beside the released value and nothing else.
use fedkin_core::algorithm::Local;
use fedkin_core::privacy::Released;

fn launder(released: Released<f64>, private: f64) -> Released<f64> {
    released.post::<Local, _>(&private, |value, _| value)
}

fn main() {}
