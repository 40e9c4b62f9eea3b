//! A typed loop and plain linear algebra for tests of methods, over the small worlds of [`worlds`](crate::worlds).
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::disallowed_methods)]

pub use crate::worlds::*;
use fedkin_learner::Dataset;
use fedkin_learner::model::Loss;
use fedkin_method::round::{Chunk, Client, Scratch, Serial, Steps};
use fedkin_method::{Admm, Algorithm, Counts, Pgfl};
use fedkin_numeric::codec::Encoder;
use fedkin_privacy::Tally;
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::Arc;

pub type Matrix = Vec<Vec<f64>>;

/// One process with the servers in the open: the loop of a run, step by step.
pub struct Loop<A: Algorithm>(pub Steps<A>);

impl<A: Algorithm> Loop<A> {
    pub fn new(algorithm: A, world: &Small) -> Self {
        let (run, pool) = (world.run.clone(), Arc::new(Serial));
        Self(Steps::new(Arc::new(algorithm), run, &world.federation, &world.data, pool).unwrap())
    }

    pub fn begin(&mut self) {
        assert!(self.0.begin());
    }

    pub fn ask(&mut self) {
        self.0.ask();
    }

    /// The step is closed without these clients.
    pub fn ask_without(&mut self, missing: impl Fn(u32) -> bool) {
        for at in 0..self.0.servers().len() {
            let (algorithm, run) = (self.0.shared(), self.0.run().clone());
            self.feed(at, |_, mut chunk, clients, scratch| {
                chunk.clear();
                for (i, client) in clients.iter_mut().enumerate() {
                    if !chunk.is_asked(i) {
                        continue;
                    }
                    if missing(chunk.members[i].id) {
                        chunk.miss(i);
                    } else {
                        let answer = chunk.ask(i, &algorithm, &run, client, scratch);
                        chunk.fold_in(i, answer, scratch);
                    }
                }
            });
        }
    }

    /// Hands out the chunks of a server.
    pub fn feed(
        &mut self,
        at: usize,
        mut each: impl FnMut(usize, Chunk<'_, A>, &mut [Client<A>], &mut Scratch<A>),
    ) {
        let fed: Result<(), Infallible> = self.0.feed(at, |first, chunk, clients, scratch| {
            each(first, chunk, clients, scratch);
            Ok(())
        });
        fed.unwrap();
    }

    pub fn end(&mut self) -> Counts {
        let closed = self.0.close(|_, tally| *tally = Tally::default());
        self.0.mix(&closed.shares);
        closed.counts
    }

    pub fn step(&mut self) -> Counts {
        self.begin();
        self.ask();
        self.end()
    }

    /// All state of a server as bytes.
    pub fn state(&self, server: usize) -> Vec<u8> {
        let mut bytes = Encoder::default();
        self.0.servers()[server].save(&mut bytes);
        bytes.0
    }
}

/// phi_k of every client by id: rho (v_k - w_s) of the message the server would send now.
pub fn duals(run: &mut Loop<Admm<Pgfl>>, rho: f64) -> BTreeMap<u32, Vector> {
    let mut duals = BTreeMap::new();
    for at in 0..run.0.servers().len() {
        let mut served = BTreeMap::new();
        run.0.servers()[at].held(run.0.algorithm(), run.0.run(), &mut |cluster, name, model| {
            if name == "served" {
                served.insert(cluster, model.to_vec());
            }
        });
        let mut down = <Admm<Pgfl> as Algorithm>::Down::default();
        run.feed(at, |_, chunk, _, _| {
            for (i, member) in chunk.members.iter().enumerate() {
                chunk.down(i, &mut down);
                let gap = down.centre.iter().zip(&served[&member.cluster]).map(|(v, w)| rho * (v - w));
                duals.insert(member.id, gap.collect());
            }
        });
    }
    duals
}

pub fn inner(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(x, y)| x * y).sum()
}

pub fn length(a: &[f64]) -> f64 {
    inner(a, a).sqrt()
}

/// |a - b| / |b|
pub fn apart(a: &[f64], b: &[f64]) -> f64 {
    let gap: Vector = a.iter().zip(b).map(|(x, y)| x - y).collect();
    length(&gap) / length(b)
}

