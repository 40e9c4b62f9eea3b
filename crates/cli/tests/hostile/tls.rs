//! Whole runs on a broker with certificates, as `fedkin provision` sets them up.

use crate::site::{PATIENCE, Proc, SMALL, alone, eventually, fedkin, has_broker, left_models, sha, token};
use async_nats::ConnectOptions;
use async_nats::jetstream::{self, consumer};
use fedkin_deploy::{Deployment, NodeConfig};
use fedkin_run::Registry;
use fedkin_runtime::nats::{Event, Post, Reason, find_broker, subjects};
use fedkin_runtime::store::{Secret, Vault, read_ledger};
use futures_util::StreamExt;
use std::fs;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;
use tempfile::TempDir;

const HOSTS: [&str; 3] = ["host-0", "host-1", "host-2"];
const SERVERS: [&str; 2] = ["server-000", "server-001"];

/// A provisioned deployment with its broker.
struct Secured {
    folder: TempDir,
    port: u16,
    broker: Option<Proc>,
}

impl Secured {
    fn new() -> Option<Self> {
        if !has_broker() {
            return None;
        }
        let folder = tempfile::tempdir().unwrap();
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        fs::write(folder.path().join("hostile.toml"), SMALL).unwrap();
        let address = format!("localhost:{port}");
        let arguments = ["provision", "hostile.toml", "--out", "dep", "--broker", &address, "--hosts", "3"];
        let (code, said) = fedkin(&arguments, folder.path());
        assert_eq!(code, Some(0), "{said}");
        let mut secured = Self { folder, port, broker: None };
        secured.restart();
        Some(secured)
    }

