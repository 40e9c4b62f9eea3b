//! What may go wrong in parallel work.

use rayon::prelude::*;

/// Parallel work that may fail.
pub trait InOrder<T, E> {
    /// All results, or the first failure by place. Rayon's own collecting gives the first by time, and so a message that
    /// names another client or file from one run to the next. All of the work is done, whatever fails.
    ///
    /// # Errors
    /// The failure with the lowest place.
    fn in_order(self) -> Result<Vec<T>, E>;
}

impl<I: ParallelIterator<Item = Result<T, E>>, T: Send, E: Send> InOrder<T, E> for I {
    fn in_order(self) -> Result<Vec<T>, E> {
        let all: Vec<Result<T, E>> = self.collect();
        all.into_iter().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::time::{Duration, Instant};

    #[test]
    fn the_first_failure_by_place_is_named_though_a_later_one_comes_sooner() {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(2).build().unwrap();
        for _ in 0..20 {
            let (failed, begin) = (AtomicBool::new(false), Instant::now());
            let one = |place: usize| -> Result<usize, usize> {
                if place == 0 {
                    // Until the other has failed, if it is at work already.
                    while !failed.load(Ordering::SeqCst) && begin.elapsed() < Duration::from_millis(20) {
                        std::thread::yield_now();
                    }
                } else {
                    failed.store(true, Ordering::SeqCst);
                }
                Err(place)
            };
            assert_eq!(pool.install(|| (0..2usize).into_par_iter().map(one).in_order()), Err(0));
        }
        assert_eq!((0..5usize).into_par_iter().map(Ok::<_, ()>).in_order(), Ok(vec![0, 1, 2, 3, 4]));
    }
}
