//! `fedkin server` and `fedkin client`: one process, one or several nodes, until their part of the run is over.

use super::runtime;
use super::supervise::LAUNCHED;
use crate::args;
use crate::failure::Failure;
use fedkin::experiment::artifacts::ArtifactError;
use fedkin::experiment::deploy::{Deployment, NodeConfig, NodeKind};
use fedkin::experiment::{Error, Registry};
use fedkin::runtime::node::{Ending, host, serve};
use std::io::{ErrorKind, IsTerminal};
use std::path::PathBuf;
use std::time::Duration;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tracing_subscriber::filter::EnvFilter;

/// Runs servers.
pub(crate) fn server(registry: &Registry, args: &args::Node) -> Result<(), Failure> {
    run(registry, &args.config, false)
}

/// Hosts clients.
pub(crate) fn client(registry: &Registry, args: &args::Node) -> Result<(), Failure> {
    run(registry, &args.config, true)
}

fn run(registry: &Registry, files: &[PathBuf], clients: bool) -> Result<(), Failure> {
    let mut nodes = Vec::with_capacity(files.len());
    for file in files {
        let node = NodeConfig::load(file)?;
        let is_client = matches!(node.kind, NodeKind::Client(_));
        if is_client != clients {
            let (is, other) = if is_client { ("client", "server") } else { ("server", "client") };
            return Err(Failure::Usage(format!(
                "{} describes a {is}: start it with `fedkin {is} --config {}`, not `fedkin {other}`",
                file.display(),
                file.display()
            )));
        }
        nodes.push(node);
    }
    if let Some(first) = nodes.first() {
        log(first.observe.log.word());
    }
    let runtime = runtime()?;
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
    mut stop: watch::Receiver<bool>,
) -> Result<Option<Error>, Failure> {
    let deployment = Deployment::open(&registry, &node)?;
    let stopped = || -> Result<Option<Error>, Failure> {
        let left = deployment.left(&node.state)?.and_then(|left| left.stop);
        Ok(left.map(|left| deployment.stopped(left.into())))
    };
    if deployment.left(&node.state)?.is_some() {
        tracing::info!(node = node.name, run = deployment.run_id(), "its part of this run is over already");
        return stopped();
    }
    // Not the whole address: it may hold a password.
    let place = format!("{}:{}", node.broker.host, node.broker.port);
    tracing::info!(node = node.name, run = deployment.run_id(), broker = %place, "starting");
    let ending = match node.kind {
        NodeKind::Server(_) => {
            let (machines, options) = deployment.server_node(&node)?;
            let (ending, machines) = serve(machines, options, stop.clone()).await?;
            if ending == Ending::Done {
                kept(&mut stop, || deployment.leave_servers(&node.state, &machines)).await?
            } else {
                ending
            }
        }
        NodeKind::Client(_) => {
            let ready = tokio::task::block_in_place(|| deployment.client_node(&node))?;
            let (ending, clients) = host(ready.clients, ready.vault, ready.options, stop.clone()).await?;
            if ending == Ending::Done {
                kept(&mut stop, || deployment.leave_clients(&node.state, clients.as_ref())).await?
            } else {
                ending
            }
        }
    };
    match ending {
        Ending::Done => tracing::info!(node = node.name, "done"),
        Ending::Stopped => tracing::info!(node = node.name, "stopped"),
    }
    stopped()
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

/// Between two tries to write results to a full disk.
const FULL_DISK_PAUSE: Duration = Duration::from_millis(500);

/// Writes results; a full disk is waited for, as it is during the run. Others may be gone by now: a node that gave up
/// here could not ask them again.
async fn kept(
    stop: &mut watch::Receiver<bool>,
    write: impl Fn() -> Result<(), Error>,
) -> Result<Ending, Failure> {
    let mut waited = false;
    loop {
        match tokio::task::block_in_place(&write) {
            Ok(()) => {
                if waited {
                    tracing::info!("there is space on the disk again");
                }
                return Ok(Ending::Done);
            }
            Err(Error::Artifact(ArtifactError::File { source, action, path }))
                if matches!(source.kind(), ErrorKind::StorageFull | ErrorKind::QuotaExceeded) =>
            {
                waited = true;
                let error = ArtifactError::File { source, action, path };
                tracing::error!(%error, "the disk is full: results are kept in memory until there is space again");
            }
            Err(error) => return Err(error.into()),
        }
        tokio::select! {
            () = tokio::time::sleep(FULL_DISK_PAUSE) => {}
            _ = stop.wait_for(|stop| *stop) => return Ok(Ending::Stopped),
        }
    }
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
