//! Why an experiment did not end well, and with which exit code.

use crate::artifacts::ArtifactError;
use crate::config::ConfigError;
use fedkin_core::Federation;
use fedkin_data::DataError;
use fedkin_runtime::Fault;
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
    Fault(#[from] Fault),
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
    Untrue(String),
    /// A request that makes no sense.
    #[error("{0}")]
    Usage(String),
    /// Stopped by the user; the same command goes on.
    #[error("interrupted at {0}")]
    Interrupted(String),
}

/// The same fault with the client's name in place of its number: the method that stopped knows no names.
pub(crate) fn naming(fault: Fault, federation: &Federation) -> Fault {
    match fault {
        Fault::Stopped { round, client: Some(id), reason } if (id as usize) < federation.members().len() => {
            let name = format!("client {:?}", federation.client_name(id));
            let reason = reason.replace(&format!("client number {id}"), &name);
            Fault::Stopped { round, client: Some(id), reason }
        }
        other => other,
    }
}

/// The client that a reason calls by its number: nodes leave words behind, and no more.
pub(crate) fn spoken_of(reason: &str) -> Option<u32> {
    let (_, rest) = reason.split_once("client number ")?;
    let digits = rest.chars().take_while(char::is_ascii_digit).count();
    rest[..digits].parse().ok()
}

impl Error {
    /// 2: something the user can put right. 3: a privacy claim does not hold. 4: the method diverged. 130: interrupted.
    pub fn exit_code(&self) -> u8 {
        match self {
            Error::Fault(Fault::Diverged { .. } | Fault::Stopped { .. }) => 4,
            Error::Untrue(_) => 3,
            Error::Interrupted(_) => 130,
            _ => 2,
        }
    }
}
