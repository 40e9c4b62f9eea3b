//! Label skew from a Dirichlet law, in the two readings that are in use.
//!
//! **By label** (Yurochkin et al. 2019; the code of Li et al. 2022, which the FedPnP paper used): each label is divided over
//! the clients by shares from Dir(alpha, ..., alpha). Labels are dealt one after the other; a client that has its equal share
//! of all records gets no more. Sizes differ, and the whole is drawn again until every client has `least` records.
//!
//! **By client**: each client's mix of labels is from Dir(alpha, ..., alpha), and it draws `samples` records by it. Sizes are
//! equal, as in the paper's MNIST experiments. A label that is used up is left out of the mixes of later clients.

use super::{Dirichlet, Pool, Size};
use crate::error::DataError;
use fedkin_numeric::rng::{PublicRng, Random};
use fedkin_numeric::{exp, ln};

/// How often a division is drawn before it is called impossible.
pub(super) const TRIES: usize = 1000;

/// Shares from a symmetric Dirichlet law, by gamma variates in logarithms: with a small alpha they are too small for plain
/// numbers.
pub(super) fn shares(alpha: f64, count: usize, rng: &mut PublicRng) -> Vec<f64> {
    let logs: Vec<f64> = (0..count).map(|_| log_gamma_variate(alpha, rng)).collect();
    let top = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let mut shares: Vec<f64> = logs.iter().map(|log| exp(log - top)).collect();
    let total: f64 = shares.iter().sum();
    for share in &mut shares {
        *share /= total;
    }
    shares
}

/// The logarithm of a gamma variate of this shape and scale 1 (Marsaglia and Tsang 2000).
fn log_gamma_variate(shape: f64, rng: &mut PublicRng) -> f64 {
    // A shape below 1 is one above with a factor U^(1/shape); 1 - U is never 0.
    if shape < 1.0 {
        let factor = ln(1.0 - rng.uniform()) / shape;
        return log_gamma_variate(shape + 1.0, rng) + factor;
    }
    let d = shape - 1.0 / 3.0;
    let c = 1.0 / (9.0 * d).sqrt();
    loop {
        let x = rng.normal();
        let root = 1.0 + c * x;
        if root <= 0.0 {
            continue;
        }
        let v = root * root * root;
        if ln(1.0 - rng.uniform()) < 0.5 * x * x + d - d * v + d * ln(v) {
            return ln(d) + ln(v);
        }
    }
}

/// The records of each label in the order given.
fn piles(pool: Pool<'_>, records: impl IntoIterator<Item = u32>) -> Vec<Vec<u32>> {
    let mut piles = vec![Vec::new(); pool.classes];
    for record in records {
        piles[pool.labels[record as usize] as usize].push(record);
    }
    piles
}

/// Every client draws its own mix of labels.
pub(super) fn by_client(pool: Pool<'_>, size: &Size, alpha: f64, rng: &mut PublicRng) -> Vec<Vec<u32>> {
    let samples = size.samples.unwrap_or(pool.labels.len() / size.clients);
    let mut all: Vec<u32> = (0..pool.labels.len() as u32).collect();
    rng.shuffle(&mut all);
    let mut piles = piles(pool, all);
    (0..size.clients)
        .map(|_| {
            let mix = shares(alpha, pool.classes, rng);
            let mut mine = Vec::with_capacity(samples);
            while mine.len() < samples {
                // All records together suffice: that was checked.
                let Some(label) = pick(&mix, &piles, rng) else { break };
                mine.extend(piles[label].pop());
            }
            mine
        })
        .collect()
}

/// A label by the mix among those that are not used up; by what is left where the mix has no weight on them.
fn pick(mix: &[f64], piles: &[Vec<u32>], rng: &mut PublicRng) -> Option<usize> {
    let open = |label: &usize| !piles[*label].is_empty();
    let weight: f64 = (0..piles.len()).filter(open).map(|label| mix[label]).sum();
    let by_mix = weight > 0.0;
    let share = |label: usize| if by_mix { mix[label] } else { piles[label].len() as f64 };
    let total: f64 = (0..piles.len()).filter(open).map(share).sum();
    let mut point = rng.uniform() * total;
    let mut last = None;
    for label in (0..piles.len()).filter(open).filter(|&label| share(label) > 0.0) {
        last = Some(label);
        if point < share(label) {
            break;
        }
        point -= share(label);
    }
    last
}

