//! A part of a federation: the records of the clients of one machine, where the roster is known already.

use super::columns::{Columns, Roles};
use super::members::{Member, Members, Split};
use super::{records, targets};
use crate::Task;
use crate::error::DataError;
use crate::formats::table::Table;
use crate::options;
use crate::prepare::check;
use crate::prepare::standardise::{Standardise, StandardiseBy};
use crate::registry::Registry;
use crate::world::schema::{Feature, Schema};
use fedkin_learner::Dataset;
use fedkin_settings::{Values, suggest};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// By what a feature is standardised: public constants that all clients use.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Constant {
    /// Which feature.
    pub feature: String,
    /// What is taken off.
    pub mean: f64,
    /// What the rest is divided by; above 0.
    pub scale: f64,
}

/// Which records to read, and what the federation knows of them.
#[derive(Debug, Clone, Copy)]
pub struct Part<'a> {
    /// Where sources are looked up.
    pub registry: &'a Registry,
    /// The name of a source of a user's own tables, such as `csv` or `parquet`.
    pub source: &'a str,
    /// The `[data]` table, checked against the source's `params`.
    pub values: &'a Values,
    /// The folder that relative paths start from.
    pub base: &'a Path,
    /// What the targets must be.
    pub task: Task,
    /// The seed of the repeat.
    pub seed: u64,
    /// The features that all clients have, in order.
    pub schema: &'a Schema,
    /// By what the features are standardised, where the config names a file for it.
    pub constants: &'a [Constant],
    /// The names of all clients of the federation by id, in byte order.
    pub names: &'a [String],
    /// The ids of the clients that are wanted, sorted.
    pub wanted: &'a [u32],
}

/// One client of a part.
#[derive(Debug, Clone)]
pub struct PartClient {
    /// Its id in the federation.
    pub id: u32,
    /// Its server, where the file says.
    pub server: Option<String>,
    /// Its cluster, where the file says.
    pub cluster: Option<String>,
    /// What it fits, where the file says.
    pub learner: Option<String>,
    /// The training records.
    pub train: Arc<Dataset>,
    /// The test records.
    pub test: Option<Arc<Dataset>>,
    /// The records set aside for choosing parameters.
    pub validation: Option<Arc<Dataset>>,
    /// How the features were standardised: means, then scales; empty where they were not.
    pub scaling: Vec<f64>,
}

/// Reads the records of the wanted clients. Records of other clients of the federation are skipped; a client
/// that the federation does not know is an error. The columns of server and cluster may be missing: the
/// roster has them.
pub fn load_part(part: &Part<'_>) -> Result<Vec<PartClient>, DataError> {
    let read = part.registry.source(part.source)?.table.ok_or_else(|| {
        let message = format!(
            "{:?} has no table of a user's own records, of which a machine could have a part",
            part.source
        );
        DataError::config("source", message)
    })?;
    let columns: Columns = options::read(part.values)?;
    let path = part.base.join(&columns.path);
    let mut roles = columns.roles(part.task)?;
    let categorical = |name: &str| {
        part.schema.features.iter().any(|feature| feature.name == name && !feature.categories.is_empty())
    };
    let words = |name: &str| roles.words().contains(&Some(name)) || categorical(name);
    let table = read(&path, &words)?;
    check_features(&table, part.schema, &columns, &roles)?;
    roles.server = roles.server.filter(|name| table.find(name).is_some());
    roles.cluster = roles.cluster.filter(|name| table.find(name).is_some());
    roles.learner = roles.learner.filter(|name| table.find(name).is_some());
    let target = roles.target.map(|_| part.schema.target.as_str());
    let targets = targets(&table, target, part.task)?;
    let Members { clients, servers, clusters } = Members::read(&table, &roles)?;
    let mut members: Vec<(usize, Member)> = Vec::with_capacity(part.wanted.len());
    for member in clients {
        let Ok(id) = part.names.binary_search_by(|name| name.as_bytes().cmp(member.name.as_bytes())) else {
            let hint = suggest(&member.name, part.names.iter().map(String::as_str));
            let message = format!("client {:?} is not in the roster{hint}", member.name);
            return Err(table.cell(member.rows[0], roles.client, message));
        };
        if part.wanted.binary_search(&(id as u32)).is_ok() {
            members.push((id, member));
        }
    }
    if let Some(absent) = part.wanted.iter().find(|&&id| members.iter().all(|(at, _)| *at != id as usize)) {
        let message = format!(
            "there is no record of client {:?}, which this node hosts: column {:?} must name it as the roster does",
            part.names[*absent as usize], roles.client
        );
        return Err(DataError::file(&path, message));
    }
    let ids: Vec<usize> = members.iter().map(|(id, _)| *id).collect();
    let split = Split::read(&table, &columns, &roles, part.seed)?;
    let scaling = standardise(&columns, part.constants).bind(part.schema)?;
    let clients = records(&table, part.schema, &targets, &split, &scaling, members)?;
    if part.task == Task::Signals {
        check::clients(&clients)?;
    }
    let named = |known: bool, names: &[String], at: u32| known.then(|| names[at as usize].clone());
    Ok(ids
        .into_iter()
        .zip(clients)
        .map(|(id, client)| PartClient {
            id: id as u32,
            server: named(roles.server.is_some(), &servers, client.server),
            cluster: named(roles.cluster.is_some(), &clusters, client.cluster),
            learner: client.learner,
            train: client.train,
            test: client.test,
            validation: client.validation,
            scaling: client.scaling,
        })
        .collect())
}

