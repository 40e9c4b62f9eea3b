//! Whatever a run is made of, nodes on a broker end with the bits of one process.

use crate::bench::Bench;
use crate::net::{LONG, SMALL, SOON, Started, local, nats, ready, result, start};
use fedkin_method::registry::{self, Row};
use std::fmt::Write;

/// The same on nodes as in one process: models, metrics, privacy, ledger.
pub(crate) fn same(bench: &Bench, what: &str, arguments: &[&str], nodes: &[&str]) {
    let (here, there) = (format!("here-{what}"), format!("there-{what}"));
    let alone = local(bench, &[arguments, &["--out", &here]].concat());
    let together = on_nodes(bench, arguments, &there, nodes).told();
    assert_eq!(result(&together), result(&alone), "{what}");
    let ledger = |out: &str| bench.read(&format!("{out}/ledger.jsonl"));
    assert_eq!(ledger(&there), ledger(&here), "{what}");
}

fn on_nodes<'a>(bench: &'a Bench, arguments: &[&str], out: &str, nodes: &[&str]) -> Started<'a> {
    start(bench, &nats(&[arguments, &["--out", out], nodes].concat()))
}

/// The small experiment with another method.
fn config(row: &Row, private: bool) -> String {
    if row.graphs {
        // Its own world: signals, not records with a target.
        let privacy = "[privacy]\nmechanism = \"one-shot\"\nepsilon = 1.0\nclip = 2.0\n";
        return GRAPHS
            .replace("\"fedgl\"", &format!("{:?}", row.name))
            .replace("[privacy]\n", if private && row.name != "igl" { privacy } else { "" });
    }
    let named = format!("name = {:?}\n", row.name);
    let mut text = SMALL.replace("name = \"pgfl\"\n", &named);
    // A parameter of one method is none of another.
    if !row.params.iter().any(|param| param.name == "penalty") {
        text = text.replace("penalty = 4.0\n", "");
    }
    let steps = row.params.iter().any(|param| param.name == "sampling_rate");
    if private && steps {
        // Its noise is on clipped gradients of a sample.
        let (before, after) = text.split_once("[privacy]").unwrap();
        text = format!(
            "{}[privacy]\nmechanism = \"dp-sgd\"\nclip = 0.5\nnoise_multiplier = 1.2\n[network]{}",
            before.replace(&named, &format!("{named}local_steps = 3\nsampling_rate = 0.3\n")),
            after.split_once("[network]").unwrap().1
        );
    }
    if row.name == "persfl-agnostic" {
        // Different kinds of model in one federation.
        let kinds = "kind = \"mixed\"\nkinds = [\"tree\", \"knn\", \"ridge\"]\nleaf = 2\nneighbours = 2";
        text = text.replace("kind = \"ridge\"", kinds);
    }
    if row.name.starts_with("persfl") {
        text = text.replace(&named, &format!("{named}candidates = 4\n"));
    }
    // What has no mechanism says so, and is compared without one.
    let open = ["persfl", "persfl-agnostic", "ifca", "fedbn", "per-fedavg", "pfedme"];
    if !private || open.contains(&row.name) {
        let (before, after) = text.split_once("[privacy]").unwrap();
        text = format!("{before}[network]{}", after.split_once("[network]").unwrap().1);
    }
    text
}

/// Five clients with signals on the same eight nodes.
const GRAPHS: &str = r#"version = 1
[run]
name = "graphs"
seed = 5
rounds = 12
[data]
source = "synthetic.graph-signals"
nodes = 8
clients = 5
samples = [20, 30, 40, 50, 60]
[model]
kind = "graph"
beta = 0.1
[algorithm]
name = "fedgl"
[privacy]
[network]
resend = 0.2
"#;

