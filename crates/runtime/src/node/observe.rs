//! A small web server: `/metrics` for Prometheus, `/health` for whoever restarts nodes.

use super::NodeError;
use super::telemetry::Telemetry;
use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::IntoResponse;
use axum::routing::get;
use std::net::SocketAddr;
use std::sync::Arc;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

/// Serves a node's pages until dropped.
#[derive(Debug)]
pub struct Observer {
    task: JoinHandle<()>,
    address: SocketAddr,
}

impl Observer {
    /// Listens at an address; port 0 picks a free one.
    pub async fn listen(address: SocketAddr, telemetry: Arc<Telemetry>) -> std::io::Result<Self> {
        let listener = TcpListener::bind(address).await?;
        let address = listener.local_addr()?;
        let pages =
            Router::new().route("/metrics", get(metrics)).route("/health", get(health)).with_state(telemetry);
        let task = tokio::spawn(async move {
            if let Err(error) = axum::serve(listener, pages).await {
                tracing::error!(%error, "the metrics page is gone");
            }
        });
        Ok(Self { task, address })
    }

    /// Listens where an address is given.
    pub async fn maybe(
        address: Option<SocketAddr>,
        telemetry: &Arc<Telemetry>,
    ) -> Result<Option<Self>, NodeError> {
        let Some(address) = address else { return Ok(None) };
        let observer = Self::listen(address, telemetry.clone())
            .await
            .map_err(|error| NodeError::Listen { address: address.to_string(), reason: error.to_string() })?;
        tracing::info!(address = %observer.address, "metrics and health");
        Ok(Some(observer))
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for Observer {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn metrics(State(telemetry): State<Arc<Telemetry>>) -> impl IntoResponse {
    let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    ([(CONTENT_TYPE, kind)], telemetry.page())
}

async fn health(State(telemetry): State<Arc<Telemetry>>) -> impl IntoResponse {
    let health = telemetry.health();
    match (health.trouble(), health.stop) {
        (Some(trouble), _) => (StatusCode::SERVICE_UNAVAILABLE, format!("{trouble}\n")),
        // The node works, and ends the run in order.
        (None, Some(why)) => (StatusCode::OK, format!("the run cannot go on: {why}\n")),
        (None, None) => (StatusCode::OK, "ok\n".to_string()),
    }
}
