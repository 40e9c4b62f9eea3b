//! Rosters, fingerprints and node configs.

use super::*;
use fedkin_config::{Override, Source};
use fedkin_method::Federation;
use fedkin_run::{Plan, Registry};
use fedkin_settings::Value;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;
use tempfile::TempDir;

const DRAWN: &str = r#"
version = 1
[run]
name = "drawn"
seed = 3
rounds = 5
[data]
source = "synthetic.clustered-regression"
clients_per_server = 7
dimension = 4
[topology]
graph = { kind = "random", servers = 5, mean_degree = 2.4 }
[model]
kind = "ridge"
bias = true
[algorithm]
name = "pgfl"
"#;

const OWN: &str = r#"
version = 1
[run]
name = "own"
seed = 3
rounds = 5
[data]
source = "csv"
path = "all.csv"
client = "who"
server = "at"
cluster = "kind"
target = "y"
features = ["a", "b"]
test_fraction = 0.25
[topology]
edges = "edges.csv"
[model]
kind = "ridge"
[algorithm]
name = "pgfl"
"#;

/// Names that need quotes, sort oddly or mean something elsewhere.
const WEIRD: [&str; 6] = ["ward a", "Ωmega/1", "x.y.>", "*", "status", "quote\"\"d"];

fn write(folder: &TempDir, name: &str, text: &str) {
    std::fs::write(folder.path().join(name), text).unwrap();
}

/// Clients with weird names at two servers in two clusters, twelve records each.
fn own() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let mut text = "who,at,kind,a,b,y\n".to_string();
    for (i, name) in WEIRD.iter().enumerate() {
        for row in 0..12 {
            let (at, kind) = (["n", "s"][i % 2], ["p", "q"][i / 3]);
            writeln!(text, "\"{name}\",{at},{kind},{}.5,{},{row}", row * (i + 1), row % 5).unwrap();
        }
    }
    write(&folder, "all.csv", &text);
    write(&folder, "edges.csv", "a,b\ns,n\n");
    folder
}

fn plan(text: &str, base: &Path, sets: &[&str]) -> Plan {
    let sets: Vec<Override> = sets.iter().map(|set| Override::parse(set).unwrap()).collect();
    let source = Source { name: "test.toml".into(), text: text.into() };
    Plan::load(&Registry::native(), &source, base, &sets, &[]).unwrap_or_else(|error| panic!("{error}"))
}

fn same(a: &Federation, b: &Federation) {
    assert_eq!(a.members(), b.members());
    assert_eq!(a.client_names(), b.client_names());
    assert_eq!(a.server_names(), b.server_names());
    assert_eq!(a.cluster_names(), b.cluster_names());
    for server in 0..a.servers() as u32 {
        assert_eq!(a.topology().neighbours(server), b.topology().neighbours(server));
        assert_eq!(a.clients_of(server), b.clients_of(server));
    }
}

fn refused<T>(result: Result<T, fedkin_run::Error>, words: &[&str]) {
    let Err(error) = result else { panic!("accepted, expected {words:?}") };
    let said = error.to_string();
    for word in words {
        assert!(said.contains(word), "no {word:?} in {said}");
    }
}

#[test]
fn a_roster_gives_back_the_federation_of_one_process() {
    let folder = own();
    for (text, base) in [(DRAWN, Path::new("")), (OWN, folder.path())] {
        let plan = plan(text, base, &[]);
        let world = plan.world(0).unwrap();
        let roster = Roster::of(&plan, &world, &Hosts::Blocks(3)).unwrap();
        let again = Roster::from_json(&roster.to_json(), "roster.json").unwrap();
        assert_eq!(again, roster);
        same(&again.federation().unwrap(), &world.federation);
        let (federation, run) =
            plan.run(&again.federation().unwrap(), None, again.schema.columns(), 0).unwrap();
        same(&federation, &world.federation.arranged(plan.row.arrange));
        assert_eq!(run.dimension, plan.dimension(world.schema.columns()));
        assert_eq!(run.seed, plan.seed(0));
    }
}

