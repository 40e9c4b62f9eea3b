//! Replacing a file in one step: under its final name there is the old content or the new, never a part.

use super::ArtifactError;
pub use fedkin_data::atomic::{Draft, is_unfinished};
use std::fs;
use std::io::{self, Write};
use std::path::Path;

/// Writes these bytes as the whole file; makes the folder where it is missing.
pub fn write(path: &Path, bytes: &[u8]) -> Result<(), ArtifactError> {
    write_with(path, |file| file.write_all(bytes))
}

/// Writes a file piece by piece; it appears under its name once everything has reached the disk.
pub fn write_with(path: &Path, fill: impl FnOnce(&mut Draft) -> io::Result<()>) -> Result<(), ArtifactError> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).map_err(ArtifactError::file("make the folder", folder))?;
    }
    let written = Draft::begin(path).and_then(|mut draft| {
        fill(&mut draft)?;
        draft.finish()
    });
    written.map_err(ArtifactError::file("write", path))
}

/// Removes what a killed process left unfinished in a folder. Only for the holder of its lock.
pub fn remove_unfinished(folder: &Path) -> Result<(), ArtifactError> {
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        entries => entries.map_err(ArtifactError::file("read the folder", folder))?,
    };
    for entry in entries {
        let entry = entry.map_err(ArtifactError::file("read the folder", folder))?;
        if is_unfinished(&entry.file_name().to_string_lossy()) {
            let path = entry.path();
            fs::remove_file(&path).map_err(ArtifactError::file("remove", &path))?;
        }
    }
    Ok(())
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::artifacts::skipped::skipped;

    fn names(folder: &Path) -> Vec<String> {
        let mut names: Vec<String> = fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    #[test]
    fn a_file_is_replaced_whole_and_nothing_else_is_left() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("deep/a.txt");
        write(&path, b"old").unwrap();
        write(&path, b"new").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"new");
        assert_eq!(names(path.parent().unwrap()), ["a.txt"]);
    }

    #[test]
    fn a_failure_half_way_keeps_the_old_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.txt");
        write(&path, b"old").unwrap();
        let error = write_with(&path, |file| {
            file.write_all(&vec![7; 200_000])?;
            Err(io::Error::other("the pen broke"))
        });
        let text = error.unwrap_err().to_string();
        assert!(text.starts_with("cannot write ") && text.ends_with("a.txt: the pen broke"), "{text}");
        assert_eq!(fs::read(&path).unwrap(), b"old");
        assert_eq!(names(folder.path()), ["a.txt"]);
    }

    #[test]
    fn leftovers_of_a_killed_process_go_and_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        for name in [".metrics.parquet.17-0.unfinished", ".hidden", "notes.unfinished"] {
            fs::write(folder.path().join(name), b"x").unwrap();
        }
        remove_unfinished(folder.path()).unwrap();
        assert_eq!(names(folder.path()), [".hidden", "notes.unfinished"]);
        remove_unfinished(&folder.path().join("absent")).unwrap();
    }

    #[test]
    fn a_folder_in_the_way_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let text = write(folder.path(), b"x").unwrap_err().to_string();
        assert!(
            text.starts_with("cannot write ") && text.contains(folder.path().to_str().unwrap()),
            "{text}"
        );
    }

    /// A file system of a few kilobytes, gone when dropped.
    pub(crate) struct TinyDisk(tempfile::TempDir);

    impl TinyDisk {
        /// Needs the right to mount; without it the calling test is skipped.
        pub(crate) fn mount(kilobytes: usize) -> Option<Self> {
            let folder = tempfile::tempdir().unwrap();
            let size = format!("size={kilobytes}k");
            let mounted = std::process::Command::new("mount")
                .args(["-t", "tmpfs", "-o", &size, "tmpfs"])
                .arg(folder.path())
                .stderr(std::process::Stdio::null())
                .status();
            if !mounted.is_ok_and(|status| status.success()) {
                skipped("no right to mount a small file system");
                return None;
            }
            Some(Self(folder))
        }

        pub(crate) fn path(&self) -> &Path {
            self.0.path()
        }
    }

    impl Drop for TinyDisk {
        fn drop(&mut self) {
            let _ = std::process::Command::new("umount").arg(self.0.path()).status();
        }
    }

    #[test]
    fn a_full_disk_is_called_by_its_name_and_keeps_the_old_file() {
        let Some(disk) = TinyDisk::mount(64) else {
            // Then /dev/full alone.
            let result = fs::OpenOptions::new()
                .write(true)
                .open("/dev/full")
                .and_then(|mut full| full.write_all(b"x"));
            if let Err(source) = result {
                let error = ArtifactError::File { action: "write", path: "a".into(), source };
                assert!(error.disk_full() && error.to_string().contains("the disk is full"), "{error}");
            }
            return;
        };
        let path = disk.path().join("metrics.parquet");
        write(&path, b"old").unwrap();
        let error = write(&path, &vec![1; 1 << 20]).unwrap_err();
        assert!(error.disk_full());
        let text = error.to_string();
        assert!(text.contains("metrics.parquet: the disk is full"), "{text}");
        assert_eq!(fs::read(&path).unwrap(), b"old");
        assert_eq!(names(disk.path()), ["metrics.parquet"]);
        write(&path, b"small things still fit").unwrap();
    }
}
