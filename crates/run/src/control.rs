//! How the outside watches and stops work.

use std::sync::atomic::{AtomicBool, Ordering};

/// How the outside watches and stops work.
pub struct Control<'a> {
    /// Set by the outside to stop after the current round.
    pub stop: &'a AtomicBool,
    /// Called after every round, from any thread.
    pub tick: &'a (dyn Fn() + Sync),
}

impl Control<'_> {
    /// Whether the work is to stop.
    pub fn stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }
}
