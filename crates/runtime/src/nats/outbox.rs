//! Sending. One payload per receiver and slot waits at most: a newer one replaces it, so a node that resends
//! while the broker is away does not fill its memory.
//!
//! No `Nats-Msg-Id`: the broker would drop a resend inside its duplicate window even if it had lost, or had
//! replaced, the first copy. A slot makes a resend idempotent already.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::transport::Payload;
use futures_util::{StreamExt, TryStreamExt, stream};
use tokio::sync::Notify;
use tokio::task::JoinSet;

use super::frame::{self, Address, Head, PART};
use super::subjects::{self, Token};
use super::wire::{Counts, Wire, WireFault};

/// Payloads that are being sent at the same time.
const WORKERS: usize = 32;
/// Parts of one payload that are being sent at the same time.
const WINDOW: usize = 8;
/// A payload from this size on is hashed on a thread of its own.
const HASH_APART: usize = 1 << 20;

type Key = (Token, String);

#[derive(Debug, Default)]
struct Waiting {
    payloads: HashMap<Key, Payload>,
    order: VecDeque<Key>,
    /// Being sent: two payloads of one slot never mix their parts.
    busy: HashSet<Key>,
}

#[derive(Debug, Default)]
pub(super) struct Outbox {
    waiting: Mutex<Waiting>,
    added: Notify,
    idle: Notify,
}

impl Outbox {
    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the payload was taken; `replaced` counts the ones it pushed out.
    pub(super) fn push(
        &self,
        to: &Token,
        slot: &str,
        payload: Payload,
        limit: usize,
        counts: &Counts,
    ) -> bool {
        let key = (to.clone(), slot.to_owned());
        let mut waiting = self.lock();
        if let Some(older) = waiting.payloads.get_mut(&key) {
            *older = payload;
            Counts::add(&counts.replaced);
            return true;
        }
        if waiting.payloads.len() >= limit {
            return false;
        }
        if !waiting.busy.contains(&key) {
            waiting.order.push_back(key.clone());
        }
        waiting.payloads.insert(key, payload);
        drop(waiting);
        self.added.notify_one();
        true
    }

    async fn take(&self) -> (Key, Payload) {
        loop {
            let added = self.added.notified();
            {
                let mut waiting = self.lock();
                while let Some(key) = waiting.order.pop_front() {
                    if let Some(payload) = waiting.payloads.remove(&key) {
                        waiting.busy.insert(key.clone());
                        if !waiting.order.is_empty() {
                            self.added.notify_one();
                        }
                        return (key, payload);
                    }
                }
            }
            added.await;
        }
    }

    fn done(&self, key: &Key) {
        let mut waiting = self.lock();
        waiting.busy.remove(key);
        if waiting.payloads.contains_key(key) {
            waiting.order.push_back(key.clone());
            self.added.notify_one();
        }
        if waiting.busy.is_empty() && waiting.payloads.is_empty() {
            self.idle.notify_waiters();
        }
    }

    /// Waits until nothing waits and nothing is being sent.
    pub(super) async fn flushed(&self) {
        loop {
            let idle = self.idle.notified();
            {
                let waiting = self.lock();
                if waiting.busy.is_empty() && waiting.payloads.is_empty() {
                    return;
                }
            }
            idle.await;
        }
    }
}

/// Sends what is pushed, for as long as the task lives.
pub(super) async fn run(wire: Arc<Wire>, outbox: Arc<Outbox>) {
    let mut workers = JoinSet::new();
    for _ in 0..WORKERS {
        workers.spawn(work(Arc::clone(&wire), Arc::clone(&outbox)));
    }
    while workers.join_next().await.is_some() {}
}

async fn work(wire: Arc<Wire>, outbox: Arc<Outbox>) {
    let mut ready = wire.ready.subscribe();
    loop {
        if ready.wait_for(|ready| *ready).await.is_err() {
            return;
        }
        let (key, payload) = outbox.take().await;
        // It may have waited long for this one.
        if ready.wait_for(|ready| *ready).await.is_err() {
            return;
        }
        match send(&wire, &key.0, &key.1, &payload).await {
            Ok(()) => {
                wire.counts.sent.fetch_add(1, Ordering::Relaxed);
            }
            Err(fault) => {
                tracing::debug!(to = %key.0, slot = key.1, %fault, "not sent");
                wire.counts.fail(format!("{} to {}: {fault}", key.1, key.0));
            }
        }
        outbox.done(&key);
    }
}

async fn send(wire: &Wire, to: &Token, slot: &str, payload: &Payload) -> Result<(), WireFault> {
    let at = Address { run: &wire.run, to, from: &wire.me, slot };
    let subject = subjects::message(&wire.run, to, &wire.me, slot);
    if payload.len() <= PART {
        return wire.publish(subject, frame::whole(at, payload)).await;
    }
    let head = if payload.len() < HASH_APART {
        Head::of(payload)
    } else {
        let payload = payload.clone();
        let hashed = tokio::task::spawn_blocking(move || Head::of(&payload)).await;
        hashed.map_err(|error| WireFault::Other(error.to_string()))?
    };
    // The head is sent when all parts are stored: who reads it finds them.
    stream::iter(0..head.parts)
        .map(|index| async move {
            let sealed = frame::part(at, &head, index, payload);
            wire.publish(subjects::part(&wire.run, to, &wire.me, slot, index), sealed).await
        })
        .buffer_unordered(WINDOW)
        .try_collect::<()>()
        .await?;
    wire.publish(subject, frame::head(at, &head)).await
}
