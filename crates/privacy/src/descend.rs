//! DP-SGD as an operation of the gate: gradient steps on noisy sums, of which nobody sees what is not released.

use super::answer::Ask;
use super::gate::Gate;
use super::mechanism::SampledSum;
use super::refusal::Refusal;
use super::released::Released;
use fedkin_numeric::{axpy, scale};

/// A step on a sum g over a Poisson sample: `w <- keep w - share g - pull (w - served)`, from `w = served`. All of it is
/// public, so that a step is a function of what was asked and of released sums; whatever it is, the price is the same.
#[derive(Debug, Clone, Copy)]
pub struct Anchor<'a> {
    /// The model that the steps begin with.
    pub served: &'a [f64],
    /// The factor of the model.
    pub keep: f64,
    /// The factor of the sum.
    pub share: f64,
    /// The factor of the way back to the model that was served.
    pub pull: f64,
}

/// A method whose asks, a broadcast `C` and an own part `D`, say what a step on a Poisson sample is.
pub trait Anchored<C, D> {
    /// The step, as a function of the ask alone.
    fn anchor<'a>(ask: &'a Ask<'_, C, D>) -> Anchor<'a>;
}

impl<'g> Gate<'g> {
    /// So many steps on sums over Poisson samples, each of which is released as [`Gate::sampled`] does: `each` gets the
    /// number of a record and the model so far, and writes the record's vector to a buffer of zeros.
    pub fn descend<A: Anchored<C, D>, C, D>(
        &mut self,
        what: &'static str,
        sum: &SampledSum,
        records: usize,
        steps: u32,
        ask: &Ask<'_, C, D>,
        mut each: impl FnMut(usize, &[f64], &mut [f64]),
    ) -> Result<Released<'g, Vec<f64>>, Refusal> {
        let anchor = A::anchor(ask);
        if anchor.served.len() != sum.length() {
            return Err(Refusal::NoMechanism);
        }
        let mut model = anchor.served.to_vec();
        let (mut total, mut one) = (vec![0.0; model.len()], vec![0.0; model.len()]);
        for _ in 0..steps {
            self.sum_sample(what, sum, records, (&mut total, &mut one), |i, out| each(i, &model, out))?;
            anchor.step(&total, &mut model);
        }
        Ok(Released::new(model, self.brand()))
    }
}

impl Anchor<'_> {
    fn step(&self, sum: &[f64], model: &mut [f64]) {
        let Anchor { served, keep, share, pull } = *self;
        if pull > 0.0 {
            for ((w, g), c) in model.iter_mut().zip(sum).zip(served) {
                *w = keep * *w - share * g - pull * (*w - c);
            }
            return;
        }
        scale(keep, model);
        axpy(-share, sum, model);
    }
}
