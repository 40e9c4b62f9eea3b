//! The figures of the PersFL paper against an independent implementation (`benches/peers/persfl_numpy.py`, 50 seeds), and
//! what comparisons over queries and clients without a model leave behind.
//!
//! A figure passes within 3 combined standard errors or 0.3 in log10, whichever is wider. The seeds are those the
//! experiments ship with.

#![allow(clippy::unwrap_used, clippy::print_stdout)]

use fedkin_config::{Override, Source};
use fedkin_experiment::run;
use fedkin_experiment::{Comparison, Prepared, figures, library};
use fedkin_report::Verdict;
use fedkin_run::artifacts::models::Models;
use fedkin_run::{Control, Plan, Registry};
use std::path::Path;
use std::sync::atomic::AtomicBool;

fn sets(overrides: &[&str]) -> Vec<Override> {
    overrides.iter().map(|text| Override::parse(text).unwrap()).collect()
}

fn source(name: &str) -> Source {
    Source { name: name.into(), text: library::find(name).unwrap().text.into() }
}

fn reproduce(name: &str, overrides: &[&str], folder: &Path) -> Result<Comparison, fedkin_run::Error> {
    let prepared = Prepared::new(&Registry::native(), &source(name), Path::new("."), &sets(overrides))?;
    let control = Control { stop: &AtomicBool::new(false), tick: &|| {} };
    prepared.run(&folder.join("run"), &control)
}

/// (curve, mean of log10, its standard error): the peer's.
type Table = &'static [(&'static str, f64, f64)];

fn compare(name: &str, every: u32, table: Table) -> Comparison {
    let folder = tempfile::tempdir().unwrap();
    let every = format!("evaluate.every={every}");
    let comparison = reproduce(name, &[&every, "run.checkpoint_seconds=0"], folder.path()).unwrap();
    let mut wrong = Vec::new();
    for &(label, expected, error) in table {
        let curve = comparison.curves.iter().find(|curve| curve.label == label).unwrap();
        let point = curve.points.last().unwrap();
        let allowed = (3.0 * point.stderr.unwrap().hypot(error)).max(0.3);
        println!("{name} {label}: {:.3} ± {:.3}, peer {expected}", point.mean, point.stderr.unwrap());
        if (point.mean - expected).abs() > allowed {
            wrong.push(format!("{label}: {:.3} against {expected}, allowed {allowed:.3}", point.mean));
        }
    }
    assert!(wrong.is_empty(), "{name}: {wrong:#?}");
    comparison
}

/// The figures of the specification, curve by curve. Their errors are not given: they count as means of 20 runs, which is
/// what its other tables are, with the spread that ours have.
fn as_specified(comparison: &Comparison, figures: [f64; 5]) {
    for (curve, figure) in comparison.curves.iter().zip(figures) {
        let point = curve.points.last().unwrap();
        let own = point.stderr.unwrap();
        let theirs = own * (f64::from(comparison.repeats) / 20.0).sqrt();
        let errors = (point.mean - figure).abs() / own.hypot(theirs);
        println!("{}: {:.2} ± {own:.2}, specified {figure}, {errors:.1} errors", curve.label, point.mean);
        assert!(errors <= 3.0 || (point.mean - figure).abs() <= 0.3, "{}", curve.label);
    }
}

#[test]
fn fig1a_with_summed_and_with_printed_gradients() {
    let sum: Table = &[
        ("d/m 0.2", -30.64, 0.10),
        ("d/m 1", -30.41, 0.05),
        ("d/m 2", -25.47, 0.31),
        ("d/m 5", -12.57, 0.14),
        ("d/m 10", -4.32, 0.11),
    ];
    let found = compare("persfl-fig1a", 500, sum);
    as_specified(&found, [-30.3, -30.2, -24.7, -13.1, -4.6]);
    let mean: Table = &[
        ("d/m 0.2", -14.46, 0.21),
        ("d/m 1", -9.74, 0.17),
        ("d/m 2", -5.71, 0.08),
        ("d/m 5", -3.01, 0.05),
        ("d/m 10", -1.27, 0.04),
    ];
    let found = compare("persfl-fig1a-mean", 500, mean);
    as_specified(&found, [-13.5, -9.3, -5.8, -2.9, -1.1]);
}

#[test]
fn fig1b_ends_at_the_noise_floors() {
    let floors: Table = &[
        ("sigma 0.05", -4.34, 0.02),
        ("sigma 0.1", -3.73, 0.02),
        ("sigma 0.2", -3.139, 0.02),
        ("sigma 0.5", -2.35, 0.02),
        ("sigma 0.7", -2.05, 0.02),
    ];
    compare("persfl-fig1b", 1500, floors);
}

#[test]
fn few_candidates_need_the_guard() {
    let table: Table = &[
        ("B = 3, guard", -30.97, 0.04),
        ("B = 3, as printed", -0.87, 0.12),
        ("B = 5, guard", -30.93, 0.04),
        ("B = 5, as printed", -3.21, 0.31),
    ];
    let comparison = compare("persfl-guard", 1500, table);
    let verdicts: Vec<Verdict> = comparison.claims.iter().map(|claim| claim.verdict).collect();
    assert!(verdicts.iter().all(|verdict| *verdict == Verdict::Holds), "{verdicts:?}");
    assert!(comparison.claims[0].evidence.contains("minus -25"), "{}", comparison.claims[0].evidence);
}

