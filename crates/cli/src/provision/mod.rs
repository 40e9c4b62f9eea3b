//! `fedkin provision`: everything a run on many machines needs, ready to be copied to them.

mod broker;
mod certificates;
mod files;
mod units;

use crate::failure::Failure;
use crate::output::{self, Facts, count};
use crate::{args, input};
use broker::Address;
use certificates::{Authority, Role};
use fedkin::rooms::config::{Override, quoted};
use fedkin::rooms::deploy::{Deployment, Hosts, Roster};
use fedkin::rooms::run::{Plan, Registry};
use fedkin::rooms::runtime::nats::{
    ACCOUNT_API, Access, Permissions, Token, client_permissions, server_permissions,
};
use fedkin::rooms::runtime::seal::{Directory, Identity, SealError};
use fedkin::rooms::settings::Value;
use files::{Written, folder, write_key, write_once, write_text};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

/// Every node is a folder and a user of the broker.
const MOST_NODES: usize = 10_000;

/// In the folder of a node: its secret, and the public keys of all.
const SEAL_KEY: &str = "seal.key";
const DIRECTORY: &str = "directory.txt";

/// One node of the run.
#[derive(Debug, Clone)]
pub(crate) struct Node {
    /// Its name: the server's, or the host's of the roster.
    pub(crate) name: String,
    /// The name in subjects, certificates and folders.
    pub(crate) token: Token,
    /// What it runs.
    pub(crate) kind: Kind,
    permissions: Permissions,
}

/// What a node runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Kind {
    /// This server.
    Server(String),
    /// These clients.
    Client(Vec<String>),
}

impl Kind {
    /// The word in a node's config and on the command line.
    pub(crate) fn word(&self) -> &'static str {
        match self {
            Self::Server(_) => "server",
            Self::Client(_) => "client",
        }
    }
}

/// Writes the folder.
pub(crate) fn provision(registry: &Registry, args: &args::Provision) -> Result<(), Failure> {
    let address = Address::parse(&args.broker, &args.names)?;
    let parsed = input::parse(&args.file)?;
    let base = input::base(&args.file);
    let mut overrides = input::overrides(&args.set)?;
    let plan = Plan::of(registry, &parsed, &base, &overrides, &[])?;
    let hosts = args.hosts.map_or(Hosts::Each, |count| Hosts::Blocks(count as usize));
    let roster = match &args.roster {
        Some(file) => Roster::from_csv(&plan, file, &hosts)?,
        None => Roster::of(&plan, &plan.world(0)?, &hosts)?,
    };
    // Nodes that draw the world read the edges: they get a copy.
    let edges =
        plan.config.topology.text("edges").filter(|_| !plan.own_records()).map(|path| base.join(path));
    if edges.is_some() {
        overrides.push(Override { key: "topology.edges".into(), value: Value::Text("edges.csv".into()) });
    }
    let experiment = Plan::of(registry, &parsed, &base, &overrides, &[])?.config.resolved();
    let edges = edges.map(|path| read(&path)).transpose()?;
    let data = data_section(&plan, args.roster.is_some(), &base)?;
    let deployment = Deployment::new(plan, roster)?;
    let run = deployment.run_id();
    let nodes = nodes(&deployment, &run)?;

    let out = &args.out;
    folder(&out.join("ca"))?;
    let authority = Authority::open(&out.join("ca"), args.days, args.force)?;
    let broker_changed = write_broker(out, &address, &run, &nodes, &authority)?;
    let roster = deployment.roster.to_json();
    let known = nodes.first().map(|node| out.join("nodes").join(node.token.as_str()).join(DIRECTORY));
    let known = known.and_then(|path| std::fs::read_to_string(path).ok());
    let directory = authority.directory(&seal_keys(out, &nodes)?, known.as_deref())?;
    let (mut new, mut kept) = (0, 0);
    for node in &nodes {
        let place = out.join("nodes").join(node.token.as_str());
        folder(&place)?;
        match authority.issue(&place, "node", Role::Node, &[node.token.to_string()], false)? {
            Written::New => new += 1,
            Written::Updated | Written::Kept => kept += 1,
        }
        write_text(&place.join("experiment.toml"), &experiment)?;
        write_text(&place.join("roster.json"), &roster)?;
        write_text(&place.join(DIRECTORY), &directory)?;
        if let (Some(edges), Kind::Client(_)) = (&edges, &node.kind) {
            write_text(&place.join("edges.csv"), edges)?;
        }
        write_once(&place.join("node.toml"), &node_config(node, &address, &data), args.force)?;
    }
    folder(&out.join("systemd"))?;
    for (name, text) in units::systemd() {
        write_text(&out.join("systemd").join(name), &text)?;
    }
    write_text(&out.join("compose.yaml"), &units::compose(&address, &nodes, data.at_hand()))?;
    write_text(&out.join("README.md"), &units::page(&address, &run, &nodes, data.advice()))?;

    let servers = nodes.iter().filter(|node| matches!(node.kind, Kind::Server(_))).count();
    let mut facts = Facts::default();
    facts.add("run", &run);
    facts.add("broker", format!("{}, certificate for {}", address.url(), address.names.join(", ")));
    let hosts = nodes.len() - servers;
    facts.add("nodes", format!("{}, {}", count(servers, "server"), count(hosts, "client host")));
    facts.add("keys", format!("{new} new, {kept} kept"));
    if broker_changed == Written::Updated {
        facts.add("changed", "the broker's config: bring it there and restart the broker");
    }
    facts.list("left over", left_over(out, &nodes));
    facts.add("next", format!("{} says what goes where", out.join("README.md").display()));
    output::say(&facts.text())
}

