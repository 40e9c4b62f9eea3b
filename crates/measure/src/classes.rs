//! Scores of models of several classes: how good their probabilities are on the client's test records, on its validation
//! records, and on records of all clients.

use super::{Global, Metric, Need, PROBABLE, Wanted, next_identity};
use fedkin_data::World;
use fedkin_learner::{Dataset, Family, Output, Quality, mean_squared_error, quality};
use fedkin_method::round::Judge;
use fedkin_method::{Families, Member};
use fedkin_numeric::rng::{PublicRng, Random};
use std::sync::{Arc, Mutex, PoisonError};

/// Whose records a metric is taken on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum On {
    Train,
    Test,
    Validation,
    Global,
}

impl On {
    fn of(metric: Metric) -> Self {
        let row = metric.row();
        if row.needs(Need::TrainingRecords) {
            On::Train
        } else if row.needs(Need::RecordsOfAll) {
            On::Global
        } else if row.needs(Need::ValidationRecords) {
            On::Validation
        } else {
            On::Test
        }
    }
}

/// The model that was scored last under a name, with the number of its learner, where there was one.
type Last = Option<(usize, Vec<f64>, Quality)>;

pub(crate) struct ClassScorer {
    columns: Vec<(String, Metric, usize)>,
    identity: u64,
    families: Families,
    /// Which of them a client has, by id; the first where absent.
    learners: Option<Arc<[u32]>>,
    test: Vec<Option<Arc<Dataset>>>,
    validation: Vec<Option<Arc<Dataset>>>,
    /// Empty where nothing is measured on training records.
    train: Vec<Arc<Dataset>>,
    /// Records of all clients, where models are measured on them.
    global: Option<Dataset>,
    /// By model: the one that was last measured on them. What is served to all is measured once.
    last: Mutex<Vec<Last>>,
}

impl ClassScorer {
    pub(crate) fn new(
        world: &World,
        families: &Families,
        learners: Option<Arc<[u32]>>,
        personal: &[&'static str],
        wanted: &Wanted<'_>,
    ) -> Self {
        let classifies = families.all().any(|family| family.output().classes() > 0);
        let numbers = families.all().any(|family| family.output() == Output::Number);
        let mut metrics = Vec::new();
        if world.test.iter().any(Option::is_some) {
            if classifies {
                metrics.extend(PROBABLE);
            }
            if numbers {
                metrics.push(Metric::Mse);
            }
        }
        if classifies && world.validation.iter().any(Option::is_some) {
            metrics.extend([Metric::ValidationAccuracy, Metric::ValidationLogLoss]);
        }
        let global = wanted.global.filter(|_| classifies).and_then(|global| records_of_all(world, global));
        if global.is_some() {
            metrics.extend([Metric::GlobalAccuracy, Metric::GlobalLogLoss]);
        }
        if wanted.headline.and_then(Metric::named) == Some(Metric::TrainAccuracy) {
            metrics.push(Metric::TrainAccuracy);
        }
        if metrics.is_empty() {
            metrics.push(Metric::TrainLoss);
        }
        let trained = metrics.iter().any(|metric| On::of(*metric) == On::Train);
        let train = if trained { world.train.clone() } else { Vec::new() };
        let mut columns = Vec::new();
        for metric in metrics {
            for (which, &name) in personal.iter().enumerate() {
                if wanted.models.is_empty() || wanted.models.iter().any(|wanted| wanted == name) {
                    columns.push((format!("{}.{name}", metric.name()), metric, which));
                }
            }
        }
        Self {
            columns,
            identity: next_identity(),
            families: families.clone(),
            learners,
            test: world.test.clone(),
            validation: world.validation.clone(),
            train,
            global,
            last: Mutex::new(vec![None; personal.len()]),
        }
    }

    pub(crate) fn names(&self) -> Vec<String> {
        self.columns.iter().map(|(name, ..)| name.clone()).collect()
    }

    /// The number of a client's learner, and the learner.
    fn learner(&self, client: usize) -> (usize, &dyn Family) {
        let number = self.learners.as_ref().and_then(|all| all.get(client)).map_or(0, |at| *at as usize);
        (number, self.families.get(number).unwrap_or_else(|| self.families.first()))
    }

    fn quality(family: &dyn Family, set: &Dataset, w: &[f64]) -> Quality {
        let none = Quality { accuracy: f64::NAN, log_loss: f64::NAN, brier: f64::NAN, calibration: f64::NAN };
        quality(family, set, w).unwrap_or(none)
    }

    /// The same on the records of all clients.
    fn quality_for_all(&self, set: &Dataset, client: usize, which: usize, w: &[f64]) -> Quality {
        let (number, family) = self.learner(client);
        let known = |last: &mut Vec<Last>| match last.get(which) {
            Some(Some((of, model, quality))) if *of == number && model == w => Some(*quality),
            _ => None,
        };
        if let Some(quality) = known(&mut self.last.lock().unwrap_or_else(PoisonError::into_inner)) {
            return quality;
        }
        let quality = Self::quality(family, set, w);
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(place) = last.get_mut(which) {
            *place = Some((number, w.to_vec(), quality));
        }
        quality
    }
}

/// The public hold-out, or the test records of all clients; one that several clients share counts once.
fn records_of_all(world: &World, global: Global) -> Option<Dataset> {
    let mut sets: Vec<&Arc<Dataset>> = Vec::new();
    match &world.holdout {
        Some(public) => sets.push(public),
        None => {
            for set in world.test.iter().flatten() {
                if !sets.iter().any(|known| Arc::ptr_eq(known, set)) {
                    sets.push(set);
                }
            }
        }
    }
    let rows: Vec<(usize, usize)> =
        sets.iter().enumerate().flat_map(|(at, set)| (0..set.rows()).map(move |row| (at, row))).collect();
    let mut picks: Vec<usize> = (0..rows.len()).collect();
    if let Some(most) = global.most.filter(|most| *most < rows.len()) {
        PublicRng::named(global.seed, "evaluate/global", 0, 0).shuffle(&mut picks);
        picks.truncate(most);
        picks.sort_unstable();
    }
    let columns = sets.first()?.columns();
    let (mut features, mut targets) = (Vec::with_capacity(picks.len() * columns), Vec::new());
    for (at, row) in picks.into_iter().map(|pick| rows[pick]) {
        features.extend_from_slice(sets[at].row(row));
        targets.push(sets[at].targets()[row]);
    }
    Dataset::new(columns, features, targets).ok()
}

impl Judge for ClassScorer {
    fn columns(&self) -> usize {
        self.columns.len()
    }

