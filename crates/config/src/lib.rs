//! The config of an experiment: versioned TOML, checked once and in full.
//!
//! - [`load`] reads a file with its `--set` and reports everything that is wrong, each with its place.
//! - [`Parsed`] is a file that was read once: [`Parsed::load_variant`] gives what one curve or one value of a sweep runs.
//! - [`Config::resolved`] writes it back with every default filled in.
//! - [`reference()`] is the documentation of all keys, from the same tables that check them.
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used))]

mod check;
#[cfg(test)]
mod defaults;
mod diagnostic;
mod learners;
#[cfg(test)]
mod native;
mod overrides;
mod plain;
#[cfg(test)]
mod recorded;
mod reference;
mod resolved;
mod section;
mod sections;
#[cfg(test)]
mod tests;
mod tree;
mod variants;

pub use diagnostic::{ConfigError, Diagnostic, Place};
pub use learners::{LearnerKeys, LearnerTable};
pub use overrides::Override;
pub use plain::Plain;
pub use reference::reference;
pub use resolved::quoted;
pub use section::Section;
pub use sections::{
    Claim, ClusterSource, Evaluate, FoundBy, Kin, Network, Participation, Run, Tune, TuneMetric, Waiting,
};

use fedkin_method::Robust;
use fedkin_method::registry::Row as Method;
use fedkin_privacy::PrivacySettings;
use fedkin_settings::{Param, Value, Values};
use std::collections::BTreeMap;

/// The version of the format this code reads and writes.
pub const VERSION: i64 = 1;

/// The text of a config and what to call it in messages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Source {
    /// A path, or a word such as `demo`.
    pub name: String,
    /// The TOML.
    pub text: String,
}

/// A named thing with parameters of its own: name, one-line summary, parameters.
pub type RowSummary<'a> = (&'a str, &'a str, &'a [Param]);

/// The tables that other parts of the program own.
#[derive(Debug, Clone, Copy)]
pub struct Tables<'a> {
    /// What `data.source` may name.
    pub sources: &'a [RowSummary<'a>],
    /// What `model.kind` may name.
    pub models: &'a [RowSummary<'a>],
    /// What `algorithm.name` may name.
    pub algorithms: &'a [RowSummary<'a>],
    /// The keys of `[topology]`.
    pub topology: &'a [Param],
}

impl<'a> Tables<'a> {
    /// The sections in which one key selects the table of the others: section, that key, rows.
    fn selected(&self) -> [(&'static str, &'static str, &'a [RowSummary<'a>]); 3] {
        [
            ("data", "source", self.sources),
            ("model", "kind", self.models),
            ("algorithm", "name", self.algorithms),
        ]
    }
}

/// A config that passed: every key is known, in range, and there unless its absence means something.
#[derive(Debug, Clone, PartialEq)]
pub struct Config {
    /// `[run]`
    pub run: Section<Run>,
    /// `data.source`
    pub data_source: String,
    /// The other keys of `[data]`.
    pub data: Values,
    /// `[topology]`
    pub topology: Values,
    /// `model.kind`
    pub model_kind: String,
    /// The other keys of `[model]`.
    pub model: Values,
    /// `[learner.NAME]` by name: what some clients fit instead.
    pub learners: BTreeMap<String, LearnerTable>,
    /// `algorithm.name`
    pub algorithm: String,
    /// The other keys of `[algorithm]`.
    pub algorithm_values: Values,
    /// `[participation]`
    pub participation: Section<Participation>,
    /// `[kin]`
    pub kin: Section<Kin>,
    /// `[privacy]`
    pub privacy: Section<PrivacySettings>,
    /// `[robust]`
    pub robust: Section<Robust>,
    /// `[evaluate]`
    pub evaluate: Section<Evaluate>,
    /// `[network]`
    pub network: Section<Network>,
    /// `[[curve]]`, in the order of the file.
    pub curves: Vec<Curve>,
    /// `[tune]`; there wherever a curve has a grid.
    pub tune: Option<Tune>,
    /// `[sweep]`
    pub sweep: Option<Sweep>,
    /// `[quick]`: what is set for a first look, in the order of the file.
    pub quick: Vec<Override>,
    /// `[paper]`
    pub paper: Option<Paper>,
}

/// One line of a figure: the base with some keys set differently.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Curve {
    /// Its name.
    pub label: String,
    /// Its colour key, where it is not the algorithm's.
    pub method: Option<String>,
    /// What differs from the base.
    pub set: Vec<Override>,
    /// What differs besides at each value of the sweep; empty where nothing does.
    pub along: Vec<Vec<Override>>,
    /// Keys and the values that are tried for each; empty where nothing is tuned.
    pub grid: Vec<(String, Vec<Value>)>,
}

impl Curve {
    /// All points of the grid: the last key changes fastest. Nothing without one.
    pub fn points(&self) -> Vec<Vec<Override>> {
        if self.grid.is_empty() {
            return Vec::new();
        }
        self.grid.iter().fold(vec![Vec::new()], |points, (key, values)| {
            let longer = |point: &Vec<Override>| -> Vec<Vec<Override>> {
                let with = |value: &Value| Override { key: key.clone(), value: value.clone() };
                values.iter().map(|value| point.iter().cloned().chain([with(value)]).collect()).collect()
            };
            points.iter().flat_map(longer).collect()
        })
    }