    /// A new broker; the old one's memory is gone.
    fn restart(&mut self) {
        self.broker = None;
        let log = self.path("broker.log");
        let _ = fs::remove_file(&log);
        let mut command = Command::new(find_broker().unwrap());
        command.args(["-c", "nats.conf"]).current_dir(self.path("dep/broker"));
        let broker = Proc::spawn(&mut command, &log);
        eventually("the broker", || broker.log().contains("Server is ready"), || broker.log());
        self.broker = Some(broker);
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn file(&self, node: &str) -> PathBuf {
        self.path("dep/nodes").join(node).join("node.toml")
    }

    fn edit(&self, node: &str, from: &str, to: &str) {
        let text = fs::read_to_string(self.file(node)).unwrap();
        assert!(text.contains(from), "{text}");
        fs::write(self.file(node), text.replace(from, to)).unwrap();
    }

    fn config(&self, node: &str) -> NodeConfig {
        NodeConfig::load(&self.file(node)).unwrap()
    }

    fn deployment(&self) -> Deployment {
        Deployment::open(&Registry::native(), &self.config(HOSTS[0])).unwrap()
    }

    /// All nodes to their ends; the digest of the models.
    fn run(&self) -> String {
        let start = |kind: &str, node: &str| {
            Proc::start(kind, &[&self.file(node)], &self.path(&format!("{node}.jsonl")))
        };
        let mut all: Vec<Proc> = SERVERS.iter().map(|node| start("server", node)).collect();
        all.extend(HOSTS.iter().map(|node| start("client", node)));
        all.iter_mut().for_each(Proc::must_end_well);
        let states = HOSTS.map(|host| self.config(host).state);
        let states: Vec<&Path> = states.iter().map(PathBuf::as_path).collect();
        sha(&left_models(&self.deployment(), "client", &states), 12)
    }
}

#[test]
fn a_run_with_certificates_equals_one_process_and_with_secret_noise_it_does_not() {
    let Some(mut secured) = Secured::new() else { return };
    let expected = alone(&secured.path("hostile.toml"), &secured.path("alone"));
    for host in HOSTS {
        secured.edit(host, "noise = \"os\"", "noise = \"seeded\"");
    }
    assert_eq!(secured.run(), expected);
    // The same with the noise that provisioning chose.
    secured.restart();
    for host in HOSTS {
        secured.edit(host, "noise = \"seeded\"", "noise = \"os\"");
    }
    for node in HOSTS.iter().chain(&SERVERS) {
        secured.edit(node, "state = \"state\"", "state = \"state-os\"");
    }
    assert_ne!(secured.run(), expected);
    for host in HOSTS {
        let state = secured.config(host).state;
        // Opening reads every line and follows the chain.
        let vault = Vault::open(&state, Secret::Os).unwrap();
        drop(vault);
        let lines: Vec<_> = read_ledger(&state).unwrap().map(Result::unwrap).collect();
        assert_eq!(lines.len(), 4 * 8, "{host}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_member_cannot_speak_listen_or_replay_as_another() {
    let Some(secured) = Secured::new() else { return };
    let deployment = secured.deployment();
    let run = deployment.run_id();
    let post = |node: &str| {
        let mut config = deployment.post(&secured.config(node));
        config.limits.ack_timeout = Duration::from_secs(1);
        config
    };
    let dial = async |node: &str| {
        let folder = secured.path("dep/nodes").join(node);
        let options = ConnectOptions::new()
            .require_tls(true)
            .custom_inbox_prefix(format!("_INBOX_{node}"))
            .add_root_certificates(folder.join("ca.pem"))
            .add_client_certificate(folder.join("node.pem"), folder.join("node.key"));
        options.connect(format!("tls://localhost:{}", secured.port)).await.unwrap()
    };
    let server = token(SERVERS[0]);
    // A message of host-0 as it is on the broker, from the server's own mailbox.
    drop(Post::open(post(SERVERS[0]).manager()).await.unwrap());
    let honest = Post::open(post("host-0")).await.unwrap();
    honest.send(&server, "turn-1", b"honest".to_vec()).unwrap();
    assert!(honest.flush(PATIENCE).await);
    let reader = jetstream::with_prefix(dial(SERVERS[0]).await, "fedkin_api");
    let stream = reader.get_stream_no_info(subjects::stream(&run)).await.unwrap();
    let _ = stream.delete_consumer(server.as_str()).await;
    let mailbox = consumer::pull::Config {
        name: Some(server.to_string()),
        filter_subject: subjects::mailbox(&run, &server),
        ack_policy: consumer::AckPolicy::None,
        ..Default::default()
    };
    let mailbox = stream.create_consumer(mailbox).await.unwrap();
    let mut batch = mailbox.fetch().max_messages(1).messages().await.unwrap();
    let frame = tokio::time::timeout(PATIENCE, batch.next()).await.unwrap().unwrap().unwrap().payload.clone();

    let mut listening = Post::open(post(SERVERS[0]).manager()).await.unwrap();
    let mut heard = async |within: Duration| {
        let mut all = Vec::new();
        while let Ok(event) = tokio::time::timeout(within, listening.next()).await {
            all.push(event);
        }
        all
    };
    let first = heard(Duration::from_millis(700)).await;
    assert!(matches!(&first[..], [Event::Delivery(one)] if one.from == token("host-0")), "{first:?}");

    // host-1 has the bytes: as host-0 the broker does not take them, as itself they do not open.
    let thief = dial("host-1").await;
    for from in ["host-0", "host-1"] {
        let subject = subjects::message(&run, &server, &token(from), "turn-1");
        thief.publish(subject, frame.clone()).await.unwrap();
    }
    thief.flush().await.unwrap();
    let got = heard(Duration::from_millis(700)).await;
    let refused = |event: &Event| matches!(event, Event::Incident(what) if what.from == token("host-1") && what.reason == Reason::Checksum);
    assert!(got.len() == 1 && refused(&got[0]), "{got:?}");

    // With its own certificate in another's name: nothing goes out, nothing comes in.
    let mut impostor = post("host-1");
    impostor.node = token("host-0");
    let mut impostor = Post::open(impostor).await.unwrap();
    impostor.send(&server, "turn-2", b"forged".to_vec()).unwrap();
    let mut honest = honest;
    let sender = Post::open(post(SERVERS[0])).await.unwrap();
    sender.send(&token("host-0"), "turn-1", b"for host-0 alone".to_vec()).unwrap();
    assert!(sender.flush(PATIENCE).await);
    let event = tokio::time::timeout(PATIENCE, honest.next()).await.unwrap();
    assert!(matches!(&event, Event::Delivery(one) if one.payload == b"for host-0 alone"[..]), "{event:?}");
    assert!(tokio::time::timeout(Duration::from_secs(2), impostor.next()).await.is_err());
    assert_eq!(impostor.counters().delivered, 0);
    assert_eq!(impostor.counters().sent, 0);
}

#[test]
fn without_certificates_a_node_does_not_leave_this_machine() {
    let folder = tempfile::tempdir().unwrap();
    let experiment = SMALL;
    fs::write(folder.path().join("experiment.toml"), experiment).unwrap();
    for (kind, more) in [("server", "servers = [\"server-000\"]\n"), ("client", "")] {
        let name = if kind == "server" { "server-000" } else { "host-0" };
        // An address for documentation: nobody is there.
        let text = format!(
            "version = 1\n[node]\nkind = \"{kind}\"\nname = \"{name}\"\n{more}[broker]\nurl = \"nats://192.0.2.1:4222\"\n"
        );
        let file = folder.path().join(format!("{kind}.toml"));
        fs::write(&file, &text).unwrap();
        let (code, said) = fedkin(&[kind, "--config", &format!("{kind}.toml")], folder.path());
        assert_eq!(code, Some(2), "{said}");
        for word in ["192.0.2.1 is not this machine", "`ca`, `certificate` and `key`", "allow_plain = true"] {
            assert!(said.contains(word), "{said}");
        }
        // Asked for in so many words, the address is no reason any more: the next thing that is missing is.
        fs::write(&file, text + "allow_plain = true\n").unwrap();
        let (_, said) = fedkin(&[kind, "--config", &format!("{kind}.toml")], folder.path());
        let last = said.rsplit("error: ").next().unwrap();
        assert!(!last.contains("not this machine") && last.contains("roster.json"), "{last}");
    }
    let arguments =
        ["run", "experiment.toml", "--out", "out", "--runtime", "nats", "--url", "nats://192.0.2.1:4222"];
    let (code, said) = fedkin(&arguments, folder.path());
    assert_eq!(code, Some(2), "{said}");
    assert!(said.contains("not this machine") || said.contains("not be encrypted"), "{said}");
}
