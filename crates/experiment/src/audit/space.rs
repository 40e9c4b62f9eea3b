//! What a record can be, and which records are tried: the ball of a linear model's features, or the signals of a graph.

use super::neighbours::{Change, Records};
use fedkin_learner::model::Loss;
use fedkin_learner::{Dataset, Family, Linear, signals};
use fedkin_numeric::rng::{PublicRng, Random};
use fedkin_numeric::{dot, norm2};
use fedkin_privacy::Privacy;
use fedkin_run::{Error, Plan};
use std::sync::Arc;

/// Random directions beside those that the data and the model show.
const RANDOM_DIRECTIONS: usize = 4;

/// The records that a promise covers, and the largest of them.
pub(super) enum Space {
    /// Features in a ball, with the two targets that matter most.
    Ball { radius: f64, targets: [f64; 2] },
    /// Signals whose scatter is released: each less its own mean, of at most this norm.
    Centred { clip: f64 },
    /// Signals, or squared differences themselves, that enter as squared differences of at most this norm.
    Differences { clip: f64, records: signals::Records },
}

impl Space {
    /// What a record of a client with this learner can be.
    pub(super) fn of(plan: &Plan, family: &dyn Family, all: &[Arc<Dataset>]) -> Result<Self, Error> {
        let model = match (family.signals(), plan.privacy) {
            (Some(_), Privacy::OneShot(once)) => {
                return Ok(Space::Centred { clip: once.clip.norm() });
            }
            (Some(smooth), Privacy::Paper(paper)) => {
                return Ok(Space::Differences { clip: paper.clip, records: smooth.records });
            }
            _ => family.downcast::<Linear>().map(Linear::model).ok_or_else(|| {
                Error::Usage(format!(
                    "the audit draws records around those that a linear model sees, and the learner {:?} is none: set \
                     model.kind = \"ridge\" or \"logistic\"",
                    family.name()
                ))
            })?,
        };
        let norms = all.iter().flat_map(|data| (0..data.rows()).map(|i| norm2(data.row(i)).sqrt()));
        let widest = norms.fold(0.0, f64::max);
        let values = all.iter().flat_map(|data| data.targets()).copied();
        let largest = values.fold(0.0, |most: f64, y| most.max(y.abs()));
        let targets = match model.loss {
            Loss::Logistic => [0.0, 1.0],
            // Beyond the threshold a residual counts linearly, and the promise covers any target.
            Loss::Huber(threshold) => [-largest - 100.0 * threshold, largest + 100.0 * threshold],
            Loss::Quantile(_) => [-largest - 100.0, largest + 100.0],
            // No promise covers any target here, so only what the data show is tried.
            Loss::Squared => [-largest, largest],
            Loss::Poisson => [0.0, largest],
        };
        Ok(Space::Ball { radius: model.feature_norm.unwrap_or(widest), targets })
    }

    /// A record as the method sees it before it is clipped.
    fn seen(&self, record: &[f64]) -> Vec<f64> {
        match self {
            Space::Differences { records: signals::Records::Signals, .. } => {
                let pairs =
                    |(i, own)| record[i + 1..].iter().map(move |other: &f64| (own - other) * (own - other));
                record.iter().enumerate().flat_map(pairs).collect()
            }
            Space::Centred { .. } => {
                let mean = record.iter().sum::<f64>() / record.len() as f64;
                record.iter().map(|x| x - mean).collect()
            }
            Space::Ball { .. } | Space::Differences { .. } => record.to_vec(),
        }
    }

    /// The record in this direction that is as long as one may be.
    pub(super) fn filled(&self, mut direction: Vec<f64>) -> Option<Vec<f64>> {
        let (clip, square) = match self {
            Space::Ball { radius, .. } => (*radius, false),
            Space::Centred { clip } => (*clip, false),
            Space::Differences { clip, records } => (*clip, *records == signals::Records::Signals),
        };
        if let Space::Differences { records: signals::Records::Distances, .. } = self {
            for x in &mut direction {
                *x = x.abs();
            }
        }
        let length = norm2(&self.seen(&direction)).sqrt();
        if length <= 0.0 || !length.is_finite() {
            return None;
        }
        let factor = if square { (clip / length).sqrt() } else { clip / length };
        for x in &mut direction {
            *x *= factor;
        }
        Some(direction)
    }

