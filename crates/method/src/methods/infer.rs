//! PGFL with clusters that nobody knows: every client picks the model that fits its own records best.
//!
//! The rule of choice is IFCA's (Ghosh, Chung, Yin, Ramchandran, "An efficient framework for clustered federated
//! learning"); everything else is PGFL. In a round a client gets the Q served models and its dual phi_k, and answers
//! with the number q it picked and w~_k:
//!
//! ```text
//! q   = argmin over r of f_k(w_sr)                      (the first of several)
//! w_k = argmin f_k(w) + (rho/2) |w - v_k|^2,            v_k = w_sq + phi_k / rho
//! ```
//!
//! phi_k belongs to one cluster: a client that changes begins with phi_k = 0 there, and its server does the same.
//!
//! **Start.** Models that are alike cannot be told apart, and models far from all clients find poor clusters. So all
//! learn one model for `warm_up` rounds; then every server makes Q models of it that differ by small random vectors,
//! the same at all servers: which vector lowers a client's loss follows the gradient of its loss, and gradients at one
//! model differ as the clusters do. While the clusters form (`forming` rounds) they borrow nothing from each other.
//!
//! | symbol | here |
//! |---|---|
//! | q | `Up::cluster`, then `Seat::cluster` |
//! | phi_k | `Seat::dual`, `Down::vector` |
//! | `w_s1 ... w_sQ` | `Models::served` |
//!
//! **What leaves.** q is an argmin over data and has no mechanism: it is disclosed, and a run that demands privacy is
//! refused. During the warm-up there is nothing to pick and nothing but the model leaves.

use super::admm::{Admm, Memory, Mine, NEEDS, name, of_cluster};
use super::pgfl::{Pgfl, PgflSettings, Share, State};
use crate::algorithm::{
    Algorithm, Ask, Cells, Closed, Held, Now, Personal, Run, Seats, ServerKin, ServerView, Shares, Who,
};
use crate::federation::{Federation, Member};
use crate::registry::{Context, Method};
use fedkin_learner::model::Unsolved;
use fedkin_learner::{Abilities, Dataset};
use fedkin_numeric::buffers::Buffers;
use fedkin_numeric::rng::{PublicRng, Random};
use fedkin_numeric::{axpy, norm2, record, update};
use fedkin_privacy::{Cost, Gate, Privacy, Refusal, Released};
use std::sync::Arc;

/// How clusters are found while models are learnt.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Infer {
    /// Rounds with one model for all.
    pub warm_up: u32,
    /// Rounds after it in which clusters borrow nothing from each other.
    pub forming: u32,
    /// Length of the random vectors that tell the models apart at first, against the model of the warm-up.
    pub start: f64,
}

/// PGFL in which clients pick their cluster.
#[derive(Debug, Clone)]
pub struct Inferred {
    admm: Admm<Pgfl>,
    infer: Infer,
}

record! {
    /// What every asked client gets: the served models, one after the other; one in the warm-up.
    pub struct Models { served: Vec<f64> }
    /// What the server keeps for one client: phi_k and the cluster it belongs to.
    pub struct Seat { dual: Vec<f64>, cluster: u32 }
    /// What a client gets: phi_k and its cluster in a round; the served models of its cluster at the end.
    pub struct Down { vector: Vec<f64>, averaged: Vec<f64>, cluster: u32 }
    /// What a client sends: what it picked, and its model.
    pub struct Up { cluster: u32, model: Vec<f64> }
}

impl Method for Inferred {
    type Settings = PgflSettings;
    const NEEDS: Abilities = NEEDS.and(Abilities::VALUE);

    fn build(settings: PgflSettings, context: &Context) -> Result<Self, String> {
        let infer = context.infer.ok_or("kin.clusters = \"infer\" is not set")?;
        if context.privacy != Privacy::None {
            return Err(
                "kin.clusters = \"infer\" lets every client say which model fits its records best, and no mechanism \
                 protects that: find the clusters on records that need no protection and give them as a file \
                 (kin.clusters = \"clusters.csv\"), or set privacy.mechanism = \"none\""
                    .into(),
            );
        }
        Ok(Self { admm: Admm::build(settings, context)?, infer })
    }
}

