//! Where ledgers lie: run directories, states of client hosts, folders of `privacy.ledger`.

use super::accounts;
use crate::error::Error;
use std::path::{Path, PathBuf};

/// What was found at one place.
#[derive(Debug, Default)]
pub(super) struct Place {
    /// Folders with chains.
    pub(super) vaults: Vec<PathBuf>,
    /// Folders in which servers remember the ends of chains.
    pub(super) heads: Vec<PathBuf>,
    /// A run directory of one process.
    pub(super) run: Option<PathBuf>,
}

impl Place {
    /// Looks around.
    pub(super) fn find(path: &Path) -> Result<Self, Error> {
        let mut place = Self::default();
        place.look(path);
        // Where a node keeps its state beside its config.
        place.look(&path.join("state"));
        let mut nodes: Vec<PathBuf> = match std::fs::read_dir(path.join("nodes")) {
            Ok(entries) => entries.flatten().map(|entry| entry.path()).collect(),
            Err(_) => Vec::new(),
        };
        nodes.sort();
        for node in &nodes {
            place.look(node);
        }
        if place.vaults.is_empty() && path.join(accounts::NAME).is_file() {
            place.run = Some(path.to_path_buf());
        }
        if place.vaults.is_empty() && place.heads.is_empty() && place.run.is_none() {
            let what = if !path.exists() {
                "does not exist"
            } else if path.join("summary.json").is_file() {
                "is a run without accounts.jsonl: it was made by an older version, with more than 100,000 clients and \
                 no mechanism, or is no run of one config"
            } else {
                "holds no ledger"
            };
            return Err(Error::Usage(format!(
                "{} {what}: name a complete run directory, the state of a client host, or the folder of privacy.ledger",
                path.display()
            )));
        }
        Ok(place)
    }

    fn look(&mut self, path: &Path) {
        if path.join("ledger.log").is_file() && path.join("journal").is_file() {
            self.vaults.push(path.to_path_buf());
        }
        if path.join("heads").join("journal").is_file() {
            self.heads.push(path.join("heads"));
        }
    }
}
