//! PGFL: personalized graph federated learning.
//!
//! Paper: Gauthier, Gogineni, Werner, Huang, Kuh, "Personalized graph federated learning with differential
//! privacy". Server rule, Algorithm 1 (N_s contains s):
//!
//! ```text
//! (9)  w^_sq = mean over p in N_s of w~_pq
//! (10) w_sq  = (1 - tau) w^_sq + tau/(Q-1) sum over r != q of w^_sr
//! ```
//!
//! | symbol | here |
//! |---|---|
//! | tau | `inter_cluster`: a constant, `start * decay^n`, or adaptive |
//! | w~_sq, w^_sq, w_sq | aggregate, neighbourhood mean, served |
//! | Q | `run.clusters` |
//!
//! The dual step (5) uses the served model (Algorithm 1) or the aggregate (Algorithm 2 as printed).
//!
//! **Adaptive tau** (ours; the GFedMtl paper calls for it). Mixing q with the others trades the variance v
//! of the neighbourhood's mean against the squared distance d2 to the other clusters, so
//! `tau_sq = min(v / d2, (Q-1)/Q)`. Both are measured on exponential averages of what (9) exchanges anyway,
//! plus two scalars per cluster; it is post-processing of released models and costs no privacy.
//!
//! Reductions: tau = 0 decouples the clusters; Q = 1 is GFL; no edges is ClusterFL; one server is one-cloud.

use super::admm::{AdmmKeys, PENALTY, READOUT, Rule, window};
use crate::algorithm::{Now, ServerView};
use crate::registry::Context;
use crate::robust::Aggregator;
use fedkin_numeric::{axpy, blend, distance2, power, record, scale};
use fedkin_settings::{Kind, Preset, Setting, Settings, Value, choice, settings};

settings! {
    /// tau that falls from round to round: `start * decay^n`.
    pub struct TauDecay {
        start: f64 => Kind::SHARE, Preset::Required, "value before the first round";
        decay: f64 => Kind::SHARE, Preset::Required, "factor per round";
    }
}

/// tau over the rounds: how much a cluster borrows from the others.
#[derive(Debug, Clone, PartialEq)]
pub enum Tau {
    /// The same in all rounds.
    Fixed(f64),
    /// Falling.
    Decay(TauDecay),
    /// By what the models turn out to have in common.
    Adaptive,
}

/// The word for a tau that adapts.
const ADAPTIVE: &str = "adaptive";

impl Tau {
    /// The values of a config that are a tau.
    pub(super) const KIND: Kind =
        Kind::Either(&[Kind::SHARE, Kind::Choice(&[ADAPTIVE]), Kind::Table(TauDecay::PARAMS)]);

    /// The value of round n = 1, 2, ..., unless it adapts. One cluster has nothing to borrow.
    pub(super) fn at(&self, round: u32, clusters: usize) -> Option<f64> {
        match self {
            _ if clusters < 2 => Some(0.0),
            Tau::Fixed(tau) => Some(*tau),
            Tau::Decay(TauDecay { start, decay }) => Some(start * power(*decay, round)),
            Tau::Adaptive => None,
        }
    }
}

impl Setting for Tau {
    fn read(value: Option<&Value>) -> Result<Self, String> {
        match value {
            Some(Value::Text(word)) if word == ADAPTIVE => Ok(Tau::Adaptive),
            Some(Value::Table(_)) => Setting::read(value).map(Tau::Decay),
            other => Setting::read(other).map(Tau::Fixed),
        }
    }

    fn write(&self) -> Option<Value> {
        match self {
            Tau::Fixed(tau) => tau.write(),
            Tau::Decay(decay) => Setting::write(decay),
            Tau::Adaptive => Some(Value::Text(ADAPTIVE.into())),
        }
    }
}

choice! {
    /// Which model the dual step (5) uses.
    pub enum Dual {
        /// The served one of (10).
        Served = "served",
        /// The aggregate, as in (13).
        Aggregate = "aggregate",
    }
}

