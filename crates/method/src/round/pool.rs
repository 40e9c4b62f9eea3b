//! Work that may be done at once. The core has no threads of its own: who runs it brings a [`Pool`].

/// A piece of work that needs no other.
pub type Job<'a> = Box<dyn FnOnce() + Send + 'a>;

/// Does pieces of work, at once or one after the other. No result may depend on which.
pub trait Pool: Send + Sync {
    /// How many pieces it does at once.
    fn threads(&self) -> usize;
    /// Does all of them, and returns when the last is done.
    fn run(&self, jobs: Vec<Job<'_>>);
}

/// One piece after the other, on the thread that asks.
#[derive(Debug, Clone, Copy, Default)]
pub struct Serial;

impl Pool for Serial {
    fn threads(&self) -> usize {
        1
    }
    fn run(&self, jobs: Vec<Job<'_>>) {
        for job in jobs {
            job();
        }
    }
}

/// Into how many jobs work is divided for each thread: enough that none waits long for the others.
const JOBS: usize = 32;

/// The results of `work` on every item, in the order of the items.
pub(super) fn map<T: Send, R: Send>(
    pool: &dyn Pool,
    items: impl IntoIterator<Item = T>,
    work: impl Fn(T) -> R + Sync,
) -> Vec<R> {
    map_with(pool, items, || (), |(), item| work(item))
}

/// The same with buffers that `start` makes and `work` reuses from item to item.
pub(super) fn map_with<T: Send, S, R: Send>(
    pool: &dyn Pool,
    items: impl IntoIterator<Item = T>,
    start: impl Fn() -> S + Sync,
    work: impl Fn(&mut S, T) -> R + Sync,
) -> Vec<R> {
    let threads = pool.threads();
    if threads <= 1 {
        let mut buffers = start();
        return items.into_iter().map(|item| work(&mut buffers, item)).collect();
    }
    let items: Vec<T> = items.into_iter().collect();
    let size = items.len().div_ceil(threads * JOBS).max(1);
    let mut results: Vec<Vec<R>> = Vec::new();
    results.resize_with(items.len().div_ceil(size), Vec::new);
    let (mut items, start, work) = (items.into_iter(), &start, &work);
    let jobs = results.iter_mut().map(|results| -> Job<'_> {
        let part: Vec<T> = items.by_ref().take(size).collect();
        Box::new(move || {
            let mut buffers = start();
            results.extend(part.into_iter().map(|item| work(&mut buffers, item)));
        })
    });
    pool.run(jobs.collect());
    results.into_iter().flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Does the last job first.
    struct Backwards;

    impl Pool for Backwards {
        fn threads(&self) -> usize {
            3
        }
        fn run(&self, jobs: Vec<Job<'_>>) {
            for job in jobs.into_iter().rev() {
                job();
            }
        }
    }

    #[test]
    fn results_are_in_the_order_of_the_items_whatever_is_done_first() {
        for count in [0, 1, 2, 95, 96, 97, 1000] {
            let squares: Vec<usize> = (0..count).map(|x| x * x).collect();
            assert_eq!(map(&Backwards, 0..count, |x| x * x), squares);
            assert_eq!(map(&Serial, 0..count, |x| x * x), squares);
        }
    }
}
