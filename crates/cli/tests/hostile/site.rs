//! A run on this machine that the test starts node by node.

use fedkin_config::Source;
use fedkin_deploy::{Deployment, Hosts, NodeConfig, NodeKind, Roster};
use fedkin_run::artifacts::models::{Models, models_sha256};
use fedkin_run::{Plan, Registry};
use fedkin_runtime::nats::{Broker, BrokerError, Token};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs::{self, OpenOptions};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// However busy the machine is, nothing stands still for longer.
pub(crate) const PATIENCE: Duration = Duration::from_secs(45);
/// A process that goes on saying something may take this long: a slow disk takes its time for every round.
pub(crate) const LONG: Duration = Duration::from_secs(600);
const FEDKIN: &str = env!("CARGO_BIN_EXE_fedkin");

/// Two servers with six clients each, noise on every upload.
pub(crate) const SMALL: &str = r#"
version = 1
[run]
name = "hostile"
seed = 5
rounds = 8
[data]
source = "synthetic.clustered-regression"
clients_per_server = 6
clusters = 2
dimension = 4
[topology]
graph = { kind = "complete", servers = 2 }
[model]
kind = "ridge"
[algorithm]
name = "pgfl"
[privacy]
mechanism = "zcdp"
initial_budget = 1e-3
growth = 1.0
bound = "assumed"
gradient_bound = 1.0
[network]
resend = 0.2
"#;

/// Whether a broker can be started; says that the test does not run where none can.
pub(crate) fn has_broker() -> bool {
    match fedkin_runtime::nats::find_broker() {
        Ok(_) => true,
        Err(BrokerError::NotFound) => {
            crate::skipped::skipped("no nats-server; ./scripts/setup installs it, or set FEDKIN_NATS_SERVER");
            false
        }
        Err(error) => panic!("{error}"),
    }
}

/// An experiment as a plan.
pub(crate) fn plan(text: &str) -> Plan {
    let source = Source { name: "experiment.toml".into(), text: text.into() };
    Plan::load(&Registry::native(), &source, Path::new(""), &[], &[]).unwrap()
}

/// A deployment with its files and its broker.
pub(crate) struct Site {
    pub(crate) deployment: Deployment,
    _broker: Broker,
    nodes: BTreeMap<String, (PathBuf, NodeConfig)>,
    folder: TempDir,
}

impl Site {
    /// So many hosts with clients in blocks; nothing is started but the broker. `None`: there is none.
    pub(crate) fn new(experiment: &str, hosts: usize) -> Option<Self> {
        Self::with(experiment, |names| Hosts::Blocks(hosts).assign(names), &BTreeMap::new())
    }

