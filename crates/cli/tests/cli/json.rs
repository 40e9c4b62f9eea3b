//! `--json`: one object with the documented keys, and the same models whatever the number of threads.

use crate::bench::Bench;
use serde_json::Value;

fn has(value: &Value, keys: &[&str]) {
    for key in keys {
        assert!(value.get(key).is_some(), "no {key:?} in {value}");
    }
}

#[test]
fn a_run_tells_what_it_did() {
    let bench = Bench::new();
    bench.good(&["new"]);
    let arguments = ["run", "wards.toml", "--set", "run.rounds=20", "--set", "run.repeats=3", "--json"];
    let told = bench.json(&arguments);
    has(&told, &["run", "algorithm", "models_sha256", "rounds", "repeats", "seconds", "final", "stderr"]);
    has(&told, &["privacy", "size", "warnings", "start"]);
    assert_eq!((&told["run"], &told["algorithm"]), (&"runs/wards".into(), &"pgfl".into()));
    assert_eq!((&told["rounds"], &told["repeats"], &told["start"]), (&20.into(), &3.into(), &"fresh".into()));
    assert_eq!(told["models_sha256"].as_str().unwrap().len(), 64);
    has(&told["final"], &["mse.client", "mse.served", "mse.averaged"]);
    assert_eq!(told["privacy"]["mechanism"], "none");
    let again = bench.json(&arguments);
    assert_eq!(again["start"], "complete");
    assert_eq!(again["models_sha256"], told["models_sha256"]);
    assert_eq!(again["final"], told["final"]);
}

#[test]
fn a_comparison_tells_its_curves() {
    let bench = Bench::new();
    let told = bench.json(&["demo", "--json"]);
    has(
        &told,
        &["name", "metric", "unit", "x", "repeats", "seconds", "curves", "claims", "warnings", "report"],
    );
    assert_eq!((&told["name"], &told["unit"], &told["x"]), (&"demo".into(), &"dB".into(), &"round".into()));
    let last = |label: &str| {
        let mut curves = told["curves"].as_array().unwrap().iter();
        let curve = curves.find(|curve| curve["label"].as_str().unwrap().starts_with(label)).unwrap();
        let point = curve["points"].as_array().unwrap().last().unwrap().clone();
        has(&point, &["x", "mean", "stderr"]);
        point["mean"].as_f64().unwrap()
    };
    let personal = last("PGFL");
    assert!(personal < last("GFL") && personal < last("ClusterFL") && personal < last("local"));
    assert!(bench.path(told["report"].as_str().unwrap()).is_file());
    let verdicts = told["claims"].as_array().unwrap();
    assert!(!verdicts.is_empty() && verdicts.iter().all(|claim| claim["verdict"] == "holds"), "{verdicts:?}");
}

#[test]
fn repeats_and_sets_reach_an_experiment() {
    let bench = Bench::new();
    let told = bench.json(&[
        "reproduce",
        "demo",
        "--repeats",
        "2",
        "--set",
        "run.rounds=4",
        "--out",
        "short",
        "--json",
    ]);
    assert_eq!((&told["repeats"], &told["run"]), (&2.into(), &"short".into()));
    let points = told["curves"][1]["points"].as_array().unwrap();
    assert_eq!(points.last().unwrap()["x"], 4.0);
}

/// What `fedkin algorithms` says of a default is what the reference page says.
#[test]
fn help_and_page_agree_on_every_default_of_every_method() {
    let page = include_str!("../../../../docs/reference.md").replace("\\|", "/");
    let mut methods = 0;
    for method in Bench::new().json(&["algorithms", "--json"])["algorithms"].as_array().unwrap() {
        let name = method["name"].as_str().unwrap();
        let parameters = method["parameters"].as_array().unwrap();
        let heading = format!("### `name = \"{name}\"`\n");
        assert_eq!(page.contains(&heading), !parameters.is_empty(), "{name}");
        let section =
            page.split(&heading).nth(1).unwrap_or_default().split("\n##").next().unwrap_or_default();
        for parameter in parameters {
            let key = parameter["name"].as_str().unwrap();
            let row = section.lines().find(|line| line.starts_with(&format!("| `{key}` |"))).unwrap();
            let default = match (&parameter["default"], &parameter["required"]) {
                (serde_json::Value::String(value), _) => format!("`{value}`"),
                (_, serde_json::Value::Bool(true)) => "*required*".to_string(),
                _ => "absent".to_string(),
            };
            assert_eq!(row.split(" | ").nth(2).unwrap(), default, "{name} {key}");
        }
        methods += 1;
    }
    assert!(methods > 10, "{methods} methods were compared");
}

#[test]
fn the_tables_are_machine_readable() {
    let bench = Bench::new();
    let all = bench.json(&["algorithms", "--json"]);
    let pgfl = bench.json(&["algorithms", "pgfl", "--json"]);
    assert!(all["algorithms"].as_array().unwrap().contains(&pgfl));
    has(&pgfl, &["name", "summary", "parameters", "models", "needs_connected", "simulation_only"]);
    has(&pgfl["parameters"][0], &["name", "default", "required", "range", "help"]);
    let list = bench.json(&["reproduce", "--list", "--json"]);
    has(&list["experiments"][0], &["name", "summary"]);
    bench.good(&["new"]);
    let found = bench.json(&["data", "inspect", "wards.csv", "--json"]);
    has(&found, &["file", "format", "rows", "columns", "labels", "clients"]);
    assert_eq!((&found["format"], &found["rows"]), (&"csv".into(), &167.into()));
}

/// The federation is large enough that rounds are split between threads.
#[test]
fn one_thread_and_two_give_the_same_models() {
    let bench = Bench::new();
    bench.good(&["new", "--from", "demo"]);
    let sha = |threads: &str| {
        let out = format!("with-{threads}");
        let told = bench.json(&[
            "run",
            "demo.toml",
            "--threads",
            threads,
            "--out",
            &out,
            "--json",
            "--set",
            "run.rounds=30",
            "--set",
            "data.clients_per_server=200",
            "--set",
            "run.repeats=2",
        ]);
        (told["models_sha256"].as_str().unwrap().to_string(), told["final"].clone())
    };
    let one = sha("1");
    assert_eq!(one, sha("2"));
    assert_eq!(one, sha("5"));
}
