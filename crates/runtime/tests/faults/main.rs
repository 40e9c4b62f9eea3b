//! Faults by the thousand: whole federations over a broker that loses, doubles, delays, reorders and damages
//! messages, with nodes that crash between any two effects, full disks and cut lines, all from one seed.
//! After every schedule the invariants of the protocol hold, and the bits are those of the unfaulted run.
//!
//! `FEDKIN_SCHEDULES=n` runs n schedules of each mode instead of the usual number, `FEDKIN_SEED=s` one.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stdout)]

mod checks;
#[path = "../common/mod.rs"]
mod common;
mod delivery;
mod misbehaviour;
mod mutants;
mod network;
mod replay;
mod scenario;
mod trouble;
mod world;

use checks::{Checks, Violation};
use common::{small, text};
use fedkin_core::algorithm::Algorithm;
use fedkin_core::algorithm::registry::{self, Visitor};
use fedkin_core::params::Value;
use fedkin_core::rng::PublicRng;
use fedkin_core::round::mutants::{Mutant, with};
use mutants::Mistake;
use network::Rates;
use scenario::Scenario;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use world::{Stats, World};

const STRICT: u64 = 4_000;
const DEADLINE: u64 = 1_200;
/// How many schedules a mistake may survive.
const SURVIVES: u64 = 400;

struct Play<'a> {
    scenario: &'a Scenario,
    mistake: Option<Mistake>,
}

impl Visitor for Play<'_> {
    type Output = Result<Stats, (Violation, String)>;
    fn visit<A: Algorithm>(self, algorithm: A) -> Self::Output {
        let Self { scenario, mistake } = self;
        let reference = scenario.strict().then(|| scenario.reference());
        let budget = scenario.world.run.privacy.budget_units();
        let checks = Checks::new(&scenario.world.federation, budget, reference.as_ref());
        let mut world = World::new(algorithm, scenario, checks, mistake);
        let ended = with(Mistake::inside(mistake), || {
            world.run()?;
            match &reference {
                Some(reference) => world.equals(reference),
                None => world.equals_replay(),
            }
        });
        ended.map_err(|violation| (violation, world.story()))?;
        Ok(world.stats)
    }
}

/// Plays one schedule; where an invariant breaks, says which, with the story and how to see it again.
fn play(scenario: &Scenario, mistake: Option<Mistake>) -> Result<Stats, (&'static str, String)> {
    let Scenario { row, values, world, .. } = scenario;
    let visitor = Play { scenario, mistake };
    let mode = if scenario.strict() { "strict" } else { "deadline" };
    let again = format!(
        "FEDKIN_SEED={} cargo test --release -p fedkin-runtime --test faults {mode} -- --nocapture",
        scenario.seed
    );
    let told = |name: &str, text: &str, story: &str| {
        format!(
            "{name} broken ({mode}, seed {}, {}): {text}\n{story}\nrepeat with: {again}",
            scenario.seed, row.name
        )
    };
    let played =
        catch_unwind(AssertUnwindSafe(|| registry::visit(row.name, values, &world.context, visitor)));
    match played {
        Ok(Ok(Ok(stats))) => Ok(stats),
        Ok(Ok(Err((broken, story)))) => Err((broken.invariant, told(broken.invariant, &broken.text, &story))),
        Ok(Err(text)) => Err(("config", told("config", &text, ""))),
        Err(_) => Err(("panic", told("panic", "a node panicked, see above", ""))),
    }
}

fn variable(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|text| text.parse().expect("a number"))
}

