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
