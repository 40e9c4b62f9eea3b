//! Partitioners without a Dirichlet law over labels: equal parts, shards, sizes; and what clusters do to records.

use super::dirichlet::{TRIES, Wanted, impossible, shares as dirichlet_shares};
use super::laws::Law;
use super::{Pool, Quantity, Shards, Twist};
use crate::error::DataError;
use fedkin_numeric::rng::{PublicRng, Random};
use fedkin_numeric::{exp, ln};

/// Shuffled records in parts of one size, the first parts one larger where it does not come out even.
pub(super) fn equal(records: &[u32], clients: usize) -> Vec<Vec<u32>> {
    let (size, more) = (records.len() / clients, records.len() % clients);
    let mut rest = records;
    (0..clients)
        .map(|client| {
            let (part, others) = rest.split_at(size + usize::from(client < more));
            rest = others;
            part.to_vec()
        })
        .collect()
}

/// Records sorted by label and cut into shards, `shards` of them for each client.
pub(super) fn shards(
    pool: Pool<'_>,
    mut records: Vec<u32>,
    settings: &Shards,
    rng: &mut PublicRng,
) -> Result<Vec<Vec<u32>>, DataError> {
    let count = settings.shards.saturating_mul(settings.size.clients);
    if count > records.len() {
        let message = format!(
            "{} clients with {} shards each need {count} records at least but there are {}: lower `shards` or `clients`",
            settings.size.clients,
            settings.shards,
            records.len()
        );
        return Err(DataError::config("shards", message));
    }
    // The records are shuffled already: within a label the order stays random.
    records.sort_by_key(|&record| pool.labels[record as usize]);
    let mut pieces = equal(&records, count);
    rng.shuffle(&mut pieces);
    Ok(pieces.chunks(settings.shards).map(<[Vec<u32>]>::concat).collect())
}

/// Sizes from a Dirichlet law or a power law; who gets which records is random.
pub(super) fn quantity(
    records: &[u32],
    law: &Law,
    settings: &Quantity,
    rng: &mut PublicRng,
) -> Result<Vec<Vec<u32>>, DataError> {
    let (clients, least) = (settings.size.clients, settings.least);
    let sizes = match *law {
        Law::Power(exponent) => {
            let weights: Vec<f64> = (1..=clients).map(|k| exp(-exponent * ln(k as f64))).collect();
            let total: f64 = weights.iter().sum();
            let mut sizes = rounded(weights.iter().map(|weight| weight / total), records.len());
            if let Some(smallest) = sizes.iter().min().filter(|&&smallest| smallest < least) {
                let message = format!(
                    "a power law with exponent {exponent} over {clients} clients gives the smallest {smallest} of the {} \
                     records, and {least} are asked for: lower `exponent`, `clients` or `least`",
                    records.len()
                );
                return Err(DataError::config("least", message));
            }
            rng.shuffle(&mut sizes);
            sizes
        }
        Law::Dirichlet(alpha) => {
            let tries = if least.saturating_mul(clients) <= records.len() { TRIES } else { 0 };
            let (mut best, mut found) = (0, None);
            for _ in 0..tries {
                let sizes = rounded(dirichlet_shares(alpha, clients, rng).into_iter(), records.len());
                let smallest = sizes.iter().copied().min().unwrap_or(0);
                best = best.max(smallest);
                if smallest >= least {
                    found = Some(sizes);
                    break;
                }
            }
            let wanted = Wanted { clients, least, records: records.len() };
            found.ok_or_else(|| impossible(wanted, alpha, best))?
        }
    };
    let mut rest = records;
    Ok(sizes
        .into_iter()
        .map(|size| {
            let (part, others) = rest.split_at(size.min(rest.len()));
            rest = others;
            part.to_vec()
        })
        .collect())
}

/// Whole numbers in these proportions that add up to `total`.
fn rounded(shares: impl Iterator<Item = f64>, total: usize) -> Vec<usize> {
    let (mut sum, mut before) = (0.0, 0);
    let mut sizes: Vec<usize> = shares
        .map(|share| {
            sum += share;
            let end = ((sum * total as f64).round() as usize).clamp(before, total);
            let size = end - before;
            before = end;
            size
        })
        .collect();
    if let Some(last) = sizes.last_mut() {
        *last += total - before;
    }
    sizes
}

/// Clusters that see images turned by equal steps.
pub(super) fn turns(clusters: usize, pool: Pool<'_>) -> Result<Vec<(String, Twist)>, DataError> {
    if !pool.square {
        return Err(DataError::config(
            "partition",
            "only square images can be turned: take another partitioner",
        ));
    }
    if clusters != 2 && clusters != 4 {
        let message = format!(
            "images are turned by 0 and 180 degrees, or by 0, 90, 180 and 270: 2 or 4 clusters, not {clusters}"
        );
        return Err(DataError::config("clusters", message));
    }
    let turn = |at: usize| 4 / clusters * at;
    Ok((0..clusters)
        .map(|at| (format!("turned-{:03}", 90 * turn(at)), Twist::Turn(turn(at) as u32)))
        .collect())
}

/// Clusters that call the classes by different numbers; the first one keeps them.
pub(super) fn renames(clusters: usize, pool: Pool<'_>, seed: u64) -> Result<Vec<(String, Twist)>, DataError> {
    // As many orders as there are: beyond 10 classes there are more than anybody asks for.
    let orders = (1..=pool.classes.min(10)).product::<usize>();
    if clusters > orders {
        let message =
            format!("{} classes have {orders} orders: ask for at most so many clusters", pool.classes);
        return Err(DataError::config("clusters", message));
    }
    let mut known: Vec<Vec<u32>> = vec![(0..pool.classes as u32).collect()];
    let mut rng = PublicRng::named(seed, "world/permutation", 0, 0);
    while known.len() < clusters {
        let mut order = known[0].clone();
        rng.shuffle(&mut order);
        if !known.contains(&order) {
            known.push(order);
        }
    }
    let width = clusters.to_string().len();
    Ok(known
        .into_iter()
        .enumerate()
        .map(|(at, order)| {
            let name = format!("order-{:0width$}", at + 1);
            (name, if at == 0 { Twist::None } else { Twist::Rename(order) })
        })
        .collect())
}