#[test]
fn a_roster_file_without_records_gives_the_same_roster() {
    let folder = own();
    let plan = plan(OWN, folder.path(), &[]);
    let known = Roster::of(&plan, &plan.world(0).unwrap(), &Hosts::Each).unwrap();
    let mut text = "samples,client,cluster,server\n".to_string();
    for client in known.clients.iter().rev() {
        let name = client.name.replace('"', "\"\"");
        writeln!(text, "{},\"{name}\",{},{}", client.samples, client.cluster, client.server).unwrap();
    }
    write(&folder, "roster.csv", &text);
    let read = Roster::from_csv(&plan, &folder.path().join("roster.csv"), &Hosts::Each).unwrap();
    assert_eq!(read, known);
}

/// A federation in which a column of the records says what a client fits.
#[test]
fn a_roster_keeps_what_each_client_fits() {
    let folder = tempfile::tempdir().unwrap();
    let text =
        "who,at,kind,fits,a,b,y\nx,n,p,tree,1,2,3\nx,n,p,tree,2,1,4\ny,s,q,,5,1,2\nz,s,q,ridge,1,1,1\n";
    write(&folder, "all.csv", text);
    write(&folder, "edges.csv", "a,b\ns,n\n");
    let config = OWN.replace("test_fraction = 0.25", "learner = \"fits\"");
    // Without a table of that name nobody knows what to fit.
    refused(
        plan(&config, folder.path(), &[]).world(0),
        &["client \"x\"", "no learner \"tree\"", "[learner.tree]"],
    );
    let tables =
        "[learner.tree]\nkind = \"ridge\"\nhuber = 1.0\n[learner.ridge]\nkind = \"ridge\"\nhuber = 2.0\n";
    let config = format!("{config}\n{tables}");
    let plan = plan(&config, folder.path(), &[]);
    let known = Roster::of(&plan, &plan.world(0).unwrap(), &Hosts::Each).unwrap();
    assert_eq!(known.learners(), Some(vec![Some("tree".into()), None, Some("ridge".into())]));
    assert_eq!(Roster::from_json(&known.to_json(), "roster.json").unwrap(), known);
    let file = folder.path().join("roster.csv");
    let lines = "client,samples,server,cluster,learner\nz,1,s,q,ridge\ny,1,s,q,\nx,2,n,p,tree\n";
    std::fs::write(&file, lines).unwrap();
    assert_eq!(Roster::from_csv(&plan, &file, &Hosts::Each).unwrap(), known);
    assert_eq!(HostedRecords::all(&plan, &known, &[0, 1], &BTreeMap::new(), 0).unwrap().len(), 2);
    std::fs::write(&file, lines.replace("tree", "three")).unwrap();
    refused(
        Roster::from_csv(&plan, &file, &Hosts::Each),
        &["roster.csv:4", "\"learner\"", "no learner \"three\"", "did you mean `tree`?"],
    );
    std::fs::write(&file, lines.replace("tree", "x").replace("ridge", "tree").replace(",x\n", ",ridge\n"))
        .unwrap();
    let other = Roster::from_csv(&plan, &file, &Hosts::Each).unwrap();
    assert_ne!(run_fingerprint(&plan.config, &other), run_fingerprint(&plan.config, &known));
    refused(
        HostedRecords::all(&plan, &other, &[0], &BTreeMap::new(), 0),
        &["client \"x\"", "learner \"tree\" here", "\"ridge\" in the roster"],
    );
    // A roster without learners is written as it always was.
    let plain = self::plan(DRAWN, Path::new(""), &[]);
    let roster = Roster::of(&plain, &plain.world(0).unwrap(), &Hosts::Each).unwrap();
    assert!(roster.learners().is_none() && !roster.to_json().contains("learner"));
}

