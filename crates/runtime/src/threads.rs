//! The threads of a process, for the machines of the core.

use fedkin_method::round::{Job, Pool};
use rayon::prelude::*;

/// The pool of rayon that the caller is in: all cores, or those of `ThreadPool::install`.
#[derive(Debug, Clone, Copy, Default)]
pub struct Threads;

impl Pool for Threads {
    fn threads(&self) -> usize {
        rayon::current_num_threads()
    }
    fn run(&self, jobs: Vec<Job<'_>>) {
        jobs.into_par_iter().with_max_len(1).for_each(|job| job());
    }
}
