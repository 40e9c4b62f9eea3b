//! What a node tells about itself: counters for Prometheus, a health page, lines in the log.

use fedkin_method::Counts;
use fedkin_method::round::{Note, Peer, Stopped};
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Registry;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

type Labels = Vec<(&'static str, String)>;

/// Names of nodes by id, for people.
#[derive(Debug, Clone, Default)]
pub struct Names {
    /// Servers by id.
    pub servers: Vec<String>,
    /// Clients by id.
    pub clients: Vec<String>,
}

impl Names {
    /// The name of a peer.
    pub fn of(&self, peer: Peer) -> String {
        match peer {
            Peer::Server(id) => format!("server {}", name(&self.servers, id)),
            Peer::Client(id) => format!("client {}", name(&self.clients, id)),
        }
    }

    /// The name of a client.
    pub fn client(&self, id: u32) -> String {
        name(&self.clients, id)
    }

    /// The name of a client as it is, under which its ledger is kept.
    pub fn plain(&self, id: u32) -> &str {
        self.clients.get(id as usize).map_or("", String::as_str)
    }

    /// The name of a server.
    pub fn server(&self, id: u32) -> String {
        name(&self.servers, id)
    }

    /// Why a run cannot go on, in words.
    pub fn stopped(&self, stopped: &Stopped) -> String {
        let several = self.servers.len() > 1;
        stopped.sentence(|id| self.client(id), |id| several.then(|| self.server(id)))
    }
}

fn name(names: &[String], id: u32) -> String {
    names.get(id as usize).map_or_else(|| format!("#{id}"), |name| format!("{name:?}"))
}

/// Whether a node works, in words.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Health {
    /// What is wrong with the disk; nothing where all is well.
    pub disk: Option<String>,
    /// What is wrong with the connection; nothing where all is well.
    pub link: Option<String>,
    /// Why the run cannot go on; nothing where it can. The node itself works.
    pub stop: Option<String>,
}

impl Health {
    /// All that is wrong with the node; nothing where all is well.
    pub fn trouble(&self) -> Option<String> {
        let all: Vec<&str> = [&self.disk, &self.link].into_iter().flatten().map(String::as_str).collect();
        (!all.is_empty()).then(|| all.join("; "))
    }
}

/// Counters and gauges of one node.
pub struct Telemetry {
    registry: Registry,
    names: Names,
    health: Mutex<Health>,
    /// The step the node is in.
    pub step: Gauge,
    /// Whether the broker is reachable.
    pub connected: Gauge,
    /// Clients that have joined, or are hosted.
    pub clients: Gauge,
    /// Most zCDP units (1e-12) a hosted client has spent.
    pub spent_units: Gauge,
    /// Bytes handed to the transport.
    pub sent_bytes: Counter,
    /// Bytes that came.
    pub received_bytes: Counter,
    /// Times the connection came back.
    pub reconnects: Counter,
    answers: Family<Labels, Counter>,
    rejected: Family<Labels, Counter>,
    incidents: Family<Labels, Counter>,
    alarms: Family<Labels, Counter>,
    late: Counter,
    stopped: Gauge,
    commits: Histogram,
    full_disk: Counter,
}

impl Telemetry {
    /// Fresh counters.
    pub fn new(names: Names) -> Arc<Self> {
        let mut this = Self {
            registry: Registry::with_prefix("fedkin"),
            names,
            health: Mutex::new(Health::default()),
            step: Gauge::default(),
            connected: Gauge::default(),
            clients: Gauge::default(),
            spent_units: Gauge::default(),
            sent_bytes: Counter::default(),
            received_bytes: Counter::default(),
            reconnects: Counter::default(),
            answers: Family::default(),
            rejected: Family::default(),
            incidents: Family::default(),
            alarms: Family::default(),
            late: Counter::default(),
            stopped: Gauge::default(),
            commits: Histogram::new(exponential_buckets(0.0005, 2.0, 14)),
            full_disk: Counter::default(),
        };
        let registry = &mut this.registry;
        registry.register("step", "Step the node is in", this.step.clone());
        registry.register("connected", "Whether the broker is reachable", this.connected.clone());
        registry.register("clients", "Clients that joined or are hosted", this.clients.clone());
        registry.register(
            "spent_units",
            "Most privacy a hosted client has spent, in units of 1e-12 zCDP",
            this.spent_units.clone(),
        );
        registry.register("sent_bytes", "Bytes handed to the transport", this.sent_bytes.clone());
        registry.register("received_bytes", "Bytes that came", this.received_bytes.clone());
        registry.register("reconnects", "Times the connection came back", this.reconnects.clone());
        registry.register("answers", "Answers folded into closed steps, by verdict", this.answers.clone());
        registry.register("rejected", "Uploads turned away, by client and reason", this.rejected.clone());
        registry.register(
            "incidents",
            "Messages that could not be read, by sender and reason",
            this.incidents.clone(),
        );
        registry.register(
            "alarms",
            "Nodes turned away or caught saying two things, by node",
            this.alarms.clone(),
        );
        registry.register("late", "Answers that came after their step was closed", this.late.clone());
        registry.register("stopped", "Whether the run cannot go on", this.stopped.clone());
        registry.register("commit_seconds", "Time to make a record durable", this.commits.clone());
        registry.register("full_disk", "Commits that failed for lack of space", this.full_disk.clone());
        Arc::new(this)
    }

    /// The page Prometheus reads.
    pub fn page(&self) -> String {
        let mut text = String::new();
        // Writing to a string does not fail.
        let _ = encode(&mut text, &self.registry);
        text
    }

