//! A federation on one thread: nodes, disks and the broker, driven tick by tick from a seed. A tick is one
//! effect, one message, one heartbeat; a node can die between any two.

use super::checks::{Checked, Checks, DATA, RUN, Violation, hold};
use super::lies::{Liar, Lies};
use super::mutants::Mistake;
use super::network::{Broker, one_in};
use super::scenario::Scenario;
use fedkin_method::round::{
    AnyMethod, ClientMachines, Effect, Envelope, Message, Note, Peer, Record, ServerMachine,
};
use fedkin_numeric::rng::{PublicRng, Random};
use fedkin_privacy::{Chain, ChainLine};
use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

/// What is durable at a node.
#[derive(Debug, Clone, Default)]
pub struct Disk {
    /// The last full record and the changes after it; of a client its last state.
    pub records: Vec<Vec<u8>>,
    /// The ledger of a client.
    pub lines: Vec<ChainLine>,
}

impl Disk {
    /// Keeps a record.
    pub fn commit(&mut self, record: Record) {
        match record {
            // Only a mutant writes half a record.
            Record::Client { state, lines } => {
                if !state.is_empty() {
                    self.records = vec![state];
                }
                self.lines.extend(lines);
            }
            Record::Full(bytes) => self.records = vec![bytes],
            Record::Delta(bytes) => self.records.push(bytes),
        }
    }

    pub(crate) fn bytes(&self) -> usize {
        self.records.iter().map(Vec::len).sum()
    }
}

/// What a node has beside its memory.
#[derive(Debug, Default)]
pub(crate) struct Host {
    pub(crate) queue: VecDeque<Effect>,
    pub(crate) disk: Disk,
    /// The disk as it was before the last answer.
    pub(crate) old: Disk,
    pub(crate) down: bool,
    pub(crate) wakes: u64,
    /// Until when its disk is full.
    pub(crate) full: u64,
    /// It has left: its part is over, or it is silent for ever.
    pub(crate) gone: bool,
    pub(crate) done: bool,
    /// For the mutant that trusts the broker: digests of what was acknowledged.
    pub(crate) acknowledged: BTreeSet<[u8; 32]>,
}

/// What a schedule was like.
#[derive(Debug, Clone, Copy, Default)]
pub struct Stats {
    /// How long it took.
    pub ticks: u64,
    /// Ticks from the last fault to the end.
    pub quiet: u64,
    /// How often a node died.
    pub crashes: u32,
    /// How often a client refused.
    pub refused: u32,
    /// How often somebody lied to a node.
    pub forged: u32,
    /// Answers after their step was closed.
    pub late: u32,
    /// Steps mixed without some neighbour.
    pub without: u32,
    /// Servers that have learnt why the run cannot go on.
    pub stopped: u32,
    /// Most bytes on a server's disk in the first third of the steps, and after.
    pub disk: (usize, usize),
}

/// One client in a process of its own.
pub(crate) type OneClient = Box<dyn ClientMachines>;

pub(crate) struct World<'a> {
    pub(crate) scenario: &'a Scenario,
    pub(crate) method: Arc<dyn AnyMethod>,
    pub(crate) servers: Vec<Box<dyn ServerMachine>>,
    pub(crate) clients: Vec<OneClient>,
    pub(crate) hosts: Vec<Host>,
    pub(crate) broker: Broker,
    pub(crate) rng: PublicRng,
    pub(crate) mistake: Option<Mistake>,
    pub(crate) checks: Checks<'a>,
    pub(crate) lies: Option<Lies>,
    pub(crate) tick: u64,
    pub(crate) trouble: bool,
    pub(crate) stats: Stats,
    pub(crate) trace: VecDeque<(u64, Peer, &'static str, u32)>,
}

fn word(message: &Message) -> &'static str {
    match message {
        Message::Hello(_) => "hello",
        Message::Welcome(..) => "welcome",
        Message::Turned(..) => "turned",
        Message::Ask(..) => "ask",
        Message::Up(..) => "up",
        Message::Refused(..) => "refused",
        Message::Share(_) => "share",
        Message::Served(..) => "served",
        Message::Got => "got",
        Message::Bye => "bye",
        Message::Stop(_) => "stop",
    }
}

