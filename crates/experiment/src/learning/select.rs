//! Parameters without a truth: by records that were held out.
//!
//! Every client's records are cut into two random halves, three times. Graphs are learnt from each half.
//!
//! 1. beta, rho and lambda are those under which the graphs of one half give the records of the other the largest
//!    likelihood ([`log_likelihood`]). It does not depend on beta, as the objective itself does.
//! 2. A likelihood hardly minds small weights on edges that are not there. The threshold is the one at which the graphs
//!    of the two halves agree best on their edges, by Cohen's kappa (Sun, Wang and Fang, Consistent selection of tuning
//!    parameters via variable selection stability, 2013), among those that leave at most half of all pairs: the least that
//!    is within one standard error of the best.

use super::choice::{self, LAMBDA_SHARE};
use super::likelihood::{agreement, log_likelihood};
use super::solve::{Stage, alone, unit_of};
use super::summary::Selected;
use super::{Input, Parameters, Settings};
use fedkin_data::InOrder;
use fedkin_learner::Dataset;
use fedkin_learner::signals::{Records, Smooth, means};
use fedkin_numeric::rng::{PublicRng, Random};
use fedkin_run::{Control, Error};
use rayon::prelude::*;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// So often the records are cut into halves.
pub const SPLITS: u32 = 3;
/// Fewer records than this cannot be cut.
const LEAST_RECORDS: usize = 8;
const BETAS: usize = 5;
/// Densities of a client alone run up to this.
const MOST_DENSITY: f64 = 0.9;
/// Shares of the rho that fuses all graphs.
const RHOS: [f64; 5] = [0.01, 0.03, 0.1, 0.3, 1.0];
/// Shares of the lambda that empties the consensus, besides the usual one.
const LAMBDAS: [f64; 2] = [0.02, 0.4];
/// Shares of the largest weight.
const THRESHOLDS: [f64; 13] = [0.0, 0.02, 0.05, 0.08, 0.12, 0.16, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5];
/// Edges that a threshold may leave, as a share of all pairs.
const SPARSE: f64 = 0.5;
const TOLERANCE: f64 = 1e-5;
const ROUNDS: u32 = 300;

/// How many times graphs are learnt, for a bar.
pub fn fits(settings: &Settings, clients: usize) -> u64 {
    let tied = clients > 1 && !settings.alone;
    let betas = if settings.beta.is_some() || settings.density.is_some() { 1 } else { BETAS };
    let rhos = if tied && settings.rho.is_none() { RHOS.len() } else { 1 };
    let lambdas = if tied && settings.lambda.is_none() { LAMBDAS.len() } else { 0 };
    let thresholds = usize::from(settings.threshold.is_none());
    (betas * rhos + lambdas + thresholds) as u64 * u64::from(2 * SPLITS)
}

/// The distances of one half of all clients' records, and of the other.
struct Half {
    own: Vec<Vec<f64>>,
    /// How many records of each client the other half has.
    others: Vec<f64>,
    /// Where the other half stands among all.
    other: usize,
}

/// Halves of one client's records: two lists of rows.
fn halves(rows: usize, seed: u64, split: u32, client: u32) -> [Vec<usize>; 2] {
    let mut order: Vec<usize> = (0..rows).collect();
    let mut rng = PublicRng::named(seed, "graph learn/halves", split, client);
    for last in (1..rows).rev() {
        order.swap(last, rng.below(last as u32 + 1) as usize);
    }
    let second = order.split_off(rows / 2);
    [order, second]
}

