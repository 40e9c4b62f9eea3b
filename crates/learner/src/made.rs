//! What is made from values and gradients where a learner brings no more.

use super::generic::{self, Reached, Shrink, Work};
use super::{ACCURACY, Failure};

/// Value and gradient of the smooth part of an objective.
type Smooth<'a> = dyn FnMut(&[f64], &mut [f64]) -> Result<f64, Failure> + 'a;

/// A function that cannot fail; the first failure is kept and ends the iteration by a value that is no number.
fn watched<'a>(
    smooth: &'a mut Smooth<'_>,
    failed: &'a mut Option<Failure>,
) -> impl FnMut(&[f64], &mut [f64]) -> f64 + 'a {
    move |w, gradient| match smooth(w, gradient) {
        Ok(value) => value,
        Err(failure) => {
            failed.get_or_insert(failure);
            gradient.fill(f64::NAN);
            f64::NAN
        }
    }
}

/// The proximal step; see [`Learner::prox`](super::Learner::prox).
pub(super) fn prox(
    smooth: &mut Smooth<'_>,
    shrink: Option<Shrink<'_>>,
    centre: &[f64],
    weight: f64,
    out: &mut [f64],
) -> Result<Reached, Failure> {
    let mut failed = None;
    let mut work = Work::default();
    let solved =
        generic::prox(&mut watched(smooth, &mut failed), shrink, centre, weight, ACCURACY, out, &mut work);
    failed.map_or(solved.map_err(Failure::from), Err)
}

/// The minimiser; see [`Learner::minimise`](super::Learner::minimise).
pub(super) fn minimise(
    smooth: &mut Smooth<'_>,
    shrink: Option<Shrink<'_>>,
    dimension: usize,
) -> Result<Vec<f64>, Failure> {
    let (start, mut w) = (vec![0.0; dimension], vec![0.0; dimension]);
    prox(smooth, shrink, &start, 0.0, &mut w)?;
    Ok(w)
}
