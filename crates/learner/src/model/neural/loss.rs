//! The two goals: mean loss over the batch and its gradient at the outputs.

use super::lanes::{LANES, Lanes};
use super::net::Goal;
use fedkin_numeric::{exp, ln};

impl Goal {
    /// Sum of the losses of the records; `share` times its gradient goes into `g`, which is zero behind the last record. A
    /// class that the net does not have makes the loss NaN.
    pub(super) fn slope(
        self,
        z: &[Lanes],
        y: &[f32],
        (records, outputs): (usize, usize),
        share: f64,
        g: &mut [Lanes],
    ) -> f64 {
        g.fill(Lanes::ZERO);
        let mut sum = 0.0;
        for record in 0..records {
            let (block, lane) = (record / LANES * outputs, record % LANES);
            let (z, g) = (&z[block..block + outputs], &mut g[block..block + outputs]);
            sum += match self {
                Self::CrossEntropy => cross_entropy(z, lane, y[record], share, g),
                Self::Squared => squared(z, lane, &y[record * outputs..(record + 1) * outputs], share, g),
            };
        }
        sum
    }
}

fn cross_entropy(z: &[Lanes], lane: usize, y: f32, share: f64, g: &mut [Lanes]) -> f64 {
    let class = y as usize;
    if class as f32 != y || class >= z.len() {
        return f64::NAN;
    }
    let top = z.iter().fold(f32::NEG_INFINITY, |top, z| top.max(z.0[lane]));
    let mut total = 0.0;
    for (z, g) in z.iter().zip(&mut *g) {
        let e = exp(f64::from(z.0[lane]) - f64::from(top));
        total += e;
        g.0[lane] = e as f32;
    }
    for (c, g) in g.iter_mut().enumerate() {
        let own = if c == class { 1.0 } else { 0.0 };
        g.0[lane] = (share * (f64::from(g.0[lane]) / total - own)) as f32;
    }
    ln(total) + f64::from(top) - f64::from(z[class].0[lane])
}

fn squared(z: &[Lanes], lane: usize, y: &[f32], share: f64, g: &mut [Lanes]) -> f64 {
    let mut sum = 0.0;
    for ((z, y), g) in z.iter().zip(y).zip(g) {
        let gap = f64::from(z.0[lane]) - f64::from(*y);
        sum += gap * gap;
        g.0[lane] = (2.0 * share * gap) as f32;
    }
    sum
}
