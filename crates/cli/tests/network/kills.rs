//! `kill -9` of clients, servers, the broker and the launcher at random moments: the run ends with the same models,
//! and every client has paid for every step once.

use crate::bench::Bench;
use crate::net::{
    Kind, LONG, SOON, await_step, broker, client_folders, ledgers, local, nats, of_kind, processes, ready,
    result, signal, small, start, until,
};
use serde_json::Value;
use std::time::{Duration, Instant};

const ROUNDS: u32 = 500;
/// Three servers with a process each, and three hosts of clients.
const PROCESSES: &[&str] = &["--processes", "6"];

/// Splitmix64: trials are the same whenever the seed is.
struct Dice(u64);

impl Dice {
    fn roll(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, limit: usize) -> usize {
        (self.roll() % limit as u64) as usize
    }

    fn millis(&mut self, least: u64, most: u64) -> Duration {
        Duration::from_millis(least + self.roll() % (most - least))
    }
}

fn number(name: &str, default: u64) -> u64 {
    std::env::var(name)
        .ok()
        .map_or(default, |text| text.parse().unwrap_or_else(|_| panic!("{name}={text:?}")))
}

/// A run that nobody disturbs.
struct Unfaulted {
    bench: Bench,
    result: Value,
    ledger: String,
}

impl Unfaulted {
    fn new() -> Self {
        let bench = Bench::new();
        bench.write("small.toml", small(ROUNDS));
        let told = local(&bench, &["small.toml", "--out", "local"]);
        let arguments = [&["small.toml", "--out", "whole"], PROCESSES].concat();
        let whole = start(&bench, &nats(&arguments)).told();
        assert_eq!(result(&whole), result(&told));
        let ledger = bench.read("local/ledger.jsonl");
        Self { bench, result: result(&told), ledger }
    }

    /// The same models, metrics and privacy; the same ledgers to the digest of every upload.
    fn compare(&self, bench: &Bench, told: &Value, what: &str) {
        assert_eq!(result(told), self.result, "{what}");
        assert_eq!(bench.read("out/ledger.jsonl"), self.ledger, "{what}");
        assert!(ledgers(bench, "out") == ledgers(&self.bench, "whole"), "{what}: ledgers differ");
    }
}

#[derive(Debug, Default)]
struct Kills {
    clients: usize,
    servers: usize,
    brokers: usize,
    launchers: usize,
}

impl Kills {
    fn all(&self) -> usize {
        self.clients + self.servers + self.brokers + self.launchers
    }

    fn count(&mut self, kind: Kind) {
        match kind {
            Kind::Client => self.clients += 1,
            Kind::Server => self.servers += 1,
            Kind::Broker => self.brokers += 1,
        }
    }
}

/// One run with some kills.
fn trial(unfaulted: &Unfaulted, seed: u64, kills: &mut Kills) {
    let mut dice = Dice(seed);
    let bench = Bench::new();
    bench.write("small.toml", small(ROUNDS));
    let command = nats(&[&["small.toml", "--out", "out"], PROCESSES].concat());
    let mut launcher = start(&bench, &command);
    let wanted = 2 + dice.below(4);
    let mut said = Vec::new();
    for _ in 0..wanted {
        std::thread::sleep(dice.millis(30, 700));
        if !launcher.runs() {
            break;
        }
        let mut there = processes(&bench);
        if there.is_empty() {
            continue;
        }
        let act = dice.below(10);
        if act == 0 {
            // Everything at once, as when the power fails; then the same command again.
            signal("KILL", &[launcher.pid()]);
            launcher.end(SOON);
            for (pid, kind) in processes(&bench) {
                signal("KILL", &[pid]);
                kills.count(kind);
            }
            kills.launchers += 1;
            said.push("all".to_string());
            until("all are gone", SOON, || processes(&bench).is_empty());
            launcher = start(&bench, &command);
            continue;
        }
        let wants = match act {
            1..=3 => Some(Kind::Client),
            4..=6 => Some(Kind::Server),
            7..=8 => Some(Kind::Broker),
            // Several of any kind.
            _ => None,
        };
        there.retain(|(_, kind)| wants.is_none_or(|wanted| *kind == wanted));
        let count = if wants.is_none() { 2 + dice.below(3) } else { 1 };
        for _ in 0..count {
            if there.is_empty() {
                break;
            }
            let (pid, kind) = there.swap_remove(dice.below(there.len()));
            signal("KILL", &[pid]);
            kills.count(kind);
            said.push(format!("{kind:?}"));
        }
    }
    let begun = Instant::now();
    let told = launcher.told();
    eprintln!(
        "seed {seed}: killed {}; {:.1} s after the last",
        said.join(", "),
        begun.elapsed().as_secs_f64()
    );
    unfaulted.compare(&bench, &told, &format!("seed {seed}, killed {}", said.join(", ")));
}

