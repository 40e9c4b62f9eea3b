//! The value inside cannot be replaced.
use fedkin_privacy::Released;

fn launder(released: &mut Released<'_, f64>, private: f64) {
    released.value = private;
}

fn main() {}
