//! Scores of linear models: distance to the truth, errors on records.

use super::{Metric, next_identity};
use fedkin_data::World;
use fedkin_learner::model::{Loss, Model, fit};
use fedkin_learner::{Dataset, Family, Linear, Output, Quality, mean_squared_error, quality};
use fedkin_method::Member;
use fedkin_method::round::Judge;
use fedkin_numeric::{distance2, log10, norm2};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Squared errors of the truth below this share of its squared norm are not told apart: a tenth of the rounding of
/// doubles, squared.
const ROUNDING: f64 = 0.01 * f64::EPSILON * f64::EPSILON;

struct Column {
    name: String,
    metric: Metric,
    model: usize,
    active_only: bool,
}

/// Where a score of a model goes.
struct Place {
    column: usize,
    metric: Metric,
    active_only: bool,
}

/// Scores the models of a world's clients, each by its own learner.
#[derive(Default)]
pub(crate) struct LinearScorer {
    columns: Vec<Column>,
    /// The columns of each model.
    by_model: Vec<Vec<Place>>,
    identity: u64,
    families: Vec<Linear>,
    /// Which of them a client has, by id; the first where absent.
    learners: Option<Arc<[u32]>>,
    /// True model and its squared norm, by true cluster.
    truth: Vec<(Vec<f64>, f64)>,
    references: Vec<(Vec<f64>, f64)>,
    cluster: Vec<u32>,
    test: Vec<Option<Arc<Dataset>>>,
    train: Vec<Arc<Dataset>>,
    /// By client: who is judged alike; empty where every client is judged by records of its own.
    groups: Vec<u32>,
}

impl LinearScorer {
    /// What can be measured in this world on a method's models; `wanted` keeps only some of the models.
    /// Some metrics are taken only where the headline asks for them, see [`Metric::on_demand`].
    pub(crate) fn new(
        world: &World,
        families: Vec<Linear>,
        learners: Option<Arc<[u32]>>,
        personal: &[&'static str],
        wanted: &[String],
        headline: Option<&str>,
    ) -> Self {
        let Some(model) = families.first().map(Linear::model) else { return Self::default() };
        let dimension = model.dimension(world.schema.columns());
        // One truth is compared with models of one length.
        let comparable =
            families.iter().all(|family| family.model().dimension(world.schema.columns()) == dimension);
        let with_norm = |mut w: Vec<f64>| {
            w.resize(dimension, 0.0);
            let norm = norm2(&w);
            (w, norm)
        };
        let truth: Vec<_> = match &world.truth {
            Some(truth) if comparable => truth.models.iter().cloned().map(with_norm).collect(),
            _ => Vec::new(),
        };
        let cluster: Vec<u32> = match &world.truth {
            Some(truth) => truth.cluster.clone(),
            None => world.federation.members().iter().map(|member| member.cluster).collect(),
        };
        let tested = world.test.iter().any(Option::is_some);
        let squared = families.iter().all(|family| family.model().loss == Loss::Squared);
        let references: Vec<_> = match references(world, model, &cluster) {
            Some(models) if squared && !truth.is_empty() => models.into_iter().map(with_norm).collect(),
            _ => Vec::new(),
        };
        let mut metrics = Vec::new();
        if !truth.is_empty() {
            metrics.push(Metric::Nmsd);
        }
        if !references.is_empty() {
            metrics.push(Metric::Reference);
        }
        let any = |output: Output| families.iter().any(|family| family.output() == output);
        if tested && any(Output::Number) {
            metrics.push(Metric::Mse);
        }
        if tested && any(Output::Probability) {
            metrics.extend(super::PROBABLE);
        }
        let asked = headline.and_then(Metric::named).filter(|metric| metric.on_demand());
        metrics.extend(asked.filter(|metric| !metric.of_truth() || !truth.is_empty()));
        if metrics.is_empty() {
            metrics.push(Metric::TrainLoss);
        }
        let mut columns = Vec::new();
        for metric in metrics {
            for (which, &name) in personal.iter().enumerate() {
                if wanted.is_empty() || wanted.iter().any(|wanted| wanted == name) {
                    let column = format!("{}.{name}", metric.name());
                    columns.push(Column { name: column, metric, model: which, active_only: false });
                }
            }
            let active = wanted.is_empty() || wanted.iter().any(|wanted| wanted == "active");
            if metric == Metric::Nmsd && active && personal.len() > 1 {
                let name = format!("{}.active", metric.name());
                columns.push(Column { name, metric, model: 0, active_only: true });
            }
        }
        let keep_test =
            tested && columns.iter().any(|c| c.metric == Metric::Mse || super::PROBABLE.contains(&c.metric));
        let keep_train =
            columns.iter().any(|c| matches!(c.metric, Metric::TrainLoss | Metric::TrainAccuracy));
        let groups = if keep_train {
            Vec::new()
        } else {
            let empty: &[Option<Arc<Dataset>>] = &[];
            groups(&cluster, if keep_test { &world.test } else { empty }, learners.as_deref())
        };
        let by_model = (0..personal.len())
            .map(|which| {
                let places = columns.iter().enumerate().filter(|(_, column)| column.model == which);
                places
                    .map(|(c, column)| Place {
                        column: c,
                        metric: column.metric,
                        active_only: column.active_only,
                    })
                    .collect()
            })
            .collect();
        Self {
            columns,
            by_model,
            identity: next_identity(),
            families,
            learners,
            truth,
            references,
            cluster,
            test: if keep_test { world.test.clone() } else { Vec::new() },
            train: if keep_train { world.train.clone() } else { Vec::new() },
            groups,
        }
    }

    /// The names of the columns.
    pub(crate) fn names(&self) -> Vec<String> {
        self.columns.iter().map(|column| column.name.clone()).collect()
    }
}

/// Numbers for equal triples of true cluster, test set and learner; nothing where hardly any two clients share them.
fn groups(cluster: &[u32], test: &[Option<Arc<Dataset>>], learners: Option<&[u32]>) -> Vec<u32> {
    let mut numbers = BTreeMap::new();
    let groups: Vec<u32> = (0..cluster.len())
        .map(|k| {
            let set = test.get(k).and_then(Option::as_ref).map_or(0, |set| Arc::as_ptr(set) as usize);
            let learner = learners.and_then(|all| all.get(k)).copied().unwrap_or(0);
            let next = numbers.len() as u32;
            *numbers.entry((cluster[k], set, learner)).or_insert(next)
        })
        .collect();
    if numbers.len() * 2 > cluster.len() { Vec::new() } else { groups }
}

/// Least-squares models of the pooled test data of each true cluster, where there is enough of it.
fn references(world: &World, model: &Model, cluster: &[u32]) -> Option<Vec<Vec<f64>>> {
    if model.loss != Loss::Squared {
        return None;
    }
    let clusters = cluster.iter().max().map_or(0, |last| *last as usize + 1);
    let least_squares = Model { regularisation: 0.0, feature_norm: None, ..*model };
    (0..clusters)
        .map(|q| {
            let mut features = Vec::new();
            let mut targets = Vec::new();
            for (k, test) in world.test.iter().enumerate() {
                if let (Some(test), true) = (test, cluster[k] as usize == q) {
                    let test = least_squares.prepare(test);
                    features.extend_from_slice(test.features());
                    targets.extend_from_slice(test.targets());
                }
            }
            let columns = model.dimension(world.schema.columns());
            let pooled = Dataset::new(columns, features, targets).ok()?;
            fit(&least_squares, &pooled, &vec![1.0; pooled.rows()], 0.0).ok()
        })
        .collect()
}

impl Judge for LinearScorer {
    fn columns(&self) -> usize {
        self.columns.len()
    }

