//! `solver = "exact"`: ADMM with exact blocks on both sides.
//!
//! Copies `a_i` of the clients' graphs and `c_i` of the consensus split (8) into two blocks:
//!
//! ```text
//! first   w_i = prox of g_i / kappa at a_i - u_i            at the client, by Newton's method
//!         c   = prox of (lambda / (kappa I)) |.|_1 at the mean of c_i - q_i
//! second  (a_i, c_i) = prox of (rho / kappa) |a - c|_2 at (w_i + u_i, c + q_i)
//! then    u_i += w_i - a_i,   q_i += c - c_i
//! ```
//!
//! The second block moves a and c by opposite amounts, so `q_i = -u_i` always. With D = `w_i` - c + 2 `u_i` it is
//! `u_i <- (D - shrink(D, 2 rho / kappa)) / 2`, and a client's seat holds `u_i`, the next centre `v_i` = `a_i` - `u_i` and its
//! target `c_i` - `q_i`. The unsquared norm is handled by its prox, so a client that fuses with the consensus is no trouble.
//!
//! The residual needs no value of a client: kappa (`v_i` - `w_i`) is a gradient of `g_i` at `w_i` (with the multipliers of
//! w >= 0), so with `xi_i` = kappa (`w_i` - `v_i`)
//!
//! ```text
//! r_i = (w_i - c) - shrink(w_i - c + xi_i, rho),    r_c = c - soft(c + sum of xi_i, lambda)
//! ```
//!
//! vanish exactly at the solutions of (8). What is reported is the largest of their norms over 1 + the largest |`w_i`|, or
//! what the ties could still gain, `sum of rho |w_i - c| - xi_i'(w_i - c) + (lambda 1 - sum of xi_i)'c`, over 1 + the
//! objective, if that is more.

use super::coupling::Coupling;
use super::{Central, Down, Seat, anderson};
use crate::algorithm::{Cells, Seats};
use fedkin_learner::model::Unsolved;
use fedkin_learner::signals::{self, Smooth, lanes};

/// kappa of the first round.
pub(super) fn first_penalty(problem: &Smooth) -> f64 {
    4.0 * problem.beta
}

/// `max(0, x - threshold)`: the prox of the absolute value on x >= 0.
pub(super) fn soft(x: f64, threshold: f64) -> f64 {
    (x - threshold).max(0.0)
}

/// The factor by which the prox of `threshold |.|_2` shortens a vector of this norm.
pub(super) fn shrink(threshold: f64, norm: f64) -> f64 {
    if norm > threshold { 1.0 - threshold / norm } else { 0.0 }
}

/// A sum over indices in eight lanes: the same order whatever is summed.
#[inline]
pub(super) fn lane_sum(n: usize, term: impl Fn(usize) -> f64) -> f64 {
    let mut lanes = [0.0; 8];
    let whole = n - n % 8;
    for start in (0..whole).step_by(8) {
        for (lane, sum) in lanes.iter_mut().enumerate() {
            *sum += term(start + lane);
        }
    }
    let mut sum = signals::lanes(lanes);
    for i in whole..n {
        sum += term(i);
    }
    sum
}

/// Steps of the first block are lengthened by this factor.
const RELAXED: f64 = 1.6;
/// Rounds in which kappa is brought to where both residuals shrink alike; then it stays.
const BALANCED: u32 = 10;

/// What [`image`] needs beside the seat.
pub(super) struct Answered<'a> {
    /// `w_i`.
    pub graph: &'a [f64],
    /// The consensus of the round.
    pub consensus: &'a [f64],
    /// kappa.
    pub penalty: f64,
    /// The factor of the prox at the client's condition.
    pub keep: f64,
}

/// Where the second block is taken at: `w_i` + `u_i` and c - `u_i`, with longer steps from `a_i` and `c_i`. The centre becomes the
/// pull kappa (`w_i` - `v_i`): it is not needed again. Gives the squared distance from the client's condition.
pub(super) fn image(seat: &mut Seat, answered: &Answered<'_>) -> f64 {
    let n = answered.consensus.len();
    let (kappa, keep) = (answered.penalty, answered.keep);
    seat.image.resize(2 * n, 0.0);
    let (a_side, c_side) = seat.image.split_at_mut(n);
    let one =
        |w: f64, c_now: f64, dual: f64, target: f64, centre: &mut f64, a_out: &mut f64, c_out: &mut f64| {
            let (a, c) = (*centre + dual, target - dual);
            *a_out = a + RELAXED * (w - a) + dual;
            *c_out = c + RELAXED * (c_now - c) - dual;
            let (e, pull) = (w - c_now, kappa * (w - *centre));
            *centre = pull;
            let r = e - keep * (e + pull);
            r * r
        };
    let (w, w_rest) = answered.graph.as_chunks::<8>();
    let (c, c_rest) = answered.consensus.as_chunks::<8>();
    let (dual, dual_rest) = seat.dual.as_chunks::<8>();
    let (target, target_rest) = seat.target.as_chunks::<8>();
    let (centre, centre_rest) = seat.centre.as_chunks_mut::<8>();
    let (a_out, a_rest) = a_side.as_chunks_mut::<8>();
    let (c_out, c_out_rest) = c_side.as_chunks_mut::<8>();
    let mut sum = [0.0; 8];
    let reads = w.iter().zip(c).zip(dual).zip(target);
    for ((((w, c), dual), target), ((centre, a_out), c_out)) in
        reads.zip(centre.iter_mut().zip(a_out).zip(c_out))
    {
        // A block is read before it is written.
        let (mut v, mut a, mut b) = (*centre, [0.0; 8], [0.0; 8]);
        for lane in 0..8 {
            sum[lane] +=
                one(w[lane], c[lane], dual[lane], target[lane], &mut v[lane], &mut a[lane], &mut b[lane]);
        }
        (*centre, *a_out, *c_out) = (v, a, b);
    }
    let mut off = lanes(sum);
    for i in 0..w_rest.len() {
        let (v, a, b) = (&mut centre_rest[i], &mut a_rest[i], &mut c_out_rest[i]);
        off += one(w_rest[i], c_rest[i], dual_rest[i], target_rest[i], v, a, b);
    }
    off
}

