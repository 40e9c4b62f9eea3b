//! Which columns of a table mean what.

use crate::Task;
use crate::error::DataError;
use crate::formats::table::{Cells, Column, Table};
use crate::options::FRACTION;
use crate::prepare::split::VALIDATION;
use crate::prepare::standardise::StandardiseBy;
use crate::world::schema::{self, Declared};
use fedkin_settings::{Kind, Preset, settings, suggest};
use std::path::{Path, PathBuf};

settings! {
    /// Which columns of a user's own table mean what.
    pub struct Columns {
        path: PathBuf => Kind::Path, Preset::Required,
            "the file, relative to the config";
        client: String => Kind::Text, Preset::Required,
            "column that names the client a record belongs to";
        server: Option<String> => Kind::Text, Preset::Absent,
            "column that names the client's server; without it all clients share one";
        cluster: Option<String> => Kind::Text, Preset::Absent,
            "column that names the client's cluster; without it there is one";
        learner: Option<String> => Kind::Text, Preset::Absent,
            "column that names what the client fits, a table [learner.NAME]; \"model\" is what [model] says, an empty cell leaves it to the tables";
        target: Option<String> => Kind::Text, Preset::Absent,
            "column to predict: a number, 0 and 1 for kind = \"logistic\", or 0, 1, 2 and so on for kind = \"softmax\"; \
             required, except where a graph is learnt, which has no target";
        features: Vec<String> => Kind::List(&Kind::Text), Preset::Absent,
            "columns to predict from, or the nodes of a graph, in this order (absent: those of the schema, or all other columns)";
        split: Option<String> => Kind::Text, Preset::Absent,
            "column that says train or test for each record";
        test_fraction: f64 => FRACTION, Preset::Number(0.0),
            "share of each client's records kept for testing; at least one stays for training";
        validation_fraction: f64 => param VALIDATION;
        standardise: StandardiseBy => Kind::Either(&[Kind::Flag, Kind::Text]), Preset::Flag(false),
            "true or \"client\": each client by its own training records; or a CSV file with columns feature, mean, scale";
        schema: Option<PathBuf> => Kind::Path, Preset::Absent,
            "TOML or JSON file that declares the features: name, unit, categories";
    }
}

/// The columns that are not features.
pub(crate) struct Roles<'a> {
    pub(crate) client: &'a str,
    pub(crate) server: Option<&'a str>,
    pub(crate) cluster: Option<&'a str>,
    pub(crate) learner: Option<&'a str>,
    pub(crate) split: Option<&'a str>,
    /// Absent where the records are signals.
    pub(crate) target: Option<&'a str>,
}

impl Columns {
    /// The columns that are not features, checked against each other.
    pub(crate) fn roles(&self, task: Task) -> Result<Roles<'_>, DataError> {
        let target = match (self.target.as_deref(), task) {
            (Some(target), Task::Signals) => {
                let message = format!(
                    "a graph is learnt from signals, which have no target: drop the key, and {target:?} is a node like the \
                     others, or list the nodes in `features`"
                );
                return Err(DataError::config("target", message));
            }
            (None, Task::Regression | Task::Classification | Task::Classes(_)) => {
                let message =
                    "this key is required: the column to predict, a number, or 0, 1 and so on for classes";
                return Err(DataError::config("target", message));
            }
            (target, _) => target,
        };
        let roles = Roles {
            client: &self.client,
            server: self.server.as_deref(),
            cluster: self.cluster.as_deref(),
            learner: self.learner.as_deref(),
            split: self.split.as_deref(),
            target,
        };
        // A client may be its own server or cluster; the target and the split stand alone.
        let others = [
            ("server", roles.server),
            ("cluster", roles.cluster),
            ("learner", roles.learner),
            ("split", roles.split),
        ];
        for (key, column) in [("client", Some(roles.client))].into_iter().chain(others) {
            let targeted = column.is_some() && column == roles.target;
            if targeted || (key != "split" && column.is_some() && column == roles.split) {
                let message =
                    format!("column {:?} has another role already: name another", column.unwrap_or(""));
                return Err(DataError::config(key, message));
            }
        }
        Ok(roles)
    }

    /// The schema file, where there is one.
    pub(crate) fn declared(&self, base: &Path) -> Result<Option<Declared>, DataError> {
        self.schema.as_ref().map(|path| schema::read(&base.join(path))).transpose()
    }
}

impl<'a> Roles<'a> {
    pub(crate) fn named(&self) -> impl Iterator<Item = (&'static str, &'a str)> + use<'a> {
        let all = [
            ("client", Some(self.client)),
            ("server", self.server),
            ("cluster", self.cluster),
            ("learner", self.learner),
            ("split", self.split),
            ("target", self.target),
        ];
        all.into_iter().filter_map(|(key, name)| name.map(|name| (key, name)))
    }

    pub(crate) fn words(&self) -> [Option<&'a str>; 5] {
        [Some(self.client), self.server, self.cluster, self.learner, self.split]
    }

    pub(crate) fn has(&self, column: &str) -> bool {
        self.target == Some(column) || self.words().contains(&Some(column))
    }
}

/// The column of this name, or an error that says which key asked for it.
pub(crate) fn column<'a>(table: &'a Table, key: &str, name: &str) -> Result<&'a Column, DataError> {
    table.find(name).ok_or_else(|| DataError::NoColumn {
        file: table.file.clone(),
        key: key.to_string(),
        column: name.to_string(),
        hint: suggest(name, table.columns.iter().map(|column| column.name.as_str())),
    })
}

/// The message for a column of text that no schema declares: shows what to write.
pub(crate) fn undeclared(table: &Table, column: &Column) -> DataError {
    let row = column.strays.first.as_ref().map_or(0, |(row, _)| *row);
    let words = match &column.cells {
        Cells::Words { words, .. } => words.iter().take(12),
        _ => column.strays.samples.iter().take(12),
    };
    let mut samples: Vec<String> = words.map(|sample| format!("{sample:?}")).collect();
    samples.sort_unstable();
    let message = format!(
        "the column holds text ({}), which needs declared categories: add `schema = \"schema.toml\"` to [data] with a \
         [[features]] entry for every feature, this one being {{ name = {:?}, categories = [{}] }}; \
         or leave the column out of `features`",
        samples.first().map_or("", String::as_str),
        column.name,
        samples.join(", ")
    );
    table.cell(row, &column.name, message)
}
