//! Federations from files and from synthetic laws.

use crate::{Error, Federation};
use fedkin_data::{DataError, Registry, Request, Source, Task, TopologySettings, native};
use fedkin_learner::Output;
use std::path::Path;

/// Loads or draws the records of a data source ([`data::sources`](crate::data::sources) has those that Fedkin brings).
///
/// `output` is what the learner predicts, so that targets can be checked when they are read. Relative paths start at the
/// working directory. Servers that are drawn get a random graph; [`load_over`] takes another.
///
/// ```
/// use fedkin::data::sources::ClusteredRegression;
/// use fedkin::learner::Output;
///
/// let law = ClusteredRegression { dimension: 4, ..ClusteredRegression::default() };
/// let federation = fedkin::load(&law, Output::Number, 7)?;
/// assert_eq!((federation.train.len(), federation.schema.columns()), (150, 4));
/// # Ok::<(), fedkin::Error>(())
/// ```
pub fn load<S: Source>(source: &S, output: Output, seed: u64) -> Result<Federation, Error> {
    load_over(source, &TopologySettings::default(), output, seed)
}

/// The same over a graph of servers, as `[topology]` describes it.
pub fn load_over<S: Source>(
    source: &S,
    topology: &TopologySettings,
    output: Output,
    seed: u64,
) -> Result<Federation, Error> {
    let registry: &Registry = native();
    let wrong = |problems: Vec<fedkin_settings::Problem>| {
        let all: Vec<String> = problems.iter().map(ToString::to_string).collect();
        DataError::Config { key: S::NAME.into(), message: all.join("; ") }
    };
    let values = source.validated().map_err(wrong)?;
    let base = Path::new("");
    let task = match output {
        Output::Number => Task::Regression,
        Output::Probability => Task::Classification,
        Output::Classes(classes) => Task::Classes(classes as u32),
        Output::Graph => Task::Signals,
    };
    let topology = topology.spec(base)?;
    let (values, require_connected) = (&values, false);
    let request = Request {
        registry,
        source: S::NAME,
        values,
        base,
        topology: &topology,
        task,
        seed,
        require_connected,
    };
    Ok(source.load(&request)?)
}
