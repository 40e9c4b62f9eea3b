//! Learners under PGFL: with one server, tau = 0 and everybody taking part, served models are those that a central solver
//! finds for all records of a cluster: minimisers where they are unique, objectives otherwise.
#![allow(
    missing_docs,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::disallowed_methods,
    clippy::disallowed_macros,
    clippy::disallowed_types
)]

use fedkin_harness::small as common;

use common::{Small, apart, minimise, number, small, values};
use fedkin_learner::model::{Loss, Model};
use fedkin_learner::{Dataset, Family, Groups, Linear, Regulariser, Terms};
use fedkin_method::Families;
use fedkin_numeric::buffers::Buffers;
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

fn distance(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| (a - b) * (a - b)).sum::<f64>().sqrt()
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
            assert!(distance(found, best) < apart, "{what}, cluster {cluster}: {}", distance(found, best));
        }
    }
}

/// The records of every cluster span all coordinates, so that there is one minimiser, whatever the regulariser.
#[test]
fn fixed_points_are_those_of_a_central_solver() {
    for loss in [Loss::Squared, Loss::Huber(0.8), Loss::Poisson] {
        compare(loss, Regulariser::SquaredNorm, 2.0, 2000, Some(1e-8));
        compare(loss, elastic(), 2.0, 2000, Some(1e-8));
        compare(loss, Regulariser::L1, 2.0, 3000, Some(1e-8));
        compare(loss, group(), 2.0, 3000, Some(1e-8));
    }
}

/// The quantile loss is made of pieces: its minimiser is one where the squared norm has a part in the regulariser, and else
/// the objective is what is compared.
#[test]
fn quantiles_reach_what_a_central_solver_finds() {
    for level in [0.3, 0.5] {
        let compare = |regulariser, apart| compare(Loss::Quantile(level), regulariser, 2.0, 4000, apart);
        compare(Regulariser::SquaredNorm, Some(1e-8));
        compare(elastic(), Some(1e-8));
        compare(Regulariser::L1, None);
        compare(group(), None);
    }
}

fn elastic() -> Regulariser {
    Regulariser::ElasticNet { l1_share: 0.5 }
}

fn group() -> Regulariser {
    Regulariser::Group { groups: Groups::Equal(2) }
}

/// A world whose three clusters have losses of their own, and records that these take.
fn world_of(losses: [Loss; 3], rounds: u32) -> Small {
    let mut world = small(4, 18, 4, rounds);
    let clusters: Vec<u32> = world.federation.members().iter().map(|member| member.cluster).collect();
    for (data, &cluster) in world.data.iter_mut().zip(&clusters) {
        let target = |y: &f64| match losses[cluster as usize] {
            Loss::Logistic => f64::from(u8::from(*y > 0.0)),
            Loss::Poisson => y.abs().round(),
            _ => *y,
        };
        let targets = data.targets().iter().map(target).collect();
        *data = Arc::new(Dataset::new(data.columns(), data.features().to_vec(), targets).unwrap());
    }
    let family = |loss| {
        let model = Model { loss, regularisation: 0.6, bias: false, feature_norm: None };
        Arc::new(Linear::new(model)) as Arc<dyn Family>
    };
    let [first, second, third] = losses.map(family);
    let families = Families::several(vec![first]).unwrap();
    world.context.families = families.and("second", second).and("third", third);
    world.run.learners = Some(clusters.into());
    world
}

/// With one server, tau = 0 and everybody taking part, each cluster ends at the minimiser of its own loss: as Newton's
/// method of the tests finds it, or a central solver with all records of the cluster.
#[test]
fn clusters_with_different_losses_reach_minimisers_of_their_own() {
    let rounds = 3000;
    for losses in [
        [Loss::Squared, Loss::Huber(0.5), Loss::Logistic],
        [Loss::Poisson, Loss::Squared, Loss::Logistic],
        [Loss::Logistic, Loss::Poisson, Loss::Huber(0.3)],
    ] {
        let world = world_of(losses, rounds);
        let set = [("inter_cluster", number(0.0)), ("penalty", number(1.0))];
        let mut live = world.live("one-cloud", &values("one-cloud", &set));
        common::steps(live.as_mut(), rounds);
        let (served, own) = (common::held(live.as_ref(), "served"), common::own(live.as_ref()));
        let mut central = world.live("centralized", &values("centralized", &[]));
        common::steps(central.as_mut(), 1);
        let central = common::own(central.as_ref());
        let members = world.federation.members();
        for (cluster, loss) in (0u32..).zip(losses) {
            let of =
                || members.iter().filter(|member| member.cluster == cluster).map(|member| member.id as usize);
            let solved = if loss == Loss::Poisson {
                central[of().next().unwrap()].clone()
            } else {
                let sets: Vec<&Dataset> = of().map(|id| &*world.data[id]).collect();
                let strength = 0.6 * sets.len() as f64 / members.len() as f64;
                minimise(loss, &sets, strength, 0.0, &[0.0; 4])
            };
            for found in of().flat_map(|id| [&own[id], &central[id]]).chain([&served[&(0, cluster)]]) {
                let gap = apart(found, &solved);
                assert!(gap < 1e-8, "{losses:?}, {loss:?} of cluster {cluster}: {gap:e}");
            }
        }
    }
}

/// A method that averages asks once whether there is something to average, and names the clients.
#[test]
fn every_method_that_averages_refuses_models_of_other_lengths() {
    let mut world = world_of([Loss::Squared, Loss::Huber(0.5), Loss::Logistic], 3);
    let model = Model { loss: Loss::Squared, regularisation: 0.6, bias: true, feature_norm: None };
    let families = Families::several(vec![Arc::new(Linear::new(model)) as Arc<dyn Family>]).unwrap();
    world.context.families = families.and("x", Arc::new(Linear::new(Model { bias: false, ..model })));
    world.run.learners = Some(world.federation.members().iter().map(|member| member.id % 2).collect());
    world.run.dimension = 5;
    let (mut refused, mut taken) = (Vec::new(), Vec::new());
    for row in world.context.registry.methods.iter().filter(|row| !row.graphs) {
        let set: &[_] = if row.params.iter().any(|param| param.name == "candidates") {
            &[("candidates", fedkin_settings::Value::Integer(2))]
        } else {
            &[]
        };
        let method = row.build(&values(row.name, set), &world.context).unwrap();
        let federation = world.federation.arranged(row.arrange);
        match method.suits(&federation, &world.run) {
            Ok(()) => taken.push(row.name),
            Err(message) => {
                for word in
                    ["client \"c00000\" (ridge, 5 parameters)", "client \"c00001\" (ridge, 4 parameters)"]
                {
                    assert!(message.contains(word), "{}: {message}", row.name);
                }
                refused.push(row.name);
            }
        }
    }
    assert_eq!(taken, ["persfl-agnostic", "local", "centralized", "pooled"], "{refused:?}");
    assert!(refused.len() >= 12, "{refused:?}");
}
