//! What ties the graphs of the clients together: a consensus graph (8), or one graph for all (36).

use super::exact::{self, Answered, lane_sum, shrink, soft};
use super::{Central, Seat, SolverSettings, Up};
use crate::algorithm::{Cells, Seats};
use fedkin_numeric::norm2;
use fedkin_settings::{Kind, Preset, Settings, settings};

/// A server's side of ADMM and of Algorithm 1.
pub trait Coupling: Sized + Clone + Send + Sync + 'static {
    /// The method's name.
    const NAME: &'static str;
    /// With the paper's steps: whether a client starts every round from what it is served.
    const FROM_SERVED: bool;

    /// All keys of the method.
    type Settings: Settings;

    /// What they say: the coupling and how it is solved for.
    fn build(settings: Self::Settings) -> (Self, SolverSettings);
    /// Takes a client's answer to `seat.centre`; adds the client's pull on the consensus to the fold.
    fn receive(&self, server: &Central, seat: &mut Seat, up: &Up, sum: &mut Cells);
    /// The new consensus; the distance of the last one from the conditions on it, and what the objective could still
    /// lose by it.
    fn consensus(&self, server: &mut Central, seats: &mut Seats<'_, Seat>, sum: &Cells) -> (f64, f64);
    /// kappa towards the centre for one client.
    fn penalty(&self, server: &Central, seat: &Seat) -> f64;
    /// rho `gamma_i` of (15).
    fn paper_pull(&self, seat: &Seat) -> f64;
    /// (19) and (20).
    fn paper_close(&self, server: &mut Central, seats: &mut Seats<'_, Seat>);
    /// The terms of the objective that couple graphs.
    fn terms(&self, consensus: &[f64], seats: &Seats<'_, Seat>) -> f64;
    /// How much a client's own term counts in the objective.
    fn share(seat: &Seat) -> f64;
    /// The graph of one client.
    fn graph_of<'a>(server: &'a Central, seat: &'a Seat) -> &'a Vec<f64>;
}

/// (8): `rho |w_i - w_con|_2` per client and `lambda |w_con|_1`.
#[derive(Debug, Clone, Copy)]
pub struct Consensus {
    rho: f64,
    lambda: f64,
}

settings! {
    /// Keys of `FedGL`.
    pub struct FedGlSettings {
        rho: f64 => Kind::Number { least: 0.0, most: 1e12, open: false }, Preset::Number(0.3),
            "how strongly each client's graph is tied to the consensus graph; 0 leaves every client alone";
        lambda: f64 => Kind::Number { least: 0.0, most: 1e12, open: false }, Preset::Number(0.2),
            "how sparse the consensus graph is";
        flatten solving: SolverSettings;
    }
}

impl Coupling for Consensus {
    const NAME: &'static str = "fedgl";
    const FROM_SERVED: bool = false;
    type Settings = FedGlSettings;

    fn build(FedGlSettings { rho, lambda, solving }: FedGlSettings) -> (Self, SolverSettings) {
        (Self { rho, lambda }, solving)
    }

    fn receive(&self, server: &Central, seat: &mut Seat, up: &Up, sum: &mut Cells) {
        seat.value = up.value;
        seat.graph.clone_from(&up.graph);
        if !seat.there {
            // The client was alone so far: nothing to hold against the conditions yet.
            (seat.size, seat.gap) = (norm2(&up.graph).sqrt(), f64::INFINITY);
            return sum.add(0, 1.0, 0.0, &up.graph);
        }
        let (c, kappa) = (&server.consensus, server.penalty);
        let [size, distance, pulled, bought] = exact::measures(&up.graph, c, &seat.centre, kappa);
        let distance = distance.sqrt();
        // The condition of this client: w - c is the prox of rho |.| at w - c less its gradient, kappa (v - w).
        let keep = shrink(self.rho, pulled.sqrt());
        let off = exact::image(seat, &Answered { graph: &up.graph, consensus: c, penalty: kappa, keep });
        seat.size = size.sqrt();
        // What (8) could still lose here at most, as long as the pull is no longer than rho.
        (seat.gap, seat.loss) = (off.sqrt(), (self.rho * distance - bought).abs());
        seat.gamma = 1.0 / (distance + super::paper::LEAST_GAP);
        // What the client pulls at the consensus with.
        sum.add(0, 1.0, 1.0, &seat.centre);
    }

    fn consensus(&self, server: &mut Central, seats: &mut Seats<'_, Seat>, sum: &Cells) -> (f64, f64) {
        let mut off = (f64::INFINITY, f64::INFINITY);
        if let Some(pull) = sum.sum(0) {
            let c = &server.consensus;
            let residual = lane_sum(c.len(), |i| {
                let r = c[i] - soft(c[i] + pull[i], self.lambda);
                r * r
            });
            off = (residual.sqrt(), lane_sum(c.len(), |i| (self.lambda - pull[i]) * c[i]).abs());
        }
        let there = exact::second_block(server, seats, self.rho);
        if there > 0.0 {
            let mut mean = vec![0.0; server.consensus.len()];
            for seat in seats.iter().filter(|seat| seat.there) {
                fedkin_numeric::axpy(1.0 / there, &seat.target, &mut mean);
            }
            let threshold = self.lambda / (server.penalty * there);
            for (c, mean) in server.consensus.iter_mut().zip(&mean) {
                *c = soft(*mean, threshold);
            }
        }
        off
    }

    fn penalty(&self, server: &Central, seat: &Seat) -> f64 {
        if seat.there { server.penalty } else { 0.0 }
    }

    fn paper_pull(&self, seat: &Seat) -> f64 {
        self.rho * seat.gamma
    }

    fn paper_close(&self, server: &mut Central, seats: &mut Seats<'_, Seat>) {
        let total: f64 = seats.iter().filter(|seat| seat.there).map(|seat| seat.gamma).sum();
        if total <= 0.0 {
            return;
        }
        let mut mean = vec![0.0; server.consensus.len()];
        for seat in seats.iter().filter(|seat| seat.there) {
            fedkin_numeric::axpy(seat.gamma, &seat.graph, &mut mean);
        }
        // Without rho nothing ties the consensus to the graphs, and lambda alone makes it empty.
        let threshold = if self.rho > 0.0 { self.lambda / (total * self.rho) } else { f64::INFINITY };
        let before = std::mem::take(&mut server.consensus);
        server.consensus = mean.iter().map(|mean| soft(mean / total, threshold)).collect();
        server.consensus_moved = fedkin_numeric::distance2(&before, &server.consensus);
        for k in 0..seats.len() {
            if seats.get(k).there {
                let seat = seats.get_mut(k);
                let distance = fedkin_numeric::distance2(&seat.graph, &server.consensus).sqrt();
                seat.gamma = 1.0 / (distance + super::paper::LEAST_GAP);
            }
        }
    }

    fn terms(&self, consensus: &[f64], seats: &Seats<'_, Seat>) -> f64 {
        let ties: f64 = seats
            .iter()
            .filter(|seat| seat.there)
            .map(|seat| fedkin_numeric::distance2(&seat.graph, consensus).sqrt())
            .sum();
        self.rho * ties + self.lambda * consensus.iter().map(|c| c.abs()).sum::<f64>()
    }

    fn share(_: &Seat) -> f64 {
        1.0
    }

    fn graph_of<'a>(_: &'a Central, seat: &'a Seat) -> &'a Vec<f64> {
        &seat.graph
    }
}

/// (36): one graph for all, each record counting alike.
#[derive(Debug, Clone, Copy)]
pub struct Average;

settings! {
    /// Keys of `FedGL` with one graph for all.
    pub struct FedGlAverageSettings {
        flatten solving: SolverSettings;
    }
}

impl Coupling for Average {
    const NAME: &'static str = "fedgl-average";
    const FROM_SERVED: bool = true;
    type Settings = FedGlAverageSettings;

    fn build(settings: FedGlAverageSettings) -> (Self, SolverSettings) {
        (Self, settings.solving)
    }

    fn receive(&self, server: &Central, seat: &mut Seat, up: &Up, sum: &mut Cells) {
        let (w, kappa) = (&up.graph, server.penalty);
        (seat.size, seat.value) = (norm2(w).sqrt(), up.value);
        for (v, w) in seat.centre.iter_mut().zip(w) {
            *v = kappa * (w - *v);
        }
        seat.pulled = norm2(&seat.centre).sqrt();
        sum.add(0, 1.0, 1.0, &seat.centre);
        seat.target.clone_from(w);
        fedkin_numeric::axpy(1.0, &seat.dual, &mut seat.target);
        seat.graph.clone_from(w);
    }

    fn consensus(&self, server: &mut Central, seats: &mut Seats<'_, Seat>, sum: &Cells) -> (f64, f64) {
        let off = sum.sum(0).map_or((f64::INFINITY, 0.0), |pull| (norm2(pull).sqrt(), 0.0));
        let there = seats.iter().filter(|seat| seat.there).count() as f64;
        if there == 0.0 {
            return off;
        }
        server.consensus.fill(0.0);
        for seat in seats.iter().filter(|seat| seat.there) {
            fedkin_numeric::axpy(1.0 / there, &seat.target, &mut server.consensus);
        }
        for c in &mut server.consensus {
            *c = c.max(0.0);
        }
        for k in 0..seats.len() {
            if !seats.get(k).there {
                continue;
            }
            let seat = seats.get_mut(k);
            let c = &server.consensus;
            seat.gap = fedkin_numeric::distance2(&seat.graph, c).sqrt();
            // The objective is taken at the clients' own graphs, and the one graph differs by so much.
            seat.loss = seat.gap * seat.pulled;
            seat.gamma = 1.0 / (seat.gap + super::paper::LEAST_GAP);
            let both = seat.dual.iter_mut().zip(&mut seat.centre);
            for ((dual, centre), (target, c)) in both.zip(seat.target.iter().zip(c)) {
                *dual = target - c;
                *centre = c - *dual;
            }
        }
        off
    }

    fn penalty(&self, server: &Central, seat: &Seat) -> f64 {
        // The client solves for g_i, and its term counts with its share of the records.
        server.penalty / seat.share
    }

    fn paper_pull(&self, _: &Seat) -> f64 {
        0.0
    }

    fn paper_close(&self, server: &mut Central, seats: &mut Seats<'_, Seat>) {
        let total: f64 = seats.iter().filter(|seat| seat.there).map(|seat| seat.share).sum();
        if total <= 0.0 {
            return;
        }
        let mut mean = vec![0.0; server.consensus.len()];
        for seat in seats.iter().filter(|seat| seat.there) {
            fedkin_numeric::axpy(seat.share / total, &seat.graph, &mut mean);
        }
        server.consensus_moved = fedkin_numeric::distance2(&mean, &server.consensus);
        server.consensus = mean;
    }

    fn terms(&self, _: &[f64], _: &Seats<'_, Seat>) -> f64 {
        0.0
    }

    fn share(seat: &Seat) -> f64 {
        seat.share
    }

    fn graph_of<'a>(server: &'a Central, _: &'a Seat) -> &'a Vec<f64> {
        &server.consensus
    }
}
