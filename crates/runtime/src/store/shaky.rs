//! A disk in memory that does what real ones do at the worst moment.
//!
//! It keeps apart what processes see and what would survive a power cut. Writes become durable by a sync of
//! the file, names by a sync of the folder. A power cut keeps any part of what was not synced: single
//! sectors of a write, a cut or not, the first few of the pending renames. A failed sync leaves the pages
//! "clean": visible, lost to a later sync, and partly on the disk or not. For tests and fault simulators.

use super::disk::{Disk, Flush, Guard, How, NotLocked, Storage};
use fedkin_numeric::rng::{PublicRng, Random};
use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What happens to an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DiskFault {
    /// It fails, and so does everything after it until [`ShakyDisk::kill`] or [`ShakyDisk::power_cut`].
    Crash,
    /// It fails for want of space.
    Full,
    /// It fails with an I/O error.
    Broken,
}

/// The disk; clones share it.
#[derive(Debug, Clone)]
pub struct ShakyDisk(Arc<Mutex<Inner>>);

#[derive(Debug)]
struct Inner {
    files: Vec<File>,
    /// What processes see.
    names: BTreeMap<PathBuf, usize>,
    /// What a power cut leaves.
    durable_names: BTreeMap<PathBuf, usize>,
    pending_names: Vec<Name>,
    locks: BTreeSet<PathBuf>,
    /// Files opened before a restart are closed.
    boot: u64,
    operations: u64,
    faults: BTreeMap<u64, DiskFault>,
    crashed: bool,
    capacity: u64,
    rng: PublicRng,
}

#[derive(Debug, Default)]
struct File {
    seen: Vec<u8>,
    durable: Vec<u8>,
    pending: Vec<Change>,
}

#[derive(Debug)]
enum Change {
    Write(u64, Vec<u8>),
    Length(u64),
}

#[derive(Debug)]
enum Name {
    Made(PathBuf, usize),
    Renamed(PathBuf, PathBuf),
    Removed(PathBuf),
}

const SECTOR: usize = 64;

fn put(content: &mut Vec<u8>, offset: usize, bytes: &[u8]) {
    if content.len() < offset + bytes.len() {
        content.resize(offset + bytes.len(), 0);
    }
    content[offset..offset + bytes.len()].copy_from_slice(bytes);
}

impl File {
    /// Some of what was pending reaches the disk: nothing, everything, or any sectors of it.
    fn spill(&mut self, rng: &mut PublicRng) {
        let mode = rng.below(3);
        let mut lucky = || mode == 1 || (mode == 2 && rng.below(2) == 0);
        for change in self.pending.drain(..) {
            match change {
                Change::Length(length) => {
                    if lucky() {
                        self.durable.resize(length as usize, 0);
                    }
                }
                Change::Write(offset, bytes) => {
                    for (number, sector) in bytes.chunks(SECTOR).enumerate() {
                        if lucky() {
                            put(&mut self.durable, offset as usize + number * SECTOR, sector);
                        }
                    }
                }
            }
        }
    }
}

impl Inner {
    /// Counts one operation and decides whether it fails.
    fn step(&mut self) -> Result<(), (DiskFault, io::Error)> {
        let now = self.operations;
        self.operations += 1;
        let fault = match self.faults.remove(&now) {
            _ if self.crashed => DiskFault::Crash,
            Some(fault) => fault,
            None => return Ok(()),
        };
        self.crashed |= fault == DiskFault::Crash;
        let error = match fault {
            DiskFault::Crash => io::Error::other("the process ended here"),
            DiskFault::Full => ErrorKind::StorageFull.into(),
            DiskFault::Broken => io::Error::other("input/output error"),
        };
        Err((fault, error))
    }

    fn pass(&mut self) -> io::Result<()> {
        self.step().map_err(|(_, error)| error)
    }

    fn name(names: &mut BTreeMap<PathBuf, usize>, change: &Name) {
        match change {
            Name::Made(path, file) => {
                names.insert(path.clone(), *file);
            }
            Name::Renamed(from, to) => {
                if let Some(file) = names.remove(from) {
                    names.insert(to.clone(), file);
                }
            }
            Name::Removed(path) => {
                names.remove(path);
            }
        }
    }

