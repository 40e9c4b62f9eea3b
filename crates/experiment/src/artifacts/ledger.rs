//! `ledger.jsonl`: what was released, one JSON object a line.

use super::{ArtifactError, atomic};
use serde::Serialize;
use std::io::{self, Write};
use std::path::Path;

/// Writes one line per entry.
pub fn write<T: Serialize>(path: &Path, entries: &[T]) -> Result<(), ArtifactError> {
    atomic::write_with(path, |file| {
        for entry in entries {
            serde_json::to_writer(&mut *file, entry).map_err(io::Error::from)?;
            file.write_all(b"\n")?;
        }
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Serialize)]
    struct Line<'a> {
        client: &'a str,
        rho: f64,
    }

    #[test]
    fn each_entry_is_one_line_whatever_is_in_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ledger.jsonl");
        write(&path, &[Line { client: "a\nb", rho: 0.5 }, Line { client: "c", rho: 1e-9 }]).unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        assert_eq!(text, "{\"client\":\"a\\nb\",\"rho\":0.5}\n{\"client\":\"c\",\"rho\":1e-9}\n");
        write::<Line<'_>>(&path, &[]).unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"");
    }

    #[test]
    fn a_full_disk_is_seen_through_the_json_writer() {
        let Some(disk) = atomic::tests::TinyDisk::mount(16) else {
            return;
        };
        let error = write(&disk.path().join("ledger.jsonl"), &vec!["x"; 100_000]).unwrap_err();
        assert!(error.disk_full(), "{error}");
    }
}
