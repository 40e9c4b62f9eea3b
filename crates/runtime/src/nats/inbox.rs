//! Receiving: the stream, the consumer, pulls, and putting cut payloads together.
//!
//! The consumer gives whole payloads and heads. The parts of a cut payload are read one by one when there is
//! room for all of them, so memory is bounded by [`Limits::assembly_bytes`](super::Limits) however many
//! senders there are, and what a sender announces is judged before a byte of it is read.

use std::collections::HashMap;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use async_nats::{Message, StatusCode, Subscriber};
use bytes::{Bytes, BytesMut};
use futures_util::{StreamExt, stream};
use serde_json::json;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tokio::task::{AbortHandle, JoinSet};

use super::config::Storage;
use super::connect::{Link, pause};
use super::frame::{self, Address, Frame, Head, LARGEST, Reason};
use super::post::{Event, Incident};
use super::subjects::{self, Token, api};
use super::wire::{Counts, Wire, WireFault};
use crate::transport::Delivery;

/// Parts of one payload that are asked for at the same time.
const WINDOW: usize = 8;
/// How often a part that is not there is asked for: copies of a stream may lag.
const TRIES: u32 = 4;
const PULL_EXPIRES: Duration = Duration::from_secs(20);
const HEARTBEAT: Duration = Duration::from_secs(4);
/// Without a message or a heartbeat for this long the consumer is taken to be gone.
const SILENCE: Duration = Duration::from_secs(10);
/// The broker forgets a consumer that nobody asks for this long.
const INACTIVE: Duration = Duration::from_secs(60);

const STREAM_NOT_FOUND: u64 = 10059;
const STREAM_NAME_IN_USE: u64 = 10058;

/// An event, and the room that it takes until somebody has it.
#[derive(Debug)]
pub(super) struct Packet {
    pub(super) event: Event,
    _room: Option<OwnedSemaphorePermit>,
}

/// How the stream is made.
#[derive(Debug, Clone, Copy)]
pub(super) struct StreamConfig {
    pub(super) manages: bool,
    pub(super) storage: Storage,
    pub(super) replicas: usize,
}

pub(super) struct Inbox {
    wire: Arc<Wire>,
    stream: StreamConfig,
    events: mpsc::Sender<Packet>,
    /// In KiB.
    room: Arc<Semaphore>,
    room_total: u32,
    assemblies: JoinSet<(Token, String)>,
    open: HashMap<Token, HashMap<String, (Head, AbortHandle)>>,
}

impl Inbox {
    pub(super) fn new(wire: Arc<Wire>, stream: StreamConfig, events: mpsc::Sender<Packet>) -> Self {
        let bytes = wire.limits.assembly_bytes.max(wire.limits.max_payload);
        let room_total = (bytes.div_ceil(1024) as u64).min(u64::from(u32::MAX >> 4)) as u32;
        let room = Arc::new(Semaphore::new(room_total as usize));
        Self { wire, stream, events, room, room_total, assemblies: JoinSet::new(), open: HashMap::new() }
    }

    /// Keeps the mailbox open and passes on what is in it, until nobody listens.
    pub(super) async fn run(mut self) {
        let mut link = self.wire.link.clone();
        let mut opened = false;
        loop {
            let Ok(now) = link.wait_for(|l| l.up).await.map(|l| *l) else { return };
            let Some((inbox, mut messages)) = self.establish(now).await else { continue };
            self.wire.ready.send_replace(true);
            if opened && self.pass(Event::Reconnected, None).await.is_break() {
                return;
            }
            opened = true;
            let end = self.pull(&inbox, &mut messages, now).await;
            self.wire.ready.send_replace(false);
            match end {
                End::NobodyListens => return,
                End::LinkLost => {
                    if self.pass(Event::Disconnected, None).await.is_break() {
                        return;
                    }
                }
                End::Gone(why) => {
                    tracing::warn!(node = %self.wire.me, why, "the mailbox is gone; opening it again");
                    // Two nodes of one name take it from each other: not at full speed.
                    tokio::time::sleep(pause(3)).await;
                }
            }
        }
    }

