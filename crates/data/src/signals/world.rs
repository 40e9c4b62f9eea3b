//! From signals to a world: one server, one cluster, and what is known of the graphs.

use super::{Signals, SignalsOptions, some};
use crate::error::DataError;
use crate::prepare::check;
use crate::prepare::standardise::Scaling;
use crate::world::roster::Roster;
use crate::world::schema::{Feature, Schema};
use crate::world::{Client, Nodes, Truth, World, assemble};
use crate::{Request, topology};
use fedkin_graph::Topology;
use fedkin_learner::Dataset;
use std::sync::Arc;

/// The one server that all clients of graph learning share.
const SERVER: &str = "server";
const CLUSTER: &str = "all";

/// One client on the way into a world.
pub(super) struct Seat {
    pub(super) name: String,
    pub(super) train: Vec<f64>,
    pub(super) test: Vec<f64>,
    pub(super) scaling: Vec<f64>,
    /// The graph that the signals were drawn from, where that is known.
    pub(super) graph: Option<Vec<f64>>,
}

impl Seat {
    pub(super) fn new(name: String, train: Vec<f64>) -> Self {
        Self { name, train, test: Vec::new(), scaling: Vec::new(), graph: None }
    }
}

/// A graph of one server.
pub(super) fn one_server() -> Topology {
    Topology::none(1)
}

/// The graph of one server that a config asks for, or why it cannot be had.
pub(super) fn server_of(request: &Request<'_>) -> Result<Topology, DataError> {
    topology::build(request.topology, &[SERVER.to_string()], false, request.seed, request.require_connected)
}

/// Puts the clients together. Without `common` nothing is said about true graphs.
pub(super) fn assemble_signals(
    columns: Vec<String>,
    mut seats: Vec<Seat>,
    topology: Topology,
    common: Option<Vec<f64>>,
    nodes: Option<Nodes>,
) -> Result<World, DataError> {
    // Ids follow the names, and the graphs follow the ids.
    seats.sort_by(|a, b| a.name.as_bytes().cmp(b.name.as_bytes()));
    let (mut clients, mut models) = (Vec::with_capacity(seats.len()), Vec::new());
    for seat in seats {
        let dataset = |features: Vec<f64>| {
            let targets = vec![0.0; features.len() / columns.len().max(1)];
            Dataset::new(columns.len(), features, targets)
                .map(Arc::new)
                .map_err(|source| DataError::Records { client: seat.name.clone(), source })
        };
        let train = dataset(seat.train)?;
        let test = if seat.test.is_empty() { None } else { Some(dataset(seat.test)?) };
        models.extend(seat.graph);
        clients.push(Client {
            name: seat.name,
            server: 0,
            cluster: 0,
            train,
            test,
            validation: None,
            scaling: seat.scaling,
            learner: None,
        });
    }
    let schema = Schema {
        features: columns.into_iter().map(Feature::number).collect(),
        target: String::new(),
        shape: None,
    };
    let roster = Roster { servers: vec![SERVER.into()], clusters: vec![CLUSTER.into()], topology };
    let mut world = assemble(clients, roster, None, schema)?;
    world.truth = common.map(|common| Truth {
        cluster: (0..models.len() as u32).collect(),
        models,
        common: Some(common),
    });
    world.nodes = nodes;
    Ok(world)
}

/// A world of these clients: one server, one cluster, no test records.
///
/// Nodes are matched by name and take the order of the first client; clients with other nodes are refused.
pub fn signals_world(files: Vec<(String, Signals)>, options: &SignalsOptions) -> Result<World, DataError> {
    signals_world_at(files, options, one_server())
}

pub(super) fn signals_world_at(
    files: Vec<(String, Signals)>,
    options: &SignalsOptions,
    topology: Topology,
) -> Result<World, DataError> {
    let Some((first, nodes)) = files.first().map(|(name, signals)| (name.clone(), signals.nodes.clone()))
    else {
        return Err(DataError::config("paths", "give at least one file of signals"));
    };
    if nodes.len() < 2 {
        let message = format!(
            "there is one node only ({}): a graph needs at least 2",
            some(nodes.iter().map(|n| &**n))
        );
        return Err(DataError::client(first, message));
    }
    let scaling =
        if options.standardise { Scaling::ByClient(vec![true; nodes.len()]) } else { Scaling::Never };
    let mut seats = Vec::with_capacity(files.len());
    for (name, signals) in files {
        let mut rows = aligned((&first, &nodes), (&name, signals))?;
        if let Some(limit) = options.limit {
            rows.truncate(limit.saturating_mul(nodes.len()));
        }
        let used = scaling.apply(nodes.len(), &mut rows, []);
        if rows.iter().all(|value| value.is_finite()) {
            check::varies(&name, nodes.len(), &rows)?;
        }
        seats.push(Seat { scaling: used, ..Seat::new(name, rows) });
    }
    assemble_signals(nodes, seats, topology, None, None)
}

/// The records with their columns in the order of the first client.
fn aligned(
    (first, nodes): (&str, &[String]),
    (name, signals): (&str, Signals),
) -> Result<Vec<f64>, DataError> {
    if signals.nodes == nodes {
        return Ok(signals.rows);
    }
    let only = |these: &[String], others: &[String]| {
        some(these.iter().filter(|node| !others.contains(node)).map(String::as_str))
    };
    let (missing, extra) = (only(nodes, &signals.nodes), only(&signals.nodes, nodes));
    if !missing.is_empty() || !extra.is_empty() {
        let mut parts = Vec::new();
        for (client, names) in [(first, missing), (name, extra)] {
            if !names.is_empty() {
                parts.push(format!("only {client:?} has {names}"));
            }
        }
        let message = format!(
            "it has other nodes than client {first:?} ({}): all clients have the same nodes; rename them, or choose those \
             that all have with `nodes`",
            parts.join("; ")
        );
        return Err(DataError::client(name, message));
    }
    let columns: Vec<usize> =
        nodes.iter().filter_map(|node| signals.nodes.iter().position(|other| other == node)).collect();
    Ok(signals.columns(&columns))
}
