//! `fedkin predict`: a client's model on new records.

use crate::artifacts::models::Models;
use crate::artifacts::{ArtifactError, atomic};
use crate::directory::RunDirectory;
use crate::error::Error;
use crate::registry::{Brought, Registry};
use fedkin_data::{Schema, World, read_records};
use fedkin_learner::{Abilities, Dataset, Family, Hypotheses, Output, likeliest};
use fedkin_method::{Families, Targets};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// What a run keeps to predict with: the features in order, and where each client stands.
#[derive(Debug, Serialize, Deserialize)]
struct Guide {
    schema: Schema,
    /// Server and cluster of each client as the method saw them: the name of its served model.
    served: BTreeMap<String, String>,
    /// Means, then scales, of the clients whose features were standardised.
    scaling: BTreeMap<String, Vec<f64>>,
    /// Which of the run's learners a client has, where there are several.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    learners: BTreeMap<String, u32>,
}

impl Guide {
    /// The learner of a client.
    fn family<'a>(&self, client: &str, families: &'a Families) -> &'a dyn Family {
        let number = self.learners.get(client).map_or(0, |number| *number as usize);
        families.get(number).unwrap_or_else(|| families.first())
    }

    /// A client with the same served model whose learner does not read what this one's reads.
    fn other_reader(&self, client: &str, served: &str, families: &Families) -> Option<&str> {
        let (own, columns) = (self.family(client, families), self.schema.columns());
        let alike = |other: &dyn Family| {
            let both = |test: &dyn Fn(&dyn Family) -> bool| test(own) && test(other);
            // Hypotheses say themselves of which kind they are.
            both(&|family| family.downcast::<Hypotheses>().is_some())
                || both(&|family| family.has().contain(Abilities::PARAMETERS))
                    && own.space(columns) == other.space(columns)
        };
        let same = |name: &str| self.learners.get(name) == self.learners.get(client);
        let mut others = self.served.iter().filter(|(name, key)| *key == served && !same(name));
        others.find(|(name, _)| !alike(self.family(name, families))).map(|(name, _)| name.as_str())
    }
}

const GUIDE: &str = "models/guide.json";
/// Above this many clients only the schema is kept: the guide would outgrow the models.
const LIMIT: usize = 100_000;

pub(crate) fn write_guide(
    directory: &Path,
    world: &World,
    federation: &fedkin_method::Federation,
    learners: Option<&[u32]>,
) -> Result<(), Error> {
    let mut guide = Guide {
        schema: world.schema.clone(),
        served: BTreeMap::new(),
        scaling: BTreeMap::new(),
        learners: BTreeMap::new(),
    };
    if world.train.len() <= LIMIT {
        for member in federation.members() {
            let name = federation.client_name(member.id).to_string();
            let server = &federation.server_names()[member.server as usize];
            let cluster = &federation.cluster_names()[member.cluster as usize];
            let scaling = &world.scaling[member.id as usize];
            if !scaling.is_empty() {
                guide.scaling.insert(name.clone(), scaling.clone());
            }
            if let Some(number) = learners.and_then(|all| all.get(member.id as usize)) {
                guide.learners.insert(name.clone(), *number);
            }
            guide.served.insert(name, format!("{server}/{cluster}"));
        }
    }
    let bytes = serde_json::to_vec(&guide).map_err(|error| Error::Usage(error.to_string()))?;
    Ok(atomic::write(&directory.join(GUIDE), &bytes)?)
}

/// One predicted record.
#[derive(Debug, Clone, Serialize)]
pub struct Prediction {
    /// The record, from 1.
    pub row: usize,
    /// A number, the probability of label 1, or the likeliest of several classes.
    pub value: f64,
    /// The probabilities of all classes, where there are several.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub probabilities: Vec<f64>,
    /// The true target, if the file has it.
    pub target: Option<f64>,
}

/// The predictions for a file.
#[derive(Debug, Clone, Serialize)]
pub struct Predictions {
    /// The client whose model was used.
    pub client: String,
    /// Which of its models.
    pub model: String,
    /// One per record.
    pub rows: Vec<Prediction>,
    /// `mse` or `accuracy`, where targets are there.
    pub error: Option<(String, f64)>,
    /// What the user should know.
    pub note: Option<String>,
}

/// What a model says of one record.
#[derive(Debug, Clone, PartialEq)]
pub struct Answer {
    /// A number, the probability of label 1, or the likeliest of several classes.
    pub value: f64,
    /// The probabilities of all classes, where there are several.
    pub probabilities: Vec<f64>,
}