impl<'a> World<'a> {
    pub(crate) fn new(
        method: Arc<dyn AnyMethod>,
        scenario: &'a Scenario,
        checks: Checks<'a>,
        mistake: Option<Mistake>,
    ) -> Self {
        let small = &scenario.world;
        let ids: Vec<u32> = (0..small.federation.servers() as u32).collect();
        let servers = Arc::clone(&method).servers(&scenario.blueprint(&method), &ids, scenario.mode);
        let hosts = (0..servers.len() + small.federation.members().len()).map(|_| Host::default()).collect();
        let mut world = Self {
            scenario,
            method,
            servers,
            clients: Vec::new(),
            hosts,
            broker: Broker::new(RUN, mistake == Some(Mistake::EndlessMailbox)),
            rng: PublicRng::named(scenario.seed, "fault schedule", 0, u32::from(scenario.strict())),
            mistake,
            checks,
            lies: None,
            tick: 0,
            trouble: true,
            stats: Stats::default(),
            trace: VecDeque::new(),
        };
        let federation = &scenario.world.federation;
        world.lies = scenario.liar.map(|who| Lies::new(who, federation, &mut world.rng));
        if let Some(lies) = &world.lies {
            world.checks.suspect(lies);
        }
        for member in small.federation.members() {
            let disk = Disk { records: Vec::new(), lines: scenario.before(member.id).1 };
            world.clients.push(world.client_of(member.id, &disk).unwrap_or_else(|v| panic!("{v:?}")));
            let host = world.host(Peer::Client(member.id));
            (world.hosts[host].old, world.hosts[host].disk) = (disk.clone(), disk);
        }
        world
    }

    pub(crate) fn peer(&self, host: usize) -> Peer {
        match host.checked_sub(self.servers.len()) {
            None => Peer::Server(host as u32),
            Some(client) => Peer::Client(client as u32),
        }
    }

    pub(crate) fn host(&self, peer: Peer) -> usize {
        match peer {
            Peer::Server(id) => id as usize,
            Peer::Client(id) => self.servers.len() + id as usize,
        }
    }

    /// A client as its disk has it; I3 where the ledger does not hold together.
    pub(crate) fn client_of(&self, id: u32, disk: &Disk) -> Result<OneClient, Violation> {
        let chain = Chain::start("client", &DATA).verify(&disk.lines).map_err(|broken| Violation {
            invariant: "I3",
            text: format!("client {id} after a crash: {broken}"),
        })?;
        let mut node = self.scenario.client(&self.method, id, chain).unwrap();
        if let Some(state) = disk.records.last() {
            node.restore(id, state).unwrap();
        }
        Ok(node)
    }

    /// A server as its disk has it.
    pub(crate) fn server_of(&self, id: u32, disk: &Disk) -> Box<dyn ServerMachine> {
        let blueprint = self.scenario.blueprint(&self.method);
        let mut nodes = Arc::clone(&self.method).servers(&blueprint, &[id], self.scenario.mode);
        let mut node = nodes.remove(0);
        if let Some((full, changes)) = disk.records.split_first() {
            node.restore(full, changes).unwrap();
        }
        node
    }

    pub(crate) fn log(&mut self, peer: Peer, what: &'static str, step: u32) {
        if self.trace.len() == 60 {
            self.trace.pop_front();
        }
        self.trace.push_back((self.tick, peer, what, step));
    }

    /// The last events, oldest first.
    pub(crate) fn story(&self) -> String {
        let line =
            |(tick, peer, what, step): &(u64, Peer, &str, u32)| format!("  {tick} {peer} {what} {step}");
        self.trace.iter().map(line).collect::<Vec<_>>().join("\n")
    }

