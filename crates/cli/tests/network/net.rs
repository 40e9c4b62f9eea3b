//! Processes of a run: started, found, signalled, waited for, and ended with the test.

use crate::bench::{Bench, Ran};
use fedkin_privacy::Chain;
use fedkin_runtime::nats::{Broker, find_broker};
use fedkin_runtime::store::read_ledger;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::{Duration, Instant};

/// No run of these tests takes as long, killed or not.
pub(crate) const LONG: Duration = Duration::from_secs(120);
/// A process that ends by itself has ended by then.
pub(crate) const SOON: Duration = Duration::from_secs(30);

/// Three servers in a ring with four clients each, of which two are asked; uploads carry noise.
pub(crate) const SMALL: &str = r#"version = 1
[run]
name = "small"
seed = 5
rounds = 6
[data]
source = "synthetic.clustered-regression"
clients_per_server = 4
clusters = 2
dimension = 5
[topology]
graph = { kind = "ring", servers = 3 }
[model]
kind = "ridge"
[algorithm]
name = "pgfl"
penalty = 4.0
[participation]
clients_per_server = 2
[privacy]
mechanism = "zcdp"
initial_budget = 1e-3
growth = 1.0
bound = "assumed"
gradient_bound = 1.0
[network]
resend = 0.2
"#;

/// The small experiment with so many rounds.
pub(crate) fn small(rounds: u32) -> String {
    SMALL.replace("rounds = 6", &format!("rounds = {rounds}"))
}

/// Whether there is a broker to test with.
pub(crate) fn ready() -> bool {
    match find_broker() {
        Ok(_) => true,
        Err(error) => {
            assert!(std::env::var_os("FEDKIN_NATS_SERVER").is_none(), "FEDKIN_NATS_SERVER: {error}");
            crate::skipped::skipped(&error.to_string());
            false
        }
    }
}

/// A broker that the test owns.
pub(crate) fn broker(bench: &Bench) -> Broker {
    Broker::start(bench.path("own-broker")).unwrap()
}

/// A program under test; it and every node of its bench end with it.
pub(crate) struct Started<'a> {
    child: Child,
    bench: &'a Bench,
    name: String,
    what: String,
}

/// What a process of a run is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Server,
    Client,
    Broker,
}

/// Starts the program; what it says goes to files.
pub(crate) fn start<'a>(bench: &'a Bench, arguments: &[&str]) -> Started<'a> {
    use std::sync::atomic::{AtomicU32, Ordering};
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let name = format!("said-{}", COUNT.fetch_add(1, Ordering::Relaxed));
    let mut command = bench.command(arguments);
    command.env_remove("FEDKIN_LOG");
    command.stdout(File::create(bench.path(format!("{name}.out"))).unwrap());
    command.stderr(File::create(bench.path(format!("{name}.err"))).unwrap());
    Started { child: command.spawn().unwrap(), bench, name, what: arguments.join(" ") }
}

impl Started<'_> {
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn runs(&mut self) -> bool {
        self.child.try_wait().unwrap().is_none()
    }

    pub(crate) fn said(&self) -> String {
        self.bench.read(&format!("{}.err", self.name))
    }

    /// Waits for its end; a process that takes longer is a failure.
    pub(crate) fn end(&mut self, patience: Duration) -> Ran {
        let begun = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                let read = |end: &str| self.bench.read(&format!("{}.{end}", self.name));
                return Ran { code: status.code(), out: read("out"), err: read("err") };
            }
            assert!(
                begun.elapsed() < patience,
                "{} still runs after {patience:?}\n{}\n{}",
                self.what,
                self.said(),
                logs(self.bench)
            );
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Waits for an end that is good, and for the JSON it says.
    pub(crate) fn told(&mut self) -> Value {
        let ran = self.end(LONG);
        assert_eq!(ran.code, Some(0), "{}: {ran:?}\n{}", self.what, logs(self.bench));
        serde_json::from_str(&ran.out).unwrap()
    }
}

