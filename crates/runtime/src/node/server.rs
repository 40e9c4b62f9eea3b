//! Runs the servers of one process.

use super::heads::Heads;
use super::mail::Mail;
use super::observe::Observer;
use super::status::{ClientStatus, LISTED, NodeStatus, ServerStatus};
use super::telemetry::{Names, Telemetry};
use super::{Ending, NodeError, PATIENCE, Routes, durable, stopped};
use crate::store::ServerStore;
use crate::transport::{Token, Transport, TransportError};
use fedkin_method::round::{Effect, Envelope, Note, Peer, Record, ServerMachine, Standing};
use std::collections::VecDeque;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::watch;
use tokio::time::MissedTickBehavior;

/// What a server process is started with.
pub struct ServerOptions {
    /// This node.
    pub node: Token,
    /// Where the servers' records are kept.
    pub state: PathBuf,
    /// Where the heads of the clients' ledgers are kept, over all runs.
    pub heads: PathBuf,
    /// The digest all nodes agree on.
    pub fingerprint: [u8; 32],
    /// Who lives where.
    pub routes: Routes,
    /// Names for people.
    pub names: Names,
    /// Rounds of the run, for the status.
    pub rounds: u32,
    /// How long a step may take; nothing in strict mode.
    pub deadline: Option<Duration>,
    /// Between two signs of life.
    pub resend: Duration,
    /// Where metrics are served.
    pub observe: Option<SocketAddr>,
}

struct One {
    machine: Box<dyn ServerMachine>,
    store: ServerStore,
    standing: Standing,
    since: Instant,
    /// When each client was last heard, by position.
    heard: Vec<Option<Instant>>,
    done: bool,
}

struct Process {
    servers: Vec<One>,
    heads: Heads,
    mail: Mail,
    me: Token,
    names: Names,
    rounds: u32,
    telemetry: Arc<Telemetry>,
    stop: watch::Receiver<bool>,
    /// Messages between servers of this process.
    inside: VecDeque<Envelope>,
    /// Messages for other processes; sent together once everything before them is durable.
    outside: Vec<Envelope>,
}

/// The node was told to stop while its disk was full.
struct Halted;

/// Runs servers until their work is done or `stop` turns true; restores what is on disk first, and only then opens the
/// transport by `connect`. Returns the machines,
/// so that the models they hold can be kept.
pub async fn serve<T: Transport>(
    machines: Vec<Box<dyn ServerMachine>>,
    options: ServerOptions,
    connect: impl Future<Output = Result<T, TransportError>>,
    mut stop: watch::Receiver<bool>,
) -> Result<(Ending, Vec<Box<dyn ServerMachine>>), NodeError> {
    let telemetry = Telemetry::new(options.names.clone());
    let _observer = Observer::maybe(options.observe, &telemetry).await?;
    let heads = Heads::open(&options.heads)?;
    let mut process = Process {
        servers: open(machines, &options, &heads)?,
        heads,
        mail: Mail::new(options.fingerprint, options.routes),
        me: options.node.clone(),
        names: options.names,
        rounds: options.rounds,
        telemetry,
        stop: stop.clone(),
        inside: VecDeque::new(),
        outside: Vec::new(),
    };
    let mut transport = connect.await?;
    process.telemetry.connected.set(1);
    let mut beats = tokio::time::interval(options.resend);
    beats.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut heard = Instant::now();
    let mut going = process.all(|machine| machine.start()).await?;
    while going.is_ok() && !process.servers.iter().all(|one| one.done) {
        process.flush(&mut transport)?;
        let wake = options.deadline.map(|deadline| process.wakes(deadline));
        going = tokio::select! {
            event = transport.next() => {
                let mut envelopes = Vec::new();
                if process.mail.take(event, &process.telemetry, &mut envelopes) {
                    process.all(|machine| machine.resend()).await?
                } else if envelopes.is_empty() {
                    Ok(())
                } else {
                    heard = Instant::now();
                    process.receive(envelopes).await?
                }
            }
            _ = beats.tick() => {
                process.publish(&mut transport).await;
                process.note_heads()?;
                if process.only_servers_missing() && heard.elapsed() > options.resend * PATIENCE {
                    tracing::warn!("every client has its model; silent neighbours are not waited for any longer");
                    break;
                }
                process.all(|machine| machine.beat()).await?
            }
            () = sleep_until(wake) => process.expire(options.deadline).await?,
            () = stopped(&mut stop) => Err(Halted),
        };
    }
    process.note_heads()?;
    process.flush(&mut transport)?;
    process.publish(&mut transport).await;
    transport.flush(Duration::from_secs(5)).await;
    let ending = if going.is_ok() { Ending::Done } else { Ending::Stopped };
    Ok((ending, process.servers.into_iter().map(|one| one.machine).collect()))
}

