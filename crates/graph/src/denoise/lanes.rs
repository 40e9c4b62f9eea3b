//! Signals in lanes: a few columns side by side, so that one pass over the edges of a graph serves them all.

use super::DenoiseError;
use crate::Sparse;
use fedkin_numeric::scale;
use std::ops::Range;

/// Graphs up to this size fit into the processor's cache: their order does not matter.
const CACHED: usize = 8192;

/// Something that replaces a signal of `W` columns.
pub(super) trait Work {
    /// Where the client of a place stands among the rows; nothing where clients keep their order.
    fn order(&self) -> &[u32];
    /// Denoises the columns in place.
    fn run<const W: usize>(&self, signal: &mut [[f64; W]]) -> Result<(), DenoiseError>;
}

/// Room for a signal in lanes that begins with a line of the cache: a row of eight numbers is one line then, not two halves.
pub(super) struct Columns {
    values: Vec<f64>,
    clients: usize,
}

/// Bytes of a line of the cache.
const LINE: usize = 64;

impl Columns {
    pub(super) fn zero<const W: usize>(clients: usize) -> Self {
        Self { values: vec![0.0; clients * W + LINE / size_of::<f64>()], clients }
    }

    pub(super) fn rows_mut<const W: usize>(&mut self) -> &mut [[f64; W]] {
        // It may say that it does not know; the result does not depend on it.
        let begin = self.values.as_ptr().align_offset(LINE).min(LINE / size_of::<f64>());
        self.values[begin..begin + self.clients * W].as_chunks_mut().0
    }
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
    let mut signal = Columns::zero::<W>(rows.len());
    let signal = signal.rows_mut::<W>();
    for (place, lanes) in signal.iter_mut().enumerate() {
        let k = client(place);
        lanes[..width].copy_from_slice(&rows[k][at..at + width]);
        if let Some(factors) = factors {
            scale(factors[k], lanes);
        }
    }
    work.run(signal)?;
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
    /// Cuts of the places, and behind each the first place that no row up to there touches.
    blocks: Vec<Block>,
}

/// Some places behind each other.
#[derive(Debug, Clone, Copy)]
struct Block {
    end: usize,
    /// All neighbours of its places stand before this one.
    touched: usize,
}

/// Places of a block.
const BLOCK: usize = 128;
/// Steps of a recurrence that follow each other through the places at once.
const WAVES: usize = 6;

impl Flow {
    pub(super) fn new(graph: &Sparse, mass: &[f64]) -> Self {
        let clients = graph.nodes();
        let order = if clients > CACHED { near(graph) } else { (0..clients as u32).collect() };
        let mut places = vec![0u32; clients];
        for (place, &client) in order.iter().enumerate() {
            places[client as usize] = place as u32;
        }
        let edges = 2 * graph.listed();
        let (mut others, mut weights) = (Vec::with_capacity(edges), Vec::with_capacity(edges));
        let (mut starts, mut rates) = (vec![0u32], Vec::with_capacity(clients));
        for &client in &order {
            let client = client as usize;
            let begin = weights.len();
            for (other, weight) in graph.neighbours(client) {
                others.push(places[other]);
                weights.push(weight);
            }
            rates.push(weights[begin..].iter().sum::<f64>() / mass[client]);
            weights[begin..].iter_mut().for_each(|weight| *weight /= mass[client]);
            starts.push(others.len() as u32);
        }
        // The nonzero eigenvalues of P^-1 B W B' are those of a matrix over edges, whose row sums, scaled by the
        // weights, are d_i / P_i + d_j / P_j. The common weight adds at most K c / P_i to them.
        let mut listed: f64 = 0.0;
        for (ends, own) in starts.windows(2).zip(&rates) {
            for &other in &others[ends[0] as usize..ends[1] as usize] {
                listed = listed.max(own + rates[other as usize]);
            }
        }
        let common = graph.everywhere() * clients as f64;
        let least = mass.iter().copied().fold(f64::INFINITY, f64::min);
        let mass: Vec<f64> = order.iter().map(|&k| mass[k as usize]).collect();
        let diagonal = rates.iter().zip(&mass).map(|(rate, mass)| rate + common / mass).collect();
        let reach = listed + common / least;
        let blocks = (0..clients).step_by(BLOCK).map(|first| {
            let end = (first + BLOCK).min(clients);
            let others = &others[starts[first] as usize..starts[end] as usize];
            let last = others.iter().copied().max().map_or(0, |last| last as usize + 1);
            Block { end, touched: last.max(end) }
        });
        let blocks = blocks.collect();
        Self { order, starts, others, weights, diagonal, mass, everywhere: graph.everywhere(), reach, blocks }
    }

