//! Looking at a released value does not let one write to it.
use fedkin_core::privacy::Released;

fn launder(released: Released<Vec<f64>>, private: f64) -> Released<Vec<f64>> {
    released.value()[0] = private;
    released
}

fn main() {}
