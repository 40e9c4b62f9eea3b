//! A record with a released field would decode one.
use fedkin_core::privacy::Released;
use fedkin_core::record;

record! {
    struct Message { value: Released<'static, f64> }
}

fn main() {}
