//! `fedkin new`: a config to start from, with data that let it run as it is.

use crate::args;
use crate::failure::Failure;
use crate::input::{base, shell_word};
use crate::output::{self, Facts};
use fedkin::rooms::experiment::library;
use std::fs::{self, OpenOptions};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

const CONFIG: &str = include_str!("../assets/wards.toml");
const RECORDS: &str = include_str!("../assets/wards.csv");
const EDGES: &str = include_str!("../assets/edges.csv");

/// Writes the files; none of them may be there before.
pub(crate) fn new(args: &args::New) -> Result<(), Failure> {
    let mut facts = Facts::default();
    let (config, next) = match &args.from {
        None => {
            let config = place(&args.place, "wards");
            let folder = base(&config);
            let records = folder.join("wards.csv");
            write(&[
                (config.clone(), CONFIG),
                (records.clone(), RECORDS),
                (folder.join("edges.csv"), EDGES),
            ])?;
            facts.add("config", config.display().to_string());
            facts.add("data", format!("{}: one line per record", records.display()));
            facts.add("edges", format!("{}: who talks to whom", folder.join("edges.csv").display()));
            (config, "run")
        }
        Some(name) => {
            let experiment = library::find(name)?;
            let config = place(&args.place, experiment.name);
            write(&[(config.clone(), experiment.text)])?;
            facts.add("config", config.display().to_string());
            (config, "reproduce")
        }
    };
    facts.add("next", format!("fedkin {next} {}", shell_word(&config.to_string_lossy())));
    output::say(&facts.text())
}

/// The config file: as named, or in the named folder.
fn place(place: &Path, name: &str) -> PathBuf {
    let is_file = place.extension().is_some_and(|extension| extension == "toml") && !place.is_dir();
    if is_file {
        return place.to_path_buf();
    }
    let file = format!("{name}.toml");
    // `./wards.toml` is only noise to read.
    if place == Path::new(".") { PathBuf::from(file) } else { place.join(file) }
}

/// Writes all files or none.
fn write(files: &[(PathBuf, &str)]) -> Result<(), Failure> {
    let there: Vec<String> =
        files.iter().filter(|(path, _)| path.exists()).map(|(path, _)| path.display().to_string()).collect();
    if !there.is_empty() {
        let verb = if there.len() == 1 { "is there already and stays" } else { "are there already and stay" };
        return Err(Failure::Usage(format!("{} {verb} untouched: name another folder", there.join(", "))));
    }
    for (i, (path, text)) in files.iter().enumerate() {
        if let Err(error) = write_one(path, text) {
            for (path, _) in &files[..i] {
                // What cannot be removed does no harm: it is a whole example file.
                let _ = fs::remove_file(path);
            }
            let advice = match error.kind() {
                ErrorKind::StorageFull => "; free some space or name another folder",
                ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem => {
                    "; name a folder you may write to"
                }
                _ => "",
            };
            return Err(Failure::Usage(format!("cannot write {}: {error}{advice}", path.display())));
        }
    }
    Ok(())
}

fn write_one(path: &Path, text: &str) -> std::io::Result<()> {
    fs::create_dir_all(base(path))?;
    // `create_new`: what appeared since the look above is not overwritten either.
    let mut file = OpenOptions::new().write(true).create_new(true).open(path)?;
    let result = file.write_all(text.as_bytes()).and_then(|()| file.sync_all());
    if result.is_err() {
        let _ = fs::remove_file(path);
    }
    result
}
