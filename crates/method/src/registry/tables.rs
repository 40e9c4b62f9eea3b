//! What a run chooses from by name: methods, learners, denoisers. A program may add rows of its own.
//!
//! Mechanisms of privacy are no rows: what protects a client is not open to whoever writes a config or a program.

use crate::registry::Methods;
use fedkin_graph::denoise::Denoisers;
use fedkin_learner::Learners;

/// The open tables of the engine.
#[derive(Debug, Clone)]
pub struct Registry {
    /// What `algorithm.name` may name.
    pub methods: Methods,
    /// What `model.kind` may name.
    pub learners: Learners,
    /// What `algorithm.filter` of `FedPnP` may name.
    pub denoisers: Denoisers,
}

impl Registry {
    /// What comes with Fedkin.
    pub fn native() -> Self {
        Self {
            methods: crate::registry::native(),
            learners: fedkin_learner::registry::native(),
            denoisers: fedkin_graph::denoise::native(),
        }
    }
}

impl Default for Registry {
    fn default() -> Self {
        Self::native()
    }
}
