//! A user's own table: which columns mean what, and the checks on the way to a world.

use crate::encode::Encoder;
use crate::error::DataError;
use crate::members::{Member, Members, Split};
use crate::options::FRACTION;
use crate::parallel::InOrder;
use crate::registry::{About, ReadTable, Source, Variants};
use crate::roster::Roster;
use crate::schema::{self, Declared, Feature, Schema};
use crate::signals::check;
use crate::split::VALIDATION;
use crate::standardise::{Scaling, StandardiseBy};
use crate::table::{Cells, Column, Table};
use crate::topology;
use crate::world::{Client, World, assemble};
use crate::{Request, Task, csv, parquet};
use fedkin_core::params::{Kind, Preset, suggest};
use fedkin_core::{Dataset, settings};
use rayon::prelude::*;
use std::borrow::Cow;
use std::path::{Path, PathBuf};
use std::sync::Arc;

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

settings! {
    /// `[data]` of a CSV file.
    pub struct Csv {
        flatten columns: Columns;
    }
}

settings! {
    /// `[data]` of a Parquet file.
    pub struct Parquet {
        flatten columns: Columns;
    }
}

impl Source for Csv {
    const NAME: &'static str = "csv";
    const SUMMARY: &'static str = "your own records in a CSV file with a header line (gzip is fine)";
    const TABLE: Option<ReadTable> = Some(csv::read);

    fn about(&self, _: Variants<'_>) -> About {
        self.columns.about()
    }

    fn load(&self, request: &Request<'_>) -> Result<World, DataError> {
        self.columns.load(request, csv::read)
    }
}

impl Source for Parquet {
    const NAME: &'static str = "parquet";
    const SUMMARY: &'static str = "your own records in a Parquet file";
    const TABLE: Option<ReadTable> = Some(parquet::read);

    fn about(&self, _: Variants<'_>) -> About {
        self.columns.about()
    }

    fn load(&self, request: &Request<'_>) -> Result<World, DataError> {
        self.columns.load(request, parquet::read)
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

    fn about(&self) -> About {
        About {
            path: Some(self.path.clone()),
            by_client: self.standardise == StandardiseBy::Client,
            validation: self.validation_fraction > 0.0,
            ..About::default()
        }
    }

    /// Reads the table and makes a world of it.
    fn load(&self, request: &Request<'_>, read: ReadTable) -> Result<World, DataError> {
        let roles = self.roles(request.task)?;
        let declared = self.declared(request.base)?;
        let standardise = self.standardise.open(request.base)?;
        let is_words = |name: &str| {
            let categorical = |feature: &Feature| feature.name == name && !feature.categories.is_empty();
            roles.words().contains(&Some(name)) || declared.iter().flat_map(|d| &d.features).any(categorical)
        };
        let table = read(&request.base.join(&self.path), &is_words)?;
        // A misspelt role would turn the column it means into a feature: say so before anything else.
        for (key, name) in roles.named() {
            column(&table, key, name)?;
        }
        let schema = features(&table, &self.features, &roles, declared)?;
        if request.task == Task::Signals {
            check::columns(&table.file, &schema)?;
        }
        let targets = targets(&table, roles.target, request.task)?;
        let members = Members::read(&table, &roles)?;
        let topology = topology::build(
            request.topology,
            &members.servers,
            false,
            request.seed,
            request.require_connected,
        )?;
        let test = Split::read(&table, self, &roles, request.seed)?;
        let numbered = members.clients.into_iter().enumerate().collect();
        let clients = records(&table, &schema, &targets, &test, &standardise.bind(&schema)?, numbered)?;
        if request.task == Task::Signals {
            check::clients(&clients)?;
        }
        let roster = Roster { servers: members.servers, clusters: members.clusters, topology };
        assemble(clients, roster, None, schema)
    }

    /// The schema file, where there is one.
    pub(crate) fn declared(&self, base: &Path) -> Result<Option<Declared>, DataError> {
        self.schema.as_ref().map(|path| schema::read(&base.join(path))).transpose()
    }
}

impl<'a> Roles<'a> {
    fn named(&self) -> impl Iterator<Item = (&'static str, &'a str)> + use<'a> {
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

/// The records of clients whose ids in the federation are known.
pub(crate) fn records(
    table: &Table,
    schema: &Schema,
    targets: &[f64],
    test: &Split,
    scaling: &Scaling,
    members: Vec<(usize, Member)>,
) -> Result<Vec<Client>, DataError> {
    let encoder = Encoder::new(table, schema)?;
    members
        .into_par_iter()
        .map(|(id, member)| {
            let rows = test.split(table, &member, id)?;
            let [mut train, mut validation, mut test] =
                [&rows.train, &rows.validation, &rows.test].map(|rows| encoder.rows(rows));
            let scaling = scaling.apply(encoder.columns, &mut train, [&mut validation, &mut test]);
            let dataset = |features: Vec<f64>, rows: &[usize]| {
                let targets = rows.iter().map(|&row| targets[row]).collect();
                Dataset::new(encoder.columns, features, targets)
                    .map(Arc::new)
                    .map_err(|source| DataError::Records { client: member.name.clone(), source })
            };
            let some = |features, rows: &[usize]| match rows {
                [] => Ok(None),
                rows => dataset(features, rows).map(Some),
            };
            let train = dataset(train, &rows.train)?;
            let (validation, test) = (some(validation, &rows.validation)?, some(test, &rows.test)?);
            let Member { name, server, cluster, learner, .. } = member;
            Ok(Client { name, server, cluster, train, test, validation, scaling, learner })
        })
        .in_order()
}

pub(crate) fn column<'a>(table: &'a Table, key: &str, name: &str) -> Result<&'a Column, DataError> {
    table.find(name).ok_or_else(|| DataError::NoColumn {
        file: table.file.clone(),
        key: key.to_string(),
        column: name.to_string(),
        hint: suggest(name, table.columns.iter().map(|column| column.name.as_str())),
    })
}

