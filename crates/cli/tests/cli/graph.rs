//! `fedkin graph`: known figures of small graphs in every format, and what is refused.

use crate::bench::Bench;
use serde_json::Value;

/// Two triangles, a bridge between them.
const BRIDGE: &str = "a,b,weight\na,b,1\nb,c,1\na,c,1\nc,d,1\nd,e,1\ne,f,1\nd,f,1\n";
const LABELS: &str = "node,label\na,left\nb,left\nc,left\nd,right\ne,right\nf,right\n";

fn near(value: &Value, expected: f64) {
    let found = value.as_f64().unwrap_or_else(|| panic!("no number: {value}"));
    assert!((found - expected).abs() < 1e-12, "{found} is not {expected}");
}

#[test]
fn a_graph_at_a_glance() {
    let bench = Bench::new();
    bench.write("bridge.csv", BRIDGE);
    let shown = bench.json(&["graph", "inspect", "bridge.csv", "--json"]);
    let graph = &shown["graphs"][0];
    assert_eq!((&graph["nodes"], &graph["edges"]), (&6.into(), &7.into()));
    near(&graph["density"], 7.0 / 15.0);
    near(&graph["degrees"]["mean"], 14.0 / 6.0);
    assert_eq!(graph["strongest"][0]["node"], "c");
    assert_eq!(graph["components"].as_array().unwrap().len(), 1);
    let root = 17f64.sqrt();
    near(&graph["spectrum"]["algebraic_connectivity"], (5.0 - root) / 2.0);
    near(&graph["spectrum"]["largest"], f64::midpoint(5.0, root));
    let text = bench.good(&["graph", "inspect", "bridge.csv"]);
    for words in
        ["7, density 0.4667", "2.000 to 3.000, mean 2.333", "0.4384 (algebraic)", "the graph is connected"]
    {
        assert!(text.contains(words), "no {words:?} in\n{text}");
    }
    // The pieces of a graph whose bridge is weak, above a threshold.
    bench.write("weak.csv", BRIDGE.replace("c,d,1", "c,d,0.01"));
    let text = bench.good(&["graph", "inspect", "weak.csv", "--threshold", "0.1"]);
    for words in ["6 above 0.1,", "2: the graph is not connected", "3 nodes: d, e, f"] {
        assert!(text.contains(words), "no {words:?} in\n{text}");
    }
    let table = bench.good(&["graph", "inspect", "bridge.csv", "weak.csv"]);
    assert!(table.starts_with("graph ") && table.contains("\nweak.csv "), "{table}");
}

