//! Learners that differ per client and per cluster, as a user meets them.

use crate::bench::Bench;
use serde_json::Value;
use std::fmt::Write;

/// Six wards in two clusters. One is measured in numbers, the other in labels 0 and 1.
fn records() -> String {
    let mut text = "who,kind,fits,x,z,y\n".to_string();
    for (i, who) in "abcdef".chars().enumerate() {
        let labels = i >= 3;
        let fits = if labels { "yesno" } else { "" };
        for r in 0..12 {
            let (x, z) = (f64::from(r % 7) - 3.0, f64::from((r * 5 + i as i32 * 3) % 8) - 3.5);
            let y =
                if labels { f64::from(u8::from(x + 0.5 * z + f64::from(r % 3) > 1.0)) } else { 2.0 * x - z };
            writeln!(text, "{who},{},{fits},{x},{z},{y}", ["numbers", "labels"][usize::from(labels)])
                .unwrap();
        }
    }
    text
}

/// Squared errors in one cluster; the other has a table.
const TWO_LOSSES: &str = r#"version = 1
[run]
name = "wards"
seed = 3
rounds = 20
[data]
source = "csv"
path = "records.csv"
client = "who"
cluster = "kind"
features = ["x", "z"]
target = "y"
test_fraction = 0.25
[model]
kind = "ridge"
[learner.yesno]
kind = "logistic"
regularisation = 0.1
clusters = ["labels"]
[algorithm]
name = "pgfl"
inter_cluster = 0
"#;

/// A tree here, a ridge model there.
const TREE_AND_RIDGE: &str = r#"version = 1
[run]
name = "wards"
seed = 3
rounds = 6
[data]
source = "csv"
path = "numbers.csv"
client = "who"
features = ["x", "z"]
target = "y"
test_fraction = 0.25
[model]
kind = "ridge"
[learner.trees]
kind = "tree"
leaf = 2
clients = ["a", "c"]
[algorithm]
name = "persfl-agnostic"
candidates = 2
"#;

fn bench() -> Bench {
    let bench = Bench::new();
    let all = records();
    let numbers: String =
        all.lines().filter(|line| !line.contains(",labels,")).flat_map(|line| [line, "\n"]).collect();
    bench.write("records.csv", &all);
    bench.write("numbers.csv", numbers);
    bench.write("losses.toml", TWO_LOSSES);
    bench.write("trees.toml", TREE_AND_RIDGE);
    bench
}

fn run(bench: &Bench, file: &str, out: &str) -> Value {
    bench.json(&["run", file, "--out", out, "--json"])
}

fn metric(told: &Value, name: &str) -> f64 {
    told["final"][name].as_f64().unwrap_or_else(|| panic!("no {name} in {told}"))
}

#[test]
fn a_tree_here_and_a_ridge_model_there() {
    let bench = bench();
    let told = run(&bench, "trees.toml", "runs/trees");
    for name in ["mse.client", "mse.model", "mse.trees"] {
        assert!(metric(&told, name).is_finite(), "{name}");
    }
    let (all, ridge, trees) =
        (metric(&told, "mse.client"), metric(&told, "mse.model"), metric(&told, "mse.trees"));
    assert!((all - (ridge + 2.0 * trees) / 3.0).abs() < 1e-9 * all, "{all} of {ridge} and {trees}");
    // The targets are a plane: a ridge model finds it, a tree does not.
    assert!(ridge < 0.2 * trees, "{ridge} {trees}");
    for client in ["a", "b"] {
        let predicted = bench.good(&["predict", "runs/trees", "--client", client, "--data", "numbers.csv"]);
        assert!(predicted.contains("mse"), "{predicted}");
    }
    // What is written out says the same.
    bench.write("again.toml", bench.read("runs/trees/config.toml"));
    assert!(bench.read("again.toml").contains("[learner.trees]\nkind = \"tree\""));
    assert_eq!(run(&bench, "again.toml", "runs/again")["models_sha256"], told["models_sha256"]);
    // Others learn alone, or from everybody's records, with their own kind of model.
    for method in ["local", "pooled", "centralized"] {
        bench.edit(
            "trees.toml",
            "other.toml",
            &[("\"persfl-agnostic\"\ncandidates = 2", &format!("{method:?}"))],
        );
        let other = run(&bench, "other.toml", &format!("runs/{method}"));
        assert!(metric(&other, "mse.trees") > metric(&other, "mse.model"), "{method}");
        assert_ne!(other["models_sha256"], told["models_sha256"]);
    }
    bench.refused(
        &["predict", "runs/pooled", "--client", "a", "--data", "numbers.csv", "--model", "served"],
        &["clients a and b", "different learners", "--model client"],
    );
}

