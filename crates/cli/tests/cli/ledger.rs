//! Ledgers: budgets that span runs, what `fedkin ledger` shows of them, and what `fedkin ledger verify` notices.

use crate::bench::Bench;
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

/// Twelve clients, all asked in every round; ten rounds cost 0.01 zCDP of a budget of 0.025.
const SPAN: &str = r#"
version = 1
[run]
name = "span"
rounds = 10
[data]
source = "synthetic.clustered-regression"
clients_per_server = 4
dimension = 5
[topology]
graph = { kind = "ring", servers = 3 }
[model]
kind = "ridge"
feature_norm = 1.0
huber = 1.0
[algorithm]
name = "pgfl"
[privacy]
mechanism = "zcdp"
initial_budget = 1e-3
growth = 1.0
budget = 0.025
ledger = "spent"
"#;

fn bench() -> Bench {
    let bench = Bench::new();
    bench.write("span.toml", SPAN);
    bench
}

fn run(bench: &Bench, out: &str, more: &[&str]) -> Value {
    bench.json(&[&["run", "span.toml", "--out", out, "--json"], more].concat())
}

fn chains(bench: &Bench, place: &str) -> Vec<Value> {
    bench.json(&["ledger", place, "--json"])["chains"].as_array().unwrap().clone()
}

fn units(value: &Value) -> u64 {
    (value["zcdp"].as_f64().unwrap() * 1e12).round() as u64
}

#[test]
fn a_budget_spans_runs_and_the_run_goes_on_without_those_who_refuse() {
    let bench = bench();
    let first = run(&bench, "one", &[]);
    assert_eq!(first["privacy"]["refused_clients"], 0);
    let all = chains(&bench, "spent");
    assert_eq!(all.len(), 12);
    assert!(all.iter().all(|row| units(row) == 10_000_000_000 && row["lines"] == 1 && row["releases"] == 10));
    // The same run again is the same release, in whatever directory: the same bytes, charged once.
    let again = run(&bench, "again", &[]);
    assert_eq!(again["models_sha256"], first["models_sha256"]);
    assert_eq!(chains(&bench, "spent"), all);
    run(&bench, "one", &[]);
    assert_eq!(chains(&bench, "spent"), all);
    // Other measurements release nothing else; other rounds do.
    run(&bench, "measured", &["--set", "evaluate.every=5"]);
    assert_eq!(chains(&bench, "spent"), all);
    run(&bench, "two", &["--set", "run.rounds=9"]);
    // 0.025 - 0.019 leaves six rounds.
    let text = bench.good(&["run", "span.toml", "--out", "three", "--set", "run.rounds=8"]);
    assert!(text.contains("12 of 12 clients, from round 7 on"), "{text}");
    assert!(text.contains("their privacy budget is spent"), "{text}");
    assert!(text.contains("in 3 runs on the same data"), "{text}");
    let summary: Value = serde_json::from_str(&bench.read("three/summary.json")).unwrap();
    assert_eq!(
        (&summary["privacy"]["refused_clients"], &summary["privacy"]["refused_from"]),
        (&12.into(), &7.into())
    );
    assert_eq!(summary["privacy"]["ledger"]["runs"], 3);
    let report = bench.read("three/report.html");
    assert!(report.contains("Clients that refused") && report.contains("12, from round 7 on"));
    assert!(report.contains("12 of 12 clients refused to send, from round 7 on"));
    for row in chains(&bench, "spent") {
        assert_eq!((units(&row), &row["refusals"], &row["runs"]), (25_000_000_000, &2.into(), &3.into()));
    }
    // A synthetic world follows from the seed: another one has other records.
    let empty = run(&bench, "four", &["--set", "run.seed=9"]);
    assert_eq!(empty["privacy"]["refused_from"], Value::Null, "other data have a budget of their own");
    let told = bench.good(&["ledger", "verify", "spent", "one", "two", "three"]);
    assert!(
        told.contains("chains verified: 24") && told.contains("remembered ends found in them: 36"),
        "{told}"
    );
}

