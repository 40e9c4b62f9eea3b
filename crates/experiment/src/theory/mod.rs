//! What the papers prove beside what was measured: `theory = true` in `[paper]`.

mod fedgl;
mod pgfl;

use fedkin_config::{Config, Override, Parsed};
use fedkin_report::Chart;
use fedkin_run::{Control, Error, Registry};
use fedkin_settings::Value;
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

/// Runs a panel on the config in the parsed text.
pub(crate) type Panel = fn(&Registry, &Parsed, &Path, &[Override], &Control<'_>) -> Result<Theory, Error>;

/// The methods with a panel: what their papers prove is computed in a file of its own for each.
const PANELS: [(&str, Panel); 2] = [pgfl::PANEL, fedgl::PANEL];

/// The panel that a config asks for, which is that of its method.
pub(crate) fn wanted(config: &Config) -> Result<Option<Panel>, Error> {
    if !config.paper.as_ref().is_some_and(|paper| paper.theory) {
        return Ok(None);
    }
    let found = PANELS.iter().find(|(method, _)| *method == config.algorithm);
    found.map(|(_, panel)| Some(*panel)).ok_or_else(|| {
        let known: Vec<&str> = PANELS.iter().map(|(method, _)| *method).collect();
        Error::Usage(format!(
            "paper.theory = true: there is no theory panel for {}, only for {}: leave the key out, or set algorithm.name",
            config.algorithm,
            known.join(" and ")
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_panel_is_of_a_method() {
        let registry = Registry::native();
        for (method, _) in PANELS {
            assert!(registry.methods().get(method).is_some(), "{method}");
        }
    }
}
