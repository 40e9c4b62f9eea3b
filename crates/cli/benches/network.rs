//! Nodes on a broker: how fast against the bare broker, a model of 10 MB, memory over 2,000 rounds.
//!
//! `cargo bench -p fedkin-cli --bench network [-- throughput|large|memory]`: all three without a word. Needs a
//! `nats-server` (`scripts/setup`). Throughput: 1,000 clients in 4 processes answer every round; a client-round is
//! one ask and one upload, and is compared with one request and one reply of the same size between two connections
//! to the same broker in the same run, with nothing else on it. Measured from the tenth step on.
#![allow(clippy::print_stdout, clippy::unwrap_used, clippy::expect_used, missing_docs)]

#[path = "../tests/load/run.rs"]
mod run;

use fedkin_runtime::nats::Broker;
use run::{Running, World};
use std::time::{Duration, Instant};

const TURNS: usize = 3;
const REQUESTS: usize = 20_000;

const THOUSAND: World = World {
    servers: 1,
    clients_per_server: 1000,
    client_processes: 4,
    clusters: 3,
    dimension: 60,
    samples: "[2, 9]",
    rounds: 200,
    private: false,
};

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn throughput(runtime: &tokio::runtime::Runtime) {
    println!("1,000 clients in 4 processes, d = 60, all asked in every round");
    for (servers, private) in [(1, false), (1, true), (4, false), (4, true)] {
        let world = World { servers, clients_per_server: 1000 / servers, private, ..THOUSAND };
        let (mut ours, mut bare) = (Vec::new(), Vec::new());
        for _ in 0..TURNS {
            let dir = tempfile::tempdir().unwrap();
            let broker = Broker::start(dir.path().join("broker")).unwrap();
            let url = broker.url();
            // Before and after, because the machine may be busy: the better one counts.
            let before = run::bare(runtime, &url, REQUESTS);
            let mut running = Running::start(world, &url, dir.path());
            running.wait();
            ours.push(running.client_rounds_per_second(10));
            bare.push(before.max(run::bare(runtime, &url, REQUESTS)));
        }
        let ratios: Vec<f64> = ours.iter().zip(&bare).map(|(ours, bare)| ours / bare).collect();
        println!(
            "{servers} server{}, {}: {:.0} client-rounds/s, bare request/reply {:.0}/s, {:.2} times (medians of {TURNS}; least {:.2})",
            if servers == 1 { "" } else { "s" },
            if private { "zCDP noise" } else { "no noise" },
            median(ours),
            median(bare),
            median(ratios.clone()),
            ratios.into_iter().fold(f64::INFINITY, f64::min),
        );
    }
}

/// 1,250,000 numbers of 8 bytes.
fn large(runtime: &tokio::runtime::Runtime) {
    let world = World {
        clients_per_server: 50,
        client_processes: 2,
        clusters: 1,
        dimension: 1_250_000,
        samples: "2",
        rounds: 3,
        ..THOUSAND
    };
    let dir = tempfile::tempdir().unwrap();
    let broker = Broker::start(dir.path().join("broker")).unwrap();
    let begin = Instant::now();
    let mut running = Running::start(world, &broker.url(), dir.path());
    let (samples, peaks) = run::observe(&mut running, runtime, &broker.url(), Duration::from_millis(500));
    println!(
        "model of 10 MB, 50 clients in 2 processes, 3 rounds: {:.0} s in all, {:.1} s per round",
        begin.elapsed().as_secs_f64(),
        50.0 / running.client_rounds_per_second(1),
    );
    for (name, peak) in peaks {
        println!("  {name}: {peak:.0} MB at most");
    }
    let journal = samples.iter().map(|sample| sample.journal).fold(0.0, f64::max);
    let broker = broker.pid().and_then(run::memory).map_or(0.0, |(_, peak)| peak);
    println!("  broker: {broker:.0} MB at most; largest journal: {journal:.0} MB");
}

fn memory(runtime: &tokio::runtime::Runtime) {
    let world = World {
        servers: 2,
        clients_per_server: 30,
        client_processes: 2,
        rounds: 2000,
        private: true,
        ..THOUSAND
    };
    let dir = tempfile::tempdir().unwrap();
    let broker = Broker::start(dir.path().join("broker")).unwrap();
    let url = broker.url();
    let begin = Instant::now();
    let mut running = Running::start(world, &url, dir.path());
    let (samples, _) = run::observe(&mut running, runtime, &url, Duration::from_millis(100));
    println!("60 clients, 2 servers, 2,000 rounds, zCDP noise: {:.0} s", begin.elapsed().as_secs_f64());
    for at in [100, 500, 1000, 1500, 1999] {
        let Some(sample) = samples.iter().find(|sample| sample.step >= at) else { continue };
        let memory: Vec<String> =
            sample.memory.iter().map(|(name, now)| format!("{name} {now:.1} MB")).collect();
        println!(
            "  step {}: {}, largest journal {:.1} MB, largest ledger {:.1} MB, {} messages stored",
            sample.step,
            memory.join(", "),
            sample.journal,
            sample.ledger,
            sample.stored
        );
    }
    for name in samples.iter().rev().find(|sample| sample.memory.len() == 4).unwrap().memory.keys() {
        let (middle, last) = run::thirds(&samples, world.rounds, |sample| sample.memory.get(name).copied());
        println!("  {name}: at most {middle:.1} MB in the middle third, {last:.1} MB in the last");
    }
}

fn main() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let words: Vec<String> = std::env::args().skip(1).filter(|arg| !arg.starts_with('-')).collect();
    for (name, part) in
        [("throughput", throughput as fn(&tokio::runtime::Runtime)), ("memory", memory), ("large", large)]
    {
        if words.is_empty() || words.iter().any(|word| word == name) {
            part(&runtime);
        }
    }
}