/// A secret for every node that has none yet, and the public keys of all.
fn seal_keys(out: &Path, nodes: &[Node]) -> Result<Directory, Failure> {
    let mut directory = Directory::default();
    for node in nodes {
        let place = out.join("nodes").join(node.token.as_str());
        folder(&place)?;
        let path = place.join(SEAL_KEY);
        let usage = |error: SealError| Failure::Usage(error.to_string());
        let identity = if path.exists() {
            Identity::read(&path).map_err(usage)?
        } else {
            let drawn = Identity::draw().map_err(usage)?;
            write_key(&path, &drawn.to_text())?;
            drawn
        };
        directory.insert(node.token.clone(), identity.public());
    }
    Ok(directory)
}

/// All nodes with what they may say: servers first, then hosts in byte order.
fn nodes(deployment: &Deployment, run: &str) -> Result<Vec<Node>, Failure> {
    let (federation, names) = (&deployment.federation, &deployment.nodes);
    let tokens = |names: Vec<&str>| names.into_iter().map(Token::of).collect::<Vec<Token>>();
    let mut nodes = Vec::new();
    for (id, name) in (0u32..).zip(&names.servers) {
        let me = Token::of(name);
        let mut peers = tokens(names.hosts_of(federation, id));
        peers.extend(tokens(names.neighbours_of(federation, id)));
        nodes.push(Node {
            name: name.clone(),
            kind: Kind::Server(federation.server_names()[id as usize].clone()),
            permissions: server_permissions(run, &me, &peers),
            token: me,
        });
    }
    for (host, ids) in names.by_host() {
        let me = Token::of(host);
        let peers = tokens(names.servers_of(federation, &ids));
        nodes.push(Node {
            name: host.to_string(),
            kind: Kind::Client(ids.iter().map(|&id| federation.client_name(id).to_string()).collect()),
            permissions: client_permissions(run, &me, &peers),
            token: me,
        });
    }
    if nodes.len() > MOST_NODES {
        let text = format!(
            "{} nodes are too many: at most {MOST_NODES}; --hosts N puts many clients on one host",
            nodes.len()
        );
        return Err(Failure::Usage(text));
    }
    let mut seen: BTreeMap<String, &str> = BTreeMap::new();
    for node in &nodes {
        // Not every file system tells upper from lower case.
        if let Some(other) = seen.insert(node.token.as_str().to_lowercase(), &node.name) {
            let text =
                format!("the nodes {other:?} and {:?} would share a name: rename one of them", node.name);
            return Err(Failure::Usage(text));
        }
    }
    Ok(nodes)
}

/// What a client node's config says of its records.
enum Data {
    /// The experiment says it all.
    Drawn,
    /// The file that was at hand.
    AtHand(PathBuf),
    /// A file that only the host has.
    Own(&'static str),
}

impl Data {
    fn at_hand(&self) -> Option<&Path> {
        match self {
            Self::AtHand(path) => Some(path),
            Self::Drawn | Self::Own(_) => None,
        }
    }

