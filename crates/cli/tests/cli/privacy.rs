//! `fedkin privacy`: known figures, ranges, and a plan that a run keeps.

use crate::bench::Bench;
use serde_json::Value;

fn at(value: &Value, key: &str) -> f64 {
    value[key].as_f64().unwrap_or_else(|| panic!("no number {key:?} in {value}"))
}

fn near(value: &Value, key: &str, expected: f64, off: f64) {
    assert!((at(value, key) - expected).abs() <= off, "{key} is not {expected}: {value}");
}

/// The figures of the PGFL and privacy specs.
#[test]
fn known_figures() {
    let bench = Bench::new();
    let tight = bench.json(&["privacy", "convert", "--zcdp", "1.939", "--delta", "1e-5", "--json"]);
    near(&tight, "epsilon", 10.53, 0.05);
    assert_eq!((at(&tight, "delta"), &tight["conversion"]), (1e-5, &"tight".into()));
    near(&tight, "textbook", 11.39, 0.01);
    let exact =
        bench.json(&["privacy", "convert", "--zcdp", "1.939", "--delta", "1e-5", "--gaussian", "--json"]);
    near(&exact, "epsilon", 9.81, 0.05);
    assert_eq!(exact["conversion"], "gaussian");
    let one =
        bench.json(&["privacy", "epsilon", "--sigma", "4", "--rounds", "1", "--delta", "1e-5", "--json"]);
    near(&one, "epsilon", 0.926, 0.001);
    near(&one, "epsilon_zcdp", 1.01, 0.01);
    near(&one, "epsilon_textbook", 1.23, 0.01);
    near(&one, "zcdp", 1.0 / 32.0, 1e-12);
    let text = bench.good(&["privacy", "epsilon", "--sigma", "4", "--delta", "1e-5"]);
    assert!(text.contains("0.9264 at delta 0.00001") && text.contains("exact composition"), "{text}");
}

#[test]
fn there_and_back() {
    let bench = Bench::new();
    for extra in [&[][..], &["--gaussian"]] {
        let convert =
            |arguments: &[&str]| bench.json(&[&["privacy", "convert", "--json"], arguments, extra].concat());
        let spendable = convert(&["--epsilon", "2", "--delta", "1e-6"]);
        let zcdp = at(&spendable, "zcdp").to_string();
        let again = convert(&["--zcdp", &zcdp, "--delta", "1e-6"]);
        assert!(at(&again, "epsilon") <= 2.0 && at(&again, "epsilon") > 1.999_999);
        near(&convert(&["--zcdp", &zcdp, "--epsilon", "2"]), "delta", 1e-6, 1e-9);
    }
    for sampling in [&[][..], &["--sampling", "0.02"], &["--sampling", "0.02", "--neighbours", "add-remove"]]
    {
        let common = ["--rounds", "500", "--delta", "1e-6", "--sensitivity", "0.5", "--json"];
        let found = bench.json(&[&["privacy", "sigma", "--epsilon", "3"], &common[..], sampling].concat());
        assert!(at(&found, "epsilon") <= 3.0 && at(&found, "epsilon") > 2.9999, "{found}");
        let sigma = at(&found, "sigma").to_string();
        let again = bench.json(&[&["privacy", "epsilon", "--sigma", &sigma], &common[..], sampling].concat());
        assert_eq!(again["epsilon"], found["epsilon"]);
    }
}

/// The add-remove figure is that of dp-accounting 0.6.0 at the same orders (a line of its grid).
#[test]
fn sampling_names_its_neighbours() {
    let bench = Bench::new();
    let arguments = [
        "privacy",
        "epsilon",
        "--sigma",
        "1.1",
        "--rounds",
        "10000",
        "--sampling",
        "0.01",
        "--delta",
        "1e-5",
        "--json",
    ];
    let replaced = bench.json(&arguments);
    let removed = bench.json(&[&arguments[..], &["--neighbours", "add-remove"]].concat());
    let grid = include_str!("../../../privacy/tests/oracles/dp_accounting.csv");
    let line = grid.lines().find_map(|line| line.strip_prefix("renyi,1.1,10000,0.01,1e-05,")).unwrap();
    near(&removed, "epsilon", line.parse().unwrap(), 1e-6);
    assert_eq!((&removed["neighbours"], &replaced["neighbours"]), (&"add-remove".into(), &"replace".into()));
    assert!(at(&replaced, "epsilon") > at(&removed, "epsilon"));
    assert_eq!(replaced["epsilon_add_remove"], removed["epsilon"]);
    assert_eq!(replaced["conversion"], "renyi");
    let text = bench.good(&arguments[..arguments.len() - 1]);
    assert!(text.contains("in secret") && text.contains("one record is replaced"), "{text}");
}

