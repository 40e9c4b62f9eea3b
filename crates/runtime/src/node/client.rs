//! Runs the clients of one process.

use super::mail::Mail;
use super::observe::Observer;
use super::telemetry::{Names, Telemetry};
use super::{Ending, NodeError, PATIENCE, Routes, durable, stopped};
use crate::store::{Commit, Vault};
use crate::transport::{Transport, TransportError};
use fedkin_method::round::{ClientMachines, Effect, Envelope, Message, Note, Record};
use fedkin_privacy::ChainLine;
use futures_util::FutureExt;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::watch;
use tokio::time::MissedTickBehavior;

/// Deliveries that are answered together, with one write to the disk.
const GROUP: usize = 64;
/// Asks of about so many bytes are answered together: answers, states and records of a group are in memory at once.
const GROUP_BYTES: usize = 64 << 20;

/// A client as its process knows it.
#[derive(Debug, Clone)]
pub struct HostedClient {
    /// Its name.
    pub name: String,
    /// The digest of its records, under which its ledger is kept.
    pub fingerprint: [u8; 32],
}

/// What a client process is started with.
pub struct ClientOptions {
    /// The digest all nodes agree on.
    pub fingerprint: [u8; 32],
    /// Who lives where.
    pub routes: Routes,
    /// Names for people.
    pub names: Names,
    /// The clients of this process by id.
    pub hosted: BTreeMap<u32, HostedClient>,
    /// Whether every round waits for all of its clients: a run that turns one of them away cannot go on.
    pub strict: bool,
    /// Between two signs of life.
    pub resend: Duration,
    /// Where metrics are served.
    pub observe: Option<SocketAddr>,
}

struct Process {
    clients: Box<dyn ClientMachines>,
    vault: Vault,
    mail: Mail,
    run: [u8; 32],
    hosted: BTreeMap<u32, HostedClient>,
    telemetry: Arc<Telemetry>,
    names: Names,
    stop: watch::Receiver<bool>,
    outside: Vec<Envelope>,
    strict: bool,
    /// How many of its clients were turned away by their servers.
    turned: usize,
}

/// Runs the clients of a process until all have their models or `stop` turns true. `connect` opens the transport, once
/// what is on disk was read.
pub async fn host<T: Transport>(
    clients: Box<dyn ClientMachines>,
    vault: Vault,
    options: ClientOptions,
    connect: impl Future<Output = Result<T, TransportError>>,
    mut stop: watch::Receiver<bool>,
) -> Result<(Ending, Box<dyn ClientMachines>), NodeError> {
    let telemetry = Telemetry::new(options.names.clone());
    let _observer = Observer::maybe(options.observe, &telemetry).await?;
    telemetry.clients.set(options.hosted.len() as i64);
    let mut process = Process {
        clients,
        vault,
        mail: Mail::new(options.fingerprint, options.routes),
        run: options.fingerprint,
        hosted: options.hosted,
        telemetry,
        names: options.names,
        stop: stop.clone(),
        outside: Vec::new(),
        strict: options.strict,
        turned: 0,
    };
    process.restore()?;
    let mut transport = connect.await?;
    process.telemetry.connected.set(1);
    let mut beats = tokio::time::interval(options.resend);
    beats.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut heard = Instant::now();
    let count = process.hosted.len();
    let mut going = true;
    while going && process.clients.over() + process.turned < count {
        process.flush(&mut transport)?;
        tokio::select! {
            event = transport.next() => {
                let mut envelopes = Vec::new();
                let mut again = process.mail.take(event, &process.telemetry, &mut envelopes);
                // What else is there already is answered together: one write to the disk for all.
                for _ in 1..GROUP {
                    let Some(event) = transport.next().now_or_never() else { break };
                    again |= process.mail.take(event, &process.telemetry, &mut envelopes);
                }
                if !envelopes.is_empty() {
                    heard = Instant::now();
                    for group in groups(envelopes) {
                        going = process.answer(group).await?;
                        if !going {
                            break;
                        }
                        process.flush(&mut transport)?;
                    }
                }
                if again {
                    process.beat();
                }
            }
            _ = beats.tick() => {
                process.beat();
                if process.clients.served() + process.turned >= count && heard.elapsed() > options.resend * PATIENCE {
                    tracing::warn!("every client has its model; silent servers are not waited for any longer");
                    break;
                }
            }
            () = stopped(&mut stop) => going = false,
        }
    }
    process.flush(&mut transport)?;
    transport.flush(Duration::from_secs(5)).await;
    // The others are through; these have to be put right by somebody, and go on from the disk then.
    if going && let Some((id, peer, why)) = process.clients.turned().into_iter().next() {
        let (who, more) = (process.names.of(peer), process.turned - 1);
        let more = if more > 0 {
            format!(" ({more} more of this host were turned away, too)")
        } else {
            String::new()
        };
        return Err(NodeError::Turned {
            who,
            why: format!("client {}: {why}{more}", process.names.client(id)),
        });
    }
    Ok((if going { Ending::Done } else { Ending::Stopped }, process.clients))
}

