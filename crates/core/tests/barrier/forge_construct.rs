//! A value is wrapped by hand.
use fedkin_core::privacy::Released;

fn forge(private: f64) -> Released<f64> {
    Released(private)
}

fn main() {}
