//! `fedkin audit`: known verdicts and their exit codes, JSON, and requests that make no sense.

use crate::bench::Bench;
use serde_json::Value;

const PRIVATE: &[&str] =
    &["--set", "privacy.mechanism=\"zcdp\"", "--set", "model.feature_norm=1.0", "--set", "model.huber=1.0"];

fn with<'a>(start: &[&'a str], rest: &[&'a str]) -> Vec<&'a str> {
    [start, rest].concat()
}

#[test]
fn every_fixture_ends_with_the_code_of_its_verdict() {
    let bench = Bench::new();
    let list = bench.json(&["audit", "--list-fixtures", "--json"]);
    let fixtures = list["fixtures"].as_array().unwrap();
    assert!(fixtures.len() >= 5);
    for fixture in fixtures {
        let name = fixture["name"].as_str().unwrap();
        let ran = bench.fedkin(&["audit", "--fixture", name, "--runs", "1000", "--json"]);
        let told: Value = serde_json::from_str(&ran.out).unwrap();
        let (claim, bound) = (told["claim"]["epsilon"].as_f64().unwrap(), told["bound"].as_f64().unwrap());
        if fixture["sound"] == true {
            assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""), "{name}");
            assert_eq!(told["verdict"], "holds");
            assert!(bound <= claim);
        } else {
            assert_eq!(ran.code, Some(3), "{name}: {}", ran.err);
            assert!(ran.err.starts_with("error: the claim does not hold: "), "{}", ran.err);
            assert_eq!(told["verdict"], "broken");
            assert!(bound > claim);
        }
    }
}

#[test]
fn an_audit_of_a_config_tells_claim_bound_exact_value_and_cap() {
    let bench = Bench::new();
    bench.good(&["new"]);
    let before = bench.files();
    let start = ["audit", "wards.toml", "--runs", "400", "--rounds", "3", "--seed", "5"];
    let text = bench.good(&with(&start, PRIVATE));
    for word in
        ["claim ", "bound ", "exact ", "worst case ", "typical ", "bound enforced", "verdict", "holds"]
    {
        assert!(text.contains(word), "no {word:?} in\n{text}");
    }
    assert!(text.contains("with 400 runs the largest bound this audit can show is"), "{text}");
    let told = bench.json(&with(&with(&start, PRIVATE), &["--json", "--threads", "1"]));
    for key in
        ["claim", "bound", "exact", "cap", "confidence", "runs", "verdict", "worst", "neighbours", "client"]
    {
        assert!(told.get(key).is_some(), "no {key:?} in {told}");
    }
    for key in ["epsilon", "delta", "trust", "zcdp"] {
        assert!(told["claim"].get(key).is_some(), "no {key:?} in {told}");
    }
    assert_eq!((&told["rounds"], &told["runs"], &told["seed"]), (&3.into(), &400.into(), &5.into()));
    let (exact, claim) = (told["exact"].as_f64().unwrap(), told["claim"]["epsilon"].as_f64().unwrap());
    assert!(exact <= claim && exact > 0.5 * claim, "{exact} of {claim}");
    let again = bench.json(&with(&with(&start, PRIVATE), &["--json", "--threads", "3"]));
    assert_eq!(told, again);
    let named = bench.json(&with(&with(&start, PRIVATE), &["--json", "--client", "north-1"]));
    assert_eq!(named["client"], "north-1");
    assert_eq!(bench.files(), before, "an audit writes nothing");
}

#[test]
fn requests_that_make_no_sense_are_refused() {
    let bench = Bench::new();
    bench.good(&["new"]);
    bench.refused(&["audit", "wards.toml"], &["claims nothing", "privacy.mechanism"]);
    bench.refused(&["audit", "nowhere.toml"], &["no file nowhere.toml"]);
    bench.refused(&["audit", "--fixture", "enforced-hubert"], &["did you mean `enforced-huber`"]);
    bench.refused(&with(&["audit", "wards.toml", "--client", "nobody"], PRIVATE), &["no client \"nobody\""]);
    bench.refused(&with(&["audit", "wards.toml", "--confidence", "95"], PRIVATE), &["between 0 and 1"]);
    bench.refused(&["audit"], &["required"]);
    bench.refused(&["audit", "wards.toml", "--fixture", "enforced-huber"], &["cannot be used with"]);
}

/// 95 % confidence: the bound of 2000 runs is wrong with probability at most 0.05, and it is far from the claim.
#[test]
fn the_paper_of_fedgl_claims_1_and_shows_more_than_5() {
    let bench = Bench::new();
    let ran = bench.fedkin(&["audit", "--fixture", "fedgl-paper", "--runs", "2000", "--json"]);
    assert_eq!(ran.code, Some(3), "{}", ran.err);
    let told: Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!((&told["claim"]["epsilon"], &told["records"]), (&1.0.into(), &100.into()));
    assert_eq!(told["claim"]["trust"], "refuted by audit: no guarantee");
    assert!(told["bound"].as_f64().unwrap() > 5.0, "{told}");
    let sound = bench.good(&["audit", "--fixture", "fedgl-one-shot", "--runs", "400"]);
    assert!(sound.contains("bound enforced") && sound.contains("holds"), "{sound}");
}

