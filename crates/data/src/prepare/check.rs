//! What signals must be before a graph can be learnt from them.

use crate::Task;
use crate::error::DataError;
use crate::world::Client;
use crate::world::schema::Schema;
use std::path::Path;

/// Refuses a source of signals where something is to be predicted.
pub(crate) fn has_none(task: Task, source: &str) -> Result<(), DataError> {
    match task {
        Task::Signals => Ok(()),
        Task::Regression | Task::Classification | Task::Classes(_) => {
            let message = format!(
                "{source} has signals on the nodes of a graph and nothing to predict: use a model that learns graphs, as in \
                 [model] kind = \"graph\", or another source"
            );
            Err(DataError::config("source", message))
        }
    }
}

/// Refuses a source with targets where graphs are learnt.
pub(crate) fn has_targets(task: Task, source: &str) -> Result<(), DataError> {
    if task != Task::Signals {
        return Ok(());
    }
    let message = format!(
        "{source} has records to predict from, not signals on the nodes of a graph: use another model, or a source of \
         signals such as synthetic.graph-signals, signals or csv"
    );
    Err(DataError::config("source", message))
}

/// Refuses columns that cannot be nodes.
pub(crate) fn columns(file: &Path, schema: &Schema) -> Result<(), DataError> {
    if let Some(feature) = schema.features.iter().find(|feature| !feature.categories.is_empty()) {
        let message = format!(
            "the schema gives {:?} categories, but a node holds one number: leave it out of `features`",
            feature.name
        );
        return Err(DataError::file(file, message));
    }
    if let [only] = schema.features.as_slice() {
        let message = format!(
            "there is one node only, {:?}: a graph needs at least 2 columns besides client, server, cluster and split",
            only.name
        );
        return Err(DataError::file(file, message));
    }
    Ok(())
}

/// Refuses the first client whose nodes are all alike.
pub(crate) fn clients(clients: &[Client]) -> Result<(), DataError> {
    clients
        .iter()
        .try_for_each(|client| varies(&client.name, client.train.columns(), client.train.features()))
}

/// Refuses signals that are constant over the nodes in every record: all distances are zero, and every graph fits.
pub(crate) fn varies(client: &str, columns: usize, features: &[f64]) -> Result<(), DataError> {
    // Standardised copies of one signal differ by rounding.
    let rounding = 1e-13 * features.iter().fold(0.0, |most: f64, value| most.max(value.abs()));
    let level = |row: &[f64]| row.iter().all(|value| (value - row[0]).abs() <= rounding);
    if features.chunks_exact(columns.max(1)).any(|row| !level(row)) {
        return Ok(());
    }
    Err(flat(client))
}

/// The refusal of a client whose distances are all zero.
pub(crate) fn flat(client: impl Into<String>) -> DataError {
    let message = "the signals are constant: in every record all nodes have the same value, so all distances between nodes \
                   are zero and say nothing about a graph; check the file, leave the client out, or do not `standardise` \
                   what then becomes the same";
    DataError::client(client, message)
}
