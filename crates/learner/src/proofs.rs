//! The bound behind the noise on a learner's exact proximal step: by proof for linear models, on trust for others. For the
//! methods of `fedkin-method` alone, as [`fedkin_privacy::proofs`] says.

use super::{Abilities, Family, Linear};
use fedkin_privacy::Bound;

/// The bound behind noise on the proximal step of a learner: assumed by the config, or enforced by a linear model. The
/// sensitivity 2 C / (rho D) is that of the exact minimiser, so a step that is made from gradients to some residual is
/// refused; and a bound that a learner only claims protects nobody.
pub fn step(family: &dyn Family, assumed: Option<Bound>) -> Result<Bound, String> {
    let name = family.name();
    if !family.has().contain(Abilities::PROX) {
        return Err(format!(
            "the noise of privacy.mechanism = \"zcdp\" covers the exact minimiser of a client's problem, and the learner \
             {name:?} comes near it only: set privacy.mechanism = \"none\", or take a learner with an exact proximal step"
        ));
    }
    match (assumed, family.downcast::<Linear>(), family.claimed_bound()) {
        (Some(bound), ..) => Ok(bound),
        (None, Some(linear), _) => linear.model().enforced_bound().ok_or_else(|| {
            "bound = \"enforced\" needs something that bounds the gradient: set `model.feature_norm` (and, for ridge, \
             `model.huber`), or take a bound on trust with privacy.bound = \"assumed\""
                .into()
        }),
        (None, None, Some(claim)) => Err(format!(
            "the learner {name:?} claims that a record's gradient is at most {claim}, and nothing has checked that: a claim \
             does not count where privacy is demanded; take the bound on trust with privacy.bound = \"assumed\" and \
             `gradient_bound`, or a linear learner with `model.feature_norm`"
        )),
        (None, None, None) => Err(format!(
            "nothing bounds the gradients of the learner {name:?}: take a bound on trust with privacy.bound = \"assumed\" \
             and `gradient_bound`, or a linear learner with `model.feature_norm`"
        )),
    }
}
