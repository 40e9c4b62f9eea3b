//! The files of a run directory: written whole or not at all, by one process at a time, refused when damaged.
//!
//! - [`atomic`]: replace a file in one step. [`lock`]: one process per directory.
//! - [`metrics`]: the long table of measurements. [`models`]: parameters by client and by server.
//! - [`ledger`]: what was released. [`graphs`]: the graph of servers. [`checkpoint`]: where to resume.

pub mod atomic;
pub mod checkpoint;
pub mod graphs;
pub mod ledger;
pub mod lock;
pub mod metrics;
pub mod models;
#[cfg(test)]
#[path = "../../../../tests/skipped.rs"]
mod skipped;

use std::io;
use std::path::{Path, PathBuf};
use thiserror::Error;

/// Why a file of a run directory could not be written or used.
#[derive(Debug, Error)]
pub enum ArtifactError {
    /// The operating system said no.
    #[error("cannot {action} {}: {}", path.display(), reason(source))]
    File {
        /// What was tried: write, read, ...
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// The file is there but is not what it should be.
    #[error("{} is damaged: {what}", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        what: String,
    },
    /// Another process works in the directory.
    #[error("{} is in use by another process{holder}: wait for it to end, or choose another directory", path.display())]
    Locked {
        /// The run directory.
        path: PathBuf,
        /// Its process id in parentheses, where known.
        holder: String,
    },
    /// No such model; the text suggests one.
    #[error("{} has no model {name:?}{hint}", path.display())]
    UnknownModel {
        /// The file.
        path: PathBuf,
        /// What was asked for.
        name: String,
        /// `; did you mean ...?`
        hint: String,
    },
    /// The models cannot be told apart or put together.
    #[error("cannot write {}: {what}", path.display())]
    Models {
        /// The file.
        path: PathBuf,
        /// What is wrong with them.
        what: String,
    },
    /// A checkpoint of another version of the format.
    #[error("{} has checkpoint format {found}, but this Fedkin reads format {known}: use the version that wrote it, or start in another directory", path.display())]
    OtherVersion {
        /// The checkpoint.
        path: PathBuf,
        /// The version it has.
        found: u32,
        /// The version that can be read.
        known: u32,
    },
    /// A checkpoint of another config.
    #[error("{} was written with another config: resume with the config of that run, or start in another directory", path.display())]
    OtherConfig {
        /// The checkpoint.
        path: PathBuf,
    },
    /// A checkpoint of other data.
    #[error("the data changed since {} was written: restore them, or start in another directory", path.display())]
    OtherData {
        /// The checkpoint.
        path: PathBuf,
    },
}

impl ArtifactError {
    /// Whether there was no room left.
    pub fn disk_full(&self) -> bool {
        matches!(self, Self::File { source, .. } if is_full(source))
    }

    /// Turns an I/O error into one that names the file.
    pub(crate) fn file(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::File { action, path: path.to_path_buf(), source }
    }

    pub(crate) fn damaged(path: &Path, what: impl Into<String>) -> Self {
        Self::Damaged { path: path.to_path_buf(), what: what.into() }
    }
}

fn is_full(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}

fn reason(error: &io::Error) -> String {
    if is_full(error) {
        format!("the disk is full ({error}); free some space and run the same command again")
    } else {
        error.to_string()
    }
}

/// Makes a folder, and those above it.
pub fn make_folder(path: &Path) -> Result<(), ArtifactError> {
    std::fs::create_dir_all(path).map_err(ArtifactError::file("create", path))
}
