//! The experiments that ship with the program: `fedkin demo` and `fedkin reproduce NAME`.

use fedkin_run::Error;
use fedkin_settings::suggest;

/// One shipped experiment.
#[derive(Debug, Clone, Copy)]
pub struct Experiment {
    /// Its name: the file in `experiments/` without the ending.
    pub name: &'static str,
    /// The config.
    pub text: &'static str,
    /// What it shows: the first comment of the file.
    pub summary: &'static str,
}

const fn first_comment(text: &'static str) -> &'static str {
    let bytes = text.as_bytes();
    let mut end = 0;
    while end < bytes.len() && bytes[end] != b'\n' {
        end += 1;
    }
    let (line, _) = text.split_at(end);
    match line.as_bytes() {
        [b'#', b' ', ..] => line.split_at(2).1,
        _ => line,
    }
}

macro_rules! experiments {
    ($($name:literal),* $(,)?) => {
        /// All shipped experiments.
        pub const ALL: &[Experiment] = &[$({
            const TEXT: &str = include_str!(concat!("../../../experiments/", $name, ".toml"));
            Experiment { name: $name, text: TEXT, summary: first_comment(TEXT) }
        }),*];
    };
}

experiments![
    "attack",
    "demo",
    "pgfl-fig1",
    "pgfl-fig2",
    "pgfl-fig3",
    "pgfl-fig4",
    "pgfl-fig5",
    "pgfl-fig6",
    "pgfl-fig7",
    "pgfl-fig8",
    "pgfl-fig9",
    "pgfl-fig10",
    "pgfl-fig11",
    "pgfl-fig12",
    "pgfl-adaptive",
    "pgfl-adaptive-far",
    "pgfl-order",
    "pgfl-infer",
    "privacy-few",
    "privacy-many",
    "gfedmtl-fig2a",
    "gfedmtl-fig2b",
    "gfedmtl-fig2c",
    "fedgl-fig2a",
    "fedgl-fig2b",
    "fedgl-fig2c",
    "fedgl-fig2d",
    "fedgl-fig3",
    "fedgl-fig4",
    "fedgl-table1",
    "fedgl-fig5a",
    "fedgl-fig5b",
    "fedgl-fig5b-exact",
    "fedgl-fig6a",
    "fedgl-fig6b",
    "fedgl-fig7",
    "fedgl-table2",
    "fedgl-fig8",
    "fedgl-fig9",
    "fedgl-exact",
    "fedgl-private",
    "persfl-har",
    "persfl-heart",
    "persfl-fig1a",
    "persfl-fig1a-mean",
    "persfl-fig1b",
    "persfl-fig1c",
    "persfl-guard",
    "persfl-fig2",
    "persfl-fig2-queries",
    "persfl-fig3",
    "persfl-all",
    "persfl-all-four",
    "dp-sgd",
    "dp-sgd-mnist",
    "million",
    "persfl-agnostic",
    "persfl-mixed",
    "fedpnp-convex",
    "fedpnp-table1-mnist-02",
    "fedpnp-table1-mnist-05",
    "fedpnp-table1-cifar-02",
    "fedpnp-table1-cifar-05",
    "fedpnp-table1-har",
    "fedpnp-fig2",
    "fedpnp-fig3",
    "fedpnp-fig4",
    "fedpnp-fig5",
    "fedpnp-fig6",
    "fedpnp-fig7",
    "fedpnp-fig8",
    "fedpnp-table5",
    "fedpnp-table6",
    "fedpnp-graphs",
];

/// All shipped experiments.
pub fn all() -> &'static [Experiment] {
    ALL
}

/// The experiment of this name.
pub fn find(name: &str) -> Result<&'static Experiment, Error> {
    ALL.iter().find(|experiment| experiment.name == name).ok_or_else(|| {
        let hint = suggest(name, ALL.iter().map(|experiment| experiment.name));
        Error::Usage(format!(
            "no experiment {name:?} ships with Fedkin{hint}; `fedkin reproduce --list` shows all"
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::Prepared;
    use fedkin_config::Source;
    use fedkin_run::Registry;
    use std::path::Path;

    #[test]
    fn every_file_is_listed_and_every_experiment_is_ready_to_run() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../experiments");
        let mut files: Vec<String> = std::fs::read_dir(folder)
            .unwrap()
            .flatten()
            .filter_map(|entry| entry.file_name().into_string().ok())
            .filter_map(|name| name.strip_suffix(".toml").map(ToString::to_string))
            .collect();
        let mut names: Vec<String> = ALL.iter().map(|experiment| experiment.name.to_string()).collect();
        files.sort_unstable();
        names.sort_unstable();
        assert_eq!(files, names);
        for experiment in ALL {
            let source = Source { name: experiment.name.into(), text: experiment.text.into() };
            let prepared = Prepared::new(&Registry::native(), &source, Path::new("."), &[]);
            assert!(prepared.is_ok(), "{}: {}", experiment.name, prepared.err().unwrap());
            assert_eq!(prepared.unwrap().name(), experiment.name);
            assert!(experiment.summary.len() > 20, "{} has no first comment", experiment.name);
        }
    }
}
