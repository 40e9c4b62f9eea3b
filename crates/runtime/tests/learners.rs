//! Learners under PGFL: with one server, tau = 0 and everybody taking part, served models are those that a central solver
//! finds for all records of a cluster: minimisers where they are unique, objectives otherwise.
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::disallowed_methods)]

mod common;

use common::{Small, number, small, values};
use fedkin_core::Dataset;
use fedkin_core::buffers::Buffers;
use fedkin_core::learner::{Families, Groups, Linear, Regulariser, Terms};
use fedkin_core::model::{Loss, Model};
use std::sync::Arc;

/// A world of counts, which every loss takes.
fn world(loss: Loss, regulariser: Regulariser, rounds: u32) -> Small {
    let mut world = small(4, 12, 4, rounds);
    for data in &mut world.data {
        let targets = data.targets().iter().map(|y| y.abs().round()).collect();
        *data = Arc::new(Dataset::new(data.columns(), data.features().to_vec(), targets).unwrap());
    }
    let model = Model { loss, regularisation: 0.6, bias: false, feature_norm: None };
    world.context.families = Families::one(Linear::regularised(model, regulariser));
    world
}

/// The sum of the objectives of a cluster's clients.
fn objective(world: &Small, cluster: u32, w: &[f64]) -> f64 {
    let members = world.federation.members();
    let mut sum = 0.0;
    for member in members.iter().filter(|member| member.cluster == cluster) {
        let terms = Terms::among(members.len());
        let learner = world.context.families.first().join(&world.data[member.id as usize], terms).unwrap();
        sum += learner.value(w, &mut Buffers::default()).unwrap();
    }
    sum
}

fn compare(loss: Loss, regulariser: Regulariser, penalty: f64, rounds: u32, apart: Option<f64>) {
    let what = format!("{loss:?} {regulariser:?}");
    let world = world(loss, regulariser, rounds);
    let set = [("inter_cluster", number(0.0)), ("penalty", number(penalty))];
    let mut live = world.live("one-cloud", &values("one-cloud", &set));
    common::steps(live.as_mut(), rounds);
    let served = common::held(live.as_ref(), "served");
    let mut central = world.live("centralized", &values("centralized", &[]));
    common::steps(central.as_mut(), 1);
    let central = common::held(central.as_ref(), "served");
    for cluster in 0..3 {
        let (found, best) = (&served[&(0, cluster)], &central[&(0, cluster)]);
        let (value, least) = (objective(&world, cluster, found), objective(&world, cluster, best));
        assert!((value - least).abs() < 1e-6 * (1.0 + least), "{what}: {value} {least}");
        if let Some(apart) = apart {
            let gap: f64 = found.iter().zip(best).map(|(a, b)| (a - b) * (a - b)).sum();
            assert!(gap.sqrt() < apart, "{what}, cluster {cluster}: {}", gap.sqrt());
        }
    }
}

#[test]
fn fixed_points_are_those_of_a_central_solver() {
    let group = || Regulariser::Group { groups: Groups::Equal(2) };
    let elastic = || Regulariser::ElasticNet { l1_share: 0.5 };
    for loss in [Loss::Squared, Loss::Logistic, Loss::Poisson] {
        let loss_of = if loss == Loss::Logistic { Loss::Huber(0.8) } else { loss };
        compare(loss_of, Regulariser::SquaredNorm, 2.0, 2000, Some(1e-8));
        compare(loss_of, elastic(), 2.0, 2000, Some(1e-8));
        compare(loss_of, Regulariser::L1, 2.0, 3000, None);
        compare(loss_of, group(), 2.0, 3000, None);
    }
}

/// The quantile loss has kinks: ADMM comes near their edges slowly, and the objective is what is compared.
#[test]
fn quantiles_reach_the_objective_of_a_central_solver() {
    compare(Loss::Quantile(0.3), Regulariser::SquaredNorm, 2.0, 4000, None);
    compare(Loss::Quantile(0.5), Regulariser::SquaredNorm, 2.0, 4000, None);
}