/// Splits envelopes, in their order, where large ones are many.
fn groups(envelopes: Vec<Envelope>) -> Vec<Vec<Envelope>> {
    let mut groups = Vec::new();
    let (mut group, mut size) = (Vec::new(), 0);
    for envelope in envelopes {
        let length = match &envelope.message {
            Message::Ask(_, common, own) | Message::Served(common, own) => common.len() + own.len(),
            _ => 0,
        };
        if size + length > GROUP_BYTES && !group.is_empty() {
            groups.push(std::mem::take(&mut group));
            size = 0;
        }
        size += length;
        group.push(envelope);
    }
    groups.push(group);
    groups
}

impl Process {
    fn restore(&mut self) -> Result<(), NodeError> {
        let mut restored = 0;
        for (id, hosted) in &self.hosted {
            if let Some(state) = self.vault.state(&self.run, &hosted.name) {
                self.clients.restore(*id, state).map_err(|damaged| NodeError::Lost {
                    what: format!("the record of client {:?}", hosted.name),
                    why: damaged.to_string(),
                })?;
                restored += 1;
            }
        }
        if restored > 0 {
            tracing::info!(clients = restored, step = self.clients.step(), "restored");
        }
        Ok(())
    }

    fn beat(&mut self) {
        for effect in self.clients.beat() {
            if let Effect::Send(envelope) = effect {
                self.outside.push(envelope);
            }
        }
    }

    /// Lets the clients work, makes their records durable in one write, and only then sends. False where the node was
    /// stopped while the disk was full: nothing has left.
    async fn answer(&mut self, envelopes: Vec<Envelope>) -> Result<bool, NodeError> {
        let work = tokio::task::block_in_place(|| self.clients.receive(envelopes));
        let mut records: Vec<(u32, Vec<u8>, Vec<ChainLine>)> = Vec::new();
        let mut outside = Vec::new();
        for (id, effects) in work {
            for effect in effects {
                match effect {
                    Effect::Commit(Record::Client { state, lines }) => {
                        // Two steps in one batch: the later state holds, and all lines are kept.
                        match records.last_mut().filter(|(last, ..)| *last == id) {
                            Some((_, last, all)) => {
                                *last = state;
                                all.extend(lines);
                            }
                            None => records.push((id, state, lines)),
                        }
                    }
                    Effect::Send(envelope) => outside.push(envelope),
                    Effect::Note(Note::Turned(peer, why)) => {
                        let why = format!("client {}: {why}", self.names.client(id));
                        if self.strict {
                            return Err(NodeError::Turned { who: self.names.of(peer), why });
                        }
                        self.telemetry.note(&Note::Turned(peer, why));
                    }
                    Effect::Note(note) => self.telemetry.note(&note),
                    Effect::Commit(_) | Effect::Done => {}
                }
            }
        }
        if !records.is_empty() {
            let commits: Vec<Commit<'_>> = records
                .iter()
                .filter_map(|(id, state, lines)| {
                    let hosted = self.hosted.get(id)?;
                    Some(Commit { client: &hosted.name, fingerprint: hosted.fingerprint, state, lines })
                })
                .collect();
            let (vault, run) = (&mut self.vault, &self.run);
            if !durable(&self.telemetry, &mut self.stop, || vault.commit(run, &commits)).await? {
                return Ok(false);
            }
            // Everything is durable already; a compaction that finds no space is tried again later.
            if vault.due()
                && let Err(error) = tokio::task::block_in_place(|| vault.compact())
            {
                if !error.disk_full() {
                    return Err(error.into());
                }
                self.telemetry.disk_full(&error.to_string());
            }
            self.telemetry.step.set(i64::from(self.clients.step()));
            let most = self.clients.accounts().iter().map(|account| account.spent).max().unwrap_or(0);
            self.telemetry.spent_units.set(i64::try_from(most).unwrap_or(i64::MAX));
        }
        self.turned = self.clients.turned().len();
        self.outside.extend(outside);
        Ok(true)
    }

    fn flush(&mut self, transport: &mut impl Transport) -> Result<(), NodeError> {
        if !self.outside.is_empty() {
            let envelopes = std::mem::take(&mut self.outside);
            let bytes = self.mail.send(transport, envelopes)?;
            self.telemetry.sent_bytes.inc_by(bytes as u64);
        }
        Ok(())
    }
}
