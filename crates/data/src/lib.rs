//! Where the records come from: synthetic worlds, image sets, and a user's own tables.
//!
//! [`load`] turns the `[data]` and `[topology]` tables of a config into a [`World`]. A [`Registry`] lists what can stand
//! behind `source` and `partition`, and every key each one understands; a program adds its own rows. A world of arrays comes
//! from [`World::builder`]. [`inspect()`] summarises a file.
//!
//! Nothing here panics, whatever a file holds: every refusal is a [`DataError`] that says where and what to do.
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stderr))]

pub mod atomic;
mod error;
mod formats;
mod images;
mod options;
pub mod partition;
mod prepare;
mod public;
mod registry;
mod signals;
pub mod sources;
mod synthetic;
mod tabular;
mod topology;
mod world;

pub use error::{ArrayError, At, Conflict, DataError, Place};
pub use formats::inspect::{ColumnSummary, Counts, Format, Inspection, Options, inspect};
pub use formats::{array, csv, idx, npz, parquet, table};
pub use partition::PartitionRow;
pub use prepare::parallel::InOrder;
pub use public::catalogue;
pub use public::fetch::{FetchNews, FetchRequest, Listener, fetch};
pub use registry::{About, ReadTable, Registry, Source, SourceRow, Variants, load};
pub use signals::{
    Signals, SignalsOptions, distances_world, holds_distances, node_names, pair_names, read_distances,
    read_signals, read_signals_by_client, read_signals_of, signals_world,
};
pub use sources::native;
pub use tabular::part::{Constant, Part, PartClient, constants, declared, load_part};
pub use tabular::records::{Records, read_records};
pub use topology::{
    Drawn, GRAPH_PARAMS, GraphKind, Shape, TopologySettings, TopologySpec, build as build_topology,
    topology_spec,
};
pub use world::builder::WorldBuilder;
pub use world::labels::{ClientLabels, LabelCounts};
pub use world::schema::{Feature, Schema};
pub use world::{Nodes, Replaced, Truth, World};

use fedkin_settings::Values;
use std::path::Path;

/// What the targets are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Task {
    /// Any finite number.
    Regression,
    /// Exactly 0 or 1.
    Classification,
    /// The number of a class, from 0 to one less than this.
    Classes(u32),
    /// There are none: the records are signals, and the columns are the nodes of a graph to be learnt. Targets are 0.
    Signals,
}

/// What to load.
#[derive(Debug, Clone, Copy)]
pub struct Request<'a> {
    /// Where sources and partitioners are looked up.
    pub registry: &'a Registry,
    /// The name of a [`Source`].
    pub source: &'a str,
    /// The `[data]` table, checked against [`Registry::params`] of the source.
    pub values: &'a Values,
    /// The folder of the config: relative paths start there.
    pub base: &'a Path,
    /// The graph of servers.
    pub topology: &'a TopologySpec,
    /// What the targets must be.
    pub task: Task,
    /// The seed of this repeat.
    pub seed: u64,
    /// Whether a graph in several pieces is an error.
    pub require_connected: bool,
}