const GRAPHS: &str = "version = 1\n\
    [run]\nname = \"graphs\"\nrounds = 2\n\
    [data]\nsource = \"synthetic.graph-signals\"\nnodes = 6\nclients = 3\nsamples = 40\n\
    [model]\nkind = \"graph\"\n\
    [algorithm]\nname = \"fedgl\"\nsolver = \"paper\"\n\
    [privacy]\nmechanism = \"paper\"\nepsilon = 1.0\n";

const REFUTED: &str = "warning: NOT PRIVATE: privacy.epsilon is the claim of the paper, refuted by an audit; no \
                       epsilon holds\n";

#[test]
fn a_refuted_claim_is_not_private_wherever_it_is_shown() {
    let bench = Bench::new();
    bench.write("graphs.toml", GRAPHS);
    let ran = bench.fedkin(&["run", "graphs.toml", "--out", "paper"]);
    assert_eq!((ran.code, ran.err.as_str()), (Some(0), REFUTED));
    assert!(ran.out.contains("NOT PRIVATE") && !ran.out.contains("epsilon 0"), "{}", ran.out);
    let ran = bench.fedkin(&["run", "graphs.toml", "--out", "paper", "--json"]);
    let told: Value = serde_json::from_str(&ran.out).unwrap();
    let privacy = &told["privacy"];
    assert!(privacy["epsilon"].is_null() && privacy["epsilon_gaussian"].is_null(), "{privacy}");
    assert_eq!(privacy["bound"], "refuted by audit: no guarantee");
    let warned = told["warnings"].as_array().unwrap().iter();
    assert_eq!(warned.filter(|text| REFUTED.contains(text.as_str().unwrap())).count(), 1, "{told}");
    let page = bench.read("paper/report.html");
    assert!(page.contains("NOT PRIVATE") && page.contains("refuted by an audit"));
    let ledger = bench.good(&["ledger", "paper"]);
    assert!(
        ledger.contains("NOT PRIVATE: the price is a claim that an audit has refuted at 3 of 3 clients"),
        "{ledger}"
    );
    assert!(ledger.contains("REFUTED") && ledger.contains("no epsilon holds"), "{ledger}");
    let held = bench.json(&["ledger", "paper", "--json"]);
    assert!(held["chains"].as_array().unwrap().iter().all(|row| row["epsilon"].is_null()), "{held}");
    bench.refused(&["privacy", "plan", "graphs.toml"], &["refuted", "one-shot"]);
    let ran = bench.fedkin(&["audit", "graphs.toml", "--runs", "1000", "--rounds", "1"]);
    assert_eq!(ran.code, Some(3), "{}", ran.err);
}

/// A ledger that spans runs: after the paper's mechanism no later noise brings an epsilon back.
#[test]
fn a_refuted_release_stays_in_the_ledger() {
    let bench = Bench::new();
    bench.write("graphs.toml", GRAPHS);
    let start = ["run", "graphs.toml", "--set", "privacy.ledger=\"book\""];
    let first = bench.fedkin(&with(&start, &["--out", "first"]));
    assert_eq!((first.code, first.err.as_str()), (Some(0), REFUTED));
    let sound =
        ["--set", "privacy.mechanism=\"one-shot\"", "--set", "privacy.clip=2.0", "--out", "second", "--json"];
    let second = bench.fedkin(&with(&start, &sound));
    assert_eq!(second.code, Some(0), "{}", second.err);
    let told: Value = serde_json::from_str(&second.out).unwrap();
    assert!(told["privacy"]["epsilon"].is_null(), "{told}");
    assert_eq!(told["privacy"]["ledger"]["disclosed_before"], 3);
    assert!(told["warnings"].to_string().contains("NOT PRIVATE: earlier runs"), "{told}");
    assert!(bench.good(&["ledger", "book"]).contains("an audit has refuted at 3 of 3 clients"));
}

#[test]
fn methods_and_models_that_do_not_fit_are_told_which_key_to_change() {
    let bench = Bench::new();
    bench.write("graphs.toml", GRAPHS);
    let quiet = ["--set", "privacy.mechanism=\"none\"", "--set", "algorithm.name=\"fedavg\""];
    bench.write("linear.toml", GRAPHS.replace("solver = \"paper\"\n", ""));
    bench.refused(
        &with(&["config", "check", "linear.toml"], &quiet),
        &["fedavg needs", "the learner \"graph\" does not have", "\"fedgl\""],
    );
    let ridge = ["--set", "model.kind=\"ridge\"", "--set", "privacy.mechanism=\"none\""];
    bench.refused(
        &with(&["config", "check", "graphs.toml"], &ridge),
        &["fedgl needs graphs of the columns", "\"ridge\"", "model.kind = \"graph\""],
    );
    let exact = ["--set", "algorithm.solver=\"exact\""];
    bench.refused(
        &with(&["config", "check", "graphs.toml"], &exact),
        &["algorithm.solver = \"paper\"", "one-shot"],
    );
    let zcdp = ["--set", "privacy.mechanism=\"zcdp\""];
    bench.refused(&with(&["config", "check", "graphs.toml"], &zcdp), &["one-shot"]);
}