    /// Steps of a recurrence of two vectors. Step `k` goes over all places and calls `each` with `k`, the place, its row of
    /// the vector that is read, its row of `Q` times that vector, and its row of the other vector, to overwrite. The first
    /// step reads `near` and overwrites `far`, the next one the other way round, and so on.
    ///
    /// A step may follow the one before through the places as soon as that one has passed all neighbours: edges and rows are
    /// then still in the cache. The sums are the same.
    pub(super) fn recur<const W: usize>(
        &self,
        steps: usize,
        (near, far): (&mut [[f64; W]], &mut [[f64; W]]),
        mut each: impl FnMut(usize, usize, &[f64; W], [f64; W], &mut [f64; W]),
    ) {
        // A sum over all clients has to be complete before a step begins.
        let waves = if self.everywhere > 0.0 { 1 } else { WAVES };
        for first in (0..steps).step_by(waves) {
            let total = self.total(if first % 2 == 0 { near } else { far });
            let count = waves.min(steps - first);
            let mut passed = [0; WAVES];
            while passed[count - 1] < self.blocks.len() {
                for wave in 0..count {
                    let step = first + wave;
                    let (read, write) = if step % 2 == 0 { (&*near, &mut *far) } else { (&*far, &mut *near) };
                    while let Some(block) = self.blocks.get(passed[wave]) {
                        if wave > 0 && self.place(passed[wave - 1]) < block.touched {
                            break;
                        }
                        let range = self.place(passed[wave])..block.end;
                        self.some_rows(range, read, &total, |place, product| {
                            each(step, place, &read[place], product, &mut write[place]);
                        });
                        passed[wave] += 1;
                        if wave == 0 {
                            break;
                        }
                    }
                }
            }
        }
    }

    /// The place behind so many blocks.
    fn place(&self, blocks: usize) -> usize {
        blocks.checked_sub(1).map_or(0, |last| self.blocks[last].end)
    }

    /// Calls `each` with every place and its row of `Q x`.
    #[inline]
    pub(super) fn rows<const W: usize>(&self, x: &[[f64; W]], each: impl FnMut(usize, [f64; W])) {
        self.some_rows(0..x.len(), x, &self.total(x), each);
    }

    /// What the common weight takes of every client, times its mass.
    fn total<const W: usize>(&self, x: &[[f64; W]]) -> [f64; W] {
        let mut total = [0.0; W];
        if self.everywhere > 0.0 {
            for row in x {
                for lane in 0..W {
                    total[lane] += row[lane];
                }
            }
            total = total.map(|sum| sum * self.everywhere);
        }
        total
    }

