//! A directory that holds one run: whose it is, whether it is complete, where its checkpoints are.

use crate::artifacts::lock::RunLock;
use crate::artifacts::metrics::{self, Metrics};
use crate::artifacts::{ArtifactError, atomic, make_folder};
use crate::error::Error;
use crate::registry::Registry;
use crate::summary::Finished;
use fedkin_config::{self as config, Config};
use serde::Serialize;
use std::fs;
use std::path::{Path, PathBuf};

const SUMMARY: &str = "summary.json";
const CONFIG: &str = "config.toml";
pub(crate) const CHECKPOINTS: &str = "checkpoints";

/// A directory that holds one run.
#[derive(Debug, Clone)]
pub struct RunDirectory {
    /// Where it is.
    pub path: PathBuf,
}

impl RunDirectory {
    /// A directory that need not exist yet.
    pub fn new(path: &Path) -> Self {
        Self { path: path.to_path_buf() }
    }

    /// The summary, if the run is complete.
    pub fn summary(&self) -> Result<Option<Finished>, Error> {
        let path = self.path.join(SUMMARY);
        match fs::read(&path) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(source) => Err(ArtifactError::File { action: "read", path, source }.into()),
            Ok(bytes) => serde_json::from_slice(&bytes)
                .map(Some)
                .map_err(|error| ArtifactError::Damaged { path, what: error.to_string() }.into()),
        }
    }

    /// The config the run was made with.
    pub fn config(&self, registry: &Registry) -> Result<Option<Config>, Error> {
        let path = self.path.join(CONFIG);
        match fs::read_to_string(&path) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(source) => Err(ArtifactError::File { action: "read", path, source }.into()),
            Ok(text) => {
                let source = config::Source { name: path.display().to_string(), text };
                Ok(Some(config::load(&source, &[], &registry.tables())?))
            }
        }
    }

    /// The metrics of a complete run.
    pub fn metrics(&self) -> Result<Metrics, Error> {
        Ok(Metrics::read(&self.path.join(metrics::NAME))?)
    }

    /// Refuses a directory that belongs to another config, naming what differs; claims it otherwise.
    pub fn claim(&self, registry: &Registry, config: &Config) -> Result<RunLock, Error> {
        if self.path.exists() && !self.path.is_dir() {
            return Err(Error::Usage(format!("{} is a file: choose another --out", self.path.display())));
        }
        if let Some(before) = self.config(registry)? {
            if before.fingerprint() != config.fingerprint() && self.begun() {
                let differences = config.differences(&before).join("\n  ");
                return Err(Error::Usage(format!(
                    "{} holds a run with another config:\n  {differences}\nresume with the config of that run, or choose another --out",
                    self.path.display()
                )));
            }
        } else if self.path.is_dir() {
            let foreign = fs::read_dir(&self.path)
                .map_err(|source| ArtifactError::File { action: "read", path: self.path.clone(), source })?
                .flatten()
                // A process killed in its first moments leaves its lock and an unfinished config.
                .any(|entry| {
                    let name = entry.file_name();
                    let name = name.to_string_lossy();
                    name != "run.lock" && !atomic::is_unfinished(&name)
                });
            if foreign {
                return Err(Error::Usage(format!(
                    "{} has files in it but is not a run directory: choose another --out",
                    self.path.display()
                )));
            }
        }
        make_folder(&self.path)?;
        let lock = RunLock::take(&self.path)?;
        for folder in ["models", "models/averaged", "graphs", "figures", CHECKPOINTS] {
            let folder = self.path.join(folder);
            if folder.is_dir() {
                atomic::remove_unfinished(&folder)?;
            }
        }
        atomic::write(&self.path.join(CONFIG), config.resolved().as_bytes())?;
        Ok(lock)
    }

    /// Whether there is anything to lose: a summary or a checkpoint.
    fn begun(&self) -> bool {
        let checkpoints = fs::read_dir(self.path.join(CHECKPOINTS));
        self.path.join(SUMMARY).exists() || checkpoints.is_ok_and(|mut list| list.next().is_some())
    }

    /// The place of a checkpoint; its folder is made.
    pub fn checkpoint(&self, name: &str) -> Result<PathBuf, Error> {
        let folder = self.path.join(CHECKPOINTS);
        make_folder(&folder)?;
        Ok(folder.join(format!("{name}.bin")))
    }

    /// Writes the summary last: a directory with one is complete, and checkpoints are no longer needed.
    pub fn complete<T: Serialize>(&self, summary: &T) -> Result<(), Error> {
        let text = serde_json::to_vec_pretty(summary).map_err(|error| Error::Usage(error.to_string()))?;
        atomic::write(&self.path.join(SUMMARY), &text)?;
        let folder = self.path.join(CHECKPOINTS);
        match fs::remove_dir_all(&folder) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                Err(ArtifactError::File { action: "remove", path: folder, source: error }.into())
            }
            _ => Ok(()),
        }
    }
}
