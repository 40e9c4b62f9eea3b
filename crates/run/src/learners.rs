//! What each client of a run fits: `[model]`, or one of the tables `[learner.NAME]`.

use crate::registry::{Brought, Registry};
use fedkin_config::Config;
use fedkin_data::Task;
use fedkin_learner::Output;
use fedkin_method::{DEFAULT, Families};
use fedkin_settings::Values;
use std::sync::Arc;

/// The names of learners that records or a roster bring, by client id; nothing where they bring none.
pub(crate) type Named<'a> = Option<&'a [Option<String>]>;

/// What the clients of a config fit, `[model]` first and then the tables by name; the number of classes is the config's, or
/// the one its data source knows.
pub(crate) fn families_of(
    registry: &Registry,
    config: &Config,
    brought: &Brought,
) -> Result<Families, String> {
    let known = registry.data().about(&config.data_source, &config.data).known;
    let build = |place: &str, kind: &str, values: &Values| {
        if let Some(family) = brought.get(place) {
            return Ok(vec![Arc::clone(family)]);
        }
        let row = registry.core().learners.find(kind).map_err(|error| error.to_string())?;
        row.build(values, known)
    };
    let first = build(DEFAULT, &config.model_kind, &config.model)?;
    let mut all = Families::several(first).ok_or("the learner is empty")?;
    for (name, table) in &config.learners {
        if all.count() > 1 && all.placed().all(|(place, _)| place == DEFAULT) {
            return Err(format!(
                "model.kind = {:?} deals its kinds to all clients in turn, and [learner.{name}] gives some of them something \
                 else: leave the tables out; or write each kind as a table [learner.NAME] with `clients` or `clusters`, and \
                 set model.kind to what all others fit",
                config.model_kind
            ));
        }
        let place = format!("learner.{name}");
        // What a row says of its keys is said of those in `[model]`.
        let here = |message: String| {
            format!("{place}: {}", message.replace(&format!("`{DEFAULT}."), &format!("`{place}.")))
        };
        let built = build(name, &table.kind, &table.values).map_err(here)?;
        let [family] = &built[..] else {
            return Err(format!(
                "{place}.kind = {:?} is several kinds at once: write one table [learner.NAME] for each of them",
                table.kind
            ));
        };
        all = all.and(name, Arc::clone(family));
    }
    if all.count() > 1 && all.all().any(|family| family.output() == Output::Graph) {
        return Err("graphs are learnt by all clients alike: with a learner of graphs as model.kind leave the tables \
                    [learner.NAME] out, and name none in them"
            .into());
    }
    Ok(all)
}

/// What the targets of a run are. Where learners differ in that they are read as numbers, and each client's are compared
/// with what its own learner takes.
pub(crate) fn task_of(families: &Families) -> Task {
    let first = families.first().output();
    if families.all().any(|family| family.output().classes() != first.classes()) {
        return Task::Regression;
    }
    match first {
        // Squared differences have no target either, and are read as any other table.
        Output::Graph => Task::Signals,
        Output::Classes(classes) => Task::Classes(classes as u32),
        Output::Probability => Task::Classification,
        Output::Number => Task::Regression,
    }
}
