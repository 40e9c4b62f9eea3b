//! Which function finishes an upload belongs to the method's type: a client cannot hand in another.
use fedkin_method::{Algorithm, Ask};
use fedkin_numeric::buffers::Buffers;
use fedkin_privacy::{Gate, Refusal, Released};

#[macro_use]
#[path = "parts/method.rs"]
mod parts;

struct Chooses;

impl Algorithm for Chooses {
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
    ) -> Result<(Released<'g, f64>, fn(f64) -> f64), Refusal> {
        let finish = if *mine > 0.0 { f64::abs } else { |value: f64| -value.abs() };
        Ok((gate.disclose("number", 1.0)?, finish))
    }

    fn finish(raw: f64, _: &Ask<'_, Self>) -> f64 {
        raw
    }
}

fn main() {}
