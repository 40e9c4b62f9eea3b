//! Neighbouring data sets of one client: records that are there, and the worst a search can find.

use crate::error::Error;
use fedkin_core::Dataset;
use fedkin_core::model::{Loss, Model};
use fedkin_core::numeric::{dot, norm2};
use fedkin_core::rng::{PublicRng, Random};
use rayon::prelude::*;
use std::ops::Range;
use std::sync::Arc;

/// Two data sets that differ in the unit of privacy.
pub(super) struct Pair {
    /// How it was found.
    pub(super) kind: &'static str,
    /// What differs, in words.
    pub(super) what: String,
    pub(super) data: [Arc<Dataset>; 2],
}

/// How far apart the transcripts of two data sets are: the larger, the easier to tell apart.
pub(super) type Distance<'a> = dyn Fn(&[Arc<Dataset>; 2]) -> Result<f64, Error> + Sync + 'a;

/// What a record can be.
pub(super) struct Records<'a> {
    pub(super) own: &'a Arc<Dataset>,
    pub(super) all: &'a [Arc<Dataset>],
    /// The audited client.
    pub(super) client: u32,
    pub(super) model: &'a Model,
    /// A model the client has sent: a direction that matters.
    pub(super) hint: &'a [f64],
    pub(super) seed: u64,
}

/// Random directions beside the client's own records and its model.
const RANDOM_DIRECTIONS: usize = 4;
/// Steps of the random search around the best of the grid.
const REFINEMENTS: u32 = 48;
/// Swaps of which the middle one is taken.
const SWAPS: u32 = 9;

/// The changed records of the two data sets, and what the others are.
#[derive(Debug, Clone)]
struct Change {
    features: [Vec<f64>; 2],
    targets: [f64; 2],
    /// All other records without features: nothing dampens the change.
    silent: bool,
}

/// The ball that records come from.
struct Ball {
    radius: f64,
    targets: [f64; 2],
}

impl Ball {
    fn of(records: &Records<'_>) -> Self {
        let norms = records.all.iter().flat_map(|data| (0..data.rows()).map(|i| norm2(data.row(i)).sqrt()));
        let widest = norms.fold(0.0, f64::max);
        let values = records.all.iter().flat_map(|data| data.targets()).copied();
        let largest = values.fold(0.0, |most: f64, y| most.max(y.abs()));
        let targets = match records.model.loss {
            Loss::Logistic => [0.0, 1.0],
            // Beyond the threshold a residual counts linearly, and the promise covers any target.
            Loss::Huber(threshold) => [-largest - 100.0 * threshold, largest + 100.0 * threshold],
            // No promise covers any target here, so only what the data show is tried.
            Loss::Squared => [-largest, largest],
        };
        Self { radius: records.model.feature_norm.unwrap_or(widest), targets }
    }
}

impl Change {
    /// Puts the change into a client's data; `rows` are the records of the unit of privacy.
    fn apply(&self, own: &Dataset, rows: &Range<usize>) -> Result<[Arc<Dataset>; 2], Error> {
        let build = |which: usize| {
            let columns = own.columns();
            let mut features = own.features().to_vec();
            let mut targets = own.targets().to_vec();
            for (i, row) in features.chunks_exact_mut(columns).enumerate() {
                if rows.contains(&i) {
                    row.copy_from_slice(&self.features[which]);
                    targets[i] = self.targets[which];
                } else if self.silent {
                    row.fill(0.0);
                }
            }
            Dataset::new(columns, features, targets).map(Arc::new).map_err(|error| {
                Error::Usage(format!("the audit cannot build a neighbouring data set: {error}"))
            })
        };
        Ok([build(0)?, build(1)?])
    }

    fn words(&self) -> String {
        let norm = |which: usize| norm2(&self.features[which]).sqrt();
        let (first, second) = (norm(0), norm(1));
        let cosine = dot(&self.features[0], &self.features[1]) / (first * second).max(1e-300);
        format!(
            "feature norms {first:.3} and {second:.3} (cosine {cosine:.2}), targets {:.3} and {:.3}; the other records {}",
            self.targets[0],
            self.targets[1],
            if self.silent { "have no features" } else { "are the client's own" }
        )
    }
}

