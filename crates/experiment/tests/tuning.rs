//! Settings from grids, quick profiles, early stopping, and what stops a run whose training diverges.

#![allow(clippy::unwrap_used)]

use fedkin_config::{Override, Source};
use fedkin_experiment::run;
use fedkin_experiment::{Comparison, Prepared, figures};
use fedkin_report as report;
use fedkin_run::artifacts::metrics::Metrics;
use fedkin_run::{Control, Error, Plan, Registry};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// Few validation records, so that they and the test records do not always agree.
const BASE: &str = r#"
version = 1

[run]
name = "tuned"
seed = 3
rounds = 6
repeats = 2

[data]
source = "synthetic.shifted-classes"
clients_per_server = 6
clusters = 2
classes = 3
dimension = 4
samples = 12
validation_samples = 3
test_samples = 40

[topology]
graph = { kind = "complete", servers = 1 }

[model]
kind = "softmax"
regularisation = 0.01
bias = true

[algorithm]
name = "fedavg"
epochs = 3

[evaluate]
every = 2
metric = "accuracy.client"

[[curve]]
label = "FedAvg"
set = { "algorithm.weights" = "uniform" }
grid = { "algorithm.learning_rate" = [0.02, 0.1, 0.4], "algorithm.epochs" = [1, 8] }

[[curve]]
label = "FedProx"
set = { "algorithm.name" = "fedprox", "algorithm.pull" = 0.1 }
"#;

fn source(text: &str) -> Source {
    Source { name: "tuned.toml".into(), text: text.into() }
}

fn sets(overrides: &[&str]) -> Vec<Override> {
    overrides.iter().map(|text| Override::parse(text).unwrap()).collect()
}

fn compared(text: &str, overrides: &[&str]) -> Result<Comparison, Error> {
    let folder = tempfile::tempdir().unwrap();
    let control = Control { stop: &AtomicBool::new(false), tick: &|| {} };
    let prepared = Prepared::new(&Registry::native(), &source(text), Path::new("."), &sets(overrides))?;
    prepared.run(&folder.path().join("run"), &control)
}

fn refusal(text: &str) -> String {
    Prepared::new(&Registry::native(), &source(text), Path::new("."), &[]).err().unwrap().to_string()
}

