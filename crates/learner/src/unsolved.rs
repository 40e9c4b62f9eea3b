//! Why a problem has no answer.

use thiserror::Error;

/// A problem without a unique solution, or one that Newton's method did not solve.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("the client's problem was not solved: {0}")]
pub struct Unsolved(pub &'static str);
