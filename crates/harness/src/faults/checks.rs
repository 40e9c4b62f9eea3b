//! The invariants of the protocol, each a check that can fail. Everything is judged from outside: by what is
//! durable, what leaves a node, and what it tells people.

use super::lies::{Liar, Lies};
use super::scenario::Scenario;
use bytes::Bytes;
use fedkin_method::round::{Decided, Envelope, Message, Note, Peer, Stop, Stopped, decided};
use fedkin_method::{Federation, Member, Verdict};
use fedkin_privacy::{Account, Chain, ChainLine, Refusal, Statement, sent_digest};
use std::collections::{BTreeMap, BTreeSet};

/// The fingerprint of every run.
pub const RUN: [u8; 32] = [1; 32];
/// The fingerprint of every client's data.
pub const DATA: [u8; 32] = [2; 32];

/// A broken invariant.
#[derive(Debug, Clone)]
pub(crate) struct Violation {
    pub(crate) invariant: &'static str,
    pub(crate) text: String,
}

pub(crate) type Checked = Result<(), Violation>;

pub(crate) fn hold(holds: bool, invariant: &'static str, text: impl FnOnce() -> String) -> Checked {
    if holds { Ok(()) } else { Err(Violation { invariant, text: text() }) }
}

/// The bits of a client's models, in the order of the method's names.
pub(crate) type Named = Vec<Vec<u64>>;

/// What an unfaulted run in one process gives.
pub(crate) struct Reference {
    /// All models of every client.
    pub(crate) models: Vec<Named>,
    /// The whole state of every server.
    pub(crate) states: Vec<Vec<u8>>,
    pub(crate) accounts: Vec<Account>,
    /// By step, server, position.
    pub(crate) verdicts: Vec<Vec<Vec<Verdict>>>,
    /// What left every client, in its own words.
    pub(crate) statements: Vec<Statement>,
    /// Why it could not go on, where it could not.
    pub(crate) stopped: Option<Stopped>,
}

impl Reference {
    /// Where and why it could not go on.
    pub(crate) fn stop(&self) -> Option<&Stop> {
        self.stopped.as_ref().map(|stopped| &stopped.stop)
    }

    /// The verdicts of every step, server and client.
    pub(crate) fn judged(&self) -> impl Iterator<Item = Verdict> {
        self.verdicts.iter().flatten().flatten().copied()
    }
}

/// A verdict without its reason.
pub(crate) fn kind(verdict: Verdict) -> u8 {
    match verdict {
        Verdict::NotAsked => 0,
        Verdict::Asked => 1,
        Verdict::Value => 2,
        Verdict::Refused(_) => 3,
        Verdict::Rejected(_) => 4,
        Verdict::Missing => 5,
    }
}

/// What is known of a client.
struct Paper {
    chain: Chain,
    /// The digest that was paid for, by step.
    paid: BTreeMap<u32, [u8; 32]>,
    served: bool,
    /// Step and lines of its last hello.
    hello: (u32, u64),
}

/// What is known of a server.
#[derive(Default)]
struct Desk {
    /// Step and stage (0 asking, 1 closed, 2 ended) of its last durable record.
    durable: (u32, u8),
    /// The step of the live node.
    step: u32,
    hello: u32,
    welcome: BTreeMap<Peer, u32>,
    /// The reason in its last durable record.
    stop: Option<Stop>,
    confirmed: BTreeSet<u32>,
}

/// An answer as the network has seen it: digest of the envelope, upload.
pub(crate) type Sent = ([u8; 32], Option<Bytes>);
/// A closed step: verdicts and digests of answers by position.
pub(crate) type Set = (Vec<Verdict>, Digests);
/// By position or server.
type Digests = Vec<(u32, [u8; 32])>;
type Draw = (u32, [u8; 32], Vec<f64>);

