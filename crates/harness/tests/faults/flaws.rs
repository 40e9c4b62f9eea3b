//! Every native method with clients that spoil a step, and with training that gives no finite numbers.

use super::native;
use fedkin_harness::worlds::{Small, small};
use fedkin_harness::{Flaw, Rates, Scenario, play};
use fedkin_learner::Dataset;
use fedkin_method::registry::Row;
use fedkin_method::round::{Cause, Mode, Stop};
use fedkin_method::{Halt, Verdict};
use fedkin_settings::Value;
use std::sync::Arc;

/// What the unfaulted runs came to.
#[derive(Debug, Default)]
struct Came {
    runs: u32,
    diverged: Vec<&'static str>,
    rejected: Vec<&'static str>,
    silent: Vec<&'static str>,
    /// Went on with a client that refused, or whose upload was turned away.
    with_refusal: Vec<&'static str>,
    with_rejection: Vec<&'static str>,
}

impl Came {
    fn add(&mut self, scenario: &Scenario) {
        let unfaulted = scenario.unfaulted().unwrap();
        let (name, verdicts) = (scenario.row.name, unfaulted.verdicts.iter());
        self.runs += 1;
        let list = match &unfaulted.stop {
            Some(Stop { cause: Cause::Method(Halt::Diverged { .. }), .. }) => &mut self.diverged,
            Some(Stop { cause: Cause::Rejected { .. }, .. }) => &mut self.rejected,
            Some(Stop { cause: Cause::Silent { .. }, .. }) => &mut self.silent,
            #[allow(clippy::match_same_arms)] // Each for a reason of its own.
            Some(_) => return,
            None if verdicts.clone().any(|verdict| matches!(verdict, Verdict::Rejected(_))) => {
                &mut self.with_rejection
            }
            None if verdicts.clone().any(|verdict| matches!(verdict, Verdict::Refused(_))) => {
                &mut self.with_refusal
            }
            None => return,
        };
        if !list.contains(&name) {
            list.push(name);
        }
    }
}

fn with_faults(row: Row, world: &Small, seed: u64, set: &[(&str, Value)]) -> Scenario {
    let mut scenario = Scenario::of(row, world, seed, set);
    scenario.rates =
        Rates { drop: 15, twice: 8, delay: 10, damage: 25, wipe: 300, cut: 300, crash: 60, full: 400 };
    scenario.trouble = 4000;
    scenario
}

/// Every method of the registry, with one of each.
#[test]
fn every_method_ends_alike_with_clients_that_spoil_a_step() {
    let mut came = Came::default();
    for (i, row) in native().iter().enumerate() {
        for (j, flaw) in Flaw::EACH.into_iter().enumerate() {
            for seed in 0..2 {
                let seed = 100 * i as u64 + 10 * j as u64 + seed;
                let mut scenario = with_faults(*row, &small(seed, 16, 4, 5), seed, &[]);
                flaw.spoil(&mut scenario.world);
                if scenario.begins() {
                    came.add(&scenario);
                    play(&scenario, None).unwrap_or_else(|(_, text)| panic!("{flaw:?}: {text}"));
                }
            }
        }
    }
    println!("{came:?}");
    assert!(came.runs > 80, "{came:?}");
    assert!(came.rejected.len() > 5 && came.with_rejection.len() > 2, "{came:?}");
    assert!(came.silent.len() + came.with_refusal.len() > 2, "{came:?}");
}

/// Nets, whose training can leave the finite numbers: the run stops, and says at which client.
#[test]
fn every_method_that_trains_nets_stops_at_the_client_that_diverges() {
    let mut came = Came::default();
    for row in native().iter().filter(|row| !row.graphs) {
        for seed in 0..3 {
            let world = small(seed, 9, 4, 4).net(3, &["dense 6", "relu", "dense 3"]);
            let mut set: Vec<(&str, Value)> = Vec::new();
            for (key, value) in [
                ("epochs", Value::Integer(20)),
                ("learning_rate", Value::Number(1e9)),
                ("models", Value::Integer(1)),
            ] {
                if row.params.iter().any(|param| param.name == key) {
                    set.push((key, value));
                }
            }
            let mut scenario = with_faults(*row, &world, seed, &set);
            scenario.world.run.max_norm2 = f64::INFINITY;
            let data = &mut scenario.world.data[2];
            let features = data.features().iter().map(|x| x * 1e30).collect();
            *data = Arc::new(Dataset::new(data.columns(), features, data.targets().to_vec()).unwrap());
            if scenario.begins() {
                came.add(&scenario);
                play(&scenario, None).unwrap_or_else(|(_, text)| panic!("{text}"));
            }
        }
    }
    println!("{came:?}");
    assert!(came.diverged.len() >= 7, "{came:?}");
}

/// With deadlines steps are closed without some, and a run that cannot go on still ends everywhere.
#[test]
fn runs_with_deadlines_end_everywhere_when_they_cannot_go_on() {
    let mut stopped = 0;
    // A step in which a single client answered ends no run with deadlines, so not every seed stops.
    for seed in 0..120 {
        let mut scenario = Scenario::new(&native(), seed, true);
        scenario.mode = Mode::Deadline { quorum: 1.0 };
        Flaw::NoRoom.spoil(&mut scenario.world);
        if scenario.begins() {
            let stats = play(&scenario, None).unwrap_or_else(|(_, text)| panic!("{text}"));
            stopped += u32::from(stats.stopped > 0);
        }
    }
    assert!(stopped > 20, "{stopped}");
}
