//! Total variation over the edges of a graph, every coordinate for itself.
//!
//! ```text
//! psi  = argmin sum_k P_k (psi_k - omega_k)^2 / 2 + b sum_e A_e |psi_i - psi_j|       e = (i, j)
//! dual:  psi = omega - P^-1 B' u,  |u_e| <= b A_e,  (B psi)_e = psi_i - psi_j
//! gap  = sum_e b A_e |(B psi)_e| - u_e (B psi)_e  >=  |psi - psi*|_P^2 / 2
//! ```
//!
//! Accelerated projected gradients on the dual, restarted where they turn back; edge `e` steps by
//! `A_e / (d_i / P_i + d_j / P_j)`, which no row sum of the scaled dual Hessian exceeds. The gap bounds the error:
//! the work ends where that is below [`OFF`] of the signal's deviation from its mean. Any `u` keeps the weighted mean.

use super::lanes::{Work, centre, inner, restore};
use super::operator::{Form, Means, Operator};
use super::{Base, DenoiseError, Denoiser, Prepared, Strength, Way, check};

/// Distance from the solution as a share of the deviation from the mean, both weighted by client size.
const OFF: f64 = 1e-6;
/// Steps between two looks at the gap, and after which the work gives up.
const LOOK: usize = 8;
const MOST: usize = 50_000;
/// Clients whose weak complete graph may be written out as edges.
const LISTED: usize = 3000;

#[derive(Debug)]
pub(super) struct TotalVariation;

/// The problem of one graph and weight.
#[derive(Debug, Clone)]
pub(super) struct Variation {
    mass: Vec<f64>,
    edges: Vec<Edge>,
}

#[derive(Debug, Clone, Copy)]
struct Edge {
    ends: [u32; 2],
    bound: f64,
    step: f64,
}

impl Denoiser for TotalVariation {
    fn sized(&self) -> bool {
        true
    }

    fn base(&self, _clients: usize, _way: Way) -> Base {
        Base::Edges
    }

    fn operator(&self, on: &Prepared, strength: &Strength) -> Result<Operator, DenoiseError> {
        let weight = check("beta1", strength.beta1)?;
        let clients = on.clients();
        let form = if weight == 0.0 {
            Form::Identity
        } else if weight.is_infinite() {
            Form::Means(Means::new(&on.graph, &on.mass))
        } else {
            Form::Variation(Variation::new(on, weight)?)
        };
        Ok(Operator::new(clients, form, None))
    }
}

impl Variation {
    fn new(on: &Prepared, weight: f64) -> Result<Self, DenoiseError> {
        let graph = &on.graph;
        let clients = on.clients();
        let list: Vec<(usize, usize, f64)> = if graph.everywhere() == 0.0 {
            graph.edges().collect()
        } else if clients <= LISTED {
            graph.weighted().map_err(|_| DenoiseError::Weights)?.edges(0.0).collect()
        } else {
            return Err(DenoiseError::Way {
                name: on.row.name,
                clients,
                way: "a list of edges",
                instead: "leave out the weak complete graph, or choose another filter",
            });
        };
        let mut degrees = vec![0.0; clients];
        for &(i, j, a) in &list {
            degrees[i] += a;
            degrees[j] += a;
        }
        let mass = on.mass.clone();
        let edges = list
            .into_iter()
            .map(|(i, j, a)| Edge {
                ends: [i as u32, j as u32],
                bound: weight * a,
                step: a / (degrees[i] / mass[i] + degrees[j] / mass[j]),
            })
            .collect();
        Ok(Self { mass, edges })
    }