pub(crate) struct Checks<'a> {
    federation: &'a Federation,
    budget: Option<u64>,
    strict: bool,
    /// Whether privacy is demanded: no reason of a refusal may leave then.
    private: bool,
    /// Present in strict mode.
    reference: Option<&'a Reference>,
    papers: Vec<Paper>,
    desks: Vec<Desk>,
    pub(crate) sent: BTreeMap<(u32, u32), Sent>,
    pub(crate) closed: BTreeMap<(u32, u32), Set>,
    pub(crate) mixed: BTreeMap<(u32, u32), Digests>,
    /// What each (sender, receiver, step) was told: asks and shares.
    told: BTreeMap<(Peer, Peer, u32), [u8; 32]>,
    /// Answers by what was asked.
    answers: BTreeMap<(u32, u32, [u8; 32]), Bytes>,
    /// Who lies, and which peer that is.
    liar: Option<(Liar, Option<Peer>)>,
    /// What was said falsely in the name of a client, by client and step.
    overheard: BTreeMap<(u32, u32), Vec<Sent>>,
    /// Step, digest of the question, noise; by client.
    noises: BTreeMap<u32, Vec<Draw>>,
}

impl<'a> Checks<'a> {
    pub(crate) fn new(scenario: &'a Scenario, reference: Option<&'a Reference>) -> Self {
        let (federation, privacy) = (&scenario.world.federation, &scenario.world.run.privacy);
        let paper = |member: &Member| Paper {
            chain: scenario.before(member.id).0,
            paid: BTreeMap::new(),
            served: false,
            hello: (0, 0),
        };
        Self {
            federation,
            budget: privacy.budget_units(),
            strict: scenario.strict(),
            private: privacy.demanded(),
            reference,
            papers: federation.members().iter().map(paper).collect(),
            desks: (0..federation.servers()).map(|_| Desk::default()).collect(),
            sent: BTreeMap::new(),
            closed: BTreeMap::new(),
            mixed: BTreeMap::new(),
            told: BTreeMap::new(),
            answers: BTreeMap::new(),
            noises: BTreeMap::new(),
            liar: None,
            overheard: BTreeMap::new(),
        }
    }

    /// From now on this liar is known to the checks.
    pub(crate) fn suspect(&mut self, lies: &Lies) {
        self.liar = Some((lies.who, lies.peer));
    }

    /// Whether what this node does is held against it.
    pub(crate) fn trusted(&self, peer: Peer) -> bool {
        self.liar.is_none_or(|(_, liar)| liar != Some(peer))
    }

    /// Whether anybody can say anything in anybody's name.
    fn open(&self) -> bool {
        self.liar.is_some_and(|(who, _)| who == Liar::OpenBroker)
    }

    /// A liar has said something.
    pub(crate) fn overheard(&mut self, envelope: &Envelope) {
        let Peer::Client(client) = envelope.from else { return };
        let up = match &envelope.message {
            Message::Up(bytes, _) => Some(bytes.clone()),
            Message::Refused(..) => None,
            _ => return,
        };
        let said = self.overheard.entry((client, envelope.step)).or_default();
        said.push((envelope.digest(), up));
    }

    /// A client's record is on disk.
    pub(crate) fn client_commit(&mut self, client: u32, lines: &[ChainLine]) -> Checked {
        if !self.trusted(Peer::Client(client)) {
            return Ok(());
        }
        let paper = &mut self.papers[client as usize];
        let Some(first) = lines.first() else {
            paper.served = true;
            return Ok(());
        };
        for line in lines {
            paper.chain.follow(line).map_err(|broken| Violation {
                invariant: "I3",
                text: format!("client {client}: {broken}"),
            })?;
            hold(line.run == RUN && (line.step, line.sent) == (first.step, first.sent), "I3", || {
                format!("client {client}: a record with lines of several messages")
            })?;
            hold(self.budget.is_none_or(|budget| paper.chain.spent <= budget), "I3", || {
                format!("client {client} has spent {} of {:?}", paper.chain.spent, self.budget)
            })?;
        }
        let last = paper.paid.last_key_value().map_or(0, |(step, _)| *step);
        hold(!paper.paid.contains_key(&first.step), "I2", || {
            format!("client {client} paid twice for step {}", first.step)
        })?;
        hold(first.step > last, "I6", || format!("client {client} went from step {last} to {}", first.step))?;
        paper.paid.insert(first.step, first.sent);
        Ok(())
    }

