//! The constructor belongs to the privacy module.
use fedkin_privacy::Released;
use std::marker::PhantomData;

fn forge<'g>(private: f64) -> Released<'g, f64> {
    Released::new(private, PhantomData)
}

fn main() {}
