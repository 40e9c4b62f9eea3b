//! `fedkin graph filter` and `fedkin graph from-data`: known results, files of every kind, and what is refused.

use crate::bench::Bench;
use serde_json::Value;

/// Two clients of unequal size and a third: a path with weights 1 and 2.
const PATH: &str = "0,1,0\n1,0,2\n0,2,0\n";
const EDGES: &str = "a,b,weight\n1,2,1\n2,3,2\n";
const SIZES: &str = "78\n27\n42\n";
const SIGNAL: &str = "0.365,0.413\n0.431,2.142\n-0.406,-0.512\n";

fn prepared() -> Bench {
    let bench = Bench::new();
    bench.write("graph.csv", PATH);
    bench.write("edges.csv", EDGES);
    bench.write("sizes.csv", SIZES);
    bench.write("signal.csv", SIGNAL);
    bench
}

fn matrix(value: &Value) -> Vec<Vec<f64>> {
    let row = |row: &Value| row.as_array().unwrap().iter().map(|x| x.as_f64().unwrap()).collect();
    value.as_array().unwrap().iter().map(row).collect()
}

fn near(found: &[Vec<f64>], expected: &[Vec<f64>], within: f64) {
    assert_eq!(found.len(), expected.len());
    for (found, expected) in found.iter().flatten().zip(expected.iter().flatten()) {
        assert!((found - expected).abs() <= within, "{found} is not {expected}");
    }
}

const BASE: [&str; 8] =
    ["graph", "filter", "--graph", "graph.csv", "--signal", "signal.csv", "--sizes", "sizes.csv"];

fn with<'a>(more: &[&'a str]) -> Vec<&'a str> {
    BASE.iter().copied().chain(more.iter().copied()).collect()
}

#[test]
fn limits_are_local_models_and_the_weighted_mean() {
    let bench = prepared();
    let signal: Vec<Vec<f64>> =
        SIGNAL.lines().map(|line| line.split(',').map(|x| x.parse().unwrap()).collect()).collect();
    let none = bench.json(&with(&["--filter", "sound", "--beta1", "0", "--beta2", "0", "--json"]));
    assert_eq!(matrix(&none["signal"]), signal);
    // (78 x 0.365 + 27 x 0.431 - 42 x 0.406) / 147, and so on.
    let mean = vec![vec![23.055 / 147.0, 68.544 / 147.0]; 3];
    for more in [["--filter", "hard", "--tau", "1"], ["--filter", "sound", "--beta1", "1e12"]] {
        let found = bench.json(&with(&[&more[..], &["--json"]].concat()));
        near(&matrix(&found["signal"]), &mean, 1e-9);
        assert_eq!((&found["clients"], &found["columns"]), (&3.into(), &2.into()));
    }
}

#[test]
fn every_way_and_every_file_give_the_same() {
    let bench = prepared();
    let strength = ["--beta1", "0.1", "--beta2", "0.1", "--json"];
    let exact = matrix(&bench.json(&with(&strength))["signal"]);
    for method in ["exact", "chebyshev", "cg"] {
        let found = bench.json(&with(&[&strength[..], &["--method", method]].concat()));
        near(&matrix(&found["signal"]), &exact, 1e-6);
        assert_eq!(found["method"], method);
    }
    let edges = ["graph", "filter", "--graph", "edges.csv", "--signal", "signal.csv", "--sizes", "sizes.csv"];
    let found = bench.json(&[&edges[..], &strength].concat());
    near(&matrix(&found["signal"]), &exact, 1e-12);
    // What is printed and what is written read back as the same numbers.
    let printed = bench.good(&with(&["--beta1", "0.1", "--beta2", "0.1"]));
    let facts = bench.good(&with(&["--beta1", "0.1", "--beta2", "0.1", "--out", "psi.csv"]));
    assert_eq!(bench.read("psi.csv"), printed);
    assert!(facts.contains("psi.csv") && facts.contains("exact"), "{facts}");
    bench.write("signal.csv", &printed);
    let again = bench.json(&with(&["--beta1", "0", "--json"]));
    assert_eq!(matrix(&again["signal"]), exact);
}

