//! Nor through a dereference.
use fedkin_privacy::Released;

fn launder(released: &mut Released<'_, f64>, private: f64) {
    **released = private;
}

fn main() {}
