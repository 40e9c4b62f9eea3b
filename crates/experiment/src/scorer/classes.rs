//! Scores of models of several classes: how good their probabilities are.

use super::{Metric, PROBABLE, Wanted, next_identity};
use fedkin_core::Member;
use fedkin_core::dataset::Dataset;
use fedkin_core::model::{Quality, Softmax, quality_of_classes};
use fedkin_data::World;
use fedkin_runtime::Judge;
use std::sync::Arc;

pub(crate) struct ClassScorer {
    columns: Vec<(String, Metric, usize)>,
    identity: u64,
    model: Softmax,
    test: Vec<Option<Arc<Dataset>>>,
    /// Empty where nothing is measured on training records.
    train: Vec<Arc<Dataset>>,
}

impl ClassScorer {
    pub(crate) fn new(
        world: &World,
        model: &Softmax,
        personal: &[&'static str],
        wanted: &Wanted<'_>,
    ) -> Self {
        let mut metrics = Vec::new();
        if world.test.iter().any(Option::is_some) {
            metrics.extend(PROBABLE);
        }
        if wanted.headline.is_some_and(|name| name.starts_with(Metric::TrainAccuracy.name())) {
            metrics.push(Metric::TrainAccuracy);
        }
        if metrics.is_empty() {
            metrics.push(Metric::TrainLoss);
        }
        let on_train = |metric: &Metric| matches!(metric, Metric::TrainLoss | Metric::TrainAccuracy);
        let train = if metrics.iter().any(on_train) { world.train.clone() } else { Vec::new() };
        let mut columns = Vec::new();
        for metric in metrics {
            for (which, &name) in personal.iter().enumerate() {
                if wanted.models.is_empty() || wanted.models.iter().any(|wanted| wanted == name) {
                    columns.push((format!("{}.{name}", metric.name()), metric, which));
                }
            }
        }
        Self { columns, identity: next_identity(), model: *model, test: world.test.clone(), train }
    }

    pub(crate) fn names(&self) -> Vec<String> {
        self.columns.iter().map(|(name, ..)| name.clone()).collect()
    }
}

impl Judge for ClassScorer {
    fn columns(&self) -> usize {
        self.columns.len()
    }

    fn score(&self, member: &Member, _: bool, which: usize, w: &[f64], row: &mut [f64]) {
        let k = member.id as usize;
        let (mut on_test, mut on_train): (Option<Quality>, Option<Quality>) = (None, None);
        for (column, (_, metric, model)) in self.columns.iter().enumerate() {
            if *model != which {
                continue;
            }
            let (set, known) = match metric {
                Metric::TrainLoss | Metric::TrainAccuracy => (self.train.get(k), &mut on_train),
                _ => (self.test[k].as_ref(), &mut on_test),
            };
            row[column] = set.map_or(f64::NAN, |set| {
                metric.of(known.get_or_insert_with(|| quality_of_classes(&self.model, set, w)))
            });
        }
    }

    fn identity(&self) -> Option<u64> {
        Some(self.identity)
    }
}