impl Drop for Started<'_> {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        // Those that outlive whoever started them.
        if self.what.starts_with("run ") {
            signal("KILL", &processes(self.bench).iter().map(|(pid, _)| *pid).collect::<Vec<_>>());
        }
    }
}

/// The last lines of all logs of nodes.
fn logs(bench: &Bench) -> String {
    let below = |folder: PathBuf| fs::read_dir(folder).into_iter().flatten().flatten();
    let files = below(bench.path("")).flat_map(|out| below(out.path().join("nodes/logs")));
    let tail = |file: fs::DirEntry| {
        let said = fs::read_to_string(file.path()).unwrap_or_default();
        let lines: Vec<&str> = said.lines().collect();
        format!("{}\n{}\n", file.path().display(), lines[lines.len().saturating_sub(6)..].join("\n"))
    };
    files.map(tail).collect()
}

/// The nodes and brokers that work below a bench, whoever started them.
pub(crate) fn processes(bench: &Bench) -> Vec<(u32, Kind)> {
    let folder = bench.path("");
    let folder = folder.to_str().unwrap();
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc").unwrap().flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else { continue };
        let Ok(bytes) = fs::read(entry.path().join("cmdline")) else { continue };
        let line = String::from_utf8_lossy(&bytes).into_owned();
        let words: Vec<&str> = line.split('\0').collect();
        if !line.contains(folder) || line.contains("own-broker") {
            continue;
        }
        match (Path::new(words[0]).file_name().and_then(|name| name.to_str()), words.get(1)) {
            (Some("nats-server"), Some(&"--config")) => found.push((pid, Kind::Broker)),
            (Some("fedkin"), Some(&"server")) => found.push((pid, Kind::Server)),
            (Some("fedkin"), Some(&"client")) => found.push((pid, Kind::Client)),
            _ => {}
        }
    }
    found
}

/// Those of one kind.
pub(crate) fn of_kind(bench: &Bench, kind: Kind) -> Vec<u32> {
    processes(bench).into_iter().filter(|(_, is)| *is == kind).map(|(pid, _)| pid).collect()
}

/// Sends a signal; a process that is gone is none of its business.
pub(crate) fn signal(name: &str, pids: &[u32]) {
    let words = pids.iter().map(ToString::to_string);
    let mut kill = Command::new("kill");
    kill.arg(format!("-{name}")).args(words).stderr(std::process::Stdio::null());
    let _ = (!pids.is_empty()).then(|| kill.status());
}

/// Waits until something holds.
pub(crate) fn until(what: &str, patience: Duration, mut holds: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !holds() {
        assert!(begun.elapsed() < patience, "not within {patience:?}: {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// The folders of client nodes of a run.
pub(crate) fn client_folders(bench: &Bench, out: &str) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(bench.path(out).join("nodes")) else { return Vec::new() };
    let is_client = |path: &PathBuf| {
        path.is_dir() && path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("client-"))
    };
    let mut folders: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).filter(is_client).collect();
    folders.sort();
    folders
}

/// The last step that a ledger of a run knows; reads while the nodes write.
pub(crate) fn step(bench: &Bench, out: &str) -> u32 {
    let mut last = 0;
    for folder in client_folders(bench, out) {
        let Ok(lines) = read_ledger(&folder) else { continue };
        last = lines.flatten().map(|line| line.line.step).max().unwrap_or(0).max(last);
    }
    last
}

/// Waits until a run has come to a step.
pub(crate) fn await_step(bench: &Bench, out: &str, wanted: u32) {
    until(&format!("step {wanted}\n{}", bench.path(out).display()), LONG, || step(bench, out) >= wanted);
}

/// What left a client: step, what, price, digest of the bytes.
type Releases = Vec<(u32, Vec<u8>, u64, [u8; 32])>;

