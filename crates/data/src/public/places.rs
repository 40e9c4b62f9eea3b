//! Where public data sets are on this machine: in the folder a config names, or below the one of the environment.

use crate::error::DataError;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// What a data set is called, and what it consists of.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SetPlace {
    /// The name of the source.
    pub(crate) set: &'static str,
    /// The folder below the one that `FEDKIN_DATA` names.
    pub(crate) folder: &'static str,
    /// The files, in words.
    pub(crate) expected: &'static str,
}

impl SetPlace {
    /// The folder to look in; nothing says yet that it is there.
    pub(crate) fn find(&self, path: Option<&Path>, base: &Path) -> Result<PathBuf, DataError> {
        self.choose(path, base, std::env::var_os("FEDKIN_DATA"))
    }

    fn choose(&self, path: Option<&Path>, base: &Path, data: Option<OsString>) -> Result<PathBuf, DataError> {
        match (path, data) {
            (Some(path), _) => Ok(base.join(path)),
            (None, Some(data)) if !data.is_empty() => Ok(PathBuf::from(data).join(self.folder)),
            (None, _) => Err(DataError::config(
                "path",
                format!(
                    "where is {}? Set `path` in [data] to the folder that holds {}, or set the environment variable \
                     FEDKIN_DATA to the folder above it",
                    self.set, self.expected
                ),
            )),
        }
    }

    /// The set is not where it was looked for.
    pub(crate) fn missing(&self, looked: PathBuf) -> DataError {
        DataError::NoSet { set: self.set, looked, expected: self.expected }
    }
}

/// The file of this name, or its gzip.
pub(crate) fn plain_or_packed(folder: &Path, name: &str) -> Option<PathBuf> {
    [folder.join(name), folder.join(format!("{name}.gz"))].into_iter().find(|path| path.is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_folder_comes_from_the_config_or_the_environment() {
        let base = Path::new("configs");
        let place = SetPlace { set: "mnist", folder: "mnist", expected: "four files" };
        let folder = |path: Option<&str>, data: Option<&str>| {
            place.choose(path.map(Path::new), base, data.map(OsString::from))
        };
        assert_eq!(folder(Some("here"), Some("/data")).unwrap(), base.join("here"));
        assert_eq!(folder(None, Some("/data")).unwrap(), Path::new("/data/mnist"));
        for data in [None, Some("")] {
            let message = folder(None, data).unwrap_err().to_string();
            assert!(message.contains("Set `path` in [data]") && message.contains("FEDKIN_DATA"), "{message}");
        }
    }
}
