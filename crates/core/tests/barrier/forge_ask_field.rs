//! A genuine ask with its message replaced would carry private data to `finish`.
use fedkin_core::algorithm::Algorithm;
use fedkin_core::round::Ask;

fn launder<'a, A: Algorithm>(mut ask: Ask<'a, A>, private: &'a A::Down) {
    ask.down = private;
}

fn main() {}
