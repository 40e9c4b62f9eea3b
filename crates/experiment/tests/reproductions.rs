//! The spec's table of the PGFL and GFedMtl papers: 20 repeats against an independent implementation.
//!
//! A point passes within 3 combined standard errors. The table's own errors are given as .16 to .45; the
//! lower end is used throughout, which is the strict reading, beside the measured error of this run.
//! Error rate, measured: of the 12 fresh seeds 100 to 111 one fails somewhere (107: Fig 1, tau 0.4, 4.2
//! standard errors, a draw of clusters that lie close together); the largest gap of the others is 2.4. The
//! seed is the one the experiments ship with.

#![allow(clippy::unwrap_used, clippy::print_stdout)]

use fedkin_experiment::config::{Override, Source};
use fedkin_experiment::{Comparison, Control, Prepared, library};
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
    let prepared = Prepared::new(&source, Path::new("."), &overrides).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let control = Control { stop: &AtomicBool::new(false), tick: &|| {} };
    prepared.run(&folder.path().join("run"), &control).unwrap()
}

fn compare(name: &str, table: Table) {
    let comparison = run(name, &["evaluate.every=10", "run.checkpoint_seconds=0"]);
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
        let comparison = run(name, &["evaluate.every=300", "run.checkpoint_seconds=0"]);
        for curve in &comparison.curves {
            println!("{name} {}: {:.2}", curve.label, last(&comparison, &curve.label));
        }
        for claim in &comparison.claims {
            println!("{name} {}: {:?} {}", claim.text, claim.verdict, claim.evidence);
        }
        assert!(last(&comparison, "adaptive") <= bound);
    }
}

/// Orderings by paired differences on per-coordinate gamma, two standard errors (5 % one-sided each).
#[test]
fn the_order_of_the_methods_on_per_coordinate_gamma() {
    use fedkin_experiment::report::Verdict;
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