    /// Runs until everybody's part is over.
    pub(crate) fn run(&mut self) -> Checked {
        for &(a, b) in &self.scenario.severed {
            self.broker.cut(Peer::Server(a), Peer::Server(b), u64::MAX);
        }
        if let Some((a, b)) = self.lies.as_ref().and_then(|lies| lies.severed) {
            self.broker.cut(a, b, u64::MAX);
        }
        for id in 0..self.servers.len() {
            let effects = self.servers[id].start();
            self.took(id, effects)?;
        }
        // An unlucky but fair order of events needs about a tenth of it. Where lines are cut for ever, every
        // step has to wait for its time to be up.
        let steps = u64::from(self.scenario.world.run.rounds) + 2;
        let waits = if self.scenario.strict() { 0 } else { 20 * u64::from(self.scenario.hurry) };
        let bound = (200 * self.hosts.len() as u64 + waits * self.servers.len() as u64) * steps;
        let mut calm = 0;
        while !self.over() {
            self.tick += 1;
            if self.trouble && self.tick > self.scenario.trouble {
                self.calm()?;
                calm = self.tick;
            }
            let name = if self.scenario.wipes_only { "I9" } else { "I8" };
            if self.scenario.liar.is_some() && !self.trouble && self.tick >= calm + bound {
                return self.stands();
            }
            hold(self.tick < calm + bound || self.trouble, name, || self.waits())?;
            self.step()?;
        }
        self.stats.ticks = self.tick;
        self.stats.quiet = if self.trouble { 0 } else { self.tick - calm };
        Ok(())
    }

    pub(crate) fn over(&self) -> bool {
        self.hosts.iter().all(|host| host.done || host.gone)
    }

    pub(crate) fn waits(&self) -> String {
        let servers = self.servers.iter().map(|server| {
            let (clients, servers) = (server.waits_for(), server.waits_for_servers());
            format!("server at {} waits for clients {clients:?}, servers {servers:?}", server.standing().step)
        });
        format!("the run does not end: {}", servers.collect::<Vec<_>>().join("; "))
    }

    fn step(&mut self) -> Checked {
        if self.trouble {
            self.mischief()?;
        }
        self.intrude();
        if !self.scenario.strict() && one_in(&mut self.rng, self.scenario.hurry) {
            let id = self.rng.below(self.servers.len() as u32) as usize;
            if !self.hosts[id].down && !self.stalled(id) {
                let step = self.servers[id].standing().step;
                self.log(Peer::Server(id as u32), "expires", step);
                let effects = self.servers[id].expire(step);
                return self.took(id, effects);
            }
        }
        match self.rng.below(16) {
            0..10 if self.act()? => Ok(()),
            0..15 if self.broker.len() > 0 => self.deliver(),
            _ => self.beat(),
        }
    }

    /// The host's next effect is a commit and its disk is full: nothing else happens there.
    pub(crate) fn stalled(&self, host: usize) -> bool {
        let Host { queue, full, .. } = &self.hosts[host];
        *full > self.tick && matches!(queue.front(), Some(Effect::Commit(_)))
    }

    /// A node has been called: its effects join the queue.
    pub(crate) fn took(&mut self, host: usize, effects: Vec<Effect>) -> Checked {
        let peer = self.peer(host);
        let coin = self.tick.is_multiple_of(2);
        let effects = match self.mistake {
            Some(mistake) => mistake.spoil(peer, effects, coin),
            None => effects,
        };
        self.hosts[host].queue.extend(effects);
        let Peer::Server(id) = peer else { return Ok(()) };
        let (server, federation) = (&self.servers[host], &self.scenario.world.federation);
        let (backlog, near) = (server.backlog(), server.neighbours().len());
        hold(backlog.shares <= 3 + 2 * near && backlog.waiting < federation.members().len(), "I11", || {
            format!("server {id} holds {backlog:?}")
        })?;
        let edges = federation.topology().edges().count();
        let lies = self.scenario.liar.is_some();
        let bound =
            Broker::bound(federation.members().len(), edges) + if lies { 12 * self.hosts.len() } else { 0 };
        hold(self.broker.most <= bound, "I11", || format!("the broker held {} messages", self.broker.most))?;
        self.checks.moved(id, server.standing().step)
    }

