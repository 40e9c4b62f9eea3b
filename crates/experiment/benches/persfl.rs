//! PersFL and IFCA: CPU time of one core against the numpy peer in `benches/peers/persfl_numpy.py`, in the same run; and
//! Experiment II of the paper for all of its 3,500 clients at once.
//!
//! `cargo bench -p fedkin-experiment --bench persfl [-- PYTHON] [one] [federation] [ifca] [all]`: PYTHON is an
//! interpreter with numpy (default `python3`); without a part, all but `all`, which takes minutes. Drawing the data does
//! not count on either side, setting up a run does. Best of equally many runs on each side, because the
//! machine may be busy.
#![allow(
    clippy::print_stdout,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::disallowed_methods,
    missing_docs
)]

use fedkin_config::{Override, Source};
use fedkin_experiment::library;
use fedkin_method::round::Progress;
use fedkin_run::{Plan, Registry, Stage};
use fedkin_settings::Value;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

/// User and system time of this process in seconds.
fn cpu_seconds() -> f64 {
    cpu_time::ProcessTime::try_now().map_or(0.0, |now| now.as_duration().as_secs_f64())
}

/// The largest memory of this process so far, in MiB.
fn peak_memory() -> Option<f64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.split_whitespace().next()?.parse::<f64>().ok().map(|kib| kib / 1024.0)
}

fn set(key: &str, value: Value) -> Override {
    Override { key: key.into(), value }
}

/// An experiment of the library with other settings.
fn plan(experiment: &str, sets: &[Override]) -> Plan {
    let experiment = library::find(experiment).unwrap();
    let source = Source { name: experiment.name.into(), text: experiment.text.into() };
    Plan::load(&Registry::native(), &source, Path::new("."), sets, &[]).unwrap()
}

/// CPU seconds of the fastest run from its set-up to its last step, and the first score after the last of them.
fn ours(plan: &Plan, runs: u32) -> (f64, f64) {
    let (mut best, mut score) = (f64::INFINITY, f64::NAN);
    for repeat in 0..runs {
        let world = plan.world(repeat).unwrap();
        let begin = cpu_seconds();
        let Stage { mut live, scorer } = plan.start(&world, repeat).unwrap();
        while live.step().unwrap() != Progress::Ended {}
        best = best.min(cpu_seconds() - begin);
        let headline = plan.config.evaluate.metric.as_deref().unwrap();
        let column = scorer.names().iter().position(|name| name == headline).unwrap();
        score = live.evaluate(&scorer)[column].mean();
    }
    (best, score)
}

fn numpy(python: &str, which: &str, style: &str, runs: u32) -> Option<(f64, f64)> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../benches/peers/persfl_numpy.py");
    let output = Command::new(python)
        .arg(script)
        .args(["time", which, "--style", style, "--repeats", &runs.to_string()])
        .envs([("OMP_NUM_THREADS", "1"), ("OPENBLAS_NUM_THREADS", "1")])
        .output()
        .ok()?;
    let found: serde_json::Value = serde_json::from_slice(&output.stdout).ok()?;
    Some((found["cpu_seconds"].as_f64()?, found["log10_error"].as_f64()?))
}

fn compare(python: &str, which: &str, what: &str, plan: &Plan, runs: u32, styles: &[&str]) {
    let (mine, score) = ours(plan, runs);
    println!("{what}: fedkin {:.2} ms CPU, log10 of the error per coordinate {score:.1}", 1e3 * mine);
    for style in styles {
        match numpy(python, which, style, runs) {
            Some((peer, score)) => println!(
                "  numpy, {style}: {:.1} ms CPU, {:.1} times ours, log10 {score:.1}",
                1e3 * peer,
                peer / mine
            ),
            None => {
                println!("  skipped numpy, {style}: {python} has none (benches/peers/requirements.txt)");
            }
        }
    }
}

/// All clients of Experiment II train a model each, on all cores.
fn everybody() {
    let sets = [
        set("algorithm.targets", Value::Text("all".into())),
        set("run.repeats", Value::Integer(1)),
        set("evaluate.metric", Value::Text("distance.client".into())),
    ];
    let plan = plan("persfl-fig3", &sets);
    let world = plan.world(0).unwrap();
    println!(
        "Experiment II, all 3,500 clients: data drawn, {:.0} MiB at most",
        peak_memory().unwrap_or(f64::NAN)
    );
    let (wall, cpu) = (Instant::now(), cpu_seconds());
    let Stage { mut live, scorer } = plan.start(&world, 0).unwrap();
    while live.step().unwrap() != Progress::Ended {
        if live.steps().is_multiple_of(200) {
            println!("  round {}: {:.1} s", live.rounds(), wall.elapsed().as_secs_f64());
        }
    }
    let (wall, cpu) = (wall.elapsed().as_secs_f64(), cpu_seconds() - cpu);
    let column = scorer.names().iter().position(|name| name == "distance.client").unwrap();
    let mut all: Vec<f64> = live.rows(&scorer).iter().map(|row| row[column]).collect();
    all.sort_unstable_by(f64::total_cmp);
    println!(
        "Experiment II, all 3,500 clients, {} rounds: {wall:.1} s wall, {cpu:.1} s CPU on {} threads, {:.0} MiB at most; \
         distance to the truth: median {:.2e}, nine in ten below {:.2e}",
        live.rounds(),
        rayon::current_num_threads(),
        peak_memory().unwrap_or(f64::NAN),
        all[all.len() / 2],
        all[all.len() * 9 / 10]
    );
}

fn main() {
    let parts = ["one", "federation", "ifca", "all"];
    let words: Vec<String> = std::env::args().skip(1).filter(|word| !word.starts_with('-')).collect();
    let python = words.iter().find(|word| !parts.contains(&word.as_str()));
    let python = python.map_or("python3", String::as_str);
    let named = words.iter().any(|word| parts.contains(&word.as_str()));
    let wanted = |part: &str| words.iter().any(|word| word == part) || (!named && part != "all");
    // One thread where CPU time is compared, this one as in numpy; all of them where a person waits.
    let pool = rayon::ThreadPoolBuilder::new();
    let pool = if wanted("all") { pool } else { pool.num_threads(1).use_current_thread() };
    pool.build_global().unwrap();
    let zero = set("algorithm.start", Value::Text("zero".into()));
    let log = set("evaluate.metric", Value::Text("log_msd.client".into()));
    if wanted("one") {
        // The rule as printed, which is what the peer runs; the guard would be work that the peer does not do.
        let plan = plan("persfl-fig1a", &[set("run.rounds", Value::Integer(1000)), zero.clone()]);
        let what = "Experiment I, one target, n = 100, d = 20, B = 20, 1000 rounds";
        compare(python, "one", what, &plan, 45, &["plain", "batched", "loop"]);
    }
    if wanted("federation") {
        let target = set("algorithm.targets", Value::Text("client-000000".into()));
        let plan = plan("persfl-fig3", &[target, zero, log]);
        let what = "Experiment II, one target, n = 3500, d = 450, B = 20, 1000 rounds";
        compare(python, "federation", what, &plan, 3, &["plain", "batched", "loop"]);
    }
    if wanted("ifca") {
        let plan = plan(
            "persfl-fig2",
            &[
                set("algorithm.name", Value::Text("ifca".into())),
                set("algorithm.learning_rate", Value::Number(0.01)),
            ],
        );
        compare(python, "ifca", "IFCA, n = 100, d = 20, k = 2, 200 rounds", &plan, 15, &["batched"]);
    }
    if wanted("all") {
        everybody();
    }
}
