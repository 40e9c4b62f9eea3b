//! What can stand behind `source` and `partition`: tables of rows, to which a program adds its own.

use crate::Request;
use crate::error::DataError;
use crate::formats::table::Table as Cells;
use crate::options::{chosen, read};
use crate::partition::{self, Partition, PartitionRow};
use crate::public::catalogue::Known as Public;
use crate::world::World;
use fedkin_learner::model::Known;
use fedkin_settings::{Kind, Named, Param, Preset, Settings, Table, Values, suggest};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// Reads a file of a user's own records; the function says which columns hold text whatever their cells look like.
pub type ReadTable = fn(&Path, &dyn Fn(&str) -> bool) -> Result<Cells, DataError>;

/// Where records come from: the settings of a source, and what it does with them.
///
/// ```
/// use fedkin_settings::{Kind, Preset};
/// use fedkin_data::{DataError, Registry, Request, Source, SourceRow, World};
///
/// fedkin_settings::settings! {
///     /// Two clients that see the same line.
///     pub struct Line {
///         slope: f64 => Kind::FROM_ZERO, Preset::Number(2.0), "how steep the line is";
///     }
/// }
///
/// impl Source for Line {
///     const NAME: &'static str = "line";
///     const SUMMARY: &'static str = "two clients on a line";
///     fn load(&self, _: &Request<'_>) -> Result<World, DataError> {
///         World::builder()
///             .client("a", 1, vec![1.0], vec![self.slope])
///             .client("b", 1, vec![2.0], vec![2.0 * self.slope])
///             .build()
///     }
/// }
///
/// let mut registry = Registry::native();
/// registry.sources.add(SourceRow::of::<Line>())?;
/// # Ok::<(), fedkin_settings::TableError>(())
/// ```
pub trait Source: Settings {
    /// The word after `source =`.
    const NAME: &'static str;
    /// What it is, in one sentence.
    const SUMMARY: &'static str;
    /// Tables of keys that apply only where a key of the settings says so. They are allowed in every config of this
    /// source; [`Variants`] reads one of the tables, [`Request::refuse`] refuses the keys of another.
    const VARIANTS: &'static [&'static [Param]] = &[];
    /// Whether a partitioner may deal the records: its keys are then allowed, and the settings have the key
    /// `partition`, whose words are its default and the names of all partitioners.
    const PARTITIONED: bool = false;
    /// What is known of the files, where they are a public data set.
    const PUBLIC: Option<&'static Public> = None;
    /// How a file is read, where the records are a user's own in a table with the keys of [`Columns`](crate::sources::Columns).
    const TABLE: Option<ReadTable> = None;

    /// What the settings say of the records before anybody looks at them.
    fn about(&self, _: Variants<'_>) -> About {
        About::default()
    }

    /// Loads or draws the records.
    fn load(&self, request: &Request<'_>) -> Result<World, DataError>;
}

/// What the settings of a source say of its records.
#[derive(Debug, Clone, Default)]
pub struct About {
    /// Number of classes and shape of a record, where they are fixed.
    pub known: Known,
    /// The file or folder that the settings name.
    pub path: Option<PathBuf>,
    /// Whether the records of each client are scaled by statistics of its own.
    pub by_client: bool,
    /// Whether records are set aside for choosing parameters.
    pub validation: bool,
}

/// One place records can come from.
#[derive(Debug, Clone, Copy)]
pub struct SourceRow {
    /// The word after `source =`.
    pub name: &'static str,
    /// What it is, in one sentence.
    pub summary: &'static str,
    /// Keys that are always allowed; [`Registry::params`] has all.
    pub params: &'static [Param],
    /// What is known of the files, where they are a public data set.
    pub public: Option<&'static Public>,
    /// How a file is read, where the records are a user's own.
    pub table: Option<ReadTable>,
    variants: &'static [&'static [Param]],
    partitioned: bool,
    about: fn(&Values) -> Result<About, DataError>,
    load: fn(&Request<'_>) -> Result<World, DataError>,
}

impl SourceRow {
    /// The row of a source.
    pub const fn of<S: Source>() -> Self {
        Self {
            name: S::NAME,
            summary: S::SUMMARY,
            params: S::PARAMS,
            public: S::PUBLIC,
            table: S::TABLE,
            variants: S::VARIANTS,
            partitioned: S::PARTITIONED,
            about: |values| Ok(read::<S>(values)?.about(Variants { values })),
            load: |request| read::<S>(request.values)?.load(request),
        }
    }

    /// What these settings say of the records.
    pub fn about(&self, values: &Values) -> Result<About, DataError> {
        (self.about)(values)
    }
}

impl Named for SourceRow {
    fn name(&self) -> &str {
        self.name
    }
}

/// All sources and partitioners that a program knows: config validation, command-line help and the reference come from
/// these tables.
#[derive(Debug, Clone)]
pub struct Registry {
    /// What can stand behind `source`.
    pub sources: Table<SourceRow>,
    /// What can stand behind `partition`.
    pub partitioners: Table<PartitionRow>,
}

impl Registry {
    /// Without any row.
    pub fn empty() -> Self {
        Self { sources: Table::new("data source"), partitioners: Table::new("partitioner") }
    }