/// Which columns are features, in which order.
fn features(
    table: &Table,
    named: &[String],
    roles: &Roles<'_>,
    declared: Option<Declared>,
) -> Result<Schema, DataError> {
    let target = roles.target.unwrap_or_default().to_string();
    for (at, name) in named.iter().enumerate() {
        column(table, "features", name)?;
        if roles.has(name) {
            return Err(DataError::config(
                "features",
                format!("column {name:?} has another role: drop it from the list"),
            ));
        }
        if named[..at].contains(name) {
            return Err(DataError::config("features", format!("column {name:?} is listed twice: drop one")));
        }
    }
    if let Some(declared) = declared {
        for feature in &declared.features {
            column(table, "schema", &feature.name)?;
            if roles.has(&feature.name) {
                let message = format!(
                    "it declares {:?} as a feature, which has another role: drop it there",
                    feature.name
                );
                return Err(DataError::config("schema", message));
            }
        }
        return declared.select(target, named);
    }
    let chosen: Vec<&Column> = if named.is_empty() {
        table.columns.iter().filter(|column| !roles.has(&column.name)).collect()
    } else {
        named.iter().filter_map(|name| table.find(name)).collect()
    };
    if chosen.is_empty() {
        return Err(DataError::file(
            &table.file,
            "no column is left to predict from: name some in `features`",
        ));
    }
    if let Some(text) = chosen.iter().find(|column| column.is_text()) {
        return Err(undeclared(table, text));
    }
    let features = chosen.iter().map(|column| Feature::number(column.name.clone())).collect();
    Ok(Schema { features, target, shape: None })
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

/// One number per row; zeros where there is no target.
pub(crate) fn targets<'a>(
    table: &'a Table,
    name: Option<&str>,
    task: Task,
) -> Result<Cow<'a, [f64]>, DataError> {
    let Some(name) = name else { return Ok(Cow::Owned(vec![0.0; table.rows])) };
    let column = column(table, "target", name)?;
    let classes = match task {
        Task::Regression | Task::Signals => return table.numbers(column).map(Cow::Borrowed),
        Task::Classification => 2,
        Task::Classes(classes) => classes,
    };
    if column.is_text() {
        let row = column.strays.first.as_ref().map_or(0, |(row, _)| *row);
        let word = column.strays.samples.first().map_or("", String::as_str);
        let message = format!(
            "the label {word:?} is a word: number the classes from 0 to {}, the same at all clients",
            classes - 1
        );
        return Err(table.cell(row, &column.name, message));
    }
    let values = table.numbers(column)?;
    let label = |value: f64| value >= 0.0 && value < f64::from(classes) && value.fract() == 0.0;
    if let Some(row) = values.iter().position(|&value| !label(value)) {
        let message = if task == Task::Classification {
            format!(
                "the label {} is neither 0 nor 1: recode the classes, use kind = \"softmax\" for more of them, or a \
                 regression model",
                values[row]
            )
        } else {
            format!(
                "the label {} is no class: they are numbered from 0 to {}; recode them, or correct `model.classes`",
                values[row],
                classes - 1
            )
        };
        return Err(table.cell(row, &column.name, message));
    }
    Ok(Cow::Borrowed(values))
}
