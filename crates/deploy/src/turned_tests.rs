//! Neighbours and servers that turn nodes away, rightly or not: each costs itself and nobody else.

use super::*;
use fedkin_config::Source;
use fedkin_method::round::{Envelope, Message, Peer, seal};
use fedkin_run::{Plan, Registry};
use fedkin_runtime::store::{Secret, Vault};
use fedkin_runtime::transport::{Memory, Network, Token, Transport};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;

const EXPERIMENT: &str = r#"
version = 1
[run]
name = "turned"
seed = 3
rounds = 4
[data]
source = "synthetic.clustered-regression"
clients_per_server = 2
clusters = 1
dimension = 3
[topology]
graph = { kind = "random", servers = SERVERS, mean_degree = DEGREE }
[model]
kind = "ridge"
[algorithm]
name = "pgfl"
[network]
resend = 0.1
mode = "deadline"
deadline = 0.5
quorum = 0.5
"#;

const WHY: &[u8] = b"protocol version: 1 there, 2 here";

fn deployment(servers: u32, hosts: usize) -> Arc<Deployment> {
    let text = EXPERIMENT.replace("SERVERS", &servers.to_string());
    let text = text.replace("DEGREE", &(servers - 1).to_string());
    let source = Source { name: "turned.toml".into(), text };
    let plan = Plan::load(&Registry::native(), &source, Path::new(""), &[], &[]).unwrap();
    let roster = Roster::of(&plan, &plan.world(0).unwrap(), &Hosts::Blocks(hosts)).unwrap();
    Arc::new(Deployment::new(plan, roster).unwrap())
}

/// What a server of the test says to others.
fn turn_away(deployment: &Deployment, network: &Memory, server: usize, all: &[Peer]) {
    let mut end = network.join(&Token::of(&deployment.nodes.servers[server])).unwrap();
    for (i, &to) in all.iter().enumerate() {
        let node = match to {
            Peer::Server(id) => &deployment.nodes.servers[id as usize],
            Peer::Client(id) => &deployment.nodes.hosts[id as usize],
        };
        let message = Message::Turned(WHY.into(), 0);
        let envelope = Envelope { from: Peer::Server(server as u32), to, step: 0, message };
        end.send(&Token::of(node), &format!("turn-{i}"), seal(&deployment.fingerprint, &[envelope])).unwrap();
    }
}

async fn take_part(
    deployment: Arc<Deployment>,
    network: Memory,
    node: NodeConfig,
) -> Result<Option<fedkin_run::Error>, fedkin_run::Error> {
    let (_stop, stopped) = watch::channel(false);
    let connect = async { network.join(&Token::of(&node.name)) };
    let work = deployment.take_part(&node, connect, stopped);
    tokio::time::timeout(Duration::from_secs(60), work).await.expect("the node does not end")
}

fn server(deployment: &Deployment, id: usize, folder: &Path) -> NodeConfig {
    let kind = NodeKind::Server(vec![deployment.federation.server_names()[id].clone()]);
    let name = &deployment.nodes.servers[id];
    NodeConfig::here(kind, name, folder.join(format!("server-{id}")))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_neighbour_that_turns_servers_away_costs_itself_where_rounds_have_deadlines() {
    let (deployment, network) = (deployment(3, 3), Memory::default());
    let folder = tempfile::tempdir().unwrap();
    // It waits in their mailboxes, as it does for a server that is started again.
    turn_away(&deployment, &network, 2, &[Peer::Server(0), Peer::Server(1)]);
    let mut nodes: Vec<NodeConfig> = (0..2).map(|id| server(&deployment, id, folder.path())).collect();
    let hosts: Vec<String> = deployment.nodes.by_host().iter().map(|(host, _)| (*host).to_string()).collect();
    let there = hosts[..2].iter();
    nodes.extend(there.map(|host| NodeConfig::here(NodeKind::Client(None), host, folder.path().join(host))));
    let work =
        nodes.into_iter().map(|node| tokio::spawn(take_part(deployment.clone(), network.clone(), node)));
    for ended in work.collect::<Vec<_>>() {
        assert!(ended.await.unwrap().unwrap().is_none());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_turns_its_clients_away_does_not_stop_those_of_another() {
    let (deployment, network) = (deployment(2, 1), Memory::default());
    let folder = tempfile::tempdir().unwrap();
    let its: Vec<Peer> = deployment.federation.clients_of(1).iter().map(|id| Peer::Client(*id)).collect();
    turn_away(&deployment, &network, 1, &its);
    let host = deployment.nodes.hosts[0].clone();
    let state = folder.path().join("host");
    let node = NodeConfig::here(NodeKind::Client(None), &host, state.clone());
    let own =
        tokio::spawn(take_part(deployment.clone(), network.clone(), server(&deployment, 0, folder.path())));
    let error = take_part(deployment.clone(), network, node).await.unwrap_err().to_string();
    assert!(own.await.unwrap().unwrap().is_none());
    let name = &deployment.federation.server_names()[1];
    assert!(error.contains(name.as_str()) && error.contains("protocol version: 1 there"), "{error}");
    // The others have answered, and have what they were served.
    let vault = Vault::open(&state, Secret::Given([0; 32])).unwrap();
    for id in deployment.federation.clients_of(0) {
        let client = deployment.federation.client_name(*id);
        assert!(vault.state(&deployment.fingerprint, client).is_some(), "{client}");
    }
}
