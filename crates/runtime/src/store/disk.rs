//! The file operations a store needs, and the real ones.

use std::fmt::Debug;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::Path;

/// How to open a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum How {
    /// To read; the file must exist.
    Read,
    /// To read and write; the file must exist.
    Write,
    /// To write from the first byte; made where missing, emptied where not. Only its owner may read it.
    Fresh,
}

/// How much has to reach the disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flush {
    /// The contents and what is needed to read them back.
    Data,
    /// Everything about the file.
    All,
}

/// Why a lock was not taken.
#[derive(Debug)]
pub enum NotLocked {
    /// Somebody has it; the process id in parentheses, where known.
    Held(String),
    /// The attempt failed.
    Failed(io::Error),
}

/// A lock, until dropped. It ends with the process, however that ends.
pub trait Guard: Debug + Send + Sync {}

/// A place for files. All paths are within folders made by [`make_folder`](Disk::make_folder).
pub trait Disk: Debug + Send + Sync {
    /// Makes a folder that only its owner may enter, with its parents, and waits until it is durable.
    fn make_folder(&self, path: &Path) -> io::Result<()>;
    /// Whether there is such a file.
    fn exists(&self, path: &Path) -> io::Result<bool>;
    /// Opens a file.
    fn open(&self, path: &Path, how: How) -> io::Result<Box<dyn Storage>>;
    /// Gives a file another name in the same folder, in the place of what had it.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;
    /// Removes a file.
    fn remove(&self, path: &Path) -> io::Result<()>;
    /// Waits until the names in a folder are durable.
    fn sync_folder(&self, path: &Path) -> io::Result<()>;
    /// Takes the lock that hangs on this file, which is made where missing and stays.
    fn lock(&self, path: &Path) -> Result<Box<dyn Guard>, NotLocked>;
}

/// An open file.
pub trait Storage: Debug + Send + Sync {
    /// Its length.
    fn length(&self) -> io::Result<u64>;
    /// Fills the buffer from this place on.
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()>;
    /// Writes all of these bytes at this place.
    fn write_at(&mut self, offset: u64, bytes: &[u8]) -> io::Result<()>;
    /// Cuts or extends the file.
    fn set_length(&mut self, length: u64) -> io::Result<()>;
    /// Waits until what was written is durable.
    fn sync(&mut self, what: Flush) -> io::Result<()>;
}

/// The disk of the operating system.
#[derive(Debug, Clone, Copy, Default)]
pub struct System;

impl Guard for File {}

impl Storage for File {
    fn length(&self) -> io::Result<u64> {
        Ok(self.metadata()?.len())
    }
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        let mut file = self;
        file.seek(SeekFrom::Start(offset))?;
        file.read_exact(buffer)
    }
    fn write_at(&mut self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.seek(SeekFrom::Start(offset))?;
        self.write_all(bytes)
    }
    fn set_length(&mut self, length: u64) -> io::Result<()> {
        self.set_len(length)
    }
    fn sync(&mut self, what: Flush) -> io::Result<()> {
        match what {
            Flush::Data => self.sync_data(),
            Flush::All => self.sync_all(),
        }
    }
}

fn private(options: &mut OpenOptions) -> &mut OpenOptions {
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(options, 0o600);
    options
}

impl Disk for System {
    fn make_folder(&self, path: &Path) -> io::Result<()> {
        if path.as_os_str().is_empty() || path.is_dir() {
            return Ok(());
        }
        if let Some(parent) = path.parent() {
            self.make_folder(parent)?;
        }
        let mut builder = fs::DirBuilder::new();
        #[cfg(unix)]
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
        match builder.create(path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && path.is_dir() => {}
            made => made?,
        }
        self.sync_folder(path.parent().unwrap_or(Path::new("")))
    }

    fn exists(&self, path: &Path) -> io::Result<bool> {
        path.try_exists()
    }

    fn open(&self, path: &Path, how: How) -> io::Result<Box<dyn Storage>> {
        let mut options = OpenOptions::new();
        options.read(true).write(how != How::Read);
        if how == How::Fresh {
            private(&mut options).create(true).truncate(true);
        }
        Ok(Box::new(options.open(path)?))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::rename(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        fs::remove_file(path)
    }

    #[cfg(unix)]
    fn sync_folder(&self, path: &Path) -> io::Result<()> {
        File::open(if path.as_os_str().is_empty() { Path::new(".") } else { path })?.sync_all()
    }

    // Elsewhere a folder cannot be opened; the rename itself is as durable as the system makes it.
    #[cfg(not(unix))]
    fn sync_folder(&self, _: &Path) -> io::Result<()> {
        Ok(())
    }

    fn lock(&self, path: &Path) -> Result<Box<dyn Guard>, NotLocked> {
        let mut options = OpenOptions::new();
        options.read(true).write(true);
        private(&mut options).create(true).truncate(false);
        let mut file = options.open(path).map_err(NotLocked::Failed)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let holder = fs::read_to_string(path).unwrap_or_default();
                return Err(NotLocked::Held(match holder.trim().parse::<u32>() {
                    Ok(id) => format!(" (process {id})"),
                    Err(_) => String::new(),
                }));
            }
            Err(TryLockError::Error(error)) => return Err(NotLocked::Failed(error)),
        }
        // The number only helps the message of others; a full disk must not keep a node from starting.
        let _ = file.set_len(0).and_then(|()| writeln!(file, "{}", std::process::id()));
        Ok(Box::new(file))
    }
}
