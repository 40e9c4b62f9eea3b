//! The spec's tables of the PGFL, GFedMtl, FedGL and FedPnP papers against an independent implementation; 20 repeats where
//! nothing else is said.
//!
//! A point passes within 3 combined standard errors. The table's own errors are given as .16 to .45; the
//! lower end is used throughout, which is the strict reading, beside the measured error of this run.
//! Error rate, measured: of the 12 fresh seeds 100 to 111 one fails somewhere (107: Fig 1, tau 0.4, 4.2
//! standard errors, a draw of clusters that lie close together); the largest gap of the others is 2.4. The
//! seed is the one the experiments ship with.

#![allow(clippy::unwrap_used, clippy::print_stdout)]

#[path = "../../../tests/skipped.rs"]
mod skipped;

use fedkin_config::{Override, Source};
use fedkin_experiment::{Comparison, Prepared, library};
use fedkin_run::{Control, Registry};
use skipped::real_data;
use std::path::Path;
use std::sync::atomic::AtomicBool;

/// (curve, [(round, dB)])
type Table = &'static [(&'static str, &'static [(f64, f64)])];

/// The least standard error the table states.
const TABLE_ERROR: f64 = 0.16;

fn run(name: &str, overrides: &[&str]) -> Comparison {
    let experiment = library::find(name).unwrap();
    let source = Source { name: name.into(), text: experiment.text.into() };
    let overrides: Vec<Override> = overrides.iter().map(|text| Override::parse(text).unwrap()).collect();
    let prepared = Prepared::new(&Registry::native(), &source, Path::new("."), &overrides).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let control = Control { stop: &AtomicBool::new(false), tick: &|| {} };
    prepared.run(&folder.path().join("run"), &control).unwrap()
}

fn compare(name: &str, table: Table) {
    // As many repeats as the table has.
    let comparison = run(name, &["evaluate.every=10", "run.checkpoint_seconds=0", "run.repeats=20"]);
    let mut wrong = Vec::new();
    for (label, rounds) in table {
        let curve = comparison.curves.iter().find(|curve| curve.label == *label).unwrap();
        for (round, expected) in *rounds {
            let point = curve.points.iter().find(|point| point.x == *round).unwrap();
            let error = (point.stderr.unwrap().powi(2) + TABLE_ERROR.powi(2)).sqrt();
            let gap = (point.mean - expected) / error;
            println!(
                "{name} {label} n={round}: {:.2} ± {:.2}, table {expected} ({gap:+.1} s.e.)",
                point.mean,
                point.stderr.unwrap()
            );
            if gap.abs() > 3.0 {
                wrong.push(format!(
                    "{label} at {round}: {:.2} against {expected}, {gap:+.1} s.e.",
                    point.mean
                ));
            }
        }
    }
    assert!(wrong.is_empty(), "{name}: {wrong:#?}");
}

#[test]
fn pgfl_fig1() {
    compare(
        "pgfl-fig1",
        &[
            ("PGFL, tau 0", &[(50., -20.95), (100., -20.96), (200., -20.96), (300., -20.96)]),
            ("PGFL, tau 0.4", &[(50., -21.28), (100., -21.28), (200., -21.28), (300., -21.28)]),
            ("GFL", &[(50., -20.55), (100., -20.54), (200., -20.54), (300., -20.54)]),
            ("ClusterFL", &[(50., -11.44), (100., -12.05), (200., -11.96), (300., -11.80)]),
        ],
    );
}

#[test]
fn pgfl_fig2() {
    compare(
        "pgfl-fig2",
        &[
            ("PGFL, tau 0", &[(50., -17.20), (100., -19.89), (200., -20.04), (300., -19.96)]),
            ("PGFL, tau 0.4", &[(50., -17.06), (100., -19.73), (200., -19.83), (300., -19.73)]),
            ("GFL", &[(50., -17.52), (100., -18.43), (200., -18.48), (300., -18.39)]),
            ("ClusterFL", &[(50., -8.62), (100., -10.79), (200., -11.83), (300., -11.98)]),
        ],
    );
}

