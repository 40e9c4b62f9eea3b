//! The constructor belongs to the privacy module.
use fedkin_core::privacy::Released;

fn forge(private: f64) -> Released<f64> {
    Released::new(private)
}

fn main() {}
