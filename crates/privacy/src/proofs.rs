//! Sensitivities that follow from a proof about what the caller does.
//!
//! A type cannot show that features were clipped before a model was fitted to them, or that a number is an exact
//! minimiser. Who calls one of these functions claims it. They are for `fedkin-learner`, which clips and solves, and for
//! `fedkin-method`, whose machines make asks; Rust has no crates that are friends, so a test of the workspace refuses
//! every other caller (`crates/harness/tests/rooms`), and decision 26 says what that means for programs outside.

use super::answer::{Ask, Label};
use super::bound::Bound;
use super::clip::Clip;

/// The bound on the gradient of one record's loss l(w'x, y) whose slope in its first argument is at most `slope`, where
/// the features x are clipped to this norm: the gradient is l'(w'x, y) x.
pub fn linear_gradient(slope: f64, feature_norm: f64) -> Bound {
    Bound::enforced(feature_norm * slope)
}

/// The sensitivity of the minimiser of `mean of l + R + penalty / 2 |w - centre|^2` where one of `divisor` terms of the
/// mean is replaced and the gradient of each is bounded: 2 C / (rho D), Section IV of the PGFL paper. The minimiser is
/// exact.
pub fn proximal_step(gradient: Bound, penalty: f64, divisor: f64) -> Bound {
    gradient.times(2.0 / (penalty * divisor))
}

/// How far the scatter matrix, the mean of x x' over the records, moves in the Frobenius norm when one of `rows` records
/// is replaced: `|x x' - y y'|^2 = |x|^4 + |y|^4 - 2 (x'y)^2` is at most `2 C^4` for norms of at most C.
pub fn scatter(clip: Clip, rows: f64) -> Bound {
    let bound = clip.bound();
    // Roundings of the factor and of the sum over records go the safe way.
    bound.times(std::f64::consts::SQRT_2 * bound.value() / rows * (1.0 + 64.0 * f64::EPSILON))
}

/// What a client is asked. Only the machines know that nothing private is in it.
pub fn ask<'a, C, D>(step: u32, label: Label, common: &'a C, down: &'a D) -> Ask<'a, C, D> {
    Ask::new(step, label, common, down)
}
