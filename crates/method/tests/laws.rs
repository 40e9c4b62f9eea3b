//! Laws that hold whatever the data: reductions, invariances, what does and does not move.
//! Sections are those of the PGFL spec ("Decisions") and of the core spec ("Bits", "The server holds the seat").
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::disallowed_methods,
    clippy::disallowed_macros,
    clippy::disallowed_types
)]

use fedkin_harness::small as common;

use common::{
    Loop, Small, Vector, all_bits, apart, bits, decay, duals, held, length, names, number, own, records,
    ridge, small, steps, text, values, world,
};
use fedkin_graph::Topology;
use fedkin_learner::Linear;
use fedkin_method::registry::Method;
use fedkin_method::round::{Live, Progress};
use fedkin_method::{Admm, Algorithm, Entry, Families, Federation, Pgfl, Verdict};
use fedkin_numeric::rng::{PublicRng, Random};
use fedkin_privacy::{Line, Refusal, Sampler};
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The methods that learn from each other, by name.
const FAMILY: [&str; 7] = ["pgfl", "gfedmtl", "single-step", "gfl", "gfed", "clusterfl", "one-cloud"];

fn maybe(mut world: Small, some: Option<u32>) -> Small {
    world.run.clients_per_server = some;
    world
}

/// The same world with other records for the clients of one cluster.
fn changed(world: &Small, cluster: u32, seed: u64) -> Small {
    let mut rng = PublicRng::named(seed, "other records", 0, 0);
    let mut other = world.arranged("pgfl");
    for member in world.federation.members().iter().filter(|member| member.cluster == cluster) {
        let model: Vector = (0..world.run.dimension).map(|_| rng.normal()).collect();
        other.data[member.id as usize] = Arc::new(records(&mut rng, member.samples, &model, false));
    }
    other
}

