//! `fedkin server` and `fedkin client`: one process, one or several nodes, until their part of the run is over.

use super::runtime;
use crate::args;
use crate::failure::Failure;
use fedkin_experiment::deploy::{Deployment, NodeConfig, NodeKind};
use fedkin_runtime::node::{Ending, host, serve};
use std::io::IsTerminal;
use std::path::PathBuf;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tracing_subscriber::filter::EnvFilter;

/// Runs servers.
pub(crate) fn server(args: &args::Node) -> Result<(), Failure> {
    run(&args.config, false)
}

/// Hosts clients.
pub(crate) fn client(args: &args::Node) -> Result<(), Failure> {
    run(&args.config, true)
}

fn run(files: &[PathBuf], clients: bool) -> Result<(), Failure> {
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
        log(&first.observe.log);
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
            }
            tracing::info!("stopping; the same command goes on from the disk");
            let _ = stop.send(true);
            // The sender lives on: a channel without one reads as stopped.
            std::future::pending::<()>().await;
        });
        let mut all = JoinSet::new();
        for node in nodes {
            all.spawn(one(node, stopped.clone()));
        }
        while let Some(ended) = all.join_next().await {
            ended.map_err(|error| Failure::Unexpected(format!("a node broke down: {error}")))??;
        }
        Ok(())
    })
}

/// One node from its config to its results.
async fn one(node: NodeConfig, stop: watch::Receiver<bool>) -> Result<(), Failure> {
    let deployment = Deployment::open(&node)?;
    if deployment.left(&node.state)?.is_some() {
        tracing::info!(node = node.name, run = deployment.run_id(), "its part of this run is over already");
        return Ok(());
    }
    tracing::info!(node = node.name, run = deployment.run_id(), broker = node.broker.url, "starting");
    let ending = match node.kind {
        NodeKind::Server(_) => {
            let (machines, options) = deployment.server_node(&node)?;
            let (ending, machines) = serve(machines, options, stop).await?;
            if ending == Ending::Done {
                deployment.leave_servers(&node.state, &machines)?;
            }
            ending
        }
        NodeKind::Client(_) => {
            let ready = tokio::task::block_in_place(|| deployment.client_node(&node))?;
            let (ending, clients) = host(ready.clients, ready.vault, ready.options, stop).await?;
            if ending == Ending::Done {
                deployment.leave_clients(&node.state, clients.as_ref())?;
            }
            ending
        }
    };
    match ending {
        Ending::Done => tracing::info!(node = node.name, "done"),
        Ending::Stopped => tracing::info!(node = node.name, "stopped"),
    }
    Ok(())
}

/// Lines for people on a terminal, JSON elsewhere.
fn log(level: &str) {
    let filter = EnvFilter::try_from_env("FEDKIN_LOG").unwrap_or_else(|_| EnvFilter::new(level));
    let builder = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    // A second call in one process would fail; there is none.
    let _ = if std::io::stderr().is_terminal() {
        builder.with_target(false).try_init()
    } else {
        builder.json().flatten_event(true).try_init()
    };
}