#[test]
fn fig2_as_published_and_with_equal_steps() {
    let table: Table = &[
        ("Algorithm 1", -10.80, 0.18),
        ("IFCA as published", 0.66, 0.06),
        ("IFCA, own model, divided by all", -5.35, 0.25),
        ("IFCA, own model, divided by pickers", -12.47, 0.09),
    ];
    let comparison = compare("persfl-fig2", 200, table);
    let verdicts: Vec<Verdict> = comparison.claims.iter().map(|claim| claim.verdict).collect();
    // The last claim is the paper's, and does not survive a fair division.
    assert_eq!(verdicts, [Verdict::Holds, Verdict::Holds, Verdict::Fails]);
}

#[test]
fn curves_over_queries_share_an_axis_and_are_read_at_one_price() {
    let folder = tempfile::tempdir().unwrap();
    let few = ["run.repeats=4", "run.rounds=40", "evaluate.at=400"];
    let comparison = reproduce("persfl-fig2-queries", &few, folder.path()).unwrap();
    assert_eq!(comparison.x, "queries");
    // 20 queries a round for Algorithm 1, 100 for IFCA.
    let x = |label: &str| {
        let curve = comparison.curves.iter().find(|curve| curve.label == label).unwrap();
        curve.points.iter().map(|point| point.x).collect::<Vec<_>>()
    };
    assert_eq!(x("Algorithm 1")[..3], [20.0, 40.0, 60.0]);
    assert_eq!(x("IFCA as published")[..3], [100.0, 200.0, 300.0]);
    // At 400 queries: the 20th point of one, the 4th of the other; the table and the final values agree with them.
    for (label, position, metric) in
        [("Algorithm 1", 19, "log_msd.client"), ("IFCA as published", 3, "log_msd.first")]
    {
        let curve = comparison.curves.iter().find(|curve| curve.label == label).unwrap();
        let read = &curve.r#final[metric];
        assert_eq!((read.mean, read.x), (curve.points[position].mean, 400.0), "{label}");
        assert_eq!(curve.r#final["queries"].mean, 400.0);
    }
    assert!(figures::table(&comparison).caption.contains("up to 400 queries per client"));
    let claim = &comparison.claims[0].evidence;
    assert!(claim.contains("Algorithm 1 at 400 minus IFCA as published at 400"), "{claim}");
    figures::report_comparison(&comparison).unwrap();
    let json = serde_json::to_value(&comparison).unwrap();
    assert_eq!(json["curves"][1]["points"][0]["x"], 100.0);

    let folder = tempfile::tempdir().unwrap();
    let early = reproduce("persfl-fig2-queries", &["run.repeats=1", "evaluate.at=5"], folder.path());
    let message = early.unwrap_err().to_string();
    assert!(message.contains("evaluate.at = 5 is before the first evaluation"), "{message}");
    let folder = tempfile::tempdir().unwrap();
    let unknown = ["run.repeats=1", "run.rounds=5", "evaluate.against=letters"];
    let message = reproduce("persfl-fig2-queries", &unknown, folder.path()).unwrap_err().to_string();
    assert!(message.contains("not counted by \"Algorithm 1\"; counted: queries"), "{message}");
}

#[test]
fn clients_without_a_model_are_in_no_file_and_no_mean() {
    let folder = tempfile::tempdir().unwrap();
    let plan = Plan::load(
        &Registry::native(),
        &source("persfl-guard"),
        Path::new("."),
        &sets(&["run.rounds=30", "run.repeats=2", "evaluate.metric=msd.client", "evaluate.against=queries"]),
        &[],
    );
    let plan = plan.unwrap();
    let control = Control { stop: &AtomicBool::new(false), tick: &|| {} };
    let out = folder.path().join("run");
    let finished = run(&plan, &out, Path::new("."), &control).unwrap();
    let models = Models::clients(&out.join("models")).unwrap();
    assert_eq!(models.names(), ["client-000000"]);
    assert_eq!(models.read("client-000000").unwrap().len(), 20);
    assert!(models.read("client-000001").unwrap_err().to_string().contains("client-000001"));
    // The mean over clients is the target's, and log10 of it stands beside it.
    let error = finished.r#final["msd.client"];
    assert!(error > 0.0 && (finished.r#final["msd_log10.client"] - error.log10()).abs() < 1e-12);
    let rows = fedkin_run::RunDirectory::new(&out).metrics().unwrap();
    let of_clients: Vec<String> = rows
        .rows()
        .filter(|row| row.metric == "msd.client" && !row.node.is_empty())
        .map(|row| row.node.to_string())
        .collect();
    assert_eq!(of_clients, ["client-000000"]);
    let page = std::fs::read_to_string(out.join("report.html")).unwrap();
    assert!(page.contains("queries per client") && !page.contains("NaN"));
}
