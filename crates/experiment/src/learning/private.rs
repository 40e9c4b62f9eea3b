//! One release per client, and everything else from it.
//!
//! With a shield only the noisy scatter matrices are looked at: parameters are chosen, and conditions checked, on what was
//! released. The noise follows from a client's secret and from what it was asked, which is the same whatever beta, rho and
//! lambda are. So several runs with one secret see one and the same release, and only one is charged.

use super::solve::Stage;
use super::{Parameters, Settings};
use fedkin_learner::signals::{degrees, nodes_of};
use fedkin_numeric::rng::simulated_secret;
use fedkin_privacy::{Privacy, PrivacySettings, Protection};
use fedkin_run::{Control, Error};
use fedkin_settings::Settings as _;

/// What protects the records.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Shield {
    /// Epsilon of the release.
    pub epsilon: f64,
    /// Delta of the release.
    pub delta: f64,
    /// The largest norm of one record, less its mean over the nodes.
    pub clip: f64,
    /// The noise follows from the seed: it can be repeated, and taken away by whoever knows the seed.
    pub seeded: bool,
}

/// Beyond this many doublings of beta a graph is not complete for another reason.
const MOST_TRIES: u32 = 60;

impl Shield {
    /// A scale of squared differences that follows from the bound alone and says nothing of the records.
    pub(super) fn scale(&self, nodes: usize) -> f64 {
        2.0 * self.clip * self.clip / nodes as f64
    }

    /// The mechanism on records that were divided by the root of `unit`, and a secret per client.
    pub(super) fn mechanism(
        &self,
        unit: f64,
        seed: u64,
        clients: usize,
    ) -> Result<(Privacy, Vec<[u8; 32]>), Error> {
        let keys = PrivacySettings {
            mechanism: Protection::OneShot,
            epsilon: Some(self.epsilon),
            delta: self.delta,
            clip: Some(self.clip / unit.sqrt()),
            ..PrivacySettings::default()
        };
        keys.validated().map_err(|problems| {
            let all: Vec<String> = problems.iter().map(ToString::to_string).collect();
            Error::Usage(all.join("; "))
        })?;
        let privacy = Privacy::new(&keys).map_err(Error::Usage)?;
        let mut secrets = Vec::with_capacity(clients);
        for client in 0..clients as u32 {
            let mut secret = simulated_secret(seed, client);
            if !self.seeded {
                getrandom::fill(&mut secret).map_err(|error| {
                    Error::Usage(format!("the system gives no random numbers for noise: {error}"))
                })?;
            }
            secrets.push(secret);
        }
        Ok((privacy, secrets))
    }
}

/// The mean squared differences that were released.
///
/// A server of the method keeps them to itself, but its graphs tell: in a complete graph of a client alone
/// `4 beta w_jk = y_j + y_k - 2 zbar_jk` for every pair, with `y_j = alpha / degree_j`.
pub(super) fn released(
    stage: &mut Stage<'_>,
    settings: &Settings,
    control: &Control<'_>,
) -> Result<Vec<Vec<f64>>, Error> {
    let rounds = std::mem::replace(&mut stage.rounds, 1);
    let quiet = Control { stop: control.stop, tick: &|| {} };
    let mut beta = stage.unit * stage.unit;
    for _ in 0..MOST_TRIES {
        let parameters = Parameters { beta, tie: Some((0.0, 0.0)) };
        let graphs = stage.solve(parameters, &quiet)?.graphs;
        if graphs.iter().flatten().all(|w| *w > 0.0) {
            stage.rounds = rounds;
            return Ok(graphs.iter().map(|graph| inverted(settings.alpha, beta, graph)).collect());
        }
        beta *= 8.0;
    }
    Err(Error::Usage(
        "nothing is left of the records under so much noise: raise --epsilon, or bring more records".into(),
    ))
}

fn inverted(alpha: f64, beta: f64, graph: &[f64]) -> Vec<f64> {
    let nodes = nodes_of(graph.len()).unwrap_or(0);
    let mut degree = vec![0.0; nodes];
    degrees(graph, &mut degree);
    let mut zbar: Vec<f64> = graph.iter().map(|w| -2.0 * beta * w).collect();
    let multipliers: Vec<f64> = degree.iter().map(|degree| alpha / degree).collect();
    fedkin_learner::signals::add_back(0.5, &multipliers, &mut zbar);
    for z in &mut zbar {
        *z = z.max(0.0);
    }
    zbar
}
