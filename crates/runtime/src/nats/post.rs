//! A node's post: what it sends, what it gets.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use async_nats::StatusCode;
use bytes::Bytes;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;
use tokio::sync::{Semaphore, mpsc, watch};
use tokio::task::JoinSet;

use super::config::{PostConfig, PostError};
use super::connect::connect;
use super::frame::Reason;
use super::inbox::{Inbox, Packet, StreamConfig};
use super::outbox::{self, Outbox};
use super::subjects::{self, Token, api};
use super::wire::{Counters, Counts, Wire, WireFault};
use crate::transport::{self, Payload, Transport, TransportError};

/// Largest status message.
pub const MAX_STATUS: usize = 64 * 1024;
/// Events that wait for [`Post::next`].
const EVENTS: usize = 64;
/// Parts asked of the broker at the same time, over all payloads: 12 MiB.
const READS: usize = 64;

/// Something under a sender's subject that is no payload.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the message '{slot}' from {from} {reason}")]
pub struct Incident {
    /// The sender, as the broker's permissions allow it to write.
    pub from: Token,
    /// The slot.
    pub slot: String,
    /// What is wrong.
    pub reason: Reason,
}

/// What [`Post::next`] gives.
pub type Event = crate::transport::Event<Incident>;

/// What a node said about itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Status {
    /// As published.
    pub bytes: Bytes,
    /// Since it was published, by the broker's clock and this machine's; zero if they disagree.
    pub age: Duration,
}

/// A node's end of the transport. Closed when dropped.
#[derive(Debug)]
pub struct Post {
    sender: Sender,
    events: mpsc::Receiver<Packet>,
    _tasks: JoinSet<()>,
}

/// The sending half; cheap to clone. It works for as long as its [`Post`] lives.
#[derive(Debug, Clone)]
pub struct Sender {
    wire: Arc<Wire>,
    outbox: Arc<Outbox>,
}

impl Post {
    /// Connects. A node that manages the stream also waits until it is there; one that does not gets its
    /// mailbox as soon as somebody made the stream, and what it sends meanwhile waits.
    pub async fn open(config: PostConfig) -> Result<Self, PostError> {
        if !subjects::is_run(&config.run) {
            return Err(PostError::Run(config.run));
        }
        let stream = StreamConfig {
            manages: config.manages_stream,
            storage: config.storage,
            replicas: config.replicas,
        };
        let (manages, patience) = (config.manages_stream, config.limits.connect_timeout);
        let (wire, url) = open_wire(config).await?;
        let outbox = Arc::new(Outbox::default());
        let (packets, events) = mpsc::channel(EVENTS);
        let mut tasks = JoinSet::new();
        tasks.spawn(Inbox::new(Arc::clone(&wire), stream, packets).run());
        tasks.spawn(outbox::run(Arc::clone(&wire), Arc::clone(&outbox)));
        let post = Self { sender: Sender { wire, outbox }, events, _tasks: tasks };
        if manages {
            let mut ready = post.sender.wire.ready.subscribe();
            if tokio::time::timeout(patience, ready.wait_for(|ready| *ready)).await.is_err() {
                let reason = post.counters().last_failure.unwrap_or_else(|| "no answer".to_owned());
                return Err(PostError::Mailbox { url, reason });
            }
        }
        Ok(post)
    }

    /// The next event. Cancelling it loses nothing.
    pub async fn next(&mut self) -> Event {
        match self.events.recv().await {
            Some(packet) => packet.event,
            // The receiving task ends with the post only.
            None => std::future::pending().await,
        }
    }

    /// A handle that sends, for other tasks.
    pub fn sender(&self) -> Sender {
        self.sender.clone()
    }

    /// See [`Sender::send`].
    pub fn send(&self, to: &Token, slot: &str, payload: impl Into<Payload>) -> Result<(), PostError> {
        self.sender.send(to, slot, payload)
    }

    /// See [`Sender::flush`].
    pub async fn flush(&self, patience: Duration) -> bool {
        self.sender.flush(patience).await
    }

    /// See [`Sender::publish_status`].
    pub async fn publish_status(&self, status: Bytes) -> Result<(), PostError> {
        self.sender.publish_status(status).await
    }

    /// See [`Sender::read_status`].
    pub async fn read_status(&self, node: &Token) -> Result<Option<Status>, PostError> {
        self.sender.read_status(node).await
    }

    /// See [`Sender::counters`].
    pub fn counters(&self) -> Counters {
        self.sender.counters()
    }
}

impl Transport for Post {
    fn send(&mut self, to: &Token, slot: &str, payload: Payload) -> Result<(), TransportError> {
        Ok(self.sender.send(to, slot, payload)?)
    }

    async fn next(&mut self) -> transport::Event {
        match Post::next(self).await {
            Event::Delivery(delivery) => transport::Event::Delivery(delivery),
            Event::Incident(Incident { from, reason, .. }) => {
                let (kind, reason) = (reason.kind(), reason.to_string());
                transport::Event::Incident(transport::Incident { from, kind, reason })
            }
            Event::Reconnected => transport::Event::Reconnected,
            Event::Disconnected => transport::Event::Disconnected,
        }
    }

