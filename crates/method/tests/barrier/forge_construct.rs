//! A value is wrapped by hand.
use fedkin_privacy::Released;
use std::marker::PhantomData;

fn forge<'g>(private: f64) -> Released<'g, f64> {
    Released { value: private, gate: PhantomData }
}

fn main() {}
