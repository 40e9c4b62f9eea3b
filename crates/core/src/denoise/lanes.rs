//! Signals in lanes: a few columns side by side, so that one pass over the edges of a graph serves them all.

use super::DenoiseError;
use crate::graph::Sparse;
use crate::numeric::scale;

/// Graphs up to this size fit into the processor's cache: their order does not matter.
const CACHED: usize = 8192;

/// Something that replaces a signal of `W` columns.
pub(super) trait Work {
    /// Where the client of a place stands among the rows; nothing where clients keep their order.
    fn order(&self) -> &[u32];
    /// Denoises the columns in place.
    fn run<const W: usize>(&self, signal: &mut [[f64; W]]) -> Result<(), DenoiseError>;
}

/// Works on all columns, eight at a time.
pub(super) fn each(
    work: &impl Work,
    rows: &[&[f64]],
    out: &mut [&mut [f64]],
    factors: Option<&[f64]>,
) -> Result<(), DenoiseError> {
    let columns = rows[0].len();
    let mut at = 0;
    while at < columns {
        at += match columns - at {
            1 => some::<1>(work, rows, out, factors, at)?,
            2..=4 => some::<4>(work, rows, out, factors, at)?,
            _ => some::<8>(work, rows, out, factors, at)?,
        };
    }
    Ok(())
}

fn some<const W: usize>(
    work: &impl Work,
    rows: &[&[f64]],
    out: &mut [&mut [f64]],
    factors: Option<&[f64]>,
    at: usize,
) -> Result<usize, DenoiseError> {
    let width = W.min(rows[0].len() - at);
    let order = work.order();
    let client = |place: usize| order.get(place).map_or(place, |&client| client as usize);
    let mut signal = vec![[0.0; W]; rows.len()];
    for (place, lanes) in signal.iter_mut().enumerate() {
        let k = client(place);
        lanes[..width].copy_from_slice(&rows[k][at..at + width]);
        if let Some(factors) = factors {
            scale(factors[k], lanes);
        }
    }
    work.run(&mut signal)?;
    for (place, lanes) in signal.iter().enumerate() {
        out[client(place)][at..at + width].copy_from_slice(&lanes[..width]);
    }
    Ok(width)
}

/// `Q = P^-1 L` for signals in lanes: `P^-1/2 h(P^-1/2 L P^-1/2) P^1/2 = h(Q)`, so no signal has to be scaled. `Q`
/// is self-adjoint where clients count by their masses.
#[derive(Debug, Clone)]
pub(super) struct Flow {
    /// The client of each place: neighbours stand near each other.
    pub(super) order: Vec<u32>,
    starts: Vec<u32>,
    others: Vec<u32>,
    /// `A_ij / P_i`.
    weights: Vec<f64>,
    /// `Q_ii` with the common weight's part `K c / P_i`.
    diagonal: Vec<f64>,
    /// `P_i` by place.
    pub(super) mass: Vec<f64>,
    /// The weight `c` between all clients.
    everywhere: f64,
    /// No eigenvalue of `Q` is above this.
    pub(super) reach: f64,
}

impl Flow {
    pub(super) fn new(graph: &Sparse, mass: &[f64]) -> Self {
        let clients = graph.nodes();
        let order = if clients > CACHED { near(graph) } else { (0..clients as u32).collect() };
        let mut places = vec![0u32; clients];
        for (place, &client) in order.iter().enumerate() {
            places[client as usize] = place as u32;
        }
        let degrees = graph.listed_degrees();
        let (mut starts, mut others, mut weights) = (vec![0u32], Vec::new(), Vec::new());
        for &client in &order {
            let client = client as usize;
            for (other, weight) in graph.neighbours(client) {
                others.push(places[other]);
                weights.push(weight / mass[client]);
            }
            starts.push(others.len() as u32);
        }
        let common = graph.everywhere() * clients as f64;
        let diagonal = order.iter().map(|&k| (degrees[k as usize] + common) / mass[k as usize]).collect();
        // The nonzero eigenvalues of P^-1 B W B' are those of a matrix over edges, whose row sums, scaled by the
        // weights, are d_i / P_i + d_j / P_j. The common weight adds at most K c / P_i to them.
        let listed =
            graph.edges().map(|(i, j, _)| degrees[i] / mass[i] + degrees[j] / mass[j]).fold(0.0, f64::max);
        let least = mass.iter().copied().fold(f64::INFINITY, f64::min);
        let mass = order.iter().map(|&k| mass[k as usize]).collect();
        let reach = listed + common / least;
        Self { order, starts, others, weights, diagonal, mass, everywhere: graph.everywhere(), reach }
    }