/// Every method of the table, new ones included.
fn all(private: bool) {
    if !ready() {
        return;
    }
    let bench = Bench::new();
    let (mut compared, mut refused) = (0, Vec::new());
    for row in &registry::native() {
        let file = format!("{}.toml", row.name);
        // What needs the records of others is never private.
        bench.write(&file, config(row, private && !row.simulation_only));
        if row.simulation_only {
            let ran = on_nodes(&bench, &[&file], "refused", &[]).end(SOON);
            assert_eq!((ran.code, ran.out.as_str()), (Some(2), ""), "{}: {ran:?}", row.name);
            assert!(ran.err.starts_with("error: ") && ran.err.contains(row.name), "{}", ran.err);
            refused.push(row.name);
        } else {
            same(&bench, row.name, &[&file], &[]);
            compared += 1;
        }
    }
    eprintln!("{compared} methods as in one process; refused: {}", refused.join(", "));
    assert!(compared >= 12, "{compared}");
    assert!(refused.contains(&"centralized"), "{refused:?}");
}

#[test]
fn every_method_gives_the_bits_of_one_process() {
    all(false);
}

#[test]
fn every_method_gives_the_bits_of_one_process_with_noise() {
    all(true);
}

/// The same end on nodes as in one process: exit code, what is said on standard error, and the result where there is one.
fn same_end(bench: &Bench, what: &str, arguments: &[&str]) -> Option<i32> {
    let (here, there) = (format!("here-{what}"), format!("there-{what}"));
    let alone = start(bench, &[&["run"], arguments, &["--json", "--out", &here]].concat()).end(LONG);
    let together = on_nodes(bench, arguments, &there, &[]).end(LONG);
    assert_eq!((together.code, &together.err), (alone.code, &alone.err), "{what}");
    if alone.code == Some(0) {
        let told = |ran: &crate::bench::Ran| -> serde_json::Value { serde_json::from_str(&ran.out).unwrap() };
        let without_counts = |told: &serde_json::Value| {
            let mut result = result(told);
            // Nodes report once, after the last round: what was turned away in earlier ones is in no file of theirs.
            if let Some(metrics) = result["final"].as_object_mut() {
                metrics.retain(|name, _| name != "rejected" && name != "refused");
            }
            result
        };
        assert_eq!(without_counts(&told(&together)), without_counts(&told(&alone)), "{what}");
        let ledger = |out: &str| bench.read(&format!("{out}/ledger.jsonl"));
        assert_eq!(ledger(&there), ledger(&here), "{what}");
    } else {
        assert_eq!((alone.out.as_str(), together.out.as_str()), ("", ""), "{what}");
    }
    alone.code
}

/// Every method where no upload is accepted, and where some are not: the run stops with one reason, or goes on.
#[test]
fn every_method_stops_as_in_one_process() {
    if !ready() {
        return;
    }
    let bench = Bench::new();
    let mut stopped = Vec::new();
    for row in registry::native().iter().filter(|row| !row.simulation_only) {
        let file = format!("{}.toml", row.name);
        bench.write(&file, config(row, false));
        for norm in ["1e-9", "2"] {
            let set = format!("run.max_norm={norm}");
            let code = same_end(&bench, &format!("{}-{norm}", row.name), &[&file, "--set", &set]);
            assert!([Some(0), Some(4)].contains(&code), "{}, {norm}: {code:?}", row.name);
            stopped.extend((code == Some(4)).then(|| format!("{} at {norm}", row.name)));
        }
    }
    eprintln!("stopped: {}", stopped.join(", "));
    assert!(stopped.len() >= 12, "{stopped:?}");
}

