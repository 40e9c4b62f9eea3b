//! The programs of `examples/`, run as a user runs them.
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used)]

#[path = "../../../tests/skipped.rs"]
mod skipped;

use fedkin::rooms::runtime::nats::find_broker;
use serde_json::Value;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// Cargo builds examples together with the tests of their crate.
fn program(name: &str) -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let path = test.ancestors().nth(2).unwrap().join("examples").join(name);
    assert!(path.exists(), "build the examples first: cargo build --release -p fedkin --examples");
    path
}

fn run(name: &str, folder: &Path, arguments: &[&str]) -> Output {
    Command::new(program(name)).args(arguments).current_dir(folder).output().unwrap()
}

fn text(output: &Output) -> String {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout.clone()).unwrap()
}

#[test]
fn arrays_gives_every_ward_its_own_slope() {
    let text = text(&run("arrays", Path::new("."), &[]));
    assert_eq!(text.lines().count(), 12);
    let slope = |ward: &str| -> f64 {
        let line = text.lines().find(|line| line.starts_with(ward)).unwrap();
        line.split("slope ").nth(1).unwrap().split(',').next().unwrap().parse().unwrap()
    };
    // Two kinds of patients, at both sites.
    for (ward, truth) in [("ward-00", 1.0), ("ward-01", 2.0), ("ward-06", 1.0), ("ward-07", 2.0)] {
        assert!((slope(ward) - truth).abs() < 0.05 * truth, "{ward}: {} for {truth}", slope(ward));
    }
}

#[test]
fn own_method_trains_and_passes_conformance_and_faults() {
    let text = text(&run("own_method", Path::new("."), &[]));
    let decibel: f64 = text.lines().next().unwrap().split(' ').nth(1).unwrap().parse().unwrap();
    assert!(decibel < -10.0, "{text}");
    assert!(text.contains("cases of conformance passed"), "{text}");
    assert!(text.contains("200 schedules of faults passed"), "{text}");
}

#[test]
fn own_denoiser_smooths_models() {
    let text = text(&run("own_denoiser", Path::new("."), &[]));
    let decibel: f64 = text.split(' ').nth(1).unwrap().parse().unwrap();
    assert!(decibel < -3.0, "{text}");
}

#[test]
fn own_transport_has_the_bits_of_one_process() {
    let text = text(&run("own_transport", Path::new("."), &[]));
    let hashes: Vec<&str> = text.lines().filter_map(|line| Some(line.split_once(": ")?.1.trim())).collect();
    let [alone, over] = hashes[..] else { panic!("{text}") };
    assert!(alone.len() == 64 && alone == over, "{text}");
}

/// Counts of twelve clients in two clusters that differ in one coefficient; one column says nothing.
fn counts() -> String {
    let mut csv = String::from("client,cluster,a,b,idle,y\n");
    for client in 0..12_u32 {
        let cluster = client % 2;
        for record in 0..30_u32 {
            let value = |factor: u32| f64::from((record * factor + client * 7) % 19) / 9.5 - 1.0;
            let (a, b, idle) = (value(5), value(11), value(3));
            let mean = (0.8 * a + if cluster == 0 { 0.9 } else { -0.9 } * b).exp();
            writeln!(csv, "c{client:02},q{cluster},{a},{b},{idle},{}", mean.round()).unwrap();
        }
    }
    csv
}

const CONFIG: &str = r#"version = 1
[run]
name = "counts"
rounds = 25
[data]
source = "csv"
path = "counts.csv"
client = "client"
cluster = "cluster"
target = "y"
test_fraction = 0.2
[model]
kind = "counts"
l1 = 0.1
[algorithm]
name = "pgfl"
[network]
resend = 0.2
"#;

fn json(output: &Output) -> Value {
    serde_json::from_str(&text(output)).unwrap()
}

#[test]
fn an_own_learner_trains_under_every_kind_of_method_with_the_same_bits_on_nodes() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("counts.csv"), counts()).unwrap();
    std::fs::write(folder.path().join("counts.toml"), CONFIG).unwrap();
    let broker = find_broker();
    for method in ["pgfl", "fedavg", "fedpnp", "persfl", "ifca"] {
        let name = format!("algorithm.name={method}");
        let mut here = vec!["run", "counts.toml", "--json", "--set", &name];
        if method == "persfl" {
            here.extend(["--set", "algorithm.candidates=4"]);
        }
        let local = [&here[..], &["--out", "local"]].concat();
        let alone = json(&run("own_learner", folder.path(), &local));
        let mse = alone["final"].as_object().unwrap().iter().find(|(name, _)| name.starts_with("mse."));
        let mse = mse.unwrap().1.as_f64().unwrap();
        // The mean of all counts is off by 0.7.
        assert!(mse > 0.0 && mse < 0.7, "{method}: {alone}");
        if let Err(error) = &broker {
            assert!(std::env::var_os("FEDKIN_NATS_SERVER").is_none(), "FEDKIN_NATS_SERVER: {error}");
            skipped::skipped(&error.to_string());
        } else {
            let nodes = [&here[..], &["--out", "nodes", "--runtime", "nats", "--processes", "3"]].concat();
            let together = json(&run("own_learner", folder.path(), &nodes));
            assert_eq!(together["models_sha256"], alone["models_sha256"], "{method}");
            std::fs::remove_dir_all(folder.path().join("nodes")).unwrap();
        }
        std::fs::remove_dir_all(folder.path().join("local")).unwrap();
    }
}

#[test]
fn an_own_learner_is_in_help_and_refusals() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("counts.csv"), counts()).unwrap();
    std::fs::write(folder.path().join("counts.toml"), CONFIG).unwrap();
    assert!(
        text(&run("own_learner", folder.path(), &["config", "reference"]))
            .contains("Poisson regression with an l1")
    );
    let refused = |set: &str| {
        let output = run("own_learner", folder.path(), &["run", "counts.toml", "--set", set]);
        assert_eq!(output.status.code(), Some(2));
        String::from_utf8(output.stderr).unwrap()
    };
    let told = refused("algorithm.name=persfl-agnostic");
    assert!(told.contains("a fit of weighted records") && told.contains("\"counts\""), "{told}");
    let told = refused("model.kind=count");
    assert!(told.contains("did you mean `counts`"), "{told}");
    let told = refused("model.l1=-1");
    assert!(told.contains("model.l1"), "{told}");
}
