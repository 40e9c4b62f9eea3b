//! How records without clients are dealt out to clients: label skew, shards, sizes, clusters.
//!
//! A partitioner sees only the labels and gives each client a list of record numbers; no record is held twice. What it
//! cannot satisfy is an error that names the numbers.

mod deal;
mod dirichlet;
mod laws;
mod skew;

pub use deal::{Deal, Pool, Twist};
pub use laws::{By, Dirichlet, Iid, Natural, Permutation, Quantity, Rotation, Shards, Size};

use crate::error::DataError;
use crate::options::chosen;
use fedkin_settings::{Named, Param, Settings, Values};

/// The key of a source that names a partitioner.
pub(crate) const KEY: &str = "partition";

/// Deals records to clients.
pub trait Partition: std::fmt::Debug + Send + Sync {
    /// The records of each client. The same seed gives the same records.
    fn deal(&self, pool: Pool<'_>, seed: u64) -> Result<Deal, DataError>;
}

/// One way to deal records out: its settings, and what it does with them.
pub trait Partitioner: Settings + Partition {
    /// The word after `partition =`.
    const NAME: &'static str;
    /// What it does, in one sentence.
    const SUMMARY: &'static str;
}

/// One way to deal records out.
#[derive(Debug, Clone, Copy)]
pub struct PartitionRow {
    /// The word after `partition =`.
    pub name: &'static str,
    /// What it does, in one sentence.
    pub summary: &'static str,
    /// The keys it understands.
    pub params: &'static [Param],
    pub(crate) build: fn(&Values) -> Result<Box<dyn Partition>, DataError>,
}

impl PartitionRow {
    /// The row of a partitioner.
    pub const fn of<P: Partitioner>() -> Self {
        Self {
            name: P::NAME,
            summary: P::SUMMARY,
            params: P::PARAMS,
            build: |values| Ok(Box::new(chosen::<P>(values)?)),
        }
    }
}

impl Named for PartitionRow {
    fn name(&self) -> &str {
        self.name
    }
}

/// All of them: the config check, the messages and the guide come from this table.
pub(crate) const ROWS: &[PartitionRow] = &[
    PartitionRow::of::<Natural>(),
    PartitionRow::of::<Iid>(),
    PartitionRow::of::<Dirichlet>(),
    PartitionRow::of::<Shards>(),
    PartitionRow::of::<Quantity>(),
    PartitionRow::of::<Rotation>(),
    PartitionRow::of::<Permutation>(),
];

#[cfg(test)]
mod tests;
