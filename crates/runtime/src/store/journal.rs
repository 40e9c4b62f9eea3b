//! An append-only file of frames: what was acknowledged is there after any crash, whole and in order.
//!
//! The layout of the bytes is in `frame.rs`. What a failure means:
//!
//! - A crash during `append` leaves a torn last frame, or a whole one that was never acknowledged. Opening
//!   cuts the first and keeps the second.
//! - After a failed write or fsync nothing is known about the pages involved: the kernel may call them clean
//!   though they never reached the disk, and a second fsync would then succeed without writing. So the file
//!   is cut back to the last good frame, and a retry writes its frame again from memory before it syncs.
//!   For the same reason `open` rewrites the last frame it found: the process before may have died between a
//!   failed fsync and the cut.
//! - If the cut fails as well, the journal is poisoned: every later call says so, until it is opened again.
//! - A commit that reported a failure may still be found after a crash that follows at once; it is whole then.
//! - Compaction writes a fresh file beside the old one and renames it. If the folder cannot be synced after
//!   the rename, no later commit is acknowledged before that has been made up for.

use super::disk::{Disk, Flush, Guard, How, NotLocked, Storage, System};
use super::error::StoreError;
use super::frame::{self, Entry, Frames, Header, Next, Pair, Sum};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// What opening had to put right.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Recovery {
    /// Bytes of a torn last frame that were cut off; it had not been acknowledged.
    pub cut_bytes: u64,
}

/// The file.
#[derive(Debug)]
pub struct Journal {
    disk: Arc<dyn Disk>,
    path: PathBuf,
    storage: Box<dyn Storage>,
    lock: Option<Box<dyn Guard>>,
    header: Header,
    /// Where the next frame goes.
    length: u64,
    /// Where the last appended frame begins, before opening has settled it.
    unsettled: Option<u64>,
    number: u64,
    sum: Sum,
    recovery: Recovery,
    folder_unsynced: bool,
    was_cut: bool,
    poisoned: Option<String>,
}

/// A compaction splits what is left into frames of about this size.
const CHUNK: u64 = 1 << 20;
/// A longer frame is not put together in memory.
const WHOLE: u64 = 16 << 20;

impl Journal {
    /// Opens or makes a journal on the system's disk; nobody else can until it is dropped. Gives all entries
    /// in the order they were committed.
    pub fn open(path: &Path) -> Result<(Self, Vec<Entry>), StoreError> {
        Self::open_on(Arc::new(System), path)
    }

    /// The same on another disk.
    pub fn open_on(disk: Arc<dyn Disk>, path: &Path) -> Result<(Self, Vec<Entry>), StoreError> {
        let folder = folder(path);
        disk.make_folder(folder).map_err(StoreError::file("make the folder", folder))?;
        let guard = lock(&*disk, &beside(path, ".lock"), path)?;
        let mut entries = Vec::new();
        let mut journal = Self::scan(disk, path, &mut |entry| {
            entries.push(entry);
            Ok(())
        })?;
        journal.lock = Some(guard);
        journal.settle()?;
        Ok((journal, entries))
    }

    /// Reads a journal, or makes one, and changes nothing else about it yet: [`settle`](Self::settle) does.
    /// The caller holds a lock.
    pub(super) fn scan(
        disk: Arc<dyn Disk>,
        path: &Path,
        visit: &mut dyn FnMut(Entry) -> Result<(), StoreError>,
    ) -> Result<Self, StoreError> {
        let unfinished = beside(path, ".unfinished");
        if disk.exists(&unfinished).map_err(StoreError::file("look for", &unfinished))? {
            disk.remove(&unfinished).map_err(StoreError::file("remove", &unfinished))?;
        }
        if !disk.exists(path).map_err(StoreError::file("look for", path))? {
            Fresh::write(&*disk, path, 1, &[])?;
        }
        let storage = disk.open(path, How::Write).map_err(StoreError::file("open", path))?;
        let mut frames = Frames::open(path, storage)?;
        loop {
            match frames.next()? {
                Next::Frame(entries) => entries.into_iter().try_for_each(&mut *visit)?,
                Next::End => break,
                Next::Bad => {
                    frames.torn()?;
                    break;
                }
            }
        }
        Ok(Self {
            disk,
            path: path.to_path_buf(),
            unsettled: (frames.at > frames.header.base).then_some(frames.last),
            storage: frames.storage,
            lock: None,
            header: frames.header,
            length: frames.at,
            number: frames.number,
            sum: frames.sum,
            recovery: Recovery { cut_bytes: frames.end - frames.at },
            folder_unsynced: true,
            was_cut: false,
            poisoned: None,
        })
    }

