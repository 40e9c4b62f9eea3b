//! What `[kin]` of a config brings into a run.

use crate::error::Error;
use crate::topologies;
use fedkin_config::{ClusterSource, FoundBy, Kin};
use fedkin_data::table::Table;
use fedkin_data::{DataError, World, csv};
use fedkin_graph::{Topology, partition};
use fedkin_method::{Federation, Infer};
use fedkin_settings::suggest;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Pairs of clients by id with their weights.
pub(crate) type ClientGraph = Arc<[(u32, u32, f64)]>;

const CLIENT: &str = "client";
const CLUSTER: &str = "cluster";

/// What a config says of kin, with complete paths.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Given {
    clusters: Option<Clusters>,
    graph: Option<PathBuf>,
}

#[derive(Debug, Clone, PartialEq)]
enum Clusters {
    Infer { count: Option<usize>, by_rewards: bool, infer: Infer },
    File(PathBuf),
}

impl Given {
    /// From `[kin]`; relative paths start at `base`.
    pub fn new(kin: &Kin, base: &Path) -> Self {
        let clusters = kin.clusters.as_ref().map(|clusters| match clusters {
            ClusterSource::Infer => Clusters::Infer {
                count: kin.count,
                by_rewards: kin.by == FoundBy::Rewards,
                infer: Infer { warm_up: kin.warm_up, forming: kin.forming, start: kin.start },
            },
            ClusterSource::File(path) => Clusters::File(base.join(path)),
        });
        Self { clusters, graph: kin.graph.as_ref().map(|path| base.join(path)) }
    }

    /// How clients pick their cluster on the way, where they do.
    pub fn infer(&self) -> Option<Infer> {
        match self.clusters {
            Some(Clusters::Infer { by_rewards: false, infer, .. }) => Some(infer),
            _ => None,
        }
    }

    /// Whether a run of another method is to find the clusters first.
    pub fn by_rewards(&self) -> bool {
        matches!(self.clusters, Some(Clusters::Infer { by_rewards: true, .. }))
    }

    /// Whether clients and servers stand elsewhere than the data say: clusters, then servers.
    pub fn replaces(&self) -> (bool, bool) {
        (matches!(self.clusters, Some(Clusters::File(_))), self.graph.is_some())
    }

    /// The federation as a method sees it that finds the clusters on the way: so many clusters, everybody in the first.
    pub(crate) fn unknown(&self, federation: Federation) -> Federation {
        let Some(Clusters::Infer { count, by_rewards: false, .. }) = self.clusters else { return federation };
        let count = count.unwrap_or(federation.clusters());
        let width = count.to_string().len();
        let names = (1..=count).map(|number| format!("found-{number:0width$}")).collect();
        federation.clustered(&vec![0; federation.members().len()], names).unwrap_or(federation)
    }

    /// The graph of clients with its weights, for methods that take one.
    pub(crate) fn client_graph(&self, roster: &Federation) -> Result<Option<ClientGraph>, Error> {
        self.graph.as_ref().map(|path| edges(roster, path).map(Arc::from)).transpose()
    }

    /// The world as the run sees it.
    pub(crate) fn world(&self, world: World, require_connected: bool) -> Result<World, Error> {
        match self.federation(&world.federation, require_connected)? {
            Some(federation) => Ok(world.regrouped(federation)),
            None => Ok(world),
        }
    }

    /// The federation as the run sees it; nothing where it is the one of the data.
    pub fn federation(
        &self,
        roster: &Federation,
        require_connected: bool,
    ) -> Result<Option<Federation>, Error> {
        let mut federation = match &self.clusters {
            None => None,
            Some(Clusters::Infer { count, .. }) => {
                let (clients, count) = (roster.members().len(), count.unwrap_or(roster.clusters()));
                if count > clients {
                    let message = format!("{clients} clients cannot form {count} clusters: lower it");
                    return Err(DataError::Config { key: "kin.count".into(), message }.into());
                }
                None
            }
            Some(Clusters::File(path)) => Some(of_file(roster, path)?),
        };
        if let Some(path) = &self.graph {
            let topology = graph(roster, path, require_connected)?;
            let base = federation.as_ref().unwrap_or(roster);
            federation = Some(base.each_alone(topology).map_err(DataError::from)?);
        }
        Ok(federation)
    }
}