    /// What differs besides at value number `i` of the sweep.
    pub fn at(&self, i: usize) -> &[Override] {
        self.along.get(i).map_or(&[], Vec::as_slice)
    }
}

/// One key that takes several values.
#[derive(Debug, Clone, PartialEq)]
pub struct Sweep {
    /// The key with its section.
    pub key: String,
    /// Its values; never empty.
    pub values: Vec<Value>,
    /// The round to read; absent: the last.
    pub at_round: Option<u32>,
}

/// The paper an experiment reproduces.
#[derive(Debug, Clone, PartialEq)]
pub struct Paper {
    /// Its title.
    pub title: String,
    /// Where to find it.
    pub source: Option<String>,
    /// Whether its bounds are drawn beside what was measured.
    pub theory: bool,
    /// What it claims here.
    pub claims: Vec<Claim>,
}

/// A config whose text was read: any number of variants of it can be loaded.
#[derive(Debug, Clone)]
pub struct Parsed {
    source: Source,
    root: tree::Branch,
}

impl Parsed {
    /// Reads the text; every fault of its TOML is reported with its place.
    pub fn new(source: &Source) -> Result<Self, ConfigError> {
        let root = tree::parse(&source.text).map_err(|faults| {
            let diagnose = |(origin, message)| Diagnostic::new(source, Some(&origin), String::new(), message);
            ConfigError::new(faults.into_iter().map(diagnose).collect())
        })?;
        Ok(Self { source: source.clone(), root })
    }

    /// What a program has put together: the keys of each section. It is checked like a file, and messages call it `name`.
    pub fn typed(name: &str, sections: impl IntoIterator<Item = (String, BTreeMap<String, Value>)>) -> Self {
        let node = |value: &Value| tree::Node::new(&diagnostic::Origin::Program, value);
        let mut root = tree::Branch::new();
        root.insert("version".into(), node(&Value::Integer(VERSION)));
        for (section, keys) in sections {
            let path: Vec<&str> = section.split('.').collect();
            tree::insert(&mut root, &path, node(&Value::Table(keys)));
        }
        Self { source: Source { name: name.into(), text: String::new() }, root }
    }

    /// What the text is called in messages.
    pub fn name(&self) -> &str {
        &self.source.name
    }

    /// The config with overrides from the command line; every curve and every value of a sweep is checked as well.
    pub fn load(&self, overrides: &[Override], tables: &Tables<'_>) -> Result<Config, ConfigError> {
        variants::everything(&self.source, tables, &self.with(&[overrides], tables))
    }

    /// The config as one variant of it runs: `sets` are the overrides of a curve, then those of a value of the sweep.
    /// They win over `overrides`, and the result has no curves and no sweep of its own.
    pub fn load_variant(
        &self,
        overrides: &[Override],
        sets: &[&[Override]],
        tables: &Tables<'_>,
    ) -> Result<Config, ConfigError> {
        let layers: Vec<&[Override]> = std::iter::once(overrides).chain(sets.iter().copied()).collect();
        let mut root = self.with(&layers, tables);
        for several in ["curve", "sweep", "tune", "quick"] {
            root.remove(several);
        }
        let checker = check::Checker::new(&self.source, tables, &root, String::new());
        checker.config().map(|(config, _)| config).map_err(ConfigError::new)
    }

    fn with(&self, layers: &[&[Override]], tables: &Tables<'_>) -> tree::Branch {
        let mut root = self.root.clone();
        for layer in layers {
            overrides::apply(&mut root, &overrides::layer(layer), tables);
        }
        root
    }
}

/// Reads a config with overrides: [`Parsed::load`] of a text that is read once.
pub fn load(source: &Source, overrides: &[Override], tables: &Tables<'_>) -> Result<Config, ConfigError> {
    Parsed::new(source)?.load(overrides, tables)
}

/// Reads one variant of a config: [`Parsed::load_variant`] of a text that is read once.
pub fn load_variant(
    source: &Source,
    overrides: &[Override],
    sets: &[&[Override]],
    tables: &Tables<'_>,
) -> Result<Config, ConfigError> {
    Parsed::new(source)?.load_variant(overrides, sets, tables)
}

impl Config {
    /// The same with another method, all of whose parameters but these have their defaults, and without what is for the
    /// method of before: kin, and a number of rounds where another is given.
    pub fn with_algorithm(
        &self,
        row: &Method,
        values: &BTreeMap<String, Value>,
        rounds: Option<u32>,
    ) -> Result<Self, String> {
        let name = row.name;
        let first = |problems: Vec<fedkin_settings::Problem>| {
            let problem = problems.into_iter().next();
            problem.map_or_else(String::new, |problem| {
                format!("algorithm {name:?}: {}: {}", problem.path.join("."), problem.message)
            })
        };
        let algorithm_values = Values::check(row.params, values).map_err(first)?;
        let run = match rounds {
            Some(rounds) => self.run.with("rounds", Value::Integer(rounds.into())).map_err(first)?,
            None => self.run.clone(),
        };
        let kin = Section::presets().map_err(first)?;
        Ok(Self { run, algorithm: name.to_string(), algorithm_values, kin, ..self.clone() })
    }
}

impl Sweep {
    /// The override that sets the key to its value number `i`.
    pub fn step(&self, i: usize) -> Option<Override> {
        self.values.get(i).map(|value| Override { key: self.key.clone(), value: value.clone() })
    }
}