    /// A server's record is on disk.
    pub(crate) fn server_commit(&mut self, server: u32, record: &[u8]) -> Checked {
        let damaged =
            |_| Violation { invariant: "I4", text: format!("record of server {server} unreadable") };
        let decision = decided(record).map_err(damaged)?;
        if !self.trusted(Peer::Server(server)) || self.open() {
            return Ok(());
        }
        let durable = self.desks[server as usize].durable;
        match decision {
            Decided::Planned { step, verdicts, mixed } => {
                hold(durable == (step - 1, 1) || (durable.0, step) == (0, 1), "I6", || {
                    format!("server {server} planned step {step} after {durable:?}")
                })?;
                self.mix(server, step - 1, mixed)?;
                if let Some(planned) = self.expected(server, step)? {
                    let same = verdicts.iter().zip(planned).all(|(a, b)| (kind(*a) == 0) == (kind(*b) == 0));
                    hold(same, "I4", || format!("server {server} planned step {step} differently"))?;
                }
                self.desks[server as usize].durable = (step, 0);
            }
            Decided::Closed { step, verdicts, answers, stop } => {
                hold(durable == (step, 0), "I4", || {
                    format!("server {server} closed step {step} after {durable:?}")
                })?;
                self.believe(server, step, &answers);
                self.close(server, step, &verdicts, &answers)?;
                self.closed.insert((server, step), (verdicts, answers));
                self.desks[server as usize].durable = (step, 1);
                self.learnt(server, stop)?;
            }
            Decided::Stopped { step, stop } => {
                hold(durable == (step, 1), "I6", || {
                    format!("server {server} stopped with {step} after {durable:?}")
                })?;
                hold(stop.as_ref().is_some_and(|stop| stop.step <= step), "I4", || {
                    format!("server {server} stopped with {step} because of {stop:?}")
                })?;
                self.desks[server as usize].durable = (step, 2);
                self.learnt(server, stop)?;
            }
            Decided::Learnt { stop } => self.learnt(server, stop)?,
            Decided::Ended { step, mixed } => {
                hold(durable == (step, 1), "I6", || {
                    format!("server {server} ended with {step} after {durable:?}")
                })?;
                self.mix(server, step, mixed)?;
                self.desks[server as usize].durable = (step, 2);
            }
            Decided::Confirmed { position } => {
                hold(durable.1 == 2, "I5", || format!("server {server}: a confirmation at {durable:?}"))?;
                self.desks[server as usize].confirmed.insert(position);
            }
        }
        Ok(())
    }

    /// I4: what a server knows of the end of the run is true, and becomes no later.
    fn learnt(&mut self, server: u32, stop: Option<Stop>) -> Checked {
        let known = std::mem::replace(&mut self.desks[server as usize].stop, stop.clone());
        let Some(stop) = stop else {
            return hold(known.is_none(), "I6", || format!("server {server} forgot {known:?}"));
        };
        hold(known.as_ref().is_none_or(|known| *known == stop || stop.is_before(known)), "I6", || {
            format!("server {server} went from {known:?} to {stop:?}")
        })?;
        let Some(reference) = self.reference else { return Ok(()) };
        let first = reference.stop();
        hold(first.is_some_and(|first| *first == stop || first.is_before(&stop)), "I4", || {
            format!("server {server} stopped because of {stop:?}, the unfaulted run because of {first:?}")
        })
    }

