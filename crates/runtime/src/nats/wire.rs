//! What the sending and the receiving half share: the connection, questions to the broker, counters.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use async_nats::client::RequestErrorKind;
use async_nats::{Client, Message, Request};
use bytes::Bytes;
use serde_json::Value;
use tokio::sync::{Semaphore, watch};

use super::config::Limits;
use super::connect::Link;
use super::subjects::{Token, api};

/// Why the broker did not do something.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum WireFault {
    #[error("the connection was lost")]
    Lost,
    #[error("no answer in time")]
    Silent,
    #[error("nobody there answers: the stream is gone, or JetStream is off")]
    Nobody,
    #[error("{text} ({code})")]
    Refused { code: u64, text: String },
    #[error("{0}")]
    Other(String),
}

/// What a node's transport did so far.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Counters {
    /// Payloads acknowledged by the broker.
    pub sent: u64,
    /// Payloads dropped: no acknowledgement, a lost connection, or a refusal.
    pub failed: u64,
    /// Payloads replaced by a newer one of their slot before they were sent.
    pub replaced: u64,
    /// Payloads delivered.
    pub delivered: u64,
    /// Messages that were no deliveries.
    pub incidents: u64,
    /// Bytes of cut payloads that were held at once, at most.
    pub most_assembly_bytes: u64,
    /// The last thing that did not work, in words.
    pub last_failure: Option<String>,
}

#[derive(Debug, Default)]
pub(super) struct Counts {
    pub(super) sent: AtomicU64,
    pub(super) failed: AtomicU64,
    pub(super) replaced: AtomicU64,
    pub(super) delivered: AtomicU64,
    pub(super) incidents: AtomicU64,
    pub(super) most_assembly_bytes: AtomicU64,
    last_failure: Mutex<Option<String>>,
}

impl Counts {
    pub(super) fn add(counter: &AtomicU64) {
        counter.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn fail(&self, reason: String) {
        Self::add(&self.failed);
        self.note(reason);
    }

    pub(super) fn note(&self, reason: String) {
        *self.last_failure.lock().unwrap_or_else(PoisonError::into_inner) = Some(reason);
    }

    pub(super) fn read(&self) -> Counters {
        let get = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Counters {
            sent: get(&self.sent),
            failed: get(&self.failed),
            replaced: get(&self.replaced),
            delivered: get(&self.delivered),
            incidents: get(&self.incidents),
            most_assembly_bytes: get(&self.most_assembly_bytes),
            last_failure: self.last_failure.lock().unwrap_or_else(PoisonError::into_inner).clone(),
        }
    }
}

#[derive(Debug)]
pub(super) struct Wire {
    pub(super) client: Client,
    pub(super) run: String,
    pub(super) me: Token,
    pub(super) api_prefix: String,
    pub(super) limits: Limits,
    pub(super) link: watch::Receiver<Link>,
    /// Whether stream and consumer are there.
    pub(super) ready: watch::Sender<bool>,
    pub(super) counts: Counts,
    /// One permit per publish without an acknowledgement.
    pub(super) in_flight: Semaphore,
    /// One permit per part asked for: what the broker has under way to this node stays below the size at
    /// which it cuts off slow consumers.
    pub(super) reads: Semaphore,
}

impl Wire {
    /// A subject of the broker's interface under the prefix that it has here.
    pub(super) fn local(&self, subject: &str) -> String {
        match subject.strip_prefix(api::PREFIX) {
            Some(rest) => format!("{}{rest}", self.api_prefix),
            None => subject.to_owned(),
        }
    }

    /// A question to the broker; ends with the connection or with the time.
    pub(super) async fn ask(&self, subject: String, payload: Bytes) -> Result<Message, WireFault> {
        let mut link = self.link.clone();
        let now = *link.borrow_and_update();
        // Nothing is queued for a broker that is not there: it would be sent much later.
        if !now.up {
            return Err(WireFault::Lost);
        }
        let subject = self.local(&subject);
        let request = Request::new().payload(payload).timeout(Some(self.limits.ack_timeout));
        let answered = async {
            // The time-out of the client does not cover its own full queue.
            tokio::time::timeout(self.limits.ack_timeout * 2, self.client.send_request(subject, request))
                .await
                .map_err(|_| WireFault::Silent)?
                .map_err(|error| match error.kind() {
                    RequestErrorKind::TimedOut => WireFault::Silent,
                    RequestErrorKind::NoResponders => WireFault::Nobody,
                    _ => WireFault::Other(error.to_string()),
                })
        };
        tokio::select! {
            answer = answered => answer,
            _ = link.wait_for(|l| !l.up || l.made != now.made) => Err(WireFault::Lost),
        }
    }

    /// A question that is answered with JSON.
    pub(super) async fn api(&self, subject: String, body: &Value) -> Result<Value, WireFault> {
        let answer = self.ask(subject, Bytes::from(body.to_string())).await?;
        verdict(&answer.payload)
    }

    /// Publishes into the stream and waits for the acknowledgement.
    pub(super) async fn publish(&self, subject: String, payload: Bytes) -> Result<(), WireFault> {
        let _permit = self.in_flight.acquire().await.map_err(|_| WireFault::Lost)?;
        let answer = self.ask(subject, payload).await?;
        verdict(&answer.payload).map(drop)
    }
}

fn verdict(answer: &[u8]) -> Result<Value, WireFault> {
    let value: Value = serde_json::from_slice(answer).map_err(|error| WireFault::Other(error.to_string()))?;
    match value.get("error") {
        None => Ok(value),
        Some(error) => Err(WireFault::Refused {
            code: error.get("err_code").and_then(Value::as_u64).unwrap_or_default(),
            text: error.get("description").and_then(Value::as_str).unwrap_or("refused").to_owned(),
        }),
    }
}