/// Every label is divided over the clients.
pub(super) fn by_label(
    pool: Pool<'_>,
    records: Vec<u32>,
    settings: &Dirichlet,
    rng: &mut PublicRng,
) -> Result<Vec<Vec<u32>>, DataError> {
    let Dirichlet { size: Size { clients, .. }, alpha, least, .. } = *settings;
    let there = records.len();
    let piles = piles(pool, records);
    let sizes: Vec<usize> = piles.iter().map(Vec::len).collect();
    let possible = least.saturating_mul(clients) <= there;
    let mut best = 0;
    for _ in 0..if possible { TRIES } else { 0 } {
        let counts = division(&sizes, alpha, clients, rng);
        let smallest =
            (0..clients).map(|client| counts.iter().map(|label| label[client]).sum::<usize>()).min();
        best = best.max(smallest.unwrap_or(0));
        if smallest >= Some(least) {
            let mut dealt = vec![Vec::new(); clients];
            for (pile, counts) in piles.iter().zip(&counts) {
                let mut rest = pile.as_slice();
                for (mine, &count) in dealt.iter_mut().zip(counts) {
                    let (part, others) = rest.split_at(count.min(rest.len()));
                    mine.extend_from_slice(part);
                    rest = others;
                }
            }
            return Ok(dealt);
        }
    }
    Err(impossible(Wanted { clients, least, records: there }, alpha, best))
}

/// How many records how many clients are to have, and how many there are.
#[derive(Debug, Clone, Copy)]
pub(super) struct Wanted {
    pub(super) clients: usize,
    pub(super) least: usize,
    pub(super) records: usize,
}

/// The message for a law that leaves clients with too few records.
pub(super) fn impossible(wanted: Wanted, alpha: f64, best: usize) -> DataError {
    let Wanted { clients, least, records } = wanted;
    let why = if least.saturating_mul(clients) > records {
        format!("{clients} clients with at least {least} records each need {}", least.saturating_mul(clients))
    } else {
        format!("in {TRIES} draws the smallest client never had more than {best}")
    };
    DataError::config(
        "least",
        format!(
            "Dirichlet({alpha}) over {clients} clients cannot give every client at least {least} of the {records} records: \
             {why}; raise `alpha`, or lower `clients` or `least`"
        ),
    )
}

/// How many records of each label each client gets.
fn division(sizes: &[usize], alpha: f64, clients: usize, rng: &mut PublicRng) -> Vec<Vec<usize>> {
    let equal = sizes.iter().sum::<usize>() as f64 / clients as f64;
    let mut held = vec![0usize; clients];
    let mut division = Vec::with_capacity(sizes.len());
    for &size in sizes {
        let mut shares = shares(alpha, clients, rng);
        for (share, &held) in shares.iter_mut().zip(&held) {
            if held as f64 >= equal {
                *share = 0.0;
            }
        }
        let total: f64 = shares.iter().sum();
        // Only rounding can leave all weight on clients that have enough: then those that have not share equally.
        if total <= 0.0 {
            let open = |held: usize| f64::from(u8::from((held as f64) < equal));
            shares.iter_mut().zip(&held).for_each(|(share, &held)| *share = open(held));
        }
        let total: f64 = shares.iter().sum();
        let (mut sum, mut before) = (0.0, 0);
        let mut counts: Vec<usize> = Vec::with_capacity(clients);
        for (client, share) in shares.iter().enumerate() {
            sum += share;
            let end = if client + 1 == clients { size } else { (sum / total * size as f64) as usize };
            let end = end.clamp(before, size);
            counts.push(end - before);
            before = end;
        }
        held.iter_mut().zip(&counts).for_each(|(held, count)| *held += count);
        division.push(counts);
    }
    division
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Mean and variance of a share are 1/n and (n - 1) / (n^2 (n alpha + 1)). With 20,000 draws of which each has standard
    /// error below, 5 of them bound the error: fails by chance with probability below 1e-5.
    #[test]
    fn shares_have_the_moments_of_the_law() {
        let (draws, count) = (20_000, 5);
        for alpha in [0.1, 0.5, 1.0, 4.0] {
            let mut rng = PublicRng::named(11, "test", 0, 0);
            let first: Vec<f64> = (0..draws).map(|_| shares(alpha, count, &mut rng)[0]).collect();
            let mean = first.iter().sum::<f64>() / f64::from(draws);
            let squares: Vec<f64> = first.iter().map(|x| (x - mean) * (x - mean)).collect();
            let variance = squares.iter().sum::<f64>() / f64::from(draws);
            let fourth =
                squares.iter().map(|x| (x - variance) * (x - variance)).sum::<f64>() / f64::from(draws);
            let n = count as f64;
            let expected = (n - 1.0) / (n * n * (n * alpha + 1.0));
            assert!((mean - 1.0 / n).abs() < 5.0 * (expected / f64::from(draws)).sqrt(), "mean {mean}");
            let error = (fourth / f64::from(draws)).sqrt();
            assert!(
                (variance - expected).abs() < 5.0 * error,
                "alpha {alpha}: {variance} against {expected}"
            );
        }
    }

    /// Two shares are within a factor of 1000 with probability about 9 alpha ln 1000: by chance this fails 1 time in 100,000.
    #[test]
    fn a_tiny_alpha_gives_one_label_and_no_nan() {
        let mut rng = PublicRng::named(11, "test", 0, 0);
        for _ in 0..100 {
            let shares = shares(1e-9, 10, &mut rng);
            assert!((shares.iter().sum::<f64>() - 1.0).abs() < 1e-12);
            assert!(shares.iter().any(|share| *share > 0.999));
        }
    }
}
