//! Nodes whose method is known only at run time: erasure sits around a whole server or all clients of a process.

use super::live::Models;
use super::local::RunFault;
use super::pool::{self, Pool};
use super::{
    AnyMethod, Backlog, ClientNode, Effect, Envelope, Known, Lost, Mode, Peer, Scratch, ServerNode, Setting,
    Stopped,
};
use crate::algorithm::{Algorithm, FoundKin, Held, Run, ServerView, Verdict};
use crate::federation::{Federation, Member};
use fedkin_learner::Dataset;
use fedkin_numeric::codec::{Damaged, Encoder};
use fedkin_privacy::{Account, Chain};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Where a server stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Standing {
    /// The step it is in, from 1.
    pub step: u32,
    /// Whether it waits for its neighbours.
    pub sharing: bool,
    /// Whether the last step is over and models are being delivered.
    pub ended: bool,
}

/// One server behind messages.
pub trait ServerMachine: Send + Sync {
    /// Its id.
    fn id(&self) -> u32;
    /// Its clients by id.
    fn members(&self) -> &[Member];
    /// Its neighbours by id.
    fn neighbours(&self) -> &[u32];
    /// The method's whole state at this server, seats included, as bytes.
    fn state(&self) -> Vec<u8>;
    /// What it keeps for later.
    fn backlog(&self) -> Backlog;
    /// Goes on from the last full record and the changes after it.
    fn restore(&mut self, full: &[u8], changes: &[Vec<u8>]) -> Result<(), Lost>;
    /// The first call of its life, new or restored.
    fn start(&mut self) -> Vec<Effect>;
    /// Takes a message.
    fn receive(&mut self, envelope: &Envelope) -> Vec<Effect>;
    /// A sign of life for its neighbours.
    fn beat(&self) -> Vec<Effect>;
    /// Everything that may not have arrived.
    fn resend(&mut self) -> Vec<Effect>;
    /// The time for this step is up.
    fn expire(&mut self, step: u32) -> Vec<Effect>;
    /// Where it stands.
    fn standing(&self) -> Standing;
    /// The clients it waits for.
    fn waits_for(&self) -> Vec<u32>;
    /// The neighbours it waits for.
    fn waits_for_servers(&self) -> Vec<u32>;
    /// What became of each client in the last step, by position.
    fn verdicts(&self) -> &[Verdict];
    /// What it knows of its clients, by position.
    fn known(&self, position: usize) -> Option<&Known>;
    /// Tells it what an earlier run knew of a client.
    fn remember(&mut self, client: u32, known: Known);
    /// The models it holds: server, cluster, name, parameters.
    fn held(&self, out: &mut Models<'_>);
    /// Numbers about its work, by name.
    fn gauges(&self) -> Vec<(String, f64)>;
    /// Who was found to be kin of whom, by client id; nothing where the method does not find out.
    fn kin(&self) -> Option<FoundKin>;
    /// The first reason it knows why the run could not go on, where it could not.
    fn stop(&self) -> Option<Stopped>;
}

struct OneServer<A: Algorithm> {
    node: ServerNode<A>,
    setting: Arc<Setting<A>>,
}

impl<A: Algorithm> ServerMachine for OneServer<A> {
    fn id(&self) -> u32 {
        self.node.server().id()
    }
    fn members(&self) -> &[Member] {
        self.node.server().members()
    }
    fn neighbours(&self) -> &[u32] {
        self.node.server().neighbours()
    }
    fn state(&self) -> Vec<u8> {
        let mut bytes = Encoder::default();
        self.node.server().save(&mut bytes);
        bytes.0
    }
    fn backlog(&self) -> Backlog {
        self.node.backlog()
    }
    fn restore(&mut self, full: &[u8], changes: &[Vec<u8>]) -> Result<(), Lost> {
        self.node.restore(full, changes.iter().map(Vec::as_slice))
    }
    fn start(&mut self) -> Vec<Effect> {
        self.node.start()
    }
    fn receive(&mut self, envelope: &Envelope) -> Vec<Effect> {
        self.node.receive(envelope)
    }
    fn beat(&self) -> Vec<Effect> {
        self.node.beat()
    }
    fn resend(&mut self) -> Vec<Effect> {
        let mut effects = self.node.beat();
        self.node.resend(&mut effects);
        effects
    }
    fn expire(&mut self, step: u32) -> Vec<Effect> {
        self.node.expire(step)
    }
    fn standing(&self) -> Standing {
        let (step, ended) = (self.node.step(), self.node.ended());
        Standing { step, ended, sharing: self.node.sharing() }
    }
    fn waits_for(&self) -> Vec<u32> {
        self.node.waits_for().collect()
    }
    fn waits_for_servers(&self) -> Vec<u32> {
        self.node.waits_for_servers().collect()
    }
    fn verdicts(&self) -> &[Verdict] {
        self.node.server().verdicts()
    }
    fn known(&self, position: usize) -> Option<&Known> {
        self.node.known(position)
    }
    fn remember(&mut self, client: u32, known: Known) {
        self.node.remember(client, known);
    }
    fn gauges(&self) -> Vec<(String, f64)> {
        let mut all = Vec::new();
        let state = self.node.server().state();
        self.setting.algorithm.gauges(state, &mut |name, value| all.push((name.to_string(), value)));
        all
    }
    fn kin(&self) -> Option<FoundKin> {
        self.node.server().kin(&self.setting.algorithm, &self.setting.run)
    }
    fn stop(&self) -> Option<Stopped> {
        let stop = self.node.stop()?.clone();
        Some(Stopped::new(stop, &*self.setting.algorithm, &self.setting.run))
    }
    fn held(&self, out: &mut Models<'_>) {
        let id = self.id();
        let each: &mut Held<'_> = &mut |cluster, name, model| out(id, cluster, name, model);
        self.node.server().held(&self.setting.algorithm, &self.setting.run, each);
    }
}

/// All clients of a process behind messages.
pub trait ClientMachines: Send + Sync {
    /// Their ids, sorted.
    fn ids(&self) -> Vec<u32>;
    /// Goes on from a client's last committed state.
    fn restore(&mut self, client: u32, state: &[u8]) -> Result<(), Damaged>;
    /// Takes messages; clients work in parallel, each through its own messages in order.
    fn receive(&mut self, envelopes: Vec<Envelope>) -> Vec<(u32, Vec<Effect>)>;
    /// Signs of life, and everything that the servers may not have yet.
    fn beat(&self) -> Vec<Effect>;
    /// The last step any of them has answered.
    fn step(&self) -> u32;
    /// How many have their served model on disk.
    fn served(&self) -> usize;
    /// How many are not needed any more.
    fn over(&self) -> usize;
    /// Those whose servers have turned them away, by id, each with its server and the reason.
    fn turned(&self) -> Vec<(u32, Peer, String)>;
    /// What each has spent, by position.
    fn accounts(&self) -> Vec<Account>;
    /// A client's ledger.
    fn chain(&self, client: u32) -> Option<&Chain>;
    /// What a client remembers between steps and has spent, as bytes.
    fn state(&self, client: u32) -> Option<Vec<u8>>;
    /// What has become of every client that was served, by id.
    fn outcomes(&self, out: &mut dyn FnMut(Outcome<'_>));
}

/// What became of a client that was served.
pub struct Outcome<'a> {
    /// Its id.
    pub id: u32,
    /// Its models in the order of the method's names; the first is its own.
    pub models: &'a [(&'static str, Vec<f64>)],
    /// What it has spent.
    pub account: &'a Account,
    /// What it was served, as it came: broadcast and own part.
    pub served: (&'a [u8], &'a [u8]),
}

