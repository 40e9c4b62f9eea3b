//! Why records were refused: what, where, what was expected, what to do.

use fedkin_graph::TopologyError;
use fedkin_learner::DatasetError;
use fedkin_method::FederationError;
use std::fmt;
use std::path::{Path, PathBuf};
use thiserror::Error;

/// A record in a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// Which file.
    pub file: PathBuf,
    /// Which record.
    pub at: At,
}

/// How a file counts its records, from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum At {
    /// A line of a text file, the header being line 1.
    Line(u64),
    /// A row of a file without lines.
    Row(u64),
}

impl fmt::Display for At {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            At::Line(line) => write!(f, "line {line}"),
            At::Row(row) => write!(f, "row {row}"),
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.at {
            At::Line(line) => write!(f, "{}:{line}", self.file.display()),
            At::Row(row) => write!(f, "{}: row {row}", self.file.display()),
        }
    }
}

/// Why a world could not be loaded.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum DataError {
    /// No such source.
    #[error("there is no data source {name:?}{hint}")]
    UnknownSource {
        /// What was asked for.
        name: String,
        /// What may have been meant.
        hint: String,
    },
    /// A key of the config has a value that does not fit the others or the data.
    #[error("`{key}`: {message}")]
    Config {
        /// The key.
        key: String,
        /// What is wrong, what was expected, what to do.
        message: String,
    },
    /// A key of the config cannot be what it should be; the message names the key.
    #[error("{message}")]
    Settings {
        /// Which key, what is wrong, what was expected, what to do.
        message: String,
    },
    /// A file cannot be opened or read.
    #[error("cannot read {}: {source}; check that the path is right and the file is readable", file.display())]
    Io {
        /// Which file.
        file: PathBuf,
        /// What the system says.
        source: std::io::Error,
    },
    /// A public data set is not on this machine.
    #[error(
        "{set} is not found at {}: set `path` in [data] to the folder that holds {expected}, \
         or set the environment variable FEDKIN_DATA to the folder above it",
        looked.display()
    )]
    NoSet {
        /// Which data set.
        set: &'static str,
        /// Where it was looked for.
        looked: PathBuf,
        /// The files it consists of.
        expected: &'static str,
    },
    /// A public data set could not be fetched.
    #[error("{set} was not fetched: {message}")]
    Fetch {
        /// Which data set.
        set: &'static str,
        /// What is wrong, and what to do.
        message: String,
    },
    /// A file is not the one it should be.
    #[error(
        "{set}: {file} has the wrong SHA-256 and was not kept: expected {expected}, found {found}; \
         run the same command again, or take it from another place with --from"
    )]
    Checksum {
        /// Which data set.
        set: String,
        /// Which file.
        file: String,
        /// What was expected.
        expected: String,
        /// What was found.
        found: String,
    },
    /// Something is wrong with a file as a whole.
    #[error("{}: {message}", file.display())]
    File {
        /// Which file.
        file: PathBuf,
        /// What is wrong, what was expected, what to do.
        message: String,
    },
    /// A column that the config names is not in the file.
    #[error("{}: there is no column {column:?}, which `{key}` names{hint}", file.display())]
    NoColumn {
        /// Which file.
        file: PathBuf,
        /// The key that names the column.
        key: String,
        /// The column.
        column: String,
        /// What may have been meant.
        hint: String,
    },
    /// A whole record is wrong.
    #[error("{place}: {message}")]
    Record {
        /// Which record.
        place: Place,
        /// What is wrong, what was expected, what to do.
        message: String,
    },
    /// One cell is wrong.
    #[error("{place}: column {column:?}: {message}")]
    Cell {
        /// Which record.
        place: Place,
        /// Which column.
        column: String,
        /// What is wrong, what was expected, what to do.
        message: String,
    },
    /// A client has two servers, two clusters or two learners.
    #[error(transparent)]
    Conflict(Box<Conflict>),
    /// The graph of servers is in several pieces.
    #[error(
        "the graph of servers is not connected: {pieces}; add an edge between the pieces \
         or use a method that does not exchange between servers"
    )]
    Disconnected {
        /// The components by name.
        pieces: String,
    },
    /// The graph of servers cannot be built.
    #[error("`topology`: {0}")]
    Topology(#[from] TopologyError),
    /// The roster was refused.
    #[error(transparent)]
    Federation(#[from] FederationError),
    /// The arrays of a program are no world.
    #[error(transparent)]
    Arrays(#[from] ArrayError),
    /// The signals of one client are no signals to learn a graph from.
    #[error("client {client:?}: {message}")]
    Client {
        /// Which client.
        client: String,
        /// What is wrong, what was expected, what to do.
        message: String,
    },
    /// The records of one client were refused.
    #[error("client {client:?}: {source}")]
    Records {
        /// Which client.
        client: String,
        /// Why.
        source: DatasetError,
    },
}

/// Two records that say different things about one client.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error(
    "{place}: client {client:?} has {what} {second:?} here but {first:?} in {other}: \
     a client has one {what}; correct one of the records or give them two client names"
)]
pub struct Conflict {
    /// The later record.
    pub place: Place,
    /// The earlier record.
    pub other: At,
    /// Which client.
    pub client: String,
    /// "server", "cluster" or "learner".
    pub what: &'static str,
    /// What the earlier record says.
    pub first: String,
    /// What the later record says.
    pub second: String,
}

