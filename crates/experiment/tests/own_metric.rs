//! A metric that a program brings: a column, in tables and figures, and a headline.
#![allow(clippy::unwrap_used)]

use fedkin_config::{Override, Source};
use fedkin_experiment::run;
use fedkin_experiment::{Prepared, figures};
use fedkin_learner::{Dataset, Family};
use fedkin_measure::{MetricRow, Shown};
use fedkin_run::{Control, Error, Plan, Registry, RunDirectory};
use std::path::Path;
use std::sync::atomic::AtomicBool;

const CONFIG: &str = r#"
version = 1

[run]
name = "own"
seed = 3
rounds = 4

[data]
source = "synthetic.clustered-functions"
clients_per_server = 5
clusters = 2
samples = 12
test_samples = 9

[topology]
graph = { kind = "complete", servers = 2 }

[model]
kind = "ridge"
regularisation = 0.1

[algorithm]
name = "pgfl"

[[curve]]
label = "together"
set = { "algorithm.name" = "pgfl" }

[[curve]]
label = "alone"
set = { "algorithm.name" = "local" }
"#;

/// The median of the distances between predictions and targets.
fn median(family: &dyn Family, model: &[f64], test: &Dataset) -> f64 {
    let mut errors = Vec::new();
    family.predict(model, test, &mut |i, prediction| errors.push((prediction[0] - test.targets()[i]).abs()));
    errors.sort_by(f64::total_cmp);
    errors[errors.len() / 2]
}

const MEDIAN: MetricRow = MetricRow::own("median_error", "median absolute error", Shown::Plain, median)
    .question("How far off is a prediction in the middle?");

fn registry(row: MetricRow) -> Registry {
    let mut registry = Registry::native();
    registry.add_metric(row).unwrap();
    registry
}

fn source() -> Source {
    Source { name: "own.toml".into(), text: CONFIG.into() }
}

fn set(metric: &str) -> Vec<Override> {
    vec![Override::parse(&format!("evaluate.metric={metric}")).unwrap()]
}

fn plan(registry: &Registry, sets: &[Override]) -> Result<Plan, Error> {
    Plan::load(registry, &source(), Path::new("."), sets, &[])
}

#[test]
fn it_is_a_column_and_changes_no_other() {
    let (own, native) = (registry(MEDIAN), Registry::native());
    let (plan, plain) = (plan(&own, &[]).unwrap(), plan(&native, &[]).unwrap());
    let world = plan.world(0).unwrap();
    let (with, without) = (plan.scorer(&world).unwrap(), plain.scorer(&world).unwrap());
    let (names, fewer) = (with.names(), without.names());
    assert_eq!(names[..fewer.len()], fewer[..]);
    let models: Vec<&str> = plan.row.personal.to_vec();
    let expected: Vec<String> = models.iter().map(|model| format!("median_error.{model}")).collect();
    assert_eq!(names[fewer.len()..], expected[..]);
    let mut stage = plan.start(&world, 0).unwrap();
    for _ in 0..3 {
        stage.live.step().unwrap();
    }
    let (rows, plain_rows) = (stage.live.rows(&with), stage.live.rows(&without));
    let mut models: Vec<Vec<f64>> = vec![Vec::new(); rows.len()];
    stage.live.own_models(&mut |id, model| models[id as usize] = model.to_vec());
    let mut different = false;
    for (id, (row, plain)) in rows.iter().zip(&plain_rows).enumerate() {
        let bits = |row: &[f64]| row.iter().map(|x| x.to_bits()).collect::<Vec<_>>();
        assert_eq!(bits(&row[..plain.len()]), bits(plain));
        let test = world.test[id].as_ref().unwrap();
        let expected = median(plan.families.first(), &models[id], test);
        assert!(expected > 0.0);
        assert_eq!(row[plain.len()].to_bits(), expected.to_bits(), "client {id}");
        different |= row[plain.len()] != rows[0][plain.len()];
    }
    assert!(different, "every client is judged by its own test records");
    // The mean over clients that a run reports is that of the rows.
    let summaries = stage.live.evaluate(&with);
    let mean = rows.iter().map(|row| row[fewer.len()]).sum::<f64>() / rows.len() as f64;
    assert!((summaries[fewer.len()].mean() - mean).abs() < 1e-12);
}

#[test]
fn it_reaches_the_run_directory_the_tables_and_the_report() {
    let registry = registry(MEDIAN);
    let folder = tempfile::tempdir().unwrap();
    let control = Control { stop: &AtomicBool::new(false), tick: &|| {} };
    let plan = plan(&registry, &set("median_error.client")).unwrap();
    let out = folder.path().join("run");
    let finished = run(&plan, &out, Path::new("."), &control).unwrap();
    assert!(finished.r#final["median_error.client"] > 0.0);
    let metrics = RunDirectory::new(&out).metrics().unwrap();
    let clients =
        metrics.rows().filter(|row| row.metric == "median_error.client" && !row.node.is_empty()).count();
    assert_eq!(clients, 10);
    let page = std::fs::read_to_string(out.join("report.html")).unwrap();
    assert!(
        page.contains("median absolute error") && page.contains("How far off is a prediction in the middle?")
    );

    let prepared = Prepared::new(&registry, &source(), Path::new("."), &set("median_error.client")).unwrap();
    let comparison = prepared.run(&folder.path().join("compared"), &control).unwrap();
    assert_eq!(comparison.metric, "median_error.client");
    let table = figures::table(&comparison);
    assert!(table.caption.contains("median absolute error"), "{}", table.caption);
    assert!(table.rows.iter().all(|row| row.cells[0].is_some()));
    figures::report_comparison(&comparison).unwrap();
}

#[test]
fn on_demand_it_is_taken_where_the_headline_asks() {
    let registry = registry(MEDIAN.on_demand());
    let names = |sets: &[Override]| {
        let plan = plan(&registry, sets).unwrap();
        let world = plan.world(0).unwrap();
        plan.scorer(&world).unwrap().names()
    };
    assert!(!names(&[]).iter().any(|name| name.starts_with("median_error.")));
    assert!(names(&set("median_error.served")).contains(&"median_error.client".to_string()));
}

#[test]
fn a_headline_that_nobody_measures_is_refused_before_anything_runs() {
    let refused = |registry: &Registry, metric: &str| plan(registry, &set(metric)).err().unwrap().to_string();
    let own = registry(MEDIAN);
    assert!(plan(&own, &set("median_error.client")).is_ok());
    let error = refused(&own, "median_eror.client");
    assert!(error.contains("evaluate.metric") && error.contains("did you mean `median_error`?"), "{error}");
    let error = refused(&Registry::native(), "median_error.client");
    assert!(error.contains("unknown metric \"median_error\""), "{error}");
    let twice =
        Registry::native().add_metric(MetricRow::own("nmsd", "mine", Shown::Plain, median)).unwrap_err();
    assert!(twice.to_string().contains("two metrics called \"nmsd\""));
}