/// A user's own records stay the same whichever of them a seed takes for testing.
#[test]
fn another_division_of_the_same_records_spends_from_the_same_budget() {
    let bench = Bench::new();
    bench.good(&["new", "mine"]);
    let private = "privacy.mechanism=zcdp model.feature_norm=1 model.huber=1 run.rounds=5 run.repeats=1 \
                   data.test_fraction=0.25 privacy.ledger=spent";
    let sets: Vec<&str> = private.split_whitespace().flat_map(|set| ["--set", set]).collect();
    for (out, more) in [("one", "run.seed=1"), ("two", "run.seed=2"), ("three", "data.test_fraction=0.5")] {
        bench.good(&[&["run", "mine/wards.toml", "--out", out], &sets[..], &["--set", more]].concat());
    }
    for row in chains(&bench, "mine/spent") {
        assert_eq!((&row["runs"], &row["releases"]), (&3.into(), &15.into()), "{row}");
    }
}

#[test]
fn the_table_names_the_largest_client_and_its_lines() {
    let bench = bench();
    run(&bench, "one", &["--set", "participation.clients_per_server=2"]);
    let view = bench.json(&["ledger", "spent", "--json"]);
    let rows = view["chains"].as_array().unwrap();
    let largest = rows.iter().map(units).max().unwrap();
    let row = &rows[view["largest"].as_u64().unwrap() as usize];
    assert_eq!(units(row), largest);
    assert!(rows.iter().map(units).min().unwrap() < largest, "the draw made no difference");
    let name = row["client"].as_str().unwrap();
    let text = bench.good(&["ledger", "spent"]);
    assert!(text.contains(&format!("for {name}, the client that spent most")), "{text}");
    assert!(text.contains("chains verified: 12") && text.contains("enforced"), "{text}");
    let lines = bench.good(&["ledger", "spent", "--client", name, "--delta", "1e-6"]);
    assert!(
        lines.contains("model, ") && lines.contains("gaussian") && lines.contains("delta 0.000001"),
        "{lines}"
    );
    // A run directory shows the same numbers, of the run alone where no ledger lasts.
    assert_eq!(chains(&bench, "one"), *rows);
    bench.good(&[
        "run",
        "span.toml",
        "--out",
        "own",
        "--set",
        "privacy.mechanism=none",
        "--set",
        "privacy.ledger=open",
    ]);
    let text = bench.good(&["ledger", "own"]);
    assert!(text.contains("NOT PRIVATE: something left without noise at 12 of 12 clients"), "{text}");
    assert!(text.contains("infinite"), "{text}");
    bench.refused(&["ledger", "spent", "--client", "client-00003"], &["no client", "did you mean"]);
    bench.refused(&["ledger", "nowhere"], &["nowhere does not exist", "name a complete run directory"]);
    bench.refused(&["ledger", "spent", "--delta", "2"], &["--delta 2"]);
}

#[test]
fn an_assumed_bound_and_an_earlier_disclosure_are_said_aloud() {
    let bench = bench();
    let assumed = ["--set", "privacy.bound=assumed", "--set", "privacy.gradient_bound=1.0"];
    run(&bench, "trusting", &assumed);
    let text = bench.good(&["ledger", "spent"]);
    assert!(text.contains("BOUND ASSUMED, NOT ENFORCED") && text.contains("ASSUMED"), "{text}");
    // The weakest word holds for all runs together.
    let text = bench.good(&["run", "span.toml", "--out", "careful"]);
    assert!(text.contains("bound assumed, not enforced"), "{text}");
    run(&bench, "open", &["--set", "privacy.mechanism=none"]);
    let told = run(&bench, "late", &["--set", "run.rounds=3"]);
    assert_eq!(told["privacy"]["epsilon"], Value::Null);
    let text = bench.good(&["run", "span.toml", "--out", "later", "--set", "run.rounds=2"]);
    assert!(text.contains("NOT PRIVATE: earlier runs"), "{text}");
    assert!(bench.read("later/report.html").contains("NOT PRIVATE"));
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap().flatten() {
        fs::copy(entry.path(), to.join(entry.file_name())).unwrap();
    }
}