impl DataError {
    pub(crate) fn config(key: impl Into<String>, message: impl Into<String>) -> Self {
        Self::Config { key: key.into(), message: message.into() }
    }

    pub(crate) fn client(client: impl Into<String>, message: impl Into<String>) -> Self {
        Self::Client { client: client.into(), message: message.into() }
    }

    pub(crate) fn file(file: &Path, message: impl Into<String>) -> Self {
        Self::File { file: file.to_path_buf(), message: message.into() }
    }

    pub(crate) fn io(file: &Path, source: std::io::Error) -> Self {
        Self::Io { file: file.to_path_buf(), source }
    }
}

/// Why arrays are no world.
#[derive(Debug, Clone, PartialEq, Error)]
#[non_exhaustive]
pub enum ArrayError {
    /// Something was said of a client before there was one.
    #[error("`{what}` belongs to the client before it, and there is none: call `client` first")]
    NoClient {
        /// Which call.
        what: &'static str,
    },
    /// A client, a server or a cluster has an empty name.
    #[error("a {what} has an empty name: give it one")]
    Unnamed {
        /// "client", "server", "cluster" or "learner".
        what: &'static str,
    },
    /// Records without a feature.
    #[error("client {client:?} has records of 0 columns: a record needs at least one feature")]
    NoColumns {
        /// Which client.
        client: String,
    },
    /// Two clients with records of different widths.
    #[error(
        "client {client:?} has records of {columns} columns and client {first:?} of {expected}: all clients have the same \
         features"
    )]
    Columns {
        /// Which client.
        client: String,
        /// How many columns it has.
        columns: usize,
        /// The first client.
        first: String,
        /// How many columns the first client has.
        expected: usize,
    },
    /// Some clients have a server or a cluster and others have none.
    #[error("client {client:?} has no {what} and others have: name one for all clients, or for none")]
    Ungrouped {
        /// Which client.
        client: String,
        /// "server" or "cluster".
        what: &'static str,
    },
    /// An edge names a server that no client stands at.
    #[error("an edge names the server {name:?}, at which no client stands{hint}")]
    UnknownServer {
        /// The name.
        name: String,
        /// What may have been meant.
        hint: String,
    },
    /// A target that is no class.
    #[error("client {client:?}, row {row}: the target {value} is no class: classes are numbered from 0 to {}", classes - 1)]
    Label {
        /// Which client.
        client: String,
        /// Which record, from 1 on.
        row: usize,
        /// Its target.
        value: f64,
        /// How many classes there are.
        classes: u32,
    },
    /// Names of features that do not fit the columns.
    #[error("{names} features are named and records have {columns} columns: name every column once")]
    Features {
        /// How many names were given.
        names: usize,
        /// How many columns there are.
        columns: usize,
    },
    /// Two features of one name.
    #[error("two features are called {0:?}: name every column once")]
    FeatureTwice(String),
    /// A shape that does not fit the columns.
    #[error("a record of the shape {shape:?} has {} numbers and records have {columns} columns", shape.iter().product::<usize>())]
    Shape {
        /// Channels, height and width.
        shape: [usize; 3],
        /// How many columns there are.
        columns: usize,
    },
}
