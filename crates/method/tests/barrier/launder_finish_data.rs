//! Nor with the client's data.
use fedkin_method::{Algorithm, Ask};
use fedkin_numeric::buffers::Buffers;
use fedkin_privacy::{Gate, Refusal, Released};

#[macro_use]
#[path = "parts/method.rs"]
mod parts;

struct Reads;

impl Algorithm for Reads {
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

    fn finish(raw: f64, _: &Ask<'_, Self>, mine: &f64) -> f64 {
        raw + mine
    }
}

fn main() {}
