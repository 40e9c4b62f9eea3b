//! Every native method in both drivers, with clients that diverge, refuse, or send what is turned away; and that the
//! comparison can fail.

use super::native;
use fedkin_harness::worlds::text;
use fedkin_harness::{Ending, conformance};
#[cfg(fedkin_mutants)]
use fedkin_harness::{Mistake, cases};
use fedkin_method::registry::{Methods, Row};
use fedkin_method::{Admm, Pgfl};
#[cfg(fedkin_mutants)]
use fedkin_privacy::mutants::Mutant;
use std::sync::Arc;

/// How many endings of these cases there are, and in how many of them something showed.
fn came(endings: &[Ending], case: &str, showed: fn(&Ending) -> bool) -> (usize, usize) {
    let of_case: Vec<&Ending> = endings.iter().filter(|ending| ending.what.contains(case)).collect();
    (of_case.len(), of_case.into_iter().filter(|ending| showed(ending)).count())
}

fn stops(ending: &Ending) -> bool {
    ending.stopped.is_some()
}

fn refuses(ending: &Ending) -> bool {
    ending.refused > 0
}

fn shows(ending: &Ending) -> bool {
    ending.refused + ending.rejected > 0
}

/// Every method of the registry, simulation-only ones included. The methods agree in both drivers whatever happens; below
/// is what happens, so that no case is one in name only.
#[test]
fn conformance_every_method_ends_in_one_process_as_behind_messages() {
    let methods = native();
    let (mut began, mut with_noise, mut sends) = (0, Vec::new(), Vec::new());
    for row in methods.iter() {
        let all = conformance(&methods, row.name, &[]).unwrap_or_else(|text| panic!("{text}"));
        if row.graphs {
            let paper = [("solver", text("paper"))];
            conformance(&methods, row.name, &paper).unwrap_or_else(|text| panic!("{text}"));
        }
        began += all.iter().filter(|ending| ending.began).count();
        let (private, open): (Vec<Ending>, Vec<Ending>) = all.into_iter().partition(|ending| ending.private);
        assert_eq!(open.len(), 14, "{}", row.name);
        // Where uploads leave, none is accepted without room.
        let leaves = came(&open, "NoRoom", stops).1 > 0;
        sends.extend(leaves.then_some(row.name));
        if row.simulation_only || row.graphs {
            continue;
        }
        for case in ["Diverges", "Unsolved"] {
            assert_eq!(came(&open, &format!("{case} at one"), shows), (1, 1), "{}: {case}", row.name);
            assert_eq!(came(&open, &format!("{case} at all"), stops), (1, 1), "{}: {case}", row.name);
        }
        for case in ["NotFinite", "TooLarge"] {
            let expected = (1, usize::from(leaves));
            assert_eq!(came(&open, &format!("{case} at one"), shows), expected, "{}: {case}", row.name);
            assert_eq!(came(&open, &format!("{case} at all"), stops), expected, "{}: {case}", row.name);
        }
        if leaves && !private.is_empty() {
            with_noise.push(row.name);
            assert_eq!(came(&private, "budget", refuses), (3, 3), "{}", row.name);
            // Nobody knows why nobody answers: it may be the budget, and the run goes on.
            assert_eq!(came(&private, "spent budget at all", stops), (1, 0), "{}", row.name);
        }
    }
    println!("{began} cases; with noise: {with_noise:?}; uploads of {sends:?}");
    assert!(began > 550 && with_noise.len() >= 11 && sends.len() >= 19, "{began} {with_noise:?} {sends:?}");
}

/// A method of a program's own, in a table of its own.
#[test]
fn conformance_is_one_line_for_a_table_of_ones_own() {
    let row = Row::of::<Admm<Pgfl>>("mine", "the one method of this program");
    let methods = Methods::of("method", [row]).unwrap();
    let endings = conformance(&Arc::new(methods), "mine", &[]).unwrap();
    assert!(endings.iter().any(stops) && endings.iter().any(refuses), "{endings:?}");
}

/// Drivers that differ are noticed, each by what it does wrong.
#[cfg(fedkin_mutants)]
#[test]
fn conformance_notices_drivers_that_differ() {
    let methods = native();
    let mistakes = [
        (Mutant::RefusalAsBudget, &["I4"][..]),
        (Mutant::ReasonLeaves, &["reason"]),
        (Mutant::GoesOn, &["I4", "I6", "I7", "I8"]),
    ];
    for name in ["pgfl", "fedavg"] {
        let all = cases(&methods, name, &[]).unwrap();
        for (mutant, expected) in mistakes {
            let noticed = all.iter().find_map(|case| case.play(Some(Mistake::Inside(mutant))).err());
            let text = noticed.unwrap_or_else(|| panic!("{name}: {mutant:?} was not noticed"));
            let by = |invariant: &&str| text.contains(&format!("{invariant} broken"));
            assert!(expected.iter().any(by), "{name}: {mutant:?}: {text}");
        }
    }
}