fn cut(input: &Input, seed: u64) -> Result<Vec<Half>, Error> {
    let columns = input.nodes.len();
    let problem = Smooth { alpha: 1.0, beta: 1.0, records: Records::Signals };
    let mut all = Vec::with_capacity(2 * SPLITS as usize);
    for split in 0..SPLITS {
        let mut pair = [(Vec::new(), Vec::new()), (Vec::new(), Vec::new())];
        for (client, data) in input.world.train.iter().enumerate() {
            let name = input.world.federation.client_name(client as u32);
            if data.rows() < LEAST_RECORDS {
                return Err(Error::Usage(format!(
                    "--select holds out half of every client's records, and client {name:?} has only {}: at least \
                     {LEAST_RECORDS} are needed; give --beta, --rho and --lambda instead",
                    data.rows()
                )));
            }
            let parts = halves(data.rows(), seed, split, client as u32);
            for (place, (own, part)) in pair.iter_mut().zip(&parts).enumerate() {
                let features: Vec<f64> = part.iter().flat_map(|&row| data.row(row).iter().copied()).collect();
                let set = Dataset::new(columns, features, vec![0.0; part.len()]);
                let zbar = set.ok().and_then(|set| means(&problem, &set, None).ok()).ok_or_else(|| {
                    Error::Usage(format!(
                        "--select: half of the records of client {name:?} are constant over the nodes; give --beta, \
                         --rho and --lambda instead"
                    ))
                })?;
                own.0.push(zbar.zbar.to_vec());
                own.1.push(parts[1 - place].len() as f64);
            }
        }
        let first = all.len();
        for (place, (own, others)) in pair.into_iter().enumerate() {
            all.push(Half { own, others, other: first + 1 - place });
        }
    }
    Ok(all)
}

struct Search<'a> {
    input: &'a Input,
    alpha: f64,
    halves: Vec<Half>,
    control: &'a Control<'a>,
}

impl Search<'_> {
    fn fit(&self, half: &Half, parameters: Parameters) -> Result<Vec<Vec<f64>>, Error> {
        if self.control.stop.load(Ordering::Relaxed) {
            return Err(Error::Interrupted("the choice of parameters; nothing was written".into()));
        }
        let graphs = if parameters.tie.is_some() {
            let pairs = half.own[0].len();
            let set = |zbar: &Vec<f64>| {
                Dataset::new(pairs, zbar.clone(), vec![0.0])
                    .map(Arc::new)
                    .map_err(|error| Error::Usage(error.to_string()))
            };
            let data: Vec<Arc<Dataset>> = half.own.iter().map(set).collect::<Result<_, Error>>()?;
            let mean = half.own.iter().flatten().sum::<f64>() / (pairs * data.len()) as f64;
            let federation = &self.input.world.federation;
            let mut stage = Stage::new(federation, &data, (self.alpha, Records::Distances), unit_of(mean))?;
            (stage.tolerance, stage.rounds) = (TOLERANCE, ROUNDS);
            let quiet = Control { stop: self.control.stop, tick: &|| {} };
            stage.solve(parameters, &quiet)?.graphs
        } else {
            half.own
                .iter()
                .map(|zbar| alone(self.alpha, parameters.beta, zbar))
                .collect::<Result<_, Error>>()?
        };
        (self.control.tick)();
        Ok(graphs)
    }

    /// Mean log-likelihood of a record that was held out. A graph that cannot be learnt is as bad as can be.
    fn score(&self, parameters: Parameters) -> Result<f64, Error> {
        let (mut sum, mut records) = (0.0, 0.0);
        for half in &self.halves {
            let graphs = match self.fit(half, parameters) {
                Ok(graphs) => graphs,
                Err(error @ Error::Interrupted(_)) => return Err(error),
                Err(_) => return Ok(f64::NEG_INFINITY),
            };
            let others = &self.halves[half.other].own;
            for ((graph, zbar), count) in graphs.iter().zip(others).zip(&half.others) {
                let nodes = self.input.nodes.len();
                sum += count * log_likelihood(nodes, graph, zbar).unwrap_or(f64::NEG_INFINITY);
                records += count;
            }
        }
        Ok(sum / records)
    }

    /// The best of several, the first of equals.
    fn best(&self, candidates: &[Parameters]) -> Result<(Parameters, f64), Error> {
        let scores: Vec<f64> = candidates.par_iter().map(|parameters| self.score(*parameters)).in_order()?;
        let mut best: Option<(Parameters, f64)> = None;
        for (parameters, score) in candidates.iter().zip(scores) {
            if score.is_finite() && best.is_none_or(|(_, known)| score > known) {
                best = Some((*parameters, score));
            }
        }
        best.ok_or_else(|| {
            Error::Usage(
                "--select: no parameters gave graphs that can be judged; give --beta, --rho and --lambda"
                    .into(),
            )
        })
    }

    /// The threshold at which halves agree best, and how well they do.
    fn threshold(&self, parameters: Parameters) -> Result<(f64, f64), Error> {
        let fitted: Vec<Vec<Vec<f64>>> =
            self.halves.par_iter().map(|half| self.fit(half, parameters)).in_order()?;
        // Mean agreement, its standard error and the density under every threshold.
        let mut found: Vec<(f64, f64, f64, f64)> = Vec::with_capacity(THRESHOLDS.len());
        for share in THRESHOLDS {
            let (mut kappas, mut density) = (Vec::new(), 0.0);
            for pair in fitted.chunks_exact(2) {
                for (a, b) in pair[0].iter().zip(&pair[1]) {
                    let (a, b) = (choice::pruned(a, share), choice::pruned(b, share));
                    kappas.push(agreement(&a, &b));
                    density += f64::midpoint(choice::density(&a, 0.0), choice::density(&b, 0.0));
                }
            }
            let count = kappas.len() as f64;
            let mean = kappas.iter().sum::<f64>() / count;
            let spread = kappas.iter().map(|kappa| (kappa - mean) * (kappa - mean)).sum::<f64>();
            found.push((share, mean, (spread / (count * (count - 1.0).max(1.0))).sqrt(), density / count));
        }
        let sparse: Vec<_> = found.iter().filter(|(_, _, _, density)| *density <= SPARSE).collect();
        let best = sparse.iter().max_by(|a, b| a.1.total_cmp(&b.1));
        // Of those that agree as well, within the error, the one that removes least.
        let least = best.and_then(|best| sparse.iter().find(|one| one.1 >= best.1 - best.2));
        Ok(least.map(|one| (one.0, one.1)).or(found.last().map(|one| (one.0, one.1))).unwrap_or((0.0, 0.0)))
    }
}