    #[inline]
    fn some_rows<const W: usize>(
        &self,
        places: Range<usize>,
        x: &[[f64; W]],
        total: &[f64; W],
        mut each: impl FnMut(usize, [f64; W]),
    ) {
        let mut start = self.starts[places.start] as usize;
        for place in places {
            let end = self.starts[place + 1] as usize;
            let mut sum = [0.0; W];
            for (&other, &weight) in self.others[start..end].iter().zip(&self.weights[start..end]) {
                let values = &x[other as usize];
                for lane in 0..W {
                    sum[lane] += weight * values[lane];
                }
            }
            start = end;
            let (own, row) = (self.diagonal[place], &x[place]);
            let mut product: [f64; W] = std::array::from_fn(|lane| own * row[lane] - sum[lane]);
            if self.everywhere > 0.0 {
                let mass = self.mass[place];
                product = std::array::from_fn(|lane| product[lane] - total[lane] / mass);
            }
            // One call, so that it is inlined.
            each(place, product);
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

/// An order in which neighbours stand near each other: breadth first through every component, twice, so that the second
/// walk starts at an end.
fn near(graph: &Sparse) -> Vec<u32> {
    let clients = graph.nodes();
    let mut order = Vec::with_capacity(clients);
    // By how many walks a client was seen.
    let mut seen = vec![0u8; clients];
    for first in 0..clients {
        if seen[first] > 0 {
            continue;
        }
        let begin = order.len();
        walk(graph, first as u32, 1, &mut seen, &mut order);
        // The last one reached is far from the first: an end of the component.
        if let Some(end) = order.pop() {
            order.truncate(begin);
            walk(graph, end, 2, &mut seen, &mut order);
        }
    }
    order
}

fn walk(graph: &Sparse, first: u32, number: u8, seen: &mut [u8], order: &mut Vec<u32>) {
    let mut at = order.len();
    seen[first as usize] = number;
    order.push(first);
    while let Some(&client) = order.get(at) {
        at += 1;
        for (other, _) in graph.neighbours(client as usize) {
            if seen[other] < number {
                seen[other] = number;
                order.push(other as u32);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fedkin_numeric::rng::{PublicRng, Random};

    /// Clients joined with some of the sixty behind them; more than `CACHED` are put into another order.
    fn flow(clients: usize, everywhere: f64) -> Flow {
        let mut rng = PublicRng::named(3, "flow", 0, 0);
        let edges: Vec<(usize, usize, f64)> = (0..2 * clients)
            .map(|at| (at % clients, (at + 1 + rng.below(60) as usize) % clients, rng.between(0.1, 1.0)))
            .collect();
        let mass: Vec<f64> = (0..clients).map(|_| rng.between(0.5, 2.0)).collect();
        Flow::new(&Sparse::new(clients, edges, everywhere).unwrap(), &mass)
    }

    #[test]
    fn steps_that_follow_each_other_closely_give_the_same_bits() {
        for (clients, everywhere) in [(900, 0.0), (900, 0.01), (BLOCK, 0.0), (1, 0.0), (9000, 0.0)] {
            let flow = flow(clients, everywhere);
            let mut rng = PublicRng::named(4, "signal", 0, 0);
            let begin: Vec<[f64; 2]> = (0..clients).map(|_| [rng.normal(), rng.normal()]).collect();
            let step = |step: usize, b: &[f64; 2], product: [f64; 2], out: &mut [f64; 2]| {
                *out = std::array::from_fn(|i| 0.1 * step as f64 + product[i] - b[i] - 0.5 * out[i]);
            };
            for steps in [0, 1, WAVES, 2 * WAVES + 3] {
                let (mut near, mut far) = (begin.clone(), vec![[0.25; 2]; clients]);
                let mut plain = (begin.clone(), far.clone());
                flow.recur(steps, (&mut near, &mut far), |k, _, b, product, out| step(k, b, product, out));
                for k in 0..steps {
                    let (read, write) = &mut plain;
                    flow.rows(read, |place, product| step(k, &read[place], product, &mut write[place]));
                    std::mem::swap(read, write);
                }
                if steps % 2 == 1 {
                    std::mem::swap(&mut near, &mut far);
                }
                assert_eq!((near, far), plain, "{clients} clients, {steps} steps");
            }
        }
    }

    #[test]
    fn every_client_has_one_place_and_neighbours_are_near() {
        // Two rings and a client alone.
        let ring = |first: usize, count: usize| {
            (0..count).map(move |k| (first + 7 * k % count, first + 7 * (k + 1) % count, 1.0))
        };
        let graph = Sparse::new(151, ring(0, 100).chain(ring(100, 50)), 0.0).unwrap();
        let order = near(&graph);
        let mut places = vec![usize::MAX; 151];
        order.iter().enumerate().for_each(|(place, &client)| places[client as usize] = place);
        assert!(order.len() == 151 && !places.contains(&usize::MAX));
        assert!(graph.edges().all(|(i, j, _)| places[i].abs_diff(places[j]) <= 3));
    }

    #[test]
    fn a_signal_begins_with_a_line() {
        let mut columns = Columns::zero::<8>(5);
        let rows = columns.rows_mut::<8>();
        assert_eq!((rows.len(), rows.as_ptr() as usize % LINE), (5, 0));
    }
}