settings! {
    /// Keys of PGFL.
    pub struct PgflSettings {
        /// Weight of the proximal term (rho).
        penalty: f64 => param PENALTY;
        inter_cluster: Tau => Tau::KIND, Preset::Text(ADAPTIVE), "how much a cluster borrows from the others (tau)";
        dual: Dual => Kind::Choice(Dual::WORDS), Preset::Text("served"),
            "which model the dual step (5) uses: the served one of (10) or the aggregate (13)";
        /// Memory per round of the averaged served model that is handed over at the end.
        readout_memory: f64 => param READOUT;
    }
}

/// Memory of the averages behind the adaptive tau.
const MEMORY: f64 = 0.95;

/// The server rule.
#[derive(Debug, Clone)]
pub struct Pgfl {
    tau: Tau,
    dual: Dual,
    /// How (9) is taken.
    neighbours: Aggregator,
    /// Rounds in which only the first cluster has clients, where clusters are found on the way: nothing is measured.
    alone: u32,
    /// Rounds in which clusters borrow nothing from each other: they are still forming.
    apart: u32,
}

record! {
    /// Models by cluster, one after the other.
    pub struct State { served: Vec<f64>, aggregate: Vec<f64>, kin: Kin }
    /// What the adaptive tau has measured.
    pub struct Kin {
        /// Averages of the aggregates (8) of every server of the neighbourhood, by server id.
        aggregates: Vec<f64>,
        /// Averages of the neighbourhood means (9).
        means: Vec<f64>,
        /// v per cluster.
        variance: Vec<f64>,
        /// d2 per cluster.
        distance: Vec<f64>,
    }
    /// Aggregates by cluster; v and d2 per cluster where tau adapts.
    pub struct Share { aggregate: Vec<f64>, variance: Vec<f64>, distance: Vec<f64> }
}

impl Rule for Pgfl {
    const NAME: &'static str = "pgfl";
    const ADVICE: &'static str = "raise `algorithm.penalty` (dual = \"served\" diverges up to about 0.5) or set algorithm.dual = \"aggregate\"";
    type Settings = PgflSettings;
    type State = State;
    type Share = Share;

    fn build(settings: PgflSettings, context: &Context) -> Result<(Self, AdmmKeys), String> {
        let PgflSettings { penalty, inter_cluster, dual, readout_memory } = settings;
        let (alone, apart) = context
            .infer
            .map_or((0, 0), |infer| (infer.warm_up, infer.warm_up.saturating_add(infer.forming)));
        let neighbours = context.robust.of_neighbours();
        let rule = Pgfl { tau: inter_cluster, dual, neighbours, alone, apart };
        Ok((rule, AdmmKeys { penalty, readout_memory }))
    }

    fn open(&self, at: ServerView<'_>) -> State {
        let models = vec![0.0; at.run.clusters * at.run.dimension];
        let kin = if self.tau == Tau::Adaptive && at.run.clusters > 1 {
            Kin {
                aggregates: vec![0.0; (at.neighbours.len() + 1) * models.len()],
                means: models.clone(),
                variance: vec![0.0; at.run.clusters],
                distance: vec![0.0; at.run.clusters],
            }
        } else {
            Kin::default()
        };
        State { served: models.clone(), aggregate: models, kin }
    }

    fn close(&self, state: &mut State, _: Now<'_>, aggregates: Vec<f64>) -> Share {
        state.aggregate.copy_from_slice(&aggregates);
        Share {
            aggregate: aggregates,
            variance: state.kin.variance.clone(),
            distance: state.kin.distance.clone(),
        }
    }

    fn mix(&self, state: &mut State, now: Now<'_>, shares: &[(u32, &Share)]) {
        let (clusters, dimension) = (now.at.run.clusters, now.at.run.dimension);
        let means = match self.neighbours {
            Aggregator::Mean => neighbourhood_mean(shares),
            robust => robust_neighbourhood(robust, shares, &state.served, dimension),
        };
        let tau = self.tau.at(now.step, clusters);
        if tau.is_none() && now.step > self.alone {
            state.kin.measure(now, shares, &means, window(MEMORY, now.step - self.alone));
        }
        for q in 0..clusters {
            let tau = match tau {
                _ if now.step <= self.apart => 0.0,
                Some(tau) => tau,
                None => state.kin.tau(now, shares, q),
            };
            inter_cluster(tau, &means, q, &mut state.served[q * dimension..(q + 1) * dimension]);
        }
    }

