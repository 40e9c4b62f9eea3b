//! A closure that captures private data is not a function pointer.
use fedkin_core::algorithm::Algorithm;
use fedkin_core::privacy::Released;
use fedkin_core::round::Ask;

fn launder<A: Algorithm>(released: Released<f64>, ask: &Ask<'_, A>, private: f64) -> Released<f64> {
    released.post(ask, |value, _| value + private)
}

fn main() {}