    async fn flush(&mut self, patience: Duration) -> bool {
        self.sender.flush(patience).await
    }

    async fn publish_status(&mut self, status: Bytes) -> Result<(), TransportError> {
        Ok(self.sender.publish_status(status).await?)
    }
}

impl From<PostError> for TransportError {
    fn from(error: PostError) -> Self {
        Self(error.to_string())
    }
}

impl Sender {
    /// Hands a payload over for sending and returns at once. A newer payload for the same receiver and slot
    /// replaces it, here and at the broker. Whether it arrived only the receiver's answer tells: a failure
    /// is counted, and whoever needs the payload there sends it again.
    pub fn send(&self, to: &Token, slot: &str, payload: impl Into<Payload>) -> Result<(), PostError> {
        let payload = payload.into();
        if !subjects::is_slot(slot) {
            return Err(PostError::Slot(slot.to_owned()));
        }
        let limits = &self.wire.limits;
        if payload.len() > limits.max_payload {
            return Err(PostError::TooLarge { length: payload.len(), limit: limits.max_payload });
        }
        if self.outbox.push(to, slot, payload, limits.queue, &self.wire.counts) {
            Ok(())
        } else {
            self.wire.counts.fail(format!("{slot} to {to}: the queue is full"));
            Err(PostError::QueueFull(limits.queue))
        }
    }

    /// Waits until nothing waits to be sent. `false`: the time was over first.
    pub async fn flush(&self, patience: Duration) -> bool {
        tokio::time::timeout(patience, self.outbox.flushed()).await.is_ok()
    }

    /// Says something about this node, in JSON, to whoever may read it; a newer one replaces it.
    pub async fn publish_status(&self, status: Bytes) -> Result<(), PostError> {
        if status.len() > MAX_STATUS {
            return Err(PostError::TooLarge { length: status.len(), limit: MAX_STATUS });
        }
        let subject = subjects::status(&self.wire.run, &self.wire.me);
        self.wire.publish(subject, status).await.map_err(|fault| PostError::Request(fault.to_string()))
    }

    /// What a node last said about itself. Needs the permission of a server or an observer.
    pub async fn read_status(&self, node: &Token) -> Result<Option<Status>, PostError> {
        read_status(&self.wire, node).await
    }

    /// What was sent and received so far.
    pub fn counters(&self) -> Counters {
        self.wire.counts.read()
    }
}

/// Connects; the address comes back without a password.
pub(super) async fn open_wire(config: PostConfig) -> Result<(Arc<Wire>, String), PostError> {
    let (client, link, url) = connect(&config).await?;
    let wire = Wire {
        client,
        run: config.run,
        me: config.node,
        api_prefix: config.api_prefix,
        link,
        ready: watch::Sender::new(false),
        counts: Counts::default(),
        in_flight: Semaphore::new(config.limits.in_flight.max(1)),
        reads: Semaphore::new(READS),
        limits: config.limits,
    };
    Ok((Arc::new(wire), url))
}

/// What a node last said about itself.
pub(super) async fn read_status(wire: &Wire, node: &Token) -> Result<Option<Status>, PostError> {
    let subject = api::get(&wire.run, &subjects::status(&wire.run, node));
    let answer = match wire.ask(subject, Bytes::new()).await {
        Ok(answer) => answer,
        Err(WireFault::Nobody) => return Ok(None),
        Err(fault) => return Err(PostError::Request(fault.to_string())),
    };
    match answer.status {
        None => {}
        Some(StatusCode::NOT_FOUND) => return Ok(None),
        Some(status) => return Err(PostError::Request(status.to_string())),
    }
    let stamp = answer.headers.as_ref().and_then(|h| h.get("Nats-Time-Stamp"));
    let age = stamp
        .and_then(|value| since_epoch(value.as_str()))
        .and_then(|at| SystemTime::UNIX_EPOCH.elapsed().ok()?.checked_sub(at));
    Ok(Some(Status { bytes: answer.payload, age: age.unwrap_or_default() }))
}

/// `2026-01-31T12:34:56.789Z`, as the broker stamps messages, in time since 1970.
fn since_epoch(stamp: &str) -> Option<Duration> {
    // The broker writes UTC; what is before 1970 has no such time.
    let at = OffsetDateTime::parse(stamp, &Rfc3339).ok()?;
    at.unix_timestamp_nanos().try_into().ok().map(Duration::from_nanos)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_stamps_are_read() {
        let at = |text| since_epoch(text).map(|d| d.as_secs_f64());
        assert_eq!(at("1970-01-01T00:00:00Z"), Some(0.0));
        assert_eq!(at("2000-02-29T12:00:00.5Z"), Some(951_825_600.5));
        assert_eq!(at("2024-12-31T23:59:59.25Z"), Some(1_735_689_599.25));
        assert_eq!(at("2026-03-01T00:00:00Z"), Some(1_772_323_200.0));
        for bad in ["", "Z", "2026-03-01", "2026-13-01T00:00:00Z", "1969-01-01T00:00:00Z", "a-b-cTd:e:fZ"] {
            assert_eq!(at(bad), None, "{bad}");
        }
    }
}
