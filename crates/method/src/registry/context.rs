//! What a method is built with.

use super::facts;
use super::tables::Registry;
use crate::families::Families;
use crate::methods::Infer;
use crate::robust::{Liars, Robust};
use fedkin_privacy::{Privacy, Protection};
use std::sync::Arc;

/// What a constructor gets beside the method's own parameters.
#[derive(Debug, Clone)]
pub struct Context {
    /// What the clients fit.
    pub families: Families,
    /// The privacy the run asks for.
    pub privacy: Privacy,
    /// How clusters are found while models are learnt; absent where the roster knows them.
    pub infer: Option<Infer>,
    /// How uploads are put together.
    pub robust: Robust,
    /// Who lies, in a simulation that asks what a lie does.
    pub liars: Option<Liars>,
    /// All that a config may name: for messages that say what would do, and for rows that a program has added.
    pub registry: Arc<Registry>,
}

impl Context {
    /// With what comes with Fedkin, and clusters that the roster knows.
    pub fn new(families: Families, privacy: Privacy) -> Self {
        let registry = Arc::new(Registry::native());
        Self { families, privacy, infer: None, robust: Robust::default(), liars: None, registry }
    }

    /// The methods whose uploads these mechanisms cover, for messages that say what would do.
    pub(crate) fn covered(&self, by: &[Protection]) -> String {
        facts::covered(&self.registry.methods, by)
    }
}

/// Why a method that learns graphs refuses what has none.
pub(crate) const NO_GRAPH: &str = "this learns graphs: set model.kind = \"graph\"";

/// Why a method that fits linear models refuses the mechanisms of those that learn graphs.
pub(crate) fn privacy_of_graphs(name: &str, takes: Protection) -> String {
    format!(
        "privacy.mechanism = \"one-shot\" and \"paper\" are for methods that learn graphs; {name} takes {:?}",
        takes.word()
    )
}
