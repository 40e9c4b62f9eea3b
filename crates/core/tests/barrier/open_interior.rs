//! A released lock is filled afterwards through `AsRef`.
//! Proposed: no `AsRef`; nothing uses it, and `into_inner` reads.
use fedkin_core::algorithm::Algorithm;
use fedkin_core::privacy::{Gate, Released};
use fedkin_core::round::Ask;
use std::sync::Mutex;

fn launder<A: Algorithm>(ask: &Ask<'_, A>, gate: &mut Gate<'_>, private: Vec<f64>) -> Released<Vec<f64>> {
    let empty = gate.nothing().post(ask, |(), _| Mutex::new(Vec::new()));
    *empty.as_ref().lock().unwrap() = private;
    empty.post(ask, |full, _| full.into_inner().unwrap())
}

fn main() {}