/// The features of the file are those of the roster: without a list in the config, no more and no fewer.
fn check_features(
    table: &Table,
    schema: &Schema,
    columns: &Columns,
    roles: &Roles<'_>,
) -> Result<(), DataError> {
    let expected: Vec<&str> = schema.features.iter().map(|feature| feature.name.as_str()).collect();
    let all = columns.features.is_empty() && columns.schema.is_none();
    let found: Vec<&str> =
        table.columns.iter().map(|column| column.name.as_str()).filter(|name| !roles.has(name)).collect();
    let missing = expected.iter().find(|name| !found.contains(name));
    let extra = found.iter().find(|name| all && !expected.contains(name));
    let what = match (missing, extra) {
        (None, None) => return Ok(()),
        (Some(name), _) => format!("feature {name:?} of the roster is missing"),
        (None, Some(name)) => format!("column {name:?} is no feature of the roster"),
    };
    let message = format!(
        "{what}: the file has the features {}, the roster has {}",
        found.join(", "),
        expected.join(", ")
    );
    Err(DataError::file(&table.file, message))
}

fn standardise(columns: &Columns, constants: &[Constant]) -> Standardise {
    match columns.standardise {
        StandardiseBy::Never => Standardise::Never,
        StandardiseBy::Client => Standardise::ByClient,
        StandardiseBy::File(_) => Standardise::Constants {
            file: PathBuf::from("the roster"),
            by_feature: constants
                .iter()
                .map(|constant| (constant.feature.clone(), (constant.mean, constant.scale)))
                .collect(),
        },
    }
}

/// The constants that `standardise` of a `[data]` table names, by feature; empty where it names none.
pub fn constants(values: &Values, base: &Path) -> Result<Vec<Constant>, DataError> {
    let columns: Columns = options::read(values)?;
    let Standardise::Constants { by_feature, .. } = columns.standardise.open(base)? else {
        return Ok(Vec::new());
    };
    Ok(by_feature.into_iter().map(|(feature, (mean, scale))| Constant { feature, mean, scale }).collect())
}

/// The schema that a `[data]` table declares, without looking at records: its schema file, its list of
/// features, or both.
pub fn declared(values: &Values, base: &Path, task: Task) -> Result<Schema, DataError> {
    let columns: Columns = options::read(values)?;
    let target = columns.roles(task)?.target.unwrap_or_default().to_string();
    let named = &columns.features;
    let Some(declared) = columns.declared(base)? else {
        if named.is_empty() {
            let message = "without the data nobody knows their columns: list the features here, in order, \
                           or declare them in a file that `schema` names";
            return Err(DataError::config("data.features", message));
        }
        let features = named.iter().map(Feature::number).collect();
        return Ok(Schema { features, target, shape: None });
    };
    declared.select(target, named)
}
