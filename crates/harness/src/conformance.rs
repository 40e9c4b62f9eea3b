//! One driver's outcome is the other's: a method in one process and behind messages, on sound federations and with clients
//! that diverge, refuse, or send what is turned away at the door.

use crate::faults::{Flaw, Mistake, Reference, Scenario, play};
use crate::misbehaving::Misbehaviour;
use crate::worlds::{Small, small};
use fedkin_method::Verdict;
use fedkin_method::registry::{Methods, Row};
use fedkin_method::round::Stopped;
use fedkin_privacy::{Refusal, Sampler};
use fedkin_settings::Value;
use std::sync::Arc;

/// A run in which some client spoils its part, or all do.
#[derive(Debug)]
pub struct Case {
    /// What is wrong with which clients, and whether the run demands privacy.
    pub what: String,
    /// Whether all clients are such.
    pub all: bool,
    /// Whether the run demands privacy.
    pub private: bool,
    /// The run.
    pub scenario: Scenario,
}

/// How a case ended, in both drivers.
#[derive(Debug, Clone)]
pub struct Ending {
    /// The case.
    pub what: String,
    /// Whether all clients were such.
    pub all: bool,
    /// Whether the run demanded privacy.
    pub private: bool,
    /// Whether it began: a client that cannot join is an error before the first step.
    pub began: bool,
    /// Why it could not go on, where it could not.
    pub stopped: Option<Stopped>,
    /// How often a client refused.
    pub refused: usize,
    /// How often an upload was turned away.
    pub rejected: usize,
}

/// The client that spoils its part where one does.
const ONE: u32 = 5;
/// Clients of the federations in which some do.
const CLIENTS: u32 = 12;

/// Whether a scenario's method can be built.
fn builds(scenario: &Scenario) -> bool {
    scenario.method().is_ok()
}

/// The federation with noise, where the method has a mechanism.
fn private(row: Row, world: &Small, budget: Option<f64>, set: &[(&str, Value)]) -> Option<Small> {
    let step = world.clone().zcdp(0.01, 0.98, 0.05, budget);
    let sampled = world.clone().dp_sgd(0.5, 14.0, budget, Sampler::Discrete);
    [step, sampled].into_iter().find(|world| builds(&Scenario::of(row, world, world.run.seed, set)))
}

/// Every case of a method, native or of a program's own, with these parameters:
///
/// - learners of every [`Misbehaviour`], at one client and at all, without privacy and, where the method has a mechanism,
///   with it;
/// - records and bounds of every [`Flaw`], for methods that ask no learner;
/// - budgets that were spent before, at one client and at all, and budgets for one answer.
pub fn cases(methods: &Arc<Methods>, name: &str, set: &[(&str, Value)]) -> Result<Vec<Case>, String> {
    let row = *methods.find(name).map_err(|error| error.to_string())?;
    let open = small(4, CLIENTS as usize, 4, 4).methods(methods);
    let noisy = private(row, &open, None, set);
    let budgeted = private(row, &open, Some(0.0105), set);
    let everybody: Vec<u32> = (0..CLIENTS).collect();
    let (one, all) = (("one client", &[ONE][..]), ("all clients", &everybody[..]));
    let mut cases = Vec::new();
    let mut add = |what: String, all: bool, world: &Small, spoil: &dyn Fn(&mut Scenario)| {
        let private = world.run.privacy.demanded();
        let mut scenario = Scenario::of(row, world, world.run.seed, set);
        spoil(&mut scenario);
        let what = format!("{name}, {what}{}", if private { ", with privacy" } else { "" });
        cases.push(Case { what, all, private, scenario });
    };
    for world in [Some(&open), noisy.as_ref()].into_iter().flatten() {
        for (who, clients) in [one, all] {
            for how in Misbehaviour::ALL {
                let spoil = |scenario: &mut Scenario| how.spoil(&mut scenario.world, clients);
                add(format!("{how:?} at {who}"), clients.len() > 1, world, &spoil);
            }
        }
        for flaw in Flaw::EACH {
            let spoil = |scenario: &mut Scenario| flaw.spoil(&mut scenario.world);
            add(format!("{flaw:?}"), flaw == Flaw::NoRoom, world, &spoil);
        }
    }
    if let Some(world) = &budgeted {
        add("a budget for one answer".into(), true, world, &|_| {});
        for (who, clients) in [one, all] {
            let spend = |scenario: &mut Scenario| scenario.spent = clients.to_vec();
            add(format!("a spent budget at {who}"), clients.len() > 1, world, &spend);
        }
    }
    Ok(cases)
}

impl Case {
    /// Plays the case in both drivers; where they differ, says in what. With a mistake it is to be noticed.
    pub fn play(&self, mistake: Option<Mistake>) -> Result<Ending, String> {
        let told = |text: String| format!("{}: {text}", self.what);
        let mut ending = Ending {
            what: self.what.clone(),
            all: self.all,
            private: self.private,
            began: false,
            stopped: None,
            refused: 0,
            rejected: 0,
        };
        if !self.scenario.begins_alike().map_err(told)? {
            return Ok(ending);
        }
        let reference = self.scenario.reference(&self.scenario.method()?).map_err(told)?;
        if let Some(reason) = self.disclosed(&reference) {
            return Err(told(format!("a server was told that {reason}, in a run with privacy")));
        }
        play(&self.scenario, mistake).map_err(|(_, text)| told(text))?;
        let count = |of: fn(&Verdict) -> bool| reference.judged().filter(of).count();
        ending.began = true;
        ending.refused = count(|verdict| matches!(verdict, Verdict::Refused(_)));
        ending.rejected = count(|verdict| matches!(verdict, Verdict::Rejected(_)));
        ending.stopped = reference.stopped;
        Ok(ending)
    }

    /// A reason that depends on a client's records and was seen, though the run demands privacy.
    fn disclosed(&self, reference: &Reference) -> Option<Refusal> {
        reference.judged().filter(|_| self.private).find_map(|verdict| match verdict {
            Verdict::Refused(reason) if reason != Refusal::Undisclosed => Some(reason),
            _ => None,
        })
    }
}

/// Runs a method, native or of a program's own, in one process and behind messages that are late, doubled and reordered:
/// on two sound federations, where something must be learnt, and in all [`cases`]. Equal are whether the run stops and
/// what is said of it, the models and the servers' states to the bit, what became of every client in every step, and the
/// ledgers; with privacy a server sees one reason, whatever a client's own is. Simulation-only methods, too.
///
/// Gives how each case ended; whoever wants to know that a case came up looks there.
pub fn conformance(methods: &Arc<Methods>, name: &str, set: &[(&str, Value)]) -> Result<Vec<Ending>, String> {
    let row = *methods.find(name).map_err(|error| error.to_string())?;
    for world in [small(1, 30, 8, 12), small(2, 30, 8, 12).some(2)] {
        let world = world.methods(methods);
        let scenario = Scenario::of(row, &world, world.run.seed, set);
        let reference = scenario.reference(&scenario.method()?)?;
        if reference.models.iter().filter_map(|models| models.first()).flatten().all(|bits| *bits == 0) {
            return Err(format!("{name} learnt nothing"));
        }
        play(&scenario, None).map_err(|(_, text)| text)?;
    }
    cases(methods, name, set)?.iter().map(|case| case.play(None)).collect()
}
