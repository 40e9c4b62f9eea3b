//! Replacing a file in one step: under its final name there is the old content or the new, never a part.
//!
//! This is the one place of the workspace that does it, except for the store of a node, whose disk is replaced in tests of
//! crashes.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use tempfile::TempPath;

/// What the names of unfinished files end in.
const UNFINISHED: &str = ".unfinished";

/// A file that is being written beside its place. Dropped before [`Draft::finish`], it is gone.
#[derive(Debug)]
pub struct Draft {
    writer: BufWriter<File>,
    unfinished: TempPath,
    place: PathBuf,
}

impl Draft {
    /// Begins a file that all may read whom the process lets.
    pub fn begin(place: &Path) -> io::Result<Self> {
        Self::open(place, OpenOptions::new().write(true).create_new(true))
    }

    /// Begins a file that only its owner may read.
    fn begin_private(place: &Path) -> io::Result<Self> {
        let mut options = OpenOptions::new();
        options.write(true).create_new(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        Self::open(place, &options)
    }

    /// In the same folder, because a rename is one step only within a file system.
    fn open(place: &Path, options: &OpenOptions) -> io::Result<Self> {
        let name = place
            .file_name()
            .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "this is not a file name"))?;
        let prefix = format!(".{}.", name.to_string_lossy());
        let (file, unfinished) = tempfile::Builder::new()
            .prefix(&prefix)
            .suffix(UNFINISHED)
            // The crate's own way to open the file adds its passing name to every error.
            .make_in(folder_of(place), |path| options.open(path))?
            .into_parts();
        Ok(Self { writer: BufWriter::with_capacity(1 << 16, file), unfinished, place: place.to_path_buf() })
    }

    /// Where to read what has been written up to now.
    pub fn written(&mut self) -> io::Result<&Path> {
        self.writer.flush()?;
        Ok(&self.unfinished)
    }

    /// Gives the file its name once everything has reached the disk.
    pub fn finish(self) -> io::Result<()> {
        let (unfinished, place) = self.synced()?;
        unfinished.persist(&place)?;
        sync_folder(&place)
    }

    /// As [`Draft::finish`], but a file that is there already is an error.
    fn finish_new(self) -> io::Result<()> {
        let (unfinished, place) = self.synced()?;
        unfinished.persist_noclobber(&place)?;
        sync_folder(&place)
    }

    fn synced(self) -> io::Result<(TempPath, PathBuf)> {
        let file = self.writer.into_inner().map_err(io::IntoInnerError::into_error)?;
        // Some file systems find out only here that there is no room.
        file.sync_all()?;
        Ok((self.unfinished, self.place))
    }
}

impl Write for Draft {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.writer.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.writer.flush()
    }
}

/// Writes these bytes as the whole file; its folder must be there.
pub fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut draft = Draft::begin(path)?;
    draft.write_all(bytes)?;
    draft.finish()
}

/// Writes a file that only its owner may read, whole or not at all; one that is there already is an error.
pub fn write_new_private(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut draft = Draft::begin_private(path)?;
    draft.write_all(bytes)?;
    draft.finish_new()
}

/// Gives a file that is complete another name in its folder.
pub fn place(from: &Path, to: &Path) -> io::Result<()> {
    File::open(from)?.sync_all()?;
    fs::rename(from, to)?;
    sync_folder(to)
}

/// Whether a file of this name is one that a killed process left unfinished.
pub fn is_unfinished(name: &str) -> bool {
    name.starts_with('.') && name.ends_with(UNFINISHED)
}

fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}

/// The rename itself must survive a power cut, too.
fn sync_folder(path: &Path) -> io::Result<()> {
    #[cfg(unix)]
    File::open(folder_of(path))?.sync_all()?;
    #[cfg(not(unix))]
    let _ = path;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_draft_that_is_dropped_leaves_the_old_file_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.txt");
        write(&path, b"old").unwrap();
        let mut draft = Draft::begin(&path).unwrap();
        draft.write_all(b"new").unwrap();
        let written = draft.written().unwrap();
        assert_eq!(fs::read(written).unwrap(), b"new");
        assert!(is_unfinished(written.file_name().unwrap().to_str().unwrap()));
        drop(draft);
        assert_eq!(fs::read(&path).unwrap(), b"old");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn errors_are_those_of_the_system() {
        let folder = tempfile::tempdir().unwrap();
        let error = write(&folder.path().join("absent/a.txt"), b"x").unwrap_err();
        assert!(error.raw_os_error().is_some(), "{error}");
        assert!(write(Path::new("/"), b"x").unwrap_err().to_string().contains("not a file name"));
    }

    #[test]
    fn a_private_file_is_written_once() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("key");
        write_new_private(&path, b"first").unwrap();
        let error = write_new_private(&path, b"second").unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(fs::read(&path).unwrap(), b"first");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[cfg(unix)]
    #[test]
    fn who_may_read_a_file_is_as_for_any_other() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let mode = |name: &str| fs::metadata(folder.path().join(name)).unwrap().permissions().mode() & 0o777;
        fs::write(folder.path().join("plain"), b"x").unwrap();
        write(&folder.path().join("replaced"), b"x").unwrap();
        write_new_private(&folder.path().join("key"), b"x").unwrap();
        assert_eq!(mode("replaced"), mode("plain"));
        assert_eq!(mode("key"), 0o600);
    }
}
