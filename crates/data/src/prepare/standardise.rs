//! Bringing features to a common scale.

use crate::error::DataError;
use crate::formats::csv;
use crate::world::schema::Schema;
use fedkin_settings::{Setting, Value, suggest};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// What a config asks for: true or "client", a file of constants, or false.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StandardiseBy {
    /// Nothing is standardised.
    Never,
    /// Each client by its own training records.
    Client,
    /// By the constants of a CSV file.
    File(PathBuf),
}

const CLIENT: &str = "client";

impl Setting for StandardiseBy {
    fn read(value: Option<&Value>) -> Result<Self, String> {
        match value {
            Some(Value::Text(word)) if word == CLIENT => Ok(Self::Client),
            Some(Value::Text(path)) => Ok(Self::File(path.into())),
            other => bool::read(other).map(|on| if on { Self::Client } else { Self::Never }),
        }
    }

    fn write(&self) -> Option<Value> {
        match self {
            Self::Never => false.write(),
            Self::Client => true.write(),
            Self::File(path) => path.write(),
        }
    }
}

impl StandardiseBy {
    /// The same with the constants, where a file has them.
    pub(crate) fn open(&self, base: &Path) -> Result<Standardise, DataError> {
        let path = match self {
            Self::Never => return Ok(Standardise::Never),
            Self::Client => return Ok(Standardise::ByClient),
            Self::File(path) => path,
        };
        let file = base.join(path);
        if !file.exists() {
            let message = format!(
                "\"{}\" is neither true, false, \"{CLIENT}\" nor a file ({} is not there)",
                path.display(),
                file.display()
            );
            return Err(DataError::config("standardise", message));
        }
        Ok(Standardise::Constants { by_feature: constants(&file)?, file })
    }
}

/// How features are brought to a common scale.
pub(crate) enum Standardise {
    /// Nothing.
    Never,
    /// Each client by the mean and deviation of its own training records: nothing about them leaves it.
    ByClient,
    /// By public constants.
    Constants { file: PathBuf, by_feature: BTreeMap<String, (f64, f64)> },
}

/// The same, tied to the columns of the records.
pub(crate) enum Scaling {
    Never,
    /// Which columns are numbers; one-hot columns stay 0 and 1.
    ByClient(Vec<bool>),
    /// Mean and scale of each column.
    Constants(Vec<(f64, f64)>),
}

impl Standardise {
    pub(crate) fn bind(self, schema: &Schema) -> Result<Scaling, DataError> {
        match self {
            Self::Never => Ok(Scaling::Never),
            Self::ByClient => {
                let numbers = schema.features.iter().flat_map(|feature| {
                    let categories = feature.categories.len();
                    std::iter::repeat_n(categories == 0, categories.max(1))
                });
                Ok(Scaling::ByClient(numbers.collect()))
            }
            Self::Constants { file, by_feature } => {
                let known =
                    || schema.features.iter().filter(|f| f.categories.is_empty()).map(|f| f.name.as_str());
                if let Some(other) =
                    by_feature.keys().find(|name| known().all(|feature| feature != name.as_str()))
                {
                    let hint = suggest(other, known());
                    return Err(DataError::file(
                        &file,
                        format!("{other:?} is not a numeric feature of the data{hint}"),
                    ));
                }
                let mut columns = Vec::with_capacity(schema.columns());
                for feature in &schema.features {
                    if !feature.categories.is_empty() {
                        columns.extend(std::iter::repeat_n((0.0, 1.0), feature.categories.len()));
                        continue;
                    }
                    columns.push(*by_feature.get(&feature.name).ok_or_else(|| {
                        DataError::file(
                            &file,
                            format!("feature {:?} has no constants here: add a line for it", feature.name),
                        )
                    })?);
                }
                Ok(Scaling::Constants(columns))
            }
        }
    }
}

/// Reads `feature,mean,scale`.
fn constants(file: &Path) -> Result<BTreeMap<String, (f64, f64)>, DataError> {
    let table = csv::read(file, &|name| name == "feature")?;
    let (Some(feature), Some(mean), Some(scale)) =
        (table.find("feature"), table.find("mean"), table.find("scale"))
    else {
        return Err(DataError::file(file, "a constants file has the columns feature, mean, scale"));
    };
    table.complete(feature)?;
    let (means, scales) = (table.numbers(mean)?, table.numbers(scale)?);
    let mut constants = BTreeMap::new();
    for row in 0..table.rows {
        let name = feature.word(row).unwrap_or_default();
        if scales[row] <= 0.0 {
            return Err(table.cell(row, "scale", format!("{} is not above 0", scales[row])));
        }
        if constants.insert(name.to_string(), (means[row], scales[row])).is_some() {
            return Err(table.cell(row, "feature", format!("{name:?} appears twice: drop one line")));
        }
    }
    Ok(constants)
}

impl Scaling {
    /// Scales a client's training and other features in place; only the training ones are looked at.
    /// Gives back what was used: the means, then the scales; nothing where nothing was scaled.
    pub(crate) fn apply<const N: usize>(
        &self,
        columns: usize,
        train: &mut [f64],
        others: [&mut [f64]; N],
    ) -> Vec<f64> {
        let fitted;
        let constants = match self {
            Self::Never => return Vec::new(),
            Self::Constants(constants) => constants,
            Self::ByClient(numbers) => {
                fitted = fit(columns, train, numbers);
                &fitted
            }
        };
        let others = others.into_iter().flat_map(|rows| rows.chunks_exact_mut(columns));
        for row in train.chunks_exact_mut(columns).chain(others) {
            for (value, (mean, scale)) in row.iter_mut().zip(constants) {
                *value = (*value - mean) / scale;
            }
        }
        constants.iter().map(|(mean, _)| *mean).chain(constants.iter().map(|(_, scale)| *scale)).collect()
    }
}

/// Mean and deviation (over n) of each column; a constant column is only centred.
fn fit(columns: usize, train: &[f64], numbers: &[bool]) -> Vec<(f64, f64)> {
    let rows = (train.len() / columns.max(1)).max(1) as f64;
    (0..columns)
        .map(|column| {
            if !numbers.get(column).copied().unwrap_or(false) {
                return (0.0, 1.0);
            }
            let values = || train.iter().skip(column).step_by(columns);
            let mean = values().sum::<f64>() / rows;
            let deviation =
                (values().map(|value| (value - mean) * (value - mean)).sum::<f64>() / rows).sqrt();
            // Rounding leaves a constant column a deviation of about 1e-16 of its size.
            let constant = deviation.is_nan() || deviation <= 1e-13 * mean.abs();
            (mean, if constant { 1.0 } else { deviation })
        })
        .collect()
}