#[test]
fn bad_roster_files_are_refused_with_the_row() {
    let folder = own();
    let plan = plan(OWN, folder.path(), &[]);
    let file = folder.path().join("roster.csv");
    let read = |text: &str| {
        std::fs::write(&file, text).unwrap();
        Roster::from_csv(&plan, &file, &Hosts::Each)
    };
    refused(read("client,server\na,n\n"), &["roster.csv", "\"samples\" is missing"]);
    refused(read("client,samples,sever\na,1,n\n"), &["\"sever\"", "did you mean `server`?"]);
    refused(read("client,samples\na,1\nb,some\n"), &["roster.csv:3", "\"some\" is not a number of records"]);
    refused(read("client,samples\na,1\nb,1.5\n"), &["roster.csv:3", "1.5", "whole number"]);
    refused(read("client,samples\na,0\n"), &["roster.csv:2", "at least 1"]);
    refused(read("client,samples\na,1\nb,1\na,1\n"), &["roster.csv:4", "\"a\" stands in line 2 already"]);
    refused(read("client,samples,host\na,1,\n"), &["roster.csv:2", "\"host\"", "empty"]);
    refused(read("client,samples,server\na,1,n\nb,1,west\n"), &["edges.csv:2", "there is no server \"s\""]);
    let blind = self::plan(&OWN.replace("features = [\"a\", \"b\"]\n", ""), folder.path(), &[]);
    std::fs::write(&file, "client,samples\na,1\n").unwrap();
    refused(Roster::from_csv(&blind, &file, &Hosts::Each), &["data.features", "list the features"]);
    let drawn = self::plan(DRAWN, Path::new(""), &[]);
    refused(Roster::from_csv(&drawn, &file, &Hosts::Each), &["data.source", "says itself"]);
}

#[test]
fn damaged_rosters_are_refused() {
    let plan = plan(DRAWN, Path::new(""), &[]);
    let roster = Roster::of(&plan, &plan.world(0).unwrap(), &Hosts::Each).unwrap();
    let text = roster.to_json();
    let read = |text: &str| Roster::from_json(text, "r.json");
    refused(
        read(&text.replacen("\"version\": 1", "\"version\": 2", 1)),
        &["r.json", "version 2", "version 1"],
    );
    refused(read(&text.replacen("\"dimension\"", "\"dimensions\"", 1)), &["r.json", "dimensions", "line"]);
    refused(
        read(&text.replacen("\"server\": \"server-000\"", "\"server\": \"x\"", 1)),
        &["\"x\"", "not listed"],
    );
    refused(read("{"), &["r.json", "not a roster"]);
    let mut turned = roster.clone();
    turned.clients.reverse();
    refused(read(&turned.to_json()), &["out of order"]);
}

#[test]
fn hosts_are_nearly_equal_blocks_in_the_order_of_ids() {
    let names: Vec<String> = (0..11).map(|i| i.to_string()).collect();
    let hosts = Hosts::Blocks(3).assign(&names);
    let sizes: Vec<usize> = ["host-0", "host-1", "host-2"]
        .iter()
        .map(|host| hosts.iter().filter(|h| h == host).count())
        .collect();
    assert_eq!(sizes, [4, 4, 3]);
    assert!(hosts.is_sorted());
    assert_eq!(Hosts::Each.assign(&names), names);
    assert_eq!(Hosts::Blocks(99).assign(&names)[10], "host-10");
}

#[test]
fn the_run_fingerprint_sees_all_but_names_paths_and_speed() {
    let folder = own();
    let of = |text: &str, sets: &[&str], hosts: &Hosts| {
        let plan = plan(text, folder.path(), sets);
        run_fingerprint(&plan.config, &Roster::of(&plan, &plan.world(0).unwrap(), hosts).unwrap())
    };
    std::fs::copy(folder.path().join("all.csv"), folder.path().join("copy.csv")).unwrap();
    std::fs::copy(folder.path().join("edges.csv"), folder.path().join("links.csv")).unwrap();
    let base = of(OWN, &[], &Hosts::Each);
    assert_eq!(run_id(&base).len(), 16);
    for same in [
        "run.name=other",
        "run.repeats=4",
        "run.checkpoint_seconds=0",
        "data.path=copy.csv",
        "topology.edges=links.csv",
        "network.resend=5",
        "evaluate.metric=mse.client",
        "network.mode=strict",
    ] {
        assert_eq!(of(OWN, &[same], &Hosts::Each), base, "{same}");
    }
    for other in [
        "run.seed=4",
        "run.rounds=6",
        "run.max_norm=10",
        "data.test_fraction=0.5",
        "data.features=[\"b\", \"a\"]",
        "data.standardise=true",
        "model.bias=true",
        "model.regularisation=0.5",
        "algorithm.penalty=6",
        "algorithm.name=gfl",
        "participation.clients_per_server=1",
        "evaluate.every=2",
        "network.mode=deadline",
        "network.quorum=0.5",
        "network.deadline=5",
    ] {
        assert_ne!(of(OWN, &[other], &Hosts::Each), base, "{other}");
    }
    assert_ne!(of(OWN, &[], &Hosts::Blocks(2)), base);
    write(&folder, "scale.csv", "feature,mean,scale\na,1,2\nb,0,1\n");
    let scaled = of(OWN, &["data.standardise=scale.csv"], &Hosts::Each);
    std::fs::copy(folder.path().join("scale.csv"), folder.path().join("moved.csv")).unwrap();
    assert_eq!(of(OWN, &["data.standardise=moved.csv"], &Hosts::Each), scaled);
    write(&folder, "scale.csv", "feature,mean,scale\na,1,2\nb,0,3\n");
    assert_ne!(of(OWN, &["data.standardise=scale.csv"], &Hosts::Each), scaled);
    let plan = plan(OWN, folder.path(), &[]);
    let mut roster = Roster::of(&plan, &plan.world(0).unwrap(), &Hosts::Each).unwrap();
    roster.clients[0].samples += 1;
    assert_ne!(run_fingerprint(&plan.config, &roster), base);
}

