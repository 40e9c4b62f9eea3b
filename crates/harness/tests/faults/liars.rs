//! A client, a server or the broker lies, in many schedules of each mode.
//!
//! `FEDKIN_LIES=n` plays n schedules of each kind and mode instead of the usual number, `FEDKIN_SEED=s` one.

use super::{SURVIVES, native, variable};
use fedkin_harness::{Liar, Mistake, Scenario, Schedules, faults, play};
use fedkin_privacy::mutants::Mutant;

const USUAL: u64 = 150;

fn lie(liar: Liar) {
    for deadline in [false, true] {
        let seeds = match variable("FEDKIN_SEED") {
            Some(seed) => seed..seed + 1,
            None => 0..variable("FEDKIN_LIES").unwrap_or(USUAL),
        };
        let count = seeds.end - seeds.start;
        let all = faults(&native(), &Schedules { seeds, deadline, liar: Some(liar) });
        let all = all.unwrap_or_else(|text| panic!("{liar:?}: {text}"));
        let lies: u64 = all.iter().map(|stats| u64::from(stats.forged)).sum();
        println!("{liar:?}, deadlines {deadline}: {count} schedules, {lies} lies");
        assert!(lies > 2 * count || count < 10);
    }
}

#[test]
fn a_lying_client_harms_nobody_elses_ledger_and_stops_nobody() {
    lie(Liar::Client);
}

#[test]
fn a_lying_server_makes_no_client_pay_twice_and_stops_no_honest_server() {
    lie(Liar::Server);
}

#[test]
fn a_broker_that_cannot_open_messages_can_only_delay() {
    lie(Liar::Broker);
}

#[test]
fn a_broker_that_can_forge_still_finds_every_ledger_sound() {
    lie(Liar::OpenBroker);
}

/// Mistakes that only a liar brings to light. They exist in builds with `--cfg fedkin_mutants` only.
#[test]
fn every_mutant_that_believes_a_liar_is_caught() {
    let cases = [
        ("answers of any step", Mutant::AnyStep, Liar::Client, false, "I4"),
        ("a client that ends a run", Mutant::HeedsOne, Liar::Client, true, "stop"),
        ("a neighbour that ends a run", Mutant::HeedsOne, Liar::Server, true, "stop"),
    ];
    let methods = native();
    for (name, mutant, liar, deadline, expected) in cases.into_iter().filter(|_| cfg!(fedkin_mutants)) {
        let caught = (0..SURVIVES).find_map(|seed| {
            let scenario = Scenario::lying(&methods, seed, deadline, liar);
            play(&scenario, Some(Mistake::Inside(mutant))).err()
        });
        let (invariant, text) = caught.unwrap_or_else(|| panic!("{name}: not noticed"));
        assert_eq!(invariant, expected, "{name}: {text}");
    }
}
