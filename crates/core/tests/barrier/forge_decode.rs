//! Bytes do not decode to a released value.
use fedkin_core::codec::Codec;
use fedkin_core::privacy::Released;

fn forge(private: f64) -> Released<f64> {
    <Released<f64> as Codec>::from_bytes(&private.to_bytes()).unwrap()
}

fn main() {}
