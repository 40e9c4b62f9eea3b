//! Taking the files of a set out of an archive. Members are told by the last part of their name and written by the name of
//! the set's list, so an archive cannot write anywhere else.

use super::{folder_name, mismatch, writing};
use crate::catalogue::{KnownFile, content_sum};
use crate::error::DataError;
use flate2::read::MultiGzDecoder;
use std::fs::File;
use std::io::{BufReader, Read};
use std::path::Path;
use zip::ZipArchive;

const BLOCK: usize = 512;

/// The files of a tar archive packed with gzip.
pub(super) fn tar(archive: &Path, folder: &Path, wanted: &[KnownFile]) -> Result<(), DataError> {
    let file = File::open(archive).map_err(|source| DataError::io(archive, source))?;
    let mut input = MultiGzDecoder::new(BufReader::with_capacity(1 << 16, file));
    let broken = |error: &dyn std::fmt::Display| corrupt(archive, error);
    let mut found = vec![false; wanted.len()];
    loop {
        let mut header = [0u8; BLOCK];
        input.read_exact(&mut header).map_err(|error| broken(&error))?;
        if header.iter().all(|byte| *byte == 0) {
            break;
        }
        let (name, size) = member(&header).ok_or_else(|| broken(&"a member's header is garbled"))?;
        let padded = size.div_ceil(BLOCK as u64) * BLOCK as u64;
        let mut content = (&mut input).take(size);
        if let Some(at) = wanted.iter().position(|file| name.rsplit('/').next() == Some(file.name)) {
            write(&mut content, archive, folder, wanted[at])?;
            found[at] = true;
        }
        // What is left of the member, and the zeros after it.
        let rest = content.limit() + padded - size;
        let skipped = std::io::copy(&mut (&mut input).take(rest), &mut std::io::sink());
        if skipped.map_err(|error| broken(&error))? != rest {
            return Err(broken(&"it ends inside a member"));
        }
    }
    complete(archive, wanted, &found)
}

/// Name and size of a member.
fn member(header: &[u8; BLOCK]) -> Option<(String, u64)> {
    let text = |range: std::ops::Range<usize>| {
        let field = &header[range];
        let end = field.iter().position(|byte| *byte == 0).unwrap_or(field.len());
        std::str::from_utf8(&field[..end]).ok()
    };
    // The sum of the header's bytes, its own field read as blanks.
    let sum: u64 = header
        .iter()
        .enumerate()
        .map(|(at, byte)| u64::from(if (148..156).contains(&at) { b' ' } else { *byte }))
        .sum();
    let octal = |range| u64::from_str_radix(text(range)?.trim(), 8).ok();
    (octal(148..156)? == sum).then_some(())?;
    Some((text(0..100)?.to_string(), octal(124..136)?))
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
    let (place, aside) = (folder.join(file.name), folder.join(format!(".{}.new", file.name)));
    let result = (|| {
        let mut output = File::create(&aside).map_err(|source| writing(&aside, &source))?;
        let mut block = vec![0; 1 << 16];
        loop {
            let count = content.read(&mut block).map_err(|error| corrupt(archive, &error))?;
            if count == 0 {
                break;
            }
            std::io::Write::write_all(&mut output, &block[..count])
                .map_err(|source| writing(&aside, &source))?;
        }
        output.sync_all().map_err(|source| writing(&aside, &source))?;
        let sum = content_sum(&aside)?;
        if sum != file.sha256 {
            return Err(mismatch(folder_name(folder), file.name, file.sha256, &sum));
        }
        std::fs::rename(&aside, &place).map_err(|source| writing(&place, &source))
    })();
    if result.is_err() {
        let _ = std::fs::remove_file(&aside);
    }
    result
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
