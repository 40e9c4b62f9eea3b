//! The roster of a deployment: the public facts that all nodes agree on.

use super::{Nodes, config_id};
use fedkin_data::{Constant, DataError, Schema, World, constants};
use fedkin_graph::Topology;
use fedkin_method::{Entry, Federation};
use fedkin_run::{Error, Plan};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::Path;

/// The version of the file this code reads and writes.
pub(crate) const VERSION: u32 = 1;

/// Who takes part where, and what their records look like. Written as `roster.json`.
///
/// Clients stand in the order of their ids, servers and clusters as well; the federation is the one of the
/// data, before a method arranges it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Roster {
    /// The version of the format.
    pub version: u32,
    /// A digest of the config it was made for; a node with another one is refused before it talks to anybody.
    pub config: String,
    /// The dimension of a model.
    pub dimension: usize,
    /// The servers by id.
    pub servers: Vec<String>,
    /// The clusters by id.
    pub clusters: Vec<String>,
    /// Which servers talk to each other, every pair once.
    pub edges: Vec<(String, String)>,
    /// The features in order, and the target.
    pub schema: Schema,
    /// By what the features are standardised, where the config names a file for it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub constants: Vec<Constant>,
    /// The clients by id.
    pub clients: Vec<Client>,
}

/// One line of the roster.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Client {
    /// Its name.
    pub name: String,
    /// The name of its server.
    pub server: String,
    /// The name of its cluster.
    pub cluster: String,
    /// Number of training records.
    pub samples: u32,
    /// The node that has its records.
    pub host: String,
    /// What it fits, where that is not what all fit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub learner: Option<String>,
}

/// Which client goes to which host, where the roster does not say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Hosts {
    /// One host for each client, named after it.
    Each,
    /// So many blocks of clients in the order of their ids: `host-0`, `host-1`, ...
    Blocks(usize),
}

impl Hosts {
    /// The host of each client.
    pub fn assign(&self, names: &[String]) -> Vec<String> {
        match *self {
            Self::Each => names.to_vec(),
            Self::Blocks(count) => {
                let count = count.clamp(1, names.len().max(1));
                let width = (count - 1).to_string().len();
                (0..names.len()).map(|id| format!("host-{:0width$}", id * count / names.len())).collect()
            }
        }
    }
}

impl Roster {
    /// The roster of a world that is at hand.
    pub fn of(plan: &Plan, world: &World, hosts: &Hosts) -> Result<Self, Error> {
        let hosts = hosts.assign(world.federation.client_names());
        let constants =
            if plan.own_records() { constants(&plan.config.data, &plan.base)? } else { Vec::new() };
        let mut roster = Self::new(plan, &world.federation, &hosts, world.schema.clone(), constants);
        roster.name_learners(world.learners.as_deref());
        Ok(roster)
    }

    /// What the clients fit by id, where some fit something of their own.
    pub(super) fn name_learners(&mut self, learners: Option<&[Option<String>]>) {
        for (client, learner) in self.clients.iter_mut().zip(learners.into_iter().flatten()) {
            client.learner.clone_from(learner);
        }
    }

    /// What each client fits by id; nothing where all fit the same.
    pub fn learners(&self) -> Option<Vec<Option<String>>> {
        let named = self.clients.iter().any(|client| client.learner.is_some());
        named.then(|| self.clients.iter().map(|client| client.learner.clone()).collect())
    }

    pub(super) fn new(
        plan: &Plan,
        federation: &Federation,
        hosts: &[String],
        schema: Schema,
        constants: Vec<Constant>,
    ) -> Self {
        let (servers, clusters) = (federation.server_names(), federation.cluster_names());
        let clients = federation
            .members()
            .iter()
            .map(|member| Client {
                name: federation.client_name(member.id).to_string(),
                server: servers[member.server as usize].clone(),
                cluster: clusters[member.cluster as usize].clone(),
                samples: member.samples,
                host: hosts[member.id as usize].clone(),
                learner: None,
            })
            .collect();
        let name = |id: u32| servers[id as usize].clone();
        Self {
            version: VERSION,
            config: config_id(&plan.config),
            dimension: plan.dimension(schema.columns()),
            servers: servers.to_vec(),
            clusters: clusters.to_vec(),
            edges: federation.topology().edges().map(|(a, b)| (name(a), name(b))).collect(),
            schema,
            constants,
            clients,
        }
    }

