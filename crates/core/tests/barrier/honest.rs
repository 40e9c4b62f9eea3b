//! What a method does in good faith, with the same pieces that the other files misuse: this compiles.
use fedkin_core::algorithm::Algorithm;
use fedkin_core::privacy::{Bound, Gate, Gaussian, Refusal, Released, Sampler};
use fedkin_core::round::Ask;

pub(crate) fn answer<A: Algorithm>(ask: &Ask<'_, A>, gate: &mut Gate<'_>, private: &[f64]) -> Answer {
    let gaussian = Gaussian::vector(Bound::assumed(1.0), 0.1, private.len(), Sampler::Discrete);
    let gaussian = gaussian.ok_or(Refusal::NoMechanism)?;
    let noisy = gate.release("values", &gaussian, private.to_vec())?;
    let plain = gate.disclose("loss", private[0])?;
    let ready = gate.nothing();
    let size = noisy.post(ask, |values, ask| values.len() + ask.step() as usize);
    Ok(size.zip(plain).zip(ready).post(ask, |((size, loss), ()), _| (size, loss)))
}

pub(crate) fn read(released: Released<f64>) -> f64 {
    released.into_inner()
}

type Answer = Result<Released<(usize, f64)>, Refusal>;

#[test]
fn the_pieces_are_used_by_every_method() {
    use fedkin_core::algorithm::Local;
    let _: fn(&Ask<'_, Local>, &mut Gate<'_>, &[f64]) -> Answer = answer;
    let _: fn(Released<f64>) -> f64 = read;
}
