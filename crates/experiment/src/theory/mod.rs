//! What the papers prove beside what was measured: `theory = true` in `[paper]`.

mod fedgl;
mod pgfl;

use crate::config::{Override, Parsed};
use crate::error::Error;
use crate::registry::Registry;
use crate::repeat::Control;
use crate::report::Chart;
use fedkin_core::params::Value;
use std::path::Path;

/// Figures and remarks on what theory says.
#[derive(Debug, Clone, Default)]
pub struct Theory {
    /// Figures.
    pub charts: Vec<Chart>,
    /// Remarks.
    pub notes: Vec<String>,
}

fn set(key: &str, value: Value) -> Override {
    Override { key: key.into(), value }
}

/// Runs the panel of the paper that `algorithm` is from, on the config in `parsed`.
pub(crate) fn panel(
    registry: &Registry,
    algorithm: &str,
    parsed: &Parsed,
    base: &Path,
    overrides: &[Override],
    control: &Control<'_>,
) -> Result<Theory, Error> {
    if algorithm == "fedgl" {
        fedgl::panel(registry, parsed, base, overrides, control)
    } else {
        pgfl::panel(registry, parsed, base, overrides, control)
    }
}
