//! Only released values can be put beside a released value.
use fedkin_core::privacy::Released;

fn launder(released: Released<()>, private: f64) -> Released<((), f64)> {
    released.zip(private)
}

fn main() {}