#[test]
fn numbers_in_one_cluster_and_labels_in_the_other() {
    let bench = bench();
    let told = run(&bench, "losses.toml", "runs/losses");
    assert!(metric(&told, "mse.client") < 0.1, "{told}");
    assert!(metric(&told, "accuracy.client") > 0.7, "{told}");
    // A client whose learner has no such metric does not count: each client's file has either an error or an accuracy.
    for (client, metric) in [("a", "mse"), ("b", "mse"), ("d", "accuracy"), ("f", "accuracy")] {
        let said = bench.good(&["predict", "runs/losses", "--client", client, "--data", "records.csv"]);
        assert!(said.contains(metric), "{client}: {said}");
    }
    // By a column of the records, by the names of the clients and by a `set` of the command line it is the same run.
    bench.edit(
        "losses.toml",
        "column.toml",
        &[
            ("features = [\"x\", \"z\"]", "features = [\"x\", \"z\"]\nlearner = \"fits\""),
            ("clusters = [\"labels\"]\n", ""),
        ],
    );
    let names = "clients = [\"d\", \"e\", \"f\"]";
    bench.edit("losses.toml", "clients.toml", &[("clusters = [\"labels\"]", names)]);
    bench.edit("losses.toml", "set.toml", &[("regularisation = 0.1\nclusters = [\"labels\"]\n", "")]);
    for (file, more) in [
        ("column.toml", &[][..]),
        ("clients.toml", &[]),
        (
            "set.toml",
            &["--set", "learner.yesno.regularisation=0.1", "--set", "learner.yesno.clusters=[\"labels\"]"],
        ),
    ] {
        let out = format!("runs/{file}");
        let same = bench.json(&[&["run", file, "--out", &out, "--json"], more].concat());
        assert_eq!(same["models_sha256"], told["models_sha256"], "{file}");
    }
    // The word `model` in the column wins over a table that claims the client.
    bench.write("records.csv", records().replace(",yesno,", ",model,"));
    bench.edit(
        "losses.toml",
        "default.toml",
        &[("features = [\"x\", \"z\"]", "features = [\"x\", \"z\"]\nlearner = \"fits\"")],
    );
    bench.refused(
        &["run", "default.toml", "--out", "runs/refused"],
        &["no client fits what [learner.yesno] says"],
    );
}

/// Alone, a client is trained or fitted as its learner is, and models may have any length.
#[test]
fn a_net_here_and_a_ridge_model_there_learn_alone() {
    let bench = bench();
    let net = "kind = \"net\"\nclasses = 2\ninput = [2, 1, 1]\nlayers = [\"dense 2\"]";
    let alone = "name = \"local\"\nlearning_rate = 0.1";
    let changes =
        [("kind = \"logistic\"\nregularisation = 0.1", net), ("name = \"pgfl\"\ninter_cluster = 0", alone)];
    bench.edit("losses.toml", "net.toml", &changes);
    let told = run(&bench, "net.toml", "runs/net");
    assert!(metric(&told, "mse.client") < 0.1 && metric(&told, "accuracy.client") > 0.7, "{told}");
    // The default is first or last.
    bench.edit(
        "net.toml",
        "other.toml",
        &[
            ("[model]\nkind = \"ridge\"", &format!("[model]\n{net}")),
            (&format!("[learner.yesno]\n{net}"), "[learner.plane]\nkind = \"ridge\""),
            ("\"labels\"", "\"numbers\""),
        ],
    );
    assert_eq!(run(&bench, "other.toml", "runs/other")["models_sha256"], told["models_sha256"]);
    bench.edit("net.toml", "refused.toml", &[("name = \"local\"", "name = \"fedavg\"")]);
    bench.refused(
        &["run", "refused.toml", "--out", "runs/refused"],
        &["models are averaged", "net, 6 parameters"],
    );
}

