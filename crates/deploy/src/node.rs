//! The config of one node: versioned TOML, checked once and in full.

use fedkin_config::{ConfigError, Plain, Section, Source};
use fedkin_privacy::{Privacy, Sampler};
use fedkin_run::Error;
use fedkin_settings::{Kind, Param, Preset, Settings, Value, choice, settings};
use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};

const NAMES: Kind = Kind::List(&Kind::Text);

choice! {
    /// What a node runs.
    enum NodeWord { Server = "server", Client = "client" }
}

choice! {
    /// The format of a host's file.
    enum Format { Csv = "csv", Parquet = "parquet" }
}

choice! {
    /// How much is written to the log.
    pub enum LogLevel {
        /// What went wrong.
        Error = "error",
        /// And what may.
        Warn = "warn",
        /// And what happens.
        Info = "info",
        /// And how.
        Debug = "debug",
        /// And everything else.
        Trace = "trace",
    }
}

choice! {
    /// Where a client's secret comes from.
    pub enum Noise {
        /// The operating system: nobody can subtract the noise.
        Os = "os",
        /// The seed: whoever knows it can. For runs that must equal one process.
        Seeded = "seeded",
    }
}

settings! {
    /// `[node]`
    struct NodeSection {
        kind: NodeWord => Kind::Choice(NodeWord::WORDS), Preset::Required, "what the node runs";
        name: String => Kind::Text, Preset::Required, "the node's name; of a client node the host's in the roster";
        servers: Option<Vec<String>> => NAMES, Preset::Absent, "server node: which servers of the roster it runs";
        clients: Option<Vec<String>> => NAMES, Preset::Absent,
            "client node: which clients it hosts; absent: all of this host";
        experiment: PathBuf => Kind::Path, Preset::Text("experiment.toml"), "the experiment, relative to this file";
        roster: PathBuf => Kind::Path, Preset::Text("roster.json"), "the roster, relative to this file";
        state: PathBuf => Kind::Path, Preset::Text("state"), "folder of the durable state, relative to this file";
    }
}

settings! {
    /// `[broker]`
    struct BrokerSection {
        url: String => Kind::Text, Preset::Required, "where the broker listens, such as tls://broker.example:4222";
        ca: Option<PathBuf> => Kind::Path, Preset::Absent, "certificate of the authority that signed the broker's";
        certificate: Option<PathBuf> => Kind::Path, Preset::Absent, "this node's certificate";
        key: Option<PathBuf> => Kind::Path, Preset::Absent, "this node's private key";
        api: String => Kind::Text, Preset::Text("$JS.API"),
            "prefix of the broker's interface; `fedkin provision` gives every node an account, where it is fedkin_api";
        allow_plain: bool => Kind::Flag, Preset::Flag(false), "talk in plain text beyond this machine";
    }
}

settings! {
    /// `[seal]`
    struct SealSection {
        key: Option<PathBuf> => Kind::Path, Preset::Absent,
            "this node's secret, with which it seals and signs what it sends; `fedkin provision` writes seal.key";
        directory: Option<PathBuf> => Kind::Path, Preset::Absent,
            "the public keys of all nodes, signed by the authority of [broker] ca; `fedkin provision` writes directory.txt";
        allow_unsealed: bool => Kind::Flag, Preset::Flag(false),
            "with certificates but without seals: whoever runs the broker reads and can forge all messages";
    }
}

settings! {
    /// `[data]`: where the records are and how the file is laid out. What decides a result is the experiment's.
    struct DataSection {
        source: Option<Format> => Kind::Choice(Format::WORDS), Preset::Absent, "format of this host's file";
        path: Option<PathBuf> => Kind::Path, Preset::Absent, "this host's records, relative to this file";
        client: Option<String> => Kind::Text, Preset::Absent, "column that names the client";
        server: Option<String> => Kind::Text, Preset::Absent, "column that names the server";
        cluster: Option<String> => Kind::Text, Preset::Absent, "column that names the cluster";
        learner: Option<String> => Kind::Text, Preset::Absent, "column that names what the client fits";
        split: Option<String> => Kind::Text, Preset::Absent, "column that says train or test";
    }
}

settings! {
    /// `[observe]`
    struct ObserveSection {
        listen: Option<String> => Kind::Text, Preset::Absent,
            "address of metrics and health, such as 127.0.0.1:9464; absent: off";
        log: LogLevel => Kind::Choice(LogLevel::WORDS), Preset::Text("info"), "how much is written to the log";
    }
}

settings! {
    /// `[privacy]`
    struct PrivacySection {
        noise: Noise => Kind::Choice(Noise::WORDS), Preset::Text("os"),
            "where a client's secret comes from; seeded is for simulations that must equal one process";
    }
}

