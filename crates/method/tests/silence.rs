//! Rounds that are closed without some clients: what their duals are worth while they are away.
//!
//! References are solved here: the minimiser of the sum of (16) over a cluster, by Newton's method.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::disallowed_methods,
    clippy::disallowed_macros,
    clippy::disallowed_types
)]

use fedkin_harness::small as common;

use common::{
    Loop, Small, Vector, apart, duals, minimise, names, number, records, ridge, text, values, world,
};
use fedkin_graph::Topology;
use fedkin_learner::Dataset;
use fedkin_learner::model::Loss;
use fedkin_method::registry::Method;
use fedkin_method::{Admm, Entry, Federation, GFedMtl, Pgfl};
use fedkin_numeric::rng::{PublicRng, Random};
use fedkin_settings::Values;
use std::collections::BTreeMap;
use std::sync::Arc;

const CLIENTS: u32 = 20;

/// Two clusters, every client with 3 to 8 records of 5 features.
fn clustered(servers: usize) -> Small {
    let mut rng = PublicRng::named(5, "silence", servers as u32, 0);
    let models: Vec<Vector> = (0..2).map(|_| (0..5).map(|_| rng.normal()).collect()).collect();
    let (mut entries, mut data) = (Vec::new(), Vec::new());
    for k in 0..CLIENTS {
        let (cluster, samples) = (k % 2, 3 + rng.below(6));
        data.push(Arc::new(records(&mut rng, samples, &models[cluster as usize], false)));
        entries.push(Entry { name: format!("c{k:03}"), server: k / 2 % servers as u32, cluster, samples });
    }
    let graph = Topology::ring(servers);
    let (federation, _) = Federation::new(entries, names("s", servers), names("q", 2), graph).unwrap();
    world(federation, data, ridge(0.05), 5, u32::MAX)
}

/// One client of five, as 20 are dealt to two clusters: two of each.
fn fifth(number: u32) -> impl Fn(u32) -> bool + Copy {
    move |id| id / 2 % 5 == number % 5
}

/// The minimiser of the sum of (16) over those clients of a cluster that are `there`; one server.
fn optimum(world: &Small, cluster: u32, there: impl Fn(u32) -> bool) -> Vector {
    let members = world.federation.members().iter();
    let heard: Vec<&Dataset> = members
        .filter(|member| member.cluster == cluster && there(member.id))
        .map(|member| &*world.data[member.id as usize])
        .collect();
    let strength = world.model.regularisation / f64::from(CLIENTS) * heard.len() as f64;
    minimise(Loss::Squared, &heard, strength, 0.0, &[0.0; 5])
}

type Models = BTreeMap<(u32, u32), Vector>;

/// The served models of a run in which step n is closed without the clients that `missing(n)` names.
fn run<A: Method>(
    world: &Small,
    values: &Values,
    rounds: u32,
    missing: impl Fn(u32, u32) -> bool,
) -> (Loop<A>, Models) {
    let mut run = Loop::new(A::from_values(values, &world.context).unwrap(), world);
    for n in 1..=rounds {
        run.begin();
        run.ask_without(|id| missing(n, id));
        run.end();
    }
    let mut served = BTreeMap::new();
    for server in run.0.servers() {
        server.held(run.0.algorithm(), run.0.run(), &mut |cluster, name, model| {
            if name == "served" {
                served.insert((server.id(), cluster), model.to_vec());
            }
        });
    }
    (run, served)
}

fn pgfl(tau: f64, dual: &str) -> Values {
    values("pgfl", &[("inter_cluster", number(tau)), ("penalty", number(2.0)), ("dual", text(dual))])
}

fn same(a: &Models, b: &Models, most: f64) {
    assert_eq!(a.len(), b.len());
    for (at, model) in a {
        assert!(apart(model, &b[at]) < most, "{at:?}: {}", apart(model, &b[at]));
    }
}

