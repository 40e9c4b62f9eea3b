//! Signals from a user's files: tables without a target, one file per client, distances.

use crate::Bench;
use crate::formats::npz_bytes;
use crate::tables::sample_parquet;
use fedkin_data::{
    Part, Signals, SignalsOptions, Task, distances_world, holds_distances, load_part, native, node_names,
    pair_names, read_distances, read_signals, read_signals_by_client, read_signals_of, signals_world,
};
use std::io::Write;
use std::path::PathBuf;
use tempfile::TempDir;

const TABLE: &str = "site,a,b,c\nrome,1,2,3\noslo,4,5,7\nrome,2,2,2\noslo,0,-1,1e1\n";

fn table(content: &str) -> Bench {
    Bench::new("csv").file("t.csv", content).set("path", "t.csv").set("client", "site").signals()
}

fn file(name: &str, bytes: impl AsRef<[u8]>) -> (TempDir, PathBuf) {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join(name);
    std::fs::write(&path, bytes).unwrap();
    (folder, path)
}

fn floats(values: &[f64]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}

fn packed(text: &str) -> Vec<u8> {
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(text.as_bytes()).unwrap();
    gzip.finish().unwrap()
}

#[test]
fn a_table_without_a_target_is_signals_on_its_columns() {
    let world = table(TABLE).world();
    assert_eq!(world.federation.client_names(), ["oslo", "rome"]);
    assert_eq!(world.schema.column_names(), ["a", "b", "c"]);
    assert_eq!(world.schema.target, "");
    assert_eq!(world.train[1].features(), [1.0, 2.0, 3.0, 2.0, 2.0, 2.0]);
    assert!(world.train.iter().all(|data| data.targets().iter().all(|target| *target == 0.0)));
    assert!(world.truth.is_none() && world.nodes.is_none());
    let chosen = table(TABLE).set("features", vec!["c", "a"]).world();
    assert_eq!(chosen.train[0].row(0), [7.0, 4.0]);
}

#[test]
fn other_tasks_still_need_a_target_and_signals_refuse_one() {
    table(TABLE)
        .set("target", "c")
        .refused(&["`target`: a graph is learnt from signals, which have no target", "\"c\""]);
    let mut bench = table(TABLE);
    bench.task = Task::Regression;
    bench.refused(&["`target`: this key is required"]);
    bench.task = Task::Classification;
    bench.refused(&["`target`: this key is required"]);
}

#[test]
fn held_out_records_follow_the_split() {
    let split = "site,part,a,b\nx,train,1,2\nx,test,5,6\ny,train,3,5\ny,train,4,4\n";
    let world = table(split).set("split", "part").world();
    assert_eq!(world.test[0].as_ref().unwrap().features(), [5.0, 6.0]);
    assert!(world.test[1].is_none());
    let world = table(TABLE).set("test_fraction", 0.5).world();
    assert!(world.test.iter().all(|test| test.as_ref().is_some_and(|test| test.rows() == 1)));
}

#[test]
fn tables_that_are_no_signals_are_refused() {
    table("site,a\nx,1\nx,2\n").refused(&["t.csv", "one node only, \"a\"", "at least 2"]);
    table("site,a,b\nx,1,2\ny,3,3\ny,4,4\n").refused(&["client \"y\"", "constant", "distances", "zero"]);
    table("site,a,b\nx,1,2\nx,NaN,2\n").refused(&["t.csv:3: column \"a\"", "missing"]);
    // Both nodes of y move alike: only by its own scale do they become the same.
    let alike = table("site,a,b\nx,1,2\nx,2,0\ny,1,10\ny,2,20\n");
    assert_eq!(alike.world().train.len(), 2);
    alike.set("standardise", true).refused(&["client \"y\"", "constant", "standardise"]);
    // The same, where the scales leave differences of rounding only.
    let nearly = table("site,a,b\nx,1,2\nx,2,0\nx,0,0\ny,1,0.1\ny,2,0.2\ny,7,0.7\n");
    nearly.set("standardise", true).refused(&["client \"y\"", "constant"]);
    let schema = "[[features]]\nname = 'a'\ncategories = ['1', '2']\n[[features]]\nname = 'b'\n";
    let bench = table("site,a,b\nx,1,2\nx,2,0\n").file("s.toml", schema).set("schema", "s.toml");
    bench.refused(&["\"a\" categories", "a node holds one number"]);
}

