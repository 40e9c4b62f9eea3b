//! An ask with private data in it would carry them to `finish`.
use fedkin_method::ROUND;
use fedkin_privacy::Ask;

fn forge<'a>(common: &'a f64, private: &'a f64) -> Ask<'a, f64, f64> {
    Ask { step: 1, label: ROUND, common, down: private }
}

fn main() {}