fn run(world: &Small, name: &str, settings: &[(&str, fedkin_settings::Value)]) -> Box<dyn Live> {
    let mut live = world.live(name, &values(name, settings));
    steps(&mut *live, world.run.rounds);
    live
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]

    /// tau = 0 decouples the clusters: other records in cluster 1 leave the others' models bit-equal, with
    /// and without noise. With tau > 0 they do move.
    #[test]
    fn without_borrowing_clusters_do_not_touch_each_other(
        seed in 0u64..1000, some in proptest::option::of(1u32..4), private: bool
    ) {
        let base = maybe(small(seed, 24, 5, 8), some);
        let base = if private { base.private() } else { base };
        let other = changed(&base, 1, seed);
        for (name, tau, same) in
            [("pgfl", 0.0, true), ("gfedmtl", 0.0, true), ("single-step", 0.0, true), ("pgfl", 0.4, false)]
        {
            let settings = [("inter_cluster", number(tau))];
            let (a, b) = (run(&base, name, &settings), run(&other, name, &settings));
            let (own_a, own_b) = (own(&*a), own(&*b));
            let mut moved = false;
            for member in base.federation.members().iter().filter(|member| member.cluster != 1) {
                moved |= bits(&own_a[member.id as usize]) != bits(&own_b[member.id as usize]);
            }
            let (held_a, held_b) = (held(&*a, "served"), held(&*b, "served"));
            for (cell, model) in &held_a {
                moved |= cell.1 != 1 && bits(model) != bits(&held_b[cell]);
            }
            prop_assert_eq!(moved, !same, "{} at tau {}", name, tau);
        }
    }

    /// Q = 1 has nothing to borrow from: every tau, adaptive included, gives the same bits.
    #[test]
    fn one_cluster_makes_tau_irrelevant(seed in 0u64..1000, some in proptest::option::of(1u32..4)) {
        let base = maybe(small(seed, 20, 5, 8), some);
        for name in ["gfl", "gfed"] {
            let none = all_bits(&*run(&base, name, &[("inter_cluster", number(0.0))]));
            prop_assert_eq!(&none, &all_bits(&*run(&base, name, &[("inter_cluster", number(0.7))])));
            if name == "gfl" {
                prop_assert_eq!(&none, &all_bits(&*run(&base, name, &[("inter_cluster", text("adaptive"))])));
                prop_assert_eq!(&none, &all_bits(&*run(&base, name, &[("inter_cluster", decay(0.9, 0.9))])));
            }
        }
    }

    /// Decision 5: ClusterFL is PGFL without edges, one-cloud is PGFL on one server, GFL is PGFL with Q = 1;
    /// one server makes PGFL and `GFedMtl` at tau = 0 the same to the bit.
    #[test]
    fn presets_are_pgfl_on_another_roster(
        seed in 0u64..1000, some in proptest::option::of(1u32..4), tau in 0.0..0.6f64
    ) {
        let base = maybe(small(seed, 24, 5, 8), some);
        for settings in [vec![("inter_cluster", number(tau))], vec![]] {
            for name in ["clusterfl", "one-cloud", "gfl"] {
                let by_hand = base.arranged(name);
                prop_assert_eq!(
                    all_bits(&*run(&base, name, &settings)),
                    all_bits(&*run(&by_hand, "pgfl", &settings)),
                    "{}", name
                );
            }
        }
        let cloud = base.arranged("one-cloud");
        let zero = [("inter_cluster", number(0.0))];
        for (a, b) in own(&*run(&cloud, "pgfl", &zero)).iter().zip(own(&*run(&cloud, "gfedmtl", &zero))) {
            prop_assert!(length(a) + length(&b) == 0.0 || apart(a, &b) < 1e-13);
        }
    }

    /// Neither the order of the roster nor the names matter: the same names give the same bits in whatever
    /// order the lines come, and other names permute the results up to the order of sums.
    #[test]
    fn order_and_names_do_not_matter(seed in 0u64..1000) {
        let base = small(seed, 24, 5, 10);
        let mut shuffled: Vec<usize> = (0..24).collect();
        PublicRng::named(seed, "shuffle", 0, 0).shuffle(&mut shuffled);
        let rebuilt = |rename: bool| {
            let entries = shuffled.iter().enumerate().map(|(i, &k)| {
                let member = base.federation.members()[k];
                let old = base.federation.client_name(member.id).to_string();
                Entry {
                    name: if rename { format!("z{i:03}") } else { old },
                    server: member.server,
                    cluster: member.cluster,
                    samples: member.samples,
                }
            });
            let graph = base.federation.topology().clone();
            let (federation, order) =
                Federation::new(entries.collect(), names("s", 4), names("q", 3), graph).unwrap();
            // Where each client of the new roster was in the old one.
            let was: Vec<usize> = order.iter().map(|&line| shuffled[line]).collect();
            let data = was.iter().map(|&k| Arc::clone(&base.data[k])).collect();
            (world(federation, data, base.model, seed, base.run.rounds), was)
        };
        for name in FAMILY {
            let expected = run(&base, name, &[]);
            let (same, _) = rebuilt(false);
            prop_assert_eq!(all_bits(&*expected), all_bits(&*run(&same, name, &[])), "{}", name);
            let (renamed, was) = rebuilt(true);
            let (expected, models) = (own(&*expected), own(&*run(&renamed, name, &[])));
            for (model, &k) in models.iter().zip(&was) {
                prop_assert!(apart(model, &expected[k]) < 1e-12, "{}: client {}", name, k);
            }
        }
    }

    /// Saving and restoring after every round goes on with the same bits, accounts and ledger.
    #[test]
    fn a_restored_run_continues_with_the_same_bits(
        seed in 0u64..1000, some in proptest::option::of(1u32..4), private: bool, which in 0usize..8
    ) {
        let name = ["pgfl", "gfedmtl", "single-step", "gfl", "clusterfl", "one-cloud", "local", "centralized"]
            [which];
        let base = maybe(small(seed, 20, 4, 7), some);
        let base = if private && name != "centralized" { base.private() } else { base };
        let settings = values(name, &[]);
        let mut straight = base.live(name, &settings);
        let mut broken = base.live(name, &settings);
        loop {
            let saved = broken.save();
            broken = base.live(name, &settings);
            broken.restore(&saved).unwrap();
            prop_assert_eq!(broken.save(), saved);
            let progress = straight.step().unwrap();
            prop_assert_eq!(broken.step().unwrap(), progress);
            prop_assert_eq!(all_bits(&*straight), all_bits(&*broken));
            prop_assert_eq!(straight.accounts(), broken.accounts());
            prop_assert_eq!(straight.ledger(), broken.ledger());
            if progress == Progress::Ended {
                break;
            }
        }
        let saved = straight.save();
        for cut in [0, 1, saved.len() / 2, saved.len() - 1] {
            prop_assert!(base.live(name, &settings).restore(&saved[..cut]).is_err());
        }
    }

    /// Decision 2: a client that is not chosen keeps its model and its dual.
    #[test]
    fn a_client_not_chosen_keeps_its_model_and_dual(seed in 0u64..1000, some in 1u32..4) {
        let base = small(seed, 24, 5, 10).some(some).private();
        let algorithm = <Admm<Pgfl>>::from_values(&values("pgfl", &[]), &base.context).unwrap();
        let mut looped = Loop::new(algorithm, &base);
        let mut live = base.live("pgfl", &values("pgfl", &[]));
        let mut before = (duals(&mut looped, 1.0), own(&*live));
        for _ in 0..6 {
            looped.step();
            steps(&mut *live, 1);
            let after = (duals(&mut looped, 1.0), own(&*live));
            for server in looped.0.servers() {
                for (member, verdict) in server.members().iter().zip(server.verdicts()) {
                    let k = member.id as usize;
                    let same = bits(&before.1[k]) == bits(&after.1[k]);
                    prop_assert_eq!(same, *verdict == Verdict::NotAsked, "client {}", k);
                    if *verdict == Verdict::NotAsked {
                        // The dual is read as rho (v_k - w_s), which rounds.
                        let gap: Vector = before.0[&member.id].iter().zip(&after.0[&member.id])
                            .map(|(x, y)| x - y).collect();
                        prop_assert!(length(&gap) < 1e-12 * (1.0 + length(&after.0[&member.id])));
                    }
                }
            }
            before = after;
        }
    }

    /// Decision 1: a server whose cells are all empty and that has no neighbours keeps what it served; with
    /// tau = 0 so does every empty cell of an isolated server.
    #[test]
    fn an_empty_cell_keeps_what_was_served(seed in 0u64..1000) {
        let base = small(seed, 24, 5, 12).some(1);
        for name in ["clusterfl", "gfedmtl"] {
            let seen = base.arranged("clusterfl");
            let algorithm = values(name, &[("inter_cluster", number(0.0))]);
            let mut live = seen.live(name, &algorithm);
            let mut before = held(&*live, "served");
            let mut own_before = own(&*live);
            let mut kept = 0;
            for _ in 0..12 {
                steps(&mut *live, 1);
                let (after, own_after) = (held(&*live, "served"), own(&*live));
                for (cell, model) in &after {
                    let active = seen.federation.members().iter().any(|member| {
                        (member.server, member.cluster) == *cell
                            && own_before[member.id as usize] != own_after[member.id as usize]
                    });
                    if !active {
                        kept += 1;
                        prop_assert_eq!(bits(model), bits(&before[cell]));
                    }
                }
                (before, own_before) = (after, own_after);
            }
            prop_assert!(kept > 0);
        }
    }

    /// The averaged read-out is the exponential average of the served models whose window grows at the start:
    /// a_n = a_{n-1} + max(1 - memory, 1/n) (served_n - a_{n-1}). So it is the plain mean at first.
    #[test]
    fn the_averaged_read_out_is_its_definition(
        seed in 0u64..1000, memory in 0.0..0.99f64, some in proptest::option::of(1u32..4)
    ) {
        let base = maybe(small(seed, 20, 4, 30), some).private();
        for name in FAMILY {
            let mut live = base.live(name, &values(name, &[("readout_memory", number(memory))]));
            let mut averaged: BTreeMap<(u32, u32), Vector> = BTreeMap::new();
            let mut sums = averaged.clone();
            for n in 1..=30u32 {
                steps(&mut *live, 1);
                let readout = held(&*live, "averaged");
                for (cell, served) in held(&*live, "served") {
                    let zero = vec![0.0; served.len()];
                    let average = averaged.entry(cell).or_insert_with(|| zero.clone());
                    let sum = sums.entry(cell).or_insert(zero);
                    let weight = (1.0 - memory).max(1.0 / f64::from(n));
                    for j in 0..served.len() {
                        average[j] += weight * (served[j] - average[j]);
                        sum[j] += served[j];
                    }
                    prop_assert!(close(&readout[&cell], average), "{} round {}", name, n);
                    if f64::from(n) * (1.0 - memory) <= 1.0 {
                        let mean: Vector = sum.iter().map(|x| x / f64::from(n)).collect();
                        prop_assert!(close(&readout[&cell], &mean), "{} round {} mean", name, n);
                    }
                }
            }
        }
    }
}