impl Inferred {
    /// How many models there are to pick from.
    fn models(&self, step: u32, run: &Run) -> usize {
        if step <= self.infer.warm_up { 1 } else { run.clusters }
    }

    /// Q models from the one of the warm-up. The vectors are the same at every server, so that a number means the
    /// same everywhere.
    fn part(&self, server: &mut (State, Vec<f64>), run: &Run) {
        let dimension = run.dimension;
        let (state, averaged) = server;
        let first = state.served[..dimension].to_vec();
        let read_out = averaged[..dimension].to_vec();
        let length = self.infer.start * (norm2(&first) / dimension as f64).sqrt();
        let mut rng = PublicRng::named(run.seed, "clusters part", 0, 0);
        for q in 0..run.clusters {
            let range = q * dimension..(q + 1) * dimension;
            for (w, base) in state.served[range.clone()].iter_mut().zip(&first) {
                *w = base + length * rng.normal();
            }
            averaged[range].copy_from_slice(&read_out);
        }
        state.aggregate.copy_from_slice(&state.served);
    }
}

impl Algorithm for Inferred {
    const NAME: &'static str = "pgfl-infer";
    const PERSONAL: &'static [&'static str] = Admm::<Pgfl>::PERSONAL;
    const KEPT: &'static [bool] = &[true, false, false];
    type Local = Mine;
    type Memory = Memory;
    type Server = (State, Vec<f64>);
    type Seat = Seat;
    type Common = Models;
    type Down = Down;
    type Raw = (u32, Vec<f64>);
    type Up = Up;
    type Share = Share;

    fn open(&self, at: ServerView<'_>, rng: &mut PublicRng) -> Self::Server {
        self.admm.open(at, rng)
    }

    fn seat(&self, at: ServerView<'_>, _: &Member) -> Seat {
        Seat { dual: vec![0.0; at.run.dimension], cluster: 0 }
    }

    fn plan(&self, server: &mut Self::Server, _: &mut Seats<'_, Seat>, now: Now<'_>) -> Who {
        if now.step == self.infer.warm_up + 1 {
            self.part(server, now.at.run);
        }
        now.draw()
    }

    fn common(&self, server: &Self::Server, now: Now<'_>) -> Models {
        let numbers = self.models(now.step, now.at.run) * now.at.run.dimension;
        Models { served: server.0.served[..numbers].to_vec() }
    }

    fn down(&self, _: &Self::Server, seat: &Seat, _: Now<'_>, _: &Member, out: &mut Down) {
        out.vector.clone_from(&seat.dual);
        out.averaged.clear();
        out.cluster = seat.cluster;
    }

    fn serve(&self, server: &Self::Server, seat: &Seat, now: Now<'_>, _: &Member, out: &mut Down) {
        let range = of_cluster(&server.0.served, seat.cluster, now.at.run);
        out.vector.clear();
        out.vector.extend_from_slice(&server.0.served[range.clone()]);
        out.averaged.clear();
        out.averaged.extend_from_slice(&server.1[range]);
        out.cluster = seat.cluster;
    }

    fn fits(&self, _: &Seat, now: Now<'_>, up: &Up) -> bool {
        let run = now.at.run;
        up.model.len() == run.dimension && (up.cluster as usize) < self.models(now.step, run)
    }

    fn absorb(&self, _: &Self::Server, seat: &mut Seat, _: Now<'_>, _: &Member, up: &Up, sum: &mut Cells) {
        if seat.cluster != up.cluster {
            seat.dual.fill(0.0);
            seat.cluster = up.cluster;
        }
        axpy(-self.admm.penalty, &up.model, &mut seat.dual);
        sum.add(up.cluster as usize, 1.0, -1.0 / self.admm.penalty, &seat.dual);
    }

    fn close(
        &self,
        server: &mut Self::Server,
        _: &mut Seats<'_, Seat>,
        closed: &Closed<'_>,
        sum: &Cells,
    ) -> Share {
        self.admm.gather(server, closed, sum)
    }

    fn mix(&self, server: &mut Self::Server, now: Now<'_>, shares: &Shares<'_, Self>) {
        Algorithm::mix(&self.admm, server, now, shares);
    }

    fn settle(&self, server: &Self::Server, seat: &mut Seat, now: Now<'_>, _: &Member) {
        self.admm.update_dual(server, &mut seat.dual, seat.cluster, now.at.run);
    }

    fn held(&self, server: &Self::Server, run: &Run, out: &mut Held<'_>) {
        self.admm.held(server, run, out);
    }

    fn suits(&self, federation: &Federation, run: &Run) -> Result<(), String> {
        self.admm.suits(federation, run)
    }

    fn join(&self, data: &Arc<Dataset>, at: ServerView<'_>, member: &Member) -> Result<Mine, Unsolved> {
        self.admm.join(data, at, member)
    }

    fn fits_ask(&self, mine: &Mine, ask: &Ask<'_, Self>) -> bool {
        let (served, down) = (ask.common().served.len(), ask.down());
        let (vector, averaged) = (down.vector.len(), down.averaged.len());
        let dimension = mine.learner.dimension();
        served > 0
            && served.is_multiple_of(dimension)
            && vector == dimension
            && (averaged == 0 || averaged == vector)
    }

    fn client<'g>(
        &self,
        mine: &Mine,
        memory: &mut Memory,
        ask: Ask<'_, Self>,
        gate: &mut Gate<'g>,
        scratch: &mut Buffers,
        spare: Up,
    ) -> Result<Released<'g, (u32, Vec<f64>)>, Refusal> {
        let (served, down) = (&ask.common().served, ask.down());
        let (learner, dimension) = (&*mine.learner, mine.learner.dimension());
        let mut best = (0u32, f64::INFINITY);
        for (q, model) in (0u32..).zip(served.chunks_exact(dimension)) {
            let loss = learner.loss(model, scratch)?;
            if loss < best.1 {
                best = (q, loss);
            }
        }
        let cluster = best.0;
        let mut centre = served[cluster as usize * dimension..(cluster as usize + 1) * dimension].to_vec();
        if cluster == down.cluster {
            let share = 1.0 / self.admm.penalty;
            update(&mut centre, &down.vector, |w, dual| w + dual * share);
        }
        let mut model = spare.model;
        model.resize(dimension, 0.0);
        learner.prox(&centre, self.admm.penalty, &mut model, scratch)?;
        let kept = model.clone();
        // With nothing to pick from the number says nothing.
        let alone = served.len() == dimension;
        let picked = if alone { gate.nothing() } else { gate.disclose("cluster", cluster)? };
        let released = picked.zip(gate.disclose("model", model)?);
        memory.model = kept;
        Ok(released)
    }

    fn finish((cluster, model): (u32, Vec<f64>), _: &Ask<'_, Self>) -> Up {
        Up { cluster, model }
    }

    fn personal(&self, _: &Mine, memory: &Memory, served: Ask<'_, Self>, out: &mut Personal<'_>) {
        name(memory, &served.down().vector, &served.down().averaged, out);
    }

    fn kin(&self, _: &Self::Server, seats: &[Seat], _: ServerView<'_>) -> Option<ServerKin> {
        Some(ServerKin { edges: Vec::new(), clusters: seats.iter().map(|seat| seat.cluster).collect() })
    }

    fn price(&self, _: &Member, _: u32) -> Option<Cost> {
        Some(Cost::default())
    }

    fn advice(&self) -> &'static str {
        self.admm.advice()
    }
}
