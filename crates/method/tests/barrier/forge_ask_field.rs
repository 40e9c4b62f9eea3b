//! A genuine ask with its message replaced would carry private data to `finish`.
use fedkin_method::{Algorithm, Ask};

fn launder<'a, A: Algorithm>(mut ask: Ask<'a, A>, private: &'a A::Down) {
    ask.down = private;
}

fn main() {}
