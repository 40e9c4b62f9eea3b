//! Nor through `BorrowMut`, which only borrows the wrapping itself.
use fedkin_privacy::Released;
use std::borrow::BorrowMut;

fn launder(released: &mut Released<'_, Vec<f64>>, private: &[f64]) {
    let inside: &mut Vec<f64> = released.borrow_mut();
    inside.extend_from_slice(private);
}

fn main() {}