    fn rename(&mut self, change: Name) {
        Self::name(&mut self.names, &change);
        self.pending_names.push(change);
    }

    fn used(&self) -> u64 {
        self.names.values().map(|file| self.files[*file].seen.len() as u64).sum()
    }

    fn restart(&mut self) {
        self.locks.clear();
        self.boot += 1;
        self.crashed = false;
    }
}

impl Default for ShakyDisk {
    fn default() -> Self {
        Self::new(0)
    }
}

impl ShakyDisk {
    /// An empty disk; the seed decides what is lost when.
    pub fn new(seed: u64) -> Self {
        Self(Arc::new(Mutex::new(Inner {
            files: Vec::new(),
            names: BTreeMap::new(),
            durable_names: BTreeMap::new(),
            pending_names: Vec::new(),
            locks: BTreeSet::new(),
            boot: 0,
            operations: 0,
            faults: BTreeMap::new(),
            crashed: false,
            capacity: u64::MAX,
            rng: PublicRng::named(seed, "shaky disk", 0, 0),
        })))
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How many operations that change something were tried so far.
    pub fn operations(&self) -> u64 {
        self.inner().operations
    }

    /// Lets the operation after `good` more fail, beside other faults that are waiting.
    pub fn fail_after(&self, good: u64, fault: DiskFault) {
        let mut inner = self.inner();
        let at = inner.operations + good;
        inner.faults.insert(at, fault);
    }

    /// Takes back all faults that are waiting.
    pub fn calm(&self) {
        self.inner().faults.clear();
    }

    /// Room for this many bytes in all files together.
    pub fn set_capacity(&self, bytes: u64) {
        self.inner().capacity = bytes;
    }

    /// The process ends; what it wrote stays visible, whether it is durable or not.
    pub fn kill(&self) {
        self.inner().restart();
    }

    /// The machine ends: of what was not synced, any part is lost.
    pub fn power_cut(&self) {
        let inner = &mut *self.inner();
        inner.restart();
        let kept = inner.rng.below(inner.pending_names.len() as u32 + 1) as usize;
        for change in inner.pending_names.drain(..).take(kept) {
            Inner::name(&mut inner.durable_names, &change);
        }
        inner.names.clone_from(&inner.durable_names);
        for file in &mut inner.files {
            file.spill(&mut inner.rng);
            file.seen.clone_from(&file.durable);
        }
    }

    /// What a file holds, as processes see it.
    pub fn contents(&self, path: &Path) -> Option<Vec<u8>> {
        let inner = self.inner();
        inner.names.get(path).map(|file| inner.files[*file].seen.clone())
    }

    /// Puts a file there, durable at once.
    pub fn plant(&self, path: &Path, bytes: &[u8]) {
        let mut inner = self.inner();
        let file = inner.files.len();
        inner.files.push(File { seen: bytes.to_vec(), durable: bytes.to_vec(), pending: Vec::new() });
        inner.names.insert(path.to_path_buf(), file);
        inner.durable_names.insert(path.to_path_buf(), file);
    }
}

#[derive(Debug)]
struct Open {
    disk: ShakyDisk,
    file: usize,
    boot: u64,
}

impl Open {
    fn with<T>(&self, act: impl FnOnce(&mut Inner) -> io::Result<T>) -> io::Result<T> {
        let mut inner = self.disk.inner();
        if inner.boot != self.boot {
            return Err(io::Error::other("this file was opened before a restart"));
        }
        act(&mut inner)
    }
}

impl Storage for Open {
    fn length(&self) -> io::Result<u64> {
        self.with(|inner| Ok(inner.files[self.file].seen.len() as u64))
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        self.with(|inner| {
            let seen = &inner.files[self.file].seen;
            let part = seen.get(offset as usize..offset as usize + buffer.len());
            buffer.copy_from_slice(part.ok_or(ErrorKind::UnexpectedEof)?);
            Ok(())
        })
    }

