//! What the barrier does not stop, because Rust's types cannot: this compiles. A review of a method looks for
//! globals and for locks or atomics in its message types; neither has a place in a method.
#![allow(clippy::disallowed_types)]
use fedkin_core::algorithm::{Algorithm, Local};
use fedkin_core::codec::{Codec, Damaged, Reader, Sink};
use fedkin_core::privacy::{Gate, Released};
use fedkin_core::round::Ask;
use std::sync::Mutex;

static HIDDEN: Mutex<f64> = Mutex::new(0.0);

/// A function pointer captures nothing, but it can read a global.
fn through_a_global<A: Algorithm>(ask: &Ask<'_, A>, gate: &mut Gate<'_>, private: f64) -> Released<f64> {
    *HIDDEN.lock().unwrap() = private;
    gate.nothing().post(ask, |(), _| *HIDDEN.lock().unwrap())
}

/// A message type with a lock inside can be written through a shared reference.
#[derive(Default)]
struct Locked(Mutex<f64>);

impl Codec for Locked {
    fn schema() -> String {
        "f64".into()
    }
    fn put<S: Sink>(&self, sink: &mut S) {
        self.0.lock().unwrap().put(sink);
    }
    fn get(reader: &mut Reader<'_>) -> Result<Self, Damaged> {
        Ok(Self(Mutex::new(f64::get(reader)?)))
    }
}

#[allow(dead_code)] // it is here to compile
fn through_the_message<A: Algorithm<Down = Locked>>(
    ask: &Ask<'_, A>,
    gate: &mut Gate<'_>,
    private: f64,
) -> Released<f64> {
    *ask.down().0.lock().unwrap() = private;
    gate.nothing().post(ask, |(), ask| *ask.down().0.lock().unwrap())
}

#[test]
fn a_global_compiles() {
    let _: fn(&Ask<'_, Local>, &mut Gate<'_>, f64) -> Released<f64> = through_a_global;
}
