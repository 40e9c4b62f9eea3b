//! Only the round machine makes asks.
use fedkin_method::{Algorithm, ROUND, Ask};

fn forge<'a, A: Algorithm>(common: &'a A::Common, private: &'a A::Down) -> Ask<'a, A> {
    Ask::new(1, ROUND, common, private)
}

fn main() {}
