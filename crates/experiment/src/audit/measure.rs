//! Runs of the audited client, each reduced to one score.
//!
//! The observer knows both data sets, the method and all that was asked. Where every answer is a Gaussian
//! release whose mean he can compute, the score is the log-likelihood ratio, and no test is better. Otherwise
//! it is a projection: the answers, less what copies of the client with other randomness answer on average,
//! along the mean difference that pilot runs have shown.

use super::neighbours::Pair;
use fedkin_learner::Dataset;
use fedkin_method::round::audit::{Draw, Lane, Scene, Want};
use fedkin_run::{Control, Error};
use rayon::prelude::*;
use std::sync::Arc;

/// Runs that share their clients: enough to make setting them up cheap.
const BATCH: u32 = 125;
/// Copies of the client that show what it answers on average.
const COPIES: usize = 4;
/// Runs from which a projection is learnt.
const PILOTS: u32 = 256;
/// Runs that must agree that means are known.
const CHECKS: u32 = 8;

/// How a transcript becomes a score.
pub(super) enum Method {
    /// The log-likelihood ratio of Gaussian releases with known means.
    Exact,
    /// A projection: per answer, the mean difference over the variance, by coordinate.
    Learnt(Vec<Vec<f64>>),
}

/// One run.
#[derive(Debug, Clone, Copy)]
pub(super) struct Scored {
    pub(super) score: f64,
    /// The sum of squared differences of the means in units of the noise; where means are known.
    pub(super) distance2: f64,
}

/// The squared distance of two data sets' answers to the same questions with the same randomness, in units of
/// the noise: additive noise cancels, so that few runs tell.
pub(super) fn distance2(
    scene: &dyn Scene,
    data: &[Arc<Dataset>; 2],
    seed: u64,
    runs: u32,
) -> Result<f64, Error> {
    let mut lane = scene.lane(data, 0)?;
    let mut sum = 0.0;
    for number in 0..runs {
        let draw = Draw { seed, purpose: "search", pair: 0, number };
        lane.play(0, draw, Want { twin: true, quiet: false }, &mut |moment| {
            let sigma = moment.charges.iter().map(|charge| charge.sigma).fold(f64::INFINITY, f64::min);
            if let Some(twin) = moment.twin.as_ref().filter(|twin| twin.len() == moment.sent.len()) {
                for (i, (twin, sent)) in twin.iter().zip(&moment.sent).enumerate() {
                    let sigma = moment.noise.get(i).copied().filter(|noise| *noise > 0.0).unwrap_or(sigma);
                    let apart = (twin - sent) / sigma;
                    sum += apart * apart;
                }
            }
        });
    }
    let mean = sum / f64::from(runs);
    Ok(if mean.is_nan() { 0.0 } else { mean })
}

/// Whether every answer is its mean without noise plus Gaussian noise of the size the ledger names, whatever
/// the data. The noise of both data sets is the same number by number, and as large as it should be.
fn means_are_known(scene: &dyn Scene, pair: &Pair, seed: u64) -> Result<bool, Error> {
    if !scene.has_quiet() {
        return Ok(false);
    }
    let mut lane = scene.lane(&pair.data, 0)?;
    let (mut known, mut size, mut count) = (true, 0.0, 0.0);
    for number in 0..CHECKS {
        let draw = Draw { seed, purpose: "check", pair: 0, number };
        let truth = (number % 2) as usize;
        lane.play(truth, draw, Want { twin: true, quiet: true }, &mut |moment| {
            let (Some(twin), Some(expected)) = (&moment.twin, &moment.expected) else {
                known = false;
                return;
            };
            let (own, other) = (&expected[truth], &expected[1 - truth]);
            if [twin, own, other, &moment.noise].iter().any(|part| part.len() != moment.sent.len()) {
                known = false;
                return;
            }
            for i in 0..moment.sent.len() {
                let (noise, sigma) = (moment.sent[i] - own[i], moment.noise[i]);
                if sigma <= 0.0 {
                    // Said to be the same whatever the data.
                    known &= noise == 0.0 && own[i].total_cmp(&other[i]).is_eq();
                    continue;
                }
                let scale = moment.sent[i].abs() + twin[i].abs() + own[i].abs() + other[i].abs();
                // The grid of the noise rounds the two means apart from each other.
                let slack = 1e-5 * sigma + 1e-9 * scale;
                known &= (noise - (twin[i] - other[i])).abs() <= slack;
                size += (noise / sigma) * (noise / sigma);
                count += 1.0;
            }
        });
    }
    // Six standard deviations of a chi-square variable: honest noise misses that once in 10^8 audits.
    Ok(known && count > 0.0 && (size - count).abs() <= 6.0 * (2.0 * count).sqrt())
}

