//! The transport on a real broker. Nothing is mocked; `scripts/setup` brings the broker.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use bytes::Bytes;
use fedkin_runtime::nats::{
    ACCOUNT_API, Access, Broker, Delivery, Event, Incident, Limits, PART, Post, PostConfig, PostError,
    Reason, Token, broker_accounts, client_permissions, observer_permissions, probe, server_permissions,
    subjects,
};
use futures_util::StreamExt;
use tempfile::TempDir;
use tokio::time::timeout;

const RUN: &str = "00112233445566ff";
const SOON: Duration = Duration::from_secs(20);

fn broker() -> (TempDir, Broker) {
    let dir = tempfile::tempdir().unwrap();
    let broker = Broker::start(dir.path()).unwrap();
    (dir, broker)
}

async fn server(broker: &Broker, name: &str) -> Post {
    Post::open(PostConfig::new(&broker.url(), RUN, Token::of(name)).manager()).await.unwrap()
}

async fn client(broker: &Broker, name: &str) -> Post {
    Post::open(PostConfig::new(&broker.url(), RUN, Token::of(name))).await.unwrap()
}

/// A client of the library, without any rule of ours.
async fn raw(url: &str) -> async_nats::Client {
    let address: async_nats::ServerAddr = url.parse().unwrap();
    let (user, password) = (address.username().unwrap().to_owned(), address.password().unwrap().to_owned());
    async_nats::ConnectOptions::new()
        .custom_inbox_prefix(format!("_INBOX_{user}"))
        .user_and_password(user, password)
        .connect(address)
        .await
        .unwrap()
}

/// Bytes that look like nothing, different for every seed.
fn noise(length: usize, seed: u64) -> Bytes {
    let mut bytes = vec![0; length];
    let mut hasher = blake3::Hasher::new();
    hasher.update(&seed.to_le_bytes()).finalize_xof().fill(&mut bytes);
    bytes.into()
}

async fn next(post: &mut Post) -> Event {
    timeout(SOON, post.next()).await.expect("an event in time")
}

async fn delivery(post: &mut Post) -> Delivery {
    loop {
        match next(post).await {
            Event::Delivery(delivery) => return delivery,
            Event::Incident(incident) => panic!("{incident}"),
            Event::Reconnected | Event::Disconnected => {}
        }
    }
}

async fn incident(post: &mut Post) -> Incident {
    match next(post).await {
        Event::Incident(incident) => incident,
        other => panic!("{other:?}"),
    }
}

