//! The records of one client.

use thiserror::Error;

/// Features by rows and one target per row; finite, rectangular, never empty.
#[derive(Debug, Clone, PartialEq)]
pub struct Dataset {
    columns: usize,
    features: Vec<f64>,
    targets: Vec<f64>,
}

/// Why records were refused. Rows and columns count from 1.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum DatasetError {
    /// No record at all.
    #[error("no samples (D_k = 0): every client needs at least one record")]
    Empty,
    /// The numbers do not fill a rectangle.
    #[error("{features} feature values do not fill {rows} rows of {columns} columns")]
    Ragged {
        /// How many values came.
        features: usize,
        /// How many targets came.
        rows: usize,
        /// How many columns were promised.
        columns: usize,
    },
    /// A feature is NaN or infinite.
    #[error("row {row}, feature {column}: {value} is not a finite number")]
    Feature {
        /// Which record.
        row: usize,
        /// Which feature.
        column: usize,
        /// What stands there.
        value: f64,
    },
    /// A target is NaN or infinite.
    #[error("row {row}: the target {value} is not a finite number")]
    Target {
        /// Which record.
        row: usize,
        /// What stands there.
        value: f64,
    },
}

impl Dataset {
    /// Checks and takes row-major features and one target per row.
    pub fn new(columns: usize, features: Vec<f64>, targets: Vec<f64>) -> Result<Self, DatasetError> {
        if targets.is_empty() {
            return Err(DatasetError::Empty);
        }
        if columns == 0 || features.len() != columns * targets.len() {
            return Err(DatasetError::Ragged { features: features.len(), rows: targets.len(), columns });
        }
        if let Some(i) = features.iter().position(|x| !x.is_finite()) {
            return Err(DatasetError::Feature {
                row: i / columns + 1,
                column: i % columns + 1,
                value: features[i],
            });
        }
        if let Some(i) = targets.iter().position(|x| !x.is_finite()) {
            return Err(DatasetError::Target { row: i + 1, value: targets[i] });
        }
        Ok(Self { columns, features, targets })
    }

    /// Number of records.
    pub fn rows(&self) -> usize {
        self.targets.len()
    }

    /// Number of features.
    pub fn columns(&self) -> usize {
        self.columns
    }

    /// All features, row by row.
    pub fn features(&self) -> &[f64] {
        &self.features
    }

    /// The features of record `i`.
    pub fn row(&self, i: usize) -> &[f64] {
        &self.features[i * self.columns..(i + 1) * self.columns]
    }

    /// One target per record.
    pub fn targets(&self) -> &[f64] {
        &self.targets
    }

    /// The same records with a constant 1 as last feature: a bias that is one more coordinate.
    #[must_use]
    pub fn with_bias(&self) -> Self {
        let mut features = Vec::with_capacity(self.features.len() + self.rows());
        for i in 0..self.rows() {
            features.extend_from_slice(self.row(i));
            features.push(1.0);
        }
        Self { columns: self.columns + 1, features, targets: self.targets.clone() }
    }

    /// The same records with every feature vector scaled down to at most this norm.
    #[must_use]
    pub fn clipped(&self, norm: f64) -> Self {
        let mut clipped = self.clone();
        for row in clipped.features.chunks_exact_mut(self.columns) {
            let length = fedkin_numeric::norm2(row).sqrt();
            if length > norm {
                // A hair below the bound, so that rounding cannot lift the norm above it.
                fedkin_numeric::scale(norm / length * (1.0 - 1e-12), row);
            }
        }
        clipped
    }

    /// A digest of the records: the ledger of a client belongs to it, and a resumed run compares it.
    pub fn fingerprint(&self) -> [u8; 32] {
        let mut hash = blake3::Hasher::new();
        hash.update(&(self.columns as u64).to_le_bytes());
        for value in self.features.iter().chain(&self.targets) {
            hash.update(&value.to_le_bytes());
        }
        *hash.finalize().as_bytes()
    }

    /// A digest of the records of several sets together, in whatever order and however they are divided.
    pub fn fingerprint_of_all(sets: &[&Self]) -> [u8; 32] {
        let mut records: Vec<[u8; 32]> = Vec::new();
        for set in sets {
            for i in 0..set.rows() {
                let mut hash = blake3::Hasher::new();
                for value in set.row(i).iter().chain([&set.targets[i]]) {
                    hash.update(&value.to_le_bytes());
                }
                records.push(*hash.finalize().as_bytes());
            }
        }
        records.sort_unstable();
        let mut hash = blake3::Hasher::new_derive_key("fedkin 2026 records in any order");
        for record in &records {
            hash.update(record);
        }
        *hash.finalize().as_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_digest_of_all_records_does_not_depend_on_how_they_are_divided() {
        let set = |rows: &[(f64, f64)]| {
            let (features, targets) = rows.iter().copied().unzip();
            Dataset::new(1, features, targets).unwrap()
        };
        let all = Dataset::fingerprint_of_all(&[&set(&[(1.0, 2.0), (3.0, 4.0), (5.0, 6.0)])]);
        let parts = [set(&[(5.0, 6.0), (1.0, 2.0)]), set(&[(3.0, 4.0)])];
        assert_eq!(Dataset::fingerprint_of_all(&[&parts[0], &parts[1]]), all);
        for other in [&[(1.0, 2.0), (3.0, 4.0)][..], &[(1.0, 2.0), (3.0, 4.0), (5.0, 7.0)]] {
            assert_ne!(Dataset::fingerprint_of_all(&[&set(other)]), all);
        }
        assert_ne!(Dataset::fingerprint_of_all(&[&set(&[(2.0, 1.0), (3.0, 4.0), (5.0, 6.0)])]), all);
    }

    #[test]
    fn bad_records_are_refused_with_the_row() {
        assert_eq!(Dataset::new(1, vec![], vec![]), Err(DatasetError::Empty));
        assert!(matches!(Dataset::new(2, vec![1.0], vec![1.0]), Err(DatasetError::Ragged { .. })));
        let nan = Dataset::new(2, vec![1.0, 2.0, 3.0, f64::NAN], vec![0.0, 1.0]).unwrap_err();
        assert_eq!(nan.to_string(), "row 2, feature 2: NaN is not a finite number");
        let target = Dataset::new(1, vec![1.0, 2.0], vec![0.0, f64::INFINITY]).unwrap_err();
        assert_eq!(target.to_string(), "row 2: the target inf is not a finite number");
    }

    #[test]
    fn clipping_bounds_the_norm_and_keeps_short_rows() {
        let data = Dataset::new(2, vec![3.0, 4.0, 0.1, 0.2], vec![0.0, 1.0]).unwrap().clipped(1.0);
        assert!(fedkin_numeric::norm2(data.row(0)).sqrt() <= 1.0);
        assert_eq!(data.row(1), [0.1, 0.2]);
    }
}
