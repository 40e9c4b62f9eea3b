//! A node's way to its broker: sealed where it has keys.

use super::{Deployment, NodeConfig};
use bytes::Bytes;
use fedkin_runtime::nats::Post;
use fedkin_runtime::seal::{Directory, Identity, Keys, SealError, Sealed};
use fedkin_runtime::transport::{Event, Payload, Token, Transport, TransportError};
use std::time::Duration;

/// A node's end at the broker.
pub enum Link {
    /// Messages are sealed.
    Sealed(Box<Sealed<Post>>),
    /// The broker reads them.
    Open(Box<Post>),
}

impl Deployment {
    /// What a node seals with, where its config names keys. All nodes of the run must be in the directory.
    pub fn keys(&self, node: &NodeConfig) -> Result<Option<Keys>, SealError> {
        let Some(files) = &node.seal else { return Ok(None) };
        let identity = Identity::read(&files.key)?;
        let authority = node.broker.tls.as_ref().map(|tls| tls.ca.as_path());
        let directory = Directory::read(&files.directory, authority)?;
        let tokens: Vec<Token> =
            self.nodes.servers.iter().chain(&self.nodes.hosts).map(|name| Token::of(name)).collect();
        directory.covers(&tokens)?;
        Ok(Some(Keys { me: Token::of(&node.name), run: self.fingerprint, identity, directory }))
    }
}

impl Link {
    /// Seals what goes through a post, if there are keys.
    pub(super) fn new(post: Post, keys: Option<Keys>) -> Result<Self, SealError> {
        Ok(match keys {
            Some(keys) => Self::Sealed(Box::new(Sealed::new(post, keys)?)),
            None => Self::Open(Box::new(post)),
        })
    }
}

impl Transport for Link {
    fn send(&mut self, to: &Token, slot: &str, payload: Payload) -> Result<(), TransportError> {
        match self {
            Self::Sealed(link) => link.send(to, slot, payload),
            Self::Open(link) => Transport::send(link.as_mut(), to, slot, payload),
        }
    }

    async fn next(&mut self) -> Event {
        match self {
            Self::Sealed(link) => link.next().await,
            Self::Open(link) => Transport::next(link.as_mut()).await,
        }
    }

    async fn flush(&mut self, patience: Duration) -> bool {
        match self {
            Self::Sealed(link) => link.flush(patience).await,
            Self::Open(link) => Transport::flush(link.as_mut(), patience).await,
        }
    }

    async fn publish_status(&mut self, status: Bytes) -> Result<(), TransportError> {
        match self {
            Self::Sealed(link) => link.publish_status(status).await,
            Self::Open(link) => Transport::publish_status(link.as_mut(), status).await,
        }
    }
}
