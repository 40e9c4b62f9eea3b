//! Runs of `fedkin run --runtime nats` that are watched from outside: how fast, how much memory, how much disk.
//! Shared by the bench `network` and the test `load`.
#![allow(dead_code, clippy::unwrap_used, clippy::expect_used, missing_docs, unreachable_pub)]

use fedkin_runtime::nats::probe;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// What one ask, or one upload, of 60 numbers weighs with its way and step.
pub const PAYLOAD: usize = 500;
const MB: f64 = 1024.0 * 1024.0;

/// A synthetic world and how long it is trained.
#[derive(Debug, Clone, Copy)]
pub struct World {
    pub servers: usize,
    pub clients_per_server: usize,
    pub client_processes: usize,
    pub clusters: usize,
    pub dimension: usize,
    pub samples: &'static str,
    pub rounds: u32,
    /// zCDP noise, and so a ledger.
    pub private: bool,
}

impl World {
    pub fn clients(&self) -> usize {
        self.servers * self.clients_per_server
    }

    fn config(&self) -> String {
        let privacy = "[privacy]\nmechanism = \"zcdp\"\nbound = \"assumed\"\ngradient_bound = 1.0\n";
        format!(
            "version = 1\n[run]\nname = \"load\"\nseed = 1\nrounds = {}\ncheckpoint_seconds = 0\n\
             [data]\nsource = \"synthetic.clustered-regression\"\nclients_per_server = {}\nclusters = {}\n\
             dimension = {}\nsamples = {}\n\
             [topology]\ngraph = {{ kind = \"ring\", servers = {} }}\n\
             [model]\nkind = \"ridge\"\n[algorithm]\nname = \"pgfl\"\ninter_cluster = 0.4\n\
             [evaluate]\nevery = {}\n{}",
            self.rounds,
            self.clients_per_server,
            self.clusters,
            self.dimension,
            self.samples,
            self.servers,
            self.rounds,
            if self.private { privacy } else { "" }
        )
    }
}

/// A run in processes of its own. Dropped early, it is stopped.
#[derive(Debug)]
pub struct Running {
    launcher: Child,
    out: PathBuf,
    world: World,
}

impl Running {
    /// Starts a run on a broker; everything it writes is in `dir`.
    pub fn start(world: World, url: &str, dir: &Path) -> Self {
        let out = dir.join("out");
        fs::write(dir.join("load.toml"), world.config()).unwrap();
        let launcher = Command::new(env!("CARGO_BIN_EXE_fedkin"))
            .args(["run", "load.toml", "--runtime", "nats", "--out", "out", "--url", url, "--processes"])
            .arg((world.servers + world.client_processes).to_string())
            .current_dir(dir)
            // A line with a time for every closed step.
            .env("FEDKIN_LOG", "info,fedkin_runtime::node::telemetry=debug")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(fs::File::create(dir.join("launcher.log")).unwrap())
            .spawn()
            .unwrap();
        Self { launcher, out, world }
    }

    /// Whether it goes on; panics if it failed.
    pub fn runs(&mut self) -> bool {
        match self.launcher.try_wait().unwrap() {
            None => true,
            Some(status) => {
                let log = self.out.with_file_name("launcher.log");
                assert!(status.success(), "{status}: {}", fs::read_to_string(log).unwrap_or_default());
                false
            }
        }
    }

    /// Waits for the end.
    pub fn wait(&mut self) {
        while self.runs() {
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// The processes of the nodes: `server` or `client` with a number, and the process id.
    pub fn nodes(&self) -> Vec<(String, u32)> {
        let mut nodes = Vec::new();
        for entry in fs::read_dir("/proc").unwrap().flatten() {
            let Ok(pid) = entry.file_name().to_string_lossy().parse::<u32>() else { continue };
            if parent(pid) == Some(self.launcher.id())
                && let Ok(line) = fs::read(format!("/proc/{pid}/cmdline"))
                && let Some(kind) = line.split(|byte| *byte == 0).nth(1)
            {
                nodes.push((String::from_utf8_lossy(kind).into_owned(), pid));
            }
        }
        nodes.sort();
        nodes.into_iter().enumerate().map(|(i, (kind, pid))| (format!("{kind} {i}"), pid)).collect()
    }

    /// The largest journal and the largest ledger of any node, in MB.
    pub fn files(&self) -> (f64, f64) {
        let mut largest = (0.0_f64, 0.0_f64);
        let mut folders = vec![self.out.join("nodes")];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
                let (Ok(kind), Ok(meta)) = (entry.file_type(), entry.metadata()) else { continue };
                let size = meta.len() as f64 / MB;
                match entry.file_name().to_str() {
                    _ if kind.is_dir() => folders.push(entry.path()),
                    Some("journal") => largest.0 = largest.0.max(size),
                    Some("ledger.log") => largest.1 = largest.1.max(size),
                    _ => {}
                }
            }
        }
        largest
    }

    /// When each step was closed, by server, in seconds of the day.
    fn closed(&self) -> Vec<BTreeMap<u32, f64>> {
        (0..self.world.servers)
            .map(|server| {
                let log = self.out.join(format!("nodes/logs/servers-{server}.jsonl"));
                let log = fs::read_to_string(log).unwrap_or_default();
                log.lines().filter_map(closed_step).collect()
            })
            .collect()
    }