/// Plays many schedules on all cores and sums up; fails with the story of the first seed that broke something.
fn play_all(count: u64, deadline: bool) {
    let seeds = match (variable("FEDKIN_SEED"), variable("FEDKIN_SCHEDULES")) {
        (Some(seed), _) => seed..seed + 1,
        (None, count_asked) => 0..count_asked.unwrap_or(count),
    };
    let begun = std::time::Instant::now();
    let (next, schedules) = (AtomicU64::new(seeds.start), seeds.end - seeds.start);
    let broken: Mutex<Option<(u64, String)>> = Mutex::new(None);
    let all: Mutex<Vec<Stats>> = Mutex::new(Vec::new());
    let work = || {
        let mut played = Vec::new();
        loop {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed >= seeds.end || broken.lock().unwrap().is_some() {
                break;
            }
            match play(&Scenario::new(seed, deadline), None) {
                Ok(stats) => played.push(stats),
                Err((_, text)) => {
                    let mut broken = broken.lock().unwrap();
                    if broken.as_ref().is_none_or(|(first, _)| seed < *first) {
                        *broken = Some((seed, text));
                    }
                }
            }
        }
        all.lock().unwrap().extend(played);
    };
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(work);
        }
    });
    if let Some((_, text)) = broken.into_inner().unwrap() {
        panic!("{text}");
    }
    let all = all.into_inner().unwrap();
    let total = |each: fn(&Stats) -> u64| all.iter().map(each).sum::<u64>();
    println!(
        "{schedules} schedules in {:.1} s: {} ticks, {} crashes, {} refusals, {} lies; at most {} ticks after the faults",
        begun.elapsed().as_secs_f64(),
        total(|stats| stats.ticks),
        total(|stats| u64::from(stats.crashes)),
        total(|stats| u64::from(stats.refused)),
        total(|stats| u64::from(stats.forged)),
        all.iter().map(|stats| stats.quiet).max().unwrap_or(0),
    );
    if schedules > 100 {
        // A simulator in which nothing happens would find nothing.
        assert!(total(|stats| u64::from(stats.crashes)) > 3 * schedules);
        assert!(total(|stats| u64::from(stats.refused)) > schedules);
        assert!(total(|stats| u64::from(stats.forged)) > schedules);
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

/// Every method of the registry, on larger federations, simulation-only ones included.
#[test]
fn conformance_every_method_gives_the_same_bits_behind_messages() {
    for row in registry::TABLE {
        for world in [small(1, 30, 8, 12), small(2, 30, 8, 12).some(2)] {
            let mut sets: Vec<Vec<(&str, Value)>> = vec![Vec::new()];
            if row.graphs {
                sets.push(vec![("solver", text("paper"))]);
            }
            for set in sets {
                let scenario = Scenario::of(row, &world, world.run.seed, &set);
                let learnt = scenario.reference().models.iter().flatten().any(|bits| *bits != 0);
                assert!(learnt, "{} learnt nothing", row.name);
                play(&scenario, None).unwrap_or_else(|(_, text)| panic!("{text}"));
            }
        }
    }
}

/// The same with models of several classes, for the methods that take them; the others say so.
#[test]
fn conformance_models_of_several_classes_give_the_same_bits_behind_messages() {
    let mut taken = Vec::new();
    for row in registry::TABLE.iter().filter(|row| !row.graphs) {
        let world = small(3, 30, 8, 6).classes(3);
        let scenario = Scenario::of(row, &world, world.run.seed, &[]);
        let at = world.arranged(row.name);
        let started =
            fedkin_runtime::start(row.name, &scenario.values, &at.context, at.run, &at.federation, &at.data);
        if let Err(error) = started {
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
    let methods = registry::TABLE.iter().filter(|row| !row.simulation_only).count() as u64;
    let mut scenario = (0..1000)
        .map(|i| Scenario::sized(methods * i, false, 300, &mut PublicRng::named(i, "long", 0, 0)))
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
/// that never errs.
#[test]
fn every_mutant_is_caught() {
    for (name, mistake, expected) in mutants::ALL {
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
    let order = Mistake::Inside(Mutant::ArrivalOrder);
    let (_, invariant, text) = caught(order, true, |_| true).expect("the replay notices");
    assert_eq!(invariant, "I7", "{text}");
}

/// The first schedule of this kind in which a mistake is noticed, and by what.
fn caught(
    mistake: Mistake,
    deadline: bool,
    kind: fn(&Scenario) -> bool,
) -> Option<(u64, &'static str, String)> {
    (0..SURVIVES).find_map(|seed| {
        let scenario = Scenario::new(seed, deadline);
        let played = kind(&scenario).then(|| play(&scenario, Some(mistake)))?;
        played.err().map(|(invariant, text)| (seed, invariant, text))
    })
}
