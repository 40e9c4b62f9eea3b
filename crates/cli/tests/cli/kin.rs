//! Kin found by one run, given to another.

use crate::bench::Bench;
use std::fmt::Write;

/// Three clusters far apart at four servers.
const WORLD: &str = r#"version = 1
[run]
name = "kin"
seed = 4
rounds = 80
[data]
source = "synthetic.clustered-regression"
clients_per_server = 12
clusters = 3
dimension = 8
samples = 16
spread = 1.0
gamma = "per-coordinate"
[topology]
graph = { kind = "ring", servers = 4 }
[model]
kind = "ridge"
[algorithm]
name = "pgfl"
[evaluate]
every = 20
"#;

const INFER: &str = "kin.clusters=infer";

fn bench() -> Bench {
    let bench = Bench::new();
    bench.write("kin.toml", WORLD);
    bench
}

fn run(bench: &Bench, out: &str, sets: &[&str]) -> serde_json::Value {
    let mut arguments = vec!["run", "kin.toml", "--out", out, "--json"];
    arguments.extend(sets.iter().flat_map(|set| ["--set", set]));
    bench.json(&arguments)
}

/// What was found is a file; given to another run it is as good as the truth, to the bit.
#[test]
fn found_clusters_serve_another_run() {
    let bench = bench();
    let found = run(&bench, "found", &[INFER]);
    assert_eq!(found["final"]["found.kin"], 1.0, "{found}");
    assert_eq!((&found["final"]["clusters.kin"], &found["final"]["merged.kin"]), (&3.0.into(), &0.0.into()));
    for metric in ["nmi.kin", "rand.kin", "fmi.kin"] {
        assert_eq!(found["final"][metric], 1.0, "{metric}");
    }
    assert_eq!(bench.read("found/clusters.csv").lines().count(), 49);
    let truth = run(&bench, "truth", &[]);
    let given = run(&bench, "given", &["kin.clusters=found/clusters.csv"]);
    assert_eq!(given["models_sha256"], truth["models_sha256"]);
    for metric in ["nmsd.served", "nmsd.client"] {
        assert_eq!(given["final"][metric], truth["final"][metric]);
    }
    assert!(given["final"].get("found.kin").is_none(), "clusters that are given are not found");
    // One client elsewhere: other models, and the truth they are measured by stays.
    let moved =
        bench.read("found/clusters.csv").replace("found-1\n", "x\n").replace("found-2\n", "found-1\n");
    bench.write("moved.csv", moved.replacen("found-1\n", "x\n", 1));
    let moved = run(&bench, "moved", &["kin.clusters=moved.csv"]);
    assert_ne!(moved["models_sha256"], truth["models_sha256"]);
    let nmsd = |told: &serde_json::Value| told["final"]["nmsd.served"].as_f64().unwrap();
    assert!(nmsd(&moved) > nmsd(&truth), "{} {}", nmsd(&moved), nmsd(&truth));
    // Its model is found under the name of its new cluster.
    let guide = bench.read("found/models/guide.json");
    assert!(guide.contains("/found-1\"") && guide.contains("/found-3\""), "{guide}");
    // A run whose clusters changed since is another one.
    bench.write("moved.csv", bench.read("found/clusters.csv"));
    let again = ["run", "kin.toml", "--out", "moved", "--set", "kin.clusters=moved.csv"];
    let ran = bench.fedkin(&again);
    assert!(ran.code == Some(2) && ran.err.contains("the data changed"), "{ran:?}");
}

/// A graph of clients: each is a server of its own, as when the data say so.
#[test]
fn a_graph_of_clients_makes_each_a_server() {
    let bench = bench();
    let mut records = String::from("client,server,kind,x,y\n");
    let mut alone = records.clone();
    for client in 0..6 {
        for record in 0..5 {
            let x = f64::from((client * 7 + record * 3) % 11) / 5.0 - 1.0;
            let y = if client % 2 == 0 { 2.0 * x } else { -x };
            let _ = writeln!(records, "c{client},s{},q{},{x:.3},{y:.3}", client / 3, client % 2);
            let _ = writeln!(alone, "c{client},c{client},q{},{x:.3},{y:.3}", client % 2);
        }
    }
    bench.write("records.csv", records);
    bench.write("alone.csv", alone);
    let config = |path: &str, more: &str| {
        format!(
            "version = 1\n[run]\nname = \"g\"\nrounds = 10\n[data]\nsource = \"csv\"\npath = {path:?}\nclient = \"client\"\n\
             server = \"server\"\ncluster = \"kind\"\ntarget = \"y\"\n[model]\nkind = \"ridge\"\nbias = false\n\
             [algorithm]\nname = \"pgfl\"\n{more}"
        )
    };
    bench.write("edges.csv", "a,b\nc0,c1\nc1,c2\nc2,c3\nc3,c4\nc4,c5\n");
    let edges = [("c0", "c1"), ("c1", "c2"), ("c2", "c3"), ("c3", "c4"), ("c4", "c5")];
    let graphml = |edges: &[(&str, &str)]| {
        let mut text = String::from("<graphml><graph>");
        for client in 0..6 {
            let _ = writeln!(text, "<node id=\"c{client}\"/>");
        }
        for (a, b) in edges {
            let _ = writeln!(text, "<edge source=\"{a}\" target=\"{b}\"/>");
        }
        text + "</graph></graphml>"
    };
    bench.write("kin.graphml", graphml(&edges));
    bench.write("by-hand.toml", config("alone.csv", "[topology]\nedges = \"edges.csv\"\n"));
    bench.write("given.toml", config("records.csv", "[kin]\ngraph = \"kin.graphml\"\n"));
    let by_hand = bench.json(&["run", "by-hand.toml", "--out", "by-hand", "--json"]);
    let given = bench.json(&["run", "given.toml", "--out", "given", "--json"]);
    assert_eq!(given["models_sha256"], by_hand["models_sha256"]);
    assert_eq!(given["size"], serde_json::json!([6, 6, 2]));
    // In pieces: refused where servers must reach each other, and told what to do.
    bench.write("kin.graphml", graphml(&edges[..3]));
    bench.refused(
        &["run", "given.toml", "--out", "runs/refused"],
        &["kin.graphml", "3 pieces", "{c0, c1, c2, and 1 more}", "add an edge", "kin.clusters"],
    );
    let alone = ["run", "given.toml", "--out", "pieces", "--set", "algorithm.name=clusterfl"];
    bench.good(&alone);
    bench.write("kin.graphml", graphml(&edges).replace("c5", "c6"));
    bench.refused(&["run", "given.toml", "--out", "runs/refused"], &["\"c6\"", "is no client", "known here"]);
    bench.write("kin.graphml", graphml(&edges[..4]).replace("<node id=\"c5\"/>", ""));
    bench.refused(&["run", "given.toml", "--out", "runs/refused"], &["\"c5\"", "is no node"]);
    let both = config("alone.csv", "[topology]\nedges = \"edges.csv\"\n[kin]\ngraph = \"kin.graphml\"\n");
    bench.write("both.toml", both);
    bench.refused(&["config", "check", "both.toml"], &["kin.graph", "topology.edges", "keep one"]);
}

