//! Deliberate mistakes that the fault simulator must notice. They exist only where
//! the compiler gets `--cfg fedkin_mutants`, which `scripts/test` does once, into a target folder of its own.
#![cfg_attr(not(fedkin_mutants), allow(unreachable_pub, dead_code))]
// One switch per thread, set by the fault simulator around a whole schedule.
#![allow(clippy::disallowed_types, clippy::disallowed_methods)]

/// A mistake inside a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mutant {
    /// A client that refused and is asked the same again draws again, instead of repeating its refusal.
    RedrawOnRefusal,
    /// A second message for the same step is dropped or answered by its number alone, whatever it says.
    DedupByKey,
    /// A server folds answers as they come.
    ArrivalOrder,
    /// A client's noise does not depend on what it was asked.
    NoiseWithoutAsk,
    /// A server takes every refusal for a spent budget.
    RefusalAsBudget,
    /// A client tells its server why it refuses, whatever the run demands.
    ReasonLeaves,
    /// A server whose run cannot go on does so all the same.
    GoesOn,
    /// A server takes an answer of a later step for one of its own.
    AnyStep,
    /// With deadlines, a server ends the run because one client or one neighbour says so.
    HeedsOne,
}

#[cfg(fedkin_mutants)]
static ACTIVE: std::sync::Mutex<Vec<(std::thread::ThreadId, Mutant)>> = std::sync::Mutex::new(Vec::new());

/// Runs `body` with nodes that make this mistake, on this thread.
#[cfg(fedkin_mutants)]
pub fn with<T>(mutant: Option<Mutant>, body: impl FnOnce() -> T) -> T {
    struct Off(Option<std::thread::ThreadId>);
    impl Drop for Off {
        fn drop(&mut self) {
            let mut active = ACTIVE.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            active.retain(|(thread, _)| Some(*thread) != self.0);
        }
    }
    let thread = std::thread::current().id();
    let _off = Off(mutant.map(|_| thread));
    if let Some(mutant) = mutant {
        ACTIVE.lock().unwrap_or_else(std::sync::PoisonError::into_inner).push((thread, mutant));
    }
    body()
}

/// Whether nodes make this mistake now.
#[cfg(fedkin_mutants)]
pub fn active(mutant: Mutant) -> bool {
    let active = ACTIVE.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    !active.is_empty() && active.contains(&(std::thread::current().id(), mutant))
}

/// Runs `body`. A mistake cannot be made: this build has none.
#[cfg(not(fedkin_mutants))]
pub fn with<T>(mutant: Option<Mutant>, body: impl FnOnce() -> T) -> T {
    assert!(mutant.is_none(), "{mutant:?} needs a build with --cfg fedkin_mutants");
    body()
}

/// Never.
#[cfg(not(fedkin_mutants))]
pub const fn active(_: Mutant) -> bool {
    false
}
