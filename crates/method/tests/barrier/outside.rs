//! What the barrier does not stop, because Rust's types cannot: this compiles. A review of a method looks for
//! globals, for locks or atomics in its message types, and for refusals that depend on data; none has a place in a method.
#![allow(clippy::disallowed_types)]
use fedkin_method::{Algorithm, Ask};
use fedkin_numeric::buffers::Buffers;
use fedkin_numeric::codec::{Codec, Damaged, Reader, Sink};
use fedkin_privacy::{Gate, Refusal, Released};
use std::sync::Mutex;

static HIDDEN: Mutex<f64> = Mutex::new(0.0);

/// What builds the upload sees neither the method nor the client, but it can read a global.
struct ThroughAGlobal;

impl Algorithm for ThroughAGlobal {
    rest_of_a_method!();
    type Raw = ();

    fn client<'g>(
        &self,
        mine: &f64,
        (): &mut (),
        _: Ask<'_, Self>,
        gate: &mut Gate<'g>,
        _: &mut Buffers,
        _: f64,
    ) -> Result<Released<'g, ()>, Refusal> {
        *HIDDEN.lock().unwrap() = *mine;
        Ok(gate.nothing())
    }

    fn finish((): (), _: &Ask<'_, Self>) -> f64 {
        *HIDDEN.lock().unwrap()
    }
}

/// A message type with a lock inside can be written through a shared reference: in the ask, or after the gate.
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

/// The modules `proofs` are for the linear learners and the machines. Crates have no friends, so whoever names them can
/// claim a bound that nothing enforces, or make an ask with private data in it.
#[allow(dead_code)] // it is here to compile
fn by_a_claimed_proof(common: f64, private: f64) -> (fedkin_privacy::Bound, f64) {
    let ask = fedkin_privacy::proofs::ask(1, fedkin_method::ROUND, &common, &private);
    (fedkin_privacy::proofs::linear_gradient(1.0, 1e-9), *ask.down())
}

#[allow(dead_code)] // it is here to compile
fn through_the_ask<A: Algorithm<Down = Locked>>(ask: &Ask<'_, A>, private: f64) {
    *ask.down().0.lock().unwrap() = private;
}

fn behind_the_gate<'g>(gate: &mut Gate<'g>, private: f64) -> Released<'g, Locked> {
    let nothing = gate.nothing::<Locked>();
    *nothing.value().0.lock().unwrap() = private;
    nothing
}

/// Whether a client refuses is seen by its server, and may depend on anything.
fn by_refusing<'g>(gate: &mut Gate<'g>, private: bool) -> Result<Released<'g, ()>, Refusal> {
    if private { Err(Refusal::Unsolved) } else { Ok(gate.nothing()) }
}

#[test]
fn these_compile() {
    let _ = ThroughAGlobal;
    let _: for<'g> fn(&mut Gate<'g>, f64) -> Released<'g, Locked> = behind_the_gate;
    let _: for<'g> fn(&mut Gate<'g>, bool) -> Result<Released<'g, ()>, Refusal> = by_refusing;
}