#[test]
fn a_part_of_a_federation_reads_the_same_signals() {
    let bench = table(TABLE);
    let world = bench.world();
    let values = fedkin_settings::Values::check(native().source("csv").unwrap().params, &bench.data).unwrap();
    let names = world.federation.client_names().to_vec();
    let part = Part {
        registry: native(),
        source: "csv",
        values: &values,
        base: bench.folder.path(),
        task: Task::Signals,
        seed: 7,
        schema: &world.schema,
        constants: &[],
        names: &names,
        wanted: &[1],
    };
    let clients = load_part(&part).unwrap();
    assert_eq!((clients.len(), &clients[0].train), (1, &world.train[1]));
}

#[test]
fn every_format_of_signals_is_read() {
    let expected = [1.0, 2.0, 3.5, -4.0];
    let (_a, csv) = file("x.csv", "u,v\n1,2\n3.5,-4\n");
    let signals = read_signals(&csv).unwrap();
    assert_eq!((signals.nodes.clone(), signals.records()), (vec!["u".to_string(), "v".into()], 2));
    assert_eq!(signals.rows, expected);
    let (_b, text) = file("x.1D", "# made by hand\n#2001\t#2002\n 1 2\n\n3.5\t-4 \n# the end\n");
    let (_c, gzip) = file("x.1D.gz", packed("#2001\t#2002\n1\t2\n3.5\t-4\n"));
    for path in [&text, &gzip] {
        let signals = read_signals(path).unwrap();
        assert_eq!(
            (signals.nodes, signals.rows.as_slice()),
            (vec!["2001".to_string(), "2002".into()], &expected[..])
        );
    }
    let (_d, bare) = file("x.1d", "1 2\n3.5 -4\n");
    assert_eq!(read_signals(&bare).unwrap().nodes, node_names(2));
    let array = npz_bytes(&[
        ("times", "<f8", "(2,)", &floats(&[0.0, 1.0])),
        ("x", "<f8", "(2, 2)", &floats(&expected)),
    ]);
    let (_e, npz) = file("x.npz", array);
    let signals = read_signals(&npz).unwrap();
    assert_eq!((signals.nodes, signals.rows.as_slice()), (node_names(2), &expected[..]));
    let (_f, parquet) = file("x.parquet", sample_parquet());
    let wanted = ["age".to_string()];
    let signals = read_signals_of(&parquet, &wanted).unwrap();
    assert_eq!((signals.nodes.as_slice(), signals.records() > 1), (&wanted[..], true));
}

#[test]
fn files_that_are_no_signals_are_refused_with_the_place() {
    let message = |name: &str, bytes: &[u8]| {
        let (_folder, path) = file(name, bytes);
        read_signals(&path).unwrap_err().to_string()
    };
    let has = |text: String, parts: &[&str]| {
        assert!(parts.iter().all(|part| text.contains(part)), "expected {parts:?} in: {text}");
    };
    has(message("a.csv", b"u,v\n1,2\n1,nan\n"), &["a.csv:3", "column \"v\""]);
    has(message("a.csv", b"u,v\n1,inf\n1,2\n"), &["a.csv:2", "\"inf\" is not a finite number"]);
    has(message("a.csv", b"u,v\nx,1\ny,2\n"), &["a.csv:2", "text such as \"x\"", "client column"]);
    has(message("a.1D", b"#u #v\n1 2\n1 nan\n"), &["a.1D:3", "column \"v\"", "not a finite number"]);
    has(message("a.1D", b"#u #v\n1 2\n1\n"), &["a.1D:3", "1 values but the first has 2"]);
    has(message("a.1D", b"#u #u\n1 2\n"), &["names \"u\" twice"]);
    has(message("a.1D", b"# nothing\n"), &["no record"]);
    let holes = npz_bytes(&[("signals", "<f8", "(2, 2)", &floats(&[1.0, 2.0, 3.0, f64::NAN]))]);
    has(message("a.npz", &holes), &["a.npz: row 2", "node-01", "NaN"]);
    let cube = npz_bytes(&[("signals", "<f8", "(1, 1, 2)", &floats(&[1.0, 2.0]))]);
    has(message("a.npz", &cube), &["[1, 1, 2]", "two sides"]);
    let two = npz_bytes(&[("a", "|u1", "(1, 2)", &[1, 2]), ("b", "|u1", "(1, 2)", &[1, 2])]);
    has(message("a.npz", &two), &["no array \"signals\"", "2 arrays with two sides", "a, b"]);
    let empty = npz_bytes(&[("signals", "<f8", "(0, 2)", &[])]);
    has(message("a.npz", &empty), &["0 x 2"]);
}