const TABLES: &[(&str, &[Param])] = &[
    ("node", NodeSection::PARAMS),
    ("broker", BrokerSection::PARAMS),
    ("seal", SealSection::PARAMS),
    ("data", DataSection::PARAMS),
    ("observe", ObserveSection::PARAMS),
    ("privacy", PrivacySection::PARAMS),
];

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
    pub broker: BrokerAddress,
    /// The keys with which messages are sealed; `None`: they are not.
    pub seal: Option<SealFiles>,
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
pub struct BrokerAddress {
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

/// The files of a node's seal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SealFiles {
    /// The node's secret.
    pub key: PathBuf,
    /// The public keys of all nodes.
    pub directory: PathBuf,
}

/// What can be seen of a node from outside.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Observe {
    /// Where metrics and health are served; `None`: nowhere.
    pub listen: Option<SocketAddr>,
    /// How much is logged.
    pub log: LogLevel,
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
        let mut plain = Plain::new(source, TABLES)?;
        let node: Option<Section<NodeSection>> = plain.section("node");
        let broker: Option<Section<BrokerSection>> = plain.section("broker");
        let seal: Option<Section<SealSection>> = plain.section("seal");
        let data: Option<Section<DataSection>> = plain.section("data");
        let observe: Option<Section<ObserveSection>> = plain.section("observe");
        let privacy: Option<Section<PrivacySection>> = plain.section("privacy");
        let (Some(node), Some(broker), Some(seal), Some(data), Some(observe), Some(privacy), true) =
            (node, broker, seal, data, observe, privacy, plain.fine())
        else {
            return Err(plain.faults());
        };
        let fail = |path: &[&str], message: &str| Err(plain.wrong(path, message.to_string()));
        if node.name.is_empty() {
            return fail(&["node", "name"], "a node needs a name: write the one `fedkin provision` gave it");
        }
        let kind = match node.kind {
            NodeWord::Server => {
                if node.clients.is_some() {
                    return fail(&["node", "clients"], "a server node hosts no clients: drop the key");
                }
                let servers = node.servers.clone().unwrap_or_default();
                if servers.is_empty() {
                    return fail(
                        &["node", "servers"],
                        "this key is required for a server node: the servers it runs",
                    );
                }
                if *data != DataSection::default() {
                    return fail(&["data"], "a server node has no records: drop the section");
                }
                NodeKind::Server(servers)
            }
            NodeWord::Client => {
                if node.servers.is_some() {
                    return fail(&["node", "servers"], "a client node runs no servers: drop the key");
                }
                if node.clients.as_ref().is_some_and(Vec::is_empty) {
                    return fail(
                        &["node", "clients"],
                        "no client is named: name some, or drop the key for all",
                    );
                }
                NodeKind::Client(node.clients.clone())
            }
        };
        let listen = match observe.listen.as_deref().map(str::parse) {
            None => None,
            Some(Ok(address)) => Some(address),
            Some(Err(_)) => {
                let message = "expected an address and a port, such as 127.0.0.1:9464 or [::]:9464";
                return fail(&["observe", "listen"], message);
            }
        };
        let broker = BrokerAddress::read(&plain, base, &broker)?;
        let seal = match (&seal.key, &seal.directory) {
            (Some(key), Some(directory)) => {
                Some(SealFiles { key: base.join(key), directory: base.join(directory) })
            }
            (None, None) if broker.tls.is_some() && !seal.allow_unsealed => {
                return fail(
                    &["seal", "key"],
                    "a node with certificates seals its messages: give `key` and `directory`, which `fedkin provision` \
                     writes, or set `allow_unsealed = true`",
                );
            }
            (None, None) => None,
            (Some(_), None) => {
                return fail(
                    &["seal", "directory"],
                    "key and directory belong together: this one is missing",
                );
            }
            (None, Some(_)) => {
                return fail(&["seal", "key"], "key and directory belong together: this one is missing");
            }
        };
        let path = data.path.as_ref().map(|path| base.join(path));
        Ok(Self {
            kind,
            name: node.name.clone(),
            experiment: base.join(&node.experiment),
            roster: base.join(&node.roster),
            state: base.join(&node.state),
            broker,
            seal,
            data: DataSection { path, ..DataSection::clone(&data) }.values(),
            observe: Observe { listen, log: observe.log },
            noise: privacy.noise,
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

impl BrokerAddress {
    fn read(plain: &Plain, base: &Path, keys: &BrokerSection) -> Result<Self, ConfigError> {
        let fail = |key: &str, message: String| Err(plain.wrong(&["broker", key], message));
        let (secure, host, port) = match split(&keys.url) {
            Ok(parts) => parts,
            Err(message) => return fail("url", message),
        };
        let file = |path: &Option<PathBuf>| path.as_ref().map(|path| base.join(path));
        let tls = match (file(&keys.ca), file(&keys.certificate), file(&keys.key)) {
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
        if tls.is_none() && !is_here(&host) && !keys.allow_plain {
            let message = format!(
                "{host} is not this machine, and without certificates anybody on the way reads and changes what is \
                 sent: give `ca`, `certificate` and `key`, or set `allow_plain = true`"
            );
            return fail("url", message);
        }
        let (url, api) = (keys.url.clone(), keys.api.clone());
        Ok(Self { url, host, port, tls, allow_plain: keys.allow_plain, api })
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
