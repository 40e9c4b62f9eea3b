//! Every command does what its help says.

use crate::bench::{ASSUMED, Bench};

#[test]
fn help_and_version_are_no_errors() {
    let bench = Bench::new();
    assert!(bench.good(&["--help"]).contains("Exit codes:"));
    assert!(bench.good(&["run", "--help"]).contains("Exit codes:"));
    assert_eq!(bench.good(&["--version"]), format!("fedkin {}\n", env!("CARGO_PKG_VERSION")));
}

#[test]
fn the_starter_runs_as_it_is_and_personal_models_win_on_it() {
    let bench = Bench::new();
    let said = bench.good(&["new", "mine"]);
    for name in ["mine/wards.toml", "mine/wards.csv", "mine/edges.csv", "fedkin run mine/wards.toml"] {
        assert!(said.contains(name), "{said}");
    }
    bench.good(&["config", "check", "mine/wards.toml"]);
    let said = bench.good(&["run", "mine/wards.toml"]);
    for fact in [
        "method   pgfl: ",
        "16 clients, 4 servers, 3 clusters",
        "100 rounds, 10 repeats, ",
        "mse of the client model",
        " ± ",
        "no mechanism: uploads are not private",
        "sha256 ",
        "runs/wards\n",
        "fedkin report runs/wards",
    ] {
        assert!(said.contains(fact), "no {fact:?} in\n{said}");
    }
    let again = bench.good(&["run", "mine/wards.toml"]);
    assert!(again.starts_with("complete  this run was complete already"), "{again}");

    let compared = bench.json(&["reproduce", "mine/wards.toml", "--out", "compared", "--json"]);
    let last = |label: &str| {
        let curve = compared["curves"].as_array().unwrap().iter().find(|c| c["label"] == label).unwrap();
        curve["points"].as_array().unwrap().last().unwrap()["mean"].as_f64().unwrap()
    };
    assert!(last("PGFL") < last("one model for all (GFL)") && last("PGFL") < last("each ward alone"));
}

#[test]
fn the_starter_explains_privacy_and_its_explanation_works() {
    let bench = Bench::new();
    bench.good(&["new"]);
    // As the comment in the file says: uncomment the section, give the model a bound.
    bench.edit(
        "wards.toml",
        "wards.toml",
        &[
            ("# [privacy]", "[privacy]"),
            ("# mechanism = \"zcdp\"", "mechanism = \"zcdp\""),
            ("# budget = 0.5", "budget = 0.5"),
            ("bias = true", "bias = true\nfeature_norm = 3.0\nhuber = 1.0"),
        ],
    );
    let ran = bench.fedkin(&["run", "wards.toml"]);
    assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""), "nothing to warn of");
    let said = ran.out;
    assert!(said.contains("epsilon ") && said.contains(" at delta 0.00001 for the client"), "{said}");
    assert!(said.contains("bound enforced"), "{said}");
}

#[test]
fn an_epsilon_on_trust_is_called_so() {
    let bench = Bench::new();
    bench.good(&["new"]);
    let set =
        ["privacy.mechanism=zcdp", "privacy.bound=assumed", "privacy.gradient_bound=2.0", "run.rounds=10"];
    let mut arguments = vec!["run", "wards.toml"];
    arguments.extend(set.iter().flat_map(|set| ["--set", set]));
    let ran = bench.fedkin(&arguments);
    // Also without a terminal, and once.
    assert_eq!(ran.err, ASSUMED);
    let said = ran.out;
    assert!(said.contains("bound assumed, not enforced"), "{said}");
    let ledger = bench.read("runs/wards/ledger.jsonl");
    assert!(ledger.lines().count() > 0);
    assert!(ledger.lines().all(|line| line.contains("\"bound\":\"assumed, not enforced\"")), "{ledger}");
    let page = bench.read("runs/wards/report.html");
    assert!(page.contains("Warning: sensitivity assumed, not enforced."), "no box");
    assert!(said.contains("warning  the gradient bound is assumed, not enforced"), "{said}");
    arguments.push("--json");
    let warnings = bench.json(&arguments)["warnings"].to_string();
    assert!(warnings.contains("assumed, not enforced"), "{warnings}");
}

#[test]
fn new_never_overwrites() {
    let bench = Bench::new();
    bench.write("wards.csv", "my own records\n");
    bench.refused(&["new"], &["wards.csv is there already", "name another folder"]);
    bench.good(&["new", "a/b/study.toml"]);
    bench.good(&["run", "a/b/study.toml", "--set", "run.rounds=2"]);
    bench.refused(&["new", "a/b/study.toml"], &["a/b/study.toml", "are there already"]);
    bench.write("file", "x");
    bench.refused(&["new", "file/below"], &["cannot write file/below"]);
}

#[test]
fn new_copies_an_experiment() {
    let bench = Bench::new();
    let said = bench.good(&["new", "here", "--from", "demo"]);
    assert!(said.contains("fedkin reproduce here/demo.toml"), "{said}");
    bench.good(&["config", "check", "here/demo.toml"]);
    // What a run would be warned of, its check says.
    bench.good(&["new", "here", "--from", "fedpnp-convex"]);
    let checked =
        bench.fedkin(&["config", "check", "here/fedpnp-convex.toml", "--set", "algorithm.decay=0.9"]);
    assert!(checked.code == Some(0) && checked.err.contains("algorithm.paced = true"), "{checked:?}");
    bench.refused(&["new", "--from", "demmo"], &["demmo", "did you mean `demo`?"]);
}