    /// The last step that all servers have closed.
    pub fn step(&self) -> u32 {
        let last = self.closed().iter().map(|steps| steps.keys().last().copied().unwrap_or(0)).min();
        last.unwrap_or(0)
    }

    /// Rounds of all clients per second, from when all servers had closed step `from` until the last closed the last.
    pub fn client_rounds_per_second(&self, from: u32) -> f64 {
        let closed = self.closed();
        let at = |step: u32| closed.iter().map(|steps| steps[&step]).fold(f64::MIN, f64::max);
        let seconds = (at(self.world.rounds) - at(from)).rem_euclid(86_400.0);
        f64::from(self.world.rounds - from) * self.world.clients() as f64 / seconds
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Ok(None) = self.launcher.try_wait() {
            // It stops its nodes.
            let _ = Command::new("kill").arg("-TERM").arg(self.launcher.id().to_string()).status();
            let _ = self.launcher.wait();
        }
    }
}

fn parent(pid: u32) -> Option<u32> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name stands in parentheses and may contain anything.
    stat.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse().ok()
}

fn closed_step(line: &str) -> Option<(u32, f64)> {
    let line: serde_json::Value = serde_json::from_str(line).ok()?;
    if line.get("message")?.as_str()? != "step closed" {
        return None;
    }
    let (_, time) = line.get("timestamp")?.as_str()?.trim_end_matches('Z').split_once('T')?;
    let mut parts = time.split(':').map(str::parse::<f64>);
    let (hours, minutes, seconds) = (parts.next()?.ok()?, parts.next()?.ok()?, parts.next()?.ok()?);
    Some((line.get("step")?.as_u64()? as u32, hours * 3600.0 + minutes * 60.0 + seconds))
}

/// Memory of a process in MB: now, and the most so far.
pub fn memory(pid: u32) -> Option<(f64, f64)> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let field = |name: &str| -> Option<f64> {
        let line = status.lines().find(|line| line.starts_with(name))?;
        Some(line.split_whitespace().nth(1)?.parse::<f64>().ok()? / 1024.0)
    };
    Some((field("VmRSS:")?, field("VmHWM:")?))
}

/// Bare request and reply of the same payload, per second: the best of 16 and 64 at a time.
pub fn bare(runtime: &tokio::runtime::Runtime, url: &str, count: usize) -> f64 {
    [16, 64]
        .map(|concurrency| {
            let asked = probe::request_reply(url, vec![7_u8; PAYLOAD].into(), count, concurrency);
            runtime.block_on(asked).unwrap()
        })
        .into_iter()
        .fold(0.0, f64::max)
}

/// Messages that the broker stores.
pub async fn stored(url: &str) -> u64 {
    use futures_util::TryStreamExt;
    let client = connect(url).await;
    let Ok(client) = client else { return 0 };
    let context = async_nats::jetstream::new(client);
    let mut streams = context.streams();
    let mut messages = 0;
    while let Ok(Some(stream)) = streams.try_next().await {
        messages += stream.state.messages;
    }
    messages
}

/// The library does not look for a user and a password in the address.
async fn connect(url: &str) -> Result<async_nats::Client, async_nats::ConnectError> {
    let address: async_nats::ServerAddr = url.parse().unwrap();
    let options = async_nats::ConnectOptions::new();
    match (address.username(), address.password()) {
        (Some(user), Some(password)) => options.user_and_password(user.into(), password.into()),
        _ => options,
    }
    .connect(address.clone())
    .await
}

/// What was seen of a run at one moment.
#[derive(Debug, Clone)]
pub struct Sample {
    pub step: u32,
    /// MB by process.
    pub memory: BTreeMap<String, f64>,
    /// MB of the largest journal.
    pub journal: f64,
    /// MB of the largest ledger.
    pub ledger: f64,
    /// Messages at the broker.
    pub stored: u64,
}

/// Samples until the run is over, and the most memory of every process.
pub fn observe(
    running: &mut Running,
    runtime: &tokio::runtime::Runtime,
    url: &str,
    every: Duration,
) -> (Vec<Sample>, BTreeMap<String, f64>) {
    let mut samples = Vec::new();
    let mut peaks = BTreeMap::new();
    while running.runs() {
        let begin = Instant::now();
        let seen: Vec<_> =
            running.nodes().into_iter().filter_map(|(name, pid)| Some((name, memory(pid)?))).collect();
        for (name, (_, peak)) in &seen {
            let most = peaks.entry(name.clone()).or_insert(0.0_f64);
            *most = most.max(*peak);
        }
        let (journal, ledger) = running.files();
        let memory = seen.into_iter().map(|(name, (now, _))| (name, now)).collect();
        let stored = runtime.block_on(stored(url));
        samples.push(Sample { step: running.step(), memory, journal, ledger, stored });
        std::thread::sleep(every.saturating_sub(begin.elapsed()));
    }
    (samples, peaks)
}

/// The largest value over the middle third of the rounds, and over the last.
pub fn thirds(samples: &[Sample], rounds: u32, value: impl Fn(&Sample) -> Option<f64>) -> (f64, f64) {
    let most = |from: u32, to: u32| {
        let within = samples.iter().filter(|sample| sample.step >= from && sample.step < to);
        within.filter_map(&value).fold(0.0, f64::max)
    };
    (most(rounds / 3, rounds / 3 * 2), most(rounds / 3 * 2, rounds))
}
