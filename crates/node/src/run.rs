//! One process, one or several nodes, until their part of the run is over.

use crate::Failure;
use fedkin_deploy::{Deployment, NodeConfig, NodeKind};
use fedkin_run::{Error, Registry};
use std::io::IsTerminal;
use std::path::PathBuf;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tracing_subscriber::filter::EnvFilter;

/// In the environment of a node whose launcher holds the other end of its standard input.
pub const LAUNCHED: &str = "FEDKIN_LAUNCHED";

/// What a process runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Servers.
    Server,
    /// Clients.
    Client,
}

/// Runs the nodes of these configs, all of one kind; `program` is what messages tell to start.
pub fn run(registry: &Registry, files: &[PathBuf], kind: Kind, program: &str) -> Result<(), Failure> {
    let clients = kind == Kind::Client;
    let mut nodes = Vec::with_capacity(files.len());
    for file in files {
        let node = NodeConfig::load(file)?;
        let is_client = matches!(node.kind, NodeKind::Client(_));
        if is_client != clients {
            let (is, other) = if is_client { ("client", "server") } else { ("server", "client") };
            return Err(Failure::Usage(format!(
                "{} describes a {is}: start it with `{program} {is} --config {}`, not `{program} {other}`",
                file.display(),
                file.display()
            )));
        }
        nodes.push(node);
    }
    if let Some(first) = nodes.first() {
        log(first.observe.log.word());
    }
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .map_err(|error| Failure::Unexpected(format!("cannot start threads: {error}")))?;
    runtime.block_on(async {
        let (stop, stopped) = watch::channel(false);
        tokio::spawn(async move {
            let (Ok(mut terminate), Ok(mut interrupt)) =
                (signal(SignalKind::terminate()), signal(SignalKind::interrupt()))
            else {
                return;
            };
            tokio::select! {
                _ = terminate.recv() => {}
                _ = interrupt.recv() => {}
                () = orphaned() => {}
            }
            tracing::info!("stopping; the same command goes on from the disk");
            let _ = stop.send(true);
            // The sender lives on: a channel without one reads as stopped.
            std::future::pending::<()>().await;
        });
        let mut all = JoinSet::new();
        for node in nodes {
            all.spawn(one(registry.clone(), node, stopped.clone()));
        }
        let mut stops: Vec<Error> = Vec::new();
        while let Some(ended) = all.join_next().await {
            stops.extend(ended.map_err(|error| Failure::Unexpected(format!("a node broke down: {error}")))??);
        }
        // All nodes have ended in order; the first reason is that of the run.
        match stops.into_iter().min_by_key(Error::stop_order) {
            Some(stopped) => Err(stopped.into()),
            None => Ok(()),
        }
    })
}

/// One node from its config to its results; why the run could not go on, where its servers know.
async fn one(
    registry: Registry,
    node: NodeConfig,
    stop: watch::Receiver<bool>,
) -> Result<Option<Error>, Failure> {
    let deployment = Deployment::open(&registry, &node)?;
    if deployment.left(&node.state)?.is_none() {
        // Not the whole address: it may hold a password.
        let place = format!("{}:{}", node.broker.host, node.broker.port);
        tracing::info!(node = node.name, run = deployment.run_id(), broker = %place, "starting");
    }
    Ok(Box::pin(deployment.take_part(&node, deployment.connect(&node), stop)).await?)
}

/// Returns once the launcher that started this process is gone: it holds the other end of standard input.
async fn orphaned() {
    if std::env::var_os(LAUNCHED).is_none() {
        std::future::pending::<()>().await;
    }
    let (gone, is_gone) = tokio::sync::oneshot::channel::<()>();
    // A thread of its own: a runtime would wait for the read when the node is done.
    std::thread::spawn(move || {
        let _ = std::io::copy(&mut std::io::stdin(), &mut std::io::sink());
        let _ = gone.send(());
    });
    let _ = is_gone.await;
}

/// Lines for people on a terminal, JSON elsewhere.
fn log(level: &str) {
    // What the transport's library says of each connection helps only whoever asks for more than the usual.
    let usual = if level == "info" { "info,async_nats=warn" } else { level };
    let filter = EnvFilter::try_from_env("FEDKIN_LOG").unwrap_or_else(|_| EnvFilter::new(usual));
    let builder = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    // A second call in one process would fail; there is none.
    let _ = if std::io::stderr().is_terminal() {
        builder.with_target(false).try_init()
    } else {
        builder.json().flatten_event(true).try_init()
    };
}