#[test]
fn every_path_of_the_tables_is_left_out_of_the_run_fingerprint() {
    let plan = plan(OWN, Path::new(""), &["data.schema=x.toml"]);
    let agreed = plan.config.agreed();
    let registry = Registry::native();
    let tables = registry.tables();
    let data = tables.sources.iter().flat_map(|row| row.2).map(|param| ("data", param));
    for (section, param) in data.chain(tables.topology.iter().map(|param| ("topology", param))) {
        let is_path = matches!(param.kind, fedkin_settings::Kind::Path);
        assert!(!is_path || !agreed.contains_key(&format!("{section}.{}", param.name)), "{}", param.name);
    }
}

/// What a host gets of the file: its own clients, without the columns that the roster knows.
fn own_file(folder: &TempDir, name: &str, clients: &[&str]) {
    let text = std::fs::read_to_string(folder.path().join("all.csv")).unwrap();
    let mut lines = vec!["who,a,b,y".to_string()];
    for line in text.lines().skip(1) {
        let cells: Vec<&str> = line.rsplitn(6, ',').collect();
        let (who, a, b, y) = (cells[5], cells[2], cells[1], cells[0]);
        if clients.iter().any(|client| who == format!("\"{client}\"")) {
            lines.push(format!("{who},{a},{b},{y}"));
        }
    }
    write(folder, name, &(lines.join("\n") + "\n"));
}

#[test]
fn a_host_with_its_own_file_has_the_records_of_one_process() {
    let folder = own();
    write(&folder, "scale.csv", "feature,mean,scale\na,1,2\nb,0,1\n");
    for set in ["data.standardise=false", "data.standardise=true", "data.standardise=scale.csv"] {
        let plan = plan(OWN, folder.path(), &[set]);
        let world = plan.world(0).unwrap();
        let roster = Roster::of(&plan, &world, &Hosts::Each).unwrap();
        for (id, client) in roster.clients.iter().enumerate() {
            let in_file = client.name.replace('"', "\"\"");
            own_file(&folder, "mine.csv", &[&in_file]);
            let path = folder.path().join("mine.csv").display().to_string();
            let data = BTreeMap::from([("path".to_string(), Value::Text(path))]);
            let hosted = HostedRecords::all(&plan, &roster, &[id as u32], &data, 0).unwrap();
            assert_eq!(hosted.len(), 1);
            assert_eq!(hosted[0].train, world.train[id], "{}", client.name);
            assert_eq!(hosted[0].test, world.test[id]);
            assert_eq!(hosted[0].scaling, world.scaling[id]);
            assert_eq!(hosted[0].fingerprint, plan.records(&world.train[id], world.test[id].as_deref()));
        }
    }
}

