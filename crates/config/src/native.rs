//! The tables that come with Fedkin, for the tests of this crate.

use super::{RowSummary, Tables};
use fedkin_data::GRAPH_PARAMS;

/// What a config may name without rows of a program's own.
pub(crate) fn tables() -> Tables<'static> {
    let (methods, learners, data) = (
        fedkin_method::methods::native(),
        fedkin_learner::registry::native(),
        fedkin_data::Registry::native(),
    );
    let list = |rows: Vec<RowSummary<'static>>| -> &'static [RowSummary<'static>] { rows.leak() };
    Tables {
        sources: list(
            data.sources.iter().map(|row| (row.name, row.summary, &*data.params(row).leak())).collect(),
        ),
        algorithms: list(methods.iter().map(|row| (row.name, row.summary, row.params)).collect()),
        models: list(learners.iter().map(|row| (row.name, row.summary, row.params)).collect()),
        topology: GRAPH_PARAMS,
    }
}
