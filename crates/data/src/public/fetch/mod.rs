//! Gets a public data set: downloads it or takes it from a folder, checks it, and puts its files in place.
//!
//! A download is written to `.NAME.part` beside its place and goes on from there the next time. Nothing that fails its sum is
//! kept, and a file of the set is written to the side and renamed, so that what carries its name is whole.

mod transfer;
mod unpack;

use crate::atomic;
use crate::error::DataError;
use crate::public::catalogue::{Download, Holds, Known, KnownFile, content_sum};
use crate::public::places::plain_or_packed;
use std::fs::File;
use std::path::{Path, PathBuf};

/// What to get, from where, and where to put it.
#[derive(Debug, Clone, Copy)]
pub struct FetchRequest<'a> {
    /// Which set.
    pub known: &'a Known,
    /// The folder above the folders of all sets.
    pub to: &'a Path,
    /// Another place than the set's own: an address that ends before the file's name, or a folder.
    pub from: Option<&'a str>,
}

/// What is going on.
#[derive(Debug, Clone, Copy)]
pub enum FetchNews<'a> {
    /// A file of the set is there already, and right.
    There(&'a str),
    /// So many bytes of a file have arrived, of so many in all where that is known.
    Bytes(&'a str, u64, Option<u64>),
    /// The line broke; so many bytes are there, and another try is made.
    Again(&'a str, u64),
    /// A file is complete and its sum is right.
    Verified(&'a str),
}

/// Whoever wants to know what is going on.
pub type Listener<'a> = dyn FnMut(FetchNews<'_>) + 'a;

/// Gets the set and gives the folder of its files.
pub fn fetch(request: &FetchRequest<'_>, listener: &mut Listener<'_>) -> Result<PathBuf, DataError> {
    let known = request.known;
    let form = &known.forms[0];
    let folder = request.to.join(form.folder);
    if known.downloads.is_empty() {
        let names: Vec<&str> = form.files.iter().map(|file| file.name).collect();
        return Err(DataError::Fetch {
            set: known.name,
            message: format!(
                "it cannot be fetched by this command: get it from {} and place {} in {}",
                known.home,
                names.join(", "),
                folder.display()
            ),
        });
    }
    std::fs::create_dir_all(&folder).map_err(|source| writing(&folder, &source))?;
    for download in known.downloads {
        let files = files_of(download, form.files);
        let mut missing = Vec::new();
        for file in files {
            match plain_or_packed(&folder, file.name) {
                // A file that is there and right is left alone; one that is not right is replaced.
                Some(path) if content_sum(&path).is_ok_and(|sum| sum == file.sha256) => {
                    listener(FetchNews::There(file.name));
                }
                _ => missing.push(*file),
            }
        }
        if missing.is_empty() {
            continue;
        }
        let part = folder.join(format!(".{}.part", download.file));
        transfer::transfer(request, download, &part, listener)?;
        check_transfer(request, download, &part)?;
        let placed = match download.holds {
            Holds::File => place_file(&folder, download, &part, missing[0]),
            Holds::Tar => unpack::tar(&part, &folder, &missing),
            Holds::Zip => unpack::zip(&part, &folder, &missing),
        };
        if placed.is_err() {
            // Its sum was right or is unknown, its content is not: a second try must not start from it.
            let _ = std::fs::remove_file(&part);
        }
        placed?;
        let _ = std::fs::remove_file(&part);
        for file in &missing {
            listener(FetchNews::Verified(file.name));
        }
    }
    Ok(folder)
}

/// The files of the set that come out of one download.
fn files_of<'a>(download: &Download, files: &'a [KnownFile]) -> &'a [KnownFile] {
    if download.holds != Holds::File {
        return files;
    }
    let name = download.file.strip_suffix(".gz").unwrap_or(download.file);
    files.iter().position(|file| file.name == name).map_or(&[], |at| &files[at..=at])
}

/// The download as a whole has the sum that is known for it.
fn check_transfer(request: &FetchRequest<'_>, download: &Download, part: &Path) -> Result<(), DataError> {
    if download.sha256.is_empty() {
        return Ok(());
    }
    let mut file = File::open(part).map_err(|source| DataError::io(part, source))?;
    let found = crate::public::catalogue::sum(&mut file).map_err(|source| DataError::io(part, source))?;
    if found == download.sha256 {
        return Ok(());
    }
    let _ = std::fs::remove_file(part);
    Err(mismatch(request.known.name, download.file, download.sha256, &found))
}

/// A download that is the file: its content has the right sum, then it gets its name.
fn place_file(folder: &Path, download: &Download, part: &Path, file: KnownFile) -> Result<(), DataError> {
    let found = content_sum(part)?;
    if found != file.sha256 {
        return Err(mismatch(folder_name(folder), file.name, file.sha256, &found));
    }
    let place = folder.join(download.file);
    atomic::place(part, &place).map_err(|source| writing(&place, &source))
}

fn folder_name(folder: &Path) -> &str {
    folder.file_name().and_then(|name| name.to_str()).unwrap_or_default()
}

fn mismatch(set: &str, file: &str, expected: &str, found: &str) -> DataError {
    DataError::Checksum {
        set: set.to_string(),
        file: file.to_string(),
        expected: expected.to_string(),
        found: found.to_string(),
    }
}

fn writing(path: &Path, source: &std::io::Error) -> DataError {
    DataError::file(path, format!("cannot write here: {source}; name another folder with --to, or make room"))
}
