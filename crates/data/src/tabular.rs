//! A user's own table: which columns mean what, and the checks on the way to a world.

use crate::encode::Encoder;
use crate::error::DataError;
use crate::members::{Member, Members, Split};
use crate::options::resolve;
use crate::parallel::InOrder;
use crate::roster::Roster;
use crate::schema::{self, Declared, Feature, Schema};
use crate::signals::check;
use crate::split::VALIDATION;
use crate::standardise::{Scaling, Standardise};
use crate::table::{Cells, Column, Table};
use crate::topology;
use crate::world::{Client, World, assemble};
use crate::{Request, Task};
use fedkin_core::Dataset;
use fedkin_core::params::{Kind, Param, Preset, Value, Values, suggest};
use rayon::prelude::*;
use std::borrow::Cow;
use std::path::Path;
use std::sync::Arc;

pub(crate) const PARAMS: &[Param] = &[
    Param {
        name: "path",
        kind: Kind::Path,
        preset: Preset::Required,
        help: "the file, relative to the config",
    },
    Param {
        name: "client",
        kind: Kind::Text,
        preset: Preset::Required,
        help: "column that names the client a record belongs to",
    },
    Param {
        name: "server",
        kind: Kind::Text,
        preset: Preset::Absent,
        help: "column that names the client's server; without it all clients share one",
    },
    Param {
        name: "cluster",
        kind: Kind::Text,
        preset: Preset::Absent,
        help: "column that names the client's cluster; without it there is one",
    },
    Param {
        name: "target",
        kind: Kind::Text,
        preset: Preset::Absent,
        help: "column to predict: a number, 0 and 1 for kind = \"logistic\", or 0, 1, 2 and so on for kind = \"softmax\"; \
               required, except where a graph is learnt, which has no target",
    },
    Param {
        name: "features",
        kind: Kind::List(&Kind::Text),
        preset: Preset::Absent,
        help: "columns to predict from, or the nodes of a graph, in this order (default: those of the schema, or all other columns)",
    },
    Param {
        name: "split",
        kind: Kind::Text,
        preset: Preset::Absent,
        help: "column that says train or test for each record",
    },
    Param {
        name: "test_fraction",
        kind: Kind::Number { least: 0.0, most: 0.99, open: false },
        preset: Preset::Number(0.0),
        help: "share of each client's records kept for testing; at least one stays for training",
    },
    VALIDATION,
    Param {
        name: "standardise",
        kind: Kind::Either(&[Kind::Flag, Kind::Text]),
        preset: Preset::Flag(false),
        help: "true or \"client\": each client by its own training records; or a CSV file with columns feature, mean, scale",
    },
    Param {
        name: "schema",
        kind: Kind::Path,
        preset: Preset::Absent,
        help: "TOML or JSON file that declares the features: name, unit, categories",
    },
];

/// Reads a file; the function says which columns hold text whatever their cells look like.
pub(crate) type ReadTable = fn(&Path, &dyn Fn(&str) -> bool) -> Result<Table, DataError>;

/// The columns that are not features.
pub(crate) struct Roles<'a> {
    pub(crate) client: &'a str,
    pub(crate) server: Option<&'a str>,
    pub(crate) cluster: Option<&'a str>,
    pub(crate) split: Option<&'a str>,
    /// Absent where the records are signals.
    pub(crate) target: Option<&'a str>,
}

impl<'a> Roles<'a> {
    pub(crate) fn read(values: &'a Values, task: Task) -> Result<Self, DataError> {
        let target = match (values.text("target"), task) {
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
        let roles = Self {
            client: values.text("client").unwrap_or("client"),
            server: values.text("server"),
            cluster: values.text("cluster"),
            split: values.text("split"),
            target,
        };
        // A client may be its own server or cluster; the target and the split stand alone.
        let others = [("server", roles.server), ("cluster", roles.cluster), ("split", roles.split)];
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

    fn named(&self) -> impl Iterator<Item = (&'static str, &'a str)> + use<'a> {
        let all = [
            ("client", Some(self.client)),
            ("server", self.server),
            ("cluster", self.cluster),
            ("split", self.split),
            ("target", self.target),
        ];
        all.into_iter().filter_map(|(key, name)| name.map(|name| (key, name)))
    }

    pub(crate) fn words(&self) -> [Option<&'a str>; 4] {
        [Some(self.client), self.server, self.cluster, self.split]
    }

    pub(crate) fn has(&self, column: &str) -> bool {
        self.target == Some(column) || self.words().contains(&Some(column))
    }
}

/// Reads the table and makes a world of it.
pub(crate) fn load(request: &Request<'_>, read: ReadTable) -> Result<World, DataError> {
    let values = request.values;
    let path = resolve(request.base, values.text("path").unwrap_or_default());
    let roles = Roles::read(values, request.task)?;
    let declared =
        values.text("schema").map(|path| schema::read(&resolve(request.base, path))).transpose()?;
    let standardise = Standardise::read(values.get("standardise"), request.base)?;
    let is_words = |name: &str| {
        let categorical = |feature: &Feature| feature.name == name && !feature.categories.is_empty();
        roles.words().contains(&Some(name)) || declared.iter().flat_map(|d| &d.features).any(categorical)
    };
    let table = read(&path, &is_words)?;
    // A misspelt role would turn the column it means into a feature: say so before anything else.
    for (key, name) in roles.named() {
        column(&table, key, name)?;
    }
    let schema = features(&table, values, &roles, declared)?;
    if request.task == Task::Signals {
        check::columns(&table.file, &schema)?;
    }
    let targets = targets(&table, roles.target, request.task)?;
    let members = Members::read(&table, &roles)?;
    let topology =
        topology::build(request.topology, &members.servers, false, request.seed, request.require_connected)?;
    let test = Split::read(&table, values, &roles, request.seed)?;
    let numbered = members.clients.into_iter().enumerate().collect();
    let clients = records(&table, &schema, &targets, &test, &standardise.bind(&schema)?, numbered)?;
    if request.task == Task::Signals {
        check::clients(&clients)?;
    }
    assemble(clients, Roster { servers: members.servers, clusters: members.clusters, topology }, None, schema)
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
            let Member { name, server, cluster, .. } = member;
            Ok(Client { name, server, cluster, train, test, validation, scaling })
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
    values: &Values,
    roles: &Roles<'_>,
    declared: Option<Declared>,
) -> Result<Schema, DataError> {
    let target = roles.target.unwrap_or_default().to_string();
    let named: Vec<&str> = values.list("features").iter().filter_map(word).collect();
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
        return declared.select(target, &named);
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

pub(crate) fn word(value: &Value) -> Option<&str> {
    match value {
        Value::Text(text) => Some(text),
        _ => None,
    }
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