struct Clients<A: Algorithm> {
    nodes: Vec<ClientNode<A>>,
    dimension: usize,
    pool: Arc<dyn Pool>,
}

/// Numbers in a batch of asks below which threads cost more than they bring.
const WORTH_THREADS: usize = 100_000;

impl<A: Algorithm> Clients<A> {
    fn position(&self, id: u32) -> Option<usize> {
        self.nodes.binary_search_by_key(&id, |node| node.member().id).ok()
    }
}

impl<A: Algorithm> ClientMachines for Clients<A> {
    fn ids(&self) -> Vec<u32> {
        self.nodes.iter().map(|node| node.member().id).collect()
    }
    fn restore(&mut self, client: u32, state: &[u8]) -> Result<(), Damaged> {
        let position = self.position(client).ok_or(Damaged)?;
        self.nodes[position].restore(state)
    }
    fn receive(&mut self, envelopes: Vec<Envelope>) -> Vec<(u32, Vec<Effect>)> {
        let mut mail: BTreeMap<usize, Vec<Envelope>> = BTreeMap::new();
        for envelope in envelopes {
            if let Peer::Client(id) = envelope.to
                && let Some(position) = self.position(id)
            {
                mail.entry(position).or_default().push(envelope);
            }
        }
        let work: Vec<(&mut ClientNode<A>, Vec<Envelope>)> = self
            .nodes
            .iter_mut()
            .enumerate()
            .filter_map(|(position, node)| mail.remove(&position).map(|envelopes| (node, envelopes)))
            .collect();
        let answer = |scratch: &mut Scratch<A>, (node, envelopes): (&mut ClientNode<A>, Vec<Envelope>)| {
            let effects = envelopes.iter().flat_map(|envelope| node.receive(envelope, scratch)).collect();
            (node.member().id, effects)
        };
        if work.len() * self.dimension < WORTH_THREADS {
            let mut scratch = Scratch::default();
            return work.into_iter().map(|item| answer(&mut scratch, item)).collect();
        }
        pool::map_with(&*self.pool, work, Scratch::default, answer)
    }
    fn beat(&self) -> Vec<Effect> {
        self.nodes.iter().flat_map(ClientNode::beat).collect()
    }
    fn step(&self) -> u32 {
        self.nodes.iter().map(ClientNode::step).max().unwrap_or(0)
    }
    fn served(&self) -> usize {
        self.nodes.iter().filter(|node| node.is_served()).count()
    }
    fn over(&self) -> usize {
        self.nodes.iter().filter(|node| node.is_over()).count()
    }
    fn turned(&self) -> Vec<(u32, Peer, String)> {
        let turned = |node: &ClientNode<A>| {
            let member = node.member();
            Some((member.id, Peer::Server(member.server), node.turned()?.to_string()))
        };
        self.nodes.iter().filter_map(turned).collect()
    }
    fn accounts(&self) -> Vec<Account> {
        self.nodes.iter().map(|node| node.client().account().clone()).collect()
    }
    fn chain(&self, client: u32) -> Option<&Chain> {
        self.position(client).map(|position| self.nodes[position].chain())
    }
    fn state(&self, client: u32) -> Option<Vec<u8>> {
        let mut bytes = Encoder::default();
        self.nodes[self.position(client)?].client().save(&mut bytes);
        Some(bytes.0)
    }
    fn outcomes(&self, out: &mut dyn FnMut(Outcome<'_>)) {
        for (node, served) in self.nodes.iter().filter_map(|node| Some((node, node.served()?))) {
            let mut models = Vec::with_capacity(A::PERSONAL.len());
            node.personal(&mut |name, model| models.push((name, model.to_vec())));
            out(Outcome { id: node.member().id, models: &models, account: node.client().account(), served });
        }
    }
}

/// What a client brings to a run.
pub struct Joining {
    /// Its id on the roster.
    pub id: u32,
    /// Its records.
    pub data: Arc<Dataset>,
    /// The seed of its private randomness.
    pub secret: [u8; 32],
    /// The digest of its records that it shows to its server.
    pub shown: [u8; 32],
    /// Its ledger so far.
    pub chain: Chain,
}

/// What nodes are built from: a method, and a federation as the method sees it.
pub struct Blueprint<'a> {
    /// The method's name in the registry.
    pub algorithm: &'a str,
    /// The method.
    pub method: Arc<dyn AnyMethod>,
    /// What the run fixes.
    pub run: &'a Run,
    /// Who takes part, arranged for the method.
    pub federation: &'a Federation,
    /// The digest that all nodes must agree on.
    pub fingerprint: [u8; 32],
}

