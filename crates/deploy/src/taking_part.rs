//! One node from its config to its results; and all nodes of a run in one process, over any transport.

use super::{BrokerAddress, Collected, Deployment, LogLevel, NodeConfig, NodeKind, Noise, Observe};
use fedkin_run::Error;
use fedkin_run::artifacts::ArtifactError;
use fedkin_runtime::node::{Ending, NodeError, host, serve};
use fedkin_runtime::transport::{Network, Token, Transport, TransportError};
use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::task::JoinSet;

/// Between two tries to write results to a full disk.
const FULL_DISK_PAUSE: Duration = Duration::from_millis(500);

fn of_node(error: &NodeError) -> Error {
    Error::Usage(error.to_string())
}

impl Deployment {
    /// Takes part in the run as this node, until its part is over or `stop` turns true, and leaves its results. Returns
    /// why the run could not go on, where its servers know.
    pub async fn take_part<T: Transport>(
        &self,
        node: &NodeConfig,
        connect: impl Future<Output = Result<T, TransportError>>,
        mut stop: watch::Receiver<bool>,
    ) -> Result<Option<Error>, Error> {
        let stopped = || -> Result<Option<Error>, Error> {
            let left = self.left(&node.state)?.and_then(|left| left.stop);
            Ok(left.map(|left| self.stopped(left.into())))
        };
        if self.left(&node.state)?.is_some() {
            tracing::info!(node = node.name, run = self.run_id(), "its part of this run is over already");
            return stopped();
        }
        let ending = match node.kind {
            NodeKind::Server(_) => {
                let (machines, options) = self.server_node(node)?;
                let (ending, machines) =
                    serve(machines, options, connect, stop.clone()).await.map_err(|error| of_node(&error))?;
                if ending == Ending::Done {
                    kept(&mut stop, || self.leave_servers(&node.state, &machines)).await?
                } else {
                    ending
                }
            }
            NodeKind::Client(_) => {
                let ready = tokio::task::block_in_place(|| self.client_node(node))?;
                let (ending, clients) =
                    host(ready.clients, ready.vault, ready.options, connect, stop.clone())
                        .await
                        .map_err(|error| of_node(&error))?;
                if ending == Ending::Done {
                    kept(&mut stop, || self.leave_clients(&node.state, clients.as_ref())).await?
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

    /// Runs all nodes in this process, each with a folder of its own in `state`, over a network that may be anything: what
    /// they leave is what they would leave on machines of their own.
    pub fn over<N: Network + 'static>(
        self: &Arc<Self>,
        network: N,
        state: &Path,
    ) -> Result<Collected, Error> {
        let folder = |kind: &str, name: &str| state.join(format!("{kind}-{}", Token::of(name)));
        let mut nodes = Vec::new();
        for (id, name) in self.nodes.servers.iter().enumerate() {
            let kind = NodeKind::Server(vec![self.federation.server_names()[id].clone()]);
            nodes.push(NodeConfig::here(kind, name, folder("server", name)));
        }
        for (name, _) in self.nodes.by_host() {
            nodes.push(NodeConfig::here(NodeKind::Client(None), name, folder("client", name)));
        }
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()
            .map_err(|error| Error::Usage(format!("cannot start threads: {error}")))?;
        runtime.block_on(self.all_take_part(network, &nodes))?;
        self.collect(&nodes)
    }

    async fn all_take_part<N: Network + 'static>(
        self: &Arc<Self>,
        network: N,
        nodes: &[NodeConfig],
    ) -> Result<(), Error> {
        let (stop, stopped) = watch::channel(false);
        let network = Arc::new(network);
        let mut all = JoinSet::new();
        for node in nodes.iter().cloned() {
            let (deployment, network, stopped) = (Arc::clone(self), Arc::clone(&network), stopped.clone());
            all.spawn(async move {
                let connect = async { network.join(&Token::of(&node.name)) };
                deployment.take_part(&node, connect, stopped).await
            });
        }
        let mut reasons: Vec<Error> = Vec::new();
        while let Some(ended) = all.join_next().await {
            match ended.map_err(|error| Error::Usage(format!("a node broke down: {error}"))) {
                Ok(Ok(reason)) => reasons.extend(reason),
                // The others would wait for it for ever.
                Ok(Err(error)) | Err(error) => {
                    let _ = stop.send(true);
                    reasons.push(error);
                }
            }
        }
        reasons.into_iter().min_by_key(Error::stop_order).map_or(Ok(()), Err)
    }
}

impl NodeConfig {
    /// A node of this process: no files, no broker, and secrets that follow from the seed.
    pub(super) fn here(kind: NodeKind, name: &str, state: PathBuf) -> Self {
        Self {
            kind,
            name: name.to_string(),
            experiment: PathBuf::new(),
            roster: PathBuf::new(),
            state,
            broker: BrokerAddress {
                url: String::new(),
                host: String::new(),
                port: 0,
                tls: None,
                allow_plain: false,
                api: String::new(),
            },
            seal: None,
            data: BTreeMap::new(),
            observe: Observe { listen: None, log: LogLevel::Info },
            noise: Noise::Seeded,
        }
    }
}

/// Writes results; a full disk is waited for, as it is during the run. Others may be gone by now: a node that gave up
/// here could not ask them again.
async fn kept(
    stop: &mut watch::Receiver<bool>,
    write: impl Fn() -> Result<(), Error>,
) -> Result<Ending, Error> {
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
            Err(error) => return Err(error),
        }
        tokio::select! {
            () = tokio::time::sleep(FULL_DISK_PAUSE) => {}
            _ = stop.wait_for(|stop| *stop) => return Ok(Ending::Stopped),
        }
    }
}