/// What is wrong, in which file, by which change, and words of the message.
type Wrong = (&'static str, &'static str, (&'static str, &'static str), &'static [&'static str]);

const WRONG: &[Wrong] = &[
    (
        "an ability that is missing",
        "losses.toml",
        ("kind = \"logistic\"\nregularisation = 0.1", "kind = \"tree\""),
        &[
            "pgfl needs parameters that can be averaged",
            "\"tree\"",
            "set learner.yesno.kind = \"ridge\"",
            "\"persfl-agnostic\"",
        ],
    ),
    (
        "unequal parameters",
        "losses.toml",
        ("regularisation = 0.1", "regularisation = 0.1\nbias = true"),
        &[
            "models are averaged",
            "client \"a\" (ridge, 2 parameters)",
            "client \"d\" (logistic, 3 parameters)",
            "equal parameters",
        ],
    ),
    (
        "an unknown cluster",
        "losses.toml",
        ("clusters = [\"labels\"]", "clusters = [\"label\"]"),
        &["learner.yesno.clusters", "no cluster is called \"label\"", "did you mean `labels`?"],
    ),
    (
        "an unknown client",
        "trees.toml",
        ("clients = [\"a\", \"c\"]", "clients = [\"a\", \"cc\"]"),
        &["learner.trees.clients", "no client is called \"cc\""],
    ),
    (
        "one client in two tables",
        "trees.toml",
        ("[algorithm]", "[learner.near]\nkind = \"knn\"\nclients = [\"c\"]\n[algorithm]"),
        &[
            "refused.toml:",
            "`learner.trees.clients`",
            "client \"c\"",
            "[learner.near] and of [learner.trees]",
        ],
    ),
    (
        "a table that nobody has",
        "trees.toml",
        ("clients = [\"a\", \"c\"]\n", ""),
        &["no client fits what [learner.trees] says", "leave the table out"],
    ),
    (
        "a [model] that nobody has",
        "trees.toml",
        ("clients = [\"a\", \"c\"]", "clients = [\"a\", \"b\", \"c\"]"),
        &["no client fits what [model] says"],
    ),
    (
        "a mix beside tables",
        "trees.toml",
        ("kind = \"ridge\"", "kind = \"mixed\"\nkinds = [\"tree\", \"ridge\"]"),
        &["model.kind = \"mixed\"", "[learner.trees]", "leave the tables out"],
    ),
    (
        "a mix in a table",
        "trees.toml",
        ("kind = \"tree\"\nleaf = 2", "kind = \"mixed\"\nkinds = [\"tree\", \"ridge\"]"),
        &["learner.trees.kind = \"mixed\"", "one table [learner.NAME] for each"],
    ),
    (
        "a graph beside models",
        "trees.toml",
        ("kind = \"tree\"\nleaf = 2", "kind = \"graph\""),
        &["graphs are learnt by all clients alike"],
    ),
    (
        "an unknown kind",
        "trees.toml",
        ("\"tree\"", "\"tre\""),
        &["`learner.trees.kind`", "did you mean `tree`?"],
    ),
    (
        "an unknown key",
        "trees.toml",
        ("leaf = 2", "leef = 2"),
        &["`learner.trees.leef`", "did you mean `leaf`?"],
    ),
    (
        "a key of who has it",
        "trees.toml",
        ("clients =", "client ="),
        &["`learner.trees.client`", "did you mean `clients`?"],
    ),
    (
        "a key of another kind",
        "trees.toml",
        ("leaf = 2", "huber = 2.0"),
        &["`learner.trees.huber`", "is a key of ridge", "kind is \"tree\""],
    ),
    (
        "the name of the default",
        "trees.toml",
        ("[learner.trees]", "[learner.model]"),
        &["`learner.model`", "another name"],
    ),
    ("no table", "trees.toml", ("[learner.trees]\nkind", "[learner]\nkind"), &["[learner.NAME]"]),
    (
        "clusters that are found on the way",
        "losses.toml",
        ("[algorithm]", "[kin]\nclusters = \"infer\"\nwarm_up = 2\n[algorithm]"),
        &["`learner.yesno.clusters`", "name its `clients`"],
    ),
    (
        "targets that a learner does not take",
        "losses.toml",
        ("clusters = [\"labels\"]", "clusters = [\"numbers\"]"),
        &["client \"a\" has the target", "\"logistic\" takes labels 0 and 1"],
    ),
    (
        "records of two sorts in one fit",
        "losses.toml",
        ("name = \"pgfl\"\ninter_cluster = 0", "name = \"pooled\""),
        &["client \"a\" (ridge, numbers)", "client \"d\" (logistic, labels 0 and 1)", "two sorts"],
    ),
    (
        "no bound for one of the losses",
        "losses.toml",
        ("[algorithm]", "[privacy]\nmechanism = \"zcdp\"\n[algorithm]"),
        &["`model.feature_norm`", "`learner.yesno.feature_norm`", "required"],
    ),
    (
        "what its row refuses",
        "losses.toml",
        ("kind = \"logistic\"\nregularisation = 0.1", "kind = \"ridge\"\nregulariser = \"group\""),
        &["learner.yesno: ", "`learner.yesno.group_size`"],
    ),
];