#[test]
fn every_filter_keeps_constants_but_the_printed_one() {
    let bench = prepared();
    bench.write("signal.csv", "2,5\n2,5\n2,5\n");
    for (name, strength) in [
        ("sound", ["--beta1", "0.5"]),
        ("paper-10", ["--beta1", "0.5"]),
        ("paper-12", ["--beta2", "0.5"]),
        ("hard", ["--tau", "2"]),
        ("paper-16", ["--tau", "2"]),
        ("heat", ["--beta1", "0.5"]),
        ("tv", ["--beta1", "0.5"]),
        ("knn-mean", ["--neighbours", "1"]),
    ] {
        let found = bench.json(&with(&[&["--filter", name, "--json"][..], &strength].concat()));
        near(&matrix(&found["signal"]), &vec![vec![2.0, 5.0]; 3], 1e-12);
        assert_eq!(found["filter"], name);
    }
    let found = bench.json(&with(&["--filter", "paper-13", "--beta1", "0", "--json"]));
    near(&matrix(&found["signal"])[..1], &[vec![2.0 * 78.0 / 147.0, 5.0 * 78.0 / 147.0]], 1e-12);
}

#[test]
fn what_cannot_be_filtered_is_refused() {
    let bench = prepared();
    let refused = |more: &[&str], words: &[&str]| bench.refused(&with(more), words);
    refused(&["--filter", "sond", "--beta1", "1"], &["unknown filter \"sond\"", "did you mean `sound`"]);
    refused(&["--beta1", "-1"], &["--beta1", "must be 0 or above"]);
    refused(&["--beta1", "1", "--method", "cgg"], &["unknown method", "did you mean `cg`"]);
    refused(&[], &["sound needs --beta1 and --beta2"]);
    refused(&["--tau", "1"], &["sound has no --tau"]);
    refused(&["--filter", "hard", "--tau", "4"], &["tau is 4", "from 1 to the number of clients, 3"]);
    refused(&["--filter", "hard", "--tau", "0"], &["tau is 0"]);
    refused(&["--filter", "knn-mean", "--neighbours", "3"], &["3 neighbours are too many", "2 others"]);
    refused(
        &["--filter", "heat", "--beta1", "1", "--method", "cg"],
        &["heat", "choose the method chebyshev"],
    );
    refused(&["--beta1", "1", "--out", "psi.txt"], &["psi.txt", "as CSV"]);
    let bad = |name: &str, text: &str, words: &[&str]| {
        let bench = prepared();
        bench.write(name, text);
        bench.refused(&with(&["--beta1", "1"]), words);
    };
    bad("graph.csv", "0,1,0\n1,0,2\n", &["graph.csv", "2 rows and 3 columns"]);
    bad(
        "graph.csv",
        "0,1,0\n1,0,2\n0,3,0\n",
        &["not symmetric", "row 2, column 3 is 2", "row 3, column 2 is 3"],
    );
    bad("graph.csv", "0,-1,0\n-1,0,2\n0,2,0\n", &["row 1, column 2 is -1", "0 or more"]);
    bad("graph.csv", "0,1,0\n1,0,nan\n0,nan,0\n", &["row 2, column 3 is NaN"]);
    bad("graph.csv", "0,1,0\n1,0,two\n0,2,0\n", &["line 2, column 3: \"two\" is not a number"]);
    bad("sizes.csv", "78\n27\n", &["sizes.csv", "2 x 1 sizes for 3 clients"]);
    bad("sizes.csv", "78\n0\n42\n", &["size of client 2 is 0", "above 0"]);
    bad("signal.csv", "1\n2\n", &["signal.csv", "2 rows", "3 clients"]);
    bad("signal.csv", "1\ninf\n2\n", &["row 2, column 1 is inf"]);
    bad("signal.csv", "1,2\n3\n4,5\n", &["line 2 has 1 numbers", "2"]);
    bad("signal.csv", "", &["empty"]);
}

/// Clients 0 and 3 and clients 1 and 2 are kin by their features; labels say nothing of it.
fn records() -> String {
    let mut text = String::from("client,x,y,label\n");
    for client in 0..4u8 {
        for record in 0..6u8 {
            let shift = if client % 3 == 0 { 0.0 } else { 10.0 } + f64::from(client / 2) * 0.1;
            let (x, y) = (shift + f64::from(record * record % 5), f64::from(record) - shift);
            let label = ["red", "green", "blue"][usize::from((client * record) % 3)];
            let line = format!("ward {client},{x},{y},{label}\n");
            text.push_str(&line);
        }
    }
    text
}