    /// Whether the node works.
    pub fn health(&self) -> Health {
        self.health.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Says what is wrong with the disk, or that nothing is any more.
    pub fn disk_trouble(&self, trouble: Option<String>) {
        self.health.lock().unwrap_or_else(PoisonError::into_inner).disk = trouble;
    }

    /// Says what is wrong with the connection, or that nothing is any more.
    pub fn link_trouble(&self, trouble: Option<String>) {
        self.health.lock().unwrap_or_else(PoisonError::into_inner).link = trouble;
    }

    /// Says why the run cannot go on.
    pub fn run_stopped(&self, why: String) {
        self.stopped.set(1);
        self.health.lock().unwrap_or_else(PoisonError::into_inner).stop = Some(why);
    }

    /// A record is durable.
    pub fn committed(&self, took: Duration) {
        self.commits.observe(took.as_secs_f64());
    }

    /// A commit failed for lack of space.
    pub fn disk_full(&self, error: &str) {
        self.full_disk.inc();
        tracing::error!(%error, "the disk is full: nothing is sent until there is space again");
        self.disk_trouble(Some(error.to_string()));
    }

    /// Something came that could not be read. The log has the reason in full; counters only its kind, or a sender
    /// could make as many of them as it likes.
    pub fn incident(&self, from: &str, kind: &'static str, reason: &str) {
        tracing::warn!(from, reason, "message dropped");
        let labels = vec![("from", from.to_string()), ("reason", kind.to_string())];
        self.incidents.get_or_create(&labels).inc();
    }

    fn closed(&self, step: u32, counts: Counts, missing: &[u32]) {
        self.step.set(i64::from(step));
        for (verdict, count) in [
            ("value", counts.values),
            ("refused", counts.refused),
            ("rejected", counts.rejected),
            ("missing", counts.missing),
        ] {
            if count > 0 {
                let labels = vec![("verdict", verdict.to_string())];
                self.answers.get_or_create(&labels).inc_by(u64::from(count));
            }
        }
        if missing.is_empty() {
            tracing::debug!(step, values = counts.values, refused = counts.refused, "step closed");
        } else {
            let names: Vec<String> = missing.iter().map(|id| self.names.client(*id)).collect();
            tracing::warn!(
                step,
                values = counts.values,
                missing = names.join(", "),
                "step closed without some"
            );
        }
    }

    /// Counts and logs what a node noted.
    pub fn note(&self, note: &Note) {
        let alarm = |kind: &'static str, peer: Peer| {
            let labels = vec![("kind", kind.to_string()), ("node", self.names.of(peer))];
            self.alarms.get_or_create(&labels).inc();
        };
        match note {
            Note::Joined(peer) => tracing::info!(who = self.names.of(*peer), "joined"),
            Note::Turned(peer, why) => {
                alarm("turned away", *peer);
                tracing::error!(who = self.names.of(*peer), why, "turned away");
            }
            Note::Refused(peer, why) => {
                alarm("refused", *peer);
                tracing::error!(
                    who = self.names.of(*peer),
                    why,
                    "a neighbour and this server do not work together: it goes on without its shares"
                );
            }
            Note::OldDisk(peer, theirs, ours) => {
                alarm("behind", *peer);
                tracing::error!(
                    who = self.names.of(*peer),
                    theirs,
                    ours,
                    "an answer with fewer ledger lines than were seen: an old disk was restored"
                );
            }
            Note::OtherNumerics(peer, why) => {
                tracing::warn!(who = self.names.of(*peer), why, "other numerics");
            }
            Note::Behind(peer, theirs, ours) => {
                alarm("behind", *peer);
                tracing::warn!(
                    who = self.names.of(*peer),
                    theirs,
                    ours,
                    "a hello with fewer ledger lines than were seen: late, or an old disk was restored"
                );
            }
            Note::Rejected { client, step, reason } => {
                let client = self.names.client(*client);
                tracing::warn!(client, step, reason, "upload rejected");
                // The number of the round is not part of the reason: labels must not grow with rounds.
                let reason = reason.split(':').next().unwrap_or_default().to_string();
                self.rejected.get_or_create(&vec![("client", client), ("reason", reason)]).inc();
            }
            Note::Equivocation(peer, step) => {
                alarm("equivocation", *peer);
                tracing::error!(
                    who = self.names.of(*peer),
                    step,
                    "said two different things about one step; the first stands"
                );
            }
            Note::Late(client, step) => {
                self.late.inc();
                tracing::info!(client = self.names.client(*client), step, "answer came too late");
            }
            Note::Unreadable(peer, step) => {
                self.incident(&self.names.of(*peer), "unreadable", &format!("unreadable in step {step}"));
            }
            Note::Withheld(step, refusal) => {
                tracing::warn!(step, why = %refusal, "nothing leaves in this step");
            }
            Note::Constant(step, failure) => {
                tracing::warn!(step, why = %failure, "a constant leaves in this step, with noise");
            }
            Note::Closed { step, counts, missing } => self.closed(*step, *counts, missing),
            Note::Stopped(stop) => {
                let server = self.names.server(stop.server);
                tracing::error!(step = stop.step, server, cause = ?stop.cause, "the run cannot go on");
            }
            Note::Left(neighbour, stop) => {
                alarm("left", Peer::Server(*neighbour));
                let who = self.names.server(*neighbour);
                tracing::error!(who, step = stop.step, cause = ?stop.cause, "a neighbour cannot go on; this server does");
            }
            Note::Without(step, absent) => {
                let names: Vec<String> = absent.iter().map(|id| self.names.server(*id)).collect();
                tracing::warn!(step, absent = names.join(", "), "mixed without some neighbours");
            }
        }
    }
}
