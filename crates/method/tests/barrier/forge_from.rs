//! No conversion leads into the barrier.
use fedkin_privacy::Released;

fn forge<'g>(private: f64) -> Released<'g, f64> {
    private.into()
}

fn main() {}