    /// `psi = omega - P^-1 B' u`.
    fn primal<const W: usize>(&self, omega: &[[f64; W]], dual: &[[f64; W]], psi: &mut [[f64; W]]) {
        psi.fill([0.0; W]);
        for (edge, u) in self.edges.iter().zip(dual) {
            let [i, j] = edge.ends.map(|end| end as usize);
            for lane in 0..W {
                psi[i][lane] += u[lane];
            }
            for lane in 0..W {
                psi[j][lane] -= u[lane];
            }
        }
        for ((psi, omega), mass) in psi.iter_mut().zip(omega).zip(&self.mass) {
            for lane in 0..W {
                psi[lane] = omega[lane] - psi[lane] / mass;
            }
        }
    }

    /// Half the squared distance from the solution is at most this.
    fn gap<const W: usize>(&self, psi: &[[f64; W]], dual: &[[f64; W]], supply: [f64; W]) -> [f64; W] {
        let mut gap = [0.0; W];
        for (edge, u) in self.edges.iter().zip(dual) {
            let [i, j] = edge.ends.map(|end| &psi[end as usize]);
            for lane in 0..W {
                let difference = i[lane] - j[lane];
                gap[lane] += edge.bound.min(supply[lane]) * difference.abs() - u[lane] * difference;
            }
        }
        gap
    }
}

impl Work for Variation {
    fn order(&self) -> &[u32] {
        &[]
    }

    fn run<const W: usize>(&self, signal: &mut [[f64; W]]) -> Result<(), DenoiseError> {
        let mean = centre(&self.mass, signal);
        let goal = inner(&self.mass, signal, signal).map(|size| 0.5 * OFF * OFF * size);
        // What flows is the mass that moves, so no edge carries more than this: with larger bounds nothing changes
        // but the rounding.
        let mut supply = [0.0; W];
        for (mass, row) in self.mass.iter().zip(&*signal) {
            for lane in 0..W {
                supply[lane] += 2.0 * mass * row[lane].abs();
            }
        }
        let mut best = vec![[0.0; W]; self.edges.len()];
        let mut ahead = best.clone();
        let mut psi = signal.to_vec();
        let mut pace = [1.0f64; W];
        let mut done = [false; W];
        let mut off = 0.0f64;
        for step in 0..MOST {
            if step % LOOK == 0 {
                self.primal(signal, &best, &mut psi);
                let gap = self.gap(&psi, &best, supply);
                // A lane that is done stands still: its numbers must not depend on the lanes beside it.
                done = std::array::from_fn(|lane| done[lane] || gap[lane] <= goal[lane]);
                if done.iter().all(|&done| done) {
                    signal.copy_from_slice(&psi);
                    restore(mean, signal);
                    return Ok(());
                }
                off = (0..W)
                    .filter(|&lane| !done[lane])
                    .map(|lane| OFF * (gap[lane] / goal[lane]).sqrt())
                    .fold(0.0, f64::max);
            }
            self.primal(signal, &ahead, &mut psi);
            let next = pace.map(|pace| 0.5 * (1.0 + (1.0 + 4.0 * pace * pace).sqrt()));
            let push: [f64; W] = std::array::from_fn(|lane| (pace[lane] - 1.0) / next[lane]);
            let mut turn = [0.0; W];
            for ((edge, best), ahead) in self.edges.iter().zip(&mut best).zip(&mut ahead) {
                let [i, j] = edge.ends.map(|end| &psi[end as usize]);
                for lane in 0..W {
                    let free = ahead[lane] + edge.step * (i[lane] - j[lane]);
                    let bound = edge.bound.min(supply[lane]);
                    let new = free.max(-bound).min(bound);
                    let new = if done[lane] { best[lane] } else { new };
                    turn[lane] += (ahead[lane] - new) * (new - best[lane]) / edge.step;
                    ahead[lane] = new + push[lane] * (new - best[lane]);
                    best[lane] = new;
                }
            }
            pace = next;
            for lane in 0..W {
                if turn[lane] > 0.0 {
                    pace[lane] = 1.0;
                    ahead.iter_mut().zip(&best).for_each(|(ahead, best)| ahead[lane] = best[lane]);
                }
            }
        }
        Err(DenoiseError::Unfinished { what: "total variation", off })
    }
}