    /// The source of this name, or an error with what may have been meant.
    pub fn source(&self, name: &str) -> Result<&SourceRow, DataError> {
        self.sources.get(name).ok_or_else(|| DataError::UnknownSource {
            name: name.to_string(),
            hint: suggest(name, self.sources.names()),
        })
    }

    /// Every key allowed in `[data]` next to `source`: those of the source, of its variants, and of the partitioners.
    pub fn params(&self, row: &SourceRow) -> Vec<Param> {
        let own = row.params.iter().map(|param| match param.preset {
            Preset::Text(preset) if row.partitioned && param.name == partition::KEY => {
                let words = [preset].into_iter().chain(self.partitioners.iter().map(|row| row.name));
                Param { kind: Kind::Choice(interned(words.collect())), ..*param }
            }
            _ => *param,
        });
        let mut all: Vec<Param> = own.collect();
        let rows: &[PartitionRow] = if row.partitioned { self.partitioners.iter().as_slice() } else { &[] };
        let tables = row.variants.iter().copied().chain(rows.iter().map(|row| row.params));
        for param in tables.flatten() {
            if all.iter().any(|known| known.name == param.name) {
                continue;
            }
            // Whether the key applies is known once another key is read; a default of one variant is no other's.
            let preset = match param.preset {
                Preset::Required | Preset::Absent => Preset::Absent,
                _ => Preset::Conditional(&param.preset),
            };
            all.push(Param { preset, ..*param });
        }
        all
    }

    /// What a source says of its records without looking at them; nothing where its settings do not fit together, which
    /// loading them will say.
    pub fn about(&self, source: &str, values: &Values) -> About {
        self.sources.get(source).and_then(|row| row.about(values).ok()).unwrap_or_default()
    }

    /// The public data sets among the sources.
    pub fn catalogue(&self) -> impl Iterator<Item = &'static Public> {
        self.sources.iter().filter_map(|row| row.public)
    }

    /// The public data set of this name, or an error with what may have been meant.
    pub fn catalogued(&self, name: &str) -> Result<&'static Public, DataError> {
        self.catalogue().find(|known| known.name == name).ok_or_else(|| DataError::UnknownSource {
            name: name.to_string(),
            hint: suggest(name, self.catalogue().map(|known| known.name)),
        })
    }
}

/// Words that live as long as the program, each list once: a [`Kind`] holds them for that long.
fn interned(words: Vec<&'static str>) -> &'static [&'static str] {
    static KNOWN: Mutex<Vec<&'static [&'static str]>> = Mutex::new(Vec::new());
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(same) = known.iter().find(|list| **list == words.as_slice()) {
        return same;
    }
    let words: &'static [&'static str] = Vec::leak(words);
    known.push(words);
    words
}

/// The keys of a config that apply only where another key says so.
#[derive(Debug, Clone, Copy)]
pub struct Variants<'a> {
    values: &'a Values,
}

impl Variants<'_> {
    /// The settings of one variant; what is absent takes its defaults.
    pub fn read<S: Settings>(&self) -> Result<S, DataError> {
        chosen(self.values)
    }
}

impl Request<'_> {
    /// The keys that apply only where another key says so.
    pub fn variants(&self) -> Variants<'_> {
        Variants { values: self.values }
    }

    /// Refuses keys that would be ignored: those of a table of which the config has some. `now` says what rules them
    /// out, as in `partition = "iid"`, and `instead` which setting has them.
    pub fn refuse(&self, params: &[Param], now: &str, instead: &str) -> Result<(), DataError> {
        match params.iter().find(|param| self.values.get(param.name).is_some()) {
            None => Ok(()),
            Some(param) => {
                let message = format!("{now} has no such key: drop it, or set {instead}");
                Err(DataError::config(param.name, message))
            }
        }
    }

    /// The partitioner of this name with the settings of the config. Keys of other partitioners are refused.
    pub fn partition(&self, name: &str) -> Result<Box<dyn Partition>, DataError> {
        let rows = &self.registry.partitioners;
        let row = rows.find(name).map_err(|error| DataError::config(partition::KEY, error.to_string()))?;
        let has = |row: &PartitionRow, key: &str| row.params.iter().any(|param| param.name == key);
        for param in rows.iter().flat_map(|row| row.params).filter(|param| !has(row, param.name)) {
            let others: Vec<String> = rows
                .iter()
                .filter(|other| has(other, param.name))
                .map(|other| format!("{:?}", other.name))
                .collect();
            let now = format!("{} = {name:?}", partition::KEY);
            let instead = format!("{} to {}", partition::KEY, others.join(" or "));
            self.refuse(std::slice::from_ref(param), &now, &instead)?;
        }
        (row.build)(self.values)
    }

    /// Refuses the keys of all partitioners.
    pub fn refuse_partitions(&self, now: &str, instead: &str) -> Result<(), DataError> {
        self.registry.partitioners.iter().try_for_each(|row| self.refuse(row.params, now, instead))
    }
}

/// Loads or draws the world a config asks for.
pub fn load(request: &Request<'_>) -> Result<World, DataError> {
    (request.registry.source(request.source)?.load)(request)
}