fn open(
    machines: Vec<Box<dyn ServerMachine>>,
    options: &ServerOptions,
    heads: &Heads,
) -> Result<Vec<One>, NodeError> {
    let mut servers = Vec::with_capacity(machines.len());
    for mut machine in machines {
        let name = options.names.servers.get(machine.id() as usize).cloned().unwrap_or_default();
        let folder = options.state.join(Token::of(&name).as_str());
        let (store, kept) = ServerStore::open(&folder)?;
        if let Some(full) = &kept.snapshot {
            machine.restore(full, &kept.deltas).map_err(|lost| NodeError::Lost {
                what: format!("the records of server {name:?} in {}", folder.display()),
                why: lost.to_string(),
            })?;
            tracing::info!(server = name, step = machine.standing().step, "restored");
        }
        let ids: Vec<u32> = machine.members().iter().map(|member| member.id).collect();
        for id in ids {
            heads.of(options.names.plain(id)).for_each(|known| machine.remember(id, known.clone()));
        }
        let standing = machine.standing();
        let heard = vec![None; machine.members().len()];
        servers.push(One { machine, store, standing, since: Instant::now(), heard, done: false });
    }
    Ok(servers)
}

/// Never, where there is no deadline.
async fn sleep_until(wake: Option<Instant>) {
    match wake {
        Some(wake) => tokio::time::sleep_until(wake.into()).await,
        None => std::future::pending().await,
    }
}

impl Process {
    /// Lets every server do something.
    async fn all(
        &mut self,
        act: impl Fn(&mut Box<dyn ServerMachine>) -> Vec<Effect>,
    ) -> Result<Result<(), Halted>, NodeError> {
        for s in 0..self.servers.len() {
            let effects = act(&mut self.servers[s].machine);
            if let Err(halted) = self.perform(s, effects).await? {
                return Ok(Err(halted));
            }
        }
        self.receive(Vec::new()).await
    }

    /// Gives every envelope to its server, and what servers of this process say to each other as well.
    async fn receive(&mut self, envelopes: Vec<Envelope>) -> Result<Result<(), Halted>, NodeError> {
        self.inside.extend(envelopes);
        while let Some(envelope) = self.inside.pop_front() {
            let Peer::Server(id) = envelope.to else { continue };
            let Some(s) = self.servers.iter().position(|one| one.machine.id() == id) else { continue };
            let one = &mut self.servers[s];
            if let Peer::Client(client) = envelope.from
                && let Ok(at) = one.machine.members().binary_search_by_key(&client, |member| member.id)
            {
                one.heard[at] = Some(Instant::now());
            }
            let effects = one.machine.receive(&envelope);
            if let Err(halted) = self.perform(s, effects).await? {
                return Ok(Err(halted));
            }
        }
        Ok(Ok(()))
    }

    async fn expire(&mut self, deadline: Option<Duration>) -> Result<Result<(), Halted>, NodeError> {
        let Some(deadline) = deadline else { return Ok(Ok(())) };
        for s in 0..self.servers.len() {
            let one = &mut self.servers[s];
            if one.since.elapsed() >= deadline {
                let effects = one.machine.expire(one.standing.step);
                one.since = Instant::now();
                if let Err(halted) = self.perform(s, effects).await? {
                    return Ok(Err(halted));
                }
            }
        }
        self.receive(Vec::new()).await
    }

    fn wakes(&self, deadline: Duration) -> Instant {
        self.servers.iter().map(|one| one.since + deadline).min().unwrap_or_else(Instant::now)
    }

    /// Does what a server wants done; whatever is sent is sent later, after all records before it are durable.
    async fn perform(&mut self, s: usize, effects: Vec<Effect>) -> Result<Result<(), Halted>, NodeError> {
        let mut records = Vec::new();
        for effect in effects {
            // Records with nothing sent between them are one write to the disk.
            if matches!(effect, Effect::Send(_) | Effect::Done) && !self.keep(s, &mut records).await? {
                return Ok(Err(Halted));
            }
            match effect {
                Effect::Commit(record) => records.push(record),
                Effect::Send(envelope) => {
                    if self.mail.routes().node(envelope.to) == Some(&self.me) {
                        self.inside.push_back(envelope);
                    } else {
                        self.outside.push(envelope);
                    }
                }
                Effect::Note(Note::Turned(Peer::Server(who), why))
                    if !self.is_mine(who) && self.servers[s].machine.neighbours().contains(&who) =>
                {
                    // Said by a neighbour, or of it, where every share is waited for: the two cannot finish the run.
                    let who = format!("server {}", self.names.server(who));
                    return Err(NodeError::Turned { who, why });
                }
                Effect::Note(note) => self.telemetry.note(&note),
                Effect::Done => self.servers[s].done = true,
            }
        }
        if !self.keep(s, &mut records).await? {
            return Ok(Err(Halted));
        }
        let one = &mut self.servers[s];
        let standing = one.machine.standing();
        if standing != one.standing {
            one.standing = standing;
            one.since = Instant::now();
            self.telemetry.step.set(i64::from(standing.step));
        }
        if let Some(stopped) = one.machine.stop() {
            self.telemetry.run_stopped(self.names.stopped(&stopped));
        }
        Ok(Ok(()))
    }