/// Gaussian elimination with row pivoting.
pub fn solve(mut a: Matrix, mut b: Vector) -> Vector {
    let n = b.len();
    for column in 0..n {
        let pivot = (column..n).max_by(|&i, &j| a[i][column].abs().total_cmp(&a[j][column].abs())).unwrap();
        a.swap(column, pivot);
        b.swap(column, pivot);
        let (done, rest) = a.split_at_mut(column + 1);
        let top = &done[column];
        for (below, row) in rest.iter_mut().enumerate() {
            let factor = row[column] / top[column];
            if factor != 0.0 {
                for (x, y) in row[column..].iter_mut().zip(&top[column..]) {
                    *x -= factor * y;
                }
                b[column + 1 + below] -= factor * b[column];
            }
        }
    }
    for i in (0..n).rev() {
        let known: f64 = (i + 1..n).map(|j| a[i][j] * b[j]).sum();
        b[i] = (b[i] - known) / a[i][i];
    }
    b
}

/// The value, slope and curvature of a record's loss in z = x'w, written out here once more.
pub fn derivatives(loss: Loss, z: f64, y: f64) -> (f64, f64, f64) {
    match loss {
        Loss::Huber(t) if (z - y).abs() > t => {
            (2.0 * t * (z - y).abs() - t * t, 2.0 * t * (z - y).signum(), 0.0)
        }
        Loss::Squared | Loss::Huber(_) => ((z - y).powi(2), 2.0 * (z - y), 2.0),
        Loss::Logistic => {
            let p = 1.0 / (1.0 + (-z).exp());
            (-(y * p.ln() + (1.0 - y) * (1.0 - p).ln()), p - y, p * (1.0 - p))
        }
        Loss::Poisson => (z.exp() - y * z, z.exp() - y, z.exp()),
        Loss::Quantile(q) if y >= z => (q * (y - z), -q, 0.0),
        Loss::Quantile(q) => ((1.0 - q) * (z - y), 1.0 - q, 0.0),
    }
}

/// The minimiser of `sum over clients of mean loss + ridge |w|^2 + (rho/2) |w - v|^2` by Newton's method
/// in d unknowns with backtracking, until the gradient is a rounding error.
pub fn minimise(loss: Loss, clients: &[&Dataset], strength: f64, rho: f64, centre: &[f64]) -> Vector {
    let d = centre.len();
    let value = |w: &[f64]| {
        let gap: Vector = w.iter().zip(centre).map(|(w, v)| w - v).collect();
        let mut sum = strength * inner(w, w) + 0.5 * rho * inner(&gap, &gap);
        for data in clients {
            for (i, &y) in data.targets().iter().enumerate() {
                sum += derivatives(loss, inner(data.row(i), w), y).0 / data.rows() as f64;
            }
        }
        sum
    };
    let mut w = centre.to_vec();
    for _ in 0..200 {
        let mut gradient: Vector =
            w.iter().zip(centre).map(|(w, v)| 2.0 * strength * w + rho * (w - v)).collect();
        let mut hessian = vec![vec![0.0; d]; d];
        for (j, row) in hessian.iter_mut().enumerate() {
            row[j] = 2.0 * strength + rho;
        }
        for data in clients {
            for (i, &y) in data.targets().iter().enumerate() {
                let x = data.row(i);
                let (_, slope, curve) = derivatives(loss, inner(x, &w), y);
                for a in 0..d {
                    gradient[a] += slope * x[a] / data.rows() as f64;
                    for b in 0..d {
                        hessian[a][b] += curve * x[a] * x[b] / data.rows() as f64;
                    }
                }
            }
        }
        if length(&gradient) < 1e-14 * (1.0 + length(&w)) {
            break;
        }
        let step = solve(hessian, gradient.iter().map(|g| -g).collect());
        let mut t = 1.0;
        let now = value(&w);
        let moved = |t: f64| w.iter().zip(&step).map(|(w, s)| w + t * s).collect::<Vector>();
        // Near the end the value cannot fall any more in floating point, and full steps are right there.
        while t > 1e-9 && value(&moved(t)) > now && length(&step) > 1e-5 * (1.0 + length(&w)) {
            t *= 0.5;
        }
        let next = moved(t);
        if next == w {
            break;
        }
        w = next;
    }
    w
}
