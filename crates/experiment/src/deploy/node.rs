//! The config of one node: versioned TOML, checked once and in full.

use crate::config::{ConfigError, Source, read_sections, wrong};
use crate::error::Error;
use fedkin_core::params::{Kind, Param, Preset, Value, Values};
use fedkin_core::privacy::{Privacy, Sampler};
use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};

const fn param(name: &'static str, kind: Kind, preset: Preset, help: &'static str) -> Param {
    Param { name, kind, preset, help }
}

const NAMES: Kind = Kind::List(&Kind::Text);

/// `[node]`
const NODE: &[Param] = &[
    param("kind", Kind::Choice(&["server", "client"]), Preset::Required, "what the node runs"),
    param("name", Kind::Text, Preset::Required, "the node's name; of a client node the host's in the roster"),
    param("servers", NAMES, Preset::Absent, "server node: which servers of the roster it runs"),
    param("clients", NAMES, Preset::Absent, "client node: which clients it hosts; absent: all of this host"),
    param("experiment", Kind::Path, Preset::Text("experiment.toml"), "the experiment, relative to this file"),
    param("roster", Kind::Path, Preset::Text("roster.json"), "the roster, relative to this file"),
    param("state", Kind::Path, Preset::Text("state"), "folder of the durable state, relative to this file"),
];

/// `[broker]`
const BROKER: &[Param] = &[
    param("url", Kind::Text, Preset::Required, "where the broker listens, such as tls://broker.example:4222"),
    param("ca", Kind::Path, Preset::Absent, "certificate of the authority that signed the broker's"),
    param("certificate", Kind::Path, Preset::Absent, "this node's certificate"),
    param("key", Kind::Path, Preset::Absent, "this node's private key"),
    param(
        "api",
        Kind::Text,
        Preset::Text("$JS.API"),
        "prefix of the broker's interface; `fedkin provision` gives every node an account, where it is fedkin_api",
    ),
    param("allow_plain", Kind::Flag, Preset::Flag(false), "talk in plain text beyond this machine"),
];

/// `[data]`: where the records are and how the file is laid out. What decides a result is the experiment's.
const DATA: &[Param] = &[
    param("source", Kind::Choice(&["csv", "parquet"]), Preset::Absent, "format of this host's file"),
    param("path", Kind::Path, Preset::Absent, "this host's records, relative to this file"),
    param("client", Kind::Text, Preset::Absent, "column that names the client"),
    param("server", Kind::Text, Preset::Absent, "column that names the server"),
    param("cluster", Kind::Text, Preset::Absent, "column that names the cluster"),
    param("split", Kind::Text, Preset::Absent, "column that says train or test"),
];

/// `[observe]`
const OBSERVE: &[Param] = &[
    param(
        "listen",
        Kind::Text,
        Preset::Absent,
        "address of metrics and health, such as 127.0.0.1:9464; absent: off",
    ),
    param(
        "log",
        Kind::Choice(&["error", "warn", "info", "debug", "trace"]),
        Preset::Text("info"),
        "how much is written to the log",
    ),
];

/// `[privacy]`
const PRIVACY: &[Param] = &[param(
    "noise",
    Kind::Choice(&["os", "seeded"]),
    Preset::Text("os"),
    "where a client's secret comes from; seeded is for simulations that must equal one process",
)];

const TABLES: &[(&str, &[Param])] =
    &[("node", NODE), ("broker", BROKER), ("data", DATA), ("observe", OBSERVE), ("privacy", PRIVACY)];

/// One node. Paths are complete: those of the file were relative to it.
#[derive(Debug, Clone, PartialEq)]
pub struct NodeConfig {
    /// What it runs.
    pub kind: NodeKind,
    /// Its name; of a client node the host's name in the roster.
    pub name: String,
    /// The experiment's config.
    pub experiment: PathBuf,
    /// The roster.
    pub roster: PathBuf,
    /// The folder of its durable state.
    pub state: PathBuf,
    /// The broker.
    pub broker: Broker,
    /// What is different here of the experiment's `[data]`; its path is complete.
    pub data: BTreeMap<String, Value>,
    /// What can be seen from outside.
    pub observe: Observe,
    /// Where a client's secret comes from.
    pub noise: Noise,
}

/// What a node runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NodeKind {
    /// Servers of these names, as the method sees the federation.
    Server(Vec<String>),
    /// Clients of these names; `None`: all that the roster gives to this host.
    Client(Option<Vec<String>>),
}