#[test]
fn what_makes_no_sense_is_refused() {
    let bench = Bench::new();
    for (arguments, words) in [
        (&["epsilon", "--sigma", "0", "--delta", "1e-5"][..], &["--sigma", "above 0"][..]),
        (&["epsilon", "--sigma", "-1", "--delta", "1e-5"], &["--sigma", "above 0"]),
        (&["epsilon", "--sigma", "1", "--delta", "1"], &["--delta", "between 0 and 1"]),
        (&["epsilon", "--sigma", "nan", "--delta", "1e-5"], &["--sigma", "not a finite number"]),
        (&["epsilon", "--sigma", "1", "--delta", "1e-5", "--rounds", "0"], &["--rounds"]),
        (
            &["epsilon", "--sigma", "1", "--delta", "1e-5", "--sampling", "1.5"],
            &["--sampling", "between 0 and 1"],
        ),
        (&["epsilon", "--sigma", "1", "--delta", "1e-5", "--neighbours", "replace"], &["--sampling"]),
        (&["sigma", "--epsilon", "0", "--delta", "1e-5"], &["--epsilon", "above 0"]),
        (&["convert", "--zcdp", "1"], &["two of --zcdp, --epsilon and --delta"]),
        (&["convert", "--zcdp", "1", "--epsilon", "1", "--delta", "1e-5"], &["two of"]),
        (&["plan", "none.toml"], &["there is no file none.toml"]),
    ] {
        bench.refused(&[&["privacy"], arguments].concat(), words);
    }
}

const PRIVATE: [&str; 6] = [
    "--set",
    "privacy.mechanism=zcdp",
    "--set",
    "privacy.bound=assumed",
    "--set",
    "privacy.gradient_bound=0.01",
];

/// The plan and the run say the same, to the bit.
#[test]
fn a_run_spends_what_was_planned() {
    let bench = Bench::new();
    bench.good(&["new", "--from", "demo"]);
    let sets =
        [&PRIVATE[..], &["--set", "run.rounds=40", "--set", "participation.clients_per_server=3"]].concat();
    let before = bench.files();
    let planned = bench.json(&[&["privacy", "plan", "demo.toml", "--json"], &sets[..]].concat());
    assert_eq!(bench.files(), before, "a plan writes nothing");
    let run = bench.json(&[&["run", "demo.toml", "--json", "--set", "run.repeats=1"], &sets[..]].concat());
    for key in ["epsilon", "epsilon_gaussian", "zcdp", "delta", "bound"] {
        assert_eq!(planned[key], run["privacy"][key], "{key}");
    }
    near(&planned, "mean_epsilon", at(&run["privacy"], "mean_epsilon"), 1e-12);
    let clients = planned["clients"].as_array().unwrap();
    assert_eq!(clients.len() as f64, at(&planned, "client_count"));
    let most = clients.iter().map(|client| at(client, "epsilon")).fold(0.0, f64::max);
    assert_eq!(at(&planned, "epsilon"), most);
    assert!(at(&planned, "mean_epsilon") < most);
    let text = bench.good(&[&["privacy", "plan", "demo.toml"], &sets[..]].concat());
    assert!(text.contains("ASSUMED, not enforced") && text.contains("no guarantee"), "{text}");
    let (guarantee, mean) = (text.find("guarantee").unwrap(), text.find("mean").unwrap());
    assert!(guarantee < mean, "the guarantee comes first: {text}");
}

