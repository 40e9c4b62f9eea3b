//! From files to clients with records.

use fedkin_data::{
    InOrder, Signals, SignalsOptions, World, distances_world, holds_distances, node_names, read_distances,
    read_signals_by_client, read_signals_of, signals_world,
};
use fedkin_learner::signals::Records;
use fedkin_run::Error;
use rayon::prelude::*;
use std::path::{Path, PathBuf};

/// Where the records are.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Sources {
    /// One file per client, or one table of several.
    pub files: Vec<PathBuf>,
    /// The column of the table that says whose a record is.
    pub client: Option<String>,
    /// The columns that are nodes, in this order; all where none is named.
    pub nodes: Vec<String>,
    /// Whether each client's nodes are brought to mean 0 and deviation 1.
    pub standardise: bool,
    /// How many records of each client are kept, from the first on.
    pub limit: Option<usize>,
}

/// Clients with their records.
#[derive(Debug, Clone)]
pub struct Input {
    /// Who takes part, with which records.
    pub world: World,
    /// What a record is.
    pub records: Records,
    /// What the nodes are called.
    pub nodes: Vec<String>,
}

impl Input {
    /// Reads the files, or says what is wrong with them.
    pub fn read(sources: &Sources) -> Result<Self, Error> {
        let usage = |message: String| Err(Error::Usage(message));
        if let Some(at) =
            (1..sources.nodes.len()).find(|&at| sources.nodes[..at].contains(&sources.nodes[at]))
        {
            return usage(format!("--nodes lists {:?} twice: drop one", sources.nodes[at]));
        }
        let mut distances = Vec::with_capacity(sources.files.len());
        for file in &sources.files {
            distances.push(holds_distances(file)?);
        }
        match (distances.iter().position(|holds| *holds), distances.iter().position(|holds| !holds)) {
            (Some(with), Some(without)) => usage(format!(
                "{} holds mean squared differences and {} holds signals: learn from files of one kind",
                sources.files[with].display(),
                sources.files[without].display()
            )),
            (Some(_), None) => Self::of_distances(sources),
            _ => Self::of_signals(sources),
        }
    }

    fn of_signals(sources: &Sources) -> Result<Self, Error> {
        let clients = match (&sources.client, sources.files.as_slice()) {
            (Some(column), [file]) => {
                if sources.nodes.contains(column) {
                    return Err(Error::Usage(format!(
                        "{column:?} is the client column: take it out of --nodes"
                    )));
                }
                let clients = read_signals_by_client(file, column)?;
                clients
                    .into_iter()
                    .map(|(name, signals)| Ok((name, choose(file, signals, &sources.nodes)?)))
                    .collect()
            }
            (Some(column), _) => Err(Error::Usage(format!(
                "--client {column} is for one table with all clients; with several files each is a client"
            ))),
            (None, files) => {
                let names = names(files)?;
                let read =
                    |(file, name): (&PathBuf, String)| Ok((name, read_signals_of(file, &sources.nodes)?));
                files.par_iter().zip(names).map(read).in_order()
            }
        };
        let options = SignalsOptions { standardise: sources.standardise, limit: sources.limit };
        let world = signals_world(clients?, &options)?;
        let nodes = world.schema.features.iter().map(|feature| feature.name.clone()).collect();
        Ok(Self { world, records: Records::Signals, nodes })
    }

    fn of_distances(sources: &Sources) -> Result<Self, Error> {
        for (given, option) in [
            (sources.client.is_some(), "--client"),
            (!sources.nodes.is_empty(), "--nodes"),
            (sources.standardise, "--standardise"),
            (sources.limit.is_some(), "--limit"),
        ] {
            if given {
                return Err(Error::Usage(format!(
                    "{option} is for signals: mean squared differences have no columns and no records"
                )));
            }
        }
        let mut clients = Vec::new();
        for (file, stem) in sources.files.iter().zip(names(&sources.files)?) {
            let read = read_distances(file)?;
            let several = read.len() > 1;
            clients.extend(read.into_iter().map(|(name, zbar)| match (sources.files.len(), several) {
                (1, true) => (name, zbar),
                (_, true) => (format!("{stem}-{name}"), zbar),
                (_, false) => (stem.clone(), zbar),
            }));
        }
        let count =
            clients.first().and_then(|(_, zbar)| fedkin_learner::signals::nodes_of(zbar.len())).unwrap_or(0);
        let world = distances_world(clients)?;
        Ok(Self { world, records: Records::Distances, nodes: node_names(count) })
    }
}

/// These nodes of a table.
fn choose(file: &Path, signals: Signals, nodes: &[String]) -> Result<Signals, Error> {
    if nodes.is_empty() {
        return Ok(signals);
    }
    let mut columns = Vec::with_capacity(nodes.len());
    for name in nodes {
        let found = signals.nodes.iter().position(|node| node == name).ok_or_else(|| {
            let hint = fedkin_settings::suggest(name, signals.nodes.iter().map(String::as_str));
            Error::Usage(format!("{}: there is no node {name:?}, which --nodes names{hint}", file.display()))
        })?;
        columns.push(found);
    }
    let rows = signals.rows.chunks_exact(signals.nodes.len().max(1));
    let rows = rows.flat_map(|row| columns.iter().map(|&column| row[column])).collect();
    Ok(Signals { nodes: nodes.to_vec(), rows })
}

/// The names of the files without folders and endings: what the clients are called.
fn names(files: &[PathBuf]) -> Result<Vec<String>, Error> {
    let stem = |file: &PathBuf| {
        let name = file.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let name = name.strip_suffix(".gz").unwrap_or(&name);
        name.rsplit_once('.').map_or(name, |(stem, _)| stem).to_string()
    };
    let names: Vec<String> = files.iter().map(stem).collect();
    for at in 1..names.len() {
        if let Some(before) = names[..at].iter().position(|name| *name == names[at]) {
            return Err(Error::Usage(format!(
                "{} and {} would both be client {:?}: rename one, or put all clients into one table with --client",
                files[before].display(),
                files[at].display(),
                names[at]
            )));
        }
    }
    Ok(names)
}
