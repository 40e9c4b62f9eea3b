//! `PersFL` and IFCA as a user meets them: what is wrong is said with a way out, and what was found is in the files.

use crate::bench::Bench;
use std::fmt::Write;

/// Two clusters, one record a line.
const WORLD: &str = r#"version = 1
[run]
name = "probe"
seed = 3
rounds = 12
[data]
source = "csv"
path = "records.csv"
client = "who"
target = "y"
[model]
kind = "ridge"
regularisation = 0
[algorithm]
name = "persfl"
candidates = 2
"#;

/// The first half of the clients follows one line, the second another.
fn records(clients: &str) -> String {
    let mut text = "who,x,z,y\n".to_string();
    for (i, who) in clients.chars().enumerate() {
        for r in 0..6 {
            let (x, z) = (f64::from(r) - 2.5, f64::from((r * 7 + i as i32 * 3) % 5) - 2.0);
            let y = if i < clients.len() / 2 { 2.0 * x - z } else { -x + 3.0 * z };
            writeln!(text, "{who},{x},{z},{y}").unwrap();
        }
    }
    text
}

fn bench(clients: &str) -> Bench {
    let bench = Bench::new();
    bench.write("probe.toml", WORLD);
    bench.write("records.csv", records(clients));
    bench
}

#[test]
fn what_cannot_work_is_refused_with_a_way_out() {
    let six = bench("abcdef");
    let cases: &[(&[&str], &[&str])] = &[
        (&["algorithm.candidates=6"], &["candidates = 6", "5 others", "5 or less"]),
        (&["algorithm.targets=g"], &["algorithm.targets", "no client is called \"g\""]),
        (&["algorithm.targets=[\"a\", \"B\"]"], &["no client is called \"B\""]),
        (&["algorithm.targets=[]"], &["algorithm.targets is empty"]),
        (&["algorithm.sampling=graph"], &["warm_up = 40", "run.rounds = 12"]),
        (&["algorithm.sampling=graph", "algorithm.warm_up=4", "algorithm.targets=a"], &["targets = \"all\""]),
        (&["algorithm.warm_up=4"], &["algorithm.warm_up", "sampling = \"graph\""]),
        (&["algorithm.sampling=bandits"], &["algorithm.sampling", "did you mean"]),
        (
            &["privacy.mechanism=dp-sgd", "privacy.clip=1", "privacy.noise_multiplier=1"],
            &["no mechanism", "privacy.mechanism"],
        ),
    ];
    for (sets, words) in cases {
        let mut arguments = vec!["run", "probe.toml", "--out", "runs/refused"];
        arguments.extend(sets.iter().flat_map(|set| ["--set", set]));
        six.refused(&arguments, words);
        let _ = std::fs::remove_dir_all(six.path("runs/refused"));
        // What a check finds is what a run finds.
        arguments.splice(..4, ["config", "check", "probe.toml"]);
        six.refused(&arguments, words);
    }
    six.edit("probe.toml", "ifca.toml", &[("name = \"persfl\"\ncandidates = 2", "name = \"ifca\"")]);
    let ifca = |set: &'static str| ["config", "check", "ifca.toml", "--set", set];
    six.refused(&ifca("algorithm.models=7"), &["algorithm.models = 7", "6 clients"]);
    six.refused(&ifca("algorithm.local_steps=2"), &["local_steps", "averaging = \"model\""]);
    bench("a").refused(&["config", "check", "probe.toml"], &["one client only", "local"]);
}

/// A client whose cell of the table is empty has no data, and that is said with its line.
#[test]
fn a_client_without_records_is_refused() {
    let bench = bench("abcdef");
    bench.write("records.csv", records("abcdef") + "g,1,2,\n");
    bench.refused(&["config", "check", "probe.toml"], &["records.csv:38", "\"y\"", "empty"]);
}

#[test]
fn one_target_gets_a_model_and_the_others_help() {
    let bench = bench("abcdef");
    let told = bench.json(&[
        "run",
        "probe.toml",
        "--json",
        "--set",
        "algorithm.targets=b",
        "--set",
        "algorithm.candidates=5",
        "--set",
        "run.rounds=200",
        "--set",
        "algorithm.learning_rate=0.05",
    ]);
    assert!(told["final"]["train_loss.client"].as_f64().unwrap() < 1e-6, "{told}");
    assert_eq!(told["final"]["queries"], 1000.0);
    assert_eq!(told["rounds"], 200);
}

/// Kin found by rewards stand in files that another run takes.
#[test]
fn kin_by_rewards_are_files() {
    let bench = bench("abcdefghijklmnop");
    for sampling in ["bandit", "graph"] {
        let sampling = format!("algorithm.sampling={sampling}");
        let mut arguments = vec!["run", "probe.toml", "--json", "--set", &sampling, "--set", "run.rounds=60"];
        arguments.extend(["--out", "found", "--set", "algorithm.candidates=3"]);
        if sampling.ends_with("graph") {
            arguments.extend(["--set", "algorithm.warm_up=30"]);
        }
        bench.json(&arguments);
        let clusters = bench.read("found/clusters.csv");
        let of = |who: &str| {
            let line = clusters.lines().find(|line| line.starts_with(&format!("{who},"))).unwrap();
            line.split(',').nth(1).unwrap().to_string()
        };
        let is = |whom: &str, like: &str| whom.chars().all(|who| of(&who.to_string()) == of(like));
        assert!(is("abcdefgh", "a") && is("ijklmnop", "i") && of("a") != of("i"), "{clusters}");
        let graph = bench.read("found/graphs/kin.graphml");
        assert!(graph.contains("<graphml") && graph.matches("<edge ").count() >= 4, "{graph}");
        std::fs::remove_dir_all(bench.path("found")).unwrap();
    }
}
