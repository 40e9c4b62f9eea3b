//! The single-step server update (6)-(7) of both papers, to show why the multi-step one is used.
//!
//! ```text
//! (6) w_sq = [ w~_sq - psi_sq / 2 + (rho/2) sum over p of (w_s + w_p)
//!              + tau/(Q-1)/abs(N_s) sum over r != q, p in N_s of w_pr ] / (1 + tau + rho abs(N_s^-))
//! (7) psi_sq <- psi_sq + rho sum over p of (w_s - w_p)
//! ```
//!
//! The neighbours' and other clusters' models in (6) are those of the previous round: that is its weakness.
//! Two signs differ from print. Setting the derivative of
//! `|w - w~|^2 + w'psi + rho sum_p |w - (w_s + w_p)/2|^2` to zero gives the *sum* w_s + w_p in (6), and
//! dual ascent on the consensus constraint gives w_s - w_p in (7): see `docs/algorithms.md`.

use super::admm::{AdmmKeys, PENALTY, READOUT, Rule};
use super::pgfl::{Pgfl, Tau};
use crate::algorithm::{Now, ServerView};
use crate::registry::Context;
use fedkin_numeric::{axpy, record, scale};
use fedkin_settings::{Preset, settings};

/// The server rule.
#[derive(Debug, Clone)]
pub struct SingleStep {
    tau: Tau,
    penalty: f64,
}

record! {
    /// By cluster: the models, the server's dual psi, the sum of the neighbours' models.
    pub struct State { served: Vec<f64>, dual: Vec<f64>, neighbours: Vec<f64> }
    /// Models by cluster.
    pub struct Share { served: Vec<f64> }
}

settings! {
    /// Keys of the single-step update.
    pub struct SingleStepSettings {
        /// Weight of the proximal term (rho).
        penalty: f64 => param PENALTY;
        inter_cluster: Tau => Tau::KIND, Preset::Number(0.0), "how much a cluster borrows from the others (tau)";
        /// Memory per round of the averaged served model that is handed over at the end.
        readout_memory: f64 => param READOUT;
    }
}

impl Rule for SingleStep {
    const NAME: &'static str = "single-step";
    type Settings = SingleStepSettings;
    type State = State;
    type Share = Share;

    fn build(settings: SingleStepSettings, _: &Context) -> Result<(Self, AdmmKeys), String> {
        let SingleStepSettings { penalty, inter_cluster: tau, readout_memory } = settings;
        if tau == Tau::Adaptive {
            return Err(format!(
                "inter_cluster = \"adaptive\" belongs to {}: {} takes a number or {{ start, decay }}",
                Pgfl::NAME,
                SingleStep::NAME
            ));
        }
        Ok((SingleStep { tau, penalty }, AdmmKeys { penalty, readout_memory }))
    }

    fn open(&self, at: ServerView<'_>) -> State {
        let zero = vec![0.0; at.run.clusters * at.run.dimension];
        State { served: zero.clone(), dual: zero.clone(), neighbours: zero }
    }

    /// (6)
    fn close(&self, state: &mut State, now: Now<'_>, mut next: Vec<f64>) -> Share {
        let (clusters, dimension) = (now.at.run.clusters, now.at.run.dimension);
        let degree = now.at.neighbours.len() as f64;
        let rho = self.penalty;
        let tau = self.tau.at(now.step, clusters).unwrap_or(0.0);
        axpy(-0.5, &state.dual, &mut next);
        axpy(0.5 * rho * degree, &state.served, &mut next);
        axpy(0.5 * rho, &state.neighbours, &mut next);
        if tau > 0.0 {
            let mut around = state.served.clone();
            axpy(1.0, &state.neighbours, &mut around);
            let share = tau / ((clusters - 1) as f64 * (degree + 1.0));
            for q in 0..clusters {
                for r in (0..clusters).filter(|r| *r != q) {
                    let other = &around[r * dimension..(r + 1) * dimension];
                    axpy(share, other, &mut next[q * dimension..(q + 1) * dimension]);
                }
            }
        }
        scale(1.0 / (1.0 + tau + rho * degree), &mut next);
        state.served.copy_from_slice(&next);
        Share { served: next }
    }

    /// (7)
    fn mix(&self, state: &mut State, now: Now<'_>, shares: &[(u32, &Share)]) {
        state.neighbours.fill(0.0);
        for (id, share) in shares {
            if *id != now.at.id {
                axpy(1.0, &share.served, &mut state.neighbours);
            }
        }
        axpy(self.penalty * (shares.len() - 1) as f64, &state.served, &mut state.dual);
        axpy(-self.penalty, &state.neighbours, &mut state.dual);
    }

    fn served<'a>(&self, state: &'a State) -> &'a [f64] {
        &state.served
    }
}