#[test]
fn a_host_of_a_drawn_world_has_the_records_of_one_process() {
    let plan = plan(DRAWN, Path::new(""), &[]);
    let world = plan.world(0).unwrap();
    let roster = Roster::of(&plan, &world, &Hosts::Blocks(4)).unwrap();
    let hosted = HostedRecords::all(&plan, &roster, &[7, 3], &BTreeMap::new(), 0).unwrap();
    assert_eq!(hosted.iter().map(|client| client.id).collect::<Vec<_>>(), [3, 7]);
    assert_eq!(hosted[0].train, world.train[3]);
    let other = self::plan(DRAWN, Path::new(""), &["run.seed=4"]);
    refused(HostedRecords::all(&other, &roster, &[3], &BTreeMap::new(), 0), &["drawn here", "in the roster"]);
    let fewer = self::plan(DRAWN, Path::new(""), &["data.clients_per_server=6"]);
    refused(
        HostedRecords::all(&fewer, &roster, &[3], &BTreeMap::new(), 0),
        &["30 clients are drawn here but 35"],
    );
}

#[test]
fn records_that_do_not_fit_the_roster_are_refused_with_both_sides() {
    let folder = own();
    let plan = plan(OWN, folder.path(), &[]);
    let roster = Roster::of(&plan, &plan.world(0).unwrap(), &Hosts::Each).unwrap();
    let id = roster.clients.iter().position(|client| client.name == "ward a").unwrap() as u32;
    let read = |text: &str| {
        write(&folder, "mine.csv", text);
        let path = folder.path().join("mine.csv").display().to_string();
        HostedRecords::all(
            &plan,
            &roster,
            &[id],
            &BTreeMap::from([("path".to_string(), Value::Text(path))]),
            0,
        )
    };
    refused(
        read("who,a,b,y\nward a,1,2,3\n"),
        &["\"ward a\"", "1 training records here but 9 in the roster"],
    );
    refused(
        read("who,a,y\nward a,1,3\n"),
        &["mine.csv", "\"b\"", "the file has the features a,", "has a, b"],
    );
    refused(
        read("who,a,b,y\nward b,1,2,3\n"),
        &["mine.csv:2", "\"ward b\" is not in the roster", "`ward a`"],
    );
    refused(read("who,a,b,y\n*,1,2,3\n"), &["mine.csv", "no record of client \"ward a\""]);
    let rows = "ward a,s,p,1,2,3\n".repeat(12);
    refused(read(&format!("who,at,kind,a,b,y\n{rows}")), &["server \"s\" here but \"n\" in the roster"]);
    let all = self::plan(&OWN.replace("features = [\"a\", \"b\"]\n", ""), folder.path(), &[]);
    write(&folder, "mine.csv", "who,a,b,c,y\nward a,1,2,3,4\n");
    let path = folder.path().join("mine.csv").display().to_string();
    let data = BTreeMap::from([("path".to_string(), Value::Text(path))]);
    refused(
        HostedRecords::all(&all, &roster, &[id], &data, 0),
        &["\"c\" is no feature", "a, b, c", "has a, b"],
    );
    let drawn = self::plan(DRAWN, Path::new(""), &[]);
    let roster = Roster::of(&drawn, &drawn.world(0).unwrap(), &Hosts::Each).unwrap();
    refused(HostedRecords::all(&drawn, &roster, &[0], &data, 0), &["data.path", "unknown key"]);
}

#[test]
fn servers_and_hosts_never_share_a_name() {
    let folder = own();
    let plan = plan(
        &OWN.replace("server = \"at\"", "server = \"who\""),
        folder.path(),
        &["topology={ graph = { kind = \"ring\" } }"],
    );
    let roster = Roster::of(&plan, &plan.world(0).unwrap(), &Hosts::Each).unwrap();
    let nodes = roster.nodes(&plan).unwrap();
    assert_eq!(nodes.servers[0], format!("server-{}", nodes.hosts[0]));
    assert_eq!(nodes.by_host().len(), WEIRD.len());
}

const NODE: &str = r#"
version = 1
[node]
kind = "client"
name = "host-1"
[broker]
url = "tls://broker.example:4223"
ca = "ca.pem"
certificate = "n.pem"
key = "n.key"
[data]
path = "mine.csv"
[observe]
listen = "127.0.0.1:9464"
[privacy]
noise = "seeded"
[seal]
key = "seal.key"
directory = "directory.txt"
"#;

