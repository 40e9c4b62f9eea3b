//! The graph of servers.

use crate::Bench;
use fedkin_data::GraphKind;
use fedkin_settings::Value;

const TABLE: &str = "client,server,x,y\na,alpha,1,1\nb,beta,1,1\nc,gamma,1,1\nd,delta,1,1\n";

fn bench() -> Bench {
    let bench = Bench::new("csv").file("t.csv", TABLE).set("path", "t.csv").set("client", "client");
    bench.set("target", "y").set("server", "server")
}

fn edges(content: &str) -> Bench {
    let mut bench = bench().file("edges.csv", content);
    bench.topology.insert("edges".into(), Value::Text("edges.csv".into()));
    bench
}

#[test]
fn edges_are_read_by_name() {
    let world = edges("a,b\nalpha,beta\nbeta,gamma\ndelta,alpha\nbeta,alpha\n").world();
    let topology = world.federation.topology();
    // Ids are in byte order: alpha, beta, delta, gamma.
    assert_eq!(topology.edges().collect::<Vec<_>>(), [(0, 1), (0, 2), (1, 3)]);
}

#[test]
fn bad_edges_are_refused() {
    edges("a,b\nalpha,beta\nalpha,gama\n")
        .refused(&["edges.csv:3: column \"b\": there is no server \"gama\"", "did you mean `gamma`?"]);
    edges("a,b\nalpha,alpha\n").refused(&["edges.csv:2: server \"alpha\" has an edge to itself"]);
    edges("a,b,c\nalpha,beta,1\n").refused(&["edges.csv: an edges file has two columns", "this one has 3"]);
    edges("a,b\nalpha,\n").refused(&["edges.csv:2: column \"b\": the cell is empty"]);
    edges("a,b\nalpha\n").refused(&["edges.csv:2: the record has 1 cells but the header has 2"]);
}

#[test]
fn a_graph_in_pieces_is_refused_where_servers_must_talk() {
    let mut bench = edges("a,b\nalpha,beta\n");
    bench.refused(&["not connected", "3 pieces: {alpha, beta}, {delta}, {gamma}", "add an edge"]);
    bench.connected = false;
    assert_eq!(bench.world().federation.topology().edges().count(), 1);
}

#[test]
fn several_servers_need_a_stated_graph() {
    bench().refused(&["`topology`", "the data name 4 servers (alpha, beta, delta, gamma)", "edges"]);
    let mut alone = bench();
    alone.connected = false;
    assert_eq!(alone.world().federation.topology().edges().count(), 0);
    bench().servers(5).refused(&["`topology.graph.servers`: 5 servers are asked for but the data have 4"]);
}

#[test]
fn the_kinds_are_read() {
    let kind = |word: &str| {
        bench().graph(&[("kind", Value::Text(word.into()))]).world().federation.topology().edges().count()
    };
    assert_eq!([kind("ring"), kind("star"), kind("complete"), kind("grid"), kind("random")], [4, 3, 6, 4, 6]);
    bench().graph(&[("kind", Value::Text("none".into()))]).refused(&["not connected"]);
    let spec = bench()
        .graph(&[("mean_degree", Value::Number(2.5)), ("servers", Value::Integer(4))])
        .topology()
        .unwrap();
    assert_eq!((spec.kind, spec.servers), (GraphKind::Random { mean_degree: 2.5 }, Some(4)));
    let ring = bench().graph(&[("kind", Value::Text("ring".into())), ("mean_degree", Value::Number(2.0))]);
    assert!(ring.topology().unwrap_err().contains("only a random graph has a mean degree"));
    let mut both = edges("a,b\nalpha,beta\n");
    both = both.servers(4);
    assert!(both.topology().unwrap_err().contains("exclude each other"));
    bench().graph(&[("mean_degree", Value::Number(9.0))]).refused(&["mean degree 9 need 18 edges"]);
    assert!(
        bench()
            .graph(&[("kind", Value::Text("rnig".into()))])
            .topology()
            .unwrap_err()
            .contains("did you mean `ring`")
    );
}

#[test]
fn drawn_worlds_take_server_names_from_an_edges_file() {
    let mut bench =
        Bench::new("synthetic.clustered-regression").file("edges.csv", "a,b\nwest,east\neast,mid\n");
    bench.topology.insert("edges".into(), Value::Text("edges.csv".into()));
    let world = bench.set("dimension", 3).world();
    assert_eq!(world.federation.server_names(), ["east", "mid", "west"]);
    assert_eq!(world.federation.members().len(), 45);
}
