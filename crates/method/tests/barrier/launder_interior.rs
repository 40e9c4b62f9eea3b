//! An empty lock passes for nothing and could be filled afterwards: what passes is a message, and a lock is none.
use fedkin_privacy::{Gate, Released};
use std::sync::Mutex;

fn launder<'g>(gate: &mut Gate<'g>, private: Vec<f64>) -> Released<'g, Mutex<Vec<f64>>> {
    let empty = gate.nothing::<Mutex<Vec<f64>>>();
    *empty.value().lock().unwrap() = private;
    empty
}

fn main() {}
