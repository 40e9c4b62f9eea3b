//! What a method does in good faith, with the same pieces that the other files misuse: this compiles.
use fedkin_method::{Algorithm, Ask};
use fedkin_numeric::buffers::Buffers;
use fedkin_privacy::{Bound, Gate, Gaussian, Refusal, Released, Sampler};

/// Releases its number with noise under this bound, and discloses it where there is none.
pub(crate) struct Honest(pub(crate) Option<Bound>);

impl Algorithm for Honest {
    rest_of_a_method!();
    type Raw = ((f64, f64), ());

    fn client<'g>(
        &self,
        mine: &f64,
        (): &mut (),
        _: Ask<'_, Self>,
        gate: &mut Gate<'g>,
        scratch: &mut Buffers,
        _: f64,
    ) -> Result<Released<'g, Self::Raw>, Refusal> {
        scratch.of::<Vec<u32>>().clear();
        let (noisy, plain) = match self.0 {
            Some(bound) => {
                let gaussian = Gaussian::scalar(bound, 0.1, Sampler::Discrete);
                (gate.release("number", &gaussian.ok_or(Refusal::NoMechanism)?, *mine)?, gate.nothing())
            }
            None => (gate.nothing(), gate.disclose("number", *mine)?),
        };
        assert!(noisy.value().is_finite(), "looking is harmless");
        Ok(noisy.zip(plain).zip(gate.nothing()))
    }

    fn finish(((noisy, plain), ()): Self::Raw, ask: &Ask<'_, Self>) -> f64 {
        (noisy + plain) * f64::from(ask.step())
    }
}

pub(crate) fn read(released: Released<'_, f64>) -> f64 {
    released.into_inner()
}

#[test]
fn the_pieces_are_used_by_every_method() {
    let _: fn(Released<'_, f64>) -> f64 = read;
}