/// The clusters of a file with the columns client and cluster, a line for every client.
fn of_file(roster: &Federation, path: &Path) -> Result<Federation, Error> {
    let table = csv::read(path, &|_| true)?;
    let file = |message: String| DataError::File { file: path.to_path_buf(), message };
    for column in &table.columns {
        if ![CLIENT, CLUSTER].contains(&column.name.as_str()) {
            let hint = suggest(&column.name, [CLIENT, CLUSTER].into_iter());
            let message = format!(
                "there is no use for the column {:?}{hint} (a file of clusters has the columns client, cluster)",
                column.name
            );
            return Err(file(message).into());
        }
        if let Some(row) = column.first_missing {
            return Err(at(&table, row, &column.name, "the cell is empty: fill it in".into()));
        }
    }
    let find = |name: &str| {
        let message =
            || format!("the column {name:?} is missing: a file of clusters has the columns client, cluster");
        table.find(name).ok_or_else(|| file(message()))
    };
    let (client, cluster) = (find(CLIENT)?, find(CLUSTER)?);
    let mut numbers: BTreeMap<&str, u32> = BTreeMap::new();
    for row in 0..table.rows {
        numbers.insert(cluster.word(row).unwrap_or_default(), 0);
    }
    for (number, place) in numbers.values_mut().zip(0..) {
        *number = place;
    }
    let mut lines: Vec<Option<usize>> = vec![None; roster.members().len()];
    let mut given = vec![0; lines.len()];
    for row in 0..table.rows {
        let name = client.word(row).unwrap_or_default();
        let Some(id) = roster.find_client(name) else {
            let hint = suggest(name, roster.client_names().iter().map(String::as_str));
            let message = format!("there is no client {name:?} in the data{hint}");
            return Err(at(&table, row, CLIENT, message));
        };
        let line = &mut lines[id as usize];
        if let Some(earlier) = *line {
            let message = format!("client {name:?} stands in {} already: drop one", table.place(earlier).at);
            return Err(at(&table, row, CLIENT, message));
        }
        *line = Some(row);
        given[id as usize] = numbers[cluster.word(row).unwrap_or_default()];
    }
    let absent: Vec<&str> = (0u32..)
        .zip(&lines)
        .filter(|(_, line)| line.is_none())
        .map(|(id, _)| roster.client_name(id))
        .collect();
    if let Some(first) = absent.first() {
        let more = match absent.len() {
            1 => " has".to_string(),
            count => format!(" and {} more have", count - 1),
        };
        return Err(
            file(format!("client {first:?}{more} no line: every client of the data needs one")).into()
        );
    }
    let names: Vec<String> = numbers.keys().map(ToString::to_string).collect();
    let (given, names) = numbered_alike(roster, &given, &names);
    Ok(roster.clustered(&given, names).map_err(DataError::from)?)
}

/// The same clusters in the order of those of the roster that they share most clients with. The order of clusters
/// decides how sums over them are rounded: clusters that are those of the roster under other names give the same bits.
pub fn numbered_alike(roster: &Federation, given: &[u32], names: &[String]) -> (Vec<u32>, Vec<String>) {
    let known: Vec<u32> = roster.members().iter().map(|member| member.cluster).collect();
    let partner = partition::matching(given, &known);
    let mut order: Vec<u32> = (0..names.len() as u32).collect();
    order.sort_by_key(|cluster| {
        let partner = partner.iter().find(|(of, _)| of == cluster).map_or(u32::MAX, |(_, partner)| *partner);
        (partner, *cluster)
    });
    let mut place = vec![0; names.len()];
    for (new, &old) in (0u32..).zip(&order) {
        place[old as usize] = new;
    }
    let sorted = order.iter().map(|&old| names[old as usize].clone()).collect();
    (given.iter().map(|&old| place[old as usize]).collect(), sorted)
}

/// The edges of a graph whose nodes are called as the clients are, by client id.
fn edges(roster: &Federation, path: &Path) -> Result<Vec<(u32, u32, f64)>, Error> {
    let named = topologies::read(path)?;
    let file = |message: String| DataError::File { file: path.to_path_buf(), message };
    let names = roster.client_names();
    let mut ids = Vec::with_capacity(named.nodes.len());
    for node in &named.nodes {
        let Some(id) = roster.find_client(node) else {
            let hint = suggest(node, names.iter().map(String::as_str));
            return Err(file(format!(
                "node {node:?} is no client of the data{hint}: nodes are called as the clients are"
            ))
            .into());
        };
        ids.push(id);
    }
    let mut seen = vec![false; names.len()];
    for &id in &ids {
        seen[id as usize] = true;
    }
    if let Some(absent) = seen.iter().position(|seen| !seen) {
        let more = seen.iter().filter(|seen| !**seen).count() - 1;
        let more = if more == 0 { String::new() } else { format!(" and {more} more") };
        return Err(file(format!(
            "client {:?}{more} is no node of the graph: add it, with an edge to its kin",
            names[absent]
        ))
        .into());
    }
    let by_id = |(a, b, weight): (usize, usize, f64)| (ids[a].min(ids[b]), ids[a].max(ids[b]), weight);
    let mut edges: Vec<(u32, u32, f64)> = named.graph.edges(0.0).map(by_id).collect();
    edges.sort_by_key(|&(a, b, _)| (a, b));
    Ok(edges)
}

/// The graph of clients as one of servers, each with one client.
fn graph(roster: &Federation, path: &Path, require_connected: bool) -> Result<Topology, Error> {
    let names = roster.client_names();
    let file = |message: String| DataError::File { file: path.to_path_buf(), message };
    let edges: Vec<(u32, u32)> = edges(roster, path)?.into_iter().map(|(a, b, _)| (a, b)).collect();
    let topology = Topology::from_edges(names.len(), edges).map_err(DataError::from)?;
    let pieces = if require_connected { topology.components() } else { Vec::new() };
    if pieces.len() > 1 {
        let listed: Vec<String> = pieces
            .iter()
            .take(5)
            .map(|piece| {
                let first: Vec<&str> = piece.iter().take(3).map(|&id| names[id as usize].as_str()).collect();
                let more = piece.len().saturating_sub(3);
                let more = if more == 0 { String::new() } else { format!(", and {more} more") };
                format!("{{{}{more}}}", first.join(", "))
            })
            .collect();
        return Err(file(format!(
            "the graph of clients is in {} pieces: {}{}; this method needs a connected one: add an edge between the \
             pieces, give the pieces as clusters (kin.clusters) on the servers of the data, or use a method that does not \
             exchange between servers",
            pieces.len(),
            listed.join(", "),
            if pieces.len() > 5 { ", ..." } else { "" }
        ))
        .into());
    }
    Ok(topology)
}

fn at(table: &Table, row: usize, column: &str, message: String) -> Error {
    DataError::Cell { place: table.place(row), column: column.to_string(), message }.into()
}
