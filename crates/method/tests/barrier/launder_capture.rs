//! No closure is applied to a released value: it could bring private data with it.
use fedkin_privacy::Released;

fn launder<'g>(released: Released<'g, f64>, private: f64) -> Released<'g, f64> {
    released.map(|value| value + private)
}

fn main() {}
