//! Models of several classes: what each method's fixed point is.
#![allow(
    missing_docs,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::disallowed_methods,
    clippy::disallowed_macros,
    clippy::disallowed_types
)]

use fedkin_harness::small as common;

use common::{Small, Vector, number, own, small, text, values};
use fedkin_learner::{Output, Share, Terms};
use fedkin_method::round::Progress;
use fedkin_numeric::buffers::Buffers;
use fedkin_numeric::{axpy, norm2};

fn end(world: &Small, name: &str, set: &[(&str, fedkin_settings::Value)]) -> Vec<Vector> {
    let mut live = world.live(name, &values(name, set));
    while live.step().unwrap() != Progress::Ended {}
    own(live.as_ref())
}

/// The mean over some clients of the gradients of their objectives, with the regulariser of so many clients.
fn slope(world: &Small, clients: &[usize], share: f64, w: &[f64]) -> f64 {
    let terms = Terms { share: Share { of: 1.0, among: share }, weight: None };
    let mut sum = vec![0.0; w.len()];
    for &k in clients {
        let mut one = vec![0.0; w.len()];
        let learner = world.context.families.first().join(&world.data[k], terms).unwrap();
        learner.gradient(w, 1.0, &mut one, &mut Buffers::default()).unwrap();
        axpy(1.0 / clients.len() as f64, &one, &mut sum);
    }
    norm2(&sum).sqrt()
}

#[test]
fn alone_and_pooled_models_are_minimisers() {
    let world = small(5, 24, 6, 3).classes(4);
    assert_eq!(world.context.families.first().output(), Output::Classes(4));
    let members = world.federation.members();
    for (k, w) in end(&world, "local", &[]).iter().enumerate() {
        let there = members.iter().filter(|member| member.server == members[k].server).count();
        assert_eq!(w.len(), 28);
        assert!(slope(&world, &[k], there as f64, w) < 1e-9);
    }
    let all: Vec<usize> = (0..24).collect();
    let pooled = end(&world, "pooled", &[]);
    assert!(pooled.iter().all(|w| *w == pooled[0]));
    assert!(slope(&world, &all, 24.0, &pooled[0]) < 1e-9);
    let centralized = end(&world, "centralized", &[]);
    for cluster in 0..3 {
        let clients: Vec<usize> = (0..24).filter(|&k| members[k].cluster == cluster).collect();
        assert!(slope(&world, &clients, 24.0, &centralized[clients[0]]) < 1e-9);
    }
}

#[test]
fn full_gradient_steps_of_fedavg_lead_to_the_pooled_model() {
    let world = small(6, 20, 5, 3000).classes(3);
    let set = [("learning_rate", number(0.5)), ("weights", text("uniform"))];
    let mut live = world.live("fedavg", &values("fedavg", &set));
    while live.step().unwrap() != Progress::Ended {}
    let served = common::held(live.as_ref(), "served");
    let all: Vec<usize> = (0..20).collect();
    assert!(slope(&world, &all, 20.0, &served[&(0, 0)]) < 1e-8);
}

/// Steps of others that help are taken: every client ends below where it began, which is ln 3.
#[test]
fn kin_lower_the_loss_of_every_client() {
    let world = small(7, 20, 5, 200).classes(3);
    let loss = |k: usize, w: &[f64]| world.context.families.first().mean_loss(w, &world.data[k]);
    for (name, set) in [
        ("persfl", vec![("candidates", fedkin_settings::Value::Integer(6)), ("learning_rate", number(0.3))]),
        ("ifca", vec![("models", fedkin_settings::Value::Integer(2)), ("learning_rate", number(0.3))]),
    ] {
        let models = end(&world, name, &set);
        let mean = models.iter().enumerate().map(|(k, w)| loss(k, w)).sum::<f64>() / 20.0;
        assert!(mean < 0.6 * 3f64.ln(), "{name}: {mean}");
    }
}