#[test]
fn the_demonstration_ends_with_a_table_a_reading_and_a_report() {
    let bench = Bench::new();
    let said = bench.good(&["demo"]);
    for word in ["PGFL", "ClusterFL", "local", "* best", "HOLDS  ", "runs/demo/report.html"] {
        assert!(said.contains(word), "no {word:?} in\n{said}");
    }
    let reading = said.lines().find(|line| line.starts_with("PGFL is ")).unwrap();
    assert!(reading.ends_with(" dB better than GFL: one model for all."), "{reading}");
    let page = bench.read("runs/demo/report.html");
    assert!(page.contains("<svg") && !page.contains("src=\"http"));
}

#[test]
fn report_and_predict_use_a_run() {
    let bench = Bench::with_a_run();
    let said = bench.good(&["report", "runs/wards"]);
    assert!(said.contains("runs/wards/report.html"), "{said}");
    assert!(bench.path("runs/wards/figures").read_dir().unwrap().count() > 0);
    bench.refused(&["report", "nowhere"], &["nowhere", "no complete run"]);

    let rows = bench.read("wards.csv").lines().count() - 1;
    let said = bench.good(&["predict", "runs/wards", "--client", "north-1", "--data", "wards.csv"]);
    assert!(said.starts_with("     row       predicted          target\n"), "{said}");
    assert!(said.contains("model  client of north-1\nmse    "), "{said}");
    for model in ["client", "served", "averaged"] {
        let arguments = [
            "predict",
            "runs/wards",
            "--client",
            "west-2",
            "--data",
            "wards.csv",
            "--model",
            model,
            "--json",
        ];
        let found = bench.json(&arguments);
        assert_eq!(found["model"], model);
        assert_eq!(found["predictions"].as_array().unwrap().len(), rows);
        assert_eq!(found["error"]["metric"], "mse");
    }
    let predict = |client, data| ["predict", "runs/wards", "--client", client, "--data", data];
    bench.refused(&predict("north-l", "wards.csv"), &["north-l", "did you mean"]);
    bench.refused(&predict("north-1", "absent.csv"), &["absent.csv"]);
    bench.refused(&predict("north-1", "edges.csv"), &["edges.csv", "age"]);
}

#[test]
fn experiments_and_methods_are_listed() {
    let bench = Bench::new();
    let list = bench.good(&["reproduce", "--list"]);
    assert!(list.contains("demo") && list.contains("pgfl-fig1 "), "{list}");
    let methods = bench.good(&["algorithms"]);
    for name in ["pgfl", "gfedmtl", "single-step", "gfl", "clusterfl", "one-cloud", "local", "centralized"] {
        assert!(methods.lines().any(|line| line.starts_with(&format!("{name} "))), "{methods}");
        assert!(bench.good(&["algorithms", name]).starts_with(name));
    }
    let pgfl = bench.good(&["algorithms", "pgfl"]);
    assert!(pgfl.contains("penalty  default 5.0\n    a number above 0\n    weight of"), "{pgfl}");
    bench.refused(&["algorithms", "pglf"], &["pglf", "did you mean `pgfl`?"]);
    bench.refused(&["reproduce", "pgfl-fig99"], &["pgfl-fig99", "fedkin reproduce --list"]);
    bench.refused(&["reproduce", "absent.toml"], &["there is no file absent.toml"]);
}

#[test]
fn files_are_inspected_before_use() {
    let bench = Bench::new();
    bench.good(&["new"]);
    let said = bench.good(&["data", "inspect", "wards.csv", "--client", "ward", "--target", "kind"]);
    assert!(said.contains("167 rows, 8 columns") && said.contains("clients in ward: 16"), "{said}");
    bench.refused(&["data", "inspect", "wards.csv", "--client", "wart"], &["wart", "did you mean `ward`?"]);
    bench.refused(&["data", "inspect", "absent.csv"], &["cannot read absent.csv"]);
}

#[test]
fn completions_know_the_commands() {
    let bench = Bench::new();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = bench.good(&["completions", shell]);
        assert!(script.contains("reproduce"), "{shell}");
    }
}

#[test]
fn a_divergence_has_an_exit_code_of_its_own() {
    let bench = Bench::new();
    bench.good(&["new"]);
    // A door so low that no upload passes it: what a divergence comes to in the end.
    let ran = bench.fedkin(&["run", "wards.toml", "--set", "run.max_norm=0.001"]);
    assert_eq!((ran.code, ran.out.as_str()), (Some(4), ""), "{ran:?}");
    assert!(ran.err.starts_with("error: diverged: ") && ran.err.contains("algorithm.penalty"), "{}", ran.err);
}

/// Some uploads are rejected and others are not: the numbers come with a warning.
#[test]
fn a_divergence_of_some_clients_is_a_warning() {
    let bench = Bench::new();
    bench.good(&["new"]);
    let said = bench.good(&["run", "wards.toml", "--set", "run.max_norm=7.3", "--set", "run.repeats=1"]);
    assert!(said.contains("warning  uploads were rejected, "), "{said}");
}