#[test]
fn a_fifth_silent_in_every_round_changes_nothing_in_the_end() {
    let world = clustered(1);
    for dual in ["served", "aggregate"] {
        for turn in [1, 4] {
            let silent = |n: u32, id| fifth(n / turn)(id);
            let (_, served) = run::<Admm<Pgfl>>(&world, &pgfl(0.0, dual), 1500, silent);
            for cluster in 0..2 {
                let gap = apart(&served[&(0, cluster)], &optimum(&world, cluster, |_| true));
                assert!(gap < 1e-9, "{dual}, {turn}: {gap}");
            }
        }
    }
}

#[test]
fn the_same_with_several_servers_and_with_clusters_that_borrow() {
    let world = clustered(4);
    let silent = |n: u32, id| fifth(n / 3)(id);
    for values in [pgfl(0.0, "served"), pgfl(0.3, "served"), pgfl(0.3, "aggregate")] {
        let (_, strict) = run::<Admm<Pgfl>>(&world, &values, 3000, |_, _| false);
        let (_, served) = run::<Admm<Pgfl>>(&world, &values, 3000, silent);
        same(&served, &strict, 1e-8);
    }
    let values = values("gfedmtl", &[("inter_cluster", number(0.3)), ("penalty", number(2.0))]);
    let (_, strict) = run::<Admm<GFedMtl>>(&world, &values, 3000, |_, _| false);
    let (_, served) = run::<Admm<GFedMtl>>(&world, &values, 3000, silent);
    same(&served, &strict, 1e-8);
}

#[test]
fn who_falls_silent_for_good_once_the_models_have_settled_is_still_learnt_from() {
    let world = clustered(1);
    let silent = |n, id| n > 400 && fifth(3)(id);
    let (_, served) = run::<Admm<Pgfl>>(&world, &pgfl(0.0, "served"), 2000, silent);
    for cluster in 0..2 {
        let all = optimum(&world, cluster, |_| true);
        let others = optimum(&world, cluster, |id| !fifth(3)(id));
        let gap = apart(&served[&(0, cluster)], &all);
        assert!(gap < 1e-7, "{gap}");
        assert!(apart(&others, &all) > 1e-3, "without them it is another optimum");
    }
}

#[test]
fn who_was_never_there_or_left_before_anything_was_learnt_is_left_out() {
    let world = clustered(1);
    for first in [0, 1] {
        let silent = |n, id| n > first && fifth(3)(id);
        let (_, served) = run::<Admm<Pgfl>>(&world, &pgfl(0.0, "served"), 2000, silent);
        for cluster in 0..2 {
            let gap = apart(&served[&(0, cluster)], &optimum(&world, cluster, |id| !fifth(3)(id)));
            assert!(gap < 1e-9, "silent after step {first}: {gap}");
        }
    }
}

#[test]
fn a_missing_client_keeps_its_dual_and_takes_up_where_it_was() {
    let world = clustered(1);
    let values = pgfl(0.0, "served");
    let away = |n: u32, id| (301..=310).contains(&n) && fifth(1)(id);
    let (mut before, _) = run::<Admm<Pgfl>>(&world, &values, 300, away);
    let (mut during, _) = run::<Admm<Pgfl>>(&world, &values, 310, away);
    let (mut after, served) = run::<Admm<Pgfl>>(&world, &values, 1000, away);
    let [before, during, after] = [&mut before, &mut during, &mut after].map(|run| duals(run, 2.0));
    for id in (0..CLIENTS).filter(|id| fifth(1)(*id)) {
        // Read from v_k - w_s, so not to the last bit.
        assert!(apart(&during[&id], &before[&id]) < 1e-12);
    }
    // At the end the duals of a cluster add up to nothing: everybody counts once.
    for cluster in 0..2 {
        let mut sum = vec![0.0; 5];
        for id in (0..CLIENTS).filter(|id| id % 2 == cluster) {
            sum.iter_mut().zip(&after[&id]).for_each(|(sum, dual)| *sum += dual);
        }
        assert!(sum.iter().all(|sum| sum.abs() < 1e-9), "{sum:?}");
        assert!(apart(&served[&(0, cluster)], &optimum(&world, cluster, |_| true)) < 1e-9);
    }
}
