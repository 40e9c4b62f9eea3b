//! What a node leaves in its state directory when its part of a run is over, and how a launcher on the same machine
//! collects it.

use super::stopping::StopOutcome;
use super::{Deployment, NodeConfig};
use fedkin_method::round::{
    self, CHUNK, ClientMachines, Judge, Results, ServerMachine, Stopped, Summary, means,
};
use fedkin_method::{Federation, FoundKin, Verdict};
use fedkin_privacy::{Account, ChainLine, Draws, Ledger, Line, Statement};
use fedkin_run::Error;
use fedkin_run::artifacts::models::{self, Models};
use fedkin_run::artifacts::{ArtifactError, atomic, make_folder};
use fedkin_runtime::store::read_ledger;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

const OUTCOME: &str = "outcome.json";

/// `outcome.json` of a node: written last, so a node that has one is done.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct NodeOutcome {
    /// Fingerprint of the run.
    pub run: String,
    /// Its clients.
    pub clients: Vec<ClientOutcome>,
    /// Names of the models that were written.
    pub models: Vec<String>,
    /// Of servers: the last step. A method may end before the rounds do.
    #[serde(default)]
    pub steps: u32,
    /// Of servers: the clients whose uploads counted in that step.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub counted: Vec<String>,
    /// Of servers: numbers about their work, by name, as bits so that none is lost.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub gauges: Vec<(String, u64)>,
    /// Of servers: who was found to be kin of whom.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kin: Option<KinOutcome>,
    /// Of servers: the first reason they know why the run could not go on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop: Option<StopOutcome>,
}

/// Kin in `outcome.json`, by name.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct KinOutcome {
    /// Pairs with what the one was worth to the other, as bits so that none is lost.
    pub edges: Vec<(String, String, u64)>,
    /// Clients and the number of the cluster each was found to belong to.
    pub clusters: Vec<(String, u32)>,
}

impl KinOutcome {
    fn new(kin: &FoundKin, federation: &Federation) -> Self {
        let name = |id: u32| federation.client_name(id).to_string();
        Self {
            edges: kin.edges.iter().map(|&(a, b, worth)| (name(a), name(b), worth.to_bits())).collect(),
            clusters: kin.clusters.iter().map(|&(client, cluster)| (name(client), cluster)).collect(),
        }
    }

    fn found(&self, federation: &Federation) -> FoundKin {
        let id = |name: &str| federation.find_client(name);
        let edges =
            self.edges.iter().filter_map(|(a, b, worth)| Some((id(a)?, id(b)?, f64::from_bits(*worth))));
        let clusters = self.clusters.iter().filter_map(|(client, cluster)| Some((id(client)?, *cluster)));
        FoundKin { edges: edges.collect(), clusters: clusters.collect() }
    }
}

/// One client in `outcome.json`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ClientOutcome {
    /// Its name.
    pub client: String,
    /// Units of 1e-12 zCDP it has spent, in all runs on its data.
    pub spent: u64,
    /// Releases, disclosures included, in all runs on its data.
    pub releases: u64,
    /// Those from Poisson samples: noise multiplier and rate, as the bits of a number so that none is lost, and how
    /// many.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sampled: Vec<[u64; 3]>,
}

fn bits(draws: &Draws) -> [u64; 3] {
    [draws.multiplier.to_bits(), draws.rate.to_bits(), draws.steps]
}

fn of_bits(&[multiplier, rate, steps]: &[u64; 3]) -> Draws {
    Draws { multiplier: f64::from_bits(multiplier), rate: f64::from_bits(rate), steps }
}

/// The first stop by step and server: the reason of the run.
fn first(stops: impl IntoIterator<Item = Stopped>) -> Option<Stopped> {
    stops.into_iter().min_by_key(|stopped| (stopped.stop.step, stopped.stop.server))
}

fn folder_of(state: &Path, run: &str) -> PathBuf {
    state.join("results").join(run)
}

