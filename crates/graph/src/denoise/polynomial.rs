//! A filter as a Chebyshev polynomial of the sparse Laplacian: no eigenvector is needed.

use super::DenoiseError;
use super::filters::Response;
use super::lanes::{Columns, Flow, Work, centre, restore};
use std::sync::Arc;

/// What the terms that are left out can change, as a share of the signal's deviation from its mean.
pub(super) const LEFT_OUT: f64 = 1e-8;
/// Filters that need more terms are left to conjugate gradients.
const MOST: usize = 2048;

/// `h(Q) x` with `h(l) = c_0 / 2 + sum_k c_k T_k(2 l / reach - 1)`.
#[derive(Debug, Clone)]
pub(super) struct Polynomial {
    flow: Arc<Flow>,
    terms: Vec<f64>,
}

impl Polynomial {
    /// `None` where too many terms would be needed.
    pub(super) fn new(flow: Arc<Flow>, response: Response) -> Option<Self> {
        let terms = terms(|value| response.at(value), flow.reach)?;
        Some(Self { flow, terms })
    }

    /// Products with the Laplacian per signal.
    pub(super) fn steps(&self) -> usize {
        self.terms.len() - 1
    }
}

/// The coefficients of `h` on `[0, reach]`, as many as the promised error needs.
fn terms(h: impl Fn(f64) -> f64, reach: f64) -> Option<Vec<f64>> {
    let mut points = 32;
    while points <= 2 * MOST {
        let quarter = std::f64::consts::PI / (2 * points) as f64;
        // cos(k (2 j + 1) pi / (2 points)) repeats after 4 points.
        let cosines: Vec<f64> = (0..4 * points).map(|at| libm::cos(quarter * at as f64)).collect();
        let values: Vec<f64> = (0..points).map(|j| h(0.5 * reach * (1.0 + cosines[2 * j + 1]))).collect();
        let all: Vec<f64> = (0..points)
            .map(|k| {
                let sum: f64 =
                    values.iter().enumerate().map(|(j, h)| h * cosines[k * (2 * j + 1) % (4 * points)]).sum();
                2.0 * sum / points as f64
            })
            .collect();
        // What lies behind the points folds onto the last coefficients: only the first half is trusted.
        let (first, last) = all.split_at(points / 2);
        let mut tail: f64 = last.iter().map(|c| c.abs()).sum();
        if tail <= 0.5 * LEFT_OUT {
            let mut count = first.len();
            while count > 1 && tail + first[count - 1].abs() <= LEFT_OUT {
                count -= 1;
                tail += first[count].abs();
            }
            return Some(first[..count].to_vec());
        }
        points *= 2;
    }
    None
}

impl Work for Polynomial {
    fn order(&self) -> &[u32] {
        &self.flow.order
    }

    /// Clenshaw's recurrence from the last term down: `b_k = c_k x + 2 z b_(k+1) - b_(k+2)`, `z = 2 Q / reach - 1`.
    fn run<const W: usize>(&self, signal: &mut [[f64; W]]) -> Result<(), DenoiseError> {
        let mean = centre(&self.flow.mass, signal);
        let Some((&last, rest)) = self.terms.split_last() else { return Ok(()) };
        let (mut near, mut far) = (Columns::zero::<W>(signal.len()), Columns::zero::<W>(signal.len()));
        let (mut near, mut far) = (near.rows_mut::<W>(), far.rows_mut::<W>());
        near.iter_mut().zip(&*signal).for_each(|(near, row)| *near = row.map(|x| last * x));
        let Some((&first, middle)) = rest.split_first() else {
            // One term: a constant.
            signal.iter_mut().zip(near).for_each(|(row, near)| *row = near.map(|b| 0.5 * b));
            restore(mean, signal);
            return Ok(());
        };
        let unit = 2.0 / self.flow.reach;
        let down: Vec<f64> = middle.iter().rev().copied().collect();
        self.flow.recur(down.len(), (near, far), |step, place, b, product, out| {
            let (term, x) = (down[step], &signal[place]);
            for lane in 0..W {
                out[lane] = term * x[lane] + 2.0 * (unit * product[lane] - b[lane]) - out[lane];
            }
        });
        if down.len() % 2 == 1 {
            std::mem::swap(&mut near, &mut far);
        }
        let half = 0.5 * first;
        self.flow.rows(near, |place, product| {
            let (b, behind, x) = (&near[place], &far[place], &mut signal[place]);
            for lane in 0..W {
                x[lane] = half * x[lane] + (unit * product[lane] - b[lane]) - behind[lane];
            }
        });
        restore(mean, signal);
        Ok(())
    }
}
