//! An ask cannot be rebuilt around a genuine one with another message.
use fedkin_core::algorithm::Algorithm;
use fedkin_core::round::Ask;

fn forge<'a, A: Algorithm>(ask: Ask<'a, A>, private: &'a A::Down) -> Ask<'a, A> {
    Ask { down: private, ..ask }
}

fn main() {}