fn node(text: &str) -> Result<NodeConfig, fedkin_run::Error> {
    let source = Source { name: "node.toml".into(), text: text.into() };
    Ok(NodeConfig::parse(&source, Path::new("/etc/fedkin"))?)
}

#[test]
fn a_node_config_is_read_in_full() {
    let read = node(NODE).unwrap();
    assert_eq!(read.kind, NodeKind::Client(None));
    assert_eq!(read.experiment, Path::new("/etc/fedkin/experiment.toml"));
    assert_eq!((read.broker.host.as_str(), read.broker.port), ("broker.example", 4223));
    assert_eq!(read.broker.tls.unwrap().key, Path::new("/etc/fedkin/n.key"));
    let seal = read.seal.unwrap();
    assert_eq!(seal.key, Path::new("/etc/fedkin/seal.key"));
    assert_eq!(seal.directory, Path::new("/etc/fedkin/directory.txt"));
    assert_eq!(read.data["path"], Value::Text("/etc/fedkin/mine.csv".into()));
    assert_eq!(read.observe.listen.unwrap().port(), 9464);
    assert_eq!((read.observe.log, read.noise), (LogLevel::Info, Noise::Seeded));
    let plain = "version = 1\n[node]\nkind = \"server\"\nname = \"s\"\nservers = [\"s\"]\n[broker]\nurl = \"nats://[::1]\"\n";
    let read = node(plain).unwrap();
    assert_eq!((read.broker.host.as_str(), read.broker.port, read.broker.tls), ("::1", 4222, None));
    assert_eq!(read.noise, Noise::Os);
    assert_eq!((read.broker.api.as_str(), read.broker.allow_plain), ("$JS.API", false));
    assert_eq!(
        node(&plain.replace("[broker]", "[broker]\napi = \"fedkin_api\"")).unwrap().broker.api,
        "fedkin_api"
    );
}

#[test]
fn wrong_node_configs_are_refused_in_their_place() {
    let change = |from: &str, to: &str| {
        assert!(NODE.contains(from));
        node(&NODE.replacen(from, to, 1))
    };
    refused(change("kind = \"client\"", "kind = \"clint\""), &["node.toml:4", "`node.kind`", "client"]);
    refused(change("name =", "nmae ="), &["node.toml:5:1", "unknown key", "did you mean `name`?"]);
    refused(change("[observe]", "[observ]"), &["node.toml:13", "unknown section", "did you mean `observe`?"]);
    refused(change("version = 1", "version = 2"), &["node.toml:2", "version 2", "reads version 1"]);
    refused(change("ca = \"ca.pem\"\n", ""), &["`broker.ca`", "belong together"]);
    refused(change("127.0.0.1:9464", "9464"), &["node.toml:14", "`observe.listen`", "127.0.0.1:9464"]);
    refused(change("tls://", "http://"), &["node.toml:7", "http:// is not known", "tls://HOST:PORT"]);
    refused(change("tls://", "tls://a:b@"), &["password"]);
    refused(change("\"host-1\"", "\"host-1\"\nservers = [\"s\"]"), &["`node.servers`", "drop the key"]);
    refused(change("path = \"mine.csv\"", "test_fraction = 0.5"), &["`data.test_fraction`", "unknown key"]);
    refused(change("key = \"seal.key\"\n", ""), &["`seal.key`", "belong together"]);
    refused(change("directory = \"directory.txt\"\n", ""), &["`seal.directory`", "belong together"]);
    let unsealed = "key = \"seal.key\"\ndirectory = \"directory.txt\"\n";
    refused(change(unsealed, ""), &["`seal.key`", "seals its messages", "allow_unsealed"]);
    assert_eq!(change(unsealed, "allow_unsealed = true\n").unwrap().seal, None);
    refused(change("[node]", "[node"), &["node.toml:3", "not valid TOML"]);
    let certificates = "ca = \"ca.pem\"\ncertificate = \"n.pem\"\nkey = \"n.key\"\n";
    refused(change(certificates, ""), &["tls:// needs `ca`"]);
    let open = NODE.replace(certificates, "").replace("tls://", "nats://");
    refused(node(&open), &["node.toml:7", "broker.example is not this machine", "allow_plain"]);
    assert!(node(&open.replace("[data]", "allow_plain = true\n[data]")).is_ok());
    let server = NODE.replace("kind = \"client\"", "kind = \"server\"");
    refused(node(&server), &["`node.servers`", "required"]);
    refused(node(&server.replace("[broker]", "servers = [\"s\"]\n[broker]")), &["`data`", "no records"]);
}

