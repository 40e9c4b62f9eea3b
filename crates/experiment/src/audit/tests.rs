//! Verdicts that are known beforehand. Every audit here is seeded; at 99.9 % confidence a sound mechanism is
//! accused by accident in at most 1 of 1000 audits.

use super::*;
use crate::config::Override;
use std::sync::atomic::AtomicBool;

static STOP: AtomicBool = AtomicBool::new(false);

fn control() -> Control<'static> {
    Control { stop: &STOP, tick: &|| {} }
}

fn options(runs: u32, seed: u64) -> Options {
    Options { runs, rounds: None, seed: Some(seed), confidence: 0.999, client: None }
}

fn subject(fixture: &str, set: &[&str]) -> Subject {
    let overrides: Vec<Override> = set.iter().map(|text| Override::parse(text).unwrap()).collect();
    fixtures::find(fixture).unwrap().subject(&overrides).unwrap()
}

fn audited(fixture: &str, set: &[&str], runs: u32, seed: u64) -> Report {
    audit(&subject(fixture, set), &options(runs, seed), &control()).unwrap()
}

/// 60 audits: one of three sound mechanisms is accused by accident with probability at most 0.06.
#[test]
fn sound_mechanisms_pass_with_20_of_20_seeds() {
    for fixture in fixtures::ALL.iter().filter(|fixture| fixture.sound) {
        for seed in 0..20 {
            let report = audited(fixture.name, &[&format!("run.seed={seed}")], 1000, seed);
            assert_eq!(report.verdict, Verdict::Holds, "{} {seed}: {report:?}", fixture.name);
            assert_eq!(report.claim.trust, "enforced");
            // Where means are known, the truth lies between what was measured and what is claimed. Those of a
            // sampled sum depend on the sample.
            assert_eq!(report.exact.is_some(), fixture.name != "dp-sgd");
            let exact = report.exact.unwrap_or(report.claim.epsilon);
            assert!(report.bound <= exact && exact <= report.claim.epsilon, "{report:?}");
        }
    }
}

#[test]
fn broken_mechanisms_are_caught_by_the_bound_itself() {
    for fixture in fixtures::ALL.iter().filter(|fixture| !fixture.sound) {
        for seed in 0..3 {
            let report = audited(fixture.name, &[&format!("run.seed={seed}")], 1000, seed);
            assert_eq!(report.verdict, Verdict::Broken, "{} {seed}", fixture.name);
            assert!(report.bound > 1.5 * report.claim.epsilon, "{} {seed}: {report:?}", fixture.name);
            assert!(report.bound <= report.cap);
        }
    }
}

/// C = 1 is what the clipped Huber loss of the fixture enforces: one percent less is a claim too much.
#[test]
fn the_search_finds_the_worst_case_and_the_exact_value_is_sharp() {
    let claim = |bound: &str| {
        audited(
            "enforced-huber",
            &["privacy.bound=\"assumed\"", &format!("privacy.gradient_bound={bound}")],
            200,
            1,
        )
    };
    let just = claim("1.0");
    assert_eq!(just.verdict, Verdict::Holds);
    assert!(just.exact.unwrap() > 0.99 * just.claim.epsilon, "{just:?}");
    let less = claim("0.98");
    assert_eq!(less.verdict, Verdict::Broken, "{less:?}");
    assert!(less.bound < less.claim.epsilon, "only the exact value can tell");
    // The typical pair is no worse than the worst.
    let [worst, typical] = &just.neighbours[..] else { panic!("{just:?}") };
    assert_eq!((worst.kind, typical.kind), ("worst case", "typical"));
    assert!(typical.exact.unwrap()[1] <= worst.exact.unwrap()[0]);
}

/// Half the noise doubles mu. 99.9 % confidence, 10,000 runs.
#[test]
fn half_the_noise_is_caught_by_measuring_alone() {
    let set = ["privacy.bound=\"assumed\"", "privacy.gradient_bound=0.5", "privacy.initial_budget=0.05"];
    let report = audited("enforced-huber", &set, 10_000, 1);
    assert_eq!(report.verdict, Verdict::Broken);
    assert!(report.bound_gaussian.unwrap() > report.claim.epsilon, "{report:?}");
    let whole = audited("enforced-huber", &["privacy.initial_budget=0.05"], 10_000, 1);
    assert_eq!(whole.verdict, Verdict::Holds);
    assert!(whole.bound_gaussian.unwrap() > 0.7 * whole.claim.epsilon, "{whole:?}");
}