    /// Does the next effect of some node; false where nobody has anything to do.
    fn act(&mut self) -> Result<bool, Violation> {
        let ready = |host: &usize| {
            let Host { queue, down, gone, .. } = &self.hosts[*host];
            !down && !gone && !queue.is_empty() && !self.stalled(*host)
        };
        let busy: Vec<usize> = (0..self.hosts.len()).filter(ready).collect();
        if busy.is_empty() {
            return Ok(false);
        }
        let host = busy[self.rng.below(busy.len() as u32) as usize];
        let peer = self.peer(host);
        let Some(effect) = self.hosts[host].queue.pop_front() else { return Ok(false) };
        match effect {
            Effect::Commit(record) => self.commit(host, record)?,
            Effect::Send(envelope) => self.send(host, &envelope)?,
            Effect::Note(note) => {
                match note {
                    Note::Withheld(..) => self.stats.refused += 1,
                    Note::Late(..) => self.stats.late += 1,
                    Note::Without(..) => self.stats.without += 1,
                    Note::Stopped(_) => self.stats.stopped += 1,
                    _ => {}
                }
                self.checks.note(peer, &note)?;
            }
            Effect::Done => {
                self.hosts[host].done = true;
                // A client leaves; a server stays for those that have not heard it yet.
                self.hosts[host].gone |= matches!(peer, Peer::Client(_));
                self.log(peer, "is done", 0);
            }
        }
        Ok(true)
    }

    fn commit(&mut self, host: usize, record: Record) -> Checked {
        let peer = self.peer(host);
        self.log(peer, "commits", 0);
        match (&record, peer) {
            (Record::Client { lines, .. }, Peer::Client(id)) => {
                if !lines.is_empty() {
                    self.hosts[host].old = self.hosts[host].disk.clone();
                }
                self.checks.client_commit(id, lines)?;
            }
            (Record::Full(bytes) | Record::Delta(bytes), Peer::Server(id)) => {
                self.checks.server_commit(id, bytes)?;
            }
            _ => return hold(false, "I4", || format!("{peer} wrote another node's record")),
        }
        let disk = &mut self.hosts[host].disk;
        disk.commit(record);
        if let Peer::Server(_) = peer {
            let early = self.servers[host].standing().step * 3 <= self.scenario.world.run.rounds;
            let most = if early { &mut self.stats.disk.0 } else { &mut self.stats.disk.1 };
            *most = (*most).max(disk.bytes());
        }
        Ok(())
    }

    fn send(&mut self, host: usize, envelope: &Envelope) -> Checked {
        if self.lies(envelope.from) {
            if self.checks.trusted(envelope.from) {
                self.checks.sends(envelope)?;
            }
            for said in self.told(envelope) {
                self.log(said.from, word(&said.message), said.step);
                self.checks.overheard(&said);
                self.broker.put(&said, 0);
            }
            return Ok(());
        }
        self.checks.sends(envelope)?;
        if self.lies.as_ref().is_some_and(|lies| lies.who == Liar::Broker) {
            self.told(envelope);
        }
        self.log(envelope.from, word(&envelope.message), envelope.step);
        let data =
            !matches!(envelope.message, Message::Hello(_) | Message::Welcome(..) | Message::Turned(..));
        match self.mistake {
            Some(Mistake::OneShare) if matches!(envelope.message, Message::Share(_)) => {
                let newest = self.servers[host].standing().step - u32::from(!self.closed(host));
                if envelope.step < newest {
                    return Ok(());
                }
            }
            Some(Mistake::TrustBroker)
                if data && !self.hosts[host].acknowledged.insert(envelope.digest()) =>
            {
                return Ok(());
            }
            _ => {}
        }
        let rates = self.scenario.rates;
        if self.trouble && one_in(&mut self.rng, rates.drop) {
            return Ok(());
        }
        let late = self.trouble && one_in(&mut self.rng, rates.delay);
        let ready = if late { self.tick + u64::from(self.rng.below(400)) } else { 0 };
        self.broker.put(envelope, ready);
        Ok(())
    }

    /// Whether a server has closed its step.
    pub(crate) fn closed(&self, server: usize) -> bool {
        self.servers[server].standing().ended || !self.servers[server].waits_for_servers().is_empty()
    }

    pub(crate) fn beat(&mut self) -> Checked {
        let host = self.rng.below(self.hosts.len() as u32) as usize;
        if self.hosts[host].down
            || self.hosts[host].gone
            || self.hosts[host].queue.len() > 2
            || self.stalled(host)
        {
            return Ok(());
        }
        let effects = match self.peer(host) {
            Peer::Server(_) => self.servers[host].beat(),
            Peer::Client(id) => self.clients[id as usize].beat(),
        };
        self.took(host, effects)
    }
}