fn close(a: &[f64], b: &[f64]) -> bool {
    let gap: Vector = a.iter().zip(b).map(|(x, y)| x - y).collect();
    length(&gap) <= 1e-12 * (1.0 + length(b))
}

/// The number of threads does not change a bit: 3 servers, one of them with more than a chunk of 256
/// clients, d large enough that threads are used, with noise and with averages over all clients.
#[test]
fn threads_do_not_change_bits() {
    struct Norm;
    impl fedkin_method::round::Judge for Norm {
        fn columns(&self) -> usize {
            3
        }
        fn score(&self, _: &fedkin_method::Member, _: bool, name: usize, model: &[f64], row: &mut [f64]) {
            row[name] = length(model);
        }
    }
    let mut rng = PublicRng::named(4, "threads", 0, 0);
    let (mut entries, mut data) = (Vec::new(), Vec::new());
    for k in 0..1200u32 {
        let server = if k < 700 { 0 } else { 1 + k % 2 };
        let samples = 1 + rng.below(4);
        let model: Vector = (0..100).map(|_| rng.normal()).collect();
        data.push(Arc::new(records(&mut rng, samples, &model, false)));
        entries.push(Entry { name: format!("c{k:04}"), server, cluster: k % 3, samples });
    }
    let (federation, _) = Federation::new(entries, names("s", 3), names("q", 3), Topology::ring(3)).unwrap();
    let base = world(federation, data, ridge(0.01), 4, 6).private();
    for name in FAMILY {
        let with = |threads: usize| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| {
                let live = run(&base, name, &[]);
                let summaries: Vec<u64> =
                    live.evaluate(&Norm).iter().map(|summary| summary.sum.to_bits()).collect();
                (all_bits(&*live), summaries, live.save(), live.ledger().clone())
            })
        };
        let (one, two, three) = (with(1), with(2), with(3));
        assert!(one == two && one == three, "{name}: the bits depend on the threads");
    }
}

