//! From cells to features: numbers as they are, declared categories one column each.

use super::columns::{column, undeclared};
use super::members::words_of;
use crate::error::DataError;
use crate::formats::table::Table;
use crate::world::schema::Schema;
use fedkin_settings::suggest;

/// Turns rows of the table into rows of features.
pub(crate) struct Encoder<'a> {
    parts: Vec<Part<'a>>,
    pub(crate) columns: usize,
}

enum Part<'a> {
    Number(&'a [f64]),
    /// Position among the categories by row, and how many there are.
    OneHot(Vec<usize>, usize),
}

impl<'a> Encoder<'a> {
    pub(crate) fn new(table: &'a Table, schema: &Schema) -> Result<Self, DataError> {
        let mut parts = Vec::with_capacity(schema.features.len());
        for feature in &schema.features {
            let column = column(table, "features", &feature.name)?;
            if feature.categories.is_empty() {
                if column.is_text() {
                    return Err(undeclared(table, column));
                }
                parts.push(Part::Number(table.numbers(column)?));
                continue;
            }
            table.complete(column)?;
            let (codes, words) = words_of(column);
            let position: Vec<Option<usize>> = words
                .iter()
                .map(|word| feature.categories.iter().position(|category| category == word))
                .collect();
            let mut hot = Vec::with_capacity(codes.len());
            for (row, &code) in codes.iter().enumerate() {
                let word = &words[code as usize];
                hot.push(position[code as usize].ok_or_else(|| {
                    let hint = suggest(word, feature.categories.iter().map(String::as_str));
                    table.cell(
                        row,
                        &column.name,
                        format!("{word:?} is not among the declared categories{hint}"),
                    )
                })?);
            }
            parts.push(Part::OneHot(hot, feature.categories.len()));
        }
        Ok(Self { parts, columns: schema.columns() })
    }

    pub(crate) fn rows(&self, rows: &[usize]) -> Vec<f64> {
        let mut features = Vec::with_capacity(rows.len() * self.columns);
        for &row in rows {
            for part in &self.parts {
                match part {
                    Part::Number(values) => features.push(values[row]),
                    Part::OneHot(hot, count) => {
                        features.extend((0..*count).map(|at| f64::from(u8::from(at == hot[row]))));
                    }
                }
            }
        }
        features
    }
}