/// The ledgers of all clients of a run. Every chain must hold, and nothing may be in it twice.
pub(crate) fn ledgers(bench: &Bench, out: &str) -> BTreeMap<String, Releases> {
    let mut all: BTreeMap<String, Releases> = BTreeMap::new();
    let mut chains: BTreeMap<String, Chain> = BTreeMap::new();
    for folder in client_folders(bench, out) {
        for line in read_ledger(&folder).unwrap() {
            let line = line.unwrap();
            let chain = chains
                .entry(line.client.clone())
                .or_insert_with(|| Chain::start(&line.client, &line.fingerprint));
            chain.follow(&line.line).unwrap();
            let line = (line.client, line.line);
            let releases = all.entry(line.0.clone()).or_default();
            let twice =
                releases.iter().any(|(step, what, ..)| (*step, &**what) == (line.1.step, &*line.1.what));
            assert!(!twice, "client {} paid twice for step {}", line.0, line.1.step);
            releases.push((line.1.step, line.1.what.to_vec(), line.1.units, line.1.sent));
        }
    }
    assert!(!all.is_empty(), "no ledger in {out}");
    all
}

/// What must be the same however a run was made.
pub(crate) fn result(told: &Value) -> Value {
    let parts = ["models_sha256", "final", "privacy", "rounds", "size"];
    for part in parts {
        assert!(told.get(part).is_some(), "no {part} in {told}");
    }
    let mut result: Value = parts.iter().map(|part| ((*part).to_string(), told[*part].clone())).collect();
    // The signal to the noise takes the exact uploads, which nodes show to nobody.
    if let Some(metrics) = result["final"].as_object_mut() {
        metrics.retain(|name, _| !name.starts_with("snr"));
    }
    result
}

/// Runs in one process.
pub(crate) fn local(bench: &Bench, arguments: &[&str]) -> Value {
    start(bench, &[&["run"], arguments, &["--json"]].concat()).told()
}

/// The arguments of a run on nodes.
pub(crate) fn nats<'a>(arguments: &[&'a str]) -> Vec<&'a str> {
    [&["run"], arguments, &["--runtime", "nats", "--json"]].concat()
}

/// A run that was interrupted after some step, with its nodes' files on disk.
pub(crate) fn interrupted(bench: &Bench, command: &[&str], out: &str, at: u32) -> Ran {
    let mut launcher = start(bench, command);
    until(&format!("step {at}"), LONG, || {
        assert!(launcher.runs(), "{}\n{}", launcher.said(), logs(bench));
        step(bench, out) >= at
    });
    signal("INT", &[launcher.pid()]);
    let ran = launcher.end(SOON);
    assert_eq!((ran.code, ran.out.as_str()), (Some(130), ""), "{ran:?}\n{}", logs(bench));
    until("the nodes are gone", SOON, || processes(bench).is_empty());
    assert!(!bench.path(out).join("summary.json").exists(), "the run was over before it was interrupted");
    ran
}

/// The config files of the nodes of a run, servers first.
pub(crate) fn node_files(bench: &Bench, out: &str) -> Vec<(Kind, String)> {
    let mut files = Vec::new();
    for entry in fs::read_dir(bench.path(out).join("nodes")).unwrap().flatten() {
        let name = entry.file_name().into_string().unwrap();
        let kind = match name.split('-').next() {
            Some("server") => Kind::Server,
            Some("client") => Kind::Client,
            _ => continue,
        };
        if Path::new(&name).extension().is_some_and(|end| end == "toml") {
            files.push((kind, format!("{out}/nodes/{name}")));
        }
    }
    files.sort_by_key(|(kind, name)| (*kind == Kind::Client, name.clone()));
    files
}

/// Starts a node by itself.
pub(crate) fn node<'a>(bench: &'a Bench, (kind, file): &(Kind, String)) -> Started<'a> {
    let command = if *kind == Kind::Client { "client" } else { "server" };
    // Complete, so that it is found among the processes of the bench.
    let file = bench.path(file);
    start(bench, &[command, "--config", file.to_str().unwrap()])
}
