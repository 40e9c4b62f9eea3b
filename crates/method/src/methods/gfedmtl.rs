//! GFedMtl: graph federated multitask learning.
//!
//! Paper: Gauthier, Gogineni, Werner, Huang, Kuh, "Clustered graph federated personalized learning" (2022).
//! Server rule (N_s does not contain s):
//!
//! ```text
//! (10) w_q <- (w_q + tau sum over r != q of w_r) / (1 + tau (Q-1))                        at the server
//! (16) the clients' dual step uses that model
//! (11) w_q <- (w_q + sum over t in N_s of w_tq) / (abs(N_s) + 1)
//! (12) w_q <- (w_q + tau sum over r != q, t in N_s of w_tr) / (1 + tau abs(N_s) (Q-1))
//! ```
//!
//! The neighbours' models in (11) and (12) are those after (10). (12) as printed sums over the neighbours
//! against a weight of 1, so its effective tau grows with the degree; `mix = "mean"` divides by the degree.

use super::admm::{AdmmKeys, PENALTY, READOUT, Rule};
use crate::algorithm::{Now, ServerView};
use crate::registry::Context;
use fedkin_numeric::{axpy, power, record, scale};
use fedkin_settings::{Kind, Preset, choice, settings};

/// The server rule.
#[derive(Debug, Clone)]
pub struct GFedMtl {
    start: f64,
    decay: f64,
    mix: NeighbourSum,
}

record! {
    /// Models by cluster after (10) and after (12).
    pub struct State { refined: Vec<f64>, served: Vec<f64> }
    /// Models by cluster after (10).
    pub struct Share { refined: Vec<f64> }
}

choice! {
    /// What (12) does with the models of the neighbours.
    pub enum NeighbourSum {
        /// Sums over them, as printed.
        Paper = "paper",
        /// Takes their mean.
        Mean = "mean",
    }
}

settings! {
    /// Keys of GFedMtl.
    pub struct GFedMtlSettings {
        /// Weight of the proximal term (rho).
        penalty: f64 => param PENALTY;
        inter_cluster: f64 => Kind::SHARE, Preset::Number(0.5),
            "weight of each other cluster against a weight of 1 for the own one (tau)";
        decay: f64 => Kind::SHARE, Preset::Number(1.0), "factor of inter_cluster per round";
        mix: NeighbourSum => Kind::Choice(NeighbourSum::WORDS), Preset::Text("paper"),
            "whether (12) sums over the neighbours as printed or takes their mean";
        /// Memory per round of the averaged served model that is handed over at the end.
        readout_memory: f64 => param READOUT;
    }
}

impl GFedMtl {
    fn tau(&self, round: u32) -> f64 {
        self.start * power(self.decay, round)
    }
}

impl Rule for GFedMtl {
    const NAME: &'static str = "gfedmtl";
    type Settings = GFedMtlSettings;
    type State = State;
    type Share = Share;

    fn build(settings: GFedMtlSettings, _: &Context) -> Result<(Self, AdmmKeys), String> {
        let GFedMtlSettings { penalty, inter_cluster, decay, mix, readout_memory } = settings;
        let rule = GFedMtl { start: inter_cluster, decay, mix };
        Ok((rule, AdmmKeys { penalty, readout_memory }))
    }

    fn open(&self, at: ServerView<'_>) -> State {
        let models = vec![0.0; at.run.clusters * at.run.dimension];
        State { refined: models.clone(), served: models }
    }

    /// (10)
    fn close(&self, state: &mut State, now: Now<'_>, aggregates: Vec<f64>) -> Share {
        let (clusters, dimension) = (now.at.run.clusters, now.at.run.dimension);
        let tau = self.tau(now.step);
        state.refined.copy_from_slice(&aggregates);
        for q in 0..clusters {
            let own = &mut state.refined[q * dimension..(q + 1) * dimension];
            for r in (0..clusters).filter(|r| *r != q) {
                axpy(tau, &aggregates[r * dimension..(r + 1) * dimension], own);
            }
            scale(1.0 / (1.0 + tau * (clusters - 1) as f64), own);
        }
        Share { refined: state.refined.clone() }
    }

    /// (11) and (12)
    fn mix(&self, state: &mut State, now: Now<'_>, shares: &[(u32, &Share)]) {
        let (clusters, dimension) = (now.at.run.clusters, now.at.run.dimension);
        let degree = (shares.len() - 1) as f64;
        let mut all = vec![0.0; clusters * dimension];
        let mut neighbours = all.clone();
        for (id, share) in shares {
            axpy(1.0, &share.refined, &mut all);
            if *id != now.at.id {
                axpy(1.0, &share.refined, &mut neighbours);
            }
        }
        scale(1.0 / (degree + 1.0), &mut all);
        // (12): each of the other clusters' neighbour models has this weight; all of them, `total`.
        let tau = self.tau(now.step);
        let (each, total) = match self.mix {
            _ if degree == 0.0 => (0.0, 0.0),
            NeighbourSum::Mean => (tau / degree, tau * (clusters - 1) as f64),
            NeighbourSum::Paper => (tau, tau * degree * (clusters - 1) as f64),
        };
        for q in 0..clusters {
            let range = q * dimension..(q + 1) * dimension;
            let own = &mut state.served[range.clone()];
            own.copy_from_slice(&all[range]);
            for r in (0..clusters).filter(|r| *r != q) {
                axpy(each, &neighbours[r * dimension..(r + 1) * dimension], own);
            }
            scale(1.0 / (1.0 + total), own);
        }
    }

    fn served<'a>(&self, state: &'a State) -> &'a [f64] {
        &state.served
    }

    fn dual<'a>(&self, state: &'a State) -> &'a [f64] {
        &state.refined
    }
}
