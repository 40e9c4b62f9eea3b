//! The pairs of nodes that can matter to a client's block, out of all of them.
//!
//! A weight is `max(0, y_j + y_k - c_jk) / h`, and most are 0. As the multipliers y settle, the same pairs stay positive:
//! one pass lists all that can be, with room for y to grow, and Newton's steps look at no others until a y outgrows it.

/// How far a multiplier may grow before the pairs that could matter are listed again.
const ROOM: f64 = 1.5;

/// The pairs that can have a positive weight as long as no `y_j` exceeds its limit, by row: those with
/// `limit_j + limit_k > c_jk`. All others weigh nothing there, so what is summed over these is summed over all.
#[derive(Default)]
pub(super) struct Near {
    starts: Vec<usize>,
    others: Vec<u32>,
    costs: Vec<f64>,
}

impl Near {
    /// One pass over all pairs.
    fn list(&mut self, c: &[f64], limit: &[f64]) {
        self.starts.clear();
        let (mut rest, mut at) = (c, 0);
        for (node, own) in limit.iter().enumerate() {
            self.starts.push(at);
            let limit = &limit[node + 1..];
            let (row, below) = rest.split_at(limit.len());
            rest = below;
            if self.others.len() < at + row.len() {
                self.others.resize(at + row.len(), 0);
                self.costs.resize(at + row.len(), 0.0);
            }
            let ((lines, row_rest), (limits, limit_rest)) = (row.as_chunks::<8>(), limit.as_chunks::<8>());
            let mut other = node as u32 + 1;
            // Every pair is written, and the place moves on where it is to stay: no branch to guess.
            let mut put = |other: u32, c: f64, near: bool| {
                self.others[at] = other;
                self.costs[at] = c;
                at += usize::from(near);
            };
            for (c, limit) in lines.iter().zip(limits) {
                let mut room = [0.0; 8];
                for lane in 0..8 {
                    room[lane] = own + limit[lane] - c[lane];
                }
                let pair = |a: f64, b: f64| if a > b { a } else { b };
                let four = [0, 1, 2, 3].map(|lane| pair(room[lane], room[lane + 4]));
                if pair(pair(four[0], four[2]), pair(four[1], four[3])) > 0.0 {
                    for lane in 0..8 {
                        put(other + lane as u32, c[lane], room[lane] > 0.0);
                    }
                }
                other += 8;
            }
            for ((c, limit), other) in row_rest.iter().zip(limit_rest).zip(other..) {
                put(other, *c, own + limit - c > 0.0);
            }
        }
        self.starts.push(at);
    }

    /// The sums `h S w` at y, the pairs of positive weight with their number per node, and phi without its logarithms,
    /// times h.
    fn weigh(&self, y: &[f64], sums: &mut [f64], active: &mut Active, count: &mut [f64]) -> f64 {
        sums.fill(0.0);
        count.fill(0.0);
        active.starts.clear();
        active.others.resize(self.starts.last().copied().unwrap_or(0), 0);
        let (mut squares, mut at) = (0.0, 0);
        for (node, own) in y.iter().enumerate() {
            active.starts.push(at);
            let range = self.starts[node]..self.starts[node + 1];
            let (mut sum, mut square) = (0.0, 0.0);
            for (other, c) in self.others[range.clone()].iter().zip(&self.costs[range]) {
                let place = *other as usize;
                let t = own + y[place] - c;
                let t = if t > 0.0 { t } else { 0.0 };
                sum += t;
                square += t * t;
                sums[place] += t;
                active.others[at] = *other;
                at += usize::from(t > 0.0);
            }
            sums[node] += sum;
            squares += square;
            count[node] += (at - active.starts[node]) as f64;
            for other in &active.others[active.starts[node]..at] {
                count[*other as usize] += 1.0;
            }
        }
        active.starts.push(at);
        0.5 * squares
    }

    /// Writes the weights at y; `graph` may hold anything.
    pub(super) fn graph(&self, y: &[f64], share: f64, graph: &mut [f64]) {
        graph.fill(0.0);
        let mut rest = graph;
        for (node, own) in y.iter().enumerate() {
            let (row, below) = rest.split_at_mut(y.len() - node - 1);
            rest = below;
            let range = self.starts[node]..self.starts[node + 1];
            for (other, c) in self.others[range.clone()].iter().zip(&self.costs[range]) {
                let place = *other as usize;
                row[place - node - 1] = (own + y[place] - c).max(0.0) * share;
            }
        }
    }
}

/// Pairs of positive weight, by row.
#[derive(Default)]
pub(super) struct Active {
    starts: Vec<usize>,
    others: Vec<u32>,
}

impl Active {
    /// `out = diagonal x + share A x`.
    pub(super) fn product(&self, diagonal: &[f64], share: f64, x: &[f64], out: &mut [f64]) {
        for ((out, diagonal), x) in out.iter_mut().zip(diagonal).zip(x) {
            *out = diagonal * x;
        }
        for node in 0..x.len() {
            let own = share * x[node];
            let mut sum = 0.0;
            for &other in &self.others[self.starts[node]..self.starts[node + 1]] {
                let other = other as usize;
                sum += x[other];
                out[other] += own;
            }
            out[node] += share * sum;
        }
    }
}

/// What is known of a point y.
pub(super) struct At<'a> {
    /// Pairs that can matter there.
    pub near: Near,
    /// Pairs of positive weight.
    pub active: Active,
    /// How far each multiplier may grow while `near` holds.
    limit: &'a mut [f64],
    /// `h S w`.
    pub sums: &'a mut [f64],
    /// Pairs of positive weight per node.
    pub count: &'a mut [f64],
    listed: bool,
}

impl<'a> At<'a> {
    /// Nowhere yet; the slices have one number per node.
    pub(super) fn new(limit: &'a mut [f64], sums: &'a mut [f64], count: &'a mut [f64]) -> Self {
        Self { near: Near::default(), active: Active::default(), limit, sums, count, listed: false }
    }

    /// phi without its logarithms, times h.
    pub(super) fn move_to(&mut self, c: &[f64], y: &[f64]) -> f64 {
        if !self.listed || self.limit.iter().zip(y).any(|(limit, y)| y > limit) {
            for (limit, y) in self.limit.iter_mut().zip(y) {
                *limit = ROOM * y;
            }
            self.near.list(c, self.limit);
            self.listed = true;
        }
        self.near.weigh(y, self.sums, &mut self.active, self.count)
    }
}