    /// With a host for each client, and state directories elsewhere.
    pub(crate) fn with(
        experiment: &str,
        hosts: impl Fn(&[String]) -> Vec<String>,
        states: &BTreeMap<String, PathBuf>,
    ) -> Option<Self> {
        if !has_broker() {
            return None;
        }
        let folder = tempfile::tempdir().unwrap();
        let broker = Broker::start(folder.path().join("broker")).unwrap();
        let plan = plan(experiment);
        let world = plan.world(0).unwrap();
        let mut roster = Roster::of(&plan, &world, &Hosts::Blocks(1)).unwrap();
        let assigned = hosts(world.federation.client_names());
        for (client, host) in roster.clients.iter_mut().zip(assigned) {
            client.host = host;
        }
        fs::write(folder.path().join("experiment.toml"), plan.config.resolved()).unwrap();
        fs::write(folder.path().join("roster.json"), roster.to_json()).unwrap();
        let deployment = Deployment::new(plan, roster).unwrap();
        let mut nodes = BTreeMap::new();
        let mut node = |kind: &str, name: &str, servers: String| {
            let state =
                states.get(name).cloned().unwrap_or_else(|| folder.path().join(format!("state-{name}")));
            let text = format!(
                "version = 1\n[node]\nkind = \"{kind}\"\nname = \"{name}\"\n{servers}state = \"{}\"\n\
                 [broker]\nurl = \"{}\"\n[observe]\nlisten = \"127.0.0.1:0\"\n[privacy]\nnoise = \"seeded\"\n",
                state.display(),
                broker.url()
            );
            let file = folder.path().join(format!("{name}.toml"));
            fs::write(&file, text).unwrap();
            let config = NodeConfig::load(&file).unwrap();
            nodes.insert(name.to_string(), (file, config));
        };
        for (id, name) in deployment.nodes.servers.iter().enumerate() {
            let server = &deployment.federation.server_names()[id];
            node("server", name, format!("servers = [\"{server}\"]\n"));
        }
        for (host, _) in deployment.nodes.by_host() {
            node("client", host, String::new());
        }
        Some(Self { deployment, _broker: broker, nodes, folder })
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn config(&self, node: &str) -> &NodeConfig {
        &self.nodes[node].1
    }

    /// Starts these nodes of one kind in one process; its log is named after the first.
    pub(crate) fn start(&self, nodes: &[&str]) -> Proc {
        let files: Vec<&Path> = nodes.iter().map(|node| self.nodes[*node].0.as_path()).collect();
        let is_client = matches!(self.nodes[nodes[0]].1.kind, NodeKind::Client(_));
        let kind = if is_client { "client" } else { "server" };
        Proc::start(kind, &files, &self.path(&format!("{}.jsonl", nodes[0])))
    }

    /// The own models of the clients of these hosts, by id, as the nodes left them.
    pub(crate) fn models(&self, hosts: &[&str]) -> BTreeMap<u32, Vec<f64>> {
        self.models_named(self.deployment.plan.row.personal[0], hosts)
    }

    /// The same of another of a client's models.
    pub(crate) fn models_named(&self, name: &str, hosts: &[&str]) -> BTreeMap<u32, Vec<f64>> {
        let states: Vec<&Path> = hosts.iter().map(|host| self.config(host).state.as_path()).collect();
        left_models(&self.deployment, name, &states)
    }

    /// The models of the same experiment in one process.
    pub(crate) fn alone(&self) -> String {
        alone(&self.path("experiment.toml"), &self.path("alone"))
    }

    /// A name for people, as in logs and metrics.
    pub(crate) fn client(&self, id: u32) -> &str {
        self.deployment.federation.client_name(id)
    }

    /// The ids of a host's clients.
    pub(crate) fn clients_of(&self, host: &str) -> Vec<u32> {
        let hosts = self.deployment.nodes.by_host();
        hosts.into_iter().find(|(name, _)| *name == host).unwrap().1
    }
}

/// The models of this name that nodes left in their state directories, by client.
pub(crate) fn left_models(deployment: &Deployment, name: &str, states: &[&Path]) -> BTreeMap<u32, Vec<f64>> {
    let mut all = BTreeMap::new();
    for state in states {
        assert!(deployment.left(state).unwrap().is_some(), "{} has no outcome", state.display());
        let folder = state.join("results").join(deployment.run_id()).join(name);
        let models = Models::clients(&folder).unwrap();
        for name in models.names() {
            all.insert(deployment.federation.find_client(name).unwrap(), models.read(name).unwrap());
        }
    }
    all
}

/// The digest of all models.
pub(crate) fn sha(models: &BTreeMap<u32, Vec<f64>>, clients: usize) -> String {
    assert_eq!(models.len(), clients);
    models_sha256(models.values().map(Vec::as_slice))
}

/// The models of an experiment in one process.
pub(crate) fn alone(experiment: &Path, out: &Path) -> String {
    let mut command = Command::new(FEDKIN);
    command.arg("run").arg(experiment).arg("--json").arg("--out").arg(out);
    let output = command.stdin(Stdio::null()).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let told: Value = serde_json::from_slice(&output.stdout).unwrap();
    told["models_sha256"].as_str().unwrap().to_string()
}

/// The program with these arguments, to its end; one that does not end is ended.
pub(crate) fn fedkin(arguments: &[&str], folder: &Path) -> (Option<i32>, String) {
    let log = folder.join(format!("said-{}.txt", arguments[0]));
    let mut process = Proc::spawn(Command::new(FEDKIN).args(arguments).current_dir(folder), &log);
    let status = process.ended(PATIENCE);
    (status.code(), process.log())
}

/// A process of the run; ends with the test.
pub(crate) struct Proc {
    child: Child,
    log: PathBuf,
}

impl Drop for Proc {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Proc {
    pub(crate) fn start(kind: &str, configs: &[&Path], log: &Path) -> Self {
        let mut command = Command::new(FEDKIN);
        command.arg(kind);
        for config in configs {
            command.arg("--config").arg(config);
        }
        Self::spawn(&mut command, log)
    }

    pub(crate) fn spawn(command: &mut Command, log: &Path) -> Self {
        let file = OpenOptions::new().create(true).append(true).open(log).unwrap();
        command.stdin(Stdio::null()).stdout(file.try_clone().unwrap()).stderr(file);
        command.env_remove("FEDKIN_LOG");
        Self { child: command.spawn().unwrap(), log: log.to_path_buf() }
    }