#[test]
fn a_ledger_that_was_put_back_or_changed_is_noticed() {
    let bench = bench();
    run(&bench, "one", &[]);
    copy(&bench.path("spent"), &bench.path("backup"));
    run(&bench, "two", &["--set", "run.rounds=9"]);
    bench.write("heads.json", bench.good(&["ledger", "spent", "--json"]));
    let text = bench.good(&["ledger", "verify", "spent"]);
    assert!(text.contains("no older end was given to compare with"), "{text}");
    bench.good(&["ledger", "verify", "spent", "one", "two", "--head", "heads.json"]);
    let behind = |arguments: &[&str]| {
        let ran = bench.fedkin(arguments);
        assert_eq!(ran.code, Some(3), "{ran:?}");
        let words =
            ["client \"client-000000\", line 2", "2 lines were seen, the ledger has 1", "and 11 more"];
        assert!(words.iter().all(|word| ran.err.contains(word)), "{}", ran.err);
    };
    behind(&["ledger", "verify", "backup", "two"]);
    behind(&["ledger", "verify", "backup", "--head", "heads.json"]);
    // Begun anew: as many lines, other hashes.
    run(&bench, "anew", &["--set", "run.rounds=11", "--set", "privacy.ledger=anew-spent"]);
    let ran = bench.fedkin(&["ledger", "verify", "anew-spent", "one"]);
    assert_eq!(ran.code, Some(3), "{ran:?}");
    assert!(
        ran.err.contains("line 1: it is not the line that was seen: the ledger was written anew"),
        "{}",
        ran.err
    );
    // A ledger that knows nothing of them.
    run(&bench, "other", &["--set", "run.seed=2", "--set", "privacy.ledger=other-spent"]);
    assert_eq!(bench.fedkin(&["ledger", "verify", "other-spent", "one"]).code, Some(3));
    let mut bytes = fs::read(bench.path("spent/journal")).unwrap();
    let middle = bytes.len() / 3;
    bytes[middle] ^= 1;
    fs::write(bench.path("spent/journal"), bytes).unwrap();
    for arguments in [&["ledger", "verify", "spent"][..], &["ledger", "spent"]] {
        let ran = bench.fedkin(arguments);
        assert_eq!(ran.code, Some(3), "{ran:?}");
        assert!(ran.err.contains("spent/journal is damaged"), "{}", ran.err);
    }
}

#[test]
fn what_cannot_be_charged_is_refused() {
    let bench = bench();
    let words = ["privacy.ledger is for run.repeats = 1"];
    bench.refused(&["run", "span.toml", "--out", "runs/refused", "--set", "run.repeats=2"], &words);
    bench.refused(
        &["reproduce", "span.toml", "--out", "runs/refused"],
        &["privacy.ledger is for `fedkin run`"],
    );
    bench.refused(
        &["run", "span.toml", "--out", "runs/refused", "--runtime", "nats"],
        &["privacy.ledger is for runs in one process"],
    );
    bench.refused(
        &["run", "span.toml", "--out", "runs/refused", "--set", "privacy.leger=x"],
        &["unknown key", "did you mean `ledger`?"],
    );
    bench.write("host/secret", [7; 32]);
    let ran = bench.fedkin(&["run", "span.toml", "--out", "runs/refused", "--set", "privacy.ledger=host"]);
    assert_eq!(ran.code, Some(2), "{ran:?}");
    assert!(ran.err.contains("is the state of a client host"), "{}", ran.err);
}

/// Some tenths of a second, with a checkpoint every 20 ms.
fn long(bench: &Bench) {
    let text = SPAN.replace("rounds = 10", "rounds = 8000\ncheckpoint_seconds = 0.02");
    bench.write("long.toml", text.replace("budget = 0.025\n", "").replace("dimension = 5", "dimension = 20"));
}

fn start(bench: &Bench, out: &str, ledger: &str) -> Child {
    let ledger = format!("privacy.ledger={ledger}");
    let arguments = ["run", "long.toml", "--out", out, "--json", "--set", &ledger];
    bench.command(&arguments).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
}

