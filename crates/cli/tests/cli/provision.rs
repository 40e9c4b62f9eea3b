//! `fedkin provision` writes what a run on many machines needs, once.

use crate::bench::Bench;
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// Drawn, with a graph from a file, and a name that is no folder.
const DRAWN: &str = r#"
version = 1
[run]
name = "small"
rounds = 3
[data]
source = "synthetic.clustered-regression"
clients_per_server = 3
dimension = 4
[topology]
edges = "graph/links.csv"
[model]
kind = "ridge"
[algorithm]
name = "pgfl"
"#;

fn names(bench: &Bench, folder: &str) -> BTreeSet<String> {
    fs::read_dir(bench.path(folder))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect()
}

fn set(names: &[&str]) -> BTreeSet<String> {
    names.iter().map(ToString::to_string).collect()
}

#[cfg(unix)]
fn mode(path: &Path) -> u32 {
    use std::os::unix::fs::PermissionsExt;
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[test]
fn everything_that_machines_need_is_there() {
    let bench = Bench::new();
    bench.good(&["new"]);
    let said = bench.good(&[
        "provision",
        "wards.toml",
        "--out",
        "dep",
        "--hosts",
        "3",
        "--broker",
        "hub.example:5222",
        "--names",
        "hub=10.1.2.3",
    ]);
    for fact in ["tls://hub.example:5222", "hub, localhost", "4 servers, 3 client hosts", "7 new, 0 kept"] {
        assert!(said.contains(fact), "no {fact:?} in {said}");
    }
    let all = ["README.md", "broker", "ca", "compose.yaml", "nodes", "systemd"];
    assert_eq!(names(&bench, "dep"), set(&all));
    assert_eq!(names(&bench, "dep/ca"), set(&["ca.key", "ca.pem"]));
    assert_eq!(names(&bench, "dep/broker"), set(&["broker.key", "broker.pem", "ca.pem", "nats.conf"]));
    let nodes = ["east", "host-0", "host-1", "host-2", "north", "south", "west"];
    assert_eq!(names(&bench, "dep/nodes"), set(&nodes));
    let files = [
        "ca.pem",
        "directory.txt",
        "experiment.toml",
        "node.key",
        "node.pem",
        "node.toml",
        "roster.json",
        "seal.key",
    ];
    for node in nodes {
        assert_eq!(names(&bench, &format!("dep/nodes/{node}")), set(&files));
        #[cfg(unix)]
        for key in ["node.key", "seal.key"] {
            assert_eq!(mode(&bench.path(format!("dep/nodes/{node}/{key}"))), 0o600);
        }
    }
    #[cfg(unix)]
    for key in ["dep/ca/ca.key", "dep/broker/broker.key"] {
        assert_eq!(mode(&bench.path(key)), 0o600);
    }
    let page = bench.read("dep/README.md");
    for node in nodes {
        assert!(page.contains(&format!("`nodes/{node}`")), "{page}");
        assert!(bench.read("dep/compose.yaml").contains(&format!("./nodes/{node}:/node")));
    }
    let config = bench.read("dep/nodes/host-1/node.toml");
    for line in
        ["kind = \"client\"", "name = \"host-1\"", "url = \"tls://hub.example:5222\"", "noise = \"os\""]
    {
        assert!(config.contains(line), "{config}");
    }
    let config = bench.read("dep/nodes/east/node.toml");
    assert!(config.contains("servers = [\"east\"]") && !config.contains("[data]"), "{config}");
    // The experiment of a node is one that runs.
    bench.good(&[
        "config",
        "check",
        "dep/nodes/east/experiment.toml",
        "--set",
        "data.path=../../../wards.csv",
        "--set",
        "topology.edges=../../../edges.csv",
    ]);
}

#[test]
fn doing_it_again_changes_nothing_and_adds_what_is_missing() {
    let bench = Bench::new();
    bench.good(&["new"]);
    let arguments = ["provision", "wards.toml", "--out", "dep", "--hosts", "2"];
    bench.good(&arguments);
    let before = bench.files();
    assert!(bench.good(&arguments).contains("0 new, 6 kept"));
    assert_eq!(bench.files(), before);

    // What a user wrote stays, what is derived comes back, and keys are never written over.
    bench.edit(
        "dep/nodes/host-0/node.toml",
        "dep/nodes/host-0/node.toml",
        &[("log = \"info\"", "log = \"debug\"")],
    );
    fs::remove_dir_all(bench.path("dep/nodes/west")).unwrap();
    fs::remove_file(bench.path("dep/nodes/host-1/roster.json")).unwrap();
    assert!(bench.good(&arguments).contains("1 new, 5 kept"));
    assert!(bench.read("dep/nodes/host-0/node.toml").contains("debug"));
    let after = bench.files();
    for (path, bytes) in &before {
        // A node with new keys is news to all.
        let changed = path.starts_with("dep/nodes/west")
            || path.ends_with("host-0/node.toml")
            || path.ends_with("directory.txt");
        assert!(changed || after[path] == *bytes, "{}", path.display());
    }

    let forced = [&arguments[..], &["--force"]].concat();
    bench.good(&forced);
    let renewed = bench.files();
    for (path, bytes) in &after {
        let key = path.extension().is_some_and(|ending| ending == "key");
        let own = path.file_name().is_some_and(|name| name == "node.pem" || name == "broker.pem");
        assert!(!(key || path.ends_with("ca.pem")) || renewed[path] == *bytes, "{}", path.display());
        assert!(!own || renewed[path] != *bytes, "{}", path.display());
    }
    assert!(!bench.read("dep/nodes/host-0/node.toml").contains("debug"));
}

#[test]
fn the_authority_may_be_elsewhere_and_may_be_replaced() {
    let bench = Bench::new();
    bench.good(&["new"]);
    let arguments = ["provision", "wards.toml", "--out", "dep", "--hosts", "2"];
    bench.good(&arguments);
    fs::rename(bench.path("dep/ca/ca.key"), bench.path("offline.key")).unwrap();
    bench.good(&arguments);
    fs::remove_dir_all(bench.path("dep/nodes/west")).unwrap();
    let ran = bench.fedkin(&arguments);
    assert_eq!(ran.code, Some(2));
    assert!(ran.err.contains("put ca.key there"), "{}", ran.err);
    // Another authority signs every node again, for the keys they have.
    fs::remove_dir_all(bench.path("dep/ca")).unwrap();
    let key = bench.read("dep/nodes/host-0/node.key");
    let (certificate, signer) =
        (bench.read("dep/nodes/host-0/node.pem"), bench.read("dep/nodes/host-0/ca.pem"));
    bench.good(&arguments);
    assert_eq!(bench.read("dep/nodes/host-0/node.key"), key);
    assert_ne!(bench.read("dep/nodes/host-0/node.pem"), certificate);
    assert_ne!(bench.read("dep/nodes/host-0/ca.pem"), signer);
    assert_eq!(bench.read("dep/nodes/host-0/ca.pem"), bench.read("dep/broker/ca.pem"));
}

#[test]
fn a_broker_with_another_name_gets_another_certificate_for_its_key() {
    let bench = Bench::new();
    bench.good(&["new"]);
    bench.good(&["provision", "wards.toml", "--out", "dep", "--hosts", "1"]);
    let (key, certificate) = (bench.read("dep/broker/broker.key"), bench.read("dep/broker/broker.pem"));
    bench.good(&["provision", "wards.toml", "--out", "dep", "--hosts", "1", "--names", "hub"]);
    assert_eq!(bench.read("dep/broker/broker.key"), key);
    assert_ne!(bench.read("dep/broker/broker.pem"), certificate);
}

#[test]
fn a_drawn_world_brings_its_graph_along() {
    let bench = Bench::new();
    bench.write("small.toml", DRAWN);
    bench.write("graph/links.csv", "a,b\nnorth ward,south\nsouth,*\n");
    let said = bench.good(&["provision", "small.toml", "--out", "dep"]);
    assert!(said.contains("3 servers, 9 client hosts"), "{said}");
    // Names that mean something to a broker or a folder are written in another way.
    let nodes = names(&bench, "dep/nodes");
    assert!(
        nodes.contains("south") && nodes.iter().filter(|node| node.starts_with("x-")).count() == 2,
        "{nodes:?}"
    );
    let host = nodes.iter().find(|node| node.starts_with("client-")).unwrap();
    assert!(bench.read(&format!("dep/nodes/{host}/experiment.toml")).contains("edges = \"edges.csv\""));
    assert_eq!(bench.read(&format!("dep/nodes/{host}/edges.csv")), bench.read("graph/links.csv"));
    assert!(!bench.path("dep/nodes/south/edges.csv").exists());
    let user = nodes.iter().find(|node| node.starts_with("x-")).unwrap();
    assert!(bench.read("dep/broker/nats.conf").contains(&format!("user: \"{user}\"")));
}

#[test]
fn a_coordinator_without_data_names_who_takes_part() {
    let bench = Bench::new();
    bench.good(&["new"]);
    fs::remove_file(bench.path("wards.csv")).unwrap();
    let features = ["--set", "data.features=[\"age\", \"pulse\"]"];
    let arguments =
        [&["provision", "wards.toml", "--out", "dep", "--roster", "who.csv"], &features[..]].concat();
    let roster = "client,server,cluster,samples,host\n\
                  a,north,k,9,site 1\nb,east,k,8,site 1\nc,south,k,7,site-2\nd,west,l,7,site-2\n";
    bench.write("who.csv", roster);
    let said = bench.good(&arguments);
    assert!(said.contains("4 servers, 2 client hosts"), "{said}");
    let site = names(&bench, "dep/nodes").into_iter().find(|node| node.starts_with("x-")).unwrap();
    let config = bench.read(&format!("dep/nodes/{site}/node.toml"));
    assert!(config.contains("name = \"site 1\"") && config.contains("path = \"records.csv\""), "{config}");
    // A member more: the run gets a new name, everybody's facts follow, keys stay.
    let (run, key) = (said.lines().next().unwrap().to_string(), bench.read("dep/nodes/site-2/node.key"));
    bench.write("who.csv", format!("{roster}e,west,l,6,site-3\n"));
    let said = bench.good(&arguments);
    assert!(said.contains("1 new, 6 kept") && said.contains("restart the broker"), "{said}");
    assert_ne!(said.lines().next().unwrap(), run);
    assert_eq!(bench.read("dep/nodes/site-2/node.key"), key);
    assert!(bench.read("dep/nodes/site-2/roster.json").contains("site-3"));
    bench.write("who.csv", roster);
    assert!(bench.good(&arguments).contains("nodes/site-3 is not in the run"));
    bench.write("who.csv", "client,samples\na,some\n");
    bench.refused(&arguments, &["who.csv:2", "\"some\" is not a number of records"]);
}

#[test]
fn what_cannot_be_deployed_is_refused_before_anything_is_written() {
    let bench = Bench::new();
    bench.good(&["new"]);
    let refused = |more: &[&str], words: &[&str]| {
        bench.refused(&[&["provision", "wards.toml", "--out", "dep"], more].concat(), words);
    };
    refused(&["--set", "algorithm.name=centralized"], &["centralized", "simulations only"]);
    refused(&["--broker", "hub:many"], &["--broker hub:many", "HOST:PORT"]);
    refused(&["--names", "hub=there"], &["--names hub=there", "NAME=ADDRESS"]);
    refused(&["--roster", "who.csv"], &["data.features", "list the features"]);
    refused(&["--set", "network.mode=hasty"], &["network.mode", "strict", "deadline"]);
    refused(&["--set", "network.quorum=0"], &["network.quorum", "out of range"]);
    refused(&["--hosts", "0"], &["--hosts"]);
    bench.write("small.toml", DRAWN);
    bench.write("graph/links.csv", "a,b\ns,t\n");
    let many = ["provision", "small.toml", "--out", "dep", "--set", "data.clients_per_server=6000"];
    bench.refused(&many, &["12002 nodes are too many", "--hosts"]);
    bench.write("wards.csv", bench.read("wards.csv").replace("north-1,", "NORTH,"));
    refused(&[], &["\"north\" and \"NORTH\" would share a name"]);
}