impl Blueprint<'_> {
    fn networked(&self) -> Result<(), RunFault> {
        if self.method.simulation_only() {
            return Err(RunFault::Config(format!(
                "{:?} needs the raw data of all clients in one place: it runs in a simulation only",
                self.algorithm
            )));
        }
        Ok(())
    }

    /// These servers of the federation; refused for a method that only a simulation may run.
    pub fn servers(&self, ids: &[u32], mode: Mode) -> Result<Vec<Box<dyn ServerMachine>>, RunFault> {
        self.networked()?;
        Ok(Arc::clone(&self.method).servers(self, ids, mode))
    }

    /// These clients of the federation; refused for a method that only a simulation may run.
    pub fn clients(
        &self,
        joining: Vec<Joining>,
        pool: Arc<dyn Pool>,
    ) -> Result<Box<dyn ClientMachines>, RunFault> {
        self.networked()?;
        Arc::clone(&self.method).clients(self, joining, pool)
    }

    fn setting<A: Algorithm>(&self, algorithm: Arc<A>) -> Arc<Setting<A>> {
        Arc::new(Setting { algorithm, run: self.run.clone(), fingerprint: self.fingerprint })
    }
}

/// Servers of a method.
pub(super) fn servers<A: Algorithm>(
    algorithm: Arc<A>,
    blueprint: &Blueprint<'_>,
    ids: &[u32],
    mode: Mode,
) -> Vec<Box<dyn ServerMachine>> {
    let setting = blueprint.setting(algorithm);
    let build = |id: &u32| -> Box<dyn ServerMachine> {
        let node = ServerNode::new(setting.clone(), blueprint.federation, *id, mode);
        Box::new(OneServer { node, setting: setting.clone() })
    };
    ids.iter().map(build).collect()
}

