//! Reads what nodes say about themselves, without a mailbox of its own: it disturbs nobody, not even a node of the
//! same name.

use std::sync::Arc;

use super::config::{PostConfig, PostError};
use super::post::{Status, open_wire, read_status};
use super::subjects::{self, Token};
use super::wire::Wire;

/// A connection that only reads statuses.
#[derive(Debug)]
pub struct Watcher {
    wire: Arc<Wire>,
}

impl Watcher {
    /// Connects.
    pub async fn open(config: PostConfig) -> Result<Self, PostError> {
        if !subjects::is_run(&config.run) {
            return Err(PostError::Run(config.run));
        }
        let (wire, _) = open_wire(config).await?;
        // The library says a moment after it has connected that it has; a question before that finds no broker.
        let mut link = wire.link.clone();
        let _ = tokio::time::timeout(wire.limits.connect_timeout, link.wait_for(|link| link.up)).await;
        Ok(Self { wire })
    }

    /// What a node last said about itself. Needs the permission of a server or an observer.
    pub async fn read_status(&self, node: &Token) -> Result<Option<Status>, PostError> {
        read_status(&self.wire, node).await
    }
}