#[test]
fn every_format_is_the_same_graph() {
    let bench = Bench::new();
    bench.write("g.csv", "a,b,weight\n1,2,0.5\n2,3,2\n1,4,1\n");
    bench.write("g.json", r#"{"nodes": ["1", "2", "3", "4"], "weights": [0.5, 0, 1, 2, 0, 0]}"#);
    bench.write("w.json", r#"{"w": [0.5, 0, 1, 2, 0, 0]}"#);
    bench.write("g.txt", "1 2 0.5\r\n2 1 0.1\r\n2 3 2\r\n4 1 1\r\n");
    let edge = |a: u8, b: u8, weight: &str| {
        format!(r#"<edge source="x{a}" target="x{b}"><data key="d9">{weight}</data></edge>"#)
    };
    let nodes: Vec<String> =
        (1..=4).map(|id| format!(r#"<node id="x{id}"><data key="n">{id}</data></node>"#)).collect();
    let nodes = nodes.concat();
    let edges = edge(1, 2, "0.5") + &edge(3, 2, "2.0") + &edge(4, 1, "1");
    bench.write(
        "g.graphml",
        format!(
            r#"<graphml><key id="d9" for="edge" attr.name="weight"/><key id="n" for="node" attr.name="name"/><graph>{nodes}{edges}</graph></graphml>"#
        ),
    );
    for file in ["g.csv", "g.json", "w.json", "g.txt", "g.graphml"] {
        let found = bench.json(&["graph", "compare", file, "--truth", "g.csv", "--json"]);
        for key in ["mcc", "precision", "recall", "f1", "scale"] {
            near(&found[key], 1.0);
        }
        near(&found["relative_error"], 0.0);
        assert_eq!(found["by_place"], file == "w.json");
    }
}

#[test]
fn judged_by_the_truth() {
    let bench = Bench::new();
    bench.write("truth.json", r#"{"nodes": ["a", "b", "c", "d"], "weights": [1, 2, 0, 0, 3, 0]}"#);
    // The same nodes in another order, a multiple of the truth with one edge too many.
    bench.write("found.csv", "from,to,weight\nd,c,0.5\nb,d,1.5\nc,a,1\nb,a,0.5\nb,c,0.00001\n");
    let arguments = ["graph", "compare", "found.csv", "--truth", "truth.json"];
    let found = bench.json(&[&arguments[..], &["--json"]].concat());
    let counts = ["hits", "extra", "missed", "absent"].map(|key| found[key].as_u64().unwrap());
    assert_eq!(counts, [3, 1, 0, 2]);
    near(&found["mcc"], 6.0 / (4.0f64 * 3.0 * 3.0 * 2.0).sqrt());
    near(&found["precision"], 0.75);
    let raw = ((0.25 + 2.25 + 1.0 + 0.25 + 1e-10) / 14.0f64).sqrt();
    near(&found["relative_error"], raw);
    let size = 0.25 + 2.25 + 1.0 + 0.25 + 1e-10;
    near(&found["scale"], 7.0 / size);
    near(&found["scale_free_error"], ((14.0 - 49.0 / size) / 14.0).sqrt());
    let text = bench.good(&arguments);
    assert!(text.contains("4 found, 3 of them true; 3 true, 0 of them missed"), "{text}");
    let fine = bench.json(&[&arguments[..], &["--json", "--threshold", "0"]].concat());
    assert_eq!(fine["extra"], 2);
    // A truth without an edge has no relative error.
    bench.write("empty.csv", "a,b,weight\na,b,0\nc,d,0\n");
    let found = bench.json(&["graph", "compare", "found.csv", "--truth", "empty.csv", "--json"]);
    assert_eq!((&found["relative_error"], &found["mcc"]), (&Value::Null, &0.0.into()));
}

#[test]
fn communities_and_labels() {
    let bench = Bench::new();
    bench.write("bridge.csv", BRIDGE);
    bench.write("labels.csv", LABELS);
    let arguments = ["graph", "communities", "bridge.csv", "--labels", "labels.csv"];
    let found = bench.json(&[&arguments[..], &["--json"]].concat());
    near(&found["modularity"], 5.0 / 14.0);
    for key in ["nmi", "ri", "fmi"] {
        near(&found[key], 1.0);
    }
    assert_eq!(found["communities"][1]["nodes"], serde_json::json!(["d", "e", "f"]));
    let text = bench.good(&arguments);
    assert!(text.contains("0.3571 at resolution 1") && text.contains("3 nodes (3 left): a, b, c"), "{text}");
    // One label off: pairs together 4 in both, 6 and 7 in one.
    bench.write("off.csv", LABELS.replace("c,left", "c,right"));
    let found = bench.json(&["graph", "communities", "bridge.csv", "--labels", "off.csv", "--json"]);
    near(&found["ri"], (15.0 + 2.0 * 4.0 - 6.0 - 7.0) / 15.0);
    near(&found["fmi"], 4.0 / 42f64.sqrt());
    let bare = bench.json(&["graph", "communities", "bridge.csv", "--seed", "9", "--json"]);
    assert!(bare.get("nmi").is_none() && bare["communities"].as_array().unwrap().len() == 2);
    let fine = bench.json(&["graph", "communities", "bridge.csv", "--resolution", "20", "--json"]);
    assert_eq!(fine["communities"].as_array().unwrap().len(), 6);
}

#[test]
fn what_is_wrong_is_said() {
    let bench = Bench::new();
    bench.write("bridge.csv", BRIDGE);
    bench.write("other.csv", BRIDGE.replace('f', "g"));
    bench.write("negative.csv", "a,b,weight\na,b,-1\n");
    bench.write("one.json", r#"{"weights": []}"#);
    bench.write("many.json", r#"{"w": [[1, 2, 3], [1, 2, 3]]}"#);
    bench.write("g.graphml", "<graphml>");
    bench.write("g.npz", "PK");
    bench.write("g.txt", "1 2 x\n");
    bench.write("few.csv", "node,label\na,left\n");
    bench.write("binary.json", [0xff, 0xfe, 0]);
    bench.refused(&["graph", "inspect", "nowhere.csv"], &["nowhere.csv"]);
    bench.refused(&["graph", "inspect", "bridge.cvs"], &["bridge.cvs", "csv"]);
    bench.refused(
        &["graph", "inspect", "bridge.csv", "negative.csv"],
        &["negative.csv:2", "\"a\" and \"b\" is -1"],
    );
    bench.refused(&["graph", "inspect", "one.json"], &["one.json", "one node", "at least two"]);
    bench.refused(&["graph", "inspect", "many.json"], &["several graphs"]);
    bench.refused(&["graph", "inspect", "g.graphml"], &["not GraphML"]);
    bench.refused(&["graph", "inspect", "g.npz"], &["NPZ"]);
    bench.refused(&["graph", "inspect", "g.txt"], &["g.txt", "line 1", "\"x\""]);
    bench.refused(&["graph", "inspect", "binary.json"], &["UTF-8"]);
    bench.refused(&["graph", "inspect", "bridge.csv", "--threshold", "-1"], &["--threshold", "0 or above"]);
    bench.refused(
        &["graph", "compare", "bridge.csv", "--truth", "other.csv"],
        &["other.csv has no \"f\"", "bridge.csv has no \"g\""],
    );
    bench.refused(&["graph", "compare", "bridge.csv"], &["--truth"]);
    bench.refused(
        &["graph", "communities", "bridge.csv", "--labels", "few.csv"],
        &["few.csv", "no label for \"b\", \"c\", \"d\", \"e\", \"f\""],
    );
    bench.refused(&["graph", "communities", "bridge.csv", "--resolution", "0"], &["--resolution", "above 0"]);
}
