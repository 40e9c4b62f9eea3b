//! CPU time of one core against the numpy peer in `benches/peers/`, in the same run.
//!
//! `cargo bench -p fedkin-experiment --bench peers [-- PYTHON]`: PYTHON is an interpreter with numpy
//! (default `python3`). Set-up of the factors, all rounds and all metrics count; drawing the data does not,
//! on either side. Best of several runs on each side, because the machine may be busy.
#![allow(clippy::print_stdout, clippy::unwrap_used, clippy::expect_used, missing_docs)]

use fedkin_config::{Override, Source};
use fedkin_experiment::library;
use fedkin_method::round::Progress;
use fedkin_run::{Plan, Registry, Stage};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

const RUNS: u32 = 7;

/// User and system time of this process in seconds.
fn cpu_seconds() -> f64 {
    cpu_time::ProcessTime::try_now().map_or(0.0, |now| now.as_duration().as_secs_f64())
}

fn ours(figure: &str) -> f64 {
    let experiment = library::find(figure).unwrap();
    let source = Source { name: figure.into(), text: experiment.text.into() };
    let plan = Plan::load(&Registry::native(), &source, Path::new("."), &[] as &[Override], &[]).unwrap();
    (0..RUNS)
        .map(|repeat| {
            let world = plan.world(repeat).unwrap();
            let start = cpu_seconds();
            let Stage { mut live, scorer } = plan.start(&world, repeat).unwrap();
            let mut last = Vec::new();
            while live.step().unwrap() != Progress::Ended {
                last = live.evaluate(&scorer);
            }
            assert!(last[0].mean() < 0.1, "the run learnt nothing");
            cpu_seconds() - start
        })
        .fold(f64::INFINITY, f64::min)
}

fn numpy(python: &str, figure: &str, mode: &[&str]) -> Option<f64> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../benches/peers/pgfl_numpy.py");
    let times: Vec<f64> = (0..RUNS)
        .map_while(|seed| {
            let output = Command::new(python)
                .arg(&script)
                .args(["time", "--figure", figure, "--rounds", "300", "--seed", &seed.to_string()])
                .args(mode)
                .envs([("OMP_NUM_THREADS", "1"), ("OPENBLAS_NUM_THREADS", "1")])
                .output()
                .ok()?;
            let text = String::from_utf8_lossy(&output.stdout).into_owned();
            let value: serde_json::Value = serde_json::from_str(&text).ok()?;
            value["cpu_seconds"].as_f64()
        })
        .collect();
    times.into_iter().reduce(f64::min)
}

fn main() {
    let python =
        std::env::args().nth(1).filter(|arg| !arg.starts_with('-')).unwrap_or_else(|| "python3".into());
    rayon::ThreadPoolBuilder::new().num_threads(1).build_global().unwrap();
    std::thread::sleep(Duration::from_millis(10));
    for figure in ["fig1", "fig3"] {
        let mine = ours(&format!("pgfl-{figure}"));
        println!(
            "{figure}: fedkin {:.2} ms CPU (PGFL tau 0.4, 150 clients, 300 rounds, all metrics)",
            1e3 * mine
        );
        for (name, mode) in [
            ("numpy, a loop over clients", ["--style", "loop"]),
            ("numpy, batched over clients", ["--style", "batched"]),
        ] {
            match numpy(&python, figure, &mode) {
                Some(peer) => {
                    println!("{figure}: {name}: {:.1} ms CPU, {:.1} times ours", 1e3 * peer, peer / mine);
                }
                None => println!(
                    "{figure}: skipped {name}: {python} has no numpy (benches/peers/requirements.txt)"
                ),
            }
        }
    }
}
