//! Looking at a released value does not let one write to it.
use fedkin_privacy::Released;

fn launder<'g>(released: Released<'g, Vec<f64>>, private: f64) -> Released<'g, Vec<f64>> {
    released.value()[0] = private;
    released
}

fn main() {}