/// |w|^2, |w - c|^2, |w - c + xi|^2 and xi'(w - c) with xi = kappa (w - v), in one pass.
pub(super) fn measures(w: &[f64], c: &[f64], v: &[f64], kappa: f64) -> [f64; 4] {
    let one = |w: f64, c: f64, v: f64| {
        let (e, pull) = (w - c, kappa * (w - v));
        [w * w, e * e, (e + pull) * (e + pull), pull * e]
    };
    let ((w, w_rest), (c, c_rest), (v, v_rest)) =
        (w.as_chunks::<8>(), c.as_chunks::<8>(), v.as_chunks::<8>());
    let mut sums = [[0.0; 8]; 4];
    for ((w, c), v) in w.iter().zip(c).zip(v) {
        for lane in 0..8 {
            let terms = one(w[lane], c[lane], v[lane]);
            for k in 0..4 {
                sums[k][lane] += terms[k];
            }
        }
    }
    let mut all = sums.map(lanes);
    for ((w, c), v) in w_rest.iter().zip(c_rest).zip(v_rest) {
        for (all, term) in all.iter_mut().zip(one(*w, *c, *v)) {
            *all += term;
        }
    }
    all
}

/// The second block of all seats, and kappa where it is still being found. Gives the number of seats.
pub(super) fn second_block(server: &mut Central, seats: &mut Seats<'_, Seat>, rho: f64) -> f64 {
    let there: Vec<usize> = (0..seats.len()).filter(|&k| seats.get(k).there).collect();
    let n = server.consensus.len();
    // Those that answered for the first time begin at their graph alone, and the mean of all graphs.
    if there.iter().any(|&k| seats.get(k).state.is_empty()) {
        let mut mean = vec![0.0; n];
        for &k in &there {
            fedkin_numeric::axpy(1.0 / there.len() as f64, &seats.get(k).graph, &mut mean);
        }
        for &k in &there {
            let seat = seats.get_mut(k);
            if seat.state.is_empty() {
                seat.centre.clone_from(&seat.graph);
                seat.target.clone_from(&mean);
                seat.image = [seat.graph.as_slice(), mean.as_slice()].concat();
                seat.state.clone_from(&seat.image);
            }
        }
        server.rounds = 0;
    }
    server.rounds += 1;
    let balancing = server.rounds <= BALANCED;
    anderson::advance(server, seats, &there, balancing);
    let mut totals = [0.0; 4];
    for &k in &there {
        let seat = seats.get_mut(k);
        let (a_side, c_side) = seat.state.split_at(n);
        let norm = fedkin_numeric::distance2(a_side, c_side).sqrt();
        let half = 0.5 * (1.0 - shrink(2.0 * rho / server.penalty, norm));
        let sums = if balancing {
            split::<true>(seat, &server.consensus, half)
        } else {
            split::<false>(seat, &server.consensus, half)
        };
        for (total, sum) in totals.iter_mut().zip(sums) {
            *total += sum;
        }
    }
    let [primal, dual, size, multiplier] = totals;
    if balancing && server.rounds > 1 && server.rounds.is_multiple_of(2) {
        rescale(server, seats, &there, (primal / size).sqrt() / (dual / multiplier).sqrt());
    }
    there.len() as f64
}