/// What was chosen: the parameters, the threshold, and what they were chosen by.
pub(super) fn select(
    input: &Input,
    settings: &Settings,
    zbar: &[Vec<f64>],
    control: &Control<'_>,
) -> Result<(Parameters, f64, Selected), Error> {
    let (alpha, share) = (settings.alpha, settings.threshold.unwrap_or(super::THRESHOLD));
    let search = Search { input, alpha, halves: cut(input, settings.seed)?, control };
    let betas: Vec<f64> = match (settings.beta, settings.density) {
        (Some(beta), _) => vec![beta],
        (None, Some(target)) => vec![super::learn::beta_for(alpha, zbar, target, share)?.beta],
        (None, None) => {
            let least = choice::usual_density(input.nodes.len());
            let mut betas: Vec<f64> = Vec::with_capacity(BETAS);
            for k in 0..BETAS {
                let target = least * (MOST_DENSITY.max(least) / least).powf(k as f64 / (BETAS - 1) as f64);
                let beta = choice::beta_of_density(alpha, zbar, target, share)?.beta;
                if !betas.contains(&beta) {
                    betas.push(beta);
                }
            }
            betas
        }
    };
    let tied = zbar.len() > 1 && !settings.alone;
    let mut candidates = Vec::new();
    for &beta in &betas {
        if !tied {
            candidates.push(Parameters { beta, tie: None });
            continue;
        }
        let empty = choice::emptying_lambda(alpha, beta, zbar)?;
        let rhos = if let Some(rho) = settings.rho {
            vec![rho]
        } else {
            let fusing = choice::fusing_rho(alpha, beta, zbar)?;
            RHOS.iter().map(|share| share * fusing).collect()
        };
        for rho in rhos {
            let lambda = settings.lambda.unwrap_or(LAMBDA_SHARE * rho * empty);
            candidates.push(Parameters { beta, tie: Some((rho, lambda)) });
        }
    }
    let mut tried = candidates.len();
    let (mut chosen, mut score) = search.best(&candidates)?;
    if let (Some((rho, _)), None) = (chosen.tie, settings.lambda) {
        let empty = choice::emptying_lambda(alpha, chosen.beta, zbar)?;
        let more: Vec<Parameters> = LAMBDAS
            .iter()
            .map(|share| Parameters { tie: Some((rho, share * rho * empty)), ..chosen })
            .collect();
        tried += more.len();
        match search.best(&more) {
            Ok((other, better)) if better > score => (chosen, score) = (other, better),
            Err(error @ Error::Interrupted(_)) => return Err(error),
            // None of them is better than what was found.
            _ => {}
        }
    }
    let (threshold, agreement) = if let Some(threshold) = settings.threshold {
        (threshold, None)
    } else {
        let (threshold, kappa) = search.threshold(chosen)?;
        (threshold, Some(kappa))
    };
    Ok((chosen, threshold, Selected { tried, splits: SPLITS, log_likelihood: score, agreement }))
}