/// Training that diverges at all clients at once, and at one that is named.
#[test]
fn training_that_diverges_ends_with_the_same_words() {
    if !ready() {
        return;
    }
    let bench = Bench::new();
    let diverges = |what: &str, text: String, set: &[&str], words: &str| {
        let file = format!("{what}.toml");
        bench.write(&file, text);
        let arguments = [&[file.as_str()], set].concat();
        assert_eq!(same_end(&bench, what, &arguments), Some(4), "{what}");
        let said = start(&bench, &[&["run"], &arguments[..], &["--out", &format!("again-{what}")]].concat())
            .end(LONG)
            .err;
        assert!(said.contains(words), "{what}: {said}");
    };
    // Linear models of four clients, for methods that take steps of a given size along gradients. Proximal steps do not grow
    // with a rate; what becomes of uploads that are too large is the test above.
    let (before, after) = SMALL.split_once("[privacy]").unwrap();
    let open = format!("{before}[network]{}", after.split_once("[network]").unwrap().1)
        .replace("kind = \"ring\", servers = 3", "kind = \"complete\", servers = 1")
        .replace("[participation]\nclients_per_server = 2\n", "");
    let rejected = |round: u32| format!("diverged: all 4 uploads of round {round} were rejected");
    // Each with the round in which it shows.
    for (name, round) in [("fedavg", 1), ("fedprox", 1), ("fedpnp", 1), ("ifca", 3)] {
        let keys = format!("name = {name:?}\nlearning_rate = 1e9\n");
        let text = open.replace("name = \"pgfl\"\npenalty = 4.0\n", &keys);
        diverges(name, text, &[], &rejected(round));
    }
    let net = LARGE.replace("1600", "6").replace("\"fedpnp\"", "\"NAME\"\nlearning_rate = 1e30");
    for name in ["fedpnp", "fedavg", "fedprox", "fedbn", "per-fedavg", "pfedme", "ifca", "local"] {
        let mut text = net.replace("NAME", name);
        if name == "per-fedavg" || name == "pfedme" {
            let inner = if name == "pfedme" { "personal_rate" } else { "inner_rate" };
            text = text.replace("learning_rate = 1e30", &format!("learning_rate = 1e30\n{inner} = 0.01"));
        }
        let set = ["--set", "run.max_norm=1e150", "--set", "run.rounds=4"];
        diverges(&format!("net-{name}"), text, &set, "diverged");
    }
}

/// Clients whose budget is spent refuse, and the run goes on without them.
#[test]
fn every_method_goes_on_without_clients_that_refuse() {
    if !ready() {
        return;
    }
    let bench = Bench::new();
    let mut refused = 0;
    for row in registry::native().iter().filter(|row| !row.simulation_only && !row.graphs) {
        let text = config(row, true);
        if !text.contains("mechanism = \"zcdp\"") {
            continue;
        }
        let file = format!("{}.toml", row.name);
        bench.write(&file, text);
        // Enough for one answer.
        let code = same_end(&bench, row.name, &[&file, "--set", "privacy.budget=0.0011"]);
        assert_eq!(code, Some(0), "{}", row.name);
        refused += 1;
    }
    assert!(refused >= 3, "{refused}");
}

/// Clusters that are found on the way, and kin that another run has found: on nodes as in one process.
#[test]
fn kin_found_and_given() {
    if !ready() {
        return;
    }
    let bench = Bench::new();
    let plain = config(registry::native().find("pgfl").unwrap(), false).replace("rounds = 6", "rounds = 14");
    bench.write("found.toml", format!("{plain}[kin]\nclusters = \"infer\"\nwarm_up = 3\nforming = 4\n"));
    same(&bench, "infer", &["found.toml"], &["--processes", "4"]);
    let clusters = bench.read("there-infer/clusters.csv");
    assert_eq!(clusters, bench.read("here-infer/clusters.csv"));
    bench.write("mine/clusters.csv", clusters);
    bench.write("mine/given.toml", format!("{plain}[kin]\nclusters = \"clusters.csv\"\n"));
    same(&bench, "given", &["mine/given.toml"], &["--processes", "4"]);
    // Twelve clients in a ring, each a server of its own.
    let mut edges = String::from("a,b,weight\n");
    for client in 0..12 {
        let _ = writeln!(edges, "client-{client:06},client-{:06},1", (client + 1) % 12);
    }
    bench.write("mine/ring.csv", edges);
    bench.write("mine/graph.toml", format!("{plain}[kin]\ngraph = \"ring.csv\"\n"));
    same(&bench, "graph", &["mine/graph.toml"], &["--processes", "4"]);
}

/// Four clients and a net of 2.6 million parameters: 10 MB a model, in pieces over the object store.
const LARGE: &str = r#"version = 1
[run]
name = "large"
seed = 5
rounds = 2
[data]
source = "synthetic.shifted-classes"
clients_per_server = 4
clusters = 2
classes = 3
dimension = 20
samples = 30
test_samples = 20
[topology]
graph = { kind = "complete", servers = 1 }
[model]
kind = "net"
layers = ["dense 1600", "relu", "dense 1600", "batch-norm", "relu", "dense 3"]
[algorithm]
name = "fedpnp"
epochs = 1
batch = 16
[network]
resend = 0.2
"#;