/// How to reach the broker.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Broker {
    /// As it was written.
    pub url: String,
    /// Its host name or address.
    pub host: String,
    /// Its port; 4222 where the URL has none.
    pub port: u16,
    /// Certificates; without them the connection is in plain text.
    pub tls: Option<Tls>,
    /// Whether plain text beyond this machine was asked for.
    pub allow_plain: bool,
    /// Prefix of the broker's interface.
    pub api: String,
}

/// The files of a TLS connection that both sides prove themselves on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tls {
    /// The authority's certificate.
    pub ca: PathBuf,
    /// The node's certificate.
    pub certificate: PathBuf,
    /// The node's private key.
    pub key: PathBuf,
}

/// What can be seen of a node from outside.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Observe {
    /// Where metrics and health are served; `None`: nowhere.
    pub listen: Option<SocketAddr>,
    /// How much is logged: error, warn, info, debug or trace.
    pub log: String,
}

/// Where a client's secret comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Noise {
    /// The operating system: nobody can subtract the noise.
    Os,
    /// The seed: whoever knows it can. For runs that must equal one process.
    Seeded,
}

impl NodeConfig {
    /// Reads the file.
    pub fn load(file: &Path) -> Result<Self, Error> {
        let name = file.display().to_string();
        let text = std::fs::read_to_string(file).map_err(|error| Error::Deploy {
            place: name.clone(),
            message: format!("cannot read the config of the node: {error}"),
        })?;
        let base = file.parent().map_or_else(PathBuf::new, Path::to_path_buf);
        Ok(Self::parse(&Source { name, text }, &base)?)
    }

    /// Reads a text; relative paths start at `base`.
    pub fn parse(source: &Source, base: &Path) -> Result<Self, ConfigError> {
        let mut sections = read_sections(source, TABLES)?;
        let mut section = |name: &str| sections.remove(name).unwrap_or_default();
        let (node, broker, data) = (section("node"), section("broker"), section("data"));
        let (observe, privacy) = (section("observe"), section("privacy"));
        let fail = |path: &[&str], message: &str| Err(wrong(source, path, message.to_string()));
        let path = |values: &Values, key: &str| base.join(values.text(key).unwrap_or_default());

        let name = node.text("name").unwrap_or_default().to_string();
        if name.is_empty() {
            return fail(&["node", "name"], "a node needs a name: write the one `fedkin provision` gave it");
        }
        let kind = if node.text("kind") == Some("server") {
            if node.get("clients").is_some() {
                return fail(&["node", "clients"], "a server node hosts no clients: drop the key");
            }
            let servers = words(&node, "servers");
            if servers.is_empty() {
                return fail(
                    &["node", "servers"],
                    "this key is required for a server node: the servers it runs",
                );
            }
            if data.iter().next().is_some() {
                return fail(&["data"], "a server node has no records: drop the section");
            }
            NodeKind::Server(servers)
        } else {
            if node.get("servers").is_some() {
                return fail(&["node", "servers"], "a client node runs no servers: drop the key");
            }
            let clients = node.get("clients").map(|_| words(&node, "clients"));
            if clients.as_ref().is_some_and(Vec::is_empty) {
                return fail(&["node", "clients"], "no client is named: name some, or drop the key for all");
            }
            NodeKind::Client(clients)
        };
        let listen = match observe.text("listen").map(str::parse) {
            None => None,
            Some(Ok(address)) => Some(address),
            Some(Err(_)) => {
                let message = "expected an address and a port, such as 127.0.0.1:9464 or [::]:9464";
                return fail(&["observe", "listen"], message);
            }
        };
        let mut overrides: BTreeMap<String, Value> =
            data.iter().map(|(key, value)| (key.to_string(), value.clone())).collect();
        if let Some(Value::Text(text)) = overrides.get_mut("path") {
            *text = base.join(&*text).to_string_lossy().into_owned();
        }
        Ok(Self {
            kind,
            name,
            experiment: path(&node, "experiment"),
            roster: path(&node, "roster"),
            state: path(&node, "state"),
            broker: Broker::read(source, base, &broker)?,
            data: overrides,
            observe: Observe { listen, log: observe.text("log").unwrap_or("info").to_string() },
            noise: if privacy.text("noise") == Some("seeded") { Noise::Seeded } else { Noise::Os },
        })
    }
}