/// Noise fades with the budget: (47) makes its deviation fall with the root of the budget, so a hundred
/// times the budget brings the run ten times closer to the noiseless one.
#[test]
fn a_huge_budget_tends_to_the_noiseless_run() {
    for name in FAMILY {
        let plain = own(&*run(&small(3, 24, 5, 20), name, &[("inter_cluster", number(0.2))]));
        let far = |budget: f64| {
            let noisy = small(3, 24, 5, 20).zcdp(budget, 1.0, 0.05, None);
            let noisy = own(&*run(&noisy, name, &[("inter_cluster", number(0.2))]));
            noisy.iter().zip(&plain).map(|(a, b)| apart(a, b)).fold(0.0, f64::max)
        };
        let gaps = [far(0.08), far(8.0), far(800.0)];
        assert!(gaps[2] > 0.0 && gaps[2] < 5e-3, "{name}: {gaps:?}");
        for pair in gaps.windows(2) {
            // Other messages draw other noise, so the factor is ten only on average.
            assert!((3.0..30.0).contains(&(pair[0] / pair[1])), "{name}: {gaps:?}");
        }
    }
}

/// Noise of size zero and a clip at infinity (the grid skipped): the private path gives the run without privacy
/// to the bit, for the price of nothing, and the ledger says what that is worth. With the grid alone, or with
/// a clip that bites, it does not.
#[test]
fn without_noise_and_clip_the_private_path_is_the_plain_run() {
    for name in FAMILY {
        let plain = run(&small(3, 24, 5, 12), name, &[]);
        let mut silent = small(3, 24, 5, 12).sampled(Sampler::None, f64::INFINITY);
        silent.model.feature_norm = Some(f64::INFINITY);
        silent.context.families = Families::one(Linear::new(silent.model));
        let path = run(&silent, name, &[]);
        let of = |live: &dyn Live| own(live).iter().map(|model| bits(model)).collect::<Vec<_>>();
        assert_eq!(of(&*path), of(&*plain), "{name}");
        let ledger = path.ledger();
        assert!(!ledger.lines.is_empty());
        for line in &ledger.lines {
            assert_eq!(Line::text(&line.mechanism), "no noise, not private", "{name}");
            assert_eq!((line.units, line.sigma_most, Line::text(&line.bound)), (0, 0.0, String::new()));
        }
        assert_eq!(ledger.lines.len(), plain.ledger().lines.len(), "{name}");
        let noisy = run(&small(3, 24, 5, 12).sampled(Sampler::Discrete, 0.05), name, &[]);
        assert_ne!(of(&*noisy), of(&*plain), "{name}: noise");
        let mut clipped = small(3, 24, 5, 12).sampled(Sampler::None, f64::INFINITY);
        clipped.model.feature_norm = Some(0.5);
        clipped.context.families = Families::one(Linear::new(clipped.model));
        assert_ne!(of(&*run(&clipped, name, &[])), of(&*plain), "{name}: clip");
    }
}