    /// Makes records durable, in their order; a full one makes those before it needless. False where the node was
    /// stopped while the disk was full.
    async fn keep(&mut self, s: usize, records: &mut Vec<Record>) -> Result<bool, NodeError> {
        let mut full = None;
        let mut changes = Vec::new();
        for record in records.drain(..) {
            match record {
                Record::Full(bytes) => {
                    full = Some(bytes);
                    changes.clear();
                }
                Record::Delta(bytes) => changes.push(bytes),
                Record::Client { .. } => {}
            }
        }
        let store = &mut self.servers[s].store;
        if let Some(bytes) = full
            && !durable(&self.telemetry, &mut self.stop, || store.snapshot(&bytes)).await?
        {
            return Ok(false);
        }
        if changes.is_empty() {
            return Ok(true);
        }
        durable(&self.telemetry, &mut self.stop, || store.commit(&changes)).await
    }

    fn is_mine(&self, server: u32) -> bool {
        self.servers.iter().any(|one| one.machine.id() == server)
    }

    fn flush(&mut self, transport: &mut impl Transport) -> Result<(), NodeError> {
        if !self.outside.is_empty() {
            let envelopes = std::mem::take(&mut self.outside);
            let bytes = self.mail.send(transport, envelopes)?;
            self.telemetry.sent_bytes.inc_by(bytes as u64);
        }
        Ok(())
    }

    /// Keeps how far the clients' ledgers were seen, for later runs. A full disk only delays it.
    fn note_heads(&mut self) -> Result<(), NodeError> {
        for one in &self.servers {
            for (position, member) in one.machine.members().iter().enumerate() {
                if let Some(known) = one.machine.known(position) {
                    self.heads.note(self.names.plain(member.id), known);
                }
            }
        }
        match tokio::task::block_in_place(|| self.heads.keep()) {
            Err(error) if !error.disk_full() => Err(error.into()),
            Err(error) => {
                self.telemetry.disk_full(&error.to_string());
                Ok(())
            }
            Ok(()) => Ok(()),
        }
    }

    fn only_servers_missing(&self) -> bool {
        self.servers.iter().all(|one| one.standing.ended && one.machine.waits_for().is_empty())
    }

    async fn publish(&self, transport: &mut impl Transport) {
        let servers: Vec<ServerStatus> = self.servers.iter().map(|one| self.status(one)).collect();
        let joined: usize = servers.iter().map(|server| server.joined).sum();
        self.telemetry.clients.set(joined as i64);
        let status = NodeStatus { node: self.me.as_str().to_string(), servers };
        if let Ok(bytes) = serde_json::to_vec(&status)
            && let Err(error) = transport.publish_status(bytes.into()).await
        {
            tracing::debug!(%error, "no status published");
        }
    }

    fn status(&self, one: &One) -> ServerStatus {
        let waits = one.machine.waits_for();
        let members = one.machine.members();
        let known = (0..members.len()).map(|position| one.machine.known(position));
        let listed = members.iter().zip(known.clone()).zip(&one.heard).take(LISTED);
        let listed = listed.map(|((member, known), heard)| ClientStatus {
            client: self.names.clients.get(member.id as usize).cloned().unwrap_or_default(),
            silent_seconds: heard.map(|heard| heard.elapsed().as_secs_f64()),
            step: known.map_or(0, |known| known.step),
            spent: known.map_or(0, |known| known.spent),
            awaited: waits.binary_search(&member.id).is_ok(),
        });
        let stage = match one.standing {
            _ if one.done => "done",
            Standing { ended: true, .. } => "delivering",
            Standing { sharing: true, .. } => "sharing",
            _ => "asking",
        };
        ServerStatus {
            server: self.names.servers.get(one.machine.id() as usize).cloned().unwrap_or_default(),
            step: one.standing.step,
            rounds: self.rounds,
            stage: stage.to_string(),
            stop: one.machine.stop().map(|stopped| self.names.stopped(&stopped)),
            seconds_in_stage: one.since.elapsed().as_secs_f64(),
            waits_for: waits.len(),
            waits_for_servers: one
                .machine
                .waits_for_servers()
                .iter()
                .filter_map(|id| self.names.servers.get(*id as usize).cloned())
                .collect(),
            clients: members.len(),
            joined: known.clone().flatten().count(),
            most_spent: known.flatten().map(|known| known.spent).max().unwrap_or(0),
            listed: listed.collect(),
        }
    }
}
