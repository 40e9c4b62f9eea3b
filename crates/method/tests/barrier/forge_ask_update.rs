//! An ask cannot be rebuilt around a genuine one with another message.
use fedkin_privacy::Ask;

fn forge<'a>(ask: Ask<'a, f64, f64>, private: &'a f64) -> Ask<'a, f64, f64> {
    Ask { down: private, ..ask }
}

fn main() {}
