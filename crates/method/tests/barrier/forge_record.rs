//! A record with a released field would decode one.
use fedkin_privacy::Released;
use fedkin_numeric::record;

record! {
    struct Message { value: Released<'static, f64> }
}

fn main() {}
