//! A training step of the three nets of the FedPnP paper at batch 128: CPU time of one core against PyTorch
//! (`benches/peers/nets_torch.py`) in the same run.
//!
//! `cargo bench -p fedkin-core --bench nets [-- PYTHON] [mnist-cnn] [cifar] [har-mlp]`: PYTHON is an interpreter with torch
//! (default `python3`); without a net, all. A step is forward, backward and the update. The sides take turns, because the
//! machine may be busy; the medians over all turns are compared, and the fastest are printed beside them.
#![allow(
    clippy::print_stdout,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::disallowed_methods,
    clippy::disallowed_types,
    clippy::disallowed_macros,
    missing_docs
)]

use fedkin_learner::model::neural::{Descent, Goal, Narrow, Net, train};
use fedkin_numeric::rng::{PublicRng, Random};
use std::path::Path;
use std::process::Command;

const BATCH: usize = 128;
const STEPS: usize = 8;
const TURNS: usize = 5;
/// In a turn, on either side.
const REPEATS: usize = 12;

/// User and system time of this process in milliseconds.
fn cpu() -> f64 {
    cpu_time::ProcessTime::try_now().map_or(0.0, |now| 1e3 * now.as_duration().as_secs_f64())
}

/// Times of one side in milliseconds per step.
#[derive(Default)]
struct Side {
    fastest: Vec<f64>,
    medians: Vec<f64>,
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    values[values.len() / 2]
}

impl Side {
    fn add(&mut self, (fastest, median): (f64, f64)) {
        self.fastest.push(fastest);
        self.medians.push(median);
    }

    fn fastest(&self) -> f64 {
        self.fastest.iter().copied().fold(f64::INFINITY, f64::min)
    }

    fn median(&self) -> f64 {
        median(self.medians.clone())
    }
}

fn ours(name: &str, classes: usize) -> (f64, f64) {
    let (input, layers) = Net::preset(name, classes).unwrap();
    let net = Net::new(input, &layers, Goal::CrossEntropy).unwrap();
    let mut rng = PublicRng::named(1, "nets", 0, 0);
    let mut w = net.start(&mut rng);
    let rows = BATCH * STEPS;
    let records = Narrow {
        columns: net.features(),
        features: (0..rows * net.features()).map(|_| rng.normal() as f32).collect(),
        targets: (0..rows).map(|_| rng.below(classes as u32) as f32).collect(),
    };
    let mut bench = net.bench(BATCH);
    let descent = Descent { epochs: 1, batch: BATCH, rate: 0.01, momentum: 0.0, weight_decay: 0.0 };
    let mut times: Vec<f64> = (0..=REPEATS)
        .map(|_| {
            let begin = cpu();
            train(&net, &mut bench, &records, &descent, None, &mut |_| {}, &mut w).unwrap();
            (cpu() - begin) / STEPS as f64
        })
        .collect();
    times.remove(0); // It warms up.
    (times.iter().copied().fold(f64::INFINITY, f64::min), median(times))
}

fn torch(python: &str, name: &str) -> Option<(f64, f64)> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../benches/peers/nets_torch.py");
    let output = Command::new(python)
        .arg(script)
        .args([name, "--batch", &BATCH.to_string(), "--steps", &STEPS.to_string()])
        .args(["--repeats", &REPEATS.to_string()])
        .envs([("OMP_NUM_THREADS", "1"), ("MKL_NUM_THREADS", "1")])
        .output()
        .ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    // One known line of JSON.
    let number = |key: &str| -> Option<f64> {
        let rest = text.split_once(&format!("\"{key}\": "))?.1;
        rest[..rest.find([',', '}'])?].trim().parse().ok()
    };
    Some((number("fastest")?, number("median")?))
}

fn main() {
    let nets = [("mnist-cnn", 10), ("cifar", 10), ("har-mlp", 6)];
    let is_net = |word: &String| nets.iter().any(|(name, _)| name == word);
    let words = std::env::args().skip(1).filter(|word| !word.starts_with("--"));
    let (wanted, others): (Vec<String>, Vec<String>) = words.partition(is_net);
    let python = others.first().map_or("python3", String::as_str);
    for (name, classes) in
        nets.into_iter().filter(|(name, _)| wanted.is_empty() || wanted.iter().any(|word| word == name))
    {
        let (mut mine, mut peer) = (Side::default(), Side::default());
        for _ in 0..TURNS {
            mine.add(ours(name, classes));
            if let Some(times) = torch(python, name) {
                peer.add(times);
            }
        }
        println!(
            "{name}, batch {BATCH}: fedkin {:.2} ms CPU per step (fastest {:.2})",
            mine.median(),
            mine.fastest()
        );
        if peer.medians.is_empty() {
            println!("  skipped PyTorch: {python} has no torch (benches/peers/README.md)");
        } else {
            println!(
                "  PyTorch, one thread: {:.2} ms (fastest {:.2}), {:.2} times ours (fastest {:.2})",
                peer.median(),
                peer.fastest(),
                peer.median() / mine.median(),
                peer.fastest() / mine.fastest()
            );
        }
    }
}
