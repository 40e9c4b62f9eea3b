//! A user's own table: which columns mean what, and the checks on the way to a world.

mod columns;
mod encode;
pub(crate) mod members;
pub(crate) mod part;
pub(crate) mod records;

pub use columns::Columns;
pub(crate) use columns::column;

use crate::error::DataError;
use crate::formats::table::{Column, Table};
use crate::formats::{csv, parquet};
use crate::prepare::check;
use crate::prepare::parallel::InOrder;
use crate::prepare::standardise::{Scaling, StandardiseBy};
use crate::registry::{About, ReadTable, Source, Variants};
use crate::world::roster::Roster;
use crate::world::schema::{Declared, Feature, Schema};
use crate::world::{Client, World, assemble};
use crate::{Request, Task, topology};
use columns::{Roles, undeclared};
use encode::Encoder;
use fedkin_learner::Dataset;
use fedkin_settings::settings;
use members::{Member, Members, Split};
use rayon::prelude::*;
use std::borrow::Cow;
use std::sync::Arc;

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

impl Columns {
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
