use super::*;
use fedkin_learner::model::settings as keys;
use fedkin_settings::{Kind, Preset, Settings};

const ABOVE_ZERO: Kind = Kind::Number { least: 0.0, most: f64::INFINITY, open: true };
const SHARE: Kind = Kind::Number { least: 0.0, most: 1.0, open: false };

const fn param(name: &'static str, kind: Kind, preset: Preset) -> Param {
    Param { name, kind, preset, help: "what it does" }
}

const CSV: &[Param] = &[
    param("path", Kind::Path, Preset::Required),
    param("client", Kind::Text, Preset::Text("client")),
    param("target", Kind::Text, Preset::Text("y")),
    param("standardise", Kind::Flag, Preset::Flag(false)),
    param("test_fraction", SHARE, Preset::Number(0.2)),
];
const SYNTHETIC: &[Param] = &[
    param("features", Kind::Integer { least: 1, most: 10_000 }, Preset::Integer(60)),
    param("test_fraction", SHARE, Preset::Number(0.5)),
];
const PGFL: &[Param] = &[
    param("penalty", ABOVE_ZERO, Preset::Number(5.0)),
    param(
        "inter_cluster",
        Kind::Either(&[
            SHARE,
            Kind::Choice(&["adaptive"]),
            Kind::Table(&[
                param("start", SHARE, Preset::Required),
                param("decay", SHARE, Preset::Number(0.98)),
            ]),
        ]),
        Preset::Number(0.4),
    ),
    param("dual", Kind::Choice(&["served", "aggregate"]), Preset::Text("served")),
];
const GFL: &[Param] = &[param("penalty", ABOVE_ZERO, Preset::Number(5.0))];
const TOPOLOGY: &[Param] = &[
    param("edges", Kind::Path, Preset::Absent),
    param(
        "graph",
        Kind::Table(&[
            param("kind", Kind::Choice(&["random", "ring"]), Preset::Required),
            param("servers", Kind::Integer { least: 1, most: 100 }, Preset::Absent),
            param("mean_degree", ABOVE_ZERO, Preset::Number(3.0)),
        ]),
        Preset::Absent,
    ),
];

/// The keys of the learners that tests name.
const MODELS: &[RowSummary<'static>] = &[
    ("ridge", "numbers", <keys::Ridge as Settings>::PARAMS),
    ("logistic", "labels", <keys::Logistic as Settings>::PARAMS),
    ("softmax", "classes", <keys::Softmax as Settings>::PARAMS),
    ("graph", "a graph", <keys::Graph as Settings>::PARAMS),
    ("tree", "a tree", <keys::Tree as Settings>::PARAMS),
    ("knn", "neighbours", <keys::Knn as Settings>::PARAMS),
    ("forest", "a forest", <keys::Forest as Settings>::PARAMS),
    ("mixed", "several", <keys::Mixed as Settings>::PARAMS),
    ("net", "a net", <keys::Net as Settings>::PARAMS),
];

const TABLES: Tables<'static> = Tables {
    sources: &[
        ("csv", "a table of records", CSV),
        ("synthetic.clustered-regression", "clusters of linear models", SYNTHETIC),
    ],
    models: MODELS,
    algorithms: &[
        ("pgfl", "personal models over a graph", PGFL),
        ("gfl", "one model over a graph", GFL),
        ("local", "each alone", &[]),
    ],
    topology: TOPOLOGY,
};

const SMALL: &str = r#"version = 1

[run]
name = "wards"
rounds = 50

[data]
source = "csv"
path = "wards.csv"

[model]
kind = "ridge"

[algorithm]
name = "pgfl"
penalty = 5.0
"#;

fn source(text: &str) -> Source {
    Source { name: "wards.toml".into(), text: text.into() }
}

fn sets(list: &[&str]) -> Vec<Override> {
    list.iter().map(|text| Override::parse(text).unwrap()).collect()
}

fn small(overrides: &[&str]) -> Result<Config, ConfigError> {
    load(&source(SMALL), &sets(overrides), &TABLES)
}

