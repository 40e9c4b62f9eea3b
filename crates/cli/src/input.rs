//! From arguments to what the library takes.

use crate::args::Training;
use crate::failure::Failure;
use fedkin::rooms::config::{Override, Parsed, Source};
use fedkin::rooms::run::Error;
use std::path::{Path, PathBuf};

/// Reads a config file.
pub(crate) fn read(file: &Path) -> Result<Source, Failure> {
    let text = std::fs::read_to_string(file).map_err(|error| {
        let name = file.display();
        Failure::Usage(match error.kind() {
            std::io::ErrorKind::NotFound => {
                format!("there is no file {name}; `fedkin new` writes a config to start from")
            }
            std::io::ErrorKind::IsADirectory => {
                format!("{name} is a folder: name the config file in it")
            }
            std::io::ErrorKind::InvalidData => format!("{name} is not text: a config is TOML in UTF-8"),
            _ => format!("cannot read {name}: {error}"),
        })
    })?;
    Ok(Source { name: file.display().to_string(), text })
}

/// Reads a config file and its TOML, once for all that a command loads of it.
pub(crate) fn parse(file: &Path) -> Result<Parsed, Failure> {
    Ok(Parsed::new(&read(file)?).map_err(Error::from)?)
}

/// The folder that relative paths of a config start from; empty, as in the messages, for the current one.
pub(crate) fn base(file: &Path) -> PathBuf {
    file.parent().map_or_else(PathBuf::new, Path::to_path_buf)
}

/// Reads every `--set`.
pub(crate) fn overrides(set: &[String]) -> Result<Vec<Override>, Failure> {
    set.iter().map(|text| Override::parse(text).map_err(Failure::Usage)).collect()
}

/// Fixes the number of threads for the rest of the process.
pub(crate) fn threads(count: Option<u32>) -> Result<(), Failure> {
    let Some(count) = count else { return Ok(()) };
    rayon::ThreadPoolBuilder::new()
        .num_threads(count as usize)
        .build_global()
        .map_err(|error| Failure::Usage(format!("cannot start {count} threads: {error}")))
}

/// Where results go.
pub(crate) fn out(training: &Training, name: &str) -> PathBuf {
    training.out.clone().unwrap_or_else(|| Path::new("runs").join(name))
}

/// How the work in a directory begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Start {
    /// From the first round.
    Fresh,
    /// From checkpoints.
    Resumed,
    /// Not at all: everything is there.
    Complete,
}

impl Start {
    /// Looks before the library changes anything. What is damaged is the library's to report.
    pub(crate) fn of(out: &Path) -> Self {
        if out.join("summary.json").is_file() {
            return Self::Complete;
        }
        let checkpoints = std::fs::read_dir(out.join("checkpoints"));
        let any = checkpoints
            .is_ok_and(|mut list| list.any(|entry| entry.is_ok_and(|entry| is_checkpoint(&entry.path()))));
        if any { Self::Resumed } else { Self::Fresh }
    }

    /// The word in JSON.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Fresh => "fresh",
            Self::Resumed => "resumed",
            Self::Complete => "complete",
        }
    }
}

fn is_checkpoint(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "bin")
}

/// Turns the library's word of an interruption into one that says how to go on.
pub(crate) fn interrupted(error: Error, checkpoints: bool) -> Failure {
    match error {
        Error::Interrupted(at) => {
            let command: Vec<String> =
                std::env::args_os().map(|word| shell_word(&word.to_string_lossy())).collect();
            let command = command.join(" ");
            Failure::Interrupted(if checkpoints {
                format!("interrupted at {at}; to go on from there: {command}")
            } else {
                format!(
                    "interrupted at {at}; run.checkpoint_seconds = 0 kept no checkpoint, so this starts again: {command}"
                )
            })
        }
        error => error.into(),
    }
}

/// A word that a shell reads back as it is.
pub(crate) fn shell_word(word: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || "-_./=:,+@%".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_string()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_survive_a_shell() {
        assert_eq!(shell_word("runs/a-1"), "runs/a-1");
        assert_eq!(shell_word("two words"), "'two words'");
        assert_eq!(shell_word("it's"), r"'it'\''s'");
        assert_eq!(shell_word(""), "''");
    }

    #[test]
    fn paths_start_at_the_folder_of_the_config() {
        assert_eq!(base(Path::new("a.toml")), Path::new(""));
        assert_eq!(base(Path::new("x/a.toml")), Path::new("x"));
        assert_eq!(base(Path::new("/a.toml")), Path::new("/"));
    }
}