    /// The verdicts of the unfaulted run in strict mode. A server that has not heard of a stop goes on for a while.
    fn expected(&self, server: u32, step: u32) -> Result<Option<&'a Vec<Verdict>>, Violation> {
        let Some(reference) = self.reference else { return Ok(None) };
        let expected = reference.verdicts.get(step as usize - 1).map(|servers| &servers[server as usize]);
        hold(expected.is_some() || reference.stopped.is_some(), "I4", || {
            format!("server {server} planned step {step} after the end")
        })?;
        Ok(expected)
    }

    fn mix(&mut self, server: u32, step: u32, mixed: Digests) -> Checked {
        if step == 0 {
            return Ok(());
        }
        if self.reference.is_some() {
            let all = self.federation.topology().neighbours(server).len() + 1;
            hold(mixed.len() == all, "I4", || format!("server {server} mixed step {step} without some"))?;
        }
        self.mixed.insert((server, step), mixed);
        Ok(())
    }

    /// Which of the things that a liar said for a step its server has taken.
    fn believe(&mut self, server: u32, step: u32, answers: &[(u32, [u8; 32])]) {
        for (position, digest) in answers {
            let client = self.federation.clients_of(server)[*position as usize];
            let said = self.overheard.get(&(client, step)).into_iter().flatten();
            if let Some(taken) = said.clone().find(|(said, _)| said == digest) {
                self.sent.insert((client, step), taken.clone());
            }
        }
    }

    /// I4: the closed set is what was sent for this step, each once, and in strict mode everybody's.
    fn close(&self, server: u32, step: u32, verdicts: &[Verdict], answers: &[(u32, [u8; 32])]) -> Checked {
        let clients = self.federation.clients_of(server);
        let judged = verdicts.iter().enumerate().filter(|(_, verdict)| matches!(kind(**verdict), 2..=4));
        let judged: Vec<u32> = judged.map(|(position, _)| position as u32).collect();
        let named: Vec<u32> = answers.iter().map(|(position, _)| *position).collect();
        hold(judged == named, "I4", || {
            format!("server {server}, step {step}: verdicts on {judged:?}, answers of {named:?}")
        })?;
        for (position, digest) in answers {
            let client = clients[*position as usize];
            let sent = self.sent.get(&(client, step));
            hold(sent.is_some_and(|(sent, _)| sent == digest), "I4", || {
                format!("server {server}, step {step}: folded something client {client} did not send")
            })?;
        }
        if let Some(expected) = self.expected(server, step)? {
            hold(verdicts == expected, "I4", || {
                format!("server {server}, step {step}: {verdicts:?} instead of {expected:?}")
            })?;
        }
        Ok(())
    }

    /// A message leaves.
    pub(crate) fn sends(&mut self, envelope: &Envelope) -> Checked {
        let step = envelope.step;
        match envelope.from {
            Peer::Client(client) => self.client_sends(client, envelope),
            // Made to believe anything, a server may say anything.
            Peer::Server(_) if self.open() => Ok(()),
            Peer::Server(server) => {
                let desk = &mut self.desks[server as usize];
                let durable = desk.durable;
                let after = |least: (u32, u8), what: &str| {
                    hold(durable >= least, "I5", || {
                        format!("server {server} sent {what} of step {step} with {durable:?} on disk")
                    })
                };
                match &envelope.message {
                    Message::Share(_) => after((step, 1), "its share")?,
                    Message::Ask(..) => after((step, 0), "an ask")?,
                    Message::Served(..) => after((step - 1, 2), "a served model")?,
                    Message::Stop(stop) => hold(desk.stop.as_ref() == Some(stop), "I5", || {
                        format!("server {server} told of {stop:?} with {:?} on disk", desk.stop)
                    })?,
                    Message::Welcome(closed, _) => {
                        after((*closed, u8::from(*closed > 0)), "a watermark")?;
                        let last = desk.welcome.insert(envelope.to, *closed).unwrap_or(0);
                        hold(*closed >= last, "I6", || {
                            format!("server {server}: watermark from {last} to {closed}")
                        })?;
                    }
                    Message::Bye => {
                        let clients = self.federation.clients_of(server);
                        let known = desk.confirmed.iter().map(|position| clients[*position as usize]);
                        let known = known.map(Peer::Client).any(|client| client == envelope.to);
                        hold(known, "I5", || {
                            format!("{} dismissed before its word was on disk", envelope.to)
                        })?;
                    }
                    Message::Hello(hello) => {
                        let last = std::mem::replace(&mut desk.hello, hello.step);
                        hold(hello.step >= last, "I6", || format!("server {server}: from step {last} back"))?;
                    }
                    _ => {}
                }
                if matches!(envelope.message, Message::Share(_) | Message::Ask(..)) {
                    let digest = envelope.digest();
                    let first = *self.told.entry((envelope.from, envelope.to, step)).or_insert(digest);
                    hold(first == digest, "I5", || {
                        format!("server {server} told {} two things in step {step}", envelope.to)
                    })?;
                }
                Ok(())
            }
        }
    }

    fn client_sends(&mut self, client: u32, envelope: &Envelope) -> Checked {
        let member = &self.federation.members()[client as usize];
        let paper = &mut self.papers[client as usize];
        let (step, lines) = (envelope.step, paper.chain.head.seq);
        let up = match &envelope.message {
            Message::Up(bytes, _) => Some(bytes.clone()),
            Message::Refused(reason, _) => {
                hold(!self.private || *reason == Refusal::Undisclosed, "reason", || {
                    format!("client {client} told its server in step {step} that {reason}")
                })?;
                None
            }
            Message::Hello(hello) => {
                hold(hello.lines <= lines, "I1", || {
                    format!("client {client} named {} lines, {lines} on disk", hello.lines)
                })?;
                let last = std::mem::replace(&mut paper.hello, (hello.step, hello.lines));
                return hold((hello.step, hello.lines) >= last, "I6", || {
                    format!("client {client} went back from {last:?}")
                });
            }
            Message::Got => {
                return hold(paper.served, "I1", || {
                    format!("client {client} confirmed what it has not kept")
                });
            }
            _ => return Ok(()),
        };
        let digest = sent_digest(member.id, member.server, step, up.as_deref());
        hold(paper.paid.get(&step) == Some(&digest), "I1", || {
            format!("client {client} sent something in step {step} that no durable line names")
        })?;
        let digest = envelope.digest();
        let first = self.sent.entry((client, step)).or_insert_with(|| (digest, up));
        hold(first.0 == digest, "I2", || format!("client {client} sent two things in step {step}"))
    }

    /// A client has computed an answer; `noise` is what it added to its exact model.
    pub(crate) fn answered(
        &mut self,
        client: u32,
        ask: &Envelope,
        up: Option<&Bytes>,
        noise: Option<Vec<f64>>,
    ) -> Checked {
        let (step, asked) = (ask.step, ask.digest());
        // A refusal covers nothing; an old copy may have budget left where the client itself refuses.
        let Some(up) = up else { return Ok(()) };
        let first = self.answers.entry((client, step, asked)).or_insert_with(|| up.clone());
        hold(first == up, "I10", || {
            format!("client {client} drew two answers to one question of step {step}")
        })?;
        let Some(noise) = noise.filter(|noise| noise.iter().any(|x| *x != 0.0)) else { return Ok(()) };
        // The values under the noise were rounded to a grid, which moves its small numbers a little.
        let close = 1e-6 * noise.iter().fold(0.0f64, |most, x| most.max(x.abs()));
        let near = |other: &[f64]| noise.iter().zip(other).all(|(a, b)| (a - b).abs() <= close);
        let drawn = self.noises.entry(client).or_default();
        for (at, question, other) in drawn.iter() {
            hold((*at, *question) == (step, asked) || !near(other), "I10", || {
                format!("client {client}: the noise of step {step} also covers another value of step {at}")
            })?;
        }
        drawn.push((step, asked, noise));
        Ok(())
    }

    /// A node tells people something. No alarm may be raised where nobody misbehaves.
    pub(crate) fn note(&self, peer: Peer, note: &Note) -> Checked {
        let about = match note {
            Note::Equivocation(peer, _)
            | Note::Turned(peer, _)
            | Note::Refused(peer, _)
            | Note::OldDisk(peer, ..)
            | Note::Unreadable(peer, _) => Some(*peer),
            Note::Rejected { client, .. } => Some(Peer::Client(*client)),
            _ => None,
        };
        let blamed = about.is_some_and(|about| !self.trusted(about) || !self.trusted(peer));
        // What a lying server shares may spoil its neighbours' models, and so what they ask and are told.
        let spoilt = self.liar.is_some_and(|(who, _)| who == Liar::Server)
            && matches!(note, Note::Rejected { .. } | Note::Unreadable(..));
        if blamed || spoilt || self.open() {
            return Ok(());
        }
        match note {
            Note::Closed { .. } if !self.trusted(peer) => Ok(()),
            Note::Stopped(stop) if self.liar.is_some() && !self.strict && self.trusted(peer) => {
                hold(Peer::Server(stop.server) == peer, "stop", || {
                    format!("{peer} ends with deadlines because another said so: {stop:?}")
                })?;
                hold(self.liar.is_none_or(|(who, _)| who == Liar::Server), "stop", || {
                    format!("{peer} ends with deadlines because a client lied: {stop:?}")
                })
            }
            Note::Closed { step, counts, .. } => {
                let Peer::Server(server) = peer else { return Ok(()) };
                let Some((verdicts, _)) = self.closed.get(&(server, *step)) else {
                    return hold(false, "I4", || format!("server {server} closed {step} in memory alone"));
                };
                let count = |wanted| verdicts.iter().filter(|v| kind(**v) == wanted).count() as u32;
                let told = [counts.values, counts.refused, counts.rejected, counts.missing];
                hold([count(2), count(3), count(4), count(5)] == told, "I4", || {
                    format!("server {server}, step {step}: told {counts:?}, kept {verdicts:?}")
                })
            }
            // With deadlines there is no run to compare with.
            Note::Rejected { client, step, .. } if self.flawed(*client, *step) => Ok(()),
            Note::Equivocation(..)
            | Note::Turned(..)
            | Note::Refused(..)
            | Note::OldDisk(..)
            | Note::Rejected { .. }
            | Note::Unreadable(..) => hold(false, "false alarm", || format!("{peer}: {note:?}")),
            _ => Ok(()),
        }
    }

    /// Whether an upload may be turned away.
    fn flawed(&self, client: u32, step: u32) -> bool {
        let Some(reference) = self.reference else { return true };
        let server = self.federation.members()[client as usize].server;
        let position = self.federation.clients_of(server).iter().position(|id| *id == client).unwrap_or(0);
        let judged =
            reference.verdicts.get(step as usize - 1).map(|servers| servers[server as usize][position]);
        judged.map_or(reference.stopped.is_some(), |verdict| matches!(verdict, Verdict::Rejected(_)))
    }

    /// I6: the step of a live server has changed.
    pub(crate) fn moved(&mut self, server: u32, step: u32) -> Checked {
        self.desks[server as usize].step = step;
        if self.reference.is_none() || step == 0 {
            return Ok(());
        }
        for &other in self.federation.topology().neighbours(server) {
            // A server that is down stands where its disk stands.
            let there = self.desks[other as usize].step;
            hold(step.abs_diff(there) <= 1, "I6", || {
                format!("server {server} at {step}, its neighbour {other} at {there}")
            })?;
        }
        Ok(())
    }

    /// I2 and I7 at the end of a strict run: the ledgers are those of the unfaulted run, but for clients of servers that
    /// went on until they heard of a stop.
    pub(crate) fn ledgers(&self) -> Checked {
        let Some(reference) = self.reference else { return Ok(()) };
        let steps = reference.verdicts.len() as u32;
        for (member, paper) in self.federation.members().iter().zip(&self.papers) {
            if self.desks[member.server as usize].step > steps {
                continue;
            }
            let account = &reference.accounts[member.id as usize];
            hold(paper.chain.account(account.budget) == *account, "I2", || {
                format!("client {}: {:?} instead of {account:?}", member.id, paper.chain)
            })?;
            let clients = self.federation.clients_of(member.server);
            let position = clients.iter().position(|client| *client == member.id).unwrap_or(0);
            let asked = reference
                .verdicts
                .iter()
                .filter(|step| !matches!(kind(step[member.server as usize][position]), 0));
            hold(paper.paid.len() == asked.count(), "I2", || {
                format!("client {}: lines of {} steps", member.id, paper.paid.len())
            })?;
        }
        Ok(())
    }
}
