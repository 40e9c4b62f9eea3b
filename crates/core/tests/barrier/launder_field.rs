//! The value inside cannot be replaced.
use fedkin_core::privacy::Released;

fn launder(released: &mut Released<f64>, private: f64) {
    released.0 = private;
}

fn main() {}
