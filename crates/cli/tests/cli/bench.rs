//! A folder to work in, and the program run in it.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use tempfile::TempDir;

/// What a run with an assumed bound says before it begins.
pub(crate) const ASSUMED: &str =
    "warning: the gradient bound is assumed, not enforced: the epsilon holds only if the bound does\n";

/// A folder of its own for every test.
pub(crate) struct Bench {
    folder: TempDir,
}

/// How the program ended and what it said.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) code: Option<i32>,
    pub(crate) out: String,
    pub(crate) err: String,
}

/// Every file below a folder, with its bytes.
pub(crate) type Files = BTreeMap<PathBuf, Vec<u8>>;

impl Bench {
    pub(crate) fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    /// With the files of `fedkin new`, and a complete short run of them in `runs/wards`.
    pub(crate) fn with_a_run() -> Self {
        let bench = Self::new();
        bench.good(&["new"]);
        bench.good(&["run", "wards.toml", "--set", "run.rounds=5", "--set", "run.repeats=1"]);
        bench
    }

    pub(crate) fn path(&self, name: impl AsRef<Path>) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, content: impl AsRef<[u8]>) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }

    pub(crate) fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap()
    }

    /// Replaces a text that must be there, and writes the result under another name.
    pub(crate) fn edit(&self, from: &str, to: &str, replace: &[(&str, &str)]) {
        let mut text = self.read(from);
        for (old, new) in replace {
            assert!(text.contains(old), "{from} has no {old:?}");
            text = text.replace(old, new);
        }
        self.write(to, text);
    }

    /// The program with these arguments, in this folder, with no terminal.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_fedkin"));
        command.args(arguments).current_dir(self.folder.path()).stdin(Stdio::null());
        command.env_remove("FEDKIN_DATA").env_remove("CLICOLOR_FORCE");
        command
    }

    pub(crate) fn fedkin(&self, arguments: &[&str]) -> Ran {
        self.command(arguments).output().unwrap().into()
    }

    /// Must end well, and say nothing on standard error: there is no terminal.
    pub(crate) fn good(&self, arguments: &[&str]) -> String {
        let ran = self.fedkin(arguments);
        assert_eq!(ran.code, Some(0), "{arguments:?}: {ran:?}");
        // A bound on trust is warned of everywhere, and by this line alone.
        assert!(ran.err.is_empty() || ran.err == ASSUMED, "{arguments:?}: {}", ran.err);
        ran.out
    }

    /// Must print one JSON object, one line, and nothing else.
    pub(crate) fn json(&self, arguments: &[&str]) -> serde_json::Value {
        let text = self.good(arguments);
        assert_eq!(text.matches('\n').count(), 1, "{text}");
        let value: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert!(value.is_object());
        value
    }

    /// Must be refused with exit code 2 and all of these words, leaving every file as it was. What is new may
    /// only be in the directory the call was to write to.
    pub(crate) fn refused(&self, arguments: &[&str], words: &[&str]) {
        let before = self.files();
        let ran = self.fedkin(arguments);
        assert_eq!(ran.code, Some(2), "{arguments:?}: {ran:?}");
        assert_eq!(ran.out, "", "{arguments:?}");
        assert!(ran.err.trim_start_matches(ASSUMED).starts_with("error: "), "{}", ran.err);
        assert!(!ran.err.contains("panicked"), "{}", ran.err);
        for word in words {
            assert!(ran.err.contains(word), "{arguments:?}: no {word:?} in\n{}", ran.err);
        }
        let after = self.files();
        for (path, bytes) in &before {
            // Without the bytes in the message: they may be a megabyte.
            assert!(after.get(path) == Some(bytes), "{arguments:?} changed {}", path.display());
        }
        for path in after.keys().filter(|path| !before.contains_key(*path)) {
            let own = path.starts_with("runs/refused");
            assert!(own, "{arguments:?} wrote {}", path.display());
        }
    }

    /// Every file but the locks, which name the process that last held them.
    pub(crate) fn files(&self) -> Files {
        let mut files = Files::new();
        let mut folders = vec![self.folder.path().to_path_buf()];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    folders.push(path);
                } else if path.file_name().is_some_and(|name| name != "run.lock") {
                    let name = path.strip_prefix(self.folder.path()).unwrap().to_path_buf();
                    files.insert(name, fs::read(&path).unwrap());
                }
            }
        }
        files
    }
}

impl From<Output> for Ran {
    fn from(output: Output) -> Self {
        Self {
            code: output.status.code(),
            out: String::from_utf8(output.stdout).unwrap(),
            err: String::from_utf8(output.stderr).unwrap(),
        }
    }
}