#[test]
fn one_file_with_a_client_column_gives_its_clients() {
    let (_folder, path) = file("t.csv", TABLE);
    let clients = read_signals_by_client(&path, "site").unwrap();
    assert_eq!(clients.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>(), ["oslo", "rome"]);
    assert_eq!(clients[0].1.rows, [4.0, 5.0, 7.0, 0.0, -1.0, 10.0]);
    let world = signals_world(clients, &SignalsOptions::default()).unwrap();
    assert_eq!(world.train, table(TABLE).world().train);
    let refused = read_signals_by_client(&path, "cite").unwrap_err().to_string();
    assert!(refused.contains("did you mean `site`?"), "{refused}");
    let (_folder, path) = file("t.1D", "1 2\n");
    assert!(read_signals_by_client(&path, "site").unwrap_err().to_string().contains("one file per client"));
}

fn folder() -> Bench {
    Bench::new("signals")
        .file("b.csv", "u,v,w\n1,2,3\n4,5,7\n0,1,0\n")
        .file("a.1D.gz", packed("#w #u #v\n30 10 20\n70 40 50\n50 10 80\n"))
        .set("paths", vec!["b.csv", "a.1D.gz"])
        .signals()
}

#[test]
fn one_file_per_client_matches_nodes_by_name() {
    let world = folder().world();
    assert_eq!(world.federation.client_names(), ["a", "b"]);
    // The order of the first file that the config lists, whatever the clients are called.
    assert_eq!(world.schema.column_names(), ["u", "v", "w"]);
    assert_eq!(world.train[0].features(), [10.0, 20.0, 30.0, 40.0, 50.0, 70.0, 10.0, 80.0, 50.0]);
    assert_eq!((world.federation.servers(), world.federation.clusters()), (1, 1));
    let named = folder().set("names", vec!["x", "y"]).set("nodes", vec!["w", "u"]).set("limit", 1).world();
    assert_eq!(named.federation.client_names(), ["x", "y"]);
    assert_eq!((named.train[0].features(), named.train[1].features()), (&[3.0, 1.0][..], &[30.0, 10.0][..]));
    let scaled = folder().set("standardise", true).world();
    for data in &scaled.train {
        let rows = data.rows() as f64;
        for node in 0..3 {
            let column: Vec<f64> = (0..data.rows()).map(|row| data.row(row)[node]).collect();
            assert!(column.iter().sum::<f64>().abs() < 1e-12);
            assert!((column.iter().map(|x| x * x).sum::<f64>() / rows - 1.0).abs() < 1e-12);
        }
    }
    assert_eq!(scaled.scaling[0][..3], [20.0, 50.0, 50.0]);
}

#[test]
fn clients_that_do_not_go_together_are_refused() {
    let other = folder().file("a.1D.gz", packed("#u #v #z\n1 2 3\n"));
    other.refused(&["client \"a\"", "client \"b\"", "only \"b\" has w", "only \"a\" has z", "`nodes`"]);
    let fewer = folder().file("a.1D.gz", packed("#u #v\n1 2\n"));
    fewer.refused(&["client \"a\"", "only \"b\" has w"]);
    assert_eq!(fewer.set("nodes", vec!["u", "v"]).world().train[0].features(), [1.0, 2.0]);
    folder().set("nodes", vec!["u", "x"]).refused(&["b.csv", "\"x\"", "`nodes`"]);
    folder().set("nodes", vec!["u", "u"]).refused(&["`nodes`", "twice"]);
    folder().set("nodes", vec!["u"]).refused(&["client \"b\"", "one node only (u)", "at least 2"]);
    folder().set("names", vec!["x"]).refused(&["1 names were given for 2 files"]);
    folder().set("names", vec!["x", "x"]).refused(&["two clients are called \"x\""]);
    folder().set("paths", vec!["b.csv", "b.csv"]).refused(&["two clients are called \"b\""]);
    folder().set("paths", Vec::<&str>::new()).refused(&["at least one file"]);
    folder().set("paths", vec!["gone.csv"]).refused(&["cannot read gone.csv"]);
    folder().file("b.csv", "u,v,w\n1,1,1\n2,2,2\n").refused(&["client \"b\"", "constant"]);
    folder().servers(3).refused(&["3 servers are asked for but the data have 1"]);
    let mut predict = folder();
    predict.task = Task::Regression;
    predict.refused(&["`source`: signals", "nothing to predict", "kind = \"graph\""]);
    Bench::new("synthetic.clustered-regression").signals().refused(&["not signals on the nodes of a graph"]);
    Bench::new("mnist").signals().refused(&["not signals on the nodes of a graph"]);
}

