//! A gate that lived longer is another gate.
use fedkin_privacy::Released;

fn launder<'g>(released: Released<'static, f64>, _: &'g ()) -> Released<'g, f64> {
    released
}

fn main() {}
