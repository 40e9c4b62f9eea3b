//! `fedkin status`: who is alive, how far the run is, what was spent.

use super::runtime;
use crate::failure::Failure;
use crate::{args, output};
use fedkin::rooms::deploy::{Deployment, NodeConfig, NodeKind};
use fedkin::rooms::report::number;
use fedkin::rooms::run::Registry;
use fedkin::rooms::runtime::nats::{PostError, Token, Watcher};
use fedkin::rooms::runtime::node::{NodeStatus, ServerStatus};
use serde::Serialize;
use std::fmt::Write;
use std::time::Duration;

/// What one server node last said, and when.
#[derive(Debug, Serialize)]
struct Said {
    node: String,
    seconds_ago: Option<f64>,
    #[serde(flatten)]
    status: Option<NodeStatus>,
}

#[derive(Debug, Serialize)]
struct StatusJson {
    run: String,
    rounds: u32,
    /// Steps between the server that is furthest and the one that is least far.
    lag: u32,
    nodes: Vec<Said>,
}

/// Reads what the servers of a run have published.
pub(crate) fn status(registry: &Registry, args: &args::Status) -> Result<(), Failure> {
    let node = NodeConfig::load(&args.config)?;
    if matches!(node.kind, NodeKind::Client(_)) && node.broker.tls.is_some() {
        return Err(Failure::Usage(format!(
            "{} is the config of a client host, which the broker shows nothing but its own mail: name the config of a server",
            args.config.display()
        )));
    }
    let deployment = Deployment::open(registry, &node)?;
    let mut config = deployment.post(&node);
    config.limits.connect_timeout = Duration::from_secs(5);
    let usage = |error: PostError| Failure::Usage(error.to_string());
    let nodes = runtime()?.block_on(async {
        let post = Watcher::open(config).await.map_err(usage)?;
        let mut said = Vec::new();
        for name in &deployment.nodes.servers {
            let status = post.read_status(&Token::of(name)).await.map_err(usage)?;
            let seconds_ago = status.as_ref().map(|status| status.age.as_secs_f64());
            let status = status.and_then(|status| serde_json::from_slice(&status.bytes).ok());
            said.push(Said { node: name.clone(), seconds_ago, status });
        }
        Ok::<_, Failure>(said)
    })?;
    let steps = || nodes.iter().flat_map(|said| &said.status).flat_map(|status| &status.servers);
    let most = steps().map(|server| server.step).max().unwrap_or(0);
    let least = steps().map(|server| server.step).min().unwrap_or(0);
    let told =
        StatusJson { run: deployment.run_id(), rounds: deployment.run.rounds, lag: most - least, nodes };
    if args.json {
        return output::json(&told);
    }
    output::say(&text(&told))
}

fn text(told: &StatusJson) -> String {
    let mut text = format!("run {}, {} rounds, lag {}\n\n", told.run, told.rounds, told.lag);
    let width = told.nodes.iter().map(|said| said.node.chars().count()).max().unwrap_or(0).max(6);
    let _ = writeln!(
        text,
        "{:width$}  {:>7}  {:<10}  {:>8}  {:>11}  {:>12}  waits for",
        "server", "step", "stage", "heard", "clients", "most zCDP"
    );
    for said in &told.nodes {
        let Some(status) = &said.status else {
            let _ = writeln!(text, "{:width$}  not heard of", said.node);
            continue;
        };
        for server in &status.servers {
            let _ = writeln!(
                text,
                "{:width$}  {:>7}  {:<10}  {:>8}  {:>11}  {:>12}  {}",
                server.server,
                server.step,
                server.stage,
                said.seconds_ago.map_or_else(String::new, |seconds| format!("{seconds:.0} s")),
                format!("{} of {}", server.joined, server.clients),
                number::plain(server.most_spent as f64 * 1e-12),
                waits(server),
            );
            if let Some(why) = &server.stop {
                let _ = writeln!(text, "{:width$}  the run cannot go on: {why}", "");
            }
        }
    }
    text
}

/// Whom a server waits for: by name while they are few.
fn waits(server: &ServerStatus) -> String {
    const NAMED: usize = 3;
    let mut parts: Vec<String> = server
        .listed
        .iter()
        .filter(|client| client.awaited)
        .take(NAMED)
        .map(|client| match client.silent_seconds {
            Some(seconds) => format!("{} (silent {seconds:.0} s)", client.client),
            None => format!("{} (never heard)", client.client),
        })
        .collect();
    if server.waits_for > parts.len() {
        parts.push(format!("{} more", server.waits_for - parts.len()));
    }
    parts.extend(server.waits_for_servers.iter().map(|name| format!("server {name}")));
    if parts.is_empty() { "nobody".into() } else { parts.join(", ") }
}