/// The first repeat of one point on its own: validation and test accuracy of the clients' models.
fn alone(seed: &str, rate: f64, steps: i64) -> (f64, f64) {
    let folder = tempfile::tempdir().unwrap();
    let (rate, steps) = (format!("algorithm.learning_rate={rate}"), format!("algorithm.epochs={steps}"));
    let overrides = sets(&[seed, "run.repeats=1", "algorithm.weights=uniform", &rate, &steps]);
    let plan = Plan::load(&Registry::native(), &source(BASE), Path::new("."), &overrides, &[]).unwrap();
    let control = Control { stop: &AtomicBool::new(false), tick: &|| {} };
    let finished = run(&plan, &folder.path().join("run"), Path::new("."), &control).unwrap();
    (finished.r#final["validation_accuracy.client"], finished.r#final["accuracy.client"])
}

#[test]
fn the_grid_is_complete_and_validation_decides_even_where_test_records_say_otherwise() {
    // Eighteen validation records often disagree with the test records: a tuner that peeks gives itself away.
    let apart = (1..=8).filter(|seed| decided(&format!("run.seed={seed}"))).count();
    assert!(apart > 0, "validation and test records agree on all eight worlds: they tell nothing");
}

/// Checks the grid of one world; whether its test records would have taken another point.
fn decided(seed: &str) -> bool {
    let comparison = compared(BASE, &[seed]).unwrap();
    assert_eq!(comparison.tuning.len(), 1);
    let tuning = &comparison.tuning[0];
    assert_eq!((tuning.label.as_str(), tuning.metric.as_str()), ("FedAvg", "validation_accuracy.client"));
    let points: Vec<(f64, i64)> = tuning
        .grid
        .iter()
        .map(|tried| {
            let key = |name: &str| &tried.set[name];
            (key("algorithm.learning_rate").as_f64().unwrap(), key("algorithm.epochs").as_i64().unwrap())
        })
        .collect();
    assert_eq!(points, [(0.02, 1), (0.02, 8), (0.1, 1), (0.1, 8), (0.4, 1), (0.4, 8)]);
    // Points that are equal are told.
    let best = tuning.grid.iter().filter_map(|tried| tried.score).fold(f64::NEG_INFINITY, f64::max);
    let equal = tuning.grid.iter().filter(|tried| tried.score == Some(best)).count();
    let told = format!("FedAvg: {equal} points of the grid have the best validation score");
    assert_eq!(comparison.warnings.iter().any(|warning| warning.to_string().starts_with(&told)), equal > 1);
    let own: Vec<(f64, f64)> = points.iter().map(|&(rate, steps)| alone(seed, rate, steps)).collect();
    for (tried, (validation, _)) in tuning.grid.iter().zip(&own) {
        assert!((tried.score.unwrap() - 100.0 * validation).abs() < 1e-9);
    }
    let best = |of: &dyn Fn(&(f64, f64)) -> f64| {
        let most = own.iter().map(of).fold(f64::MIN, f64::max);
        own.iter().position(|one| of(one) == most).unwrap()
    };
    let taken: Vec<usize> = (0..points.len()).filter(|i| tuning.grid[*i].taken).collect();
    assert_eq!(taken, [best(&|one| one.0)]);
    // What is reported is the point that was taken: its first repeat is the trial itself.
    let curve = &comparison.curves[0];
    assert!((curve.values.last().unwrap()[0] - own[taken[0]].1).abs() < 1e-12);
    assert_eq!(curve.values.last().unwrap().len(), 2);
    // And again the same, to the bit.
    let again = compared(BASE, &[seed]).unwrap();
    let scores = |comparison: &Comparison| -> Vec<Option<f64>> {
        comparison.tuning[0].grid.iter().map(|tried| tried.score).collect()
    };
    assert_eq!(scores(&comparison), scores(&again));
    assert_eq!(comparison.curves[0].values, again.curves[0].values);
    let table = report::text_table(&figures::tuning(&comparison).unwrap());
    assert_eq!(table.matches("(taken)").count(), 1, "{table}");
    assert_eq!(table.matches("FedAvg: ").count(), 6, "{table}");
    best(&|one| one.0) != best(&|one| one.1)
}

#[test]
fn the_table_and_the_json_say_how_far_clients_are_apart() {
    let comparison = compared(BASE, &["tune.enabled=false"]).unwrap();
    assert!(comparison.tuning.is_empty());
    let table = report::text_table(&figures::table(&comparison));
    assert!(table.contains("std over clients (%)") && table.contains("worst decile (%)"), "{table}");
    let json = serde_json::to_value(&comparison).unwrap();
    let curve = &json["curves"][0];
    let (std, worst) = (curve["std"].as_f64().unwrap(), curve["worst_decile"].as_f64().unwrap());
    // Means over repeats of what each repeat's six clients have.
    let by_client = &comparison.curves[0].by_client["accuracy.client"];
    let least = by_client.iter().map(|point| point.mean).fold(f64::MAX, f64::min);
    assert!(std > 0.0 && worst <= least + 1e-9, "{worst} {least}");
    assert!(json.get("tuning").is_none());
}

#[test]
fn a_curve_that_the_data_do_not_suit_is_refused_before_the_first_one_runs() {
    let last = "\n[[curve]]\nlabel = \"hard\"\nset = { \"algorithm.name\" = \"fedpnp\", \"algorithm.filter\" = \"hard\", \
                \"algorithm.tau\" = 7, \"evaluate.metric\" = \"accuracy.psi\" }\n";
    let (folder, rounds) = (tempfile::tempdir().unwrap(), AtomicUsize::new(0));
    let tick = || {
        rounds.fetch_add(1, Ordering::Relaxed);
    };
    let control = Control { stop: &AtomicBool::new(false), tick: &tick };
    let prepared =
        Prepared::new(&Registry::native(), &source(&format!("{BASE}{last}")), Path::new("."), &[]).unwrap();
    let error = prepared.run(&folder.path().join("run"), &control).err().unwrap().to_string();
    assert!(error.contains("algorithm.tau = 7, but there are 6 clients"), "{error}");
    assert_eq!(rounds.load(Ordering::Relaxed), 0);
}

#[test]
fn rounds_of_trials_can_be_fewer() {
    let comparison =
        compared(BASE, &["tune.rounds=2", "tune.repeats=2", "tune.metric=validation_log_loss"]).unwrap();
    let tuning = &comparison.tuning[0];
    assert_eq!((tuning.rounds, tuning.repeats), (2, 2));
    assert_eq!(tuning.metric, "validation_log_loss.client");
    let scores: Vec<f64> = tuning.grid.iter().map(|tried| tried.score.unwrap()).collect();
    let least = scores.iter().copied().fold(f64::MAX, f64::min);
    assert!(
        tuning.grid.iter().all(|tried| tried.taken == (tried.score == Some(least)) && tried.stderr.is_some())
    );
    assert_eq!(comparison.curves[0].points.last().unwrap().x, 6.0);
}

#[test]
fn a_point_that_diverges_loses_and_does_not_stop_the_others() {
    // Weight decay of 1 and a step of 1000 multiply the weights by -999.
    let text = BASE
        .replace("regularisation = 0.01", "regularisation = 1.0")
        .replace("[0.02, 0.1, 0.4]", "[1000.0, 0.1]")
        .replace("\"algorithm.epochs\" = [1, 8]", "\"algorithm.epochs\" = [400]");
    let comparison = compared(&text, &[]).unwrap();
    let grid = &comparison.tuning[0].grid;
    assert!(grid[0].score.is_none() && grid[0].failed.is_some() && grid[1].taken, "{grid:?}");
}

#[test]
fn what_is_wrong_with_a_grid_is_said_before_anything_runs() {
    let grid = "grid = { \"algorithm.learning_rate\" = [0.02, 0.1, 0.4], \"algorithm.epochs\" = [1, 8] }";
    let with = |other: &str| refusal(&BASE.replace(grid, other));
    assert!(with("grid = {}").contains("the grid is empty"), "{}", with("grid = {}"));
    let nothing = with("grid = { \"algorithm.learning_rate\" = [] }");
    assert!(nothing.contains("no value to try"), "{nothing}");
    let single = with("grid = { \"algorithm.learning_rate\" = 0.1 }");
    assert!(single.contains("expected a list of values to try"), "{single}");
    let typo = with("grid = { \"algorithm.learning_rat\" = [0.1] }");
    assert!(typo.contains("did you mean `learning_rate`?") && typo.contains("in its grid"), "{typo}");
    let range = with("grid = { \"algorithm.learning_rate\" = [0.1, -1.0] }");
    assert!(range.contains("algorithm.learning_rate"), "{range}");
    let bare = refusal(&BASE.replace("validation_samples = 3\n", ""));
    assert!(bare.contains("\"FedAvg\"") && bare.contains("data.validation_fraction"), "{bare}");
    let idle =
        refusal(&BASE.replace(grid, "").replace(
            "[[curve]]\nlabel = \"FedProx\"",
            "[tune]\nrepeats = 1\n\n[[curve]]\nlabel = \"FedProx\"",
        ));
    assert!(idle.contains("nothing is tuned"), "{idle}");
    let swept = refusal(&format!("{BASE}\n[sweep]\nkey = \"run.rounds\"\nvalues = [2, 4]\n"));
    assert!(swept.contains("cannot be swept"), "{swept}");
    let test_metric = refusal(&format!("{BASE}\n[tune]\nmetric = \"accuracy\"\n"));
    assert!(test_metric.contains("validation_accuracy"), "{test_metric}");
}

#[test]
fn a_quick_profile_is_checked_with_the_file_and_survives_writing_it_out() {
    let text = format!(
        "{BASE}\n[quick]\n\"run.rounds\" = 2\n\"tune.enabled\" = false\ndata.clients_per_server = 4\n"
    );
    let registry = Registry::native();
    let tables = registry.tables();
    let config = fedkin_config::load(&source(&text), &[], &tables).unwrap();
    assert_eq!(config.quick.len(), 3);
    let again = fedkin_config::load(&source(&config.resolved()), &[], &tables).unwrap();
    assert_eq!(config, again);
    let wrong = refusal(&text.replace("\"run.rounds\" = 2", "\"run.round\" = 2"));
    assert!(wrong.contains("with [quick]") && wrong.contains("did you mean `rounds`?"), "{wrong}");
    let empty = refusal(&format!("{BASE}\n[quick]\n"));
    assert!(empty.contains("nothing is set"), "{empty}");
}

#[test]
fn early_stopping_reports_every_clients_own_best_round() {
    let folder = tempfile::tempdir().unwrap();
    let overrides =
        sets(&["evaluate.early_stopping=true", "evaluate.every=1", "evaluate.global=true", "run.repeats=1"]);
    let plan = Plan::load(&Registry::native(), &source(BASE), Path::new("."), &overrides, &[]).unwrap();
    let control = Control { stop: &AtomicBool::new(false), tick: &|| {} };
    let out = folder.path().join("run");
    let finished = run(&plan, &out, Path::new("."), &control).unwrap();
    assert!(finished.r#final.contains_key("stopped_accuracy.client"));
    assert!(finished.r#final.contains_key("global_accuracy.served"));
    assert!(finished.std.contains_key("stopped_accuracy.client"));
    // One model for all has one accuracy on the records of all: clients are not apart.
    assert!(finished.std["global_accuracy.served"].abs() < 1e-12);
    let metrics = Metrics::read(&out.join("metrics.parquet")).unwrap();
    let first = |metric: &str| {
        let found = metrics.rows().find(|row| row.node.is_empty() && row.round == 1 && row.metric == metric);
        found.unwrap().value
    };
    // After one round the best round of every client is that one.
    assert_eq!(first("stopped_accuracy.client"), first("accuracy.client"));
    let bare = BASE.replace("validation_samples = 3\n", "");
    let plan = Plan::load(&Registry::native(), &source(&bare), Path::new("."), &overrides, &[]).unwrap();
    let error = run(&plan, &folder.path().join("bare"), Path::new("."), &control).unwrap_err().to_string();
    assert!(
        error.contains("evaluate.early_stopping needs") && error.contains("validation_fraction"),
        "{error}"
    );
}

#[test]
fn training_that_diverges_stops_with_its_round_its_client_and_its_own_exit_code() {
    let folder = tempfile::tempdir().unwrap();
    let overrides = sets(&["model.regularisation=1", "algorithm.learning_rate=1000", "algorithm.epochs=400"]);
    let plan = Plan::load(&Registry::native(), &source(BASE), Path::new("."), &overrides, &[]).unwrap();
    let control = Control { stop: &AtomicBool::new(false), tick: &|| {} };
    let error = run(&plan, &folder.path().join("run"), Path::new("."), &control).unwrap_err();
    assert_eq!(error.exit_code(), 4);
    let said = error.to_string();
    assert!(said.contains("round 1") && said.contains("client \"client-00\""), "{said}");
    assert!(!said.contains("client number"), "{said}");
}
