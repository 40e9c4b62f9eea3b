//! A model that nobody fits could promise anything: what it certifies stays where records are prepared with it.
use fedkin_learner::model::{Loss, Model};
use fedkin_privacy::Bound;

fn lie() -> Option<Bound> {
    let model = Model { loss: Loss::Logistic, regularisation: 0.1, bias: false, feature_norm: Some(1e-9) };
    model.enforced_bound()
}

fn main() {}
