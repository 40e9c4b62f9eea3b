//! What can go wrong with a store, where, and what to do about it.

use fedkin_privacy::Broken;
use std::io;
use std::path::{Path, PathBuf};
use thiserror::Error;

/// Why something could not be committed, or a store not be opened.
#[derive(Debug, Error)]
pub enum StoreError {
    /// The operating system said no. Nothing was committed; the same call can be repeated.
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
    /// The file is there but is not what was written.
    #[error("{} is damaged at byte {offset}: {what}; restore it from a copy, or take the node out of the run", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// Where the trouble begins.
        offset: u64,
        /// What is wrong.
        what: String,
    },
    /// A file of another version of the format.
    #[error("{} has format {found}, but this Fedkin reads format {known}: use the version that wrote it", path.display())]
    OtherVersion {
        /// The file.
        path: PathBuf,
        /// The version it has.
        found: u32,
        /// The version that can be read.
        known: u32,
    },
    /// Another process, or another part of this one, works with the store.
    #[error("{} is in use by another process{holder}: wait for it to end, or choose another directory", path.display())]
    Locked {
        /// The journal or directory.
        path: PathBuf,
        /// Its process id in parentheses, where known.
        holder: String,
    },
    /// An earlier failure left the file in a state that only opening it again can settle.
    #[error("{} cannot be used any more after an earlier failure ({why}): restart the node", path.display())]
    Poisoned {
        /// The journal.
        path: PathBuf,
        /// That failure.
        why: String,
    },
    /// A part of the store is gone while the rest is there.
    #[error("{} is missing: {what}", path.display())]
    Missing {
        /// The missing file.
        path: PathBuf,
        /// Why it should be there, and what to do.
        what: &'static str,
    },
    /// A ledger that does not hold together.
    #[error("the ledger of client {client:?} in {} is broken at {broken}; restore the directory from a copy: without its ledger a client must not release anything", path.display())]
    Ledger {
        /// The directory.
        path: PathBuf,
        /// Whose ledger.
        client: String,
        /// The first bad line.
        broken: Broken,
    },
    /// The caller asked for something that would make the store inconsistent. A bug of the caller.
    #[error("refused to commit to {}: {what}", path.display())]
    Refused {
        /// The directory.
        path: PathBuf,
        /// What is wrong with it.
        what: String,
    },
}

impl StoreError {
    /// Whether there was no room left: report it, wait and try again; nothing may be sent meanwhile.
    pub fn disk_full(&self) -> bool {
        matches!(self, Self::File { source, .. } if is_full(source))
    }

    pub(super) fn file(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::File { action, path: path.to_path_buf(), source }
    }

    pub(crate) fn damaged(path: &Path, offset: u64, what: impl Into<String>) -> Self {
        Self::Damaged { path: path.to_path_buf(), offset, what: what.into() }
    }
}

fn is_full(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}

fn reason(error: &io::Error) -> String {
    if is_full(error) {
        format!("the disk is full ({error}); free some space, the node goes on where it was")
    } else {
        error.to_string()
    }
}