fn unit(mut direction: Vec<f64>) -> Option<Vec<f64>> {
    let length = norm2(&direction).sqrt();
    if length <= 0.0 || !length.is_finite() {
        return None;
    }
    for x in &mut direction {
        *x /= length;
    }
    Some(direction)
}

fn random(columns: usize, rng: &mut PublicRng) -> Vec<f64> {
    (0..columns).map(|_| rng.normal()).collect()
}

fn along(direction: &[f64], length: f64) -> Vec<f64> {
    direction.iter().map(|x| x * length).collect()
}

/// The worst pair of a grid over the ball, improved by random steps.
pub(super) fn worst(records: &Records<'_>, distance: &Distance<'_>) -> Result<Pair, Error> {
    let ball = Ball::of(records);
    let columns = records.own.columns();
    let rows = 0..1;
    let mut rng = PublicRng::named(records.seed, "audit search", 0, records.client);
    let mut directions: Vec<Vec<f64>> =
        records.hint.get(..columns).and_then(|hint| unit(hint.to_vec())).into_iter().collect();
    directions.extend((0..records.own.rows().min(3)).filter_map(|i| unit(records.own.row(i).to_vec())));
    directions.extend((0..RANDOM_DIRECTIONS).filter_map(|_| unit(random(columns, &mut rng))));
    let [low, high] = ball.targets;
    let mut grid = Vec::new();
    for direction in &directions {
        for sign in [1.0, -1.0] {
            for targets in [[low, high], [high, low], [high, high], [low, low]] {
                for silent in [false, true] {
                    let features = [along(direction, ball.radius), along(direction, sign * ball.radius)];
                    grid.push(Change { features, targets, silent });
                }
            }
        }
    }
    let tried: Vec<f64> = grid
        .par_iter()
        .map(|change| distance(&change.apply(records.own, &rows)?))
        .collect::<Result<_, Error>>()?;
    let mut best = 0;
    for (i, value) in tried.iter().enumerate() {
        if *value > tried[best] {
            best = i;
        }
    }
    let (mut change, mut most) = (grid.swap_remove(best), tried[best]);
    for step in 0..REFINEMENTS {
        let width = if step < REFINEMENTS / 2 { 0.5 } else { 0.1 };
        let mut next = change.clone();
        for features in &mut next.features {
            let pull = width * ball.radius / (columns as f64).sqrt();
            let moved = features.iter().map(|x| x + pull * rng.normal()).collect();
            if let Some(direction) = unit(moved) {
                *features = along(&direction, ball.radius);
            }
        }
        let value = distance(&next.apply(records.own, &rows)?)?;
        if value > most {
            (change, most) = (next, value);
        }
    }
    Ok(Pair {
        kind: "worst case",
        what: format!("one record replaced: {}", change.words()),
        data: change.apply(records.own, &rows)?,
    })
}

/// A record of the client replaced by one of somebody else: the middle one of several such swaps.
pub(super) fn typical(
    records: &Records<'_>,
    peers: &[u32],
    distance: &Distance<'_>,
) -> Result<Option<Pair>, Error> {
    let mut rng = PublicRng::named(records.seed, "audit swap", 0, records.client);
    let others: Vec<u32> = peers.iter().copied().filter(|id| *id != records.client).collect();
    if others.is_empty() {
        return Ok(None);
    }
    let mut swaps = Vec::new();
    for _ in 0..SWAPS {
        let row = rng.below(records.own.rows() as u32) as usize;
        let giver = others[rng.below(others.len() as u32) as usize];
        let given = &records.all[giver as usize];
        let record = rng.below(given.rows() as u32) as usize;
        let change = Change {
            features: [records.own.row(row).to_vec(), given.row(record).to_vec()],
            targets: [records.own.targets()[row], given.targets()[record]],
            silent: false,
        };
        let data = change.apply(records.own, &(row..row + 1))?;
        swaps.push((distance(&data)?, change.words(), data));
    }
    swaps.sort_by(|a, b| a.0.total_cmp(&b.0));
    let (_, words, data) = swaps.swap_remove(swaps.len() / 2);
    let what = format!("one record replaced by another client's: {words}");
    Ok(Some(Pair { kind: "typical", what, data }))
}
