//! Nor through `AsMut`.
use fedkin_privacy::Released;

fn launder(released: &mut Released<'_, Vec<f64>>, private: &[f64]) {
    released.as_mut().extend_from_slice(private);
}

fn main() {}
