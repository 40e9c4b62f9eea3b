//! Faults by the thousand: whole federations over a broker that loses, doubles, delays, reorders and damages
//! messages, with nodes that crash between any two effects, full disks and cut lines, all from one seed.
//! After every schedule the invariants of the protocol hold, and the bits are those of the unfaulted run.

mod checks;
mod delivery;
mod flaws;
mod liars;
mod lies;
mod mutants;
mod network;
mod replay;
mod scenario;
mod trouble;
mod world;

pub(crate) use checks::Reference;
pub use checks::{DATA, RUN};
pub use flaws::Flaw;
pub use lies::Liar;
pub use mutants::{MISTAKES, Mistake};
pub use network::Rates;
pub use scenario::{Scenario, Unfaulted};
pub use world::{Disk, Stats};

use checks::{Checks, Violation};
use fedkin_method::registry::Methods;
use fedkin_privacy::mutants::with;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use world::World;

/// Which schedules are played.
#[derive(Debug, Clone)]
pub struct Schedules {
    /// A schedule each; the methods take turns.
    pub seeds: Range<u64>,
    /// Whether steps close without those who are late, or wait for everybody.
    pub deadline: bool,
    /// Who lies, where somebody does.
    pub liar: Option<Liar>,
}

impl Schedules {
    fn scenario(&self, methods: &Arc<Methods>, seed: u64) -> Scenario {
        match self.liar {
            Some(liar) => Scenario::lying(methods, seed, self.deadline, liar),
            None => Scenario::new(methods, seed, self.deadline),
        }
    }
}

/// What broke, and the last events before it.
enum Broken {
    Config(String),
    Invariant(Violation, String),
}

fn played(scenario: &Scenario, mistake: Option<Mistake>) -> Result<Stats, Broken> {
    let method = scenario.method().map_err(Broken::Config)?;
    // Sealed messages that come late or twice change no bit.
    let comparable = scenario.strict() && matches!(scenario.liar, None | Some(Liar::Broker));
    let reference = comparable.then(|| scenario.reference(&method)).transpose();
    let reference = reference.map_err(Broken::Config)?;
    let checks = Checks::new(scenario, reference.as_ref());
    let mut world = World::new(method, scenario, checks, mistake);
    let ended = with(Mistake::inside(mistake), || {
        world.run()?;
        match (&reference, scenario.liar) {
            _ if !world.over() => Ok(()),
            (Some(reference), _) => world.equals(reference),
            (None, None | Some(Liar::Client | Liar::Broker)) => world.equals_replay(),
            // What a lying server shared is nobody's sum, and a broker's closed sets are unlike what was sent.
            (None, Some(Liar::Server | Liar::OpenBroker)) => Ok(()),
        }
    });
    ended.map_err(|violation| Broken::Invariant(violation, world.story()))?;
    Ok(world.stats)
}

/// Plays one schedule; where an invariant breaks, says which, with the story and how to see it again.
pub fn play(scenario: &Scenario, mistake: Option<Mistake>) -> Result<Stats, (&'static str, String)> {
    let mode = if scenario.strict() { "strict" } else { "deadline" };
    let told = |name: &str, text: &str, story: &str| {
        format!(
            "{name} broken ({mode}, seed {seed}, {}): {text}\n{story}\nrepeat with the seeds {seed}..{}",
            scenario.row.name,
            scenario.seed + 1,
            seed = scenario.seed
        )
    };
    match catch_unwind(AssertUnwindSafe(|| played(scenario, mistake))) {
        Ok(Ok(stats)) => Ok(stats),
        Ok(Err(Broken::Invariant(broken, story))) => {
            Err((broken.invariant, told(broken.invariant, &broken.text, &story)))
        }
        Ok(Err(Broken::Config(text))) => Err(("config", told("config", &text, ""))),
        Err(_) => Err(("panic", told("panic", "a node panicked, see above", ""))),
    }
}

/// Plays many schedules of these methods on all cores; fails with the story of the first seed that broke something.
pub fn faults(methods: &Arc<Methods>, schedules: &Schedules) -> Result<Vec<Stats>, String> {
    let next = AtomicU64::new(schedules.seeds.start);
    let broken: Mutex<Option<(u64, String)>> = Mutex::new(None);
    let all: Mutex<Vec<Stats>> = Mutex::new(Vec::new());
    let work = || {
        let mut done = Vec::new();
        loop {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed >= schedules.seeds.end || broken.lock().unwrap().is_some() {
                break;
            }
            match play(&schedules.scenario(methods, seed), None) {
                Ok(stats) => done.push(stats),
                Err((_, text)) => {
                    let mut broken = broken.lock().unwrap();
                    if broken.as_ref().is_none_or(|(first, _)| seed < *first) {
                        *broken = Some((seed, text));
                    }
                }
            }
        }
        all.lock().unwrap().extend(done);
    };
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(work);
        }
    });
    match broken.into_inner().unwrap() {
        Some((_, text)) => Err(text),
        None => Ok(all.into_inner().unwrap()),
    }
}
