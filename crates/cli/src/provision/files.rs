//! Writing a deployment: keys are created once and never written over.

use crate::failure::Failure;
use fedkin::rooms::data::atomic;
use std::fs;
use std::path::Path;

/// What became of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Written {
    /// It was not there.
    New,
    /// It was there with another content.
    Updated,
    /// It stays as it was.
    Kept,
}

fn failed(path: &Path, error: &std::io::Error) -> Failure {
    Failure::Usage(format!("cannot write {}: {error}", path.display()))
}

/// Makes a folder with those above it.
pub(crate) fn folder(path: &Path) -> Result<(), Failure> {
    fs::create_dir_all(path).map_err(|error| failed(path, &error))
}

/// Writes a text where it differs: beside the file first, then in its place.
pub(crate) fn write_text(path: &Path, text: &str) -> Result<Written, Failure> {
    let before = fs::read(path).ok();
    if before.as_deref() == Some(text.as_bytes()) {
        return Ok(Written::Kept);
    }
    atomic::write(path, text.as_bytes()).map_err(|error| failed(path, &error))?;
    Ok(if before.is_some() { Written::Updated } else { Written::New })
}

/// Writes a text that a user may have changed: what is there stays.
pub(crate) fn write_once(path: &Path, text: &str, force: bool) -> Result<Written, Failure> {
    if path.exists() && !force { Ok(Written::Kept) } else { write_text(path, text) }
}

/// Creates a file that only its owner may read; one that is there is an error.
pub(crate) fn write_key(path: &Path, text: &str) -> Result<(), Failure> {
    atomic::write_new_private(path, text.as_bytes()).map_err(|error| failed(path, &error))
}