    async fn pass(&self, event: Event, room: Option<OwnedSemaphorePermit>) -> ControlFlow<()> {
        count(&self.wire, &event);
        match self.events.send(Packet { event, _room: room }).await {
            Ok(()) => ControlFlow::Continue(()),
            Err(_) => ControlFlow::Break(()),
        }
    }

    /// Stream, consumer, subscription; again until they are there. `None`: the connection changed.
    async fn establish(&self, link: Link) -> Option<(String, Subscriber)> {
        let mut said = None;
        for attempt in 1.. {
            match self.try_establish().await {
                Ok(messages) => return Some(messages),
                Err(fault) => {
                    if said.as_ref() != Some(&fault) {
                        let waits = matches!(&fault, WireFault::Refused { code: STREAM_NOT_FOUND, .. });
                        if waits {
                            tracing::info!(node = %self.wire.me, "waiting for a server to open the run");
                        } else {
                            tracing::warn!(node = %self.wire.me, %fault, "no mailbox yet");
                        }
                        self.wire.counts.note(fault.to_string());
                        said = Some(fault);
                    }
                }
            }
            tokio::time::sleep(pause(attempt)).await;
            if *self.wire.link.borrow() != link {
                return None;
            }
        }
        None
    }

    async fn try_establish(&self) -> Result<(String, Subscriber), WireFault> {
        let (run, me) = (&self.wire.run, &self.wire.me);
        if self.stream.manages {
            let created = self.wire.api(api::create_stream(run), &self.stream_config()).await;
            match created {
                Err(WireFault::Refused { code: STREAM_NAME_IN_USE, .. }) => {
                    tracing::debug!(run, "the stream is there with other settings; using it");
                }
                other => drop(other?),
            }
        }
        // A consumer of an earlier life has its position; only a new one gives everything that is stored.
        match self.wire.api(api::delete_consumer(run, me), &json!({})).await {
            Ok(_) | Err(WireFault::Refused { .. }) => {}
            Err(other) => return Err(other),
        }
        let filter = subjects::mailbox(run, me);
        let config = json!({
            "stream_name": subjects::stream(run),
            "config": {
                "name": subjects::consumer(me),
                "filter_subject": filter,
                "deliver_policy": "last_per_subject",
                "ack_policy": "none",
                "replay_policy": "instant",
                "mem_storage": true,
                "num_replicas": 1,
                "inactive_threshold": INACTIVE.as_nanos() as u64,
            },
        });
        self.wire.api(api::create_consumer(run, me), &config).await?;
        let inbox = self.wire.client.new_inbox();
        let messages = self.wire.client.subscribe(inbox.clone()).await;
        messages.map(|messages| (inbox, messages)).map_err(|error| WireFault::Other(error.to_string()))
    }

    fn stream_config(&self) -> serde_json::Value {
        let run = &self.wire.run;
        json!({
            "name": subjects::stream(run),
            "subjects": [subjects::tree(run)],
            "retention": "limits",
            "max_consumers": -1,
            "max_msgs": -1,
            "max_bytes": -1,
            "max_age": 0,
            "max_msgs_per_subject": 1,
            "max_msg_size": LARGEST + 1024,
            "discard": "old",
            "storage": match self.stream.storage { Storage::File => "file", Storage::Memory => "memory" },
            "num_replicas": self.stream.replicas.max(1),
            "allow_direct": true,
        })
    }

