//! A client cannot answer beside the gate: `answer` is the machine's.
use fedkin_method::{Algorithm, Run, Ask};
use fedkin_method::round::{Client, Scratch};

fn forge<A: Algorithm>(client: &mut Client<A>, algorithm: &A, run: &Run, ask: Ask<'_, A>) {
    let _ = client.answer(algorithm, run, ask, &mut Scratch::default());
}

fn main() {}
