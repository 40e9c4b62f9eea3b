//! The graph of servers: what the config says, and the graph it gives once the servers are known.

use crate::error::DataError;
use crate::formats::csv;
use crate::formats::table::Table;
use crate::options::read;
use fedkin_graph::Topology;
use fedkin_numeric::rng::PublicRng;
use fedkin_settings::{Kind, Param, Preset, Settings as _, Values, choice, settings, suggest};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

const MEAN_DEGREE: f64 = 3.0;
/// Servers of a drawn world where nothing says how many.
const DRAWN_SERVERS: usize = 10;
/// A complete graph beyond this has more edges than any run wants to hold.
const MOST_COMPLETE: usize = 10_000;

/// What the config says of the graph.
#[derive(Debug, Clone, PartialEq)]
pub struct TopologySpec {
    /// Which edges.
    pub kind: GraphKind,
    /// How many servers, where the data do not say.
    pub servers: Option<usize>,
}

/// Which edges a graph has.
#[derive(Debug, Clone, PartialEq)]
pub enum GraphKind {
    /// Random connected, with this mean degree.
    Random {
        /// Mean number of neighbours.
        mean_degree: f64,
    },
    /// Each server linked to the next, the last to the first.
    Ring,
    /// The most square grid.
    Grid,
    /// The first server linked to all others.
    Star,
    /// Every pair linked.
    Complete,
    /// No edges.
    None,
    /// Edges by server name, from a CSV file.
    Edges(PathBuf),
    /// The config has neither `edges` nor `graph`. Drawn servers get a random graph; servers that a
    /// user's data name need an answer from the user as soon as there is more than one.
    Unstated,
}

choice! {
    /// The shape of a graph that is drawn.
    pub enum Shape {
        /// Random and connected.
        Random = "random",
        /// Each server linked to the next, the last to the first.
        Ring = "ring",
        /// The most square grid.
        Grid = "grid",
        /// The first server linked to all others.
        Star = "star",
        /// Every pair linked.
        Complete = "complete",
        /// No edges.
        None = "none",
    }
}

settings! {
    /// A graph that is drawn: `[topology] graph`.
    pub struct Drawn {
        kind: Shape => Kind::Choice(Shape::WORDS), Preset::Text("random"),
            "shape of the graph; random graphs are connected";
        servers: Option<usize> => Kind::Integer { least: 1, most: 1_000_000 }, Preset::Absent,
            "number of servers of a drawn world (absent: 10); with your own data it must match the server column";
        mean_degree: Option<f64> => Kind::Number { least: 0.0, most: 1e6, open: true }, Preset::Absent,
            "mean number of neighbours of a random graph (absent: 3, or all others where there are fewer)";
    }
}

settings! {
    /// The table `[topology]`.
    pub struct TopologySettings {
        edges: Option<PathBuf> => Kind::Path, Preset::Absent,
            "CSV file with a header and two columns a, b of server names, one edge per line";
        graph: Option<Drawn> => Kind::Table(Drawn::PARAMS), Preset::Absent,
            "draw the graph of servers instead of reading its edges";
    }
}

/// The keys of `[topology]`.
pub const GRAPH_PARAMS: &[Param] = TopologySettings::PARAMS;

/// Reads a `[topology]` table that passed [`GRAPH_PARAMS`].
pub fn topology_spec(values: &Values, base: &Path) -> Result<TopologySpec, DataError> {
    read::<TopologySettings>(values)?.spec(base)
}

impl TopologySettings {
    /// What the table says; relative paths start at `base`.
    pub fn spec(&self, base: &Path) -> Result<TopologySpec, DataError> {
        match (&self.edges, &self.graph) {
            (Some(_), Some(_)) => {
                Err(DataError::config("topology", "`edges` and `graph` exclude each other: keep one of them"))
            }
            (Some(path), None) => Ok(TopologySpec { kind: GraphKind::Edges(base.join(path)), servers: None }),
            (None, Some(graph)) => graph.spec(),
            (None, None) => Ok(TopologySpec { kind: GraphKind::Unstated, servers: None }),
        }
    }
}

impl Drawn {
    fn spec(&self) -> Result<TopologySpec, DataError> {
        let kind = match self.kind {
            Shape::Ring => GraphKind::Ring,
            Shape::Grid => GraphKind::Grid,
            Shape::Star => GraphKind::Star,
            Shape::Complete => GraphKind::Complete,
            Shape::None => GraphKind::None,
            Shape::Random => {
                let mean_degree = self.mean_degree.unwrap_or_else(|| default_degree(self.servers));
                GraphKind::Random { mean_degree }
            }
        };
        if self.mean_degree.is_some() && self.kind != Shape::Random {
            let message = "only a random graph has a mean degree: set `kind = \"random\"` or drop the key";
            return Err(DataError::config("topology.graph.mean_degree", message));
        }
        Ok(TopologySpec { kind, servers: self.servers })
    }
}

/// Three neighbours, or all others where there are fewer.
fn default_degree(servers: Option<usize>) -> f64 {
    servers.map_or(MEAN_DEGREE, |servers| MEAN_DEGREE.min(servers.saturating_sub(1) as f64))
}