/// DP-SGD: plan, run and `privacy epsilon` name one epsilon for the same noise, rate and steps, and the run says from what it
/// follows.
#[test]
fn a_sampled_run_costs_what_the_accountant_says() {
    let bench = Bench::new();
    bench.good(&["new", "--from", "dp-sgd"]);
    let set = |text: &'static str| ["--set", text];
    let sets = [
        set("run.rounds=6"),
        set("run.repeats=1"),
        set("algorithm.sampling_rate=0.1"),
        set("privacy.noise_multiplier=1.5"),
        set("privacy.sampler=discrete"),
    ]
    .concat();
    let planned = bench.json(&[&["privacy", "plan", "dp-sgd.toml", "--json"], &sets[..]].concat());
    let run = bench.json(&[&["run", "dp-sgd.toml", "--json"], &sets[..]].concat());
    let asked = ["--sigma", "1.5", "--delta", "1e-5", "--rounds", "24", "--sampling", "0.1", "--json"];
    let alone = bench.json(&[&["privacy", "epsilon"], &asked[..]].concat());
    for key in ["epsilon", "epsilon_gaussian"] {
        assert_eq!(planned[key], run["privacy"][key], "{key}");
        near(&run["privacy"], key, at(&alone, "epsilon"), 1e-9 * at(&alone, "epsilon"));
    }
    assert!(at(&alone, "epsilon") < 0.5 * at(&alone, "epsilon_zcdp"), "sampling pays: {alone}");
    let sampled = &run["privacy"]["sampled"][0];
    near(sampled, "noise_multiplier", 1.5, 0.0);
    near(sampled, "sampling_rate", 0.1, 0.0);
    near(sampled, "steps", 24.0, 0.0);
    let text = bench.good(&[&["privacy", "plan", "dp-sgd.toml"], &sets[..]].concat());
    assert!(text.contains("24 steps with noise 1.5 times the clip on samples of rate 0.1"), "{text}");
    bench.refused(
        &["run", "dp-sgd.toml", "--set", "privacy.mechanism=zcdp"],
        &["`privacy.clip`", "this key is of mechanism = \"dp-sgd\"; did you mean that one?"],
    );
    bench.good(&["new", "--from", "demo"]);
    let sgd =
        [set("privacy.mechanism=dp-sgd"), set("privacy.clip=1"), set("privacy.noise_multiplier=1")].concat();
    bench.refused(&[&["run", "demo.toml"], &sgd[..]].concat(), &["pgfl", "\"zcdp\"", "fedavg"]);
}

#[test]
fn a_plan_tells_who_runs_out_and_when() {
    let bench = Bench::new();
    bench.good(&["new", "--from", "demo"]);
    let plan = |more: &[&str]| {
        let all = [&["privacy", "plan", "demo.toml", "--set", "run.rounds=20"], &PRIVATE[..], more].concat();
        (bench.good(&all), bench.json(&[&all[..], &["--json"]].concat()))
    };
    let sets = ["--set", "privacy.budget=0.0055", "--set", "privacy.growth=1"];
    let (text, told) = plan(&sets);
    // Everybody takes part at 0.001 a round: five rounds fit.
    assert!(
        told["clients"]
            .as_array()
            .unwrap()
            .iter()
            .all(|client| client["exhausted"] == 6 && client["releases"] == 5)
    );
    assert_eq!(told["exhausted"], told["client_count"]);
    near(&told, "zcdp", 0.005, 1e-11);
    assert!(text.contains("run out") && text.contains("in round 6"), "{text}");
    let (text, told) = plan(&["--set", "privacy.budget=5"]);
    assert!(text.contains("enough for every client") && told["exhausted"] == 0, "{text}");
    let (text, told) = plan(&["--set", "privacy.unit=client"]);
    assert!(
        text.contains("all records of one client") && told["unit"].as_str().unwrap().contains("all records")
    );
    let none = bench.json(&["privacy", "plan", "demo.toml", "--json"]);
    assert!(none["epsilon"].is_null());
    let text = bench.good(&["privacy", "plan", "demo.toml"]);
    assert!(text.contains("no mechanism"), "{text}");
}