    /// Cuts a torn tail and makes durable what was read: the process before may have died too early for that.
    pub(super) fn settle(&mut self) -> Result<(), StoreError> {
        // Also where nothing is torn: a cut that the process before made may not be durable, and a commit
        // that had failed would come back later.
        self.storage.set_length(self.length).map_err(StoreError::file("cut", &self.path))?;
        if let Some(last) = self.unsettled {
            let mut bytes = vec![0; (self.length - last) as usize];
            self.storage.read_at(last, &mut bytes).map_err(StoreError::file("read", &self.path))?;
            self.storage.write_at(last, &bytes).map_err(StoreError::file("write", &self.path))?;
        }
        self.storage.sync(Flush::All).map_err(StoreError::file("sync", &self.path))?;
        self.unsettled = None;
        self.sync_folder()
    }

    /// Commits these entries together: one frame, one write, one fsync. When this returns they are durable;
    /// when it fails none of them is, and the same call can be repeated.
    pub fn append(&mut self, entries: &[Pair<'_>]) -> Result<(), StoreError> {
        self.usable()?;
        if entries.is_empty() {
            return Ok(());
        }
        if self.folder_unsynced {
            self.sync_folder()?;
        }
        // A cut is not part of the data: it needs the stronger kind.
        let kind = if self.was_cut { Flush::All } else { Flush::Data };
        let at = (self.length, self.number);
        let written = write_frame(&mut *self.storage, at, &self.header.salt, &self.sum, entries)
            .map_err(StoreError::file("write", &self.path));
        let done = written.and_then(|frame| {
            self.storage.sync(kind).map_err(StoreError::file("sync", &self.path)).map(|()| frame)
        });
        match done {
            Ok((end, sum)) => {
                self.was_cut = false;
                self.length = end;
                self.number += 1;
                self.sum = sum;
                Ok(())
            }
            Err(error) => {
                self.was_cut = true;
                if let Err(second) = self.storage.set_length(self.length) {
                    self.poisoned =
                        Some(format!("{error}; cutting off the rest of it failed, too: {second}"));
                }
                Err(error)
            }
        }
    }

    /// Replaces everything by these entries. A crash at any point leaves the old contents or the new ones.
    pub fn compact(&mut self, live: &[Pair<'_>]) -> Result<(), StoreError> {
        self.usable()?;
        let fresh = Fresh::write(&*self.disk, &self.path, self.number, live)?;
        self.storage = fresh.storage;
        self.length = fresh.header.base;
        self.header = fresh.header;
        self.number = fresh.number;
        self.sum = fresh.sum;
        self.was_cut = false;
        self.folder_unsynced = true;
        self.sync_folder()
    }

    /// The length of the file.
    pub fn len(&self) -> u64 {
        self.length
    }

    /// Whether no entry was ever committed, or none survived the last compaction.
    pub fn is_empty(&self) -> bool {
        self.length == Header::LENGTH as u64
    }

    /// What the last compaction left, also one of an earlier process.
    pub fn len_after_compaction(&self) -> u64 {
        self.header.base
    }

    /// Whether a compaction is worth its price: more than 8 MiB, and more than four times what the last left.
    pub fn due(&self) -> bool {
        self.length > 8 << 20 && self.length > 4 * self.header.base
    }

    /// What opening had to put right.
    pub fn recovery(&self) -> Recovery {
        self.recovery
    }

    /// The number of frames ever committed, over all compactions.
    pub fn frames(&self) -> u64 {
        self.number - 1
    }

    fn usable(&self) -> Result<(), StoreError> {
        match &self.poisoned {
            Some(why) => Err(StoreError::Poisoned { path: self.path.clone(), why: why.clone() }),
            None => Ok(()),
        }
    }

    fn sync_folder(&mut self) -> Result<(), StoreError> {
        let folder = folder(&self.path);
        self.disk.sync_folder(folder).map_err(StoreError::file("sync the folder", folder))?;
        self.folder_unsynced = false;
        Ok(())
    }
}

/// A file that was just written under its final name.
struct Fresh {
    storage: Box<dyn Storage>,
    header: Header,
    number: u64,
    sum: Sum,
}

impl Fresh {
    /// All steps but the sync of the folder.
    fn write(disk: &dyn Disk, path: &Path, first: u64, live: &[Pair<'_>]) -> Result<Self, StoreError> {
        let unfinished = beside(path, ".unfinished");
        let fresh = Self::fill(disk, &unfinished, first, live).and_then(|fresh| {
            disk.rename(&unfinished, path).map_err(StoreError::file("rename to", path))?;
            Ok(fresh)
        });
        if fresh.is_err() {
            // Gives its room back where it can; the next attempt starts over in any case.
            let _ = disk.remove(&unfinished);
        }
        fresh
    }

    fn fill(disk: &dyn Disk, path: &Path, first: u64, live: &[Pair<'_>]) -> Result<Self, StoreError> {
        let chunks = chunks(live);
        let mut salt = [0; 32];
        getrandom::fill(&mut salt)
            .map_err(|error| StoreError::file("draw a salt for", path)(error.into()))?;
        let base = Header::LENGTH as u64 + chunks.iter().map(|chunk| frame::length_of(chunk)).sum::<u64>();
        let header = Header { salt, first, base };
        let mut storage = disk.open(path, How::Fresh).map_err(StoreError::file("make", path))?;
        let (bytes, mut sum) = header.encode();
        let mut at = bytes.len() as u64;
        storage.write_at(0, &bytes).map_err(StoreError::file("write", path))?;
        let mut number = first;
        for chunk in chunks {
            let written = write_frame(&mut *storage, (at, number), &salt, &sum, chunk);
            (at, sum) = written.map_err(StoreError::file("write", path))?;
            number += 1;
        }
        // Some file systems find out only here that there is no room.
        storage.sync(Flush::All).map_err(StoreError::file("sync", path))?;
        Ok(Self { storage, header, number, sum })
    }
}

/// Writes a frame at a place under a number: in one piece, unless it is large. Gives where it ends, and its sum.
fn write_frame(
    storage: &mut dyn Storage,
    (at, number): (u64, u64),
    salt: &[u8; 32],
    previous: &Sum,
    entries: &[Pair<'_>],
) -> std::io::Result<(u64, Sum)> {
    if frame::length_of(entries) <= WHOLE {
        let (bytes, sum) = frame::encode(salt, number, previous, entries);
        storage.write_at(at, &bytes)?;
        return Ok((at + bytes.len() as u64, sum));
    }
    let mut end = at;
    let sum = frame::pieces(salt, number, previous, entries, |piece| {
        storage.write_at(end, piece)?;
        end += piece.len() as u64;
        Ok::<(), std::io::Error>(())
    })?;
    Ok((end, sum))
}

fn chunks<'a, 'b>(mut live: &'a [Pair<'b>]) -> Vec<&'a [Pair<'b>]> {
    let mut chunks = Vec::new();
    while !live.is_empty() {
        let mut size = 0;
        let full = live.iter().position(|(key, bytes)| {
            size += (key.len() + bytes.len()) as u64;
            size >= CHUNK
        });
        let (chunk, rest) = live.split_at(full.map_or(live.len(), |at| at + 1));
        chunks.push(chunk);
        live = rest;
    }
    chunks
}

pub(super) fn folder(path: &Path) -> &Path {
    path.parent().unwrap_or(Path::new(""))
}

pub(super) fn beside(path: &Path, ending: &str) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(ending);
    name.into()
}

/// Takes the lock at `file`, or says that `what` is in use.
pub(super) fn lock(disk: &dyn Disk, file: &Path, what: &Path) -> Result<Box<dyn Guard>, StoreError> {
    disk.lock(file).map_err(|error| match error {
        NotLocked::Held(holder) => StoreError::Locked { path: what.to_path_buf(), holder },
        NotLocked::Failed(source) => StoreError::file("lock", file)(source),
    })
}