    async fn pull(&mut self, inbox: &str, messages: &mut Subscriber, link: Link) -> End {
        let subject = self.wire.local(&api::pull(&self.wire.run, &self.wire.me));
        let body = json!({
            "batch": self.wire.limits.pull_messages,
            "max_bytes": self.wire.limits.pull_bytes.max(LARGEST * 2),
            "expires": PULL_EXPIRES.as_nanos() as u64,
            "idle_heartbeat": HEARTBEAT.as_nanos() as u64,
        });
        let body = Bytes::from(body.to_string());
        let mut watch = self.wire.link.clone();
        loop {
            let asked = self.wire.client.publish_with_reply(subject.clone(), inbox.to_owned(), body.clone());
            match tokio::time::timeout(SILENCE, asked).await {
                Ok(Ok(())) => {}
                Ok(Err(error)) => return End::Gone(error.to_string()),
                Err(_) => return End::LinkLost,
            }
            let mut left = self.wire.limits.pull_messages;
            while left > 0 {
                let message = tokio::select! {
                    // What arrived goes first, also when the connection is gone.
                    biased;
                    message = messages.next() => message,
                    Some(done) = self.assemblies.join_next() => {
                        if let Ok((from, slot)) = done {
                            self.forget(&from, &slot);
                        }
                        continue;
                    }
                    _ = watch.wait_for(|l| *l != link) => return End::LinkLost,
                    () = self.events.closed() => return End::NobodyListens,
                    () = tokio::time::sleep(SILENCE) => return End::Gone("the broker went silent".to_owned()),
                };
                let Some(message) = message else { return End::LinkLost };
                match after(&message) {
                    After::Take => {
                        left -= 1;
                        if self.take(&message).await.is_break() {
                            return End::NobodyListens;
                        }
                    }
                    After::Wait => {}
                    After::PullAgain => break,
                    After::Reopen(why) => return End::Gone(why),
                }
            }
        }
    }

    async fn take(&mut self, message: &Message) -> ControlFlow<()> {
        let (run, me) = (&self.wire.run, &self.wire.me);
        let Some((from, slot)) = subjects::parse(run, me, &message.subject) else {
            tracing::warn!(subject = %message.subject, "a message under a subject that no node uses");
            return ControlFlow::Continue(());
        };
        let at = Address { run, to: me, from: &from, slot: &slot };
        // No node sets headers; an answer of the broker that was led here by its reply subject has some.
        let opened = if message.headers.is_some() {
            Err(Reason::Headers)
        } else {
            frame::open(at, &message.payload).and_then(|frame| match frame {
                Frame::Head(head) => head.check(self.wire.limits.max_payload).map(|()| Frame::Head(head)),
                Frame::Part { .. } => Err(Reason::Kind(2)),
                whole @ Frame::Whole(_) => Ok(whole),
            })
        };
        match opened {
            Ok(Frame::Head(head)) => {
                if self.assemble(&from, &slot, head) {
                    return ControlFlow::Continue(());
                }
                self.pass(Event::Incident(Incident { from, slot, reason: Reason::Flood }), None).await
            }
            Ok(Frame::Whole(payload)) => {
                self.forget_and_stop(&from, &slot);
                self.pass(Event::Delivery(Delivery { from, slot, payload }), None).await
            }
            Ok(Frame::Part { .. }) => ControlFlow::Continue(()),
            Err(reason) => self.pass(Event::Incident(Incident { from, slot, reason }), None).await,
        }
    }

    /// Starts reading the parts of a payload; an older one of the slot is given up.
    fn assemble(&mut self, from: &Token, slot: &str, head: Head) -> bool {
        while let Some(done) = self.assemblies.try_join_next() {
            if let Ok((from, slot)) = done {
                self.forget(&from, &slot);
            }
        }
        // A resend of what is being read: starting over each time, a large payload might never be complete.
        let known = self.open.get(from).and_then(|open| open.get(slot));
        if known.is_some_and(|(known, task)| *known == head && !task.is_finished()) {
            return true;
        }
        self.forget_and_stop(from, slot);
        let open = self.open.entry(from.clone()).or_default();
        open.retain(|_, (_, task)| !task.is_finished());
        if open.len() >= self.wire.limits.waiting_per_sender {
            return false;
        }
        let task = Assembly {
            wire: Arc::clone(&self.wire),
            room: Arc::clone(&self.room),
            room_total: self.room_total,
            events: self.events.clone(),
            from: from.clone(),
            slot: slot.to_owned(),
            head,
        };
        open.insert(slot.to_owned(), (head, self.assemblies.spawn(task.run())));
        true
    }

    fn forget_and_stop(&mut self, from: &Token, slot: &str) {
        if let Some((_, task)) = self.open.get_mut(from).and_then(|open| open.remove(slot)) {
            task.abort();
        }
    }

    /// After a task has ended; a newer one of the slot stays.
    fn forget(&mut self, from: &Token, slot: &str) {
        let Some(open) = self.open.get_mut(from) else { return };
        if open.get(slot).is_some_and(|(_, task)| task.is_finished()) {
            open.remove(slot);
        }
        if open.is_empty() {
            self.open.remove(from);
        }
    }
}