    /// What it wrote, earlier lives included.
    pub(crate) fn log(&self) -> String {
        fs::read_to_string(&self.log).unwrap()
    }

    /// The lines of the log in which every one of these fields has this text in it.
    pub(crate) fn said(&self, fields: &[(&str, &str)]) -> Vec<Value> {
        let log = self.log();
        let lines = log.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        let has = |line: &Value, key: &str, text: &str| match &line[key] {
            Value::Null => false,
            Value::String(value) => value.contains(text),
            other => format!("{other}") == text,
        };
        lines.filter(|line| fields.iter().all(|(key, text)| has(line, key, text))).collect()
    }

    /// The log must have such a line.
    pub(crate) fn must_have_said(&self, fields: &[(&str, &str)]) {
        assert!(!self.said(fields).is_empty(), "no line with {fields:?} in\n{}", self.log());
    }

    pub(crate) fn await_line(&self, fields: &[(&str, &str)]) {
        eventually(&format!("a line with {fields:?}"), || !self.said(fields).is_empty(), || self.log());
    }

    pub(crate) fn is_running(&mut self) -> bool {
        self.child.try_wait().unwrap().is_none()
    }

    /// Waits for its end, as long as its log grows.
    pub(crate) fn ended(&mut self, patience: Duration) -> ExitStatus {
        let begin = Instant::now();
        let (mut length, mut grown) = (0, begin);
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status;
            }
            let now = fs::metadata(&self.log).map_or(0, |log| log.len());
            if now > length {
                (length, grown) = (now, Instant::now());
            }
            if grown.elapsed() > patience || begin.elapsed() > LONG {
                let _ = self.child.kill();
                let log = self.log();
                let lines: Vec<&str> = log.lines().collect();
                let last = lines[lines.len().saturating_sub(40)..].join("\n");
                panic!("still running after {:?}: {}\n{last}", begin.elapsed(), self.log.display());
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Its work must be done.
    pub(crate) fn must_end_well(&mut self) {
        let status = self.ended(PATIENCE);
        assert!(status.success(), "{status}: {}\n{}", self.log.display(), self.log());
    }

    /// Stops it where it is, or lets it go on.
    pub(crate) fn pause(&self, pause: bool) {
        let signal = if pause { "-STOP" } else { "-CONT" };
        let _ = Command::new("kill").arg(signal).arg(self.child.id().to_string()).status();
    }

    /// `kill -9`.
    pub(crate) fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// The memory it has now, in bytes; from now on the peak is counted anew.
    pub(crate) fn peak_from_now(&self) -> u64 {
        fs::write(format!("/proc/{}/clear_refs", self.child.id()), "5").unwrap();
        self.peak()
    }

    /// The most memory it ever had, in bytes.
    pub(crate) fn peak(&self) -> u64 {
        let text = fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = text.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
        line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() * 1024
    }

    /// The most address space it ever had, in bytes.
    pub(crate) fn most_reserved(&self) -> u64 {
        let text = fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = text.lines().find(|line| line.starts_with("VmPeak:")).unwrap();
        line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() * 1024
    }

    /// A page of its web server: status and text.
    pub(crate) fn page(&self, path: &str) -> (u16, String) {
        self.await_line(&[("message", "metrics and health")]);
        let lines = self.said(&[("message", "metrics and health")]);
        let address = lines.last().unwrap()["address"].as_str().unwrap().to_string();
        let mut stream = TcpStream::connect(&address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        write!(stream, "GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n").unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        let status = text.split_whitespace().nth(1).unwrap().parse().unwrap();
        (status, text.split_once("\r\n\r\n").unwrap().1.to_string())
    }

    /// The sum of a counter over all label sets that have these texts in them.
    pub(crate) fn counter(&self, name: &str, labels: &[&str]) -> u64 {
        let (_, page) = self.page("/metrics");
        let begin = format!("fedkin_{name}_total");
        let lines = page.lines().filter(|line| {
            line.strip_prefix(&begin).is_some_and(|rest| rest.starts_with(['{', ' ']))
                && labels.iter().all(|label| line.contains(label))
        });
        lines.map(|line| line.rsplit(' ').next().unwrap().parse::<u64>().unwrap()).sum()
    }
}

/// Waits until something is so.
pub(crate) fn eventually(what: &str, mut is_so: impl FnMut() -> bool, context: impl Fn() -> String) {
    let begin = Instant::now();
    while !is_so() {
        assert!(begin.elapsed() < LONG, "not within {LONG:?}: {what}\n{}", context());
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// The token of a node, as its subjects have it.
pub(crate) fn token(node: &str) -> Token {
    Token::of(node)
}