/// Takes the method away that answers without noise.
struct Blind<'a>(&'a Task<'a>);

impl Visitor for Blind<'_> {
    type Output = Result<Report, Error>;
    fn visit<A: Algorithm>(self, algorithm: A) -> Self::Output {
        self.0.run(algorithm, None)
    }
}

#[test]
fn a_projection_finds_most_of_what_the_likelihood_ratio_finds() {
    for (fixture, verdict) in
        [("enforced-huber", Verdict::Holds), ("assumed-bound-on-ridge", Verdict::Broken)]
    {
        let set = ["privacy.initial_budget=0.05", "run.rounds=5"];
        let (subject, options, control) = (subject(fixture, &set), options(2000, 1), control());
        let world = subject.plan.world(0).unwrap();
        let (federation, data) = (&world.federation, &world.train[..]);
        let task =
            Task { subject: &subject, options: &options, control: &control, federation, data, client: None };
        let plan = &subject.plan;
        let blind =
            registry::visit(plan.row.name, &plan.config.algorithm_values, &plan.context(), Blind(&task))
                .unwrap()
                .unwrap();
        let seeing = audit(&subject, &options, &control).unwrap();
        assert_eq!((blind.verdict, seeing.verdict), (verdict, verdict));
        assert!(blind.neighbours.iter().all(|pair| pair.score == "projection" && pair.exact.is_none()));
        assert!(
            seeing.neighbours.iter().all(|pair| pair.score == "likelihood ratio" && pair.exact.is_some())
        );
        let (found, most) = (blind.bound_gaussian.unwrap(), seeing.bound_gaussian.unwrap());
        assert!(found > 0.6 * most, "{fixture}: {found} of {most}");
    }
}

#[test]
fn the_number_of_threads_changes_nothing() {
    let with = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| {
            ["enforced-logistic", "dual-from-exact-model"]
                .map(|fixture| serde_json::to_string(&audited(fixture, &["run.rounds=3"], 300, 5)).unwrap())
        })
    };
    let alone = with(1);
    assert_eq!(alone, with(3));
    let other = audited("enforced-logistic", &["run.rounds=3"], 300, 6);
    assert_ne!(alone[0], serde_json::to_string(&other).unwrap(), "the seed must matter");
}

#[test]
fn only_the_audited_rounds_are_claimed() {
    let three = Options { rounds: Some(3), ..options(100, 1) };
    let report = audit(&subject("enforced-huber", &[]), &three, &control()).unwrap();
    assert_eq!((report.rounds, report.all_rounds, report.releases), (3, 10, 3));
    assert!((report.claim.zcdp - 0.015).abs() < 1e-9);
    // A budget ends the releases, and the claim with them.
    let report = audited("enforced-huber", &["privacy.budget=0.0201"], 100, 1);
    assert_eq!((report.rounds, report.releases), (10, 4));
    assert!((report.claim.zcdp - 0.02).abs() < 1e-9);
    // Clients that are not always asked.
    let report = audited("enforced-huber", &["participation.clients_per_server=1"], 100, 1);
    assert!(report.releases < 10 && report.releases > 0, "{report:?}");
    assert_eq!(report.verdict, Verdict::Holds);
}

#[test]
fn what_cannot_be_audited_is_refused() {
    let none =
        audit(&subject("enforced-huber", &["privacy.mechanism=\"none\""]), &options(100, 1), &control());
    assert!(none.unwrap_err().to_string().contains("claims nothing"));
    let unknown = Options { client: Some("nobody".into()), ..options(100, 1) };
    let unknown = audit(&subject("enforced-huber", &[]), &unknown, &control());
    assert!(unknown.unwrap_err().to_string().contains("no client \"nobody\""));
    let sure = Options { confidence: 1.0, ..options(100, 1) };
    assert!(audit(&subject("enforced-huber", &[]), &sure, &control()).is_err());
    assert!(fixtures::find("enforced-hubert").unwrap_err().to_string().contains("`enforced-huber`"));
    let stopped = AtomicBool::new(true);
    let stop = Control { stop: &stopped, tick: &|| {} };
    let interrupted = audit(&subject("enforced-huber", &[]), &options(100, 1), &stop);
    assert_eq!(interrupted.unwrap_err().exit_code(), 130);
}