/// Why pulling ended.
enum End {
    NobodyListens,
    LinkLost,
    Gone(String),
}

/// What a message of a pull means.
enum After {
    Take,
    Wait,
    PullAgain,
    Reopen(String),
}

fn after(message: &Message) -> After {
    match message.status {
        None | Some(StatusCode::OK) => After::Take,
        Some(StatusCode::IDLE_HEARTBEAT) => After::Wait,
        Some(StatusCode::NOT_FOUND | StatusCode::TIMEOUT) => After::PullAgain,
        Some(status) => {
            let text = message.description.as_deref().unwrap_or_default().to_lowercase();
            if text.contains("maxbytes") || text.contains("batch completed") {
                After::PullAgain
            } else {
                After::Reopen(format!("{status} {text}"))
            }
        }
    }
}

fn count(wire: &Wire, event: &Event) {
    match event {
        Event::Delivery(_) => Counts::add(&wire.counts.delivered),
        Event::Incident(_) => Counts::add(&wire.counts.incidents),
        Event::Reconnected | Event::Disconnected => {}
    }
}

/// A payload whose parts are being read.
struct Assembly {
    wire: Arc<Wire>,
    room: Arc<Semaphore>,
    room_total: u32,
    events: mpsc::Sender<Packet>,
    from: Token,
    slot: String,
    head: Head,
}

impl Assembly {
    async fn run(self) -> (Token, String) {
        let kib = (self.head.length.div_ceil(1024) as u32).min(self.room_total);
        if let Ok(room) = Arc::clone(&self.room).acquire_many_owned(kib).await {
            let held = (self.room_total as usize - self.room.available_permits()) as u64 * 1024;
            self.wire.counts.most_assembly_bytes.fetch_max(held, Ordering::Relaxed);
            let (from, slot) = (self.from.clone(), self.slot.clone());
            let event = match self.read().await {
                Ok(Some(payload)) => Some(Event::Delivery(Delivery { from, slot, payload })),
                Ok(None) => None,
                Err(reason) => Some(Event::Incident(Incident { from, slot, reason })),
            };
            if let Some(event) = event {
                count(&self.wire, &event);
                let _ = self.events.send(Packet { event, _room: Some(room) }).await;
            }
        }
        (self.from, self.slot)
    }

    /// `None`: the connection went; the head comes again.
    async fn read(&self) -> Result<Option<Bytes>, Reason> {
        let mut payload = BytesMut::with_capacity(self.head.length as usize);
        let mut hasher = blake3::Hasher::new();
        let mut parts = stream::iter(0..self.head.parts).map(|index| self.part(index)).buffered(WINDOW);
        while let Some(part) = parts.next().await {
            let Some(bytes) = part? else { return Ok(None) };
            hasher.update(&bytes);
            payload.extend_from_slice(&bytes);
        }
        if hasher.finalize().as_bytes() == &self.head.digest {
            Ok(Some(payload.freeze()))
        } else {
            Err(Reason::Digest)
        }
    }

    async fn part(&self, index: u32) -> Result<Option<Bytes>, Reason> {
        let Self { wire, from, slot, head, .. } = self;
        let at = Address { run: &wire.run, to: &wire.me, from, slot };
        let subject = api::get(&wire.run, &subjects::part(&wire.run, &wire.me, from, slot, index));
        for attempt in 1..=TRIES {
            let answer = {
                let Ok(_permit) = wire.reads.acquire().await else { return Ok(None) };
                wire.ask(subject.clone(), Bytes::new()).await
            };
            match answer {
                Ok(message) if message.status.is_none() => {
                    return match frame::open(at, &message.payload)? {
                        Frame::Part { head: other, .. } if other != *head => Err(Reason::Replaced(index)),
                        Frame::Part { index: i, bytes, .. }
                            if i == index && bytes.len() == head.range(i).len() =>
                        {
                            Ok(Some(bytes))
                        }
                        _ => Err(Reason::Inconsistent),
                    };
                }
                Err(WireFault::Lost) => return Ok(None),
                Ok(_) | Err(_) => tokio::time::sleep(pause(attempt as usize)).await,
            }
        }
        Err(Reason::Missing(index))
    }
}