/// Learns how to score a pair.
pub(super) fn learn(
    scene: &dyn Scene,
    pair: &Pair,
    number: u32,
    seed: u64,
    control: &Control<'_>,
) -> Result<Method, Error> {
    if means_are_known(scene, pair, seed)? {
        return Ok(Method::Exact);
    }
    let parts = batches(scene, pair, PILOTS, COPIES, control, &|lane, run| {
        let draw = Draw { seed, purpose: "pilot", pair: number, number: run };
        let mut steps: Vec<Pilot> = Vec::new();
        lane.play((run % 2) as usize, draw, Want::default(), &mut |moment| {
            steps.push(Pilot::of(&moment.copies));
        });
        steps
    })?;
    let mut all: Vec<Pilot> = Vec::new();
    for steps in parts {
        for (i, step) in steps.into_iter().enumerate() {
            match all.get_mut(i) {
                Some(known) => known.add(&step),
                None => all.push(step),
            }
        }
    }
    Ok(Method::Learnt(all.iter().map(Pilot::direction).collect()))
}

/// Sums over pilot runs of one answer, by coordinate.
struct Pilot {
    runs: f64,
    difference: Vec<f64>,
    variance: Vec<f64>,
}

impl Pilot {
    fn of(copies: &[[Vec<f64>; 2]]) -> Self {
        let length = copies.iter().flatten().map(Vec::len).min().unwrap_or(0);
        let count = copies.len() as f64;
        let mut pilot = Self { runs: 1.0, difference: vec![0.0; length], variance: vec![0.0; length] };
        for i in 0..length {
            let mean = |which: usize| copies.iter().map(|both| both[which][i]).sum::<f64>() / count;
            let means = [mean(0), mean(1)];
            pilot.difference[i] = means[1] - means[0];
            for both in copies {
                for which in [0, 1] {
                    let away = both[which][i] - means[which];
                    pilot.variance[i] += away * away / (2.0 * (count - 1.0).max(1.0));
                }
            }
        }
        pilot
    }

    fn add(&mut self, other: &Self) {
        self.runs += other.runs;
        for (sum, value) in self.difference.iter_mut().zip(&other.difference) {
            *sum += value;
        }
        for (sum, value) in self.variance.iter_mut().zip(&other.variance) {
            *sum += value;
        }
    }

    fn direction(&self) -> Vec<f64> {
        let weigh = |(difference, variance): (&f64, &f64)| {
            let (difference, variance) = (difference / self.runs, variance / self.runs);
            // A number without noise tells everything: a tiny variance gives it all the weight.
            difference / variance.max(1e-18 * difference * difference).max(f64::MIN_POSITIVE)
        };
        self.difference.iter().zip(&self.variance).map(weigh).collect()
    }
}

/// Runs the client so often on one of the two data sets and scores every run.
pub(super) fn scores(
    scene: &dyn Scene,
    pair: &Pair,
    method: &Method,
    truth: usize,
    runs: u32,
    (seed, number): (u64, u32),
    control: &Control<'_>,
) -> Result<Vec<Scored>, Error> {
    let copies = if matches!(method, Method::Exact) { 0 } else { COPIES };
    let purpose = ["first", "second"][truth];
    batches(scene, pair, runs, copies, control, &|lane, run| {
        let draw = Draw { seed, purpose, pair: number, number: run };
        let mut scored = Scored { score: 0.0, distance2: 0.0 };
        let mut at = 0;
        let want = Want { twin: false, quiet: copies == 0 };
        lane.play(truth, draw, want, &mut |moment| {
            match method {
                Method::Exact => {
                    let Some([first, second]) = &moment.expected else { return };
                    let means = first.iter().zip(second);
                    for ((sent, sigma), (first, second)) in moment.sent.iter().zip(&moment.noise).zip(means) {
                        if *sigma <= 0.0 {
                            continue;
                        }
                        let (weight, apart) = (1.0 / (sigma * sigma), second - first);
                        scored.score += weight * apart * (sent - 0.5 * (first + second));
                        scored.distance2 += weight * apart * apart;
                    }
                }
                Method::Learnt(directions) => {
                    for (i, weight) in directions.get(at).into_iter().flatten().enumerate() {
                        let copies = moment.copies.iter().flatten();
                        let (mut sum, mut count) = (0.0, 0.0);
                        for value in copies.filter_map(|copy| copy.get(i)) {
                            sum += value;
                            count += 1.0;
                        }
                        if let Some(sent) = moment.sent.get(i).filter(|_| count > 0.0) {
                            scored.score += weight * (sent - sum / count);
                        }
                    }
                }
            }
            at += 1;
        });
        scored
    })
}

/// Runs in parallel and in order, whatever the number of threads.
fn batches<T: Send>(
    scene: &dyn Scene,
    pair: &Pair,
    runs: u32,
    copies: usize,
    control: &Control<'_>,
    each: &(dyn Fn(&mut dyn Lane, u32) -> T + Sync),
) -> Result<Vec<T>, Error> {
    let batches: Vec<u32> = (0..runs.div_ceil(BATCH)).collect();
    let parts: Vec<Vec<T>> = batches
        .par_iter()
        .map(|batch| {
            let mut lane = scene.lane(&pair.data, copies)?;
            let range = batch * BATCH..((batch + 1) * BATCH).min(runs);
            let mut part = Vec::with_capacity(range.len());
            for run in range {
                if control.stop.load(std::sync::atomic::Ordering::Relaxed) {
                    return Err(Error::Interrupted(format!("run {run} of the audit")));
                }
                part.push(each(&mut *lane, run));
                (control.tick)();
            }
            Ok(part)
        })
        .collect::<Result<_, Error>>()?;
    Ok(parts.into_iter().flatten().collect())
}
