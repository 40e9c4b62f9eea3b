//! Which records of a client are for training, for validation and for testing.

use crate::options::FRACTION;
use fedkin_numeric::rng::{PublicRng, Random};
use fedkin_settings::{Param, Preset};

/// The key of every source that can set validation records aside.
pub(crate) const VALIDATION: Param = Param {
    name: "validation_fraction",
    kind: FRACTION,
    preset: Preset::Number(0.0),
    help: "share of each client's training records that is set aside for choosing parameters; at least one stays for \
           training",
};

/// The positions of a client's records, each part in the order of the file.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Parts {
    pub(crate) train: Vec<usize>,
    pub(crate) validation: Vec<usize>,
    pub(crate) test: Vec<usize>,
}

/// How many of `count` a share is; one always stays.
pub(crate) fn share(count: usize, fraction: f64) -> usize {
    ((count as f64 * fraction).round() as usize).min(count.saturating_sub(1))
}

/// Draws `test` of the records for testing, and of the others `validation` for choosing parameters.
pub(crate) fn cut(count: usize, test: f64, validation: f64, rng: &mut PublicRng) -> Parts {
    let tested = share(count, test);
    let validated = share(count - tested, validation);
    let mut order: Vec<usize> = (0..count).collect();
    if tested + validated > 0 {
        rng.shuffle(&mut order);
    }
    let mut train = order.split_off(tested + validated);
    let mut validation = order.split_off(tested);
    // Back in the order of the file, so that only membership is random.
    for part in [&mut train, &mut validation, &mut order] {
        part.sort_unstable();
    }
    Parts { train, validation, test: order }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rng() -> PublicRng {
        PublicRng::named(3, "test", 0, 0)
    }

    #[test]
    fn every_record_is_in_one_part_and_training_is_never_empty() {
        for count in 1..40 {
            for (test, validation) in [(0.0, 0.0), (0.25, 0.0), (0.25, 0.2), (0.99, 0.99), (0.0, 0.5)] {
                let parts = cut(count, test, validation, &mut rng());
                let mut all = [parts.train.clone(), parts.validation.clone(), parts.test.clone()].concat();
                all.sort_unstable();
                assert_eq!(all, (0..count).collect::<Vec<_>>());
                assert!(!parts.train.is_empty());
            }
        }
    }

    #[test]
    fn validation_comes_out_of_training_and_leaves_the_test_records_alone() {
        let (without, with) = (cut(100, 0.25, 0.0, &mut rng()), cut(100, 0.25, 0.2, &mut rng()));
        assert_eq!(without.test, with.test);
        assert_eq!((with.train.len(), with.validation.len(), with.test.len()), (60, 15, 25));
    }
}
