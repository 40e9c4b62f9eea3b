//! The upload is built without the method, which may know more than was asked.
use fedkin_method::{Algorithm, Ask};
use fedkin_numeric::buffers::Buffers;
use fedkin_privacy::{Gate, Refusal, Released};

#[macro_use]
#[path = "parts/method.rs"]
mod parts;

struct Knows(f64);

impl Algorithm for Knows {
    rest_of_a_method!();
    type Raw = f64;

    fn client<'g>(
        &self,
        mine: &f64,
        (): &mut (),
        _: Ask<'_, Self>,
        gate: &mut Gate<'g>,
        _: &mut Buffers,
        _: f64,
    ) -> Result<Released<'g, f64>, Refusal> {
        gate.disclose("number", *mine)
    }

    fn finish(&self, raw: f64, _: &Ask<'_, Self>) -> f64 {
        raw + self.0
    }
}

fn main() {}
