//! `fedkin graph learn`: exact cases, every kind of input, what is chosen, what is written and what is refused.

use crate::bench::Bench;
use serde_json::Value;
use std::fmt::Write as _;
use std::path::PathBuf;

const GOLDEN: [(&str, &str); 3] = [
    ("d5_i2.json", include_str!("../../../method/tests/golden/d5_i2.json")),
    ("d8_i3.json", include_str!("../../../method/tests/golden/d8_i3.json")),
    ("d8_i3_fused.json", include_str!("../../../method/tests/golden/d8_i3_fused.json")),
];

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("no number: {value}"))
}

/// Three clients with twelve records each on a ring of five nodes, from a small generator of this file.
fn table() -> String {
    let mut state = 7u64;
    let mut next = move || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as f64 / f64::from(1u32 << 31) - 0.5
    };
    let mut text = String::from("who,a,b,c,d,e\n");
    for client in ["north", "south", "west/1"] {
        for _ in 0..12 {
            let own: Vec<f64> = (0..5).map(|_| next()).collect();
            let smooth: Vec<String> =
                (0..5).map(|at| format!("{:.6}", own[at] + 0.8 * own[(at + 1) % 5])).collect();
            let _ = writeln!(text, "{client},{}", smooth.join(","));
        }
    }
    text
}

/// The records of one client, with another character between the values.
fn part(client: &str, between: &str) -> String {
    let rows = table();
    let rows = rows.lines().filter_map(|row| row.strip_prefix(&format!("{client},")).map(str::to_string));
    rows.map(|row| row.replace(',', between) + "\n").collect()
}

#[test]
fn exact_cases_are_solved() {
    let bench = Bench::new();
    for (name, text) in GOLDEN {
        bench.write(name, text);
        let golden: Value = serde_json::from_str(text).unwrap();
        let given = |key: &str| golden[key].to_string();
        let (alpha, beta, rho, lambda) = (given("alpha"), given("beta"), given("rho"), given("lam"));
        let options = ["--alpha", &alpha, "--beta", &beta, "--rho", &rho, "--lambda", &lambda, "--json"];
        let learnt = bench.json(&[&["graph", "learn", name], &options[..]].concat());
        let best = number(&golden["objective"]);
        assert!((number(&learnt["objective"]) - best).abs() <= 1e-8 * best.abs(), "{name}: {learnt}");
        assert!(number(&learnt["kkt"]) < 1e-8, "{name}: {learnt}");
        assert_eq!(learnt["method"], "fedgl");
        let alone = ["graph", "learn", name, "--alone", "--alpha", &alpha, "--beta", &beta, "--json"];
        let alone = bench.json(&alone);
        let best: f64 = golden["igl_objective"].as_array().unwrap().iter().map(number).sum();
        assert!((number(&alone["objective"]) - best).abs() <= 1e-8 * best.abs(), "{name}: {alone}");
        assert!(number(&alone["kkt"]) < 1e-8 && alone["consensus"].is_null(), "{name}: {alone}");
        // One client of the case, as a list of its own.
        bench.write("one.json", serde_json::json!({ "zbar": golden["zbar"][0] }).to_string());
        let one = bench.json(&["graph", "learn", "one.json", "--alpha", &alpha, "--beta", &beta, "--json"]);
        let best = number(&golden["igl_objective"][0]);
        assert!((number(&one["objective"]) - best).abs() <= 1e-8 * best.abs(), "{name}: {one}");
        assert_eq!((&one["method"], &one["clients"][0]["name"]), (&"igl".into(), &"one".into()));
        assert!(number(&one["kkt"]) < 1e-8);
    }
}