/// The server names of a world that is drawn: those of the edges file, or numbered ones.
pub(crate) fn drawn_servers(spec: &TopologySpec, listed: Option<usize>) -> Result<Vec<String>, DataError> {
    if let (GraphKind::Edges(path), None) = (&spec.kind, spec.servers) {
        let table = read_edges(path)?;
        let words =
            table.columns.iter().flat_map(|column| (0..table.rows).filter_map(|row| column.word(row)));
        let names: BTreeSet<&str> = words.collect();
        return Ok(names.into_iter().map(String::from).collect());
    }
    let count = spec.servers.or(listed).unwrap_or(DRAWN_SERVERS);
    Ok(crate::world::roster::numbered("server", count, 3))
}

/// The graph over these servers; `drawn` where the program made them up, not the user's data.
pub fn build(
    spec: &TopologySpec,
    servers: &[String],
    drawn: bool,
    seed: u64,
    require_connected: bool,
) -> Result<Topology, DataError> {
    let count = servers.len();
    if let Some(wanted) = spec.servers.filter(|&wanted| wanted != count) {
        let message = format!(
            "{wanted} servers are asked for but the data have {count} ({}): leave `servers` out or correct it",
            listing(servers.iter().map(String::as_str))
        );
        return Err(DataError::config("topology.graph.servers", message));
    }
    let mut rng = PublicRng::named(seed, "topology", 0, 0);
    let topology = match &spec.kind {
        // A graph of one has no edges, whatever its shape.
        _ if count <= 1 => Topology::none(count),
        GraphKind::Random { mean_degree } => Topology::random(count, *mean_degree, &mut rng)?,
        GraphKind::Unstated if drawn => Topology::random(count, default_degree(Some(count)), &mut rng)?,
        GraphKind::Unstated if require_connected => {
            let message = format!(
                "the data name {count} servers ({}), so the config must say which of them talk to each other: \
                 add [topology] with `edges = \"edges.csv\"` or `graph = {{ kind = \"complete\" }}`",
                listing(servers.iter().map(String::as_str))
            );
            return Err(DataError::config("topology", message));
        }
        GraphKind::Ring => Topology::ring(count),
        GraphKind::Grid => Topology::grid(count),
        GraphKind::Star => Topology::star(count),
        GraphKind::Complete if count > MOST_COMPLETE => {
            let message =
                format!("{count} servers are too many: at most {MOST_COMPLETE} are linked pairwise");
            return Err(DataError::config("topology.graph.kind", message));
        }
        GraphKind::Complete => Topology::complete(count),
        GraphKind::None | GraphKind::Unstated => Topology::none(count),
        GraphKind::Edges(path) => from_file(path, servers)?,
    };
    let pieces = if require_connected { topology.components() } else { Vec::new() };
    if pieces.len() > 1 {
        let mut named: Vec<String> = pieces
            .iter()
            .take(5)
            .map(|piece| format!("{{{}}}", listing(piece.iter().map(|&id| servers[id as usize].as_str()))))
            .collect();
        if pieces.len() > 5 {
            named.push(format!("{} more", pieces.len() - 5));
        }
        return Err(DataError::Disconnected {
            pieces: format!("{} pieces: {}", pieces.len(), named.join(", ")),
        });
    }
    Ok(topology)
}

/// The first names and how many more.
fn listing<'a>(names: impl ExactSizeIterator<Item = &'a str>) -> String {
    let more = names.len().saturating_sub(6);
    let text = names.take(6).collect::<Vec<_>>().join(", ");
    if more > 0 { format!("{text}, and {more} more") } else { text }
}

/// The edges file as a table of words with two complete columns.
fn read_edges(path: &Path) -> Result<Table, DataError> {
    let table = csv::read(path, &|_| true)?;
    if table.columns.len() != 2 {
        let message = format!(
            "an edges file has two columns of server names, such as a,b; this one has {}",
            table.columns.len()
        );
        return Err(DataError::file(path, message));
    }
    for column in &table.columns {
        table.complete(column)?;
    }
    Ok(table)
}

fn from_file(path: &Path, servers: &[String]) -> Result<Topology, DataError> {
    let table = read_edges(path)?;
    let ids: BTreeMap<&str, u32> = servers.iter().zip(0..).map(|(name, id)| (name.as_str(), id)).collect();
    let mut edges = Vec::with_capacity(table.rows);
    for row in 0..table.rows {
        let id = |column: usize| {
            let name = table.columns[column].word(row).unwrap_or_default();
            ids.get(name).copied().ok_or_else(|| {
                let hint = suggest(name, servers.iter().map(String::as_str));
                table.cell(row, &table.columns[column].name, format!("there is no server {name:?}{hint}"))
            })
        };
        let (a, b) = (id(0)?, id(1)?);
        if a == b {
            let name = &servers[a as usize];
            return Err(table.record(row, format!("server {name:?} has an edge to itself: drop the line")));
        }
        edges.push((a, b));
    }
    Ok(Topology::from_edges(servers.len(), edges)?)
}