#[test]
fn pgfl_fig3() {
    compare(
        "pgfl-fig3",
        &[
            ("PGFL, tau 0", &[(50., -12.90), (100., -15.21), (200., -17.47), (300., -18.85)]),
            ("PGFL, tau 0.4", &[(50., -13.78), (100., -16.24), (200., -18.11), (300., -19.01)]),
            ("GFL", &[(50., -13.59), (100., -15.23), (200., -16.94), (300., -17.75)]),
            ("ClusterFL", &[(50., -6.79), (100., -8.41), (200., -9.91), (300., -10.79)]),
        ],
    );
}

#[test]
fn pgfl_fig5() {
    compare(
        "pgfl-fig5",
        &[
            ("PGFL, tau 0", &[(50., -12.35), (100., -14.62), (200., -16.78), (300., -18.17)]),
            ("PGFL, tau 0.4", &[(50., -8.39), (100., -9.80), (200., -10.23), (300., -10.33)]),
            ("PGFL, tau 0.4 x 0.98^n", &[(50., -9.53), (100., -13.06), (200., -16.89), (300., -18.23)]),
        ],
    );
}

#[test]
fn gfedmtl_fig2a() {
    compare(
        "gfedmtl-fig2a",
        &[
            ("GFed", &[(50., -21.41), (100., -21.41), (200., -21.41)]),
            ("GFedMtl, tau 0", &[(50., -20.76), (100., -21.54), (200., -21.55)]),
            ("GFedMtl, tau 0.5", &[(50., -21.70), (100., -21.70), (200., -21.70)]),
            ("GFedMtl, tau 0.5, no edges", &[(50., -11.12), (100., -12.24), (200., -12.65)]),
        ],
    );
}

#[test]
fn gfedmtl_fig2b() {
    compare(
        "gfedmtl-fig2b",
        &[
            ("GFed", &[(50., -21.24), (100., -21.25)]),
            ("GFedMtl, tau 0", &[(50., -19.62), (100., -21.54)]),
            ("GFedMtl, tau 0.5", &[(50., -21.55), (100., -21.54)]),
            ("GFedMtl, tau 0.5, no edges", &[(50., -10.60), (100., -11.98)]),
        ],
    );
}

fn last(comparison: &Comparison, label: &str) -> f64 {
    let curve = comparison.curves.iter().find(|curve| curve.label == label).unwrap();
    curve.points.last().unwrap().mean
}

/// "Beyond the papers" of the spec: adaptive tau in the setting of Fig 3, averaged read-out, round 300.
#[test]
fn adaptive_tau_reaches_the_specs_figures() {
    for (name, bound) in [("pgfl-adaptive", -22.3), ("pgfl-adaptive-far", -19.5)] {
        let comparison = run(name, &["evaluate.every=300", "run.checkpoint_seconds=0", "run.repeats=20"]);
        for curve in &comparison.curves {
            println!("{name} {}: {:.2}", curve.label, last(&comparison, &curve.label));
        }
        for claim in &comparison.claims {
            println!("{name} {}: {:?} {}", claim.text, claim.verdict, claim.evidence);
        }
        assert!(last(&comparison, "adaptive") <= bound);
    }
}

/// Orderings by paired differences on per-coordinate gamma, Student's t at 5 % (two-sided, each).
#[test]
fn the_order_of_the_methods_on_per_coordinate_gamma() {
    use fedkin_report::Verdict;
    let comparison = run("pgfl-order", &["evaluate.every=50", "run.checkpoint_seconds=0"]);
    for claim in &comparison.claims {
        println!("{}: {:?} {}", claim.text, claim.verdict, claim.evidence);
    }
    let all: Vec<Verdict> = comparison.claims.iter().map(|claim| claim.verdict).collect();
    assert_eq!(&all[..4], &[Verdict::Holds; 4]);
    // Centralized and local ends of the scale, with the spec's figures.
    assert!((last(&comparison, "centralized") + 22.9).abs() < 0.5);
    assert!((last(&comparison, "local") + 0.4).abs() < 0.1);
}

