//! What a server keeps: a snapshot of everything, and what was committed since.

use super::disk::{Disk, How, System};
use super::error::StoreError;
use super::frame::{Entry, Frames, Next};
use super::journal::{Journal, Recovery};
use std::path::Path;
use std::sync::Arc;

const SNAPSHOT: &str = "snapshot";
const DELTA: &str = "delta";

/// What a store held when it was opened.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StoredRecords {
    /// The last snapshot.
    pub snapshot: Option<Vec<u8>>,
    /// What was committed after it, in order.
    pub deltas: Vec<Vec<u8>>,
}

impl StoredRecords {
    fn take(&mut self, path: &Path, Entry { key, bytes }: Entry) -> Result<(), StoreError> {
        match &*key {
            SNAPSHOT if *self == StoredRecords::default() => self.snapshot = Some(bytes),
            DELTA => self.deltas.push(bytes),
            _ => {
                let what = format!("{key:?} does not belong in a server's journal");
                return Err(StoreError::damaged(path, 0, what));
            }
        }
        Ok(())
    }

    /// Reads a store, also while a process works with it: takes no lock and changes nothing.
    pub fn read(folder: &Path) -> Result<Self, StoreError> {
        let path = folder.join("journal");
        let storage = System.open(&path, How::Read).map_err(StoreError::file("open", &path))?;
        let mut frames = Frames::open(&path, storage)?;
        let mut kept = StoredRecords::default();
        loop {
            match frames.next()? {
                Next::Frame(entries) => entries.into_iter().try_for_each(|entry| kept.take(&path, entry))?,
                Next::End => return Ok(kept),
                Next::Bad => return frames.torn().map(|()| kept),
            }
        }
    }
}

/// The store: one file `journal` in a directory, with `journal.lock` beside it. Only the owner may read it.
#[derive(Debug)]
pub struct ServerStore {
    journal: Journal,
}

impl ServerStore {
    /// Opens or makes a store; gives what it held.
    pub fn open(folder: &Path) -> Result<(Self, StoredRecords), StoreError> {
        Self::open_on(Arc::new(System), folder)
    }

    /// The same on another disk.
    pub fn open_on(disk: Arc<dyn Disk>, folder: &Path) -> Result<(Self, StoredRecords), StoreError> {
        let path = folder.join("journal");
        let (journal, entries) = Journal::open_on(disk, &path)?;
        let mut kept = StoredRecords::default();
        entries.into_iter().try_for_each(|entry| kept.take(&path, entry))?;
        Ok((Self { journal }, kept))
    }

    /// Commits what changed, in this order and together; durable when this returns.
    pub fn commit(&mut self, deltas: &[Vec<u8>]) -> Result<(), StoreError> {
        let pairs: Vec<(&str, &[u8])> = deltas.iter().map(|delta| (DELTA, &**delta)).collect();
        self.journal.append(&pairs)
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