#[test]
fn kin_are_joined() {
    let bench = Bench::new();
    bench.write("wards.csv", records());
    let base = ["graph", "from-data", "wards.csv", "--target", "label", "--neighbours", "1", "--json"];
    let found = bench.json(&base);
    assert_eq!(found["nodes"], serde_json::json!(["ward 0", "ward 1", "ward 2", "ward 3"]));
    assert_eq!(found["sizes"], serde_json::json!([6, 6, 6, 6]));
    assert_eq!((&found["statistics"], &found["edges"]), (&8.into(), &6.into()));
    let weights = matrix(&found["adjacency"]);
    assert!(weights[0][3] > 0.1 && weights[1][2] > 0.1);
    // The weak weight alone: 0.001 / 4.
    assert!((weights[0][2] - 0.00025).abs() < 1e-15);
    let both = bench.json(&[&base[..], &["--statistics", "features,labels"]].concat());
    assert_eq!(both["statistics"], 11);
    let printed = matrix(&bench.json(&[&base[..], &["--kind", "paper-28"]].concat())["adjacency"]);
    assert!(printed[0][1] > 5.0 * printed[0][3], "(28) joins the clients that differ");
    let pearson = matrix(&bench.json(&[&base[..], &["--kind", "pearson"]].concat())["adjacency"]);
    assert!(pearson[1][2] > 0.5 && pearson[1][2] <= 1.0);
}

#[test]
fn a_graph_from_data_is_filtered_over() {
    let bench = Bench::new();
    bench.write("wards.csv", records());
    bench.write("models.csv", "1\n10\n20\n3\n");
    for out in ["kin.graphml", "kin.npz", "kin.json", "kin.csv"] {
        let made = ["graph", "from-data", "wards.csv", "--target", "label", "--neighbours", "1"];
        let text = bench.good(&[&made[..], &["--out", out, "--sizes", "sizes.csv", "--weak", "0"]].concat());
        assert!(text.contains("ward 0") && text.contains(out), "{text}");
        assert_eq!(bench.read("sizes.csv"), "6\n6\n6\n6\n");
        let filter = ["graph", "filter", "--graph", out, "--signal", "models.csv", "--sizes", "sizes.csv"];
        let found = bench.json(&[&filter[..], &["--beta1", "1e12", "--json"]].concat());
        near(&matrix(&found["signal"]), &[[2.0], [15.0], [15.0], [2.0]].map(|x| x.to_vec()), 1e-6);
        assert_eq!(found["nodes"][3], "ward 3");
    }
}

#[test]
fn records_that_make_no_graph_are_refused() {
    let bench = Bench::new();
    bench.write("wards.csv", records());
    let refused = |more: &[&str], words: &[&str]| {
        bench.refused(&[&["graph", "from-data", "wards.csv"][..], more].concat(), words);
    };
    refused(&[], &["column \"label\"", "\"red\" is not a number", "--target"]);
    refused(&["--client", "clint"], &["no column \"clint\"", "did you mean `client`"]);
    refused(&["--target", "lable"], &["no column \"lable\"", "did you mean `label`"]);
    refused(&["--statistics", "labels"], &["needs --target"]);
    refused(&["--target", "label", "--neighbours", "0"], &["0 neighbours"]);
    refused(&["--target", "label", "--weak", "-1"], &["--weak", "must be 0 or above"]);
    refused(&["--target", "label", "--kind", "pearsn"], &["--kind", "pearson"]);
    refused(&["--target", "label", "--out", "kin.xyz"], &["kin.xyz", ".xyz"]);
    bench.write("one.csv", "client,x\na,1\na,2\n");
    bench.refused(&["graph", "from-data", "one.csv"], &["1 clients are too few"]);
    bench.write("gap.csv", "client,x\na,1\nb,\n");
    bench.refused(&["graph", "from-data", "gap.csv"], &["gap.csv:3", "missing"]);
    bench.refused(&["graph", "from-data", "none.csv"], &["none.csv"]);
}