    /// Takes over what `[kin]` has replaced in another roster: clusters, then servers. A node that draws its data has
    /// not the files that `[kin]` names, and needs none.
    pub(super) fn take_kin(&mut self, other: &Self, (clusters, servers): (bool, bool)) {
        if clusters {
            self.clusters.clone_from(&other.clusters);
        }
        if servers {
            self.servers.clone_from(&other.servers);
            self.edges.clone_from(&other.edges);
        }
        for (client, other) in self.clients.iter_mut().zip(&other.clients) {
            if clusters {
                client.cluster.clone_from(&other.cluster);
            }
            if servers {
                client.server.clone_from(&other.server);
            }
        }
    }

    /// The federation of the data, with the ids that one process would give.
    pub fn federation(&self) -> Result<Federation, Error> {
        let wrong = |message: String| Error::Deploy { place: "roster".into(), message };
        let index = |names: &[String], what: &str| {
            let mut ids = BTreeMap::new();
            for (name, id) in names.iter().zip(0u32..) {
                if ids.insert(name.clone(), id).is_some() {
                    return Err(wrong(format!("{what} {name:?} is listed twice")));
                }
            }
            Ok(ids)
        };
        let (servers, clusters) = (index(&self.servers, "server")?, index(&self.clusters, "cluster")?);
        let find = |ids: &BTreeMap<String, u32>, what: &str, name: &str, whose: &str| {
            let message = || wrong(format!("{whose} names the {what} {name:?}, which is not listed"));
            ids.get(name).copied().ok_or_else(message)
        };
        let mut edges = Vec::with_capacity(self.edges.len());
        for (a, b) in &self.edges {
            edges.push((find(&servers, "server", a, "an edge")?, find(&servers, "server", b, "an edge")?));
        }
        let topology = Topology::from_edges(self.servers.len(), edges).map_err(DataError::from)?;
        let mut entries = Vec::with_capacity(self.clients.len());
        for client in &self.clients {
            let whose = format!("client {:?}", client.name);
            entries.push(Entry {
                name: client.name.clone(),
                server: find(&servers, "server", &client.server, &whose)?,
                cluster: find(&clusters, "cluster", &client.cluster, &whose)?,
                samples: client.samples,
            });
        }
        let (federation, order) =
            Federation::new(entries, self.servers.clone(), self.clusters.clone(), topology)
                .map_err(DataError::from)?;
        if let Some(at) = order.iter().enumerate().position(|(id, at)| id != *at) {
            let name = &self.clients[at].name;
            return Err(wrong(format!(
                "client {name:?} is out of order: clients stand in the byte order of names"
            )));
        }
        Ok(federation)
    }

    /// The file's content. Equal rosters give equal texts.
    pub fn to_json(&self) -> String {
        // A roster holds no map with keys other than text, which is all that could fail.
        let mut text = serde_json::to_string_pretty(self).unwrap_or_default();
        text.push('\n');
        text
    }

    /// Reads the file's content; `place` names the file in messages.
    pub fn from_json(text: &str, place: &str) -> Result<Self, Error> {
        /// Only what every version has.
        #[derive(Deserialize)]
        struct Versioned {
            version: u32,
        }
        let wrong = |message: String| Error::Deploy { place: place.to_string(), message };
        let read = |error: serde_json::Error| wrong(format!("this is not a roster: {error}"));
        let versioned: Versioned = serde_json::from_str(text).map_err(read)?;
        if versioned.version != VERSION {
            return Err(wrong(format!(
                "version {} of the roster is not known: this Fedkin reads version {VERSION}",
                versioned.version
            )));
        }
        let roster: Self = serde_json::from_str(text).map_err(read)?;
        roster.federation().map_err(|error| match error {
            Error::Deploy { message, .. } => wrong(message),
            other => wrong(other.to_string()),
        })?;
        Ok(roster)
    }

    /// Reads the file.
    pub fn read(path: &Path) -> Result<Self, Error> {
        let place = path.display().to_string();
        let text = std::fs::read_to_string(path).map_err(|error| Error::Deploy {
            place: place.clone(),
            message: format!("cannot read the roster: {error}"),
        })?;
        Self::from_json(&text, &place)
    }

    /// The nodes of the federation as a plan's method sees it.
    pub fn nodes(&self, plan: &Plan) -> Result<Nodes, Error> {
        Ok(Nodes::new(self, &self.federation()?.arranged(plan.row.arrange)))
    }
}