    fn score(&self, member: &Member, _: bool, which: usize, w: &[f64], row: &mut [f64]) {
        let k = member.id as usize;
        let (_, family) = self.learner(k);
        let mut known: Vec<(On, Quality)> = Vec::new();
        for (column, (_, metric, _)) in
            self.columns.iter().enumerate().filter(|(_, (.., model))| *model == which)
        {
            let on = On::of(*metric);
            let set = match on {
                On::Train => self.train.get(k).map(Arc::as_ref),
                On::Test => self.test.get(k).and_then(Option::as_deref),
                On::Validation => self.validation.get(k).and_then(Option::as_deref),
                On::Global => self.global.as_ref(),
            };
            let Some(set) = set else { continue };
            match metric {
                Metric::TrainLoss => {
                    row[column] = family.mean_loss(w, set);
                    continue;
                }
                Metric::Mse => {
                    if family.output() == Output::Number {
                        row[column] = mean_squared_error(family, set, w);
                    }
                    continue;
                }
                _ => {}
            }
            let quality = if let Some((_, quality)) = known.iter().find(|(of, _)| *of == on) {
                *quality
            } else {
                let quality = match on {
                    On::Global => self.quality_for_all(set, k, which, w),
                    _ => Self::quality(family, set, w),
                };
                known.push((on, quality));
                quality
            };
            row[column] = metric.of(&quality);
        }
    }

    fn identity(&self) -> Option<u64> {
        Some(self.identity)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fedkin_config::Source;
    use fedkin_run::{Plan, Registry};
    use std::path::Path;

    const CONFIG: &str = "version = 1\n[run]\nname = \"t\"\nrounds = 1\n\
        [data]\nsource = \"synthetic.clustered-functions\"\nclients_per_server = 4\nclusters = 2\ntest_samples = 5\n\
        [topology]\ngraph = { kind = \"complete\", servers = 1 }\n\
        [model]\nkind = \"softmax\"\nclasses = 2\n[algorithm]\nname = \"local\"\n";

    fn world() -> World {
        let source = Source { name: "t".into(), text: CONFIG.into() };
        let plan = Plan::load(&Registry::native(), &source, Path::new("."), &[], &[]).unwrap();
        plan.world(0).unwrap()
    }

    #[test]
    fn records_of_all_are_the_hold_out_or_every_test_record_once() {
        let mut world = world();
        let all = |world: &World, most| records_of_all(world, Global { most, seed: 7 }).unwrap();
        assert_eq!(all(&world, None).rows(), 20);
        let few = all(&world, Some(6));
        assert_eq!(few.rows(), 6);
        assert_eq!(few, all(&world, Some(6)));
        assert_ne!(few, records_of_all(&world, Global { most: Some(6), seed: 8 }).unwrap());
        // Drawn without putting back.
        let mut seen: Vec<&[f64]> = (0..6).map(|i| few.row(i)).collect();
        seen.sort_by(|a, b| a.partial_cmp(b).unwrap());
        seen.dedup();
        assert_eq!(seen.len(), 6);
        let shared = world.test[0].clone();
        world.test[1] = shared.clone();
        assert_eq!(all(&world, None).rows(), 15);
        world.holdout = shared;
        assert_eq!(all(&world, None).rows(), 5);
    }
}
