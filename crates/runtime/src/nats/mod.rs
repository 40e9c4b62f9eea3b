//! The transport between machines: opaque payloads between named nodes, through a NATS broker that is trusted
//! with nothing. It may lose, double, delay and reorder messages, and lose its disk; whoever needs a payload to
//! arrive sends it again until the receiver says so.
//!
//! One stream per run holds the last message of every subject ([`subjects`]): receiver, sender, slot. A newer
//! message replaces the older one of its slot, so the broker's storage does not grow with the number of rounds.
//! A receiver gets what is stored for it when it starts and after every reconnect, and what comes after.
//!
//! A payload above [`PART`] bytes is cut: the parts are stored under subjects of their own, then a head that
//! names their digest, length and number. The receiver gets the head, and reads the parts when it has room for
//! all of them. This takes the place of the broker's object store, which keeps all objects of a bucket
//! under one permission, needs deleting, and pushes what is read; parts have the permissions of their link, are
//! replaced in place, and are read a bounded number at a time. So the broker never has more on the way to a
//! node than it tolerates, and a node holds no more than [`Limits::assembly_bytes`], whatever senders do.
//!
//! # Permissions
//!
//! [`client_permissions`] and [`server_permissions`] list what a node must be allowed; everything else is denied.
//! `S` stands for the stream `fedkin_<run>`, `R` for `fedkin.<run>`.
//!
//! | who | may | subject | for |
//! |---|---|---|---|
//! | both | publish | `R.<peer>.<me>.>` per peer | messages and parts |
//! | both | publish | `R.status.<me>.now` | its status |
//! | both | publish | `$JS.API.CONSUMER.CREATE.S.<me>.R.<me>.*.*` | its consumer, on its own mailbox only |
//! | both | publish | `$JS.API.CONSUMER.DELETE.S.<me>` | to start over |
//! | both | publish | `$JS.API.CONSUMER.MSG.NEXT.S.<me>` | pulls |
//! | both | publish | `$JS.API.DIRECT.GET.S.R.<me>.*.*.*` | parts for it |
//! | both | subscribe | `_INBOX_<me>.>` | answers of the broker |
//! | server | publish | `$JS.API.STREAM.CREATE.S` | the stream |
//! | server, observer | publish | `$JS.API.DIRECT.GET.S.R.status.*.now` | status of all nodes |
//! | observer | subscribe | `_INBOX_<me>.>` | answers of the broker |
//!
//! Nobody may list, read, change, purge or delete streams, and nobody publishes to an inbox: the broker itself
//! answers there.
//!
//! **As permissions of users these lists are not enough.** The broker does not check the reply subject of a
//! question and publishes its answer there with its own rights: on 2.15.1 a user with the list of a client above
//! deletes the stream by asking for a part that is not there with `$JS.API.STREAM.DELETE.S` as the reply
//! subject, and writes answers under another node's name. [`broker_accounts`] writes a config in which every node has
//! an account of its own that knows the listed subjects only; there both do nothing (tested). As a second line
//! of defence a frame's checksum covers its address ([`Reason::Checksum`]), and messages with headers, which
//! direct reads have, do not open ([`Reason::Headers`]). Frames are not signed: the names in [`Delivery::from`]
//! are as good as the broker's config.

mod broker;
mod config;
mod connect;
mod frame;
mod inbox;
mod outbox;
mod permissions;
mod post;
pub mod probe;
pub mod subjects;
mod watcher;
mod wire;

pub use crate::transport::Delivery;
pub use broker::{Broker, BrokerError, LEAST_VERSION, find as find_broker};
pub use config::{Limits, PostConfig, PostError, Storage, Tls};
pub use frame::{LARGEST, PART, Reason, VERSION};
pub use permissions::{
    ACCOUNT_API, Access, Permissions, broker_accounts, client_permissions, observer_permissions,
    server_permissions,
};
pub use post::{Event, Incident, MAX_STATUS, Post, Sender, Status};
pub use subjects::Token;
pub use watcher::Watcher;
pub use wire::Counters;
