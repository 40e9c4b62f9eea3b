//! Seconds per round, all metrics included, as the federation grows, on one thread and on all.
//!
//! `cargo bench -p fedkin-experiment --bench scale [-- million]`: 10,000 and 100,000 clients; a million with
//! the word, which takes about 5 GB of memory.
#![allow(clippy::print_stdout, clippy::unwrap_used, clippy::expect_used, missing_docs)]

use fedkin_config::{Override, Source};
use fedkin_experiment::library;
use fedkin_method::round::Progress;
use fedkin_run::{Plan, Registry, Stage};
use std::path::Path;
use std::time::Instant;

fn main() {
    let million = std::env::args().any(|arg| arg == "million");
    let experiment = library::find("million").unwrap();
    let source = Source { name: "million".into(), text: experiment.text.into() };
    let threads = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let sizes: &[(u32, u32)] =
        if million { &[(10, 600), (100, 60), (1000, 18)] } else { &[(10, 600), (100, 60)] };
    for &(servers, rounds) in sizes {
        let set = |text: String| Override::parse(&text).unwrap();
        let sets = [set(format!("topology.graph.servers={servers}")), set("run.rounds=1000000".into())];
        let plan = Plan::load(&Registry::native(), &source, Path::new("."), &sets, &[]).unwrap();
        let world = plan.world(0).unwrap();
        let Stage { mut live, scorer } = plan.start(&world, 0).unwrap();
        live.step().unwrap();
        // Threads take turns on the same run, because a second copy of a million clients would not fit.
        let mut best = [f64::INFINITY; 2];
        for turn in 0..6 {
            let pool = rayon::ThreadPoolBuilder::new().num_threads([1, threads][turn % 2]).build().unwrap();
            let seconds = pool.install(|| {
                let start = Instant::now();
                for _ in 0..rounds / 6 {
                    assert_ne!(live.step().unwrap(), Progress::Ended);
                    assert!(live.evaluate(&scorer)[0].mean() < 1.0);
                }
                start.elapsed().as_secs_f64() / f64::from(rounds / 6)
            });
            best[turn % 2] = best[turn % 2].min(seconds);
        }
        let clients = world.train.len();
        println!(
            "{clients} clients: {:.1} ms per round on one thread, {:.1} on {threads} ({:.2} times), {:.3} us per client-round",
            1e3 * best[0],
            1e3 * best[1],
            best[0] / best[1],
            1e6 * best[1] / clients as f64
        );
    }
}
