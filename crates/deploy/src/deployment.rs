//! What a node opens: the experiment, the roster, and what follows from both.

use super::{HostedRecords, NodeConfig, NodeKind, Nodes, Roster, config_id, run_fingerprint, run_id};
use fedkin_config::Source;
use fedkin_method::{Algorithm, Federation, PersFl, Run};
use fedkin_run::{Error, Plan, Registry};
use fedkin_settings::suggest;
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

/// The repeat that is deployed: repeats are for error bars of simulations.
const REPEAT: u32 = 0;

/// A run on many machines, as every node of it sees it.
pub struct Deployment {
    /// The experiment.
    pub plan: Plan,
    /// Who takes part.
    pub roster: Roster,
    /// The federation as the method sees it.
    pub federation: Federation,
    /// What is fixed for the run.
    pub run: Run,
    /// The names of the nodes.
    pub nodes: Nodes,
    /// What all nodes compare.
    pub fingerprint: [u8; 32],
    /// Until an unanswered message is sent again.
    pub resend: Duration,
}

impl Deployment {
    /// Puts an experiment and its roster together.
    pub fn new(plan: Plan, roster: Roster) -> Result<Self, Error> {
        let wrong = |message: String| Error::Deploy { place: "roster".into(), message };
        if plan.row.simulation_only {
            return Err(wrong(format!(
                "algorithm {:?} is for simulations only: it needs what no client may send",
                plan.row.name
            )));
        }
        if plan.kin.by_rewards() {
            return Err(wrong(format!(
                "kin.by = \"rewards\" finds the clusters in one process first: run {} on the nodes and give what it \
                 finds as a file (kin.clusters = \"runs/.../clusters.csv\"), or set kin.by = \"loss\"",
                PersFl::NAME
            )));
        }
        let here = config_id(&plan.config);
        if here != roster.config {
            return Err(wrong(format!(
                "the experiment here has the config {here} but the roster was made for {}: this node would wait for \
                 others that never come; use the experiment and the roster that the other nodes have",
                roster.config
            )));
        }
        let dimension = plan.dimension(roster.schema.columns());
        if dimension != roster.dimension {
            return Err(wrong(format!(
                "models have {} parameters in the roster but {dimension} by the experiment: provision again",
                roster.dimension
            )));
        }
        let (federation, run) =
            plan.run(&roster.federation()?, roster.learners().as_deref(), roster.schema.columns(), REPEAT)?;
        let nodes = Nodes::new(&roster, &federation);
        let fingerprint = run_fingerprint(&plan.config, &roster);
        let resend = Duration::from_secs_f64(plan.config.network.resend.clamp(0.01, 1e6));
        Ok(Self { plan, roster, federation, run, nodes, fingerprint, resend })
    }

    /// Reads the files that a node's config names.
    pub fn open(registry: &Registry, node: &NodeConfig) -> Result<Self, Error> {
        let name = node.experiment.display().to_string();
        let text = std::fs::read_to_string(&node.experiment).map_err(|error| Error::Deploy {
            place: name.clone(),
            message: format!("cannot read the experiment: {error}"),
        })?;
        let base = node.experiment.parent().unwrap_or(Path::new(""));
        let plan = Plan::load(registry, &Source { name, text }, base, &[], &[])?;
        Self::new(plan, Roster::read(&node.roster)?)
    }

    /// The name of the run in subjects.
    pub fn run_id(&self) -> String {
        run_id(&self.fingerprint)
    }

    /// The ids of the servers that a node runs, sorted.
    pub fn servers_of(&self, node: &NodeConfig) -> Result<Vec<u32>, Error> {
        let NodeKind::Server(names) = &node.kind else { return Ok(Vec::new()) };
        let known = self.federation.server_names();
        find(names, known, "server", &node.name)
    }

    /// The ids of the clients that a node hosts, sorted.
    pub fn clients_of(&self, node: &NodeConfig) -> Result<Vec<u32>, Error> {
        let NodeKind::Client(names) = &node.kind else { return Ok(Vec::new()) };
        let own: Vec<u32> =
            (0..).zip(&self.nodes.hosts).filter(|(_, host)| **host == node.name).map(|(id, _)| id).collect();
        let Some(names) = names else {
            if own.is_empty() {
                let hint = suggest(&node.name, self.nodes.by_host().iter().map(|(host, _)| *host));
                let message = format!("the roster gives no client to host {:?}{hint}", node.name);
                return Err(Error::Deploy { place: "node.name".into(), message });
            }
            return Ok(own);
        };
        let ids = find(names, self.federation.client_names(), "client", &node.name)?;
        if let Some(&other) = ids.iter().find(|id| own.binary_search(id).is_err()) {
            let message = format!(
                "client {:?} belongs to host {:?} in the roster, not to {:?}",
                self.federation.client_name(other),
                self.nodes.hosts[other as usize],
                node.name
            );
            return Err(Error::Deploy { place: "node.clients".into(), message });
        }
        Ok(ids)
    }

    /// The records of the clients that a node hosts.
    pub fn records_of(&self, node: &NodeConfig) -> Result<Vec<HostedRecords>, Error> {
        let ids = self.clients_of(node)?;
        HostedRecords::all(&self.plan, &self.roster, &ids, &node.data, REPEAT)
    }
}

/// The sorted ids of names.
fn find(names: &[String], known: &[String], what: &str, node: &str) -> Result<Vec<u32>, Error> {
    let index: BTreeMap<&str, u32> = known.iter().map(String::as_str).zip(0..).collect();
    let mut ids = Vec::with_capacity(names.len());
    for name in names {
        let Some(&id) = index.get(name.as_str()) else {
            let hint = suggest(name, known.iter().map(String::as_str));
            let message = format!("node {node:?} names the {what} {name:?}, which is not in the run{hint}");
            return Err(Error::Deploy { place: format!("node.{what}s"), message });
        };
        ids.push(id);
    }
    ids.sort_unstable();
    ids.dedup();
    Ok(ids)
}
