//! Records to predict for: the features of a schema, and the target where it is there.

use super::encode::Encoder;
use crate::error::DataError;
use crate::formats::{csv, parquet};
use crate::world::schema::Schema;
use std::path::Path;

/// Features row by row, and targets where the file has them.
#[derive(Debug, Clone, PartialEq)]
pub struct Records {
    /// Number of columns after encoding.
    pub columns: usize,
    /// All features, row by row.
    pub features: Vec<f64>,
    /// One target per row, if the column is there.
    pub targets: Option<Vec<f64>>,
}

/// Reads the features of a schema from a CSV or Parquet file (by its ending); other columns are ignored.
pub fn read_records(path: &Path, schema: &Schema) -> Result<Records, DataError> {
    let categorical = |name: &str| {
        schema.features.iter().any(|feature| feature.name == name && !feature.categories.is_empty())
    };
    let is_parquet = path.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("parquet"));
    let table = if is_parquet { parquet::read(path, &categorical)? } else { csv::read(path, &categorical)? };
    let encoder = Encoder::new(&table, schema)?;
    let rows: Vec<usize> = (0..table.rows).collect();
    let features = encoder.rows(&rows);
    let targets = match table.find(&schema.target) {
        Some(column) => Some(table.numbers(column)?.to_vec()),
        None => None,
    };
    Ok(Records { columns: encoder.columns, features, targets })
}
