//! No conversion leads into the barrier.
use fedkin_core::privacy::Released;

fn forge(private: f64) -> Released<f64> {
    private.into()
}

fn main() {}