    fn served<'a>(&self, state: &'a State) -> &'a [f64] {
        &state.served
    }

    fn dual<'a>(&self, state: &'a State) -> &'a [f64] {
        match self.dual {
            Dual::Served => &state.served,
            Dual::Aggregate => &state.aggregate,
        }
    }
}

/// (9)
fn neighbourhood_mean(shares: &[(u32, &Share)]) -> Vec<f64> {
    let mut mean = shares[0].1.aggregate.clone();
    for (_, share) in &shares[1..] {
        axpy(1.0, &share.aggregate, &mut mean);
    }
    scale(1.0 / shares.len() as f64, &mut mean);
    mean
}

/// (9) with another aggregator, cluster by cluster; `before` are the models that were served.
fn robust_neighbourhood(
    aggregator: Aggregator,
    shares: &[(u32, &Share)],
    before: &[f64],
    dimension: usize,
) -> Vec<f64> {
    let mut all = before.to_vec();
    for (q, out) in all.chunks_exact_mut(dimension).enumerate() {
        let range = q * dimension..(q + 1) * dimension;
        let entries: Vec<(f64, &[f64])> =
            shares.iter().map(|(_, share)| (1.0, &share.aggregate[range.clone()])).collect();
        aggregator.aggregate(&entries, out);
    }
    all
}

/// (10) for cluster q.
fn inter_cluster(tau: f64, means: &[f64], q: usize, out: &mut [f64]) {
    let own = &means[q * out.len()..(q + 1) * out.len()];
    for (out, own) in out.iter_mut().zip(own) {
        *out = (1.0 - tau) * own;
    }
    if tau > 0.0 {
        let clusters = means.len() / out.len();
        let share = tau / (clusters - 1) as f64;
        for other in (0..clusters).filter(|r| *r != q) {
            axpy(share, &means[other * own.len()..(other + 1) * own.len()], out);
        }
    }
}

impl Kin {
    /// Brings v and d2 of this server up to date; `weight` is that of the newest values.
    fn measure(&mut self, now: Now<'_>, shares: &[(u32, &Share)], means: &[f64], weight: f64) {
        let (clusters, dimension) = (now.at.run.clusters, now.at.run.dimension);
        let size = clusters * dimension;
        for ((_, share), average) in shares.iter().zip(self.aggregates.chunks_exact_mut(size)) {
            blend(average, &share.aggregate, weight);
        }
        blend(&mut self.means, means, weight);
        let n = shares.len() as f64;
        for q in 0..clusters {
            let range = q * dimension..(q + 1) * dimension;
            let mut centre = vec![0.0; dimension];
            for average in self.aggregates.chunks_exact(size) {
                axpy(1.0 / n, &average[range.clone()], &mut centre);
            }
            let mut spread = 0.0;
            for average in self.aggregates.chunks_exact(size) {
                spread += distance2(&average[range.clone()], &centre);
            }
            // The variance of a mean of one cannot be measured: nothing is borrowed then.
            self.variance[q] = if shares.len() > 1 { spread / (n * (n - 1.0)) } else { 0.0 };
            let mut others = vec![0.0; dimension];
            for r in (0..clusters).filter(|r| *r != q) {
                axpy(
                    1.0 / (clusters - 1) as f64,
                    &self.means[r * dimension..(r + 1) * dimension],
                    &mut others,
                );
            }
            self.distance[q] = distance2(&self.means[range], &others);
        }
    }

    /// tau of cluster q from the sums of v and d2 over the neighbourhood (neighbours lag by one round).
    fn tau(&self, now: Now<'_>, shares: &[(u32, &Share)], q: usize) -> f64 {
        let (mut variance, mut distance) = (0.0, 0.0);
        for (id, share) in shares {
            let own = *id == now.at.id;
            variance += if own { self.variance[q] } else { share.variance[q] };
            distance += if own { self.distance[q] } else { share.distance[q] };
        }
        let most = (now.at.run.clusters - 1) as f64 / now.at.run.clusters as f64;
        // Equal models (d2 = 0) are one cluster: the plain mean of all.
        if variance >= most * distance { most } else { variance / distance }
    }
}