/// The error of the small config with one text replaced by another.
fn error(from: &str, to: &str) -> String {
    assert!(SMALL.contains(from), "{from}");
    load(&source(&SMALL.replacen(from, to, 1)), &[], &TABLES).unwrap_err().to_string()
}

fn set_error(overrides: &[&str]) -> String {
    small(overrides).unwrap_err().to_string()
}

fn fixture() -> Source {
    Source { name: "v1.toml".into(), text: include_str!("fixtures/v1.toml").into() }
}

#[test]
fn version_1_stays_loadable() {
    let config = load(&fixture(), &[], &TABLES).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(config.run.seed, 7);
    assert_eq!(config.run.checkpoint_seconds, 5.0);
    assert_eq!(config.data_source, "csv");
    assert_eq!(config.data.number("test_fraction"), Some(0.25));
    assert_eq!(config.topology.table("graph").unwrap().integer("servers"), Some(10));
    assert_eq!(config.algorithm_values.table("inter_cluster").unwrap().number("decay"), Some(0.98));
    assert_eq!(config.evaluate.models, ["client", "served"]);
    assert_eq!(config.curves.len(), 3);
    assert_eq!(config.curves[1].set, sets(&["algorithm.name=gfl", "run.rounds=200"]));
    assert_eq!(
        config.sweep.as_ref().unwrap().step(1),
        Some(Override::parse("privacy.initial_budget=1e-4").unwrap())
    );
    let paper = config.paper.unwrap();
    assert_eq!(paper.title, r#"A "quoted" title \ with a backslash"#);
    assert_eq!(paper.claims[1], Claim { text: "the budget is small".into(), check: None });
}

#[test]
fn a_resolved_config_loads_back_to_the_same_and_hides_no_default() {
    for source in [fixture(), source(SMALL)] {
        let config = load(&source, &[], &TABLES).unwrap();
        let text = config.resolved();
        let again = load(&Source { name: "config.toml".into(), text: text.clone() }, &[], &TABLES)
            .unwrap_or_else(|error| panic!("{error}\n{text}"));
        assert_eq!(again, config, "{text}");
        assert_eq!(again.resolved(), text);
        assert_eq!(again.fingerprint(), config.fingerprint());
    }
    let expected = r#"version = 1

[run]
name = "wards"
seed = 0
rounds = 50
repeats = 1
checkpoint_seconds = 10.0
max_norm = 1000000.0

[data]
source = "csv"
client = "client"
path = "wards.csv"
standardise = false
target = "y"
test_fraction = 0.2

[topology]

[model]
kind = "ridge"
regularisation = 0.01
bias = false

[algorithm]
name = "pgfl"
dual = "served"
inter_cluster = 0.4
penalty = 5.0

[participation]

[privacy]
mechanism = "none"
initial_budget = 0.001
growth = 0.99
bound = "enforced"
sampler = "discrete"
delta = 1e-5
unit = "record"

[evaluate]
every = 1
per_client_limit = 1000

[network]
mode = "strict"
quorum = 1.0
deadline = 30.0
resend = 2.0
"#;
    assert_eq!(small(&[]).unwrap().resolved(), expected);
}

#[test]
fn any_text_survives_the_way_through_toml() {
    for text in ["", "a\tb\nc\r", "\u{7f}\u{1}\u{85}", "\"\\'", "\u{1f600} ä", "nan", "2024-01-01"] {
        let set = Override { key: "data.client".into(), value: Value::Text(text.into()) };
        let config = load(&source(SMALL), &[set], &TABLES).unwrap();
        let again = load(&source(&config.resolved()), &[], &TABLES).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(again.data.text("client"), Some(text));
    }
}

#[test]
fn the_fingerprint_sees_what_decides_the_numbers_and_nothing_else() {
    let base = small(&[]).unwrap();
    for idle in [
        "run.name=other",
        "run.repeats=5",
        "run.checkpoint_seconds=0",
        "evaluate.per_client_limit=0",
        "evaluate.metric=nmsd",
        "algorithm.penalty=5",
        "network.mode=deadline",
        "network.resend=1",
    ] {
        assert_eq!(small(&[idle]).unwrap().fingerprint(), base.fingerprint(), "{idle}");
    }
    for deciding in [
        "run.seed=1",
        "run.rounds=51",
        "algorithm.penalty=6",
        "data.path=b.csv",
        "evaluate.every=2",
        "algorithm.name=gfl",
    ] {
        let other = small(&[deciding]).unwrap();
        assert_ne!(other.fingerprint(), base.fingerprint(), "{deciding}");
        assert!(!other.differences(&base).is_empty());
    }
    let other = small(&["algorithm.penalty=6", "participation.clients_per_server=3", "run.name=x"]).unwrap();
    assert_eq!(
        other.differences(&base),
        [
            "`algorithm.penalty` was 5.0 and is now 6.0",
            "`participation.clients_per_server` was absent and is now 3"
        ]
    );
}

#[test]
fn unknown_key() {
    assert_eq!(
        error("penalty =", "penalti ="),
        "wards.toml:16:1: `algorithm.penalti`: unknown key; did you mean `penalty`?
   |
16 | penalti = 5.0
   | ^^^^^^^"
    );
    assert_eq!(
        error("penalty = 5.0", "inter_cluster = { start = 0.4, decai = 0.9 }"),
        "wards.toml:16:32: `algorithm.inter_cluster.decai`: unknown key; did you mean `decay`?
   |
16 | inter_cluster = { start = 0.4, decai = 0.9 }
   |                                ^^^^^"
    );
}

#[test]
fn a_key_in_the_wrong_section_is_sent_home() {
    assert_eq!(
        error("kind = \"ridge\"", "kind = \"ridge\"\nseed = 7"),
        "wards.toml:13:1: `model.seed`: unknown key here; did you mean `seed` of section [run]?
   |
13 | seed = 7
   | ^^^^"
    );
    assert_eq!(set_error(&["rounds=9"]), "--set rounds=9: unknown key; did you mean `run.rounds`?");
}

#[test]
fn unknown_section() {
    assert_eq!(
        error("[algorithm]", "[algoritm]").lines().take(4).collect::<Vec<_>>().join("\n"),
        "wards.toml:14:2: `algoritm`: unknown section; did you mean `algorithm`?
   |
14 | [algoritm]
   |  ^^^^^^^^"
    );
}

#[test]
fn wrong_type() {
    assert_eq!(
        error("rounds = 50", "rounds = \"many\""),
        "wards.toml:5:10: `run.rounds`: expected a whole number in 1..4294967295, found \"many\"
  |
5 | rounds = \"many\"
  |          ^^^^^^"
    );
    assert_eq!(
        error("[run]\nname = \"wards\"\nrounds = 50", "run = 3"),
        "wards.toml:3:7: `run`: expected a section [run], found 3
  |
3 | run = 3
  |       ^"
    );
    assert!(error("[run]", "[[run]]").contains("`run`: expected one section, written as [run]"));
    assert!(error("version = 1", "version = 1\ncurve = 3").contains("each written as [[curve]]"));
}

#[test]
fn out_of_range() {
    assert_eq!(
        error("penalty = 5.0", "penalty = -1"),
        "wards.toml:16:11: `algorithm.penalty`: -1 is out of range: expected a number above 0
   |
16 | penalty = -1
   |           ^^"
    );
    assert_eq!(
        set_error(&["algorithm.inter_cluster=1.5"]),
        "--set algorithm.inter_cluster=1.5: 1.5 is out of range: expected a number in [0, 1]"
    );
    assert!(error("rounds = 50", "rounds = 50\nseed = -1").contains("-1 is out of range"));
    assert!(
        error("rounds = 50", "rounds = 99999999999999999999")
            .starts_with("wards.toml:5:10: 99999999999999999999 does not fit: whole numbers go up to")
    );
    assert!(error("rounds = 50", "rounds = 2024-01-01").contains("no key takes a date"));
}

#[test]
fn missing_required() {
    assert_eq!(
        error("rounds = 50\n", ""),
        "wards.toml:3:2: `run.rounds`: this key is required: a whole number in 1..4294967295 (how many rounds to train)
  |
3 | [run]
  |  ^^^"
    );
    assert_eq!(
        error("[model]\nkind = \"ridge\"\n", ""),
        "wards.toml: `model.kind`: this key is required: the kind of model (ridge, logistic, softmax, graph, tree, knn, forest, mixed, net)"
    );
    assert_eq!(
        error("[algorithm]\nname = \"pgfl\"\npenalty = 5.0\n", ""),
        "wards.toml: `algorithm.name`: this key is required: the algorithm (pgfl, gfl, local)"
    );
}

#[test]
fn bad_syntax() {
    assert_eq!(
        error("rounds = 50", "rounds = = 50"),
        "wards.toml:5:10: not valid TOML: extra `=`
  |
5 | rounds = = 50
  |          ^"
    );
    let text = error("name = \"wards\"", "name = \"wards");
    assert!(text.starts_with("wards.toml:4:14: not valid TOML: "), "{text}");
    let text = error("rounds = 50", "rounds = 50\nrounds = 51");
    assert!(text.starts_with("wards.toml:6:1: not valid TOML: duplicate key"), "{text}");
}

#[test]
fn wrong_version() {
    assert_eq!(
        error("version = 1", "version = 2"),
        "wards.toml:1:11: `version`: version 2 is not known: this Fedkin reads version 1
  |
1 | version = 2
  |           ^"
    );
    assert_eq!(
        error("version = 1\n", ""),
        "wards.toml: `version`: the version of the format is missing: write `version = 1` at the top"
    );
}

#[test]
fn unknown_algorithm_or_source() {
    assert_eq!(
        error("name = \"pgfl\"", "name = \"pgflx\""),
        "wards.toml:15:8: `algorithm.name`: there is no algorithm \"pgflx\"; did you mean `pgfl`?
   |
15 | name = \"pgflx\"
   |        ^^^^^^^"
    );
    assert_eq!(
        error("source = \"csv\"", "source = \"synthetic-regression\""),
        "wards.toml:8:10: `data.source`: there is no data source \"synthetic-regression\"; did you mean `synthetic.clustered-regression`?
  |
8 | source = \"synthetic-regression\"
  |          ^^^^^^^^^^^^^^^^^^^^^^"
    );
    assert_eq!(
        set_error(&["algorithm.name=xyz"]),
        "--set algorithm.name=\"xyz\": there is no algorithm \"xyz\"; known here: pgfl, gfl, local"
    );
    assert!(error("name = \"pgfl\"", "name = 3").contains("expected the algorithm as text, found 3"));
}

#[test]
fn bad_set() {
    let parse = |text: &str| Override::parse(text).unwrap_err();
    let example = "write it as section.key=value, such as algorithm.penalty=5";
    assert_eq!(parse("algorithm.penalty"), format!("--set algorithm.penalty: there is no `=`; {example}"));
    assert_eq!(parse("a..b=3"), format!("--set a..b=3: `a..b` is not a key; {example}"));
    assert_eq!(parse("=3"), format!("--set =3: `` is not a key; {example}"));
    assert_eq!(parse("a.b="), format!("--set a.b=: the value is missing; {example}"));
    assert!(parse("a.b=[1, 2").starts_with("--set a.b=[1, 2: the value is not valid TOML: "));
    assert_eq!(
        set_error(&["algorithm.penalti=3"]),
        "--set algorithm.penalti=3: unknown key; did you mean `penalty`?"
    );
    assert_eq!(
        set_error(&["algoritm.penalty=3"]),
        "--set algoritm.penalty=3: `algoritm`: unknown section; did you mean `algorithm`?"
    );
}

#[test]
fn set_values_are_toml_and_bare_words_are_text() {
    let value = |text: &str| Override::parse(&format!("a.b={text}")).unwrap().value;
    assert_eq!(value("3"), Value::Integer(3));
    assert_eq!(value(" 1e-5 "), Value::Number(1e-5));
    assert_eq!(value("true"), Value::Flag(true));
    assert_eq!(value("adaptive"), Value::Text("adaptive".into()));
    assert_eq!(value("my file.csv"), Value::Text("my file.csv".into()));
    assert_eq!(value("x=y"), Value::Text("x=y".into()));
    assert_eq!(value("2024-01-01"), Value::Text("2024-01-01".into()));
    assert_eq!(value("\"3\""), Value::Text("3".into()));
    assert_eq!(value("[1, 2.5]"), Value::List(vec![Value::Integer(1), Value::Number(2.5)]));
    assert_eq!(value("{ start = 1 }"), Value::Table([("start".to_string(), Value::Integer(1))].into()));
    assert_eq!(value("3 4"), Value::Text("3 4".into()));
}

#[test]
fn set_reaches_into_tables_and_may_turn_a_number_into_one() {
    let config = small(&["algorithm.inter_cluster.start=0.5", "algorithm.inter_cluster.decay=0.9"]).unwrap();
    assert_eq!(config.algorithm_values.table("inter_cluster").unwrap().number("decay"), Some(0.9));
    let config = small(&["topology.graph={ kind = \"ring\" }", "topology.graph.servers=4"]).unwrap();
    assert_eq!(config.topology.table("graph").unwrap().integer("servers"), Some(4));
    assert_eq!(small(&["run.rounds=1", "run.rounds=2"]).unwrap().run.rounds, 2);
}

#[test]
fn all_problems_are_told_at_once_in_the_order_of_the_file() {
    let text =
        SMALL.replace("rounds", "round").replace("kind = \"ridge\"", "kind = 1").replace("= 5.0", "= 0.0");
    let error = load(&source(&text), &sets(&["privacy.delta=7"]), &TABLES).unwrap_err();
    let keys: Vec<&str> = error.diagnostics.iter().map(|diagnostic| diagnostic.key.as_str()).collect();
    assert_eq!(keys, ["run.rounds", "run.round", "model.kind", "algorithm.penalty", "privacy.delta"]);
}

#[test]
fn another_algorithm_or_source_takes_its_own_keys_along() {
    let text = SMALL.replace("penalty = 5.0", "penalty = 2.0\ninter_cluster = 0.1");
    let with = |overrides: &[&str]| load(&source(&text), &sets(overrides), &TABLES);
    let config = with(&["algorithm.name=gfl"]).unwrap();
    assert_eq!(config.algorithm_values.number("penalty"), Some(2.0));
    assert_eq!(config.algorithm_values.get("inter_cluster"), None);
    with(&["algorithm.name=local"]).unwrap();
    with(&["data.source=synthetic.clustered-regression"]).unwrap();
    // What is set together with the name must be known to it, in whatever order.
    for overrides in
        [["algorithm.name=gfl", "algorithm.dual=served"], ["algorithm.dual=served", "algorithm.name=gfl"]]
    {
        assert!(
            with(&overrides)
                .unwrap_err()
                .to_string()
                .contains("--set algorithm.dual=\"served\": unknown key")
        );
    }
    // A slip of the pen in the file is told even so.
    let slip = SMALL.replace("penalty", "penalti");
    let error = load(&source(&slip), &sets(&["algorithm.name=gfl"]), &TABLES).unwrap_err();
    assert!(error.to_string().contains("`algorithm.penalti`: unknown key"), "{error}");
}

#[test]
fn a_variant_is_the_base_with_its_sets_on_top() {
    let base = load(&fixture(), &[], &TABLES).unwrap();
    let command_line = sets(&["run.rounds=250", "algorithm.inter_cluster=0.2"]);
    let step = [base.sweep.as_ref().unwrap().step(0).unwrap()];
    let variant = load_variant(&fixture(), &command_line, &[&base.curves[1].set, &step], &TABLES).unwrap();
    assert_eq!((variant.algorithm.as_str(), variant.run.rounds), ("gfl", 200));
    assert_eq!(variant.privacy.initial_budget, 1e-5);
    assert!(variant.curves.is_empty() && variant.sweep.is_none());
    let plain = load_variant(&fixture(), &command_line, &[&base.curves[2].set], &TABLES).unwrap();
    assert_eq!(plain.algorithm_values.number("inter_cluster"), Some(0.2));
}

#[test]
fn curves_and_sweeps_are_checked_before_anything_runs() {
    let with = |more: &str| {
        load(&source(&format!("{SMALL}{more}")), &[], &TABLES).map(|_| ()).unwrap_err().to_string()
    };
    assert_eq!(
        with(
            "\n[[curve]]\nlabel = \"GFL\"\nset = { algorithm.name = \"gfl\", algorithm.dual = \"served\" }\n"
        ),
        "wards.toml:20:43: `algorithm.dual`: in curve \"GFL\": unknown key; known here: penalty
   |
20 | set = { algorithm.name = \"gfl\", algorithm.dual = \"served\" }
   |                                           ^^^^"
    );
    assert_eq!(
        with("\n[sweep]\nkey = \"algorithm.penalty\"\nvalues = [1, 0, 2]\n"),
        "wards.toml:20:14: `algorithm.penalty`: in the sweep: 0 is out of range: expected a number above 0
   |
20 | values = [1, 0, 2]
   |              ^"
    );
    assert!(
        with("[sweep]\nkey = \"algorithm.penalty\"\nvalues = []\n").contains("a list of at least one value")
    );
    assert!(
        with("[sweep]\nkey = \"run.seed\"\nvalues = [1]\nat_round = 51\n")
            .contains("round 51 is never reached")
    );
    assert!(
        with("[sweep]\nkey = \"sweep.key\"\nvalues = [1]\n")
            .contains("not a key that a curve or a sweep can set")
    );
    assert!(
        with("[[curve]]\nlabel = \"a\"\n[[curve]]\nlabel = \"a\"\n").contains("two curves are called \"a\"")
    );
    assert!(with("[[curve]]\nset = { run.seed = 1 }\n").contains("`curve.1.label`: this key is required"));
    assert!(with("[[curve]]\nlabel = \"a\"\nset = 3\n").contains("expected a table of keys and values"));
    let along = |tables: &str| {
        let sweep = "[sweep]\nkey = \"algorithm.penalty\"\nvalues = [1, 2]\n";
        with(&format!("[[curve]]\nlabel = \"a\"\nalong = {tables}\n{sweep}"))
    };
    assert!(along("[{ run.seed = 1 }]").contains("one table of keys and values for each of the 2 values"));
    assert!(along("[{ run.seed = 1 }, 3]").contains("for each of the 2 values"));
    assert!(along("[{}, { run.sed = 1 }]").contains("in curve \"a\", in the sweep: unknown key"));
    assert!(along("[{}, { seed = 1 }]").contains("not a key that a curve or a sweep can set"));
    assert!(with("[[curve]]\nlabel = \"a\"\nalong = [{}]\n").contains("each of the 0 values of [sweep]"));
    assert!(
        with("[paper]\ntitle = \"t\"\nclaims = [{ txt = \"a\" }]\n")
            .contains("`paper.claims.1.txt`: unknown key; did you mean `text`?")
    );
}

#[test]
fn what_spans_sections_is_checked() {
    let said = |overrides: &[&str], part: &str| {
        let text = set_error(overrides);
        assert!(text.contains(part), "{text}");
    };
    said(
        &["privacy.mechanism=zcdp"],
        "`model.feature_norm`: this key is required when privacy.bound = \"enforced\"",
    );
    said(
        &["privacy.mechanism=zcdp", "model.feature_norm=1"],
        "`model.huber`: this key is required for ridge",
    );
    said(
        &["privacy.mechanism=zcdp", "privacy.bound=assumed"],
        "`privacy.gradient_bound`: this key is required",
    );
    let sgd = ["privacy.mechanism=dp-sgd", "privacy.clip=1", "privacy.noise_multiplier=1.1"];
    let with = |key: &'static str| [&sgd[..], &[key]].concat();
    said(
        &sgd[..1],
        "`privacy.clip`: this key is required when mechanism = \"dp-sgd\": the gradient of every",
    );
    said(&sgd[..2], "`privacy.noise_multiplier`: this key is required when mechanism = \"dp-sgd\"");
    said(&with("privacy.noise_multiplier=0.001"), "expected a number in [0.02, 1000000]");
    said(
        &with("privacy.gradient_bound=2"),
        "this key is of mechanism = \"zcdp\" and does nothing with \"dp-sgd\"",
    );
    said(&with("privacy.growth=0.98"), "privacy.growth=0.98: this key is of mechanism = \"zcdp\"");
    said(&with("privacy.bound=assumed"), "privacy.bound=\"assumed\": this key is of mechanism = \"zcdp\"");
    said(&with("privacy.unit=client"), "dp-sgd clips and samples records, so it protects one record");
    said(&with("privacy.clip=inf"), "inf is out of range: expected a number above 0");
    said(
        &["privacy.mechanism=zcdp", "privacy.bound=assumed", "privacy.gradient_bound=1", "privacy.clip=1"],
        "privacy.clip=1: this key is of mechanism = \"dp-sgd\"; did you mean that one?",
    );
    said(&["privacy.mechanism=dpsgd"], "did you mean");
    small(&sgd).unwrap();
    let full = small(&with("privacy.sampler=float")).unwrap();
    load(&Source { name: "full.toml".into(), text: full.resolved() }, &[], &TABLES).unwrap();
    said(&["run.name=\"../x\""], "\"../x\" cannot name a folder");
    small(&["privacy.mechanism=zcdp", "model.feature_norm=1", "model.kind=logistic"]).unwrap();
    small(&["privacy.mechanism=zcdp", "model.feature_norm=1", "model.huber=1"]).unwrap();
    small(&["privacy.mechanism=zcdp", "privacy.bound=assumed", "privacy.gradient_bound=0.01"]).unwrap();
}

#[test]
fn keys_of_graphs_and_of_their_mechanisms_are_kept_apart_from_the_others() {
    let said = |overrides: &[&str], part: &str| {
        let text = set_error(overrides);
        assert!(text.contains(part), "{text}");
    };
    let graph = "model.kind=graph";
    small(&[graph, "model.alpha=2", "model.beta=0.5", "model.records=distances"]).unwrap();
    // Defaults that a config in full holds are no mistake; anything else is.
    small(&[graph, "model.bias=false", "model.regularisation=0.01"]).unwrap();
    let full = small(&[graph]).unwrap().resolved();
    load(&Source { name: "full.toml".into(), text: full }, &[], &TABLES).unwrap();
    let once = [graph, "privacy.mechanism=one-shot", "privacy.epsilon=1", "privacy.clip=2"];
    let paper = [graph, "privacy.mechanism=paper", "privacy.epsilon=1"];
    said(
        &once[..2],
        "`privacy.epsilon`: this key is required when mechanism = \"one-shot\": what the one release",
    );
    said(
        &once[..3],
        "`privacy.clip`: this key is required when mechanism = \"one-shot\": the norm that every record, less",
    );
    said(
        &paper[..2],
        "`privacy.epsilon`: this key is required when mechanism = \"paper\": what the paper claims",
    );
    for known in [&once[..], &paper[..]] {
        let full = small(known).unwrap().resolved();
        load(&Source { name: "full.toml".into(), text: full }, &[], &TABLES).unwrap();
        let with = |key: &'static str| [known, &[key]].concat();
        for key in ["initial_budget=1", "growth=0.9", "bound=assumed", "gradient_bound=1"] {
            let key: &'static str = format!("privacy.{key}").leak();
            said(&with(key), "this key is of mechanism = \"zcdp\" and does nothing with");
        }
        said(
            &with("privacy.noise_multiplier=1"),
            "this key is of mechanism = \"dp-sgd\" and does nothing with",
        );
        said(&with("privacy.unit=client"), "clips records, so it protects one record");
    }
    said(&[&once[1..], &["model.kind=ridge"]].concat(), "\"one-shot\" is for kind = \"graph\"");
    said(&[graph, "privacy.mechanism=zcdp"], "for kind = \"graph\" set \"one-shot\"");
    let enforced = ["privacy.mechanism=zcdp", "model.feature_norm=1", "model.huber=1", "privacy.epsilon=1"];
    said(&enforced, "with \"zcdp\" epsilon follows from `initial_budget`");
    let sgd =
        ["privacy.mechanism=dp-sgd", "privacy.clip=1", "privacy.noise_multiplier=1", "privacy.epsilon=1"];
    said(&sgd, "with \"dp-sgd\" epsilon follows from `noise_multiplier`");
}

#[test]
fn keys_of_other_kinds_of_model_are_sent_home() {
    assert_eq!(
        set_error(&["model.kind=logistic", "model.huber=1"]),
        "--set model.huber=1: `huber` is a key of ridge, mixed; kind is \"logistic\", whose keys are regularisation, bias, \
         feature_norm, regulariser, l1_share, group_size, group_lengths"
    );
    let said = |overrides: &[&str], part: &str| {
        let text = set_error(overrides);
        assert!(text.contains(part), "{text}");
    };
    said(&["model.alpha=2"], "`alpha` is a key of graph; kind is \"ridge\"");
    said(
        &["model.kind=graph", "model.bias=true"],
        "`bias` is a key of ridge, logistic, softmax, mixed; kind is",
    );
    said(&["model.kind=graph", "model.regularisation=0.1"], "whose keys are alpha, beta, records");
    said(&["model.kind=knn", "model.leaf=3"], "`leaf` is a key of tree, forest, mixed; kind is \"knn\"");
    said(&["model.kind=net", "model.regularisation=0.1"], "`regularisation` is a key of");
    said(&["model.kind=ridge", "model.hubert=1"], "unknown key; did you mean `huber`?");
    said(&["model.kind=rigde"], "there is no kind of model \"rigde\"; did you mean `ridge`?");
    // Another kind takes its own keys along, as another algorithm does.
    let text = SMALL.replace("kind = \"ridge\"", "kind = \"ridge\"\nhuber = 2.0\nregularisation = 0.5");
    let config = load(&source(&text), &sets(&["model.kind=logistic"]), &TABLES).unwrap();
    assert_eq!((config.model.get("huber"), config.model.number("regularisation")), (None, Some(0.5)));
}

#[test]
fn carets_stand_under_their_word_with_tabs_and_wide_letters() {
    let text = error("name = \"wards\"", "name = \"wärds\"\nseeds = [\t\"ä\", nope]");
    let lines: Vec<&str> = text.lines().collect();
    assert!(lines[0].starts_with("wards.toml:5:16: not valid TOML"), "{text}");
    assert_eq!(lines[3], "  |          \t     ^^^^");
}

#[test]
fn the_reference_names_every_key_and_nested_keys() {
    let text = reference(&TABLES);
    for part in [
        "## `[run]`",
        "| `rounds` | a whole number in 1..4294967295 | *required* | how many rounds to train |",
        "### `name = \"pgfl\"`",
        "| `inter_cluster.decay` | a number in [0, 1] | `0.98` |",
        "| `\"synthetic.clustered-regression\"` | clusters of linear models |",
        "| `clients_per_server` |",
        "## `[[curve]]`",
        "| `values` |",
        "| `claims.check` |",
    ] {
        assert!(text.contains(part), "{part}\n{text}");
    }
    let sections: Vec<&str> = text.lines().filter(|line| line.starts_with("## ")).collect();
    assert_eq!(sections.len(), super::sections::NAMES.len());
}

#[test]
fn a_curve_sets_keys_of_its_own_along_a_sweep() {
    let text = format!(
        "{SMALL}[[curve]]\nlabel = \"a\"\nalong = [{{ run.seed = 1 }}, {{}}]\n[[curve]]\nlabel = \"b\"\n\
         [sweep]\nkey = \"algorithm.penalty\"\nvalues = [1, 2]\n"
    );
    let config = load(&source(&text), &[], &TABLES).unwrap();
    assert_eq!(config.curves[0].at(0)[0].key, "run.seed");
    assert!(config.curves[0].at(1).is_empty() && config.curves[1].at(0).is_empty());
    // Written out in full it says the same.
    let again = load(&source(&config.resolved()), &[], &TABLES).unwrap();
    assert_eq!(again.curves, config.curves);
}