/// What a model says of records as they came, row by row. `scaling` are the means and then the scales by which the client's
/// features were standardised; empty where they were not.
pub fn answers(
    family: &dyn Family,
    w: &[f64],
    scaling: &[f64],
    columns: usize,
    mut features: Vec<f64>,
) -> Result<Vec<Answer>, Error> {
    if columns == 0 || !features.len().is_multiple_of(columns) {
        return Err(Error::Usage(format!(
            "{} numbers are no records of {columns} columns: give whole rows",
            features.len()
        )));
    }
    let (means, scales) = scaling.split_at(scaling.len() / 2);
    for row in features.chunks_exact_mut(columns) {
        for ((x, mean), scale) in row.iter_mut().zip(means).zip(scales) {
            *x = (*x - mean) / scale;
        }
    }
    let count = features.len() / columns;
    let inputs =
        Dataset::new(columns, features, vec![0.0; count]).map_err(|error| Error::Usage(error.to_string()))?;
    let mut all = Vec::with_capacity(count);
    family.predict(w, &inputs, &mut |_, prediction| {
        all.push(match family.output() {
            Output::Classes(_) => {
                Answer { value: likeliest(prediction) as f64, probabilities: prediction.to_vec() }
            }
            _ => Answer { value: prediction.first().copied().unwrap_or(f64::NAN), probabilities: Vec::new() },
        });
    });
    if all.len() != count {
        return Err(Error::Usage(format!(
            "the numbers are no model of these {columns} columns (learner {:?})",
            family.name()
        )));
    }
    Ok(all)
}

/// Predicts with a client's own model, or with the one it is served.
pub fn predict(
    registry: &Registry,
    directory: &Path,
    client: &str,
    data: &Path,
    model: Option<&str>,
) -> Result<Predictions, Error> {
    let run = RunDirectory::new(directory);
    let (Some(config), Some(_)) = (run.config(registry)?, run.summary()?) else {
        return Err(Error::Usage(format!("{} holds no complete run: run it first", directory.display())));
    };
    let conflict = |message: String| Error::Conflict { place: directory.display().to_string(), message };
    let families = crate::learners::families_of(registry, &config, &Brought::default()).map_err(conflict)?;
    if families.first().output() == Output::Graph {
        return Err(conflict(
            "this run learnt graphs, which predict nothing: look at them with `fedkin graph inspect`".into(),
        ));
    }
    let path = directory.join(GUIDE);
    let bytes = fs::read(&path).map_err(|source| ArtifactError::File {
        action: "read",
        path: path.clone(),
        source,
    })?;
    let guide: Guide = serde_json::from_slice(&bytes)
        .map_err(|error| ArtifactError::Damaged { path, what: error.to_string() })?;
    let folder = directory.join("models");
    let models = Models::clients(&folder)?;
    let row = registry.methods().find(&config.algorithm).map_err(|error| conflict(error.to_string()))?;
    let targets = (row.typed.targets)(&config.algorithm_values).map_err(conflict)?;
    if targets != Targets::All && models.names().iter().all(|name| name != client) {
        return Err(Error::Usage(format!(
            "{client} has no model: it was no target of this run, see `algorithm.targets`"
        )));
    }
    let own = models.read(client)?;
    let mut note = None;
    let mut name = model.unwrap_or("client");
    if name == "client"
        && own.iter().all(|x| *x == 0.0)
        && guide.served.contains_key(client)
        && model.is_none()
    {
        note = Some(format!(
            "{client} never took part and has no model of its own: this is the one it is served"
        ));
        name = "served";
    }
    let served = |folder: &Path| -> Result<Vec<f64>, Error> {
        let key = guide.served.get(client).ok_or_else(|| {
            Error::Usage(format!(
                "served models by client are kept for up to {LIMIT} clients: use --model client"
            ))
        })?;
        if let Some(other) = guide.other_reader(client, key, &families) {
            return Err(Error::Usage(format!(
                "clients {client} and {other} of {key} have different learners, so one model is not for both: use --model \
                 client"
            )));
        }
        Ok(Models::servers(folder)?.read(key)?)
    };
    let w = match name {
        "client" => own,
        "served" => served(&folder)?,
        "averaged" => served(&folder.join("averaged"))?,
        other => return Err(Error::Usage(format!("no model {other:?}: use client, served or averaged"))),
    };
    let records = read_records(data, &guide.schema)?;
    let scaling = guide.scaling.get(client).map_or(&[][..], Vec::as_slice);
    let family = guide.family(client, &families);
    let answers = answers(family, &w, scaling, records.columns, records.features)?;
    let row = |(i, Answer { value, probabilities }): (usize, Answer)| {
        let target = records.targets.as_ref().map(|targets| targets[i]);
        Prediction { row: i + 1, value, probabilities, target }
    };
    let rows: Vec<Prediction> = answers.into_iter().enumerate().map(row).collect();
    let mean = |score: fn(f64, f64) -> f64| {
        let scores: Vec<f64> =
            rows.iter().filter_map(|row| row.target.map(|y| score(row.value, y))).collect();
        (!scores.is_empty()).then(|| scores.iter().sum::<f64>() / scores.len() as f64)
    };
    let score = |name: &str, value: Option<f64>| value.map(|value| (name.to_string(), value));
    let error = match family.output() {
        Output::Number | Output::Graph => score("mse", mean(|z, y| (z - y) * (z - y))),
        Output::Probability => score("accuracy", mean(|p, y| f64::from(u8::from((p >= 0.5) == (y >= 0.5))))),
        Output::Classes(_) => score("accuracy", mean(|class, y| f64::from(u8::from(class == y)))),
    };
    Ok(Predictions { client: client.to_string(), model: name.to_string(), rows, error, note })
}