/// A curve's value at a round or a swept value, with its standard error.
fn value(comparison: &Comparison, label: &str, x: f64) -> (f64, f64) {
    let curve = comparison.curves.iter().find(|curve| curve.label == label).unwrap();
    let point = curve.points.iter().find(|point| point.x == x).unwrap();
    (point.mean, point.stderr.unwrap())
}

/// MCC of the FedGL paper's Algorithm 1 against 20 runs of an independent implementation. Its errors are not known
/// and taken to be like ours: both are means of 20 worlds. Error rate, measured on the fresh seeds 11 to 16: one of
/// six has a value beyond 3 standard errors (15: IGL at 40 records, 3.1). The seed is the one the experiments ship with.
fn compare_scores(name: &str, table: Table) {
    let comparison = run(name, &["run.checkpoint_seconds=0"]);
    let mut wrong = Vec::new();
    for (label, points) in table {
        for (x, expected) in *points {
            let (mean, error) = value(&comparison, label, *x);
            let gap = (mean - expected) / (error * std::f64::consts::SQRT_2);
            println!("{name} {label} at {x}: {mean:.3} ± {error:.3}, table {expected} ({gap:+.1} s.e.)");
            if gap.abs() > 3.0 {
                wrong.push(format!("{label} at {x}: {mean:.3} against {expected}, {gap:+.1} s.e."));
            }
        }
    }
    assert!(wrong.is_empty(), "{name}: {wrong:#?}");
}

#[test]
fn fedgl_fig2a() {
    compare_scores(
        "fedgl-fig2a",
        &[
            ("IGL", &[(10., 0.274), (40., 0.432), (100., 0.634)]),
            ("FedAvg", &[(10., 0.307), (40., 0.420), (100., 0.520)]),
            ("FedGL", &[(10., 0.324), (40., 0.479), (100., 0.659)]),
            ("FedGL consensus", &[(10., 0.408), (40., 0.629), (100., 0.801)]),
        ],
    );
}

#[test]
fn fedgl_fig3() {
    compare_scores(
        "fedgl-fig3",
        &[
            ("FedAvg", &[(0.2, 0.286), (0.4, 0.420), (0.6, 0.522), (0.8, 0.704)]),
            ("FedGL", &[(0.2, 0.475), (0.4, 0.541), (0.6, 0.578), (0.8, 0.714)]),
        ],
    );
}

/// "Measured gain of exact" of the spec, with the figures an exact solver has to reach. At 1000 records the MCC of the
/// fresh seeds 11 to 16 is 0.939 to 0.947, twice just below the 0.94 asked for; runs repeat to the bit.
#[test]
fn solving_the_objective_of_fedgl_is_worth_what_the_spec_says() {
    let comparison = run("fedgl-exact", &["run.checkpoint_seconds=0"]);
    for (samples, mcc, error) in [(100., 0.68, 0.57), (1000., 0.94, 0.38)] {
        let found = value(&comparison, "exact", samples);
        let off = value(&comparison, "exact, scale-free error", samples);
        println!("N = {samples}: MCC {found:.3?}, scale-free error {off:.3?}");
        assert!(found.0 >= mcc && off.0 <= error, "{samples}: {found:?} {off:?}");
    }
    // A threshold is a matter of units: alpha / s and s beta give the same graphs, s times smaller.
    for samples in [50., 100., 1000.] {
        let scaled = value(&comparison, "the first, in other units, threshold 0.0001", samples);
        assert_eq!(scaled, value(&comparison, "exact", samples));
    }
    for claim in &comparison.claims {
        println!("{}: {:?} {}", claim.text, claim.verdict, claim.evidence);
        assert_eq!(claim.verdict, fedkin_report::Verdict::Holds);
    }
}