#[test]
fn signals_made_in_memory_are_checked_too() {
    let nodes = || vec!["u".to_string(), "v".into()];
    let world = |rows: Vec<f64>| {
        signals_world(vec![("x".into(), Signals { nodes: nodes(), rows })], &SignalsOptions::default())
            .map_err(|error| error.to_string())
    };
    assert!(world(vec![1.0, 2.0]).is_ok());
    assert!(world(vec![1.0, f64::NAN]).unwrap_err().contains("row 1, feature 2: NaN"));
    assert!(world(vec![]).unwrap_err().contains("client \"x\""));
    assert!(world(vec![3.0, 3.0]).unwrap_err().contains("constant"));
    assert!(signals_world(Vec::new(), &SignalsOptions::default()).is_err());
}

#[test]
fn distances_are_read_and_become_one_record_per_client() {
    let (_a, json) = file("z.json", r#"{"d": 3, "n": 40, "zbar": [[1, 2, 3.5], [0, 1, 2]]}"#);
    let clients = read_distances(&json).unwrap();
    assert_eq!(clients, [("1".to_string(), vec![1.0, 2.0, 3.5]), ("2".into(), vec![0.0, 1.0, 2.0])]);
    let world = distances_world(clients.clone()).unwrap();
    assert_eq!((world.train[1].rows(), world.train[1].features()), (1, &[0.0, 1.0, 2.0][..]));
    assert_eq!(world.schema.column_names(), pair_names(&node_names(3)));
    assert_eq!(world.schema.column_names()[1], "node-00/node-02");
    let bytes = npz_bytes(&[
        ("n", "<i8", "()", &40i64.to_le_bytes()),
        ("zbar", "<f8", "(2, 3)", &floats(&[1.0, 2.0, 3.5, 0.0, 1.0, 2.0])),
    ]);
    let (_b, npz) = file("z.npz", bytes);
    assert_eq!(read_distances(&npz).unwrap(), clients);
    let (_c, flat) = file("z.npz", npz_bytes(&[("zbar", "<f8", "(1,)", &floats(&[2.5]))]));
    assert_eq!(read_distances(&flat).unwrap(), [("1".to_string(), vec![2.5])]);
    let (_d, table) = file("z.csv", TABLE);
    assert_eq!([&json, &npz, &table].map(|path| holds_distances(path).unwrap()), [true, true, false]);
    // Ids follow the names, so ten clients need two digits.
    let many = format!("{{\"zbar\": [{}]}}", ["[1]"; 10].join(", "));
    let (_e, many) = file("z.json", many);
    assert_eq!(read_distances(&many).unwrap()[1].0, "02");
}

#[test]
fn bad_distances_are_refused_with_the_place() {
    let message = |text: &str| {
        let (_folder, path) = file("z.json", text);
        read_distances(&path).unwrap_err().to_string()
    };
    let has = |text: String, parts: &[&str]| {
        assert!(parts.iter().all(|part| text.contains(part)), "expected {parts:?} in: {text}");
    };
    has(
        message(r#"{"zbar": [[1, 2, 3], [1, 2]]}"#),
        &["client 2", "2 distances", "2 nodes have 1, 3 have 3"],
    );
    has(message(r#"{"zbar": [[1, 2, -3]]}"#), &["row 1", "entry 3", "-3"]);
    has(message(r#"{"zbar": []}"#), &["zbar"]);
    has(message(r#"{"z": [[1]]}"#), &["zbar"]);
    has(message(r#"{"zbar": [["x"]]}"#), &["zbar"]);
    let (_folder, path) = file("z.npz", npz_bytes(&[("zbar", "<f8", "(1, 1)", &floats(&[f64::NAN]))]));
    has(read_distances(&path).unwrap_err().to_string(), &["row 1", "entry 1", "NaN"]);
    let (_folder, path) = file("z.npz", npz_bytes(&[("zbar", "<f8", "(1, 1, 1)", &floats(&[1.0]))]));
    has(read_distances(&path).unwrap_err().to_string(), &["[1, 1, 1]"]);
    let world = |clients: Vec<(String, Vec<f64>)>| distances_world(clients).unwrap_err().to_string();
    has(world(vec![("a".into(), vec![1.0]), ("b".into(), vec![1.0; 3])]), &["client \"b\"", "\"a\" has 1"]);
    has(world(vec![("a".into(), vec![0.0; 3])]), &["client \"a\"", "constant"]);
    has(world(vec![("a".into(), vec![1.0; 4])]), &["client \"a\"", "4 distances"]);
    has(world(vec![("a".into(), vec![1.0, -1.0, 2.0])]), &["client \"a\"", "distance 2"]);
    has(world(Vec::new()), &["at least one client"]);
}
