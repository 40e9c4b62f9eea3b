//! A config that is wrong is refused with its place and a way out, and nothing is written over.

use crate::bench::Bench;

/// Every change of the starter that must be refused, with words of the message.
const WRONG: &[(&str, (&str, &str), &[&str])] = &[
    (
        "an unknown key",
        ("penalty = 5.0", "penalti = 5.0"),
        &["refused.toml:", "`algorithm.penalti`", "unknown key", "did you mean `penalty`?", "^"],
    ),
    ("an unknown section", ("[topology]", "[topologie]"), &["refused.toml:", "topologie", "did you mean"]),
    (
        "a wrong type",
        ("rounds = 100", "rounds = \"many\""),
        &["refused.toml:", "`run.rounds`", "expected a whole number", "found \"many\""],
    ),
    (
        "tau outside its range",
        ("inter_cluster = \"adaptive\"", "inter_cluster = 1.5"),
        &["refused.toml:", "`algorithm.inter_cluster`", "1.5 is out of range: expected a number in [0, 1]"],
    ),
    ("a required key that is missing", ("rounds = 100", ""), &["`run.rounds`", "required"]),
    ("an unknown method", ("name = \"pgfl\"", "name = \"pglf\""), &["pglf", "did you mean `pgfl`?"]),
    ("another version", ("version = 1", "version = 9"), &["refused.toml:", "version"]),
    ("no TOML", ("[run]", "[run"), &["refused.toml:"]),
    (
        "a name that leaves its folder",
        ("name = \"wards\"", "name = \"../wards\""),
        &["run.name", "cannot name a folder"],
    ),
    (
        "an error in a curve",
        ("set = { algorithm.name = \"local\" }", "set = { algorithm.name = \"lokal\" }"),
        &["lokal", "local"],
    ),
];

#[test]
fn what_is_wrong_in_a_file_is_shown_in_its_place() {
    let bench = Bench::with_a_run();
    for (what, change, words) in WRONG {
        eprintln!("{what}");
        bench.edit("wards.toml", "refused.toml", &[*change]);
        bench.refused(&["run", "refused.toml"], words);
        bench.refused(&["reproduce", "refused.toml", "--out", "runs/wards"], words);
        bench.refused(&["config", "check", "refused.toml"], words);
    }
}

#[test]
fn what_is_wrong_on_the_command_line_is_shown_there() {
    let bench = Bench::with_a_run();
    let set = |set: &'static str| ["run", "wards.toml", "--set", set];
    bench.refused(&set("algorithm.penalti=5"), &["--set algorithm.penalti=5", "did you mean `penalty`?"]);
    bench.refused(&set("algorithm.penalty=-1"), &["--set algorithm.penalty=-1", "out of range"]);
    bench.refused(&set("algorithm.penalty"), &["there is no `=`", "section.key=value"]);
    bench.refused(&set("run.rounds=[1"), &["not valid TOML"]);
    bench.refused(&["run", "wards.toml", "--threads", "0"], &["--threads", "0"]);
    bench.refused(&["run", "wards.toml", "--threads", "two"], &["--threads", "two"]);
    bench.refused(&["reproduce", "demo", "--repeats", "0"], &["--repeats", "0"]);
    bench.refused(&["reproduce"], &["NAME|FILE"]);
    bench.refused(&["rum", "wards.toml"], &["rum", "run"]);
}

#[test]
fn what_cannot_be_read_is_named() {
    let bench = Bench::with_a_run();
    bench.refused(&["run", "absent.toml"], &["there is no file absent.toml", "fedkin new"]);
    bench.refused(&["run", "runs"], &["runs is a folder"]);
    bench.write("refused.toml", [0xff, 0xfe, 0x00]);
    bench.refused(&["run", "refused.toml"], &["refused.toml is not text"]);
}

#[test]
fn a_directory_is_only_resumed_with_its_own_config() {
    let bench = Bench::with_a_run();
    let other = ["run", "wards.toml", "--set", "run.repeats=1", "--set", "run.rounds=5"];
    bench.good(&other);
    let penalty = [&other[..], &["--set", "algorithm.penalty=2"]].concat();
    bench.refused(&penalty, &["runs/wards holds a run with another config", "algorithm.penalty", "--out"]);
    bench.refused(&["reproduce", "wards.toml"], &["runs/wards holds a run with another config", "--out"]);
    let mine = [&other[..], &["--out", "mine"]].concat();
    bench.write("mine/thesis.tex", "years of work");
    bench.refused(&mine, &["mine has files in it but is not a run directory", "--out"]);
    let file = [&other[..], &["--out", "wards.csv"]].concat();
    bench.refused(&file, &["wards.csv is a file"]);
}

/// A run that could not start has used nothing: the corrected config may have its directory.
#[test]
fn a_failed_start_does_not_block_the_corrected_config() {
    let bench = Bench::new();
    bench.good(&["new"]);
    let short = ["run", "wards.toml", "--set", "run.rounds=3", "--out", "runs/refused"];
    let wrong = [&short[..], &["--set", "data.target=days"]].concat();
    bench.refused(&wrong, &["days", "`target`"]);
    bench.good(&short);
}
