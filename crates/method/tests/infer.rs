//! PGFL whose clients pick their cluster: with nothing to pick it is PGFL, with clusters far apart it finds them.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::disallowed_methods,
    clippy::disallowed_macros,
    clippy::disallowed_types
)]

use fedkin_harness::small as common;

use common::{Small, all_bits, names, number, records, ridge, small, steps, text, values, world};
use fedkin_graph::Topology;
use fedkin_graph::partition::matched_share;
use fedkin_method::round::Live;
use fedkin_method::{Entry, Federation, Infer, registry};
use fedkin_numeric::rng::{PublicRng, Random};
use std::sync::Arc;

const INFER: Infer = Infer { warm_up: 10, forming: 20, start: 0.1 };

/// The same world for a method that knows no clusters: everybody in the first of `count`.
fn unknown(mut world: Small, count: usize, infer: Infer) -> Small {
    let clients = world.federation.members().len();
    world.federation = world.federation.clustered(&vec![0; clients], names("found-", count)).unwrap();
    world.run.clusters = count;
    world.context.infer = Some(infer);
    world
}

fn go(world: &Small, name: &str, pairs: &[(&str, fedkin_settings::Value)]) -> Box<dyn Live> {
    world.start(name, &values(name, pairs)).unwrap()
}

/// Four servers in a ring, three clusters with models of their own, `samples` records a client.
fn apart(seed: u64, clients: usize, samples: u32) -> (Small, Vec<u32>) {
    let mut rng = PublicRng::named(seed, "apart", 0, 0);
    let models: Vec<Vec<f64>> = (0..3).map(|_| (0..6).map(|_| rng.normal()).collect()).collect();
    let truth: Vec<u32> = (0..clients as u32).map(|k| if k < 3 { k } else { rng.below(3) }).collect();
    let data =
        truth.iter().map(|&q| Arc::new(records(&mut rng, samples, &models[q as usize], false))).collect();
    let entry =
        |k: usize| Entry { name: format!("c{k:05}"), server: k as u32 % 4, cluster: truth[k], samples };
    let entries = (0..clients).map(entry).collect();
    let (federation, _) = Federation::new(entries, names("s", 4), names("q", 3), Topology::ring(4)).unwrap();
    (world(federation, data, ridge(0.01), seed, 120), truth)
}

/// One cluster leaves nothing to pick: the bits are those of `gfl`, whatever the warm-up.
#[test]
fn with_one_cluster_it_is_gfl_to_the_bit() {
    for (warm_up, dual) in [(0, "served"), (4, "served"), (4, "aggregate")] {
        let pairs = [("dual", text(dual)), ("penalty", number(6.0))];
        for some in [None, Some(2)] {
            let base = || match some {
                Some(count) => small(3, 40, 5, 12).some(count),
                None => small(3, 40, 5, 12),
            };
            let mut known = base().live("gfl", &values("gfl", &pairs));
            let infer = Infer { warm_up, forming: 3, start: 0.0 };
            let mut found = go(&unknown(base(), 1, infer), "pgfl", &pairs);
            steps(known.as_mut(), 12);
            steps(found.as_mut(), 12);
            assert_eq!(all_bits(found.as_ref()), all_bits(known.as_ref()), "{warm_up} {dual} {some:?}");
        }
    }
}

/// 20 seeds, three clusters, 48 clients with 12 records of 6 features: all clients of at least 18 seeds are in the right
/// cluster. A method that gets stuck in every third seed would pass with a probability of 0.018 (binomial, 20 trials).
#[test]
fn clusters_far_apart_are_found() {
    let mut perfect = 0;
    for seed in 0..20 {
        let (base, truth) = apart(seed, 48, 12);
        let mut live = go(&unknown(base, 3, INFER), "pgfl", &[]);
        assert!(live.kin().unwrap().clusters.iter().all(|(_, cluster)| *cluster == 0));
        steps(live.as_mut(), 120);
        let kin = live.kin().unwrap();
        assert!(kin.clusters.iter().map(|(id, _)| *id).eq(0..48), "by client id, all servers");
        let found: Vec<u32> = kin.clusters.iter().map(|(_, cluster)| *cluster).collect();
        perfect += u32::from(matched_share(&found, &truth) == 1.0);
    }
    eprintln!("{perfect} of 20 seeds");
    assert!(perfect >= 18, "{perfect}");
}

/// What a client picked leaves it, and the ledger says so, from the first round after the warm-up on.
#[test]
fn the_choice_is_a_release_of_its_own() {
    let (base, _) = apart(1, 12, 12);
    let mut live = go(&unknown(base, 3, Infer { warm_up: 2, ..INFER }), "pgfl", &[]);
    steps(live.as_mut(), 4);
    let lines = |what: &[u8]| -> Vec<u32> {
        live.ledger()
            .lines
            .iter()
            .filter(|line| &*line.what == what && line.server == 0)
            .map(|l| l.step)
            .collect()
    };
    assert_eq!((lines(b"model"), lines(b"cluster")), (vec![1, 2, 3, 4], vec![3, 4]));
}

/// A run that is stopped anywhere goes on with the same bits, before, at and after the moment when clusters part.
#[test]
fn it_goes_on_from_any_round() {
    let (base, _) = apart(2, 24, 8);
    let base = unknown(base, 3, INFER);
    let mut whole = go(&base, "pgfl", &[]);
    steps(whole.as_mut(), 40);
    for round in [3, 10, 11, 25] {
        let mut first = go(&base, "pgfl", &[]);
        steps(first.as_mut(), round);
        let mut second = go(&base, "pgfl", &[]);
        second.restore(&first.save()).unwrap();
        steps(second.as_mut(), 40 - round);
        assert_eq!(all_bits(second.as_ref()), all_bits(whole.as_ref()), "{round}");
        assert_eq!(second.kin(), whole.kin());
    }
}

#[test]
fn privacy_and_other_methods_are_refused() {
    let at = unknown(small(1, 12, 4, 5), 3, INFER);
    let refused =
        |world: &Small, name: &str| world.start(name, &values(name, &[])).err().unwrap().to_string();
    let private = refused(&unknown(small(1, 12, 4, 5).private(), 3, INFER), "pgfl");
    assert!(private.contains("no mechanism protects that") && private.contains("clusters.csv"), "{private}");
    for row in registry::native().iter().filter(|row| !row.graphs && !row.infers()) {
        let words = refused(&at, row.name);
        assert!(words.contains("is for pgfl and one-cloud") && words.contains(row.name), "{words}");
    }
}