#[test]
fn nets_of_ten_megabytes() {
    if !ready() {
        return;
    }
    let bench = Bench::new();
    for name in ["fedpnp", "fedavg"] {
        let file = format!("{name}.toml");
        bench.write(&file, LARGE.replace("\"fedpnp\"", &format!("{name:?}")));
        same(&bench, name, &[&file], &[]);
    }
}

/// A user's own records, six features, in a file that every node reads its clients from.
fn own_records(kind: &str) -> (String, String) {
    let mut table = String::from("ward,hospital,kind,age,pulse,lactate,mobility,weight,fever,stay\n");
    let mut state = 1u64;
    let mut draw = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 40) as f64 / f64::from(1 << 23) - 1.0
    };
    for (h, hospital) in ["north", "east, old", "süd", "west"].iter().enumerate() {
        for ward in 0..3 {
            let cluster = if (h + ward) % 2 == 0 { "children" } else { "adults" };
            for _ in 0..6 + ward + h {
                let features: Vec<f64> = (0..6).map(|_| draw()).collect();
                let sum: f64 =
                    features.iter().zip([1.0, -2.0, 0.5, 0.3, 1.5, -0.7]).map(|(x, w)| x * w).sum();
                let target = if kind == "logistic" { f64::from(sum > 0.0) } else { sum + 0.1 * draw() };
                let features: Vec<String> = features.iter().map(|x| format!("{x:.4}")).collect();
                let _ = writeln!(
                    table,
                    "{hospital}-{ward}|\"{hospital}\"|{cluster}|{}|{target:.4}",
                    features.join("|")
                );
            }
        }
    }
    let table = table
        .lines()
        .enumerate()
        .map(|(i, line)| if i == 0 { line.to_string() } else { quoted(line) })
        .collect::<Vec<_>>()
        .join("\n");
    let config = format!(
        r#"version = 1
[run]
name = "own"
seed = 3
rounds = 8
[data]
source = "csv"
path = "wards.csv"
client = "ward"
server = "hospital"
cluster = "kind"
target = "stay"
test_fraction = 0.25
standardise = true
[topology]
edges = "edges.csv"
[model]
kind = "{kind}"
bias = true
[algorithm]
name = "pgfl"
penalty = 4.0
inter_cluster = "adaptive"
[participation]
clients_per_server = 2
[network]
resend = 0.2
"#
    );
    (table, config)
}

/// Fields of a line that was joined with bars: a name may hold a comma.
fn quoted(line: &str) -> String {
    let fields = line.split('|').map(|field| format!("\"{}\"", field.trim_matches('"')));
    fields.collect::<Vec<_>>().join(",")
}

fn own(kind: &str) {
    if !ready() {
        return;
    }
    let bench = Bench::new();
    let (table, config) = own_records(kind);
    // The nodes work elsewhere: the paths must still be found.
    bench.write("mine/wards.csv", table);
    bench.write("mine/edges.csv", "a,b\nnorth,\"east, old\"\n\"east, old\",süd\nsüd,west\nwest,north\n");
    bench.write("mine/own.toml", config);
    same(&bench, kind, &["mine/own.toml"], &["--processes", "7"]);
    same(&bench, "two-processes", &["mine/own.toml"], &["--processes", "2"]);
}

#[test]
fn own_records_with_an_edge_list() {
    own("ridge");
}

#[test]
fn own_records_and_a_logistic_model() {
    own("logistic");
}

/// The project's must-show: PGFL Fig 3 in twelve processes.
#[test]
fn figure_3_in_twelve_processes() {
    if !ready() {
        return;
    }
    let bench = Bench::new();
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../experiments/pgfl-fig3.toml");
    let rounds = std::env::var("FEDKIN_ROUNDS").unwrap_or_else(|_| "60".into());
    let rounds = format!("run.rounds={rounds}");
    let arguments = [file, "--set", "run.repeats=1", "--set", &rounds];
    same(&bench, "fig3", &arguments, &["--processes", "12"]);
}
