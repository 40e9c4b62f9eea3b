//! What the parties of `FedGL` keep and send.

use fedkin_numeric::record;
use fedkin_privacy::Symmetric;

record! {
    /// What everyone gets: the consensus graph, where a step needs it.
    pub struct Common { consensus: Vec<f64> }
    /// What one client gets: a centre, how strongly it pulls, and multipliers to start from, which follow from the
    /// client's last graph; at the end its graph.
    pub struct Down { graph: Vec<f64>, weight: f64, start: Vec<f64> }
    /// What a client sends.
    pub struct Up { graph: Vec<f64>, value: f64, scatter: Symmetric }
    /// With the paper's solver the client's last two graphs: they hold its data, without noise.
    pub struct Memory { graph: Vec<f64>, before: Vec<f64> }
    /// What a server keeps for one client.
    pub struct Seat {
        /// The client's graph.
        graph: Vec<f64>,
        /// `v_i` of the next step.
        centre: Vec<f64>,
        /// `u_i`, the scaled multiplier of `w_i = a_i`.
        dual: Vec<f64>,
        /// What it adds to the mean that the consensus is drawn from.
        target: Vec<f64>,
        /// Where its second block was taken at, where it would be taken next, and what acceleration remembers of both.
        state: Vec<f64>,
        image: Vec<f64>,
        last_change: Vec<f64>,
        last_image: Vec<f64>,
        changes: Vec<f64>,
        images: Vec<f64>,
        /// Its share of all records.
        share: f64,
        /// `g_i` at its graph.
        value: f64,
        /// `gamma_i` of (20).
        gamma: f64,
        /// How far its conditions are from being met.
        gap: f64,
        /// What the objective could still lose by its tie to the others.
        loss: f64,
        /// Norm of its pull on the one graph.
        pulled: f64,
        /// Norm of its graph.
        size: f64,
        /// Squared distance of its last two graphs.
        moved: f64,
        /// Whether it has answered.
        there: bool,
        /// Mean squared differences that were released, with `one-shot`.
        distances: Vec<f64>,
        /// Where the solver of those ended.
        memory: Memory,
    }
    /// What a server keeps for all.
    pub struct Central {
        consensus: Vec<f64>,
        /// kappa of ADMM.
        penalty: f64,
        objective: f64,
        /// The objective of the first round.
        first: f64,
        /// Distance from the optimality conditions, relative to the graphs.
        kkt: f64,
        /// Largest Lipschitz constant of Proposition 1: of the next round, and of any.
        lipschitz: f64,
        worst: f64,
        /// Squared distances of the last two graphs, summed, and of the last two consensus graphs.
        moved: f64,
        consensus_moved: f64,
        /// Rounds since everybody who answers has begun, and how far the last moved.
        rounds: u32,
        residual: f64,
        /// Columns of acceleration since it began anew, and their inner products by place.
        remembered: u32,
        gram: Vec<f64>,
        ended: bool,
        diverged: bool,
    }
}