impl NodeConfig {
    /// Whether a client of this node may draw its noise as the experiment says. A secret of the operating
    /// system is for a promise that holds, and floating-point noise leaks through its gaps.
    pub(super) fn admits(&self, privacy: &Privacy) -> Result<(), Error> {
        if *privacy == Privacy::None {
            return Ok(());
        }
        let trouble = match privacy.sampler() {
            Sampler::Discrete => return Ok(()),
            Sampler::Float => "draws floating-point noise, whose gaps tell neighbouring data apart",
            Sampler::None => "adds no noise",
        };
        if self.noise == Noise::Seeded {
            return Ok(());
        }
        Err(Error::Deploy {
            place: self.experiment.display().to_string(),
            message: format!(
                "privacy.sampler = {:?} {trouble}: it is for simulations. Write sampler = \"discrete\" for clients \
                 that keep a secret, or `noise = \"seeded\"` in [privacy] of {} for a simulation that protects \
                 nobody",
                privacy.sampler().word(),
                self.name
            ),
        })
    }
}

impl Broker {
    fn read(source: &Source, base: &Path, values: &Values) -> Result<Self, ConfigError> {
        let fail = |key: &str, message: String| Err(wrong(source, &["broker", key], message));
        let url = values.text("url").unwrap_or_default().to_string();
        let (secure, host, port) = match split(&url) {
            Ok(parts) => parts,
            Err(message) => return fail("url", message),
        };
        let file = |key: &str| values.text(key).map(|path| base.join(path));
        let tls = match (file("ca"), file("certificate"), file("key")) {
            (Some(ca), Some(certificate), Some(key)) => Some(Tls { ca, certificate, key }),
            (None, None, None) => None,
            (ca, certificate, _) => {
                let missing = if ca.is_none() {
                    "ca"
                } else if certificate.is_none() {
                    "certificate"
                } else {
                    "key"
                };
                let message = "ca, certificate and key belong together: this one is missing";
                return fail(missing, message.into());
            }
        };
        if tls.is_none() && secure {
            return fail(
                "url",
                "tls:// needs `ca`, `certificate` and `key`, which `fedkin provision` writes".into(),
            );
        }
        if tls.is_none() && !is_here(&host) && !values.flag("allow_plain") {
            let message = format!(
                "{host} is not this machine, and without certificates anybody on the way reads and changes what is \
                 sent: give `ca`, `certificate` and `key`, or set `allow_plain = true`"
            );
            return fail("url", message);
        }
        let api = values.text("api").unwrap_or("$JS.API").to_string();
        Ok(Self { url, host, port, tls, allow_plain: values.flag("allow_plain"), api })
    }
}

/// Whether it is TLS, the host and the port of a broker's address.
fn split(url: &str) -> Result<(bool, String, u16), String> {
    let expected = "expected tls://HOST:PORT, or nats://HOST:PORT for plain text";
    let (scheme, rest) = url.split_once("://").ok_or_else(|| expected.to_string())?;
    let secure = match scheme {
        "tls" => true,
        "nats" => false,
        _ => return Err(format!("{scheme}:// is not known: {expected}")),
    };
    let rest = rest.trim_end_matches('/');
    // A name and password: for a broker on this machine, such as `fedkin run --runtime nats` starts.
    let (login, rest) = rest.rsplit_once('@').map_or((false, rest), |(_, rest)| (true, rest));
    let (host, port) = match rest.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((host, port)) => (host, port.strip_prefix(':')),
        None => rest.split_once(':').map_or((rest, None), |(host, port)| (host, Some(port))),
    };
    let port =
        port.map_or(Ok(4222), str::parse).map_err(|_| format!("the port is not a number: {expected}"))?;
    if host.is_empty() || host.contains(['/', ' ']) {
        return Err(expected.to_string());
    }
    if login && !is_here(host) {
        return Err(format!("a certificate says who a node is, not a password in the address: {expected}"));
    }
    Ok((secure, host.to_string(), port))
}

fn is_here(host: &str) -> bool {
    host == "localhost" || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

fn words(values: &Values, key: &str) -> Vec<String> {
    let text = |value: &Value| match value {
        Value::Text(text) => Some(text.clone()),
        _ => None,
    };
    values.list(key).iter().filter_map(text).collect()
}