impl Deployment {
    /// Whether a node's part of this run is over.
    pub fn left(&self, state: &Path) -> Result<Option<NodeOutcome>, Error> {
        let path = folder_of(state, &self.run_id()).join(OUTCOME);
        match std::fs::read(&path) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(source) => Err(ArtifactError::File { action: "read", path, source }.into()),
            Ok(bytes) => serde_json::from_slice(&bytes)
                .map(Some)
                .map_err(|error| ArtifactError::Damaged { path, what: error.to_string() }.into()),
        }
    }

    fn leave(&self, state: &Path, left: &NodeOutcome) -> Result<(), Error> {
        let mut text = serde_json::to_vec_pretty(left).map_err(|error| Error::Usage(error.to_string()))?;
        text.push(b'\n');
        atomic::write(&folder_of(state, &self.run_id()).join(OUTCOME), &text)?;
        Ok(())
    }

    /// Writes the models that servers hold.
    pub fn leave_servers(&self, state: &Path, machines: &[Box<dyn ServerMachine>]) -> Result<(), Error> {
        let mut held: BTreeMap<&'static str, Vec<(String, Vec<f64>)>> = BTreeMap::new();
        for machine in machines {
            machine.held(&mut |server, cluster, name, model| {
                let server = &self.federation.server_names()[server as usize];
                let cluster = &self.federation.cluster_names()[cluster as usize];
                held.entry(name).or_default().push((format!("{server}/{cluster}"), model.to_vec()));
            });
        }
        let folder = folder_of(state, &self.run_id());
        for (name, list) in &held {
            let borrowed: Vec<(String, &[f64])> =
                list.iter().map(|(key, model)| (key.clone(), model.as_slice())).collect();
            make_folder(&folder.join(name))?;
            models::write_servers(&folder.join(name), &borrowed)?;
        }
        make_folder(&folder)?;
        let models = held.keys().map(ToString::to_string).collect();
        let run = hex::encode(self.fingerprint);
        let steps = machines.iter().map(|machine| machine.standing().step).max().unwrap_or(0);
        let gauges = machines.iter().flat_map(|machine| machine.gauges());
        let gauges = gauges.map(|(name, value)| (name, value.to_bits())).collect();
        let stops = machines.iter().filter_map(|machine| machine.stop());
        let stop = first(stops).map(StopOutcome::from);
        let kin = FoundKin::of_all(machines.iter().map(|machine| machine.kin()));
        let kin = kin.map(|kin| KinOutcome::new(&kin, &self.federation));
        let counted = machines.iter().flat_map(|machine| self.counted(&**machine)).collect();
        self.leave(
            state,
            &NodeOutcome { run, clients: Vec::new(), models, steps, counted, gauges, kin, stop },
        )
    }

    /// The clients whose uploads counted in the last step of a server. A client knows only what it sent.
    fn counted(&self, machine: &dyn ServerMachine) -> Vec<String> {
        let judged = machine.members().iter().zip(machine.verdicts());
        let counted = judged.filter(|(_, verdict)| **verdict == Verdict::Value);
        counted.map(|(member, _)| self.federation.client_name(member.id).to_string()).collect()
    }

    /// Writes the models of clients, and what they have spent.
    pub fn leave_clients(&self, state: &Path, clients: &dyn ClientMachines) -> Result<(), Error> {
        let mut left = NodeOutcome { run: hex::encode(self.fingerprint), ..NodeOutcome::default() };
        // A client that its method gives no model is in none of the lists.
        let mut by_name: Vec<ByName> = Vec::new();
        clients.outcomes(&mut |outcome| {
            let client = self.federation.client_name(outcome.id).to_string();
            for (i, (name, model)) in outcome.models.iter().enumerate() {
                if by_name.len() == i {
                    by_name.push((name, Vec::new(), Vec::new()));
                }
                if !model.is_empty() {
                    by_name[i].1.push(client.clone());
                    by_name[i].2.push(model.clone());
                }
            }
            left.clients.push(ClientOutcome {
                client,
                spent: outcome.account.spent,
                releases: outcome.account.releases,
                sampled: outcome.account.sampled.iter().map(bits).collect(),
            });
        });
        let folder = folder_of(state, &self.run_id());
        for (name, names, list) in &by_name {
            make_folder(&folder.join(name))?;
            models::write_clients(&folder.join(name), names, |k| &list[k])?;
        }
        make_folder(&folder)?;
        left.models = by_name.iter().map(|(name, ..)| (*name).to_string()).collect();
        self.leave(state, &left)
    }

    /// Collects what all nodes have left.
    pub fn collect(&self, nodes: &[NodeConfig]) -> Result<Collected, Error> {
        let count = self.federation.members().len();
        let mut collected = Collected {
            federation: self.federation.clone(),
            personal: self.plan.row.personal,
            steps: 0,
            rounds: 0,
            models: vec![vec![Vec::new(); count]; self.plan.row.personal.len()],
            active: vec![false; count],
            accounts: vec![Account::default(); count],
            statements: vec![Statement::default(); count],
            held: Vec::new(),
            gauges: Vec::new(),
            kin: None,
            ledger: Ledger::default(),
        };
        let (mut kin, mut stops) = (Vec::new(), Vec::new());
        let mut tally: BTreeMap<Key, Line> = BTreeMap::new();
        for node in nodes {
            let folder = folder_of(&node.state, &self.run_id());
            let Some(left) = self.left(&node.state)? else {
                return Err(Error::Usage(format!("node {:?} is not done", node.name)));
            };
            collected.steps = collected.steps.max(left.steps);
            for id in left.counted.iter().filter_map(|name| self.federation.find_client(name)) {
                collected.active[id as usize] = true;
            }
            stops.extend(left.stop.map(Stopped::from));
            collected.gauges.extend(left.gauges.into_iter().map(|(name, bits)| (name, f64::from_bits(bits))));
            kin.push(left.kin.map(|kin| kin.found(&self.federation)));
            for client in &left.clients {
                let Some(id) = self.federation.find_client(&client.client) else { continue };
                let at = id as usize;
                collected.accounts[at] = Account {
                    spent: client.spent,
                    releases: client.releases,
                    budget: None,
                    sampled: client.sampled.iter().map(of_bits).collect(),
                };
            }
            if left.clients.is_empty() {
                for name in &left.models {
                    let models = Models::servers(&folder.join(name))?;
                    for key in models.names() {
                        collected.held.push((key.clone(), name.clone(), models.read(key)?));
                    }
                }
                continue;
            }
            let written = |name: &&str| left.models.iter().any(|written| written == name);
            for (which, name) in self.plan.row.personal.iter().enumerate().filter(|(_, name)| written(name)) {
                let models = Models::clients(&folder.join(name))?;
                for key in models.names() {
                    if let Some(id) = self.federation.find_client(key) {
                        collected.models[which][id as usize] = models.read(key)?;
                    }
                }
            }
            self.add_ledger(&node.state, &mut tally, &mut collected.statements)?;
        }
        if let Some(stopped) = first(stops) {
            return Err(self.stopped(stopped));
        }
        collected.kin = FoundKin::of_all(kin);
        collected.rounds = self.plan.rounds_after(collected.steps, &self.run);
        collected.ledger.lines = tally.into_values().collect();
        Ok(collected)
    }

    /// Why a run could not go on, by name.
    pub fn stopped(&self, stopped: Stopped) -> Error {
        Error::stopped(stopped, &self.federation)
    }

    /// Adds the ledger of a client node, equal releases of a server's clients in one line.
    fn add_ledger(
        &self,
        state: &Path,
        tally: &mut BTreeMap<Key, Line>,
        statements: &mut [Statement],
    ) -> Result<(), Error> {
        let place = |error: &dyn std::fmt::Display| Error::Deploy {
            place: state.display().to_string(),
            message: error.to_string(),
        };
        for entry in read_ledger(state).map_err(|error| place(&error))? {
            let entry = entry.map_err(|error| place(&error))?;
            let line: &ChainLine = &entry.line;
            if line.run != self.fingerprint {
                continue;
            }
            let Some(id) = self.federation.find_client(&entry.client) else { continue };
            statements[id as usize].follow(line);
            if !line.is_release() {
                continue;
            }
            let server = self.federation.members()[id as usize].server;
            let key = (
                line.step,
                server,
                line.what.clone(),
                line.mechanism.clone(),
                line.bound.clone(),
                line.units,
                bits(&line.draws),
            );
            let sum = tally.entry(key).or_insert_with(|| Line {
                step: line.step,
                server,
                what: Cow::Owned(line.what.to_vec()),
                mechanism: Cow::Owned(line.mechanism.to_vec()),
                bound: Cow::Owned(line.bound.to_vec()),
                clients: 0,
                size: line.size,
                sigma_least: line.sigma,
                sigma_most: line.sigma,
                units: line.units,
                draws: line.draws.clone(),
            });
            sum.clients += 1;
            sum.size = sum.size.max(line.size);
            sum.sigma_least = sum.sigma_least.min(line.sigma);
            sum.sigma_most = sum.sigma_most.max(line.sigma);
        }
        Ok(())
    }
}