/// Where the budget is spent a client refuses, nothing more is charged, its model stays, and the run goes on.
#[test]
fn a_spent_budget_refuses_and_the_run_goes_on() {
    // Round n costs 0.01: three rounds fit into 0.035.
    let base = small(6, 24, 5, 8).zcdp(0.01, 1.0, 0.05, Some(0.035));
    for name in FAMILY {
        let base = maybe(base.arranged("pgfl"), Some(if name == "one-cloud" { 16 } else { 4 }));
        let mut live = base.live(name, &values(name, &[]));
        let mut refused = 0;
        for _ in 0..8 {
            let (accounts, models) = (live.accounts(), own(&*live));
            let Progress::Round(counts) = live.step().unwrap() else { panic!("ended early") };
            refused += counts.refused;
            for (k, (before, after)) in accounts.iter().zip(live.accounts()).enumerate() {
                assert!(after.spent <= 35_000_000_000, "{name}: client {k} spent {}", after.spent);
                assert!(after.spent == before.spent || after.spent == before.spent + 10_000_000_000);
                assert_eq!(after.releases, after.spent / 10_000_000_000);
                if before.spent == 30_000_000_000 {
                    assert_eq!(
                        (&after, bits(&own(&*live)[k])),
                        (before, bits(&models[k])),
                        "{name} client {k}"
                    );
                }
            }
            let charged: u64 =
                live.ledger().lines.iter().map(|line| u64::from(line.clients) * line.units).sum();
            assert_eq!(charged, live.accounts().iter().map(|account| account.spent).sum::<u64>());
        }
        assert!(refused > 0, "{name}: nobody refused");
        assert_eq!(live.step().unwrap(), Progress::Ended);
    }
    // Once all have refused, rounds still pass, nothing is released and the ledger has no new line.
    let base = small(6, 24, 5, 8).zcdp(0.01, 1.0, 0.05, Some(0.025));
    let mut live = base.live("pgfl", &values("pgfl", &[]));
    steps(&mut *live, 2);
    let (lines, models) = (live.ledger().lines.len(), own(&*live));
    for _ in 2..8 {
        let Progress::Round(counts) = live.step().unwrap() else { panic!("ended early") };
        assert_eq!((counts.values, counts.refused, counts.rejected), (0, 24, 0));
    }
    assert_eq!((lines, models), (live.ledger().lines.len(), own(&*live)));
}

type Up = <Admm<Pgfl> as Algorithm>::Up;

