//! What a [`Post`](super::Post) is opened with, and what can go wrong.

use std::path::PathBuf;
use std::time::Duration;

use super::subjects::{Token, api};

/// Certificates of a node, in PEM files.
#[derive(Debug, Clone)]
pub struct Tls {
    /// The authority that signed the broker's certificate.
    pub ca: PathBuf,
    /// The node's certificate.
    pub certificate: PathBuf,
    /// The key of the certificate.
    pub key: PathBuf,
}

/// Where the broker keeps the messages of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Storage {
    /// On disk.
    #[default]
    File,
    /// In memory: a restart of the broker costs a resend.
    Memory,
}

/// Bounds of memory and time.
#[derive(Debug, Clone)]
pub struct Limits {
    /// Largest payload, sent or received.
    pub max_payload: usize,
    /// Bytes of cut payloads that are being put together or wait to be taken; at least `max_payload`.
    pub assembly_bytes: usize,
    /// Cut payloads that may wait per sender.
    pub waiting_per_sender: usize,
    /// Bytes asked of the broker in one pull.
    pub pull_bytes: usize,
    /// Messages asked of the broker in one pull.
    pub pull_messages: usize,
    /// Publishes without an acknowledgement yet.
    pub in_flight: usize,
    /// Payloads that wait to be sent; one per receiver and slot at most.
    pub queue: usize,
    /// How long `open` tries.
    pub connect_timeout: Duration,
    /// How long an acknowledgement or an answer of the broker may take.
    pub ack_timeout: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            max_payload: 64 << 20,
            assembly_bytes: 128 << 20,
            waiting_per_sender: 256,
            pull_bytes: 4 << 20,
            pull_messages: 256,
            in_flight: 64,
            queue: 1 << 20,
            connect_timeout: Duration::from_secs(10),
            ack_timeout: Duration::from_secs(10),
        }
    }
}

/// What a [`Post`](super::Post) is opened with.
#[derive(Debug, Clone)]
pub struct PostConfig {
    /// `nats://host:port` or `tls://host:port`, several with commas between them.
    pub url: String,
    /// Certificates; without them the connection is plain, unless the address says `tls://`.
    pub tls: Option<Tls>,
    /// Allows a plain connection to a machine that is not this one.
    pub allow_plain: bool,
    /// The run: 16 lower-case hexadecimal digits.
    pub run: String,
    /// The node.
    pub node: Token,
    /// Whether this node creates the stream of the run: servers do, clients wait for it.
    pub manages_stream: bool,
    /// Prefix of the broker's interface: `$JS.API`, or [`ACCOUNT_API`](super::ACCOUNT_API) on a broker that
    /// was configured by [`broker_accounts`](super::broker_accounts).
    pub api_prefix: String,
    /// Where the stream is stored.
    pub storage: Storage,
    /// Copies of the stream in a cluster of brokers.
    pub replicas: usize,
    /// Bounds.
    pub limits: Limits,
}

impl PostConfig {
    /// A plain client with the default limits.
    pub fn new(url: &str, run: &str, node: Token) -> Self {
        Self {
            url: url.to_owned(),
            tls: None,
            allow_plain: false,
            run: run.to_owned(),
            node,
            manages_stream: false,
            api_prefix: api::PREFIX.to_owned(),
            storage: Storage::File,
            replicas: 1,
            limits: Limits::default(),
        }
    }

    /// The same, for a server.
    #[must_use]
    pub fn manager(mut self) -> Self {
        self.manages_stream = true;
        self
    }
}

/// Why a [`Post`](super::Post) does not open or does not take a message.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PostError {
    /// The run's name has another form.
    #[error("'{0}' does not name a run: expected 16 lower-case hexadecimal digits")]
    Run(String),
    /// The slot's name has another form.
    #[error("'{0}' does not name a slot: expected 1 to 40 of A-Z a-z 0-9 _ -")]
    Slot(String),
    /// A payload above the limit.
    #[error("a payload of {length} bytes is above the limit of {limit}")]
    TooLarge {
        /// Its size.
        length: usize,
        /// `Limits::max_payload`.
        limit: usize,
    },
    /// More payloads wait than `Limits::queue`.
    #[error("{0} payloads wait to be sent already")]
    QueueFull(usize),
    /// An address that cannot be read.
    #[error(
        "cannot read the broker's address '{url}': {reason}; expected nats://host:port or tls://host:port"
    )]
    Address {
        /// The address, without a password.
        url: String,
        /// What is wrong.
        reason: String,
    },
    /// A plain connection to another machine.
    #[error(
        "the connection to {0} would not be encrypted: give certificates (`fedkin provision` makes them), or \
         allow it with --allow-plain (PostConfig::allow_plain)"
    )]
    Plain(String),
    /// A certificate or key file that cannot be read.
    #[error("cannot read {path}: {reason}")]
    Certificate {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        reason: String,
    },
    /// Nobody listens.
    #[error("no broker answers at {url} after {seconds:.1} s ({reason}): start it, or correct the address")]
    Refused {
        /// The address, without a password.
        url: String,
        /// How long it was tried.
        seconds: f64,
        /// What is wrong.
        reason: String,
    },
    /// The TLS handshake failed.
    #[error(
        "{url} and this node do not trust each other ({reason}): check that both certificates come from the \
         same authority, are in date and name the right hosts, and that the broker speaks TLS"
    )]
    Tls {
        /// The address, without a password.
        url: String,
        /// What is wrong.
        reason: String,
    },
    /// The broker knows this node not, or by another name.
    #[error(
        "the broker at {0} does not let this node in (authorization violation): its certificate, user or \
         password is not in the broker's config; write the config again with `fedkin provision` and reload it"
    )]
    Authorization(String),
    /// The stream of the run cannot be made.
    #[error("the broker at {url} has no mailbox for the run: {reason}")]
    Mailbox {
        /// The address, without a password.
        url: String,
        /// What is wrong.
        reason: String,
    },
    /// A question to the broker without a usable answer.
    #[error("the broker did not answer: {0}")]
    Request(String),
}