    /// Calls `each` with every place and its row of `Q x`.
    #[inline]
    pub(super) fn rows<const W: usize>(&self, x: &[[f64; W]], mut each: impl FnMut(usize, [f64; W])) {
        let mut total = [0.0; W];
        if self.everywhere > 0.0 {
            for row in x {
                for lane in 0..W {
                    total[lane] += row[lane];
                }
            }
            total = total.map(|sum| sum * self.everywhere);
        }
        let mut start = 0;
        for (place, (&end, row)) in self.starts[1..].iter().zip(x).enumerate() {
            let end = end as usize;
            let mut sum = [0.0; W];
            for (&other, &weight) in self.others[start..end].iter().zip(&self.weights[start..end]) {
                let values = &x[other as usize];
                for lane in 0..W {
                    sum[lane] += weight * values[lane];
                }
            }
            start = end;
            let own = self.diagonal[place];
            if self.everywhere > 0.0 {
                let mass = self.mass[place];
                each(place, std::array::from_fn(|lane| own * row[lane] - sum[lane] - total[lane] / mass));
            } else {
                each(place, std::array::from_fn(|lane| own * row[lane] - sum[lane]));
            }
        }
    }
}

/// Takes the weighted mean of every lane out and gives it: constants pass a filter unchanged, and what is left sets
/// the scale of errors.
pub(super) fn centre<const W: usize>(mass: &[f64], signal: &mut [[f64; W]]) -> [f64; W] {
    let total: f64 = mass.iter().sum();
    let mut mean = [0.0; W];
    for (mass, row) in mass.iter().zip(&*signal) {
        for lane in 0..W {
            mean[lane] += mass * row[lane];
        }
    }
    mean = mean.map(|sum| sum / total);
    for row in signal {
        for lane in 0..W {
            row[lane] -= mean[lane];
        }
    }
    mean
}

/// Adds the means back.
pub(super) fn restore<const W: usize>(mean: [f64; W], signal: &mut [[f64; W]]) {
    for row in signal {
        for lane in 0..W {
            row[lane] += mean[lane];
        }
    }
}

/// `sum_i P_i x_i y_i` of every lane.
pub(super) fn inner<const W: usize>(mass: &[f64], x: &[[f64; W]], y: &[[f64; W]]) -> [f64; W] {
    let mut sum = [0.0; W];
    for ((mass, x), y) in mass.iter().zip(x).zip(y) {
        for lane in 0..W {
            sum[lane] += mass * (x[lane] * y[lane]);
        }
    }
    sum
}

/// An order in which neighbours stand near each other: breadth first from a client of few neighbours in every
/// component, twice, so that the second walk starts at an end (the order of Cuthill and `McKee`).
fn near(graph: &Sparse) -> Vec<u32> {
    let clients = graph.nodes();
    let counts: Vec<u32> = (0..clients).map(|k| graph.neighbours(k).count() as u32).collect();
    let mut starts: Vec<u32> = (0..clients as u32).collect();
    starts.sort_by_key(|&k| counts[k as usize]);
    let mut order = Vec::with_capacity(clients);
    let mut seen = vec![false; clients];
    for first in starts {
        if seen[first as usize] {
            continue;
        }
        let begin = order.len();
        walk(graph, &counts, first, &mut seen, &mut order);
        // The last one reached is far from the first: an end of the component.
        if let Some(&end) = order.last() {
            order[begin..].iter().for_each(|&k| seen[k as usize] = false);
            order.truncate(begin);
            walk(graph, &counts, end, &mut seen, &mut order);
        }
    }
    order
}

fn walk(graph: &Sparse, counts: &[u32], first: u32, seen: &mut [bool], order: &mut Vec<u32>) {
    let mut at = order.len();
    seen[first as usize] = true;
    order.push(first);
    while let Some(&client) = order.get(at) {
        at += 1;
        let begin = order.len();
        for (other, _) in graph.neighbours(client as usize) {
            if !seen[other] {
                seen[other] = true;
                order.push(other as u32);
            }
        }
        order[begin..].sort_by_key(|&k| counts[k as usize]);
    }
}