#[test]
fn what_cannot_work_is_refused_with_a_way_out() {
    let bench = bench();
    for (number, (what, file, change, words)) in WRONG.iter().enumerate() {
        eprintln!("{what}");
        let out = format!("runs/refused/{number}");
        bench.edit(file, "refused.toml", &[*change]);
        bench.refused(&["run", "refused.toml", "--out", &out], words);
        bench.refused(&["config", "check", "refused.toml"], words);
    }
}

#[test]
fn a_column_or_a_roster_with_an_unknown_learner_is_refused() {
    let bench = bench();
    bench.write("records.csv", records().replace(",yesno,", ",yesmo,"));
    let columns = [
        ("features = [\"x\", \"z\"]", "features = [\"x\", \"z\"]\nlearner = \"fits\""),
        ("clusters = [\"labels\"]\n", ""),
    ];
    bench.edit("losses.toml", "column.toml", &columns);
    let words = &["client \"d\"", "no learner \"yesmo\"", "did you mean `yesno`?", "[learner.yesmo]"];
    bench.refused(&["run", "column.toml", "--out", "runs/refused"], words);
    bench.refused(&["config", "check", "column.toml"], words);
    // A kind is no learner: its keys must stand somewhere.
    bench.write("records.csv", records().replace(",yesno,", ",logistic,"));
    bench.refused(&["config", "check", "column.toml"], &["[learner.logistic] with kind = \"logistic\""]);
    bench.write("roster.csv", "client,samples,cluster,learner\na,9,numbers,\nd,9,labels,yesnoo\n");
    bench.write("schema.toml", "target = \"y\"\n[[features]]\nname = \"x\"\n[[features]]\nname = \"z\"\n");
    bench.edit(
        "column.toml",
        "roster.toml",
        &[("target = \"y\"", "target = \"y\"\nschema = \"schema.toml\"")],
    );
    bench.refused(
        &["provision", "roster.toml", "--roster", "roster.csv", "--out", "runs/refused"],
        &["roster.csv:3", "no learner \"yesnoo\"", "did you mean `yesno`?"],
    );
}

/// Configs of versions in which `[model]` was one table for all kinds.
#[test]
fn an_old_config_loads_or_is_refused_with_the_keys_of_its_kind() {
    let bench = bench();
    let (before, after) = TREE_AND_RIDGE.split_once("[model]").unwrap();
    let after = after.split_once("[algorithm]").unwrap().1;
    let old = |keys: &str| format!("{before}[model]\nkind = \"tree\"\n{keys}[algorithm]{after}");
    bench.write("new.toml", old(""));
    // Every config that was written out in full had these.
    bench.write("old.toml", old("regularisation = 0.01\nbias = false\n"));
    let told = |file: &str| run(&bench, file, &format!("runs/{file}"))["models_sha256"].clone();
    assert_eq!(told("old.toml"), told("new.toml"));
    bench.write("refused.toml", old("regularisation = 0.5\n"));
    bench.refused(
        &["run", "refused.toml"],
        &["`model.regularisation`", "is a key of ridge, logistic", "kind is \"tree\"", "leaf"],
    );
    // It was never one of a table of learners.
    bench.edit("trees.toml", "refused.toml", &[("leaf = 2", "regularisation = 0.01")]);
    bench.refused(&["run", "refused.toml"], &["`learner.trees.regularisation`", "kind is \"tree\""]);
}
