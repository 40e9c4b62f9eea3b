//! What the columns mean, and the file in which a user declares it.

use super::digest::Digest;
use crate::error::DataError;
use fedkin_settings::suggest;
use serde::{Deserialize, Serialize};
use std::path::Path;

/// The features in order, and the target.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Schema {
    /// The features as the data name them; one with categories takes one column for each.
    pub features: Vec<Feature>,
    /// The name of the target.
    pub target: String,
    /// Channels, height and width of a record whose columns are an image or another grid, in this order.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shape: Option<[usize; 3]>,
}

/// One feature.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Feature {
    /// Its name.
    pub name: String,
    /// What it is measured in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unit: Option<String>,
    /// The words it can be, in the order of their columns; empty for a number.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub categories: Vec<String>,
}

impl Feature {
    /// A number without a unit.
    pub fn number(name: impl Into<String>) -> Self {
        Self { name: name.into(), unit: None, categories: Vec::new() }
    }
}

impl Schema {
    /// The name of each column of the records: the feature, or `feature=category`.
    pub fn column_names(&self) -> Vec<String> {
        let mut names = Vec::new();
        for feature in &self.features {
            if feature.categories.is_empty() {
                names.push(feature.name.clone());
            }
            names.extend(feature.categories.iter().map(|category| format!("{}={category}", feature.name)));
        }
        names
    }

    /// Number of columns of the records.
    pub fn columns(&self) -> usize {
        self.features.iter().map(|feature| feature.categories.len().max(1)).sum()
    }

    pub(crate) fn digest(&self, digest: &mut Digest) {
        digest.text(&self.target);
        digest.number(self.features.len());
        for feature in &self.features {
            digest.text(&feature.name);
            digest.text(feature.unit.as_deref().unwrap_or(""));
            digest.number(feature.categories.len());
            feature.categories.iter().for_each(|category| digest.text(category));
        }
    }
}

/// A schema file: TOML with `[[features]]`, or JSON with a list `features`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Declared {
    /// The target, if the file says.
    #[serde(default)]
    pub(crate) target: Option<String>,
    /// The features in order.
    pub(crate) features: Vec<Feature>,
}

impl Declared {
    /// The features that a config names, in its order; all of them where it names none.
    pub(crate) fn select(self, target: String, named: &[String]) -> Result<Schema, DataError> {
        if let Some(other) = self.target.filter(|other| *other != target) {
            let message = format!(
                "the schema declares the target {other:?} but `target` names {target:?}: make them agree"
            );
            return Err(DataError::config("target", message));
        }
        let mut features = self.features;
        if !named.is_empty() {
            let position = |feature: &Feature| named.iter().position(|name| *name == feature.name);
            if let Some(name) =
                named.iter().find(|name| features.iter().all(|feature| feature.name != **name))
            {
                let hint = suggest(name, features.iter().map(|feature| feature.name.as_str()));
                return Err(DataError::config(
                    "features",
                    format!("{name:?} is not declared in the schema{hint}"),
                ));
            }
            features.retain(|feature| position(feature).is_some());
            features.sort_by_key(|feature| position(feature));
        }
        Ok(Schema { features, target, shape: None })
    }
}

/// Reads and checks a schema file.
pub(crate) fn read(path: &Path) -> Result<Declared, DataError> {
    let text = std::fs::read_to_string(path).map_err(|source| DataError::io(path, source))?;
    let json = path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("json"));
    let declared: Declared = if json {
        serde_json::from_str(&text)
            .map_err(|error| DataError::file(path, format!("not a schema: {error}")))?
    } else {
        toml::from_str(&text)
            .map_err(|error| DataError::file(path, format!("not a schema: {}", error.to_string().trim())))?
    };
    let mut names: Vec<&str> = declared.features.iter().map(|feature| feature.name.as_str()).collect();
    names.sort_unstable();
    if let Some([twice, ..]) = names.windows(2).find(|pair| pair[0] == pair[1]) {
        return Err(DataError::file(path, format!("feature {twice:?} is declared twice: drop one")));
    }
    if declared.features.is_empty() {
        return Err(DataError::file(path, "no feature is declared: add at least one"));
    }
    for feature in &declared.features {
        let mut words: Vec<&str> = feature.categories.iter().map(String::as_str).collect();
        words.sort_unstable();
        if let Some([twice, ..]) = words.windows(2).find(|pair| pair[0] == pair[1]) {
            let message =
                format!("feature {:?} lists the category {:?} twice: drop one", feature.name, twice);
            return Err(DataError::file(path, message));
        }
    }
    Ok(declared)
}
