//! The federation with its records, and the digest a resumed run compares.

pub(crate) mod builder;
mod digest;
pub(crate) mod labels;
pub(crate) mod roster;
pub(crate) mod schema;

use crate::error::DataError;
use digest::Digest;
use fedkin_learner::Dataset;
use fedkin_method::{Entry, Federation};
use rayon::prelude::*;
use roster::Roster;
use schema::Schema;
use std::collections::HashMap;
use std::sync::Arc;

/// Clients whose records are hashed together. Part of the digest: changing it changes every fingerprint.
const GROUP: usize = 256;

/// Who takes part, with which records.
#[derive(Debug, Clone)]
pub struct World {
    /// The roster and the graph of servers.
    pub federation: Federation,
    /// The training records by client id.
    pub train: Vec<Arc<Dataset>>,
    /// The test records by client id; one `Arc` where a cluster's clients share a test set.
    pub test: Vec<Option<Arc<Dataset>>>,
    /// The validation records by client id, for choosing parameters; nothing where none were set aside.
    pub validation: Vec<Option<Arc<Dataset>>>,
    /// Public test records that belong to no client, where the config asks for some.
    pub holdout: Option<Arc<Dataset>>,
    /// The names of the classes by number, where the source knows them.
    pub classes: Vec<String>,
    /// What the records were drawn from, where that is known.
    pub truth: Option<Truth>,
    /// What the columns mean.
    pub schema: Schema,
    /// What is known of the columns as nodes of a graph.
    pub nodes: Option<Nodes>,
    /// How a client's features were standardised, by client id: means, then scales; empty where they were not.
    pub scaling: Vec<Vec<f64>>,
    /// What a client fits by client id, where the data name learners; nothing for one that fits what all fit.
    pub learners: Option<Vec<Option<String>>>,
    /// The clusters of the roster by client id, where a run has replaced them; an index into their names.
    pub replaced: Option<Replaced>,
    /// A digest of the roster, the graph, the schema and all records.
    pub fingerprint: [u8; 32],
}

/// The clusters that stood in a roster before a run brought its own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Replaced {
    /// By client id.
    pub cluster: Vec<u32>,
    /// What they are called.
    pub names: Vec<String>,
}

impl World {
    /// The same world with public test records and the names of its classes.
    pub(crate) fn with_public(mut self, holdout: Option<Arc<Dataset>>, classes: Vec<String>) -> Self {
        (self.holdout, self.classes) = (holdout, classes);
        if self.holdout.is_some() {
            self.fingerprint = fingerprint(&self);
        }
        self
    }

    /// The same records in another federation of the same clients. What they were drawn from stays.
    #[must_use]
    pub fn regrouped(mut self, federation: Federation) -> Self {
        let before = &self.federation;
        self.replaced.get_or_insert_with(|| Replaced {
            cluster: before.members().iter().map(|member| member.cluster).collect(),
            names: before.cluster_names().to_vec(),
        });
        self.federation = federation;
        self.fingerprint = fingerprint(&self);
        self
    }
}

/// What synthetic records were drawn from.
///
/// Where clients hold signals, a model is a graph: the weights of all pairs of nodes, row by row of the
/// upper triangle, and every client has one of its own.
#[derive(Debug, Clone, PartialEq)]
pub struct Truth {
    /// The model of each true cluster.
    pub models: Vec<Vec<f64>>,
    /// The true cluster of each client, by id: an index into `models`.
    pub cluster: Vec<u32>,
    /// The graph that all clients have in common; absent where models are no graphs.
    pub common: Option<Vec<f64>>,
}

/// What is known of the nodes of a graph besides their names, which are those of the schema's features.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Nodes {
    /// Where each node stands in the plane.
    pub positions: Option<Vec<[f64; 2]>>,
    /// The true class of each node.
    pub labels: Option<Vec<u32>>,
}

/// One client on the way into a world.
#[derive(Debug)]
pub(crate) struct Client {
    pub(crate) name: String,
    pub(crate) server: u32,
    pub(crate) cluster: u32,
    pub(crate) train: Arc<Dataset>,
    pub(crate) test: Option<Arc<Dataset>>,
    pub(crate) validation: Option<Arc<Dataset>>,
    pub(crate) scaling: Vec<f64>,
    /// What it fits, where that is not what all fit.
    pub(crate) learner: Option<String>,
}

