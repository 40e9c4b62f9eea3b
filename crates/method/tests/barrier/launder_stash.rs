//! A method cannot answer with what passed the gate in another step or of another client.
use fedkin_method::{Algorithm, Ask};
use fedkin_numeric::buffers::Buffers;
use fedkin_privacy::{Gate, Refusal, Released};

#[macro_use]
#[path = "parts/method.rs"]
mod parts;

struct Stash(std::sync::Mutex<Option<Released<'static, f64>>>);

impl Algorithm for Stash {
    rest_of_a_method!();
    type Raw = f64;

    fn client<'g>(
        &self,
        _: &f64,
        (): &mut (),
        _: Ask<'_, Self>,
        gate: &mut Gate<'g>,
        _: &mut Buffers,
        _: f64,
    ) -> Result<Released<'g, f64>, Refusal> {
        let mut kept = self.0.lock().unwrap();
        match kept.take() {
            Some(earlier) => Ok(earlier),
            None => {
                *kept = Some(gate.disclose("number", 1.0)?);
                Err(Refusal::Unsolved)
            }
        }
    }

    fn finish(raw: f64, _: &Ask<'_, Self>) -> f64 {
        raw
    }
}

fn main() {}
