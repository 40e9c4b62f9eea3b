//! `fedkin run` with methods that learn graphs: what is written, and what is said where it cannot go on.

use crate::bench::Bench;

const GRAPHS: &str = r#"version = 1
[run]
name = "graphs"
seed = 3
rounds = 400
[data]
source = "synthetic.graph-signals"
nodes = 10
clients = 3
samples = 60
[model]
kind = "graph"
beta = 0.1
[algorithm]
name = "fedgl"
rho = 0.5
lambda = 0.1
"#;

#[test]
fn a_run_leaves_its_graphs_and_their_pictures() {
    let bench = Bench::new();
    bench.write("graphs.toml", GRAPHS);
    let told = bench.json(&["run", "graphs.toml", "--json"]);
    let last = &told["final"];
    assert!(last["kkt"].as_f64().unwrap() <= 1e-9 && last["mcc.client"].as_f64().unwrap() > 0.3, "{last}");
    assert!(told["rounds"].as_u64().unwrap() < 200, "it ends when it is done: {told}");
    for file in ["consensus.graphml", "consensus.npz", "clients/client-1.graphml", "clients/client-3.npz"] {
        assert!(bench.path(format!("runs/graphs/graphs/{file}")).is_file(), "{file}");
    }
    let page = bench.read("runs/graphs/report.html");
    assert!(page.contains("The graphs of graphs") && page.contains("own edge of the client"));
    let seen = bench.json(&["graph", "inspect", "runs/graphs/graphs/consensus.npz", "--json"]);
    assert!(seen.to_string().contains("\"nodes\":10"), "{seen}");
    // Graphs predict nothing.
    bench.write("x.csv", "a,b\n1,2\n");
    bench.refused(
        &["predict", "runs/graphs", "--client", "client-1", "--data", "x.csv"],
        &["learnt graphs", "graph inspect"],
    );
}

#[test]
fn divergence_names_cause_and_remedy() {
    let bench = Bench::new();
    bench.write("graphs.toml", GRAPHS);
    let paper = ["run", "graphs.toml", "--set", "algorithm.solver=paper", "--set", "model.beta=1.5"];
    for rho in ["10", "50"] {
        let rho = format!("algorithm.rho={rho}");
        let ran = bench.fedkin(&[&paper[..], &["--set", &rho, "--out", "refused"]].concat());
        assert_eq!((ran.code, ran.out.as_str()), (Some(4), ""), "{ran:?}");
        for words in ["diverges", "Proposition 1", "fuses", "solver = \"exact\"", "algorithm.rho"] {
            assert!(ran.err.contains(words), "{words}: {}", ran.err);
        }
    }
}

#[test]
fn what_does_not_fit_together_is_refused() {
    let bench = Bench::new();
    bench.write("refused.toml", GRAPHS);
    let run = |more: &[&str], words: &[&str]| {
        let mut arguments = vec!["run", "refused.toml"];
        for set in more {
            arguments.extend(["--set", set]);
        }
        bench.refused(&arguments, words);
    };
    run(&["algorithm={name=\"pgfl\"}"], &["graph"]);
    run(&["model={kind=\"ridge\"}"], &["graph"]);
    run(&["privacy={mechanism=\"one-shot\", epsilon=1.0}"], &["clip"]);
    run(&["privacy={mechanism=\"paper\", epsilon=1.0}"], &["solver = \"paper\""]);
    run(&["privacy={mechanism=\"zcdp\"}"], &["one-shot"]);
    run(&["data.nodes=1"], &["nodes"]);
}