    fn score(&self, member: &Member, active: bool, which: usize, w: &[f64], row: &mut [f64]) {
        let k = member.id as usize;
        let own = self.learners.as_ref().and_then(|all| all.get(k)).map_or(0, |number| *number as usize);
        let Some(family) = self.families.get(own) else { return };
        let deviation = |(target, norm): &(Vec<f64>, f64)| distance2(w, target) / norm;
        let off = || distance2(w, &self.truth[self.cluster[k] as usize].0);
        // A model that is right to the bit would be infinitely good on a logarithmic scale, and so would every mean.
        let squared = || off().max(ROUNDING * self.truth[self.cluster[k] as usize].1) / w.len() as f64;
        let labels = |set: &Dataset| quality(family, set, w);
        // One pass over the test records serves all that is measured on probabilities.
        let mut judged: Option<Quality> = None;
        let mut last: Option<(Metric, f64)> = None;
        for place in &self.by_model[which] {
            if place.active_only && !active {
                continue;
            }
            let value = match last {
                // The same score under two names: all clients, and those of this round.
                Some((metric, value)) if metric == place.metric => value,
                _ => match place.metric {
                    Metric::Nmsd => deviation(&self.truth[self.cluster[k] as usize]),
                    Metric::Reference => deviation(&self.references[self.cluster[k] as usize]),
                    Metric::Msd => squared(),
                    Metric::LogMsd => log10(squared()),
                    Metric::Distance => off().sqrt(),
                    Metric::Mse => self.test[k]
                        .as_ref()
                        .filter(|_| family.output() == Output::Number)
                        .map_or(f64::NAN, |test| mean_squared_error(family, test, w)),
                    metric @ (Metric::Accuracy | Metric::LogLoss | Metric::Brier | Metric::Calibration) => {
                        match &self.test[k] {
                            Some(test) => {
                                judged = judged.or_else(|| labels(test));
                                judged.map_or(f64::NAN, |judged| metric.of(&judged))
                            }
                            None => f64::NAN,
                        }
                    }
                    Metric::TrainLoss => family.mean_loss(w, &self.train[k]),
                    Metric::TrainAccuracy => labels(&self.train[k]).map_or(f64::NAN, |found| found.accuracy),
                    // Not of linear models: `new` takes none of these.
                    Metric::GlobalAccuracy
                    | Metric::GlobalLogLoss
                    | Metric::ValidationAccuracy
                    | Metric::ValidationLogLoss
                    | Metric::StoppedAccuracy
                    | Metric::Mcc
                    | Metric::RelativeError
                    | Metric::ScaledError
                    | Metric::Nmi
                    | Metric::Rand
                    | Metric::Fmi
                    | Metric::HeldOut
                    | Metric::Density => f64::NAN,
                },
            };
            last = Some((place.metric, value));
            row[place.column] = value;
        }
    }

    fn group(&self, member: &Member) -> Option<u32> {
        self.groups.get(member.id as usize).copied()
    }

    fn identity(&self) -> Option<u64> {
        Some(self.identity)
    }
}
