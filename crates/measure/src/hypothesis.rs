//! Scores of hypotheses without parameters in common: what they predict of records.

use super::{Metric, Need, Wanted, next_identity};
use fedkin_data::World;
use fedkin_learner::{Dataset, Output, mean_squared_error, quality};
use fedkin_method::round::Judge;
use fedkin_method::{Families, Member};
use std::sync::Arc;

struct Column {
    name: String,
    metric: Metric,
    model: usize,
    /// Only clients with this kind of model.
    kind: Option<usize>,
}

pub(crate) struct HypothesisScorer {
    columns: Vec<Column>,
    families: Families,
    /// Whose errors are squared beside those of numbers.
    squared: Output,
    learners: Option<Arc<[u32]>>,
    identity: u64,
    test: Vec<Option<Arc<Dataset>>>,
    train: Vec<Arc<Dataset>>,
}

impl HypothesisScorer {
    /// Errors on test records, or on those of training where there are no others. With labels 0 and 1 the mean squared error
    /// is that of the probabilities, unless other clients have numbers: then theirs alone count.
    pub(crate) fn new(
        world: &World,
        families: &Families,
        learners: Option<Arc<[u32]>>,
        personal: &[&'static str],
        wanted: &Wanted<'_>,
    ) -> Self {
        let classes = families.all().any(|family| family.output().classes() > 0);
        let numbers = families.all().any(|family| family.output() == Output::Number);
        let several = families.all().all(|family| matches!(family.output(), Output::Classes(_)));
        let tested = world.test.iter().any(Option::is_some);
        let mut metrics = Vec::new();
        match (tested, classes) {
            (true, true) if several => metrics.push(Metric::Accuracy),
            (true, true) => metrics.extend([Metric::Accuracy, Metric::Mse]),
            (true, false) => metrics.push(Metric::Mse),
            (false, _) => metrics.push(Metric::TrainLoss),
        }
        if wanted.headline.and_then(Metric::named) == Some(Metric::TrainAccuracy) {
            metrics.push(Metric::TrainAccuracy);
        }
        let mut columns = Vec::new();
        for metric in metrics {
            for (which, name) in personal.iter().enumerate() {
                if wanted.models.is_empty() || wanted.models.iter().any(|wanted| wanted == name) {
                    let column = format!("{}.{name}", metric.name());
                    columns.push(Column { name: column, metric, model: which, kind: None });
                }
            }
            // Different kinds in one federation: what each of them gains, by the client's own model.
            for (number, label) in families.labels().into_iter().enumerate().filter(|_| families.count() > 1)
            {
                let column = format!("{}.{label}", metric.name());
                if columns.iter().all(|known: &Column| known.name != column) {
                    columns.push(Column { name: column, metric, model: 0, kind: Some(number) });
                }
            }
        }
        let trained = columns.iter().any(|column| column.metric.row().needs(Need::TrainingRecords));
        Self {
            columns,
            squared: if classes && numbers { Output::Number } else { Output::Probability },
            families: families.clone(),
            learners,
            identity: next_identity(),
            test: world.test.clone(),
            train: if trained { world.train.clone() } else { Vec::new() },
        }
    }

    pub(crate) fn names(&self) -> Vec<String> {
        self.columns.iter().map(|column| column.name.clone()).collect()
    }
}

impl Judge for HypothesisScorer {
    fn columns(&self) -> usize {
        self.columns.len()
    }

    fn score(&self, member: &Member, _: bool, which: usize, model: &[f64], row: &mut [f64]) {
        let id = member.id as usize;
        let records = |metric: Metric| {
            if metric.row().needs(Need::TrainingRecords) {
                self.train.get(id)
            } else {
                self.test.get(id).and_then(Option::as_ref)
            }
        };
        let own = self.learners.as_ref().and_then(|all| all.get(id)).map_or(0, |number| *number as usize);
        let Some(family) = self.families.get(own) else { return };
        for (place, &Column { metric, model: model_of, kind, .. }) in self.columns.iter().enumerate() {
            if model_of != which || kind.is_some_and(|kind| kind != own) {
                continue;
            }
            let Some(data) = records(metric) else { continue };
            // A model that cannot be read has no score.
            row[place] = match metric {
                Metric::TrainLoss if matches!(family.output(), Output::Classes(_)) => {
                    family.mean_loss(model, data)
                }
                Metric::Mse if ![Output::Number, self.squared].contains(&family.output()) => f64::NAN,
                _ if metric.row().needs(Need::Probabilities) => {
                    quality(family, data, model).map_or(f64::NAN, |found| found.accuracy)
                }
                _ => mean_squared_error(family, data, model),
            };
        }
    }

    fn identity(&self) -> Option<u64> {
        Some(self.identity)
    }
}