/// Gives ids and takes the digest. The records are moved, never copied.
pub(crate) fn assemble(
    clients: Vec<Client>,
    roster: Roster,
    truth: Option<Vec<Vec<f64>>>,
    schema: Schema,
) -> Result<World, DataError> {
    let (mut entries, mut records) = (Vec::with_capacity(clients.len()), Vec::with_capacity(clients.len()));
    let mut learners = Vec::with_capacity(clients.len());
    for client in clients {
        let samples = client.train.rows() as u32;
        entries.push(Entry { name: client.name, server: client.server, cluster: client.cluster, samples });
        records.push(Some(((client.train, client.test), (client.validation, client.scaling))));
        learners.push(client.learner);
    }
    let (federation, order) = Federation::new(entries, roster.servers, roster.clusters, roster.topology)?;
    let (sets, rest): (Vec<_>, Vec<_>) = order.iter().filter_map(|&at| records[at].take()).unzip();
    let (train, test): (Vec<_>, Vec<_>) = sets.into_iter().unzip();
    let (validation, scaling): (Vec<_>, Vec<_>) = rest.into_iter().unzip();
    let named = learners.iter().any(Option::is_some);
    let learners = named.then(|| order.iter().map(|&at| learners[at].take()).collect());
    let truth = truth.map(|models| Truth {
        models,
        cluster: federation.members().iter().map(|member| member.cluster).collect(),
        common: None,
    });
    let mut world = World {
        federation,
        train,
        test,
        validation,
        holdout: None,
        classes: Vec::new(),
        truth,
        schema,
        nodes: None,
        scaling,
        learners,
        replaced: None,
        fingerprint: [0; 32],
    };
    world.fingerprint = fingerprint(&world);
    Ok(world)
}

fn fingerprint(world: &World) -> [u8; 32] {
    let World { federation, train, test, schema, .. } = world;
    let mut whole = Digest::new("fedkin world 1");
    for names in [federation.server_names(), federation.cluster_names()] {
        whole.number(names.len());
        for name in names {
            whole.text(name);
        }
    }
    for (a, b) in federation.topology().edges() {
        whole.number(a as usize);
        whole.number(b as usize);
    }
    schema.digest(&mut whole);
    // A test set that many clients share is hashed once and then named by its number.
    let address = |set: &Arc<Dataset>| Arc::as_ptr(set) as usize;
    let (mut numbers, mut distinct) = (HashMap::new(), Vec::new());
    for set in test.iter().flatten() {
        numbers.entry(address(set)).or_insert_with(|| {
            distinct.push(set);
            distinct.len()
        });
    }
    let digests: Vec<[u8; 32]> = distinct
        .par_chunks(GROUP)
        .map(|group| {
            let mut digest = Digest::new("fedkin test records");
            for records in group {
                digest.records(records);
            }
            digest.finish()
        })
        .collect();
    for digest in &digests {
        whole.bytes(digest);
    }
    let groups: Vec<[u8; 32]> = federation
        .members()
        .par_chunks(GROUP)
        .map(|members| {
            let mut digest = Digest::new("fedkin clients");
            for member in members {
                let id = member.id as usize;
                digest.text(federation.client_name(member.id));
                digest.number(member.server as usize);
                digest.number(member.cluster as usize);
                digest.records(&train[id]);
                let number = test[id].as_ref().and_then(|set| numbers.get(&address(set)));
                digest.number(number.copied().unwrap_or(0));
            }
            digest.finish()
        })
        .collect();
    whole.number(federation.members().len());
    for digest in &groups {
        whole.bytes(digest);
    }
    // Worlds without these keep the digest they always had.
    if world.validation.iter().any(Option::is_some) {
        whole.text("validation");
        for set in &world.validation {
            whole.number(usize::from(set.is_some()));
            if let Some(records) = set {
                whole.records(records);
            }
        }
    }
    if let Some(records) = &world.holdout {
        whole.text("hold-out");
        whole.records(records);
    }
    if let Some(learners) = &world.learners {
        whole.text("learners");
        for learner in learners {
            whole.text(learner.as_deref().unwrap_or_default());
        }
    }
    whole.finish()
}