/// The convex check of FedPnP within 3 of our own standard errors. The world is not specified: ours was fitted to local
/// training, FedAvg and the oracle. Of (28) it is the clients' own model that agrees; what is served is FedAvg's.
#[test]
fn fedpnp_on_a_convex_problem() {
    let comparison = run("fedpnp-convex", &["evaluate.every=100", "run.checkpoint_seconds=0"]);
    let table = [
        ("local", 63.0),
        ("FedAvg", 56.7),
        ("FedProx", 56.2),
        ("FedPnP", 77.0),
        ("omega of FedPnP", 77.0),
        ("cluster oracle", 77.1),
        ("omega with (28)", 57.9),
    ];
    for (label, expected) in table {
        let curve = comparison.curves.iter().find(|curve| curve.label == label).unwrap();
        let point = curve.points.last().unwrap();
        let (mean, error) = (point.mean, point.stderr.unwrap());
        println!("{label}: {mean:.2} ± {error:.2}, specified {expected}");
        assert!((mean - expected).abs() <= 3.0 * error, "{label}: {mean} ± {error} against {expected}");
    }
}

/// One release at (1, 1e-5) and 2000 records.
#[test]
fn one_release_keeps_the_graphs() {
    let comparison = run("fedgl-private", &["run.checkpoint_seconds=0"]);
    let found = value(&comparison, "one-shot", 2000.);
    println!("one-shot at 2000: {found:.3?}");
    assert!(found.0 >= 0.66);
    let curve = |label: &str| comparison.curves.iter().find(|curve| curve.label.starts_with(label)).unwrap();
    let spent = curve("one-shot").privacy.epsilon_gaussian.unwrap();
    assert!((0.99..=1.0 + 1e-6).contains(&spent), "{spent}");
    // The noise of the paper keeps no promise, and says so.
    let bound = &curve("noise of the paper").privacy.bound;
    assert!(bound.contains("no guarantee"), "{bound}");
}

/// `data.path` of a folder of the real data, where they are.
fn real(folder: &str) -> Option<String> {
    let path = real_data(folder)?.canonicalize().unwrap();
    Some(format!("data.path={:?}", path.to_str().unwrap()))
}

/// Table II: the communities of the consensus graph are the four objects, with both solvers.
#[test]
fn coil20_falls_into_its_objects() {
    let Some(path) = real("coil20") else { return };
    let comparison = run("fedgl-table2", &[&path, "run.repeats=2", "run.checkpoint_seconds=0"]);
    for label in ["FedGL", "FedGL, exact"] {
        let curve = comparison.curves.iter().find(|curve| curve.label == label).unwrap();
        for metric in ["nmi.consensus", "rand.consensus", "fmi.consensus"] {
            let mean = curve.r#final[metric].mean;
            assert!((mean - 1.0).abs() < 1e-12, "{label} {metric}: {mean}");
        }
    }
    // What the paper's Table II gives for IGL, client by client.
    let igl = comparison.curves.iter().find(|curve| curve.label == "IGL").unwrap();
    for (point, expected) in igl.by_client["nmi.client"].iter().zip([0.857, 0.839, 0.857]) {
        assert!((point.mean - expected).abs() < 0.002, "{point:?}");
    }
}

/// Fig 7: FedGL above IGL on the networks of students, paired, Student's t at 5 %.
#[test]
fn students_gain_from_each_other() {
    let Some(path) = real("students-ljubljana") else { return };
    let comparison = run("fedgl-fig7", &[&path, "run.checkpoint_seconds=0"]);
    let first = &comparison.claims[0];
    println!("{}: {:?} {}", first.text, first.verdict, first.evidence);
    assert_eq!(first.verdict, fedkin_report::Verdict::Holds);
    assert!(value(&comparison, "FedGL", 100.).0 > value(&comparison, "IGL", 100.).0 + 0.04);
}
