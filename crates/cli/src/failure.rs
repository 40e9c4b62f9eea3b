//! Why a command did not end well, and its exit code.

use fedkin::rooms::data::DataError;
use fedkin::rooms::run::Error;
use std::{fmt, io};

/// The exit code of a defect.
pub(crate) const UNEXPECTED: u8 = 1;
/// The exit code of what the user can put right.
const USAGE: u8 = 2;
/// The exit code of a run that cannot go on.
pub(crate) const STOPPED: u8 = 4;
/// The exit code of a refuted claim of privacy.
const REFUTED: u8 = 3;

/// Anything that ends a command early.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The library said no.
    Library(Error),
    /// Something the user can put right.
    Usage(String),
    /// An audit refuted the claim; what it found was shown.
    Refuted(String),
    /// Stopped by the user; the text says how to go on.
    Interrupted(String),
    /// A defect.
    Unexpected(String),
    /// Whoever read standard output has gone: no error, as with any other command before `| head`.
    Closed,
}

impl Failure {
    /// What the process ends with.
    pub(crate) fn exit_code(&self) -> u8 {
        match self {
            Failure::Library(error) => error.exit_code(),
            Failure::Usage(_) => USAGE,
            Failure::Refuted(_) => REFUTED,
            Failure::Interrupted(_) => 130,
            Failure::Unexpected(_) => UNEXPECTED,
            Failure::Closed => 0,
        }
    }

    /// What happened to standard output.
    pub(crate) fn writing(error: &io::Error) -> Self {
        if error.kind() == io::ErrorKind::BrokenPipe {
            Failure::Closed
        } else {
            Failure::Usage(format!("cannot write to standard output: {error}"))
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Library(error) => write!(f, "{error}"),
            Failure::Usage(text) | Failure::Refuted(text) | Failure::Interrupted(text) => write!(f, "{text}"),
            Failure::Unexpected(text) => write!(f, "{text}; this is a defect of Fedkin, please report it"),
            Failure::Closed => Ok(()),
        }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Failure::Library(error)
    }
}

impl From<DataError> for Failure {
    fn from(error: DataError) -> Self {
        Failure::Library(error.into())
    }
}
