//! What `fedkin provision` writes, on a real broker: members get in and keep to their subjects, others stay out.

use crate::bench::Bench;
use async_nats::jetstream::{self, consumer, stream};
use async_nats::{Client, ConnectOptions, Event};
use futures_util::StreamExt;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// The prefix of the broker's interface in a node's account.
const API: &str = "fedkin_api";
/// The longest wait for what must come; a machine under load may need most of it.
const WAIT: Duration = Duration::from_secs(30);
/// How long a question may stay without an answer: those that are forbidden are never answered.
const UNANSWERED: Duration = Duration::from_secs(2);
/// Long enough for a message that was let through to arrive.
const QUIET: Duration = Duration::from_millis(500);

/// The broker's program, or a word that the test did not run.
fn program() -> Option<PathBuf> {
    if let Some(path) = std::env::var_os("FEDKIN_NATS_SERVER") {
        let path = PathBuf::from(path);
        assert!(path.is_file(), "FEDKIN_NATS_SERVER names {}, which is not there", path.display());
        return Some(path);
    }
    let tools = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/tools");
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = std::iter::once(tools)
        .chain(std::env::split_paths(&path))
        .map(|folder| folder.join("nats-server"))
        .find(|file| file.is_file());
    if found.is_none() {
        crate::skipped::skipped("no nats-server; ./scripts/setup installs it, or set FEDKIN_NATS_SERVER");
    }
    found
}

/// A broker with its folder; ends with the test.
struct Broker {
    child: Child,
    port: u16,
}

