//! Bytes do not decode to a released value.
use fedkin_core::codec::Codec;
use fedkin_core::privacy::Released;

fn forge<'g>(private: f64) -> Released<'g, f64> {
    <Released<'static, f64> as Codec>::from_bytes(&private.to_bytes()).unwrap()
}

fn main() {}
