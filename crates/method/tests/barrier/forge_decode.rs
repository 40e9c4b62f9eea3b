//! Bytes do not decode to a released value.
use fedkin_numeric::codec::Codec;
use fedkin_privacy::Released;

fn forge<'g>(private: f64) -> Released<'g, f64> {
    <Released<'static, f64> as Codec>::from_bytes(&private.to_bytes()).unwrap()
}

fn main() {}