#[test]
fn wrong_files_of_clusters_are_refused_with_the_line() {
    let bench = bench();
    run(&bench, "found", &[INFER]);
    let good = bench.read("found/clusters.csv");
    let lines: Vec<&str> = good.lines().collect();
    let refused = |text: String, words: &[&str]| {
        bench.write("wrong.csv", text);
        let arguments = ["run", "kin.toml", "--out", "runs/refused", "--set", "kin.clusters=wrong.csv"];
        bench.refused(&arguments, words);
        let _ = std::fs::remove_dir_all(bench.path("runs/refused"));
    };
    refused(format!("{good}{}\n", lines[7]), &["wrong.csv:50", "stands in line 8 already"]);
    refused(
        good.replace("client-000003", "client-000099"),
        &["wrong.csv:5", "\"client-000099\"", "did you mean"],
    );
    refused(lines[..48].join("\n"), &["wrong.csv", "\"client-000047\"", "has no line"]);
    refused(lines[..40].join("\n"), &["\"client-000039\" and 8 more have no line"]);
    refused(good.replace("client,cluster", "client,clusters"), &["\"clusters\"", "client, cluster"]);
    refused(good.replace("client,cluster", "client,cluster,x"), &["wrong.csv"]);
    refused(lines[1..].join("\n"), &["wrong.csv", "client, cluster"]);
    let mut empty: Vec<String> = lines.iter().map(ToString::to_string).collect();
    empty[3] = "client-000002,".into();
    refused(empty.join("\n"), &["wrong.csv:4", "\"cluster\"", "the cell is empty"]);
    let absent = ["run", "kin.toml", "--out", "runs/refused", "--set", "kin.clusters=absent.csv"];
    bench.refused(&absent, &["absent.csv"]);
}

#[test]
fn settings_that_make_no_sense_are_refused() {
    let bench = bench();
    let refused = |sets: &[&str], words: &[&str]| {
        let mut arguments = vec!["run", "kin.toml", "--out", "runs/refused"];
        arguments.extend(sets.iter().flat_map(|set| ["--set", set]));
        bench.refused(&arguments, words);
        let _ = std::fs::remove_dir_all(bench.path("runs/refused"));
    };
    refused(&["kin.count=3"], &["kin.count", "does nothing without clusters = \"infer\""]);
    refused(&[INFER, "kin.count=49"], &["kin.count", "48 clients cannot form 49 clusters"]);
    refused(&[INFER, "kin.warm_up=80"], &["kin.warm_up", "run.rounds is 80"]);
    refused(&[INFER, "algorithm.name=gfl"], &["is for pgfl and one-cloud", "gfl"]);
    refused(&[INFER, "kin.search_rounds=9"], &["kin.search_rounds", "by = \"rewards\""]);
    let noise = ["privacy.mechanism=zcdp", "privacy.bound=assumed", "privacy.gradient_bound=1.0"];
    refused(&[&noise[..], &[INFER]].concat(), &["no mechanism protects that"]);
}

/// Another number of clusters than the data have; nothing is asked of the data.
#[test]
fn the_number_of_clusters_may_be_another() {
    let bench = bench();
    let told = run(&bench, "five", &[INFER, "kin.count=5"]);
    assert_eq!(told["size"], serde_json::json!([48, 4, 5]));
    assert!(told["final"]["clusters.kin"].as_f64().unwrap() >= 3.0, "{told}");
    let told = run(&bench, "two", &[INFER, "kin.count=2"]);
    assert_eq!(told["final"]["merged.kin"], 1.0, "{told}");
}
