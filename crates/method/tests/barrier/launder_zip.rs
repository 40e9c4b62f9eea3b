//! Only released values can be put beside a released value.
use fedkin_privacy::Released;

fn launder<'g>(released: Released<'g, ()>, private: f64) -> Released<'g, ((), f64)> {
    released.zip(private)
}

fn main() {}
