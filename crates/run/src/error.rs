//! Why an experiment did not end well, and with which exit code.

use crate::artifacts::ArtifactError;
use fedkin_config::ConfigError;
use fedkin_data::DataError;
use fedkin_method::Federation;
use fedkin_method::round::{RunFault, Stopped};
use thiserror::Error;

/// Anything that stops an experiment.
#[derive(Debug, Error)]
pub enum Error {
    /// The config is wrong; every problem is listed with its place.
    #[error("{0}")]
    Config(#[from] ConfigError),
    /// Parts of the config do not fit together.
    #[error("{place}: {message}")]
    Conflict {
        /// The file.
        place: String,
        /// What does not fit.
        message: String,
    },
    /// The data cannot be used.
    #[error("{0}")]
    Data(#[from] DataError),
    /// A file of the run directory cannot be read or written.
    #[error("{0}")]
    Artifact(#[from] ArtifactError),
    /// The run cannot start or go on.
    #[error("{0}")]
    Fault(#[from] RunFault),
    /// The run cannot go on, with the sentence that says so by name.
    #[error("{sentence}")]
    Stopped {
        /// Where and why.
        stopped: Box<Stopped>,
        /// The same for people.
        sentence: String,
    },
    /// What a node was given does not fit together.
    #[error("{place}: {message}")]
    Deploy {
        /// The file.
        place: String,
        /// What is wrong and what to do.
        message: String,
    },
    /// A privacy claim does not hold.
    #[error("{0}")]
    ClaimFailed(String),
    /// A request that makes no sense.
    #[error("{0}")]
    Usage(String),
    /// Stopped by the user; the same command goes on.
    #[error("interrupted at {0}")]
    Interrupted(String),
}

impl Error {
    /// A fault of a run, told with the names of the federation as the method sees it.
    pub(crate) fn of(fault: RunFault, federation: &Federation) -> Self {
        match fault {
            RunFault::Stopped(stopped) => Self::stopped(stopped, federation),
            other => Error::Fault(other),
        }
    }

    /// A run that cannot go on, told with the names of the federation as the method sees it.
    pub fn stopped(stopped: Stopped, federation: &Federation) -> Self {
        let client = |id: u32| {
            let known = (id as usize) < federation.members().len();
            if known { format!("{:?}", federation.client_name(id)) } else { format!("number {id}") }
        };
        let names = federation.server_names();
        let server =
            |id: u32| names.get(id as usize).filter(|_| names.len() > 1).map(|name| format!("{name:?}"));
        let sentence = stopped.sentence(client, server);
        Error::Stopped { stopped: Box::new(stopped), sentence }
    }

    /// Of several stops of one run the least is its reason; whatever is no stop comes first.
    pub fn stop_order(&self) -> Option<(u32, u32)> {
        match self {
            Error::Stopped { stopped, .. } => Some((stopped.stop.step, stopped.stop.server)),
            _ => None,
        }
    }

    /// 2: something the user can put right. 3: a privacy claim does not hold. 4: the run cannot go on: the method diverged, or
    /// nobody answers. 130: interrupted.
    pub fn exit_code(&self) -> u8 {
        match self {
            Error::Stopped { .. } | Error::Fault(RunFault::Stopped(_)) => 4,
            Error::ClaimFailed(_) => 3,
            Error::Interrupted(_) => 130,
            _ => 2,
        }
    }
}
