//! The source `signals`: a user's own signals, one file per client.

use super::{SignalsOptions, check, files, world};
use crate::Request;
use crate::error::DataError;
use crate::options::resolve;
use crate::parallel::InOrder;
use crate::tabular::word;
use crate::world::World;
use fedkin_core::params::{Kind, Param, Preset};
use rayon::prelude::*;

pub(crate) const PARAMS: &[Param] = &[
    Param {
        name: "paths",
        kind: Kind::List(&Kind::Path),
        preset: Preset::Required,
        help: "one file per client, relative to the config: CSV with a header, Parquet, NPZ (array `signals`, records by \
               rows), or AFNI .1D text",
    },
    Param {
        name: "names",
        kind: Kind::List(&Kind::Text),
        preset: Preset::Absent,
        help: "the clients' names in the order of the files (default: the file names without their endings)",
    },
    Param {
        name: "nodes",
        kind: Kind::List(&Kind::Text),
        preset: Preset::Absent,
        help: "columns that are nodes, in this order (default: all, in the order of the first file); nodes are matched by name",
    },
    Param {
        name: "standardise",
        kind: Kind::Flag,
        preset: Preset::Flag(false),
        help: "bring each node to mean 0 and deviation 1, each client by its own records: nothing about them leaves it",
    },
    Param {
        name: "limit",
        kind: Kind::Integer { least: 1, most: 100_000_000 },
        preset: Preset::Absent,
        help: "at most so many records of each client, from the first on (default: all)",
    },
];

/// Reads the files and makes a world of them.
pub(crate) fn load(request: &Request<'_>) -> Result<World, DataError> {
    let values = request.values;
    check::has_none(request.task, "signals")?;
    let topology = world::server_of(request)?;
    let listed = |key: &str| values.list(key).iter().filter_map(word).map(String::from).collect::<Vec<_>>();
    let (paths, nodes, mut names) = (listed("paths"), listed("nodes"), listed("names"));
    if let Some(at) = (1..nodes.len()).find(|&at| nodes[..at].contains(&nodes[at])) {
        return Err(DataError::config("nodes", format!("node {:?} is listed twice: drop one", nodes[at])));
    }
    if values.get("names").is_none() {
        names = paths.iter().map(|path| stem(path)).collect();
    }
    if names.len() != paths.len() {
        let message = format!(
            "{} names were given for {} files: give one per file, in their order",
            names.len(),
            paths.len()
        );
        return Err(DataError::config("names", message));
    }
    if let Some(at) = (1..names.len()).find(|&at| names[..at].contains(&names[at])) {
        let message =
            format!("two clients are called {:?}: give every file a name of its own in `names`", names[at]);
        return Err(DataError::config("names", message));
    }
    let signals = paths
        .into_par_iter()
        .zip(names)
        .map(|(path, name)| {
            Ok::<_, DataError>((name, files::read_signals_of(&resolve(request.base, &path), &nodes)?))
        })
        .in_order()?;
    let limit = values.integer("limit").map(|limit| limit as usize);
    let options = SignalsOptions { standardise: values.flag("standardise"), limit };
    world::signals_world_at(signals, &options, topology)
}

/// The name of a file without folder and endings.
fn stem(path: &str) -> String {
    let name = path.rsplit(['/', '\\']).next().unwrap_or(path);
    let name = name.strip_suffix(".gz").unwrap_or(name);
    name.rsplit_once('.').map_or(name, |(stem, _)| stem).to_string()
}