    fn write_at(&mut self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.with(|inner| {
            let mut outcome = inner.pass();
            // A write that fails may have written some of it.
            let mut count = match outcome {
                Ok(()) => bytes.len(),
                Err(_) => inner.rng.below(bytes.len() as u32 + 1) as usize,
            };
            let room = inner.capacity.saturating_sub(inner.used()) as usize;
            let overlap = inner.files[self.file].seen.len().saturating_sub(offset as usize);
            if count > overlap + room {
                count = overlap + room;
                outcome = outcome.and(Err(ErrorKind::StorageFull.into()));
            }
            let file = &mut inner.files[self.file];
            put(&mut file.seen, offset as usize, &bytes[..count]);
            file.pending.push(Change::Write(offset, bytes[..count].to_vec()));
            outcome
        })
    }

    fn set_length(&mut self, length: u64) -> io::Result<()> {
        self.with(|inner| {
            inner.pass()?;
            let file = &mut inner.files[self.file];
            file.seen.resize(length as usize, 0);
            file.pending.push(Change::Length(length));
            Ok(())
        })
    }

    fn sync(&mut self, _: Flush) -> io::Result<()> {
        self.with(|inner| {
            let outcome = inner.step();
            let file = &mut inner.files[self.file];
            match outcome {
                Ok(()) => {
                    // Only what is still marked dirty is written.
                    for change in file.pending.drain(..) {
                        match change {
                            Change::Write(offset, bytes) => put(&mut file.durable, offset as usize, &bytes),
                            Change::Length(length) => file.durable.resize(length as usize, 0),
                        }
                    }
                    Ok(())
                }
                Err((DiskFault::Crash, error)) => Err(error),
                Err((_, error)) => {
                    file.spill(&mut inner.rng);
                    Err(error)
                }
            }
        })
    }
}

#[derive(Debug)]
struct Lock {
    disk: ShakyDisk,
    path: PathBuf,
    boot: u64,
}

impl Guard for Lock {}

impl Drop for Lock {
    fn drop(&mut self) {
        let mut inner = self.disk.inner();
        if inner.boot == self.boot {
            inner.locks.remove(&self.path);
        }
    }
}

impl Disk for ShakyDisk {
    // Folders are not modelled: a path is a name.
    fn make_folder(&self, _: &Path) -> io::Result<()> {
        self.inner().pass()
    }

    fn exists(&self, path: &Path) -> io::Result<bool> {
        Ok(self.inner().names.contains_key(path))
    }

    fn open(&self, path: &Path, how: How) -> io::Result<Box<dyn Storage>> {
        let mut inner = self.inner();
        let boot = inner.boot;
        if how == How::Fresh {
            inner.pass()?;
        }
        let file = match inner.names.get(path) {
            Some(&file) => file,
            None if how == How::Fresh => {
                let file = inner.files.len();
                inner.files.push(File::default());
                inner.rename(Name::Made(path.to_path_buf(), file));
                file
            }
            None => return Err(ErrorKind::NotFound.into()),
        };
        if how == How::Fresh {
            inner.files[file].seen.clear();
            inner.files[file].pending.push(Change::Length(0));
        }
        Ok(Box::new(Open { disk: self.clone(), file, boot }))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let mut inner = self.inner();
        inner.pass()?;
        inner.rename(Name::Renamed(from.to_path_buf(), to.to_path_buf()));
        Ok(())
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        let mut inner = self.inner();
        inner.pass()?;
        inner.rename(Name::Removed(path.to_path_buf()));
        Ok(())
    }

    fn sync_folder(&self, _: &Path) -> io::Result<()> {
        let inner = &mut *self.inner();
        inner.pass()?;
        for change in inner.pending_names.drain(..) {
            Inner::name(&mut inner.durable_names, &change);
        }
        Ok(())
    }

    fn lock(&self, path: &Path) -> Result<Box<dyn Guard>, NotLocked> {
        let mut inner = self.inner();
        let boot = inner.boot;
        if !inner.locks.insert(path.to_path_buf()) {
            return Err(NotLocked::Held(String::new()));
        }
        Ok(Box::new(Lock { disk: self.clone(), path: path.to_path_buf(), boot }))
    }
}