    fn advice(&self) -> &'static str {
        match self {
            Self::Drawn => "The experiment draws or finds its data: nothing to bring.",
            Self::AtHand(_) => {
                "Client nodes read the file that was at hand here and take their own clients from it: fine for a \
                 trial on one machine. Elsewhere put `path` in `[data]` of `node.toml` to the machine's own records."
            }
            Self::Own(_) => {
                "On each client host, put its records where `path` in `[data]` of `node.toml` says, with the columns \
                 that `[data]` of `experiment.toml` names. They stay there."
            }
        }
    }
}

fn data_section(plan: &Plan, absent: bool, base: &Path) -> Result<Data, Failure> {
    let own = plan.own_records();
    match plan.about().path {
        _ if own && absent => Ok(Data::Own(if plan.config.data_source == "parquet" {
            "records.parquet"
        } else {
            "records.csv"
        })),
        Some(path) => {
            let whole = std::path::absolute(base.join(&path))
                .map_err(|error| Failure::Usage(format!("cannot find {}: {error}", path.display())))?;
            Ok(Data::AtHand(whole))
        }
        None => Ok(Data::Drawn),
    }
}

/// The config of one node.
fn node_config(node: &Node, address: &Address, data: &Data) -> String {
    let mut text = format!(
        "# Written by `fedkin provision`, which leaves it alone from now on. Paths are relative to this file.\n\
         version = 1\n\n[node]\nkind = \"{}\"\nname = {}\n",
        node.kind.word(),
        quoted(&node.name)
    );
    if let Kind::Server(name) = &node.kind {
        let _ = writeln!(text, "servers = [{}]", quoted(name));
    }
    let _ = write!(
        text,
        "experiment = \"experiment.toml\"\nroster = \"roster.json\"\nstate = \"state\"\n\n\
         [broker]\nurl = {}\nca = \"ca.pem\"\ncertificate = \"node.pem\"\nkey = \"node.key\"\n\
         api = \"{ACCOUNT_API}\"\n\n[seal]\nkey = \"{SEAL_KEY}\"\ndirectory = \"{DIRECTORY}\"\n",
        quoted(&address.url())
    );
    if matches!(node.kind, Kind::Client(_)) {
        match data {
            Data::Drawn => {}
            Data::AtHand(path) => {
                let _ = write!(text, "\n[data]\npath = {}\n", quoted(&path.to_string_lossy()));
            }
            Data::Own(name) => {
                let _ = write!(text, "\n[data]\npath = \"{name}\"   # the records of this host alone\n");
            }
        }
    }
    text.push_str("\n[observe]\n# listen = \"127.0.0.1:9464\"   # metrics and health\nlog = \"info\"\n");
    if matches!(node.kind, Kind::Client(_)) {
        text.push_str(
            "\n[privacy]\nnoise = \"os\"   # \"seeded\" only for simulations that must equal one process\n",
        );
    }
    text
}

/// The broker's folder; says what became of its config.
fn write_broker(
    out: &Path,
    address: &Address,
    run: &str,
    nodes: &[Node],
    authority: &Authority,
) -> Result<Written, Failure> {
    let place = out.join("broker");
    folder(&place)?;
    let before = std::fs::read_to_string(place.join("nats.conf")).unwrap_or_default();
    // A broker that is known by other names needs another certificate; its key stays.
    let renew = !before.lines().any(|line| line == address.signed_for());
    authority.issue(&place, "broker", Role::Broker, &address.names, renew)?;
    let access = |node: &Node| Access {
        node: node.token.clone(),
        login: format!("user: \"{}\"", node.token),
        permissions: node.permissions.clone(),
    };
    let users: Vec<Access> = nodes.iter().map(access).collect();
    write_text(&place.join("nats.conf"), &broker::config(address, run, &users))
}

/// Folders of nodes that are no longer part of the run.
fn left_over(out: &Path, nodes: &[Node]) -> Vec<String> {
    let Ok(entries) = std::fs::read_dir(out.join("nodes")) else { return Vec::new() };
    let mut names: Vec<String> =
        entries.flatten().filter_map(|entry| entry.file_name().into_string().ok()).collect();
    names.retain(|name| nodes.iter().all(|node| node.token.as_str() != name));
    names.sort_unstable();
    names
        .iter()
        .map(|name| format!("nodes/{name} is not in the run: its certificate opens nothing"))
        .collect()
}

fn read(path: &Path) -> Result<String, Failure> {
    std::fs::read_to_string(path)
        .map_err(|error| Failure::Usage(format!("cannot read {}: {error}", path.display())))
}