#[test]
fn a_node_opens_its_files_and_finds_its_own() {
    let folder = own();
    let plan = plan(OWN, folder.path(), &[]);
    let roster = Roster::of(&plan, &plan.world(0).unwrap(), &Hosts::Blocks(2)).unwrap();
    write(&folder, "roster.json", &roster.to_json());
    write(&folder, "experiment.toml", &plan.config.resolved());
    write(&folder, "node.toml", &NODE.replace("\"mine.csv\"", "\"all.csv\""));
    let node = NodeConfig::load(&folder.path().join("node.toml")).unwrap();
    let open = Deployment::open(&Registry::native(), &node).unwrap();
    assert_eq!(open.fingerprint, run_fingerprint(&plan.config, &roster));
    assert_eq!(open.clients_of(&node).unwrap(), [3, 4, 5]);
    assert_eq!(open.records_of(&node).unwrap().len(), 3);
    let other = NodeConfig { name: "host-9".into(), ..node.clone() };
    refused(open.clients_of(&other), &["no client to host \"host-9\"", "host-1"]);
    let mine = roster.clients[4].name.clone();
    let one = NodeConfig { kind: NodeKind::Client(Some(vec![mine])), ..node.clone() };
    assert_eq!(open.clients_of(&one).unwrap(), [4]);
    let theirs = roster.clients[0].name.clone();
    let stolen = NodeConfig { kind: NodeKind::Client(Some(vec![theirs])), ..node.clone() };
    refused(open.clients_of(&stolen), &["belongs to host \"host-0\""]);
    let server = NodeConfig { kind: NodeKind::Server(vec!["n".into()]), ..node.clone() };
    assert_eq!(open.servers_of(&server).unwrap(), [0]);
    let lost = NodeConfig { kind: NodeKind::Server(vec!["north".into()]), ..node };
    refused(open.servers_of(&lost), &["server \"north\"", "not in the run"]);
    let central = self::plan(OWN, folder.path(), &["algorithm.name=centralized"]);
    refused(Deployment::new(central, roster).map(|_| ()), &["centralized", "simulations only"]);
}

/// A client that keeps a secret does not draw noise that leaks; a simulation over the network may.
#[test]
fn a_client_with_a_secret_refuses_noise_that_does_not_protect() {
    let privacy = ["privacy.mechanism=zcdp", "privacy.bound=assumed", "privacy.gradient_bound=1"];
    let folder = own();
    for (sampler, words) in [("float", "gaps"), ("none", "adds no noise"), ("discrete", "")] {
        let sampler = format!("privacy.sampler={sampler}");
        let plan = plan(OWN, folder.path(), &[privacy[0], privacy[1], privacy[2], &sampler]);
        let world = plan.world(0).unwrap();
        let roster = Roster::of(&plan, &world, &Hosts::Blocks(2)).unwrap();
        let config = NODE.replace("\"mine.csv\"", "\"all.csv\"").replace("\"seeded\"", "\"os\"");
        let source = Source { name: "node.toml".into(), text: config };
        let node = NodeConfig::parse(&source, folder.path()).unwrap();
        assert_eq!(node.noise, Noise::Os);
        let deployment = Deployment::new(plan, roster).unwrap();
        let place = |name: &str| folder.path().join(format!("{name}-{sampler}"));
        let secret = NodeConfig { state: place("os"), ..node.clone() };
        let seeded = NodeConfig { noise: Noise::Seeded, state: place("seeded"), ..node };
        if words.is_empty() {
            deployment.client_node(&secret).map(|_| ()).unwrap();
        } else {
            let refusal = deployment.client_node(&secret).map(|_| ());
            refused(refusal, &[words, "sampler = \"discrete\"", "noise = \"seeded\""]);
            assert!(!place("os").exists(), "refused before anything is written");
        }
        deployment.client_node(&seeded).map(|_| ()).unwrap();
    }
}