    /// The changes among which the worst is looked for first.
    pub(super) fn grid(&self, records: &Records<'_>, rng: &mut PublicRng) -> Vec<Change> {
        let columns = records.own.columns();
        let known = (0..records.own.rows().min(3)).map(|i| records.own.row(i).to_vec());
        let mut directions: Vec<Vec<f64>> = match self {
            Space::Ball { .. } => records.hint.get(..columns).map(<[f64]>::to_vec).into_iter().collect(),
            Space::Centred { .. } | Space::Differences { .. } => contrasts(columns),
        };
        directions.extend(known);
        directions.extend((0..RANDOM_DIRECTIONS).map(|_| random(columns, rng)));
        let full: Vec<Vec<f64>> = directions.into_iter().filter_map(|d| self.filled(d)).collect();
        match self {
            Space::Ball { targets, .. } => ball(&full, *targets),
            Space::Centred { .. } | Space::Differences { .. } => {
                // The scatter is a sum over records: the others do not matter.
                let silences = if matches!(self, Space::Centred { .. }) { 1 } else { 2 };
                graphs(&full, columns, &[false, true][..silences])
            }
        }
    }

    /// What differs, in words.
    pub(super) fn words(&self, change: &Change) -> String {
        let seen = [0, 1].map(|which: usize| self.seen(&change.features[which]));
        let [first, second] = [0, 1].map(|which: usize| norm2(&seen[which]).sqrt());
        let cosine = dot(&seen[0], &seen[1]) / (first * second).max(1e-300);
        let what = match self {
            Space::Ball { .. } => "feature norms",
            Space::Centred { .. } => "signals, less their means, of norms",
            Space::Differences { .. } => "squared differences of norms",
        };
        let angle =
            if first > 0.0 && second > 0.0 { format!(" (cosine {cosine:.2})") } else { String::new() };
        let targets = match self {
            Space::Ball { .. } => {
                format!(", targets {:.3} and {:.3}", change.targets[0], change.targets[1])
            }
            Space::Centred { .. } | Space::Differences { .. } => String::new(),
        };
        let others = match (self, change.silent) {
            (_, false) => "are the client's own",
            (Space::Ball { .. }, true) => "have no features",
            (_, true) => "are flat",
        };
        format!("{what} {first:.3} and {second:.3}{angle}{targets}; the other records {others}")
    }
}

fn random(columns: usize, rng: &mut PublicRng) -> Vec<f64> {
    (0..columns).map(|_| rng.normal()).collect()
}

/// Signals, or sets of pairs, that have little in common: one column, another one, two columns against each other and
/// against a third (which, less their means, are orthogonal), and half of all.
fn contrasts(columns: usize) -> Vec<Vec<f64>> {
    let with = |entries: &[(usize, f64)]| {
        let mut record = vec![0.0; columns];
        for (at, value) in entries {
            if let Some(x) = record.get_mut(*at) {
                *x = *value;
            }
        }
        record
    };
    let half = (0..columns).map(|i| f64::from(u8::from(2 * i < columns))).collect();
    let single = with(&[(0, 1.0)]);
    let last = with(&[(columns - 1, 1.0)]);
    let apart = with(&[(0, 1.0), (1, -1.0)]);
    let third = if columns > 2 { with(&[(0, 1.0), (1, 1.0), (2, -2.0)]) } else { Vec::new() };
    [single, last, apart, third, half].into_iter().filter(|record| !record.is_empty()).collect()
}

/// A record turned round or left, with any targets; the others as they are or without features.
fn ball(full: &[Vec<f64>], [low, high]: [f64; 2]) -> Vec<Change> {
    let mut grid = Vec::new();
    for record in full {
        for sign in [1.0, -1.0] {
            for targets in [[low, high], [high, low], [high, high], [low, low]] {
                for silent in [false, true] {
                    let turned = record.iter().map(|x| sign * x).collect();
                    grid.push(Change { features: [record.clone(), turned], targets, silent });
                }
            }
        }
    }
    grid
}

/// A flat record that becomes a full one, and every two full ones.
fn graphs(full: &[Vec<f64>], columns: usize, silences: &[bool]) -> Vec<Change> {
    let change = |first: &[f64], second: &[f64], silent| Change {
        features: [first.to_vec(), second.to_vec()],
        targets: [0.0; 2],
        silent,
    };
    let flat = vec![0.0; columns];
    let mut grid: Vec<Change> = full.iter().map(|record| change(&flat, record, false)).collect();
    for (i, first) in full.iter().enumerate() {
        for second in &full[i + 1..] {
            grid.extend(silences.iter().map(|silent| change(first, second, *silent)));
        }
    }
    grid
}