type Key = (u32, u32, Box<[u8]>, Box<[u8]>, Box<[u8]>, u64, [u64; 3]);

/// The name of a model, the clients that have it, and theirs.
type ByName = (&'static str, Vec<String>, Vec<Vec<f64>>);

/// A run whose nodes are done, collected from their directories.
pub struct Collected {
    federation: Federation,
    personal: &'static [&'static str],
    steps: u32,
    rounds: u32,
    /// By model, then by client.
    models: Vec<Vec<Vec<f64>>>,
    active: Vec<bool>,
    accounts: Vec<Account>,
    statements: Vec<Statement>,
    held: Vec<(String, String, Vec<f64>)>,
    gauges: Vec<(String, f64)>,
    kin: Option<FoundKin>,
    ledger: Ledger,
}

impl Collected {
    fn row(&self, judge: &dyn Judge, id: u32) -> Vec<f64> {
        let member = &self.federation.members()[id as usize];
        let mut row = vec![f64::NAN; judge.columns()];
        for (which, models) in self.models.iter().enumerate() {
            let model = &models[id as usize];
            if !model.is_empty() {
                judge.score(member, self.active[id as usize], which, model, &mut row);
            }
        }
        row
    }
}

impl Results for Collected {
    fn steps(&self) -> u32 {
        self.steps
    }
    fn rounds(&self) -> u32 {
        self.rounds
    }
    fn evaluate(&self, judge: &dyn Judge) -> Vec<Summary> {
        // In the order of one process: by server, by chunk of clients, then chunk sums.
        let servers = 0..self.federation.servers() as u32;
        let chunks = servers.flat_map(|server| self.federation.clients_of(server).chunks(CHUNK));
        Summary::of_chunks(judge.columns(), chunks.map(|chunk| chunk.iter().map(|&id| self.row(judge, id))))
    }
    fn rows(&self, judge: &dyn Judge) -> Vec<Vec<f64>> {
        (0..self.active.len() as u32).map(|id| self.row(judge, id)).collect()
    }
    fn signal_to_noise(&self) -> Option<f64> {
        // What a client computed before its noise is known to it alone.
        None
    }
    fn gauges(&self) -> Vec<(String, f64)> {
        means(self.gauges.iter().map(|(name, value)| (name.as_str(), *value)))
    }
    fn kin(&self) -> Option<FoundKin> {
        self.kin.clone()
    }
    fn models(&self, out: &mut dyn FnMut(u32, usize, &[f64])) {
        for id in 0..self.active.len() {
            for (which, models) in self.models.iter().enumerate().filter(|(_, models)| !models[id].is_empty())
            {
                out(id as u32, which, &models[id]);
            }
        }
    }
    fn held(&self, out: &mut round::Models<'_>) {
        let clusters = self.federation.cluster_names();
        for (key, name, model) in &self.held {
            // Names of servers and clusters may hold any character: compare whole keys.
            let find = (0..self.federation.servers()).find_map(|s| {
                let server = &self.federation.server_names()[s];
                let rest = key.strip_prefix(server.as_str())?.strip_prefix('/')?;
                clusters.iter().position(|cluster| cluster == rest).map(|c| (s as u32, c as u32))
            });
            let known = self.personal.iter().chain(&["served", "averaged"]).find(|known| *known == name);
            if let (Some((server, cluster)), Some(name)) = (find, known) {
                out(server, cluster, name, model);
            }
        }
    }
    fn ledger(&self) -> &Ledger {
        &self.ledger
    }
    fn accounts(&self) -> Vec<Account> {
        self.accounts.clone()
    }
    fn statements(&self) -> Option<Vec<Statement>> {
        Some(self.statements.clone())
    }
}
