//! The fault simulator of the harness on the native methods, and nodes that break the rules.
//!
//! `FEDKIN_SCHEDULES=n` runs n schedules of each mode instead of the usual number, `FEDKIN_SEED=s` one.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stdout)]

mod conforming;
mod flaws;
mod liars;
mod misbehaviour;

use fedkin_harness::worlds::small;
use fedkin_harness::{MISTAKES, Mistake, Rates, Scenario, Schedules, Stats, faults, play};
use fedkin_method::registry::{self, Methods};
use fedkin_numeric::rng::PublicRng;
use fedkin_privacy::mutants::Mutant;
use std::sync::Arc;

const STRICT: u64 = 4_000;
const DEADLINE: u64 = 1_200;
/// How many schedules a mistake may survive.
const SURVIVES: u64 = 400;

fn native() -> Arc<Methods> {
    Arc::new(registry::native())
}

fn variable(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|text| text.parse().expect("a number"))
}

/// Plays many schedules and sums up.
fn play_all(count: u64, deadline: bool) {
    let seeds = match (variable("FEDKIN_SEED"), variable("FEDKIN_SCHEDULES")) {
        (Some(seed), _) => seed..seed + 1,
        (None, count_asked) => 0..count_asked.unwrap_or(count),
    };
    let begun = std::time::Instant::now();
    let schedules = seeds.end - seeds.start;
    let all =
        faults(&native(), &Schedules { seeds, deadline, liar: None }).unwrap_or_else(|text| panic!("{text}"));
    let total = |each: fn(&Stats) -> u64| all.iter().map(each).sum::<u64>();
    println!(
        "{schedules} schedules in {:.1} s: {} ticks, {} crashes, {} refusals, {} lies, {} stops; at most {} ticks after the faults",
        begun.elapsed().as_secs_f64(),
        total(|stats| stats.ticks),
        total(|stats| u64::from(stats.crashes)),
        total(|stats| u64::from(stats.refused)),
        total(|stats| u64::from(stats.forged)),
        total(|stats| u64::from(stats.stopped > 0)),
        all.iter().map(|stats| stats.quiet).max().unwrap_or(0),
    );
    if schedules > 100 {
        // A simulator in which nothing happens would find nothing.
        assert!(total(|stats| u64::from(stats.crashes)) > 3 * schedules);
        assert!(total(|stats| u64::from(stats.refused)) > schedules);
        assert!(total(|stats| u64::from(stats.forged)) > schedules);
        // With deadlines it takes more than one client to end a run.
        let rare = if deadline { 200 } else { 100 };
        assert!(total(|stats| u64::from(stats.stopped > 0)) > schedules / rare);
        assert_eq!(total(|stats| u64::from(stats.late)) > schedules / 4, deadline);
        assert_eq!(total(|stats| u64::from(stats.without)) > schedules / 4, deadline);
    }
}

#[test]
fn strict_schedules_end_with_the_bits_of_the_unfaulted_run() {
    play_all(STRICT, false);
}

#[test]
fn deadline_schedules_end_with_the_bits_of_their_replay() {
    play_all(DEADLINE, true);
}

/// The same with models of several classes, for the methods that take them; the others say so.
#[test]
fn conformance_models_of_several_classes_give_the_same_bits_behind_messages() {
    let mut taken = Vec::new();
    for row in registry::native().iter().filter(|row| !row.graphs) {
        let world = small(3, 30, 8, 6).classes(3);
        let scenario = Scenario::of(*row, &world, world.run.seed, &[]);
        if let Err(error) = world.arranged(row.name).start(row.name, &scenario.values) {
            assert!(error.to_string().contains("several classes"), "{}: {error}", row.name);
        } else {
            play(&scenario, None).unwrap_or_else(|(_, text)| panic!("{text}"));
            taken.push(row.name);
        }
    }
    let classify = [
        "fedavg",
        "fedprox",
        "fedbn",
        "per-fedavg",
        "pfedme",
        "local",
        "centralized",
        "pooled",
        "persfl",
        "ifca",
    ];
    for name in classify {
        assert!(taken.contains(&name), "{name} refuses several classes");
    }
}

/// I11 over hundreds of rounds: nothing but the ledgers grows.
#[test]
fn storage_is_flat_in_the_number_of_rounds() {
    // The first method of the table.
    let native = native();
    let methods = native.iter().filter(|row| !row.simulation_only).count() as u64;
    let mut scenario = (0..1000)
        .map(|i| Scenario::sized(&native, methods * i, false, 300, &mut PublicRng::named(i, "long", 0, 0)))
        .find(|scenario| {
            scenario.world.federation.servers() > 2 && scenario.world.run.privacy.budget_units().is_none()
        })
        .expect("a seed with three servers");
    scenario.rates =
        Rates { drop: 15, twice: 8, delay: 10, damage: 25, wipe: 300, cut: 300, crash: 150, full: 400 };
    scenario.trouble = 2_000_000;
    let stats = play(&scenario, None).unwrap_or_else(|(_, text)| panic!("{text}"));
    println!("300 rounds: {stats:?}");
    let (early, late) = stats.disk;
    assert!(stats.quiet == 0 && stats.crashes > 100, "{stats:?}");
    assert!(late <= early + early / 4, "a server's disk grows: {early} bytes, later {late}");
}

/// Every mistake is noticed, and soon. Without this, a check that never fails would look like a protocol
/// that never errs. Mistakes inside nodes exist in builds with `--cfg fedkin_mutants` only: `scripts/test` makes one.
#[test]
fn every_mutant_is_caught() {
    let here = |mistake: &Mistake| cfg!(fedkin_mutants) || !matches!(mistake, Mistake::Inside(_));
    for (name, mistake, expected) in MISTAKES.iter().filter(|(_, mistake, _)| here(mistake)) {
        let (seed, invariant, text) = caught(*mistake, false, |_| true)
            .unwrap_or_else(|| panic!("{name}: not noticed in {SURVIVES} schedules"));
        let what = text.lines().next().unwrap_or_default();
        println!("{name}: {invariant} after {} schedules: {what}", seed + 1);
        assert!(
            expected.contains(&invariant),
            "{name}: caught by {invariant} instead of {expected:?}\n{text}"
        );
    }
    // The same where the broker's losses are the only trouble: I9 by itself.
    let (_, invariant, text) =
        caught(Mistake::TrustBroker, false, |scenario| scenario.wipes_only).expect("wipes are noticed");
    assert_eq!(invariant, "I9", "{text}");
    // And the replay of a deadline run has the order of the roster, not of arrival.
    if cfg!(fedkin_mutants) {
        let order = Mistake::Inside(Mutant::ArrivalOrder);
        let (_, invariant, text) = caught(order, true, |_| true).expect("the replay notices");
        assert_eq!(invariant, "I7", "{text}");
    }
}

/// The first schedule of this kind in which a mistake is noticed, and by what.
fn caught(
    mistake: Mistake,
    deadline: bool,
    kind: fn(&Scenario) -> bool,
) -> Option<(u64, &'static str, String)> {
    let methods = native();
    (0..SURVIVES).find_map(|seed| {
        let scenario = Scenario::new(&methods, seed, deadline);
        let played = kind(&scenario).then(|| play(&scenario, Some(mistake)))?;
        played.err().map(|(invariant, text)| (seed, invariant, text))
    })
}
