//! Rounds of `FedAvg` against Flower's simulation, pfl and a plain PyTorch loop, in the same run.
//!
//! `cargo bench -p fedkin-experiment --bench rounds [-- PYTHON] [net] [small]`: PYTHON is an interpreter with the packages of
//! `benches/peers/requirements-nets.txt` (default `python3`). `net`: 20 clients with 600 records, the MNIST net, E = 5, batch
//! 128, all cores. `small`: 1,000 clients with 60 parameters, one step. Wall time per round; the first round, in which
//! workers start and memory is touched, does not count on either side.
#![allow(
    clippy::print_stdout,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::disallowed_methods,
    missing_docs
)]

use fedkin_graph::Topology;
use fedkin_learner::model::neural::{Goal, Net};
use fedkin_learner::model::{Loss, Model, NetModel};
use fedkin_learner::{Dataset, Linear, NetFamily};
use fedkin_method::{Context, Entry, Families, Federation, Run, registry};
use fedkin_numeric::rng::{PublicRng, Random};
use fedkin_privacy::Privacy;
use fedkin_runtime::Threads;
use fedkin_settings::{Value, Values};
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::Instant;

/// The largest memory of this process so far, in MiB.
fn peak_memory() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|line| line.split_whitespace().next()?.parse::<f64>().ok())
        .map_or(f64::NAN, |kib| kib / 1024.0)
}

/// Random records.
fn world(clients: usize, rows: usize, columns: usize, classes: u32) -> (Federation, Vec<Arc<Dataset>>) {
    let (mut entries, mut data) = (Vec::new(), Vec::new());
    for k in 0..clients {
        let mut rng = PublicRng::named(1, "rounds", 0, k as u32);
        let features = (0..rows * columns).map(|_| rng.normal()).collect();
        let target =
            |rng: &mut PublicRng| if classes > 0 { f64::from(rng.below(classes)) } else { rng.normal() };
        let targets = (0..rows).map(|_| target(&mut rng)).collect();
        data.push(Arc::new(Dataset::new(columns, features, targets).unwrap()));
        entries.push(Entry { name: format!("c{k:05}"), server: 0, cluster: 0, samples: rows as u32 });
    }
    let names = |word: &str| vec![word.to_string()];
    (Federation::new(entries, names("s"), names("q"), Topology::none(1)).unwrap().0, data)
}

/// Seconds per round, the first left out.
fn ours(
    families: Families,
    settings: &[(&str, Value)],
    at: &(Federation, Vec<Arc<Dataset>>),
    rounds: u32,
) -> f64 {
    let raw: BTreeMap<String, Value> =
        settings.iter().map(|(key, value)| ((*key).to_string(), value.clone())).collect();
    let methods = registry::native();
    let row = methods.find("fedavg").unwrap();
    let values = Values::check(row.params, &raw).unwrap();
    let run = Run {
        seed: 1,
        rounds: rounds + 1,
        clients_per_server: None,
        max_norm2: 1e12,
        dimension: families.first().dimension(at.1[0].columns()),
        clusters: 1,
        privacy: Privacy::None,
        targets: None,
        kin: None,
        columns: None,
        learners: None,
    };
    let method = row.build(&values, &Context::new(families, Privacy::None)).unwrap();
    let mut live = method.simulate(run, &at.0, &at.1, Arc::new(Threads)).unwrap();
    live.step().unwrap();
    let begin = Instant::now();
    for _ in 0..rounds {
        live.step().unwrap();
    }
    begin.elapsed().as_secs_f64() / f64::from(rounds)
}

/// Seconds per round and memory of a peer.
fn peer(python: &str, tool: &str, which: &str) -> Option<(f64, f64)> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../benches/peers/rounds_flower.py");
    let output =
        Command::new(python).arg(script).args([tool, which]).env("RAY_DEDUP_LOGS", "0").output().ok()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let line = text.lines().rev().find(|line| line.starts_with('{'))?;
    let found: serde_json::Value = serde_json::from_str(line).ok()?;
    Some((found["seconds"].as_f64()?, found["memory_mib"].as_f64()?))
}

fn compare(python: &str, which: &str, clients: usize, mine: f64, tools: &[&str]) {
    println!(
        "{which}: fedkin {:.4} s per round, {:.2} microseconds per client and round, {:.0} MiB at most, {} threads",
        mine,
        1e6 * mine / clients as f64,
        peak_memory(),
        rayon::current_num_threads()
    );
    for tool in tools {
        match peer(python, tool, which) {
            Some((seconds, memory)) => println!(
                "  {tool}: {seconds:.3} s per round, {:.3} ms per client and round, {memory:.0} MiB, {:.1} times ours",
                1e3 * seconds / clients as f64,
                seconds / mine
            ),
            None => println!("  skipped {tool}: {python} has it not (benches/peers/requirements-nets.txt)"),
        }
    }
}

fn main() {
    let words: Vec<String> = std::env::args().skip(1).filter(|word| word != "--bench").collect();
    let parts: Vec<&str> =
        words.iter().map(String::as_str).filter(|word| ["net", "small"].contains(word)).collect();
    let python = words.iter().find(|word| !parts.contains(&word.as_str())).map_or("python3", String::as_str);
    let wanted = |part: &str| parts.is_empty() || parts.contains(&part);
    if wanted("net") {
        let (input, layers) = Net::preset("mnist-cnn", 10).unwrap();
        let net = NetModel::new(Net::new(input, &layers, Goal::CrossEntropy).unwrap());
        let settings = [
            ("epochs", Value::Integer(5)),
            ("batch", Value::Integer(128)),
            ("learning_rate", Value::Number(0.01)),
        ];
        let mine = ours(Families::one(NetFamily::new(net)), &settings, &world(20, 600, 784, 10), 3);
        compare(python, "net", 20, mine, &["torch", "flower"]);
    }
    if wanted("small") {
        let model = Model { loss: Loss::Squared, regularisation: 0.0, bias: false, feature_norm: None };
        let settings = [
            ("epochs", Value::Integer(1)),
            ("batch", Value::Integer(10)),
            ("learning_rate", Value::Number(0.01)),
        ];
        let mine = ours(Families::one(Linear::new(model)), &settings, &world(1000, 10, 60, 0), 200);
        compare(python, "small", 1000, mine, &["flower", "pfl"]);
    }
}