async fn nothing(post: &mut Post) {
    if let Ok(event) = timeout(Duration::from_millis(300), post.next()).await {
        panic!("{event:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn payloads_of_all_sizes_arrive_unchanged() {
    let (_dir, broker) = broker();
    let mut server = server(&broker, "server 1").await;
    let client = client(&broker, "client.1").await;
    for (i, length) in [0, 1, PART - 1, PART, PART + 1, 1 << 20, 10 << 20].into_iter().enumerate() {
        let payload = noise(length, i as u64);
        client.send(&Token::of("server 1"), "up-0", payload.clone()).unwrap();
        let got = delivery(&mut server).await;
        assert_eq!((got.from, got.slot.as_str()), (Token::of("client.1"), "up-0"));
        assert!(got.payload == payload, "{length} bytes");
    }
    assert!(client.flush(SOON).await);
    let counters = client.counters();
    assert_eq!((counters.sent, counters.failed), (7, 0));
    assert_eq!(server.counters().delivered, 7);

    let wrong = client.send(&Token::of("server 1"), "a.b", Bytes::new());
    assert!(matches!(wrong, Err(PostError::Slot(_))));
    let large = client.send(&Token::of("server 1"), "up-0", Bytes::from(vec![0; (64 << 20) + 1]));
    assert!(matches!(large, Err(PostError::TooLarge { .. })));
}

fn peak_memory() -> u64 {
    let text = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = text.lines().find(|line| line.starts_with("VmHWM")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() * 1024
}

#[tokio::test(flavor = "multi_thread")]
async fn fifty_senders_of_ten_megabytes_at_once_stay_in_bounds() {
    const SENDERS: usize = 50;
    let (_dir, broker) = broker();
    let payload = noise(10_000_000, 1);
    let limits = Limits { assembly_bytes: 64 << 20, ..Limits::default() };
    let config = PostConfig { limits, ..PostConfig::new(&broker.url(), RUN, Token::of("server")) };
    let mut server = Post::open(config.manager()).await.unwrap();
    let mut senders = Vec::new();
    for i in 0..SENDERS {
        senders.push(client(&broker, &format!("c{i}")).await);
    }
    let before = peak_memory();
    for sender in &senders {
        sender.send(&Token::of("server"), "up-0", payload.clone()).unwrap();
    }
    let mut got = BTreeSet::new();
    while got.len() < SENDERS {
        let one = timeout(Duration::from_secs(60), delivery(&mut server)).await.unwrap();
        assert!(one.payload == payload);
        got.insert(one.from);
    }
    for sender in &senders {
        assert_eq!(sender.counters().failed, 0, "{:?}", sender.counters());
    }
    let counters = server.counters();
    assert_eq!((counters.delivered, counters.incidents), (SENDERS as u64, 0));
    assert!(counters.most_assembly_bytes <= 64 << 20, "{}", counters.most_assembly_bytes);
    assert!(counters.most_assembly_bytes > 10_000_000);
    // All payloads together are 500 MB; the senders of this process share one copy.
    let growth = peak_memory() - before;
    assert!(growth < 250_000_000, "{growth} bytes");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_late_start_gets_the_last_payload_of_every_slot_and_no_older_one() {
    let (_dir, broker) = broker();
    let server = server(&broker, "s").await;
    let to = Token::of("late");
    for round in 0..5_u64 {
        for slot in ["ask-0", "ask-1"] {
            server.send(&to, slot, noise(100, round)).unwrap();
        }
        server.send(&to, "big", noise(2 * PART + 7, round)).unwrap();
        assert!(server.flush(SOON).await);
    }
    for _ in 0..2 {
        let mut late = client(&broker, "late").await;
        let mut got = BTreeMap::new();
        for _ in 0..3 {
            let one = delivery(&mut late).await;
            got.insert(one.slot, one.payload);
        }
        assert_eq!(got["ask-0"], noise(100, 4));
        assert_eq!(got["ask-1"], noise(100, 4));
        assert_eq!(got["big"], noise(2 * PART + 7, 4));
        nothing(&mut late).await;
        // And again for the next life of the same node.
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_waits_for_the_stream_and_loses_nothing() {
    let (_dir, broker) = broker();
    let early = client(&broker, "early").await;
    early.send(&Token::of("s"), "hello", Bytes::from("old")).unwrap();
    early.send(&Token::of("s"), "hello", Bytes::from("new")).unwrap();
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert_eq!(early.counters().sent, 0);
    let mut server = server(&broker, "s").await;
    assert_eq!(delivery(&mut server).await.payload, "new");
    nothing(&mut server).await;
    assert_eq!(early.counters().replaced, 1);
}

/// Waits for the post to lose its broker and to have it again.
async fn back(post: &mut Post) {
    let mut lost = false;
    loop {
        match next(post).await {
            Event::Disconnected => lost = true,
            Event::Reconnected => break,
            Event::Delivery(_) => {}
            Event::Incident(incident) => panic!("{incident}"),
        }
    }
    assert!(lost, "reconnected without a word about the loss");
}

/// As a node does: send, and again now and then, until the other side has it.
async fn resend_until_there(from: &Post, to: &mut Post, name: &str, slot: &str, payload: &Bytes) {
    let arrives = async {
        loop {
            from.send(&Token::of(name), slot, payload.clone()).unwrap();
            let deadline = tokio::time::Instant::now() + Duration::from_millis(500);
            while let Ok(event) = tokio::time::timeout_at(deadline, to.next()).await {
                match event {
                    Event::Delivery(got) if got.slot == slot && got.payload == *payload => return,
                    // A resend took the place of what was being read: it comes next.
                    Event::Incident(Incident { reason: Reason::Replaced(_), .. }) => {}
                    Event::Incident(incident) => panic!("{incident}"),
                    _ => {}
                }
            }
        }
    };
    timeout(SOON, arrives).await.expect("arrives");
}

#[tokio::test(flavor = "multi_thread")]
async fn traffic_resumes_after_the_broker_was_killed() {
    let (_dir, mut broker) = broker();
    let mut server = server(&broker, "s").await;
    let mut client = client(&broker, "c").await;
    resend_until_there(&client, &mut server, "s", "up-0", &noise(1000, 0)).await;
    for round in 1..3 {
        broker.kill();
        // While it is away nothing blocks, and a payload that waits is replaced by a newer one.
        for i in 0..1000 {
            client.send(&Token::of("s"), "up-1", noise(50_000, i)).unwrap();
        }
        tokio::time::sleep(Duration::from_millis(300)).await;
        broker.restart().unwrap();
        tokio::join!(back(&mut server), back(&mut client));
        resend_until_there(&client, &mut server, "s", "up-2", &noise(1_000_000, round)).await;
        resend_until_there(&server, &mut client, "c", "ask-0", &noise(1000, round)).await;
    }
    assert!(client.counters().failed < 1000);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wiped_broker_gets_its_stream_back() {
    let (_dir, mut broker) = broker();
    let mut server = server(&broker, "s").await;
    let mut client = client(&broker, "c").await;
    resend_until_there(&client, &mut server, "s", "up-0", &noise(1_000_000, 0)).await;
    resend_until_there(&server, &mut client, "c", "ask-0", &noise(1000, 0)).await;
    broker.wipe().unwrap();
    tokio::join!(back(&mut server), back(&mut client));
    // The same bytes again: no duplicate window swallows them.
    resend_until_there(&client, &mut server, "s", "up-0", &noise(1_000_000, 0)).await;
    resend_until_there(&server, &mut client, "c", "ask-0", &noise(1000, 0)).await;

    // The stream alone vanishes, the connection stays.
    let outside = raw(&broker.url()).await;
    let deleted = outside.request(format!("$JS.API.STREAM.DELETE.fedkin_{RUN}"), "".into()).await.unwrap();
    assert!(
        deleted
            .payload
            .starts_with(br#"{"type":"io.nats.jetstream.api.v1.stream_delete_response","success":true"#)
    );
    assert_eq!(next(&mut server).await, Event::Reconnected);
    assert_eq!(next(&mut client).await, Event::Reconnected);
    resend_until_there(&client, &mut server, "s", "up-0", &noise(1000, 0)).await;
    resend_until_there(&server, &mut client, "c", "ask-0", &noise(1000, 0)).await;
}

/// What the head of a cut payload looks like on the wire; written down here a second time on purpose.
fn head(from: &str, slot: &str, digest: [u8; 32], length: u64, parts: u32) -> Vec<u8> {
    let mut body = digest.to_vec();
    body.extend(length.to_le_bytes());
    body.extend(parts.to_le_bytes());
    frame(from, slot, 1, &body)
}

fn frame(from: &str, slot: &str, kind: u16, body: &[u8]) -> Vec<u8> {
    let mut hasher = blake3::Hasher::new_derive_key("fedkin 2025 transport frame checksum");
    for field in [RUN, "s", from, slot] {
        hasher.update(&(field.len() as u64).to_le_bytes()).update(field.as_bytes());
    }
    hasher.update(&1_u16.to_le_bytes()).update(&kind.to_le_bytes()).update(body);
    let mut out = b"FKNP\x01\x00".to_vec();
    out.extend(kind.to_le_bytes());
    out.extend(&hasher.finalize().as_bytes()[..16]);
    out.extend(body);
    out
}

#[tokio::test(flavor = "multi_thread")]
async fn junk_of_all_kinds_is_named_and_harms_nobody_else() {
    let (_dir, broker) = broker();
    let mut server = server(&broker, "s").await;
    let good = client(&broker, "good").await;
    let outside = raw(&broker.url()).await;
    let put = async |slot: &str, bytes: Vec<u8>| {
        outside.request(format!("fedkin.{RUN}.s.bad.{slot}"), bytes.into()).await.unwrap();
    };
    let reason = async |server: &mut Post, slot: &str| {
        let incident = incident(server).await;
        assert_eq!((incident.from.as_str(), incident.slot.as_str()), ("bad", slot));
        assert!(incident.to_string().contains("from bad"));
        incident.reason
    };

    put("a", noise(5000, 1).to_vec()).await;
    assert_eq!(reason(&mut server, "a").await, Reason::NotAFrame);
    put("a", Vec::new()).await;
    assert_eq!(reason(&mut server, "a").await, Reason::Truncated);
    let fine = frame("bad", "b", 0, b"payload");
    put("b", fine[..fine.len() - 1].to_vec()).await;
    assert_eq!(reason(&mut server, "b").await, Reason::Checksum);
    put("b", fine[..20].to_vec()).await;
    assert_eq!(reason(&mut server, "b").await, Reason::Truncated);
    let mut newer = fine.clone();
    newer[4] = 7;
    put("b", newer).await;
    assert_eq!(reason(&mut server, "b").await, Reason::Version { found: 7 });
    put("b", frame("good", "b", 0, b"payload")).await;
    assert_eq!(reason(&mut server, "b").await, Reason::Checksum);
    put("b", frame("bad", "b", 9, b"payload")).await;
    assert_eq!(reason(&mut server, "b").await, Reason::Kind(9));
    // The frames made here are the real thing.
    put("b", fine).await;
    assert_eq!(delivery(&mut server).await.payload, "payload");

    // Announced: 100 GB; parts that contradict the length; parts that are not there.
    put("c", head("bad", "c", [1; 32], 100_000_000_000, 520_834)).await;
    let refused = Reason::TooLarge { announced: 100_000_000_000, limit: 64 << 20 };
    assert_eq!(reason(&mut server, "c").await, refused);
    put("c", head("bad", "c", [1; 32], 1_000_000, u32::MAX)).await;
    assert_eq!(reason(&mut server, "c").await, Reason::Inconsistent);
    put("c", head("bad", "c", [1; 32], 1_000_000, 6)).await;
    assert!(matches!(reason(&mut server, "c").await, Reason::Missing(_)));

    // 100 MB of junk in parts that nobody announced: not even read. Announced ones: the first one tells.
    let junk = noise(PART, 3);
    for i in 0..534 {
        let subject = format!("fedkin.{RUN}.s.bad.d.{i}");
        if i % 50 == 0 {
            outside.request(subject, junk.clone()).await.unwrap();
        } else {
            outside.publish(subject, junk.clone()).await.unwrap();
        }
    }
    outside.flush().await.unwrap();
    let before = server.counters();
    put("d", head("bad", "d", [1; 32], 300 * PART as u64, 300)).await;
    assert_eq!(reason(&mut server, "d").await, Reason::NotAFrame);
    // Parts that are sealed, of the announced payload, and still not it.
    let mut body = [1; 32].to_vec();
    body.extend((PART as u64 + 1).to_le_bytes());
    body.extend(2_u32.to_le_bytes());
    for (i, bytes) in [junk.to_vec(), vec![0]].into_iter().enumerate() {
        let part = [&body[..], &(i as u32).to_le_bytes(), &bytes].concat();
        put(&format!("e.{i}"), frame("bad", "e", 2, &part)).await;
    }
    put("e", head("bad", "e", [1; 32], PART as u64 + 1, 2)).await;
    assert_eq!(reason(&mut server, "e").await, Reason::Digest);
    put("e", head("bad", "e", [2; 32], PART as u64 + 1, 2)).await;
    assert!(matches!(reason(&mut server, "e").await, Reason::Replaced(_)));

    // A message with headers, as an answer of the broker has that was led into a mailbox.
    let mut headers = async_nats::HeaderMap::new();
    headers.insert("Nats-Subject", "elsewhere");
    let sealed = frame("bad", "f", 0, b"payload");
    outside.publish_with_headers(format!("fedkin.{RUN}.s.bad.f"), headers, sealed.into()).await.unwrap();
    assert_eq!(reason(&mut server, "f").await, Reason::Headers);

    assert_eq!(server.counters().delivered, before.delivered);
    let payload = noise(3_000_000, 4);
    good.send(&Token::of("s"), "up-0", payload.clone()).unwrap();
    assert_eq!(delivery(&mut server).await.payload, payload);
    assert_eq!(server.counters().incidents, 14);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_flood_from_one_sender_leaves_room_for_the_others() {
    let (_dir, broker) = broker();
    let limits = Limits { waiting_per_sender: 4, ..Limits::default() };
    let config = PostConfig { limits, ..PostConfig::new(&broker.url(), RUN, Token::of("s")) };
    let mut server = Post::open(config.manager()).await.unwrap();
    let outside = raw(&broker.url()).await;
    for i in 0..200 {
        let slot = format!("up-{i}");
        let announced = head("bad", &slot, [1; 32], 60 << 20, 320);
        outside.publish(format!("fedkin.{RUN}.s.bad.{slot}"), announced.into()).await.unwrap();
    }
    outside.flush().await.unwrap();
    let good = client(&broker, "good").await;
    let payload = noise(3_000_000, 4);
    good.send(&Token::of("s"), "up-0", payload.clone()).unwrap();
    let (mut floods, mut arrived) = (0, false);
    while !arrived || floods < 190 {
        match next(&mut server).await {
            Event::Incident(incident) if incident.reason == Reason::Flood => floods += 1,
            Event::Delivery(got) => arrived = got.payload == payload,
            Event::Incident(Incident { reason: Reason::Missing(_), .. }) => {}
            other => panic!("{other:?}"),
        }
    }
    assert!(server.counters().most_assembly_bytes <= 128 << 20);
}

/// A broker whose config is made of the permissions: servers s and t, clients a and b of s, an observer.
fn permitted() -> (TempDir, Broker) {
    let [s, t, a, b, o] = ["s", "t", "a", "b", "o"].map(Token::of);
    let nodes = [
        (&s, server_permissions(RUN, &s, &[t.clone(), a.clone(), b.clone()])),
        (&t, server_permissions(RUN, &t, std::slice::from_ref(&s))),
        (&a, client_permissions(RUN, &a, std::slice::from_ref(&s))),
        (&b, client_permissions(RUN, &b, std::slice::from_ref(&s))),
        (&o, observer_permissions(RUN, &o)),
    ];
    let nodes = nodes.map(|(node, permissions)| Access {
        node: node.clone(),
        login: format!("user: {node}, password: pw"),
        permissions,
    });
    // A user of the inner account, for the tests to look.
    let config = broker_accounts(&nodes).replacen(
        "jetstream: enabled",
        "jetstream: enabled\n    users: [ { user: root, password: pw } ]",
        1,
    );
    let dir = tempfile::tempdir().unwrap();
    let broker = Broker::with_config(dir.path(), &config).unwrap();
    (dir, broker)
}

async fn open_as(broker: &Broker, name: &str, manages: bool) -> Post {
    let mut config = PostConfig::new(&broker.url_as(name, "pw"), RUN, Token::of(name));
    config.manages_stream = manages;
    config.api_prefix = ACCOUNT_API.into();
    Post::open(config).await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_permissions_are_enough() {
    let (_dir, mut broker) = permitted();
    let mut s = open_as(&broker, "s", true).await;
    let mut t = open_as(&broker, "t", true).await;
    let mut a = open_as(&broker, "a", false).await;
    for length in [100, 1_000_000] {
        for from in [&a, &t] {
            resend_until_there(from, &mut s, "s", "up-0", &noise(length, 1)).await;
        }
        resend_until_there(&s, &mut a, "a", "ask-0", &noise(length, 2)).await;
        resend_until_there(&s, &mut t, "t", "share-0", &noise(length, 3)).await;
    }
    assert_eq!(s.read_status(&Token::of("a")).await.unwrap(), None);
    a.publish_status(r#"{"step":1}"#.into()).await.unwrap();
    a.publish_status(r#"{"step":2}"#.into()).await.unwrap();
    let status = s.read_status(&Token::of("a")).await.unwrap().unwrap();
    assert_eq!(status.bytes, r#"{"step":2}"#);
    assert!(status.age < Duration::from_secs(60), "{:?}", status.age);
    nothing(&mut s).await;
    broker.wipe().unwrap();
    tokio::join!(back(&mut s), back(&mut a));
    resend_until_there(&a, &mut s, "s", "up-0", &noise(1000, 1)).await;
    assert_eq!((s.counters().failed, t.counters().failed), (0, 0));
}

/// What the broker does with a question from a node: an answer, or a refusal of the permission.
async fn ask(client: &async_nats::Client, subject: String, body: &str) -> Result<String, String> {
    let request = client.request(subject, Bytes::from(body.to_owned()));
    match timeout(Duration::from_millis(400), request).await {
        Ok(Ok(answer)) => Ok(String::from_utf8_lossy(&answer.payload).into_owned()),
        Ok(Err(error)) => Err(error.to_string()),
        Err(_) => Err("no answer".to_owned()),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_permissions_are_not_more_than_enough() {
    let (_dir, broker) = permitted();
    let mut s = open_as(&broker, "s", true).await;
    let mut b = open_as(&broker, "b", false).await;
    let as_a = raw(&broker.url_as("a", "pw")).await;
    let stream = subjects::stream(RUN);

    // Listening to another: nothing comes.
    let mut listening = Vec::new();
    for subject in ["fedkin.>", ">", "_INBOX_b.>", "_INBOX.>", "$JS.>"] {
        listening.push(as_a.subscribe(subject).await.unwrap());
    }
    listening.push(as_a.subscribe(format!("fedkin.{RUN}.b.>")).await.unwrap());
    as_a.flush().await.unwrap();
    resend_until_there(&s, &mut b, "b", "ask-0", &noise(300_000, 1)).await;
    for subscription in &mut listening {
        assert!(!matches!(timeout(Duration::from_millis(50), subscription.next()).await, Ok(Some(_))));
    }

    // Consumers: on another's mailbox, by any door.
    let consumer = |name: &str, filter: &str| {
        format!(
            r#"{{"stream_name":"{stream}","config":{{"name":"{name}","filter_subject":"{filter}","deliver_policy":"all","ack_policy":"none"}}}}"#
        )
    };
    let theirs = format!("fedkin.{RUN}.b.*.*");
    let mine = format!("fedkin.{RUN}.a.*.*");
    let create = format!("$JS.API.CONSUMER.CREATE.{stream}");
    let forbidden = [
        (format!("{create}.a.{theirs}"), consumer("a", &theirs)),
        (format!("{create}.b.{theirs}"), consumer("b", &theirs)),
        (format!("{create}.b.{mine}"), consumer("b", &mine)),
        (format!("{create}.a"), consumer("a", &theirs)),
        (create.clone(), consumer("a", &theirs)),
        (format!("$JS.API.CONSUMER.DURABLE.CREATE.{stream}.a"), consumer("a", &theirs)),
        (format!("{create}.a.fedkin.{RUN}.a.>"), consumer("a", &format!("fedkin.{RUN}.a.>"))),
        (format!("$JS.API.CONSUMER.MSG.NEXT.{stream}.b"), "1".to_owned()),
        (format!("$JS.API.CONSUMER.DELETE.{stream}.b"), String::new()),
        (format!("$JS.API.CONSUMER.INFO.{stream}.b"), String::new()),
        (format!("$JS.API.DIRECT.GET.{stream}.fedkin.{RUN}.b.s.ask-0"), String::new()),
        (format!("$JS.API.DIRECT.GET.{stream}.fedkin.{RUN}.b.s.ask-0.0"), String::new()),
        (format!("$JS.API.DIRECT.GET.{stream}.fedkin.{RUN}.status.a.now"), String::new()),
        (format!("$JS.API.DIRECT.GET.{stream}"), r#"{"seq":1}"#.to_owned()),
        (format!("$JS.API.STREAM.MSG.GET.{stream}"), r#"{"seq":1}"#.to_owned()),
        (format!("$JS.API.STREAM.INFO.{stream}"), String::new()),
        (format!("$JS.API.STREAM.CREATE.{stream}"), format!(r#"{{"name":"{stream}"}}"#)),
        ("$JS.API.STREAM.CREATE.other".to_owned(), r#"{"name":"other","subjects":["other"]}"#.to_owned()),
        (format!("$JS.API.STREAM.UPDATE.{stream}"), format!(r#"{{"name":"{stream}"}}"#)),
        (format!("$JS.API.STREAM.PURGE.{stream}"), String::new()),
        (format!("$JS.API.STREAM.DELETE.{stream}"), String::new()),
        ("$JS.API.STREAM.NAMES".to_owned(), String::new()),
        ("$JS.API.INFO".to_owned(), String::new()),
        // Publishing: as another, to a node that is no peer, to oneself.
        (format!("fedkin.{RUN}.s.b.up-0"), "x".to_owned()),
        (format!("fedkin.{RUN}.b.a.up-0"), "x".to_owned()),
        (format!("fedkin.{RUN}.a.a.up-0"), "x".to_owned()),
        (format!("fedkin.{RUN}.status.b.now"), "x".to_owned()),
        ("fedkin.00112233445566ee.s.a.up-0".to_owned(), "x".to_owned()),
    ];
    let inner: Vec<_> =
        forbidden.iter().map(|(s, body)| (s.replace("$JS.API", ACCOUNT_API), body.clone())).collect();
    let forbidden = [&forbidden[..], &inner].concat();
    let asked = forbidden.iter().map(|(subject, body)| ask(&as_a, subject.clone(), body));
    let answers = futures_util::future::join_all(asked).await;
    for ((subject, _), answer) in forbidden.iter().zip(answers) {
        assert_eq!(answer, Err("no answer".to_owned()), "{subject}");
    }
    // The permitted subject with another filter inside.
    let several = format!(
        r#"{{"stream_name":"{stream}","config":{{"name":"a","filter_subjects":["{theirs}","{mine}"],"ack_policy":"none"}}}}"#
    );
    let durable = consumer("a", &mine).replace(r#""name":"a""#, r#""durable_name":"b""#);
    for body in [consumer("a", &theirs), consumer("a", ""), several, durable] {
        let answer =
            ask(&as_a, format!("{create}.a.{mine}").replace("$JS.API", ACCOUNT_API), &body).await.unwrap();
        assert!(answer.contains(r#""error""#), "{body}: {answer}");
    }
    // The name in the subject is the one that counts. Also the proof that these questions are asked properly.
    for name in ["a", "b"] {
        let answer =
            ask(&as_a, format!("{create}.a.{mine}").replace("$JS.API", ACCOUNT_API), &consumer(name, &mine))
                .await
                .unwrap();
        assert!(answer.contains(r#""name":"a""#) && !answer.contains(r#""error""#), "{answer}");
    }

    nothing(&mut s).await;
    nothing(&mut b).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn answers_led_elsewhere_by_their_reply_subject_do_nothing() {
    let (_dir, broker) = permitted();
    let mut s = open_as(&broker, "s", true).await;
    let mut a = open_as(&broker, "a", false).await;
    resend_until_there(&s, &mut a, "a", "ask-0", &noise(100, 1)).await;
    resend_until_there(&s, &mut a, "a", "big", &noise(300_000, 1)).await;
    drop(a);
    let as_a = raw(&broker.url_as("a", "pw")).await;
    let stream = subjects::stream(RUN);
    let mine = format!("fedkin.{RUN}.a.*.*");
    let consumer = format!(
        r#"{{"stream_name":"{stream}","config":{{"name":"a","filter_subject":"{mine}","deliver_policy":"all","ack_policy":"none"}}}}"#
    );
    let root = raw(&broker.url_as("root", "pw")).await;
    let stored = async || {
        let info = ask(&root, format!("$JS.API.STREAM.INFO.{stream}"), "").await.unwrap();
        let info: serde_json::Value = serde_json::from_str(&info).unwrap();
        (info["created"].to_string(), info["state"]["messages"].as_u64().unwrap())
    };
    let before = stored().await;
    assert!(before.1 >= 4, "{before:?}");
    // Commands of the broker's interface are empty or JSON; so are answers. And another's place in a mailbox.
    let targets = [
        format!("fedkin.{RUN}.s.b.up-0"),
        format!("$JS.API.STREAM.DELETE.{stream}"),
        format!("$JS.API.STREAM.PURGE.{stream}"),
        format!("$JS.API.CONSUMER.DELETE.{stream}.s"),
        format!("{ACCOUNT_API}.STREAM.DELETE.{stream}"),
    ];
    for (subject, body) in [
        (format!("{ACCOUNT_API}.CONSUMER.DELETE.{stream}.a"), ""),
        (format!("{ACCOUNT_API}.CONSUMER.CREATE.{stream}.a.{mine}"), consumer.as_str()),
        (format!("{ACCOUNT_API}.CONSUMER.MSG.NEXT.{stream}.a"), r#"{"batch":1,"no_wait":true}"#),
        (format!("{ACCOUNT_API}.DIRECT.GET.{stream}.fedkin.{RUN}.a.s.big.0"), ""),
        (format!("{ACCOUNT_API}.DIRECT.GET.{stream}.fedkin.{RUN}.a.s.none.0"), ""),
        (format!("fedkin.{RUN}.status.a.now"), "x"),
    ] {
        for target in &targets {
            as_a.publish_with_reply(subject.clone(), target.clone(), body.to_owned().into()).await.unwrap();
        }
    }
    as_a.flush().await.unwrap();
    tokio::time::sleep(Duration::from_millis(300)).await;
    nothing(&mut s).await;
    // The status is the one message that was written.
    assert_eq!(stored().await, (before.0, before.1 + 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_wrong_with_a_connection_is_said() {
    let (_dir, broker) = permitted();
    let open = async |url: &str| {
        let mut config = PostConfig::new(url, RUN, Token::of("a"));
        config.limits.connect_timeout = Duration::from_millis(400);
        Post::open(config).await.unwrap_err()
    };
    let begin = std::time::Instant::now();
    let refused = open("nats://127.0.0.1:1").await;
    assert!(matches!(refused, PostError::Refused { .. }), "{refused}");
    assert!(begin.elapsed() > Duration::from_millis(200));
    let stranger = open(&broker.url_as("a", "wrong")).await;
    assert!(matches!(stranger, PostError::Authorization(_)), "{stranger}");
    assert!(!stranger.to_string().contains("wrong"));
    let address = broker.url_as("a", "pw").replace("nats://", "tls://");
    let tls = open(&address).await;
    assert!(matches!(tls, PostError::Tls { .. }), "{tls}");
    let plain = open("nats://192.0.2.1:4222").await;
    assert!(plain.to_string().contains("--allow-plain"), "{plain}");
    let config = PostConfig::new(&broker.url(), "not a run", Token::of("a"));
    assert!(matches!(Post::open(config).await, Err(PostError::Run(_))));
    // No JetStream for the stream's manager: said at once, not waited for in silence.
    let mut config = PostConfig::new(&broker.url_as("a", "pw"), RUN, Token::of("a")).manager();
    config.limits.connect_timeout = Duration::from_millis(300);
    assert!(matches!(Post::open(config).await, Err(PostError::Mailbox { .. })));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_probe_measures() {
    let (_dir, broker) = broker();
    for (length, count) in [(2_000, 4_000), (100_000, 400), (1_000_000, 60)] {
        let rate = probe::request_reply(&broker.url(), noise(length, 1), count, 16).await.unwrap();
        println!("{length} bytes: {rate:.0} requests/s");
        assert!(rate > 1.0);
    }
    assert!(probe::request_reply(&broker.url(), noise(2 << 20, 1), 1, 1).await.is_err());
}