/// Clients of a method.
pub(super) fn clients<A: Algorithm>(
    algorithm: Arc<A>,
    blueprint: &Blueprint<'_>,
    joining: Vec<Joining>,
    pool: Arc<dyn Pool>,
) -> Result<Box<dyn ClientMachines>, RunFault> {
    let setting = blueprint.setting(algorithm);
    let federation = blueprint.federation;
    let mut rosters: BTreeMap<u32, Vec<Member>> = BTreeMap::new();
    for joining in &joining {
        let server = federation.members()[joining.id as usize].server;
        rosters.entry(server).or_insert_with(|| {
            federation.clients_of(server).iter().map(|&k| federation.members()[k as usize]).collect()
        });
    }
    let join = |joining: Joining| {
        let member = federation.members()[joining.id as usize];
        let at = ServerView {
            run: &setting.run,
            id: member.server,
            members: &rosters[&member.server],
            neighbours: federation.topology().neighbours(member.server),
        };
        let local = setting
            .algorithm
            .join(&joining.data, at, &member)
            .map_err(|unsolved| RunFault::unsolved(federation, &member, &unsolved))?;
        let Joining { secret, shown, chain, .. } = joining;
        Ok(ClientNode::new(setting.clone(), member, local, secret, shown, chain))
    };
    // As in one process: the first fault by place.
    let nodes: Vec<Result<ClientNode<A>, RunFault>> = pool::map(&*pool, joining, join);
    let mut nodes = nodes.into_iter().collect::<Result<Vec<_>, RunFault>>()?;
    nodes.sort_by_key(|node| node.member().id);
    Ok(Box::new(Clients { nodes, dimension: setting.run.dimension, pool }))
}
