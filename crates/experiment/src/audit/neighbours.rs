//! Neighbouring data sets of one client: records that are there, and the worst a search can find.

use super::space::Space;
use fedkin_data::InOrder;
use fedkin_learner::Dataset;
use fedkin_numeric::norm2;
use fedkin_numeric::rng::{PublicRng, Random};
use fedkin_run::Error;
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
    pub(super) space: &'a Space,
    /// A model the client has sent: a direction that matters.
    pub(super) hint: &'a [f64],
    pub(super) seed: u64,
}

/// Steps of the random search around the best of the grid.
const REFINEMENTS: u32 = 48;
/// Swaps of which the middle one is taken.
const SWAPS: u32 = 9;

/// The changed records of the two data sets, and what the others are.
#[derive(Debug, Clone)]
pub(super) struct Change {
    pub(super) features: [Vec<f64>; 2],
    pub(super) targets: [f64; 2],
    /// All other records without features: nothing dampens the change.
    pub(super) silent: bool,
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
}

/// The worst pair of a grid over the records that there can be, improved by random steps.
pub(super) fn worst(records: &Records<'_>, distance: &Distance<'_>) -> Result<Pair, Error> {
    let (space, columns) = (records.space, records.own.columns());
    let rows = 0..1;
    let mut rng = PublicRng::named(records.seed, "audit search", 0, records.client);
    let mut grid = space.grid(records, &mut rng);
    let tried: Vec<f64> =
        grid.par_iter().map(|change| distance(&change.apply(records.own, &rows)?)).in_order()?;
    let mut best = 0;
    for (i, value) in tried.iter().enumerate() {
        if *value > tried[best] {
            best = i;
        }
    }
    if grid.is_empty() {
        return Err(Error::Usage("the audit finds no record that the client could have held".into()));
    }
    let (mut change, mut most) = (grid.swap_remove(best), tried[best]);
    for step in 0..REFINEMENTS {
        let width = if step < REFINEMENTS / 2 { 0.5 } else { 0.1 };
        let mut next = change.clone();
        for features in &mut next.features {
            // A flat record stays flat: its length is the smallest there is, and any step makes it the largest.
            let pull = width * (norm2(features) / columns as f64).sqrt();
            let moved = features.iter().map(|x| x + pull * rng.normal()).collect();
            if let Some(moved) = space.filled(moved) {
                *features = moved;
            }
        }
        let value = distance(&next.apply(records.own, &rows)?)?;
        if value > most {
            (change, most) = (next, value);
        }
    }
    Ok(Pair {
        kind: "worst case",
        what: format!("one record replaced: {}", space.words(&change)),
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
        swaps.push((distance(&data)?, records.space.words(&change), data));
    }
    swaps.sort_by(|a, b| a.0.total_cmp(&b.0));
    let (_, words, data) = swaps.swap_remove(swaps.len() / 2);
    let what = format!("one record replaced by another client's: {words}");
    Ok(Some(Pair { kind: "typical", what, data }))
}