#[test]
fn kills_at_random_moments_change_no_bit_and_cost_nothing_twice() {
    if !ready() {
        return;
    }
    let trials = number("FEDKIN_TRIALS", 8);
    let first = number("FEDKIN_SEED", 1);
    let unfaulted = Unfaulted::new();
    let mut kills = Kills::default();
    let begun = Instant::now();
    for seed in first..first + trials {
        trial(&unfaulted, seed, &mut kills);
    }
    let seconds = begun.elapsed().as_secs_f64();
    eprintln!("{trials} trials, {} kills ({kills:?}), {seconds:.1} s", kills.all());
    assert!(kills.all() as u64 >= trials, "too few kills came in time: {kills:?}");
}

/// Whoever started the nodes is gone and they are not: the same command takes over.
#[test]
fn a_launcher_killed_alone_is_no_obstacle() {
    if !ready() {
        return;
    }
    let unfaulted = Unfaulted::new();
    let bench = Bench::new();
    bench.write("small.toml", small(ROUNDS));
    let command = nats(&[&["small.toml", "--out", "out"], PROCESSES].concat());
    let mut launcher = start(&bench, &command);
    await_step(&bench, "out", 20);
    signal("KILL", &[launcher.pid()]);
    launcher.end(SOON);
    let mut again = start(&bench, &command);
    let told = again.told();
    assert_eq!(told["start"], "resumed");
    unfaulted.compare(&bench, &told, "launcher killed alone");
    until("nobody is left", SOON, || processes(&bench).is_empty());
}

/// A broker that loses its disk, again and again.
#[test]
fn a_broker_that_forgets_everything_costs_time_only() {
    if !ready() {
        return;
    }
    let unfaulted = Unfaulted::new();
    let bench = Bench::new();
    bench.write("small.toml", small(ROUNDS));
    let mut own = broker(&bench);
    let url = own.url();
    let mut launcher =
        start(&bench, &nats(&[&["small.toml", "--out", "out", "--url", &url], PROCESSES].concat()));
    for step in [1, 60, 61, 200] {
        await_step(&bench, "out", step);
        own.wipe().unwrap();
    }
    let told = launcher.told();
    unfaulted.compare(&bench, &told, "wiped");
}

/// A server that stands still for two seconds and goes on.
#[test]
fn a_paused_server_holds_up_the_others_and_changes_nothing() {
    if !ready() {
        return;
    }
    let unfaulted = Unfaulted::new();
    let bench = Bench::new();
    bench.write("small.toml", small(ROUNDS));
    let mut launcher = start(&bench, &nats(&[&["small.toml", "--out", "out"], PROCESSES].concat()));
    await_step(&bench, "out", 30);
    let paused = of_kind(&bench, Kind::Server)[0];
    signal("STOP", &[paused]);
    let at = crate::net::step(&bench, "out");
    std::thread::sleep(Duration::from_secs(2));
    let after = crate::net::step(&bench, "out");
    // Neighbours are never more than one step apart, nor their clients.
    assert!(after <= at + 3 && after < ROUNDS, "{at} and {after}: the pause came too late or held up nobody");
    signal("CONT", &[paused]);
    let told = launcher.told();
    unfaulted.compare(&bench, &told, "paused");
    assert_eq!(client_folders(&bench, "out").len(), 3);
    assert!(launcher.end(LONG).code == Some(0));
}