/// `u_i`, the next centre and the target of one seat from where its second block is taken. With `MEASURED` the sums that
/// balance kappa: of the gaps w - a and c - `c_i`, of the move of `c_i` (twice, for a), of a and `c_i`, and of u (twice).
fn split<const MEASURED: bool>(seat: &mut Seat, consensus: &[f64], half: f64) -> [f64; 4] {
    let n = consensus.len();
    let (a_side, c_side) = seat.state.split_at(n);
    let one = |a_side: f64, c_side: f64, w: f64, c_now: f64, (dual, target): (f64, f64)| {
        // The centre holds the pull by now, but the target still says where c_i was.
        let c_before = target - dual;
        let u = half * (a_side - c_side);
        let (a, c) = (a_side - u, c_side + u);
        let (gap_a, gap_c, move_c) = (w - a, c_now - c, c - c_before);
        let terms = [gap_a * gap_a + gap_c * gap_c, 2.0 * move_c * move_c, a * a + c * c, 2.0 * u * u];
        (u, a - u, c + u, terms)
    };
    let (a_side, a_rest) = a_side.as_chunks::<8>();
    let (c_side, c_rest) = c_side.as_chunks::<8>();
    let (w, w_rest) = seat.graph.as_chunks::<8>();
    let (now, now_rest) = consensus.as_chunks::<8>();
    let (dual, dual_rest) = seat.dual.as_chunks_mut::<8>();
    let (target, target_rest) = seat.target.as_chunks_mut::<8>();
    let (centre, centre_rest) = seat.centre.as_chunks_mut::<8>();
    let mut sums = [[0.0; 8]; 4];
    let reads = a_side.iter().zip(c_side).zip(w).zip(now);
    for ((((a_side, c_side), w), now), ((dual, target), centre)) in
        reads.zip(dual.iter_mut().zip(target).zip(centre))
    {
        let (mut u, mut to, mut v) = (*dual, *target, [0.0; 8]);
        for lane in 0..8 {
            let terms;
            (u[lane], v[lane], to[lane], terms) =
                one(a_side[lane], c_side[lane], w[lane], now[lane], (u[lane], to[lane]));
            if MEASURED {
                for k in 0..4 {
                    sums[k][lane] += terms[k];
                }
            }
        }
        (*dual, *target, *centre) = (u, to, v);
    }
    let mut all = sums.map(lanes);
    for i in 0..a_rest.len() {
        let before = (dual_rest[i], target_rest[i]);
        let terms;
        (dual_rest[i], centre_rest[i], target_rest[i], terms) =
            one(a_rest[i], c_rest[i], w_rest[i], now_rest[i], before);
        if MEASURED {
            for k in 0..4 {
                all[k] += terms[k];
            }
        }
    }
    all
}

/// Moves kappa by the ratio of the relative residuals, and the multipliers with it.
fn rescale(server: &mut Central, seats: &mut Seats<'_, Seat>, there: &[usize], ratio: f64) {
    let factor = (2.0 * ratio.sqrt()).clamp(0.2, 5.0);
    if !factor.is_finite() || (1.0 / 1.2..=1.2).contains(&factor) {
        return;
    }
    server.penalty *= factor;
    for &k in there {
        let seat = seats.get_mut(k);
        let n = seat.dual.len();
        for i in 0..n {
            let (a, c) = (seat.centre[i] + seat.dual[i], seat.target[i] - seat.dual[i]);
            let u = seat.dual[i] / factor;
            seat.dual[i] = u;
            seat.centre[i] = a - u;
            seat.target[i] = c + u;
            seat.state[i] = a + u;
            seat.state[n + i] = c - u;
        }
    }
}

/// The multipliers at a client's last graph, alpha over its degrees: where its next block starts. Empty without one.
pub(super) fn start(problem: &Smooth, graph: &[f64], out: &mut Vec<f64>) {
    out.clear();
    if let Some(nodes) = signals::nodes_of(graph.len()) {
        out.resize(nodes, 0.0);
        signals::degrees(graph, out);
        for y in out.iter_mut() {
            *y = problem.alpha / *y;
        }
    }
}

/// A client's block at the centre it was given.
pub(super) fn block(
    problem: &Smooth,
    zbar: &[f64],
    down: &Down,
    dual: &mut Vec<f64>,
    graph: &mut Vec<f64>,
    work: &mut Vec<f64>,
) -> Result<(), Unsolved> {
    graph.clear();
    if down.weight == 0.0 {
        graph.extend(zbar.iter().map(|z| 2.0 * z));
    } else {
        graph.extend(zbar.iter().zip(&down.graph).map(|(z, v)| 2.0 * z - down.weight * v));
    }
    signals::solve(problem.alpha, 4.0 * problem.beta + down.weight, graph, dual, work).map(|_| ())
}

/// The consensus of the next round, the residual and the objective of this one, and whether it is the last.
pub(super) fn close<C: Coupling>(
    coupling: &C,
    server: &mut Central,
    seats: &mut Seats<'_, Seat>,
    sum: &Cells,
    tolerance: f64,
) {
    let (mut own, mut there) = (0.0, 0.0);
    for seat in seats.iter().filter(|seat| seat.there) {
        own += C::share(seat) * seat.value;
        there += 1.0;
    }
    server.objective = own + coupling.terms(&server.consensus, seats);
    let (residual, loss) = coupling.consensus(server, seats, sum);
    let largest = |of: fn(&Seat) -> f64| seats.iter().filter(|seat| seat.there).map(of).fold(0.0, f64::max);
    let residual = residual.max(largest(|seat| seat.gap)) / (1.0 + largest(|seat| seat.size));
    let loss = loss + seats.iter().filter(|seat| seat.there).map(|seat| seat.loss).sum::<f64>();
    server.kkt = residual.max(loss / (1.0 + server.objective.abs()));
    // A residual of some of the clients says nothing about all.
    server.ended = server.kkt <= tolerance && sum.weight(0) == there;
}