#[test]
fn the_same_records_in_any_form_give_the_same_graphs() {
    let bench = Bench::new();
    bench.write("all.csv", table());
    bench.write("north.csv", String::from("a,b,c,d,e\n") + &part("north", ","));
    bench.write("south.1D", String::from("#a #b #c #d #e\n") + &part("south", " "));
    bench.write("west.csv", String::from("a,b,c,d,e\n") + &part("west/1", ","));
    let whole = bench.json(&["graph", "learn", "all.csv", "--client", "who", "--json"]);
    let parts = bench.json(&["graph", "learn", "north.csv", "south.1D", "west.csv", "--json"]);
    for key in ["objective", "kkt", "rounds", "beta", "rho", "lambda", "consensus"] {
        assert_eq!(whole[key], parts[key], "{key}");
    }
    for key in ["objective", "kkt", "rounds", "alpha", "beta", "rho", "lambda"] {
        assert!(whole[key].is_number(), "{key}: {whole}");
    }
    assert!(number(&whole["kkt"]) < 1e-9);
    let clients = whole["clients"].as_array().unwrap();
    let names: Vec<&str> = clients.iter().map(|client| client["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["north", "south", "west/1"]);
    for client in clients {
        for key in ["edges", "density", "components", "gamma", "distance", "records"] {
            assert!(client[key].is_number(), "{key}: {client}");
        }
    }
    assert!(whole["consensus"]["edges"].is_number() && whole["consensus"]["density"].is_number());
    // Nodes by name, and records from the first on.
    let some = ["graph", "learn", "all.csv", "--client", "who", "--nodes", "d,a,b", "--limit", "5", "--json"];
    let some = bench.json(&some);
    assert_eq!((&some["nodes"], &some["clients"][0]["records"]), (&3.into(), &5.into()));
    let text = bench.good(&["graph", "learn", "all.csv", "--client", "who"]);
    for words in
        ["3 clients and their consensus, 5 nodes", "not given", "below the tolerance of 1e-9", "gamma"]
    {
        assert!(text.contains(words), "no {words:?} in\n{text}");
    }
}

#[test]
fn densities_pieces_and_selection() {
    let bench = Bench::new();
    bench.write("all.csv", table());
    let with = |more: &[&'static str]| [&["graph", "learn", "all.csv", "--client", "who"], more].concat();
    let dense = bench.json(&with(&["--alone", "--density", "0.7", "--json"]));
    let clients = dense["clients"].as_array().unwrap();
    let mean = clients.iter().map(|client| number(&client["density"])).sum::<f64>() / 3.0;
    assert!((mean - 0.7).abs() < 0.1, "{dense}");
    bench.refused(&with(&["--density", "0.01"]), &["no beta gives a density of 0.01", "it runs from"]);
    // Two pairs of near nodes, far from each other: the graph falls apart.
    bench.write("pieces.json", r#"{"zbar": [0.01, 9, 9, 9, 9, 0.01]}"#);
    let pieces = bench.json(&["graph", "learn", "pieces.json", "--beta", "1e-4", "--json"]);
    assert_eq!(pieces["clients"][0]["components"], 2);
    let warning = pieces["warnings"][0].as_str().unwrap();
    for words in ["\"pieces\"", "2 pieces", "raise --beta"] {
        assert!(warning.contains(words), "{warning}");
    }
    assert!(bench.good(&["graph", "learn", "pieces.json", "--beta", "1e-4"]).contains("warning:"));
    let selected = bench.json(&with(&["--select", "--json"]));
    assert!(number(&selected["selected"]["tried"]) > 5.0 && number(&selected["kkt"]) < 1e-9, "{selected}");
    assert!(selected["selected"]["agreement"].is_number());
    assert_eq!(bench.json(&with(&["--select", "--json"])), selected);
    let fixed = bench.json(&with(&["--select", "--rho", "0.25", "--threshold", "0.1", "--json"]));
    assert_eq!((&fixed["rho"], &fixed["threshold"]), (&0.25.into(), &0.1.into()));
    assert_eq!(fixed["chosen"]["rho"], "given");
}

#[test]
fn the_folder_holds_graphs_that_can_be_read_again() {
    let bench = Bench::new();
    bench.write("all.csv", table());
    let learn = |out: &str| {
        bench.json(&["graph", "learn", "all.csv", "--client", "who", "--seed", "3", "--out", out, "--json"])
    };
    let learnt = learn("out");
    for file in
        ["consensus.npz", "graphs.svg", "graphs.png", "heat.png", "summary.json", "graphs/west-1.graphml"]
    {
        assert!(bench.path("out").join(file).exists(), "{file}");
    }
    let read = bench.json(&["graph", "inspect", "out/graphs/north.npz", "out/consensus.graphml", "--json"]);
    assert_eq!(read["graphs"][0]["edges"], learnt["clients"][0]["edges"]);
    assert_eq!(read["graphs"][1]["edges"], learnt["consensus"]["edges"]);
    // The same call gives the same bytes, in another folder and in the same.
    learn("again");
    learn("out");
    let files = bench.files();
    let below = |folder: &str| -> Vec<(PathBuf, &Vec<u8>)> {
        let inside = files.iter().filter_map(|(path, bytes)| {
            path.strip_prefix(folder).ok().map(|path| (path.to_path_buf(), bytes))
        });
        inside.collect()
    };
    assert!(below("out").len() >= 12 && below("out") == below("again"));
    // What an earlier call left of other clients goes.
    bench.good(&[
        "graph", "learn", "all.csv", "--client", "who", "--nodes", "a,b,c", "--alone", "--out", "out",
    ]);
    assert!(!bench.path("out/consensus.npz").exists());
    bench.refused(&["graph", "learn", "all.csv", "--client", "who", "--out", "."], &["has files in it"]);
}

#[test]
fn one_release_with_noise() {
    let bench = Bench::new();
    bench.write("all.csv", table());
    let with = |more: &[&'static str]| {
        [&["graph", "learn", "all.csv", "--client", "who", "--epsilon", "5", "--clip", "2"], more].concat()
    };
    let learnt = bench.json(&with(&["--seed", "1", "--json"]));
    assert_eq!(learnt, bench.json(&with(&["--seed", "1", "--json"])));
    let privacy = &learnt["privacy"];
    let figures = ["epsilon", "delta", "clip"].map(|key| number(&privacy[key]));
    assert_eq!(figures, [5.0, 1e-5, 2.0]);
    assert!(learnt["warnings"][0].as_str().unwrap().contains("follows from --seed"), "{learnt}");
    let text = bench.good(&with(&[]));
    for words in ["epsilon 5, delta 1e-5, clip 2", "one scatter matrix of 5 x 5 with noise"] {
        assert!(text.contains(words), "no {words:?} in\n{text}");
    }
    bench.refused(&with(&["--select"]), &["--select looks at the records again"]);
    bench.refused(&with(&["--standardise"]), &["--standardise", "numbers that are no secret"]);
    bench.write("z.json", r#"{"zbar": [1, 2, 3]}"#);
    bench.refused(&["graph", "learn", "z.json", "--epsilon", "1", "--clip", "1"], &["give the signals"]);
}

#[test]
fn what_is_wrong_is_said() {
    let bench = Bench::new();
    let learn =
        |more: &[&'static str], words: &[&str]| bench.refused(&[&["graph", "learn"], more].concat(), words);
    bench.write("all.csv", table());
    bench.write("one.csv", "a\n1\n2\n");
    bench.write("constant.csv", "a,b\n1,1\n2,2\n");
    bench.write("nan.csv", "a,b\n1,2\n3,nan\n");
    bench.write("nan.1D", "1 2\n3 inf\n");
    bench.write("other.csv", "a,b,x\n1,2,3\n2,1,5\n");
    bench.write("abc.csv", "a,b,c\n1,2,3\n2,1,5\n");
    bench.write("deep/abc.csv", "a,b,c\n1,2,3\n2,1,5\n");
    bench.write("z.json", r#"{"zbar": [1, 2, 3]}"#);
    bench.write("four.json", r#"{"zbar": [1, 2, 3, 4]}"#);
    bench.write("negative.json", r#"{"zbar": [[1, 2, 3], [1, -2, 3]]}"#);
    bench.write("zero.json", r#"{"zbar": [0, 0, 0]}"#);
    learn(&["one.csv"], &["\"one\"", "one node only", "at least 2"]);
    learn(&["constant.csv"], &["\"constant\"", "the signals are constant"]);
    learn(&["zero.json"], &["\"zero\"", "constant"]);
    learn(&["nan.csv"], &["nan.csv:3", "\"b\""]);
    learn(&["nan.1D"], &["nan.1D:2", "\"inf\""]);
    learn(&["abc.csv", "other.csv"], &["\"other\"", "\"abc\"", "only \"abc\" has c", "only \"other\" has x"]);
    learn(&["abc.csv", "deep/abc.csv"], &["abc.csv", "deep/abc.csv", "both be client \"abc\""]);
    learn(&["abc.csv", "z.json"], &["z.json holds mean squared differences", "abc.csv holds signals"]);
    learn(&["four.json"], &["four.json", "4 distances"]);
    learn(&["negative.json"], &["negative.json", "-2"]);
    learn(&["nowhere.csv"], &["nowhere.csv"]);
    learn(&["all.csv"], &["\"who\"", "client column"]);
    learn(&["all.csv", "--client", "whom"], &["whom"]);
    learn(&["all.csv", "abc.csv", "--client", "who"], &["--client who is for one table"]);
    learn(&["abc.csv", "--nodes", "a,z"], &["\"z\""]);
    learn(&["abc.csv", "--nodes", "a,a"], &["\"a\" twice"]);
    learn(&["z.json", "--select"], &["--select holds out records"]);
    learn(&["z.json", "--limit", "3"], &["--limit is for signals"]);
    learn(&["abc.csv", "--select"], &["\"abc\"", "at least 8"]);
    learn(&["abc.csv", "--rho", "1"], &["tie several graphs"]);
    learn(&["abc.csv", "--beta", "1e-300"], &["another scale than the data"]);
    learn(&["abc.csv", "--beta", "1", "--density", "0.5"], &["cannot be used with"]);
    learn(&["abc.csv", "--epsilon", "1"], &["--clip"]);
    learn(&["abc.csv", "--density", "2"], &["at most 1"]);
}