impl Drop for Broker {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// Provisions, and starts the broker as the page says.
fn start(bench: &Bench, more: &[&str]) -> Option<Broker> {
    let program = program()?;
    let port = free_port();
    provision(bench, port, more);
    let log = std::fs::File::create(bench.path("broker.log")).unwrap();
    let child = Command::new(program)
        .args(["-c", "nats.conf"])
        .current_dir(bench.path("dep/broker"))
        .stdin(Stdio::null())
        .stderr(log.try_clone().unwrap())
        .stdout(log)
        .spawn()
        .unwrap();
    let broker = Broker { child, port };
    let started = Instant::now();
    while started.elapsed() < WAIT {
        if bench.read("broker.log").contains("Server is ready") {
            return Some(broker);
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    panic!("the broker did not start:\n{}", bench.read("broker.log"));
}

fn provision(bench: &Bench, port: u16, more: &[&str]) {
    let address = format!("localhost:{port}");
    bench.good(&[&["provision", "wards.toml", "--out", "dep", "--broker", &address], more].concat());
}

/// A connection as a node makes it, and what the broker complained about on it.
struct Node {
    client: Client,
    complaints: Arc<Mutex<Vec<String>>>,
}

fn options(me: &str) -> ConnectOptions {
    ConnectOptions::new()
        .require_tls(true)
        .connection_timeout(WAIT)
        .request_timeout(Some(WAIT))
        .custom_inbox_prefix(format!("_INBOX_{me}"))
}

async fn dial(options: ConnectOptions, port: u16) -> Result<Client, async_nats::ConnectError> {
    tokio::time::timeout(WAIT, options.connect(format!("tls://localhost:{port}"))).await.unwrap()
}

async fn node(bench: &Bench, port: u16, me: &str) -> Node {
    let folder = bench.path("dep/nodes").join(me);
    let complaints = Arc::new(Mutex::new(Vec::new()));
    let heard = Arc::clone(&complaints);
    let options = options(me)
        .add_root_certificates(folder.join("ca.pem"))
        .add_client_certificate(folder.join("node.pem"), folder.join("node.key"))
        .event_callback(move |event| {
            if let Event::ServerError(error) = &event {
                heard.lock().unwrap().push(error.to_string().to_lowercase());
            }
            std::future::ready(())
        });
    Node { client: dial(options, port).await.unwrap(), complaints }
}

impl Node {
    /// The broker says that this is not allowed, naming the subject. Its complaint comes beside the answers,
    /// so it is waited for.
    async fn is_told(&self, subject: &str) {
        let told =
            |text: &String| text.contains("permissions violation") && text.contains(&subject.to_lowercase());
        let asked = Instant::now();
        while !self.complaints.lock().unwrap().iter().any(told) {
            let complaints = self.complaints.lock().unwrap().clone();
            assert!(asked.elapsed() < WAIT, "no complaint about {subject} in {complaints:?}");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
}

/// A question that the broker refuses to pass on: an error, or silence.
async fn is_denied<T, E>(question: impl IntoFuture<Output = Result<T, E>>) -> bool {
    !matches!(tokio::time::timeout(UNANSWERED, question.into_future()).await, Ok(Ok(_)))
}

/// The name of the run in subjects.
fn run(bench: &Bench) -> String {
    let page = bench.read("dep/README.md");
    page.lines().next().unwrap().trim_start_matches("# Run ").to_string()
}

fn inbox(run: &str, me: &str) -> consumer::pull::Config {
    consumer::pull::Config {
        name: Some(me.to_string()),
        filter_subject: format!("fedkin.{run}.{me}.*.*"),
        ack_policy: consumer::AckPolicy::None,
        ..Default::default()
    }
}

#[tokio::test]
async fn members_get_in_and_talk_over_their_own_subjects_only() {
    let bench = Bench::new();
    bench.good(&["new"]);
    let Some(broker) = start(&bench, &["--hosts", "3"]) else { return };
    let run = run(&bench);
    let name = format!("fedkin_{run}");
    let north = node(&bench, broker.port, "north").await;
    let host = node(&bench, broker.port, "host-0").await;
    let other = node(&bench, broker.port, "host-1").await;

    // A server keeps the stream; a host asks for what is sent to it.
    let kept = jetstream::with_prefix(north.client.clone(), API);
    let config = stream::Config {
        name: name.clone(),
        subjects: vec![format!("fedkin.{run}.>")],
        ..Default::default()
    };
    // Creating it once more changes nothing and tells its state.
    let stored = async || kept.create_stream(config.clone()).await.unwrap().cached_info().state.messages;
    assert_eq!(stored().await, 0);
    let asked = jetstream::with_prefix(host.client.clone(), API);
    let stream = asked.get_stream_no_info(&name).await.unwrap();
    let mine = stream.create_consumer(inbox(&run, "host-0")).await.unwrap();
    let ask = format!("fedkin.{run}.host-0.north.ask");
    kept.publish(ask.clone(), "ask".into()).await.unwrap().await.unwrap();
    let mut batch = mine.batch().max_messages(1).expires(WAIT).messages().await.unwrap();
    let message = tokio::time::timeout(WAIT, batch.next()).await.unwrap().unwrap().unwrap();
    assert_eq!((message.subject.as_str(), message.payload.as_ref()), (ask.as_str(), &b"ask"[..]));

    // The way back.
    let server = kept.get_stream_no_info(&name).await.unwrap();
    let up = server.create_consumer(inbox(&run, "north")).await.unwrap();
    let answer = format!("fedkin.{run}.north.host-0.up");
    asked.publish(answer.clone(), "up".into()).await.unwrap().await.unwrap();
    let mut batch = up.batch().max_messages(1).expires(WAIT).messages().await.unwrap();
    let message = tokio::time::timeout(WAIT, batch.next()).await.unwrap().unwrap().unwrap();
    assert_eq!(message.subject.as_str(), answer);

    // Publishing as another, or to a server that is not one's own: nothing arrives.
    let before = stored().await;
    let west = format!("fedkin.{run}.west.host-0.up");
    for subject in [format!("fedkin.{run}.north.host-1.up"), west, format!("fedkin.{run}.status.host-1.now")]
    {
        host.client.publish(subject.clone(), "forged".into()).await.unwrap();
        host.client.flush().await.unwrap();
        host.is_told(&subject).await;
    }
    // Nor by making the broker answer there: to a question that is allowed, and to one that is not.
    let forged = format!("fedkin.{run}.north.host-1.up");
    for question in ["CONSUMER.MSG.NEXT", "CONSUMER.DELETE"] {
        let question = format!("{API}.{question}.{name}.host-0");
        host.client.publish_with_reply(question, forged.clone(), "1".into()).await.unwrap();
        host.client.flush().await.unwrap();
    }
    tokio::time::sleep(QUIET).await;
    assert_eq!(stored().await, before);

    // Listening in on another: by a subscription, by its consumer, by an own one with its subjects.
    let theirs = format!("fedkin.{run}.host-0.>");
    let mut tapped = other.client.subscribe(theirs.clone()).await.unwrap();
    other.client.flush().await.unwrap();
    kept.publish(ask, "secret".into()).await.unwrap().await.unwrap();
    // Nothing, or the end of a subscription that was never made.
    let heard = tokio::time::timeout(QUIET, tapped.next()).await;
    assert!(!matches!(heard, Ok(Some(_))), "{heard:?}");
    other.is_told(&theirs).await;
    let spy = jetstream::with_prefix(other.client.clone(), API);
    let stream = spy.get_stream_no_info(&name).await.unwrap();
    let foreign = consumer::pull::Config { name: Some("host-1".into()), ..inbox(&run, "host-0") };
    assert!(is_denied(stream.create_consumer(foreign)).await);
    let all = consumer::pull::Config { filter_subject: String::new(), ..inbox(&run, "host-1") };
    assert!(is_denied(stream.create_consumer(all)).await);
    assert!(is_denied(stream.create_consumer(inbox(&run, "host-0"))).await);
    let next = format!("{API}.CONSUMER.MSG.NEXT.{name}.host-0");
    assert!(is_denied(other.client.request(next, "1".into())).await);
    let inbox_of_host = "_INBOX_host-0.>";
    let _tapped = other.client.subscribe(inbox_of_host).await.unwrap();
    other.client.flush().await.unwrap();
    other.is_told(inbox_of_host).await;
    // A host neither removes the stream nor changes it.
    assert!(is_denied(spy.delete_stream(&name)).await);
    assert_eq!(stored().await, before + 1);
}

#[tokio::test]
async fn strangers_stay_out() {
    let bench = Bench::new();
    bench.good(&["new"]);
    let Some(broker) = start(&bench, &["--hosts", "1"]) else { return };
    let port = broker.port;
    let ca = bench.path("dep/ca/ca.pem");
    let with = |folder: PathBuf, stem: &str| {
        let (certificate, key) = (folder.join(format!("{stem}.pem")), folder.join(format!("{stem}.key")));
        options("host-0").add_root_certificates(ca.clone()).add_client_certificate(certificate, key)
    };
    assert!(dial(with(bench.path("dep/nodes/host-0"), "node"), port).await.is_ok());

    let none = options("host-0").add_root_certificates(ca.clone());
    assert!(dial(none, port).await.is_err(), "without a certificate");

    // The same names, signed by somebody else.
    bench.good(&["provision", "wards.toml", "--out", "foreign", "--hosts", "1"]);
    assert!(dial(with(bench.path("foreign/nodes/host-0"), "node"), port).await.is_err(), "foreign authority");

    // Signed by our authority, for a name that the running broker does not know.
    provision(&bench, port, &["--hosts", "3"]);
    assert!(dial(with(bench.path("dep/nodes/host-2"), "node"), port).await.is_err(), "unlisted name");

    // The broker's own certificate is none for a node.
    assert!(dial(with(bench.path("dep/broker"), "broker"), port).await.is_err(), "the broker's certificate");

    // Whoever is not signed by our authority is no broker to a node.
    let astray =
        options("host-0").add_root_certificates(bench.path("foreign/ca/ca.pem")).add_client_certificate(
            bench.path("dep/nodes/host-0/node.pem"),
            bench.path("dep/nodes/host-0/node.key"),
        );
    assert!(dial(astray, port).await.is_err(), "a broker of another authority");
    assert!(dial(with(bench.path("dep/nodes/host-0"), "node"), port).await.is_ok());
}

#[tokio::test]
async fn names_that_are_no_tokens_work_on_the_broker() {
    let bench = Bench::new();
    bench.good(&["new"]);
    bench.write(
        "who.csv",
        "client,server,cluster,samples,host\na,north,k,9,\"Ward, 1.2 >\"\nb,east,k,8,status\nc,south,k,7,*\nd,west,k,7,ö\n",
    );
    let features = "data.features=[\"age\"]";
    let Some(broker) = start(&bench, &["--roster", "who.csv", "--set", features]) else { return };
    let nodes = std::fs::read_dir(bench.path("dep/nodes")).unwrap();
    for entry in nodes {
        let name = entry.unwrap().file_name().into_string().unwrap();
        let node = node(&bench, broker.port, &name).await;
        node.client.flush().await.unwrap();
    }
}
