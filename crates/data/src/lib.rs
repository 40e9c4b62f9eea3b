//! Where the records come from: synthetic worlds, image sets, and a user's own tables.
//!
//! [`load`] turns the `[data]` and `[topology]` tables of a config into a [`World`]. [`SOURCES`] lists what
//! can stand behind `source`, and every key each one understands. [`inspect()`] summarises a file.
//!
//! Nothing here panics, whatever a file holds: every refusal is a [`DataError`] that says where and what to do.
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stderr))]

pub mod array;
pub mod catalogue;
mod cifar;
pub mod csv;
mod encode;
mod error;
mod fetch;
mod functions;
mod har;
mod harbox;
mod heart;
pub mod idx;
mod image_sets;
mod images;
mod impute;
mod inspect;
mod labelled;
mod labels;
mod members;
pub mod npz;
mod options;
mod parallel;
pub mod parquet;
mod part;
mod partition;
mod places;
mod records;
mod roster;
mod schema;
mod signals;
mod split;
mod standardise;
mod synthetic;
pub mod table;
mod tabular;
mod topology;
mod world;

pub use error::{At, Conflict, DataError, Place};
pub use fetch::{FetchNews, FetchRequest, Listener, catalogued, fetch};
pub use inspect::{ColumnSummary, Counts, Format, Inspection, Options, inspect};
pub use labels::{ClientLabels, LabelCounts};
pub use parallel::InOrder;
pub use part::{Constant, Part, PartClient, constants, declared, load_part};
pub use partition::{PARTITIONERS, Partitioner};
pub use records::{Records, read_records};
pub use schema::{Feature, Schema};
pub use signals::{
    Signals, SignalsOptions, distances_world, holds_distances, node_names, pair_names, read_distances,
    read_signals, read_signals_by_client, read_signals_of, signals_world,
};
pub use topology::{GRAPH_PARAMS, GraphKind, TopologySpec, build as build_topology, topology_spec};
pub use world::{Nodes, Replaced, Truth, World};

use fedkin_core::model::Known;
use fedkin_core::params::{Param, Values, suggest};
use std::path::Path;

/// One place records can come from.
#[derive(Debug, Clone, Copy)]
pub struct Source {
    /// The word after `source =`.
    pub name: &'static str,
    /// What it is, in one sentence.
    pub summary: &'static str,
    /// Every key allowed in `[data]` next to `source`.
    pub params: &'static [Param],
}

/// All sources: config validation, command-line help and the reference come from this table.
pub const SOURCES: &[Source] = &[
    Source {
        name: synthetic::NAME,
        summary: "clustered linear regression with known models, as in the PGFL and GFedMtl papers",
        params: synthetic::PARAMS,
    },
    Source {
        name: functions::NAME,
        summary: "curved functions of a few features, one per cluster, with few records per client; numbers or classes",
        params: functions::PARAMS,
    },
    Source {
        name: synthetic::shifted::NAME,
        summary: "classes by multinomial logistic models that clusters share; clusters stand apart in feature space",
        params: synthetic::shifted::PARAMS,
    },
    Source {
        name: "mnist",
        summary: "handwritten digits: binary tasks, one per cluster, or all 10 classes dealt to clients by a law",
        params: images::PARAMS,
    },
    Source {
        name: "organamnist",
        summary: "CT images of abdominal organs: binary tasks, one per cluster, or all 11 classes dealt to clients by a law",
        params: images::PARAMS,
    },
    Source {
        name: "cifar10",
        summary: "colour images of animals and vehicles: binary tasks, one per cluster, or all 10 classes dealt to clients by a law",
        params: images::PARAMS,
    },
    Source {
        name: "csv",
        summary: "your own records in a CSV file with a header line (gzip is fine)",
        params: tabular::PARAMS,
    },
    Source { name: "parquet", summary: "your own records in a Parquet file", params: tabular::PARAMS },
    Source {
        name: har::NAME,
        summary: "six activities of thirty people from a phone's motion sensors, one person per client",
        params: har::PARAMS,
    },
    Source {
        name: harbox::NAME,
        summary: "five activities of up to 121 people from the motion sensors of their own phones, one person per client",
        params: harbox::PARAMS,
    },
    Source {
        name: heart::NAME,
        summary: "heart disease in patients of four hospitals, one hospital per client; missing values are filled in there",
        params: heart::PARAMS,
    },
    Source {
        name: "signals",
        summary: "your own signals to learn graphs from, one file per client: CSV, Parquet, NPZ or AFNI .1D",
        params: signals::source::PARAMS,
    },
    Source {
        name: signals::synthetic::NAME,
        summary: "smooth signals on known graphs that share a consensus graph, as in the FedGL paper",
        params: signals::synthetic::PARAMS,
    },
    Source {
        name: "students",
        summary: "smooth signals on the social networks of 32 students of Ljubljana, one network per client",
        params: signals::students::PARAMS,
    },
    Source {
        name: "coil20",
        summary: "images of turning objects as nodes, pixels as signals, one range of angles per client",
        params: signals::coil20::PARAMS,
    },
    Source {
        name: "abide",
        summary: "activity of brain regions of people with and without autism, one person per client",
        params: signals::abide::PARAMS,
    },
];

/// The source of this name, or an error that lists the known ones.
pub fn source(name: &str) -> Result<&'static Source, DataError> {
    SOURCES.iter().find(|source| source.name == name).ok_or_else(|| DataError::UnknownSource {
        name: name.to_string(),
        hint: suggest(name, SOURCES.iter().map(|source| source.name)),
    })
}

/// What a source says of its records without looking at them.
pub fn known(source: &str, values: &Values) -> Known {
    if let Some(set) = image_sets::set(source).filter(|_| images::by_class(values)) {
        return Known { classes: Some(set.classes.len()), shape: Some(set.shape()) };
    }
    match source {
        har::NAME => Known { classes: Some(har::CLASSES), shape: Some([har::columns(values), 1, 1]) },
        harbox::NAME => Known { classes: Some(harbox::CLASSES), shape: Some([harbox::COLUMNS, 1, 1]) },
        heart::NAME => Known { classes: Some(2), shape: None },
        synthetic::shifted::NAME => {
            let (classes, columns) = synthetic::shifted::size(values);
            Known { classes: Some(classes), shape: Some([columns, 1, 1]) }
        }
        _ => Known::default(),
    }
}

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
    /// The name of a [`Source`].
    pub source: &'a str,
    /// The `[data]` table, checked against the source's `params`.
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

/// Loads or draws the world a config asks for.
pub fn load(request: &Request<'_>) -> Result<World, DataError> {
    match source(request.source)?.name {
        functions::NAME => functions::load(request),
        synthetic::shifted::NAME => synthetic::shifted::load(request),
        "mnist" => images::load(request, &image_sets::MNIST),
        "organamnist" => images::load(request, &image_sets::ORGANS),
        "cifar10" => images::load(request, &image_sets::CIFAR),
        "csv" => tabular::load(request, csv::read),
        "parquet" => tabular::load(request, parquet::read),
        har::NAME => har::load(request),
        harbox::NAME => harbox::load(request),
        heart::NAME => heart::load(request),
        "signals" => signals::source::load(request),
        signals::synthetic::NAME => signals::synthetic::load(request),
        "students" => signals::students::load(request),
        "coil20" => signals::coil20::load(request),
        "abide" => signals::abide::load(request),
        _ => synthetic::load(request),
    }
}