/// The door: an upload that is not finite, too large or of the wrong length is turned away, and nothing
/// of the server moves; the others' uploads count as if it had not been asked.
#[test]
fn bad_uploads_are_rejected_and_change_nothing() {
    let base = small(8, 24, 5, 4).arranged("one-cloud");
    let build = || <Admm<Pgfl>>::from_values(&values("pgfl", &[]), &base.context).unwrap();
    let bad: Vec<Vector> = vec![
        vec![f64::NAN, 0.0, 0.0, 0.0, 0.0],
        vec![0.0, f64::INFINITY, 0.0, 0.0, 0.0],
        vec![0.0, f64::NEG_INFINITY, 0.0, f64::INFINITY, 0.0],
        vec![1e6, 0.0, 0.0, 0.0, 1.0],
        vec![1e200; 5],
        vec![0.0; 4],
        vec![0.0; 6],
        vec![],
    ];
    let reasons = ["not finite", "not finite", "not finite", "norm too large"];
    for (b, model) in bad.iter().enumerate() {
        let mut looped = Loop::new(build(), &base);
        looped.step();
        let before = looped.state(0);
        looped.begin();
        looped.feed(0, |_, mut chunk, _, _| {
            chunk.clear();
            for i in 0..24 {
                assert!(chunk.is_asked(i));
                chunk.take(i, Ok(&Up { model: model.clone() }));
            }
        });
        for verdict in looped.0.servers()[0].verdicts() {
            let Verdict::Rejected(reason) = verdict else { panic!("{model:?}: {verdict:?}") };
            assert_eq!(
                reason.words(),
                reasons.get(b).copied().unwrap_or(if b == 4 { "not finite" } else { "wrong shape" })
            );
        }
        assert_eq!(looped.state(0), before, "a rejected upload moved a seat");
        let counts = looped.end();
        assert_eq!((counts.values, counts.rejected), (0, 24));
    }
    // One bad upload among good ones: the same as a refusal of that client.
    let answer = |bad: Option<&Vector>| {
        let mut looped = Loop::new(build(), &base);
        looped.step();
        looped.begin();
        looped.feed(0, |_, mut chunk, _, _| {
            chunk.clear();
            for i in 0..24 {
                let good = Up { model: vec![i as f64, 1.0, 2.0, 3.0, 4.0] };
                match bad {
                    _ if i != 7 => chunk.take(i, Ok(&good)),
                    Some(model) => chunk.take(i, Ok(&Up { model: model.clone() })),
                    None => chunk.take(i, Err(Refusal::Budget)),
                }
            }
        });
        looped.end();
        looped.state(0)
    };
    let refused = answer(None);
    for model in &bad {
        assert_eq!(answer(Some(model)), refused, "{model:?}");
    }
    // Exactly at the bound an upload passes.
    let mut looped = Loop::new(build(), &base);
    looped.begin();
    looped.feed(0, |_, mut chunk, _, _| {
        chunk.clear();
        chunk.take(0, Ok(&Up { model: vec![1e6, 0.0, 0.0, 0.0, 0.0] }));
    });
    assert_eq!(looped.0.servers()[0].verdicts()[0], Verdict::Value);
}

