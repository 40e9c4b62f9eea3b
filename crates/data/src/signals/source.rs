//! The source `signals`: a user's own signals, one file per client.

use super::{SignalsOptions, files, world};
use crate::Request;
use crate::error::DataError;
use crate::prepare::check;
use crate::prepare::parallel::InOrder;
use crate::registry::{About, Source, Variants};
use crate::world::World;
use fedkin_settings::{Kind, Preset, settings};
use rayon::prelude::*;
use std::path::PathBuf;

settings! {
    /// `[data]` of a user's own signals.
    pub struct OwnSignals {
        paths: Vec<PathBuf> => Kind::List(&Kind::Path), Preset::Required,
            "one file per client, relative to the config: CSV with a header, Parquet, NPZ (array `signals`, records by \
             rows), or AFNI .1D text";
        names: Option<Vec<String>> => Kind::List(&Kind::Text), Preset::Absent,
            "the clients' names in the order of the files (absent: the file names without their endings)";
        nodes: Vec<String> => Kind::List(&Kind::Text), Preset::Absent,
            "columns that are nodes, in this order (absent: all, in the order of the first file); nodes are matched by name";
        standardise: bool => Kind::Flag, Preset::Flag(false),
            "bring each node to mean 0 and deviation 1, each client by its own records: nothing about them leaves it";
        limit: Option<usize> => Kind::Integer { least: 1, most: 100_000_000 }, Preset::Absent,
            "at most so many records of each client, from the first on (absent: all)";
    }
}

impl Source for OwnSignals {
    const NAME: &'static str = "signals";
    const SUMMARY: &'static str =
        "your own signals to learn graphs from, one file per client: CSV, Parquet, NPZ or AFNI .1D";

    fn about(&self, _: Variants<'_>) -> About {
        About { by_client: self.standardise, ..About::default() }
    }

    /// Reads the files and makes a world of them.
    fn load(&self, request: &Request<'_>) -> Result<World, DataError> {
        check::has_none(request.task, Self::NAME)?;
        let topology = world::server_of(request)?;
        let Self { paths, nodes, .. } = self;
        if let Some(at) = (1..nodes.len()).find(|&at| nodes[..at].contains(&nodes[at])) {
            return Err(DataError::config(
                "nodes",
                format!("node {:?} is listed twice: drop one", nodes[at]),
            ));
        }
        let names = match &self.names {
            Some(names) => names.clone(),
            None => paths.iter().map(|path| stem(&path.to_string_lossy())).collect(),
        };
        if names.len() != paths.len() {
            let message = format!(
                "{} names were given for {} files: give one per file, in their order",
                names.len(),
                paths.len()
            );
            return Err(DataError::config("names", message));
        }
        if let Some(at) = (1..names.len()).find(|&at| names[..at].contains(&names[at])) {
            let message = format!(
                "two clients are called {:?}: give every file a name of its own in `names`",
                names[at]
            );
            return Err(DataError::config("names", message));
        }
        let signals = paths
            .par_iter()
            .zip(names)
            .map(|(path, name)| {
                Ok::<_, DataError>((name, files::read_signals_of(&request.base.join(path), nodes)?))
            })
            .in_order()?;
        let options = SignalsOptions { standardise: self.standardise, limit: self.limit };
        world::signals_world_at(signals, &options, topology)
    }
}

/// The name of a file without folder and endings.
fn stem(path: &str) -> String {
    let name = path.rsplit(['/', '\\']).next().unwrap_or(path);
    let name = name.strip_suffix(".gz").unwrap_or(name);
    name.rsplit_once('.').map_or(name, |(stem, _)| stem).to_string()
}
