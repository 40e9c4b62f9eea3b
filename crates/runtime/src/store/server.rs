//! What a server keeps: a snapshot of everything, and what was committed since.

use super::disk::{Disk, System};
use super::error::StoreError;
use super::frame::Entry;
use super::journal::{Journal, Recovery};
use std::path::Path;
use std::sync::Arc;

const SNAPSHOT: &str = "snapshot";
const DELTA: &str = "delta";

/// What a store held when it was opened.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Kept {
    /// The last snapshot.
    pub snapshot: Option<Vec<u8>>,
    /// What was committed after it, in order.
    pub deltas: Vec<Vec<u8>>,
}

/// The store: one file `journal` in a directory, with `journal.lock` beside it. Only the owner may read it.
#[derive(Debug)]
pub struct ServerStore {
    journal: Journal,
}

impl ServerStore {
    /// Opens or makes a store; gives what it held.
    pub fn open(folder: &Path) -> Result<(Self, Kept), StoreError> {
        Self::open_on(Arc::new(System), folder)
    }

    /// The same on another disk.
    pub fn open_on(disk: Arc<dyn Disk>, folder: &Path) -> Result<(Self, Kept), StoreError> {
        let path = folder.join("journal");
        let (journal, entries) = Journal::open_on(disk, &path)?;
        let mut kept = Kept::default();
        for Entry { key, bytes } in entries {
            match &*key {
                SNAPSHOT if kept == Kept::default() => kept.snapshot = Some(bytes),
                DELTA => kept.deltas.push(bytes),
                _ => {
                    return Err(StoreError::damaged(
                        &path,
                        0,
                        format!("{key:?} does not belong in a server's journal"),
                    ));
                }
            }
        }
        Ok((Self { journal }, kept))
    }

    /// Commits what changed; durable when this returns.
    pub fn commit(&mut self, delta: &[u8]) -> Result<(), StoreError> {
        self.journal.append(&[(DELTA, delta)])
    }

    /// Replaces the last snapshot and all deltas by this one.
    pub fn snapshot(&mut self, bytes: &[u8]) -> Result<(), StoreError> {
        self.journal.compact(&[(SNAPSHOT, bytes)])
    }

    /// Whether a snapshot is worth its price.
    pub fn due(&self) -> bool {
        self.journal.due()
    }

    /// The length of the file.
    pub fn bytes_on_disk(&self) -> u64 {
        self.journal.len()
    }

    /// What opening had to put right.
    pub fn recovery(&self) -> Recovery {
        self.journal.recovery()
    }
}