#[test]
fn two_runs_do_not_share_a_ledger_at_the_same_time() {
    let bench = bench();
    long(&bench);
    let mut child = start(&bench, "first", "spent");
    let begun = Instant::now();
    while fs::read_dir(bench.path("first/checkpoints")).map_or(0, Iterator::count) == 0 {
        assert!(begun.elapsed() < Duration::from_secs(60), "no checkpoint within a minute");
        std::thread::sleep(Duration::from_millis(2));
    }
    let short = ["run", "long.toml", "--out", "second", "--set", "run.rounds=10"];
    let ran = bench.fedkin(&short);
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(ran.code, Some(2), "{ran:?}");
    assert!(ran.err.contains("spent is in use by another run"), "{}", ran.err);
    // What another run charged meanwhile counts for the interrupted one: it begins again.
    bench.good(&short);
    let told = bench.json(&["run", "long.toml", "--out", "first", "--json"]);
    assert!(told["warnings"].to_string().contains("it began again"), "{}", told["warnings"]);
    for row in chains(&bench, "spent") {
        assert_eq!((&row["runs"], &row["releases"]), (&2.into(), &8010.into()));
    }
}

/// The heads of a ledger by client, and what was spent: the same for the same run in any folder.
fn state(bench: &Bench, ledger: &str) -> Vec<(String, String, u64)> {
    let word = |value: &Value| value.as_str().unwrap().to_string();
    chains(bench, ledger).iter().map(|row| (word(&row["client"]), word(&row["head"]), units(row))).collect()
}

/// The moment something is there.
#[derive(Debug)]
enum Sign {
    File(&'static str),
    Committed,
    Share(f64),
}

#[test]
fn a_run_killed_around_its_charge_is_charged_once() {
    let bench = bench();
    long(&bench);
    let begun = Instant::now();
    start(&bench, "whole", "whole-spent").wait().unwrap();
    let duration = begun.elapsed();
    let whole = state(&bench, "whole-spent");
    let models =
        bench.json(&["run", "long.toml", "--out", "whole", "--json", "--set", "privacy.ledger=whole-spent"]);
    assert_eq!(whole.len(), 12);
    let files = [
        "checkpoints",
        "metrics.parquet",
        "models/clients.safetensors",
        "ledger.jsonl",
        "accounts.jsonl",
        "figures",
        "report.html",
    ];
    let signs = files.into_iter().map(Sign::File).chain([Sign::Committed, Sign::Committed]);
    let signs = signs.chain((0..10).map(|share| Sign::Share(f64::from(share) / 10.0)));
    let (mut in_time, mut charged) = (0, 0);
    for (trial, sign) in signs.enumerate() {
        let (out, ledger) = (format!("out-{trial}"), format!("spent-{trial}"));
        let mut child = start(&bench, &out, &ledger);
        let begun = Instant::now();
        let journal = bench.path(format!("{ledger}/journal"));
        let length = || fs::metadata(&journal).map_or(0, |file| file.len());
        let mut empty = 0;
        let there = |path: PathBuf| path.exists();
        loop {
            let seen = match sign {
                Sign::File(name) => there(bench.path(format!("{out}/{name}"))),
                Sign::Committed => {
                    empty = if empty == 0 { length() } else { empty };
                    length() > empty
                }
                Sign::Share(share) => begun.elapsed() >= duration.mul_f64(share),
            };
            if seen || child.try_wait().unwrap().is_some() {
                break;
            }
        }
        child.kill().unwrap();
        child.wait().unwrap();
        in_time += u32::from(!there(bench.path(format!("{out}/summary.json"))));
        // Never an unrecorded release: what is in the directory is in the ledger.
        let now = if journal.exists() { state(&bench, &ledger) } else { Vec::new() };
        let released = ["metrics.parquet", "models/clients.safetensors", "report.html"];
        if released.iter().any(|name| there(bench.path(format!("{out}/{name}")))) {
            assert_eq!(now, whole, "{sign:?}: results without a charge");
        }
        assert!(now.is_empty() || now == whole, "{sign:?}: a charge of some clients only");
        charged += u32::from(!now.is_empty());
        // And never a double charge.
        let set = format!("privacy.ledger={ledger}");
        let told = bench.json(&["run", "long.toml", "--out", &out, "--json", "--set", &set]);
        assert_eq!(told["models_sha256"], models["models_sha256"], "{sign:?}");
        assert_eq!(state(&bench, &ledger), whole, "{sign:?}");
    }
    eprintln!("{in_time} of 19 kills before the end, {charged} after the charge");
    assert!(in_time >= 8 && (4..19).contains(&charged), "{in_time} in time, {charged} charged");
}
