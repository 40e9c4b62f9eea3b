//! Taking the files of a set out of an archive. Members are told by the last part of their name and written by the name of
//! the set's list, so an archive cannot write anywhere else.

use super::{folder_name, mismatch, writing};
use crate::atomic::Draft;
use crate::error::DataError;
use crate::public::catalogue::{KnownFile, content_sum};
use flate2::read::MultiGzDecoder;
use std::fs::File;
use std::io::{BufReader, Read, Write};
use std::path::Path;
use zip::ZipArchive;

/// The files of a tar archive packed with gzip.
pub(super) fn tar(archive: &Path, folder: &Path, wanted: &[KnownFile]) -> Result<(), DataError> {
    let file = File::open(archive).map_err(|source| DataError::io(archive, source))?;
    let input = MultiGzDecoder::new(BufReader::with_capacity(1 << 16, file));
    let broken = |error: std::io::Error| match error.kind() {
        // What `tar` says itself; anything else comes from the file or its packing.
        std::io::ErrorKind::Other => {
            corrupt(archive, &format!("a member's header is garbled, or it ends inside a member: {error}"))
        }
        _ => corrupt(archive, &error),
    };
    let mut found = vec![false; wanted.len()];
    let mut members = tar::Archive::new(input);
    // Raw: records with long names and the like, whose size the archive chooses, are passed over and not held in memory.
    for entry in members.entries().map_err(broken)?.raw(true) {
        let mut entry = entry.map_err(broken)?;
        let kind = entry.header().entry_type();
        let name = entry.path_bytes().into_owned();
        let last = name.rsplit(|byte| *byte == b'/').next();
        let at = wanted.iter().position(|file| last == Some(file.name.as_bytes()));
        if let Some(at) = at.filter(|_| kind.is_file() || kind.is_contiguous()) {
            write(&mut entry, archive, folder, wanted[at])?;
            found[at] = true;
        }
    }
    complete(archive, wanted, &found)
}

/// The files of a zip archive.
pub(super) fn zip(archive: &Path, folder: &Path, wanted: &[KnownFile]) -> Result<(), DataError> {
    let file = File::open(archive).map_err(|source| DataError::io(archive, source))?;
    let mut members = ZipArchive::new(BufReader::new(file)).map_err(|error| corrupt(archive, &error))?;
    let mut found = vec![false; wanted.len()];
    for at in 0..members.len() {
        let mut entry = members.by_index(at).map_err(|error| corrupt(archive, &error))?;
        let name = entry.name().map_err(|error| corrupt(archive, &error))?.to_string();
        if let Some(at) = wanted.iter().position(|file| name.rsplit('/').next() == Some(file.name)) {
            write(&mut entry, archive, folder, wanted[at])?;
            found[at] = true;
        }
    }
    complete(archive, wanted, &found)
}

/// Writes a member to the side, checks it and gives it its name.
fn write(content: &mut dyn Read, archive: &Path, folder: &Path, file: KnownFile) -> Result<(), DataError> {
    let place = folder.join(file.name);
    let failed = |source: std::io::Error| writing(&place, &source);
    let mut draft = Draft::begin(&place).map_err(failed)?;
    let mut block = vec![0; 1 << 16];
    loop {
        let count = content.read(&mut block).map_err(|error| corrupt(archive, &error))?;
        if count == 0 {
            break;
        }
        draft.write_all(&block[..count]).map_err(failed)?;
    }
    let sum = content_sum(draft.written().map_err(failed)?)?;
    if sum != file.sha256 {
        return Err(mismatch(folder_name(folder), file.name, file.sha256, &sum));
    }
    draft.finish().map_err(failed)
}

fn complete(archive: &Path, wanted: &[KnownFile], found: &[bool]) -> Result<(), DataError> {
    match wanted.iter().zip(found).find(|(_, found)| !**found) {
        None => Ok(()),
        Some((file, _)) => Err(corrupt(archive, &format!("it holds no {}", file.name))),
    }
}

fn corrupt(archive: &Path, error: &dyn std::fmt::Display) -> DataError {
    let name = archive.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let name = name.trim_start_matches('.').trim_end_matches(".part");
    DataError::file(
        archive,
        format!(
            "the archive {name} is damaged ({error}); it was removed: run the same command again, or take it from another place with --from"
        ),
    )
}