/// tau of every (server, cluster) in the last round, read back from (10): the served model lies on the line
/// from the neighbourhood's mean of the cluster to the mean of the other clusters' means. The aggregates (8)
/// of the round are computed from the models and duals that the machine shows.
fn taus(base: &Small, rounds: u32) -> Vec<BTreeMap<(u32, u32), f64>> {
    let algorithm = <Admm<Pgfl>>::from_values(&values("pgfl", &[]), &base.context).unwrap();
    let d = base.run.dimension;
    let mut looped = Loop::new(algorithm, base);
    let served_of = |looped: &Loop<Admm<Pgfl>>| {
        let mut served: BTreeMap<(u32, u32), Vector> = BTreeMap::new();
        for server in looped.0.servers() {
            server.held(looped.0.algorithm(), looped.0.run(), &mut |q, name, model| {
                if name == "served" {
                    served.insert((server.id(), q), model.to_vec());
                }
            });
        }
        served
    };
    let mut all = Vec::new();
    for _ in 0..rounds {
        let mut aggregate = served_of(&looped);
        looped.begin();
        looped.ask();
        // After `ask` the seat holds phi - rho w~, so the message it would send is v = w_s + phi/rho - w~:
        // served - v = w~ - phi/rho, what (8) averages.
        let mut cells: BTreeMap<(u32, u32), (Vector, f64)> = BTreeMap::new();
        for at in 0..looped.0.servers().len() {
            let verdicts = looped.0.servers()[at].verdicts().to_vec();
            let mut down = <Admm<Pgfl> as Algorithm>::Down::default();
            looped.feed(at, |_, chunk, _, _| {
                for (i, member) in chunk.members.iter().enumerate() {
                    if verdicts[i] == Verdict::Value {
                        chunk.down(i, &mut down);
                        let cell = (member.server, member.cluster);
                        let sum = cells.entry(cell).or_insert((vec![0.0; d], 0.0));
                        let term = aggregate[&cell].iter().zip(&down.centre).map(|(w, v)| w - v);
                        sum.0.iter_mut().zip(term).for_each(|(sum, x)| *sum += x);
                        sum.1 += 1.0;
                    }
                }
            });
        }
        for (cell, (sum, count)) in cells {
            aggregate.insert(cell, sum.iter().map(|x| x / count).collect());
        }
        looped.end();
        let served = served_of(&looped);
        let clusters = base.run.clusters as u32;
        let mut taus = BTreeMap::new();
        for server in looped.0.servers() {
            let around: Vec<u32> = server.neighbours().iter().copied().chain([server.id()]).collect();
            let mean = |q: u32| -> Vector {
                (0..d)
                    .map(|j| around.iter().map(|&p| aggregate[&(p, q)][j]).sum::<f64>() / around.len() as f64)
                    .collect()
            };
            for q in 0..clusters {
                let hat = mean(q);
                let mut way: Vector = hat.iter().map(|x| -x).collect();
                for r in (0..clusters).filter(|r| *r != q) {
                    way.iter_mut().zip(mean(r)).for_each(|(way, x)| *way += x / f64::from(clusters - 1));
                }
                let gone: Vector = served[&(server.id(), q)].iter().zip(&hat).map(|(w, h)| w - h).collect();
                let along: f64 = gone.iter().zip(&way).map(|(g, w)| g * w).sum();
                taus.insert((server.id(), q), along / length(&way).powi(2));
            }
        }
        all.push(taus);
    }
    all
}

/// Adaptive tau: in [0, (Q-1)/Q]; 0 for one server, whose spread cannot be measured; and the most where the
/// clusters are the same and only noise tells them apart.
#[test]
fn adaptive_tau_keeps_its_range_and_its_ends() {
    let most = 2.0 / 3.0;
    for seed in 0..6 {
        for base in [small(seed, 30, 6, 15), small(seed, 30, 6, 15).private().some(3)] {
            let mut inside = 0;
            for tau in taus(&base, 15).iter().skip(1).flat_map(BTreeMap::values) {
                assert!((-1e-9..=most + 1e-9).contains(tau), "seed {seed}: {tau}");
                inside += u32::from(*tau > 1e-6 && *tau < most - 1e-6);
            }
            assert!(inside > 0, "seed {seed}: tau never adapted");
            for tau in taus(&base.arranged("one-cloud"), 15).iter().flat_map(BTreeMap::values) {
                assert!(tau.abs() < 1e-9, "one server: {tau}");
            }
        }
    }
    // Every client has the same records, so noise alone tells clusters apart. If the means of Q clusters
    // have independent noise of variance v, then E d2 = v (1 + 1/(Q-1)) and v / d2 is about (Q-1)/Q, its
    // most; with 60 coordinates it stays there.
    let mut rng = PublicRng::named(2, "identical", 0, 0);
    let model: Vector = (0..60).map(|_| rng.normal()).collect();
    let shared = Arc::new(records(&mut rng, 8, &model, false));
    let same = Small { data: vec![shared; 120], ..small(2, 120, 60, 60) }.zcdp(1e-4, 1.0, 0.05, None);
    let late: Vec<f64> = taus(&same, 60).iter().skip(30).flat_map(BTreeMap::values).copied().collect();
    let mean = late.iter().sum::<f64>() / late.len() as f64;
    let least = late.iter().copied().fold(f64::INFINITY, f64::min);
    assert!(mean > most - 1e-3 && least > 0.9 * most, "mean {mean}, least {least}");
}
