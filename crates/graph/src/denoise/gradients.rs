//! A soft filter as a linear system, solved by conjugate gradients: `(I + a Q + b Q^2) psi = omega` with
//! `Q = P^-1 L`, which is self-adjoint and positive where clients count by their masses.

use super::DenoiseError;
use super::lanes::{Flow, Work, centre, inner, restore};
use fedkin_numeric::ln;
use std::sync::Arc;

/// The solve ends where what is left of the right-hand side is below this share of the signal's deviation from its
/// mean. No eigenvalue of the system is below one, so the error is not larger than that either.
const LEFT: f64 = 1e-8;

#[derive(Debug, Clone)]
pub(super) struct Gradients {
    flow: Arc<Flow>,
    linear: f64,
    square: f64,
}

impl Gradients {
    pub(super) fn new(flow: Arc<Flow>, linear: f64, square: f64) -> Self {
        Self { flow, linear, square }
    }

    /// Products with the Laplacian that theory promises to be enough.
    pub(super) fn expected(reach: f64, linear: f64, square: f64) -> usize {
        let condition = 1.0 + reach * (linear + square * reach);
        let steps = (0.5 * condition.sqrt() * ln(2.0 / LEFT)).ceil();
        (steps.min(1e9) as usize + 1) * Self::products(square)
    }

    fn products(square: f64) -> usize {
        if square > 0.0 { 2 } else { 1 }
    }

    /// Products with the Laplacian after which the solve gives up: rounding slows what theory promises.
    pub(super) fn most(&self) -> usize {
        (4 * Self::expected(self.flow.reach, self.linear, self.square) + 100).min(200_000)
    }

    /// `image = (I + a Q + b Q^2) x`; `once` takes `Q x`.
    fn product<const W: usize>(&self, x: &[[f64; W]], once: &mut [[f64; W]], image: &mut [[f64; W]]) {
        self.flow.rows(x, |place, product| {
            once[place] = product;
            image[place] = std::array::from_fn(|lane| x[place][lane] + self.linear * product[lane]);
        });
        if self.square > 0.0 {
            self.flow.rows(once, |place, product| {
                for lane in 0..W {
                    image[place][lane] += self.square * product[lane];
                }
            });
        }
    }
}

impl Work for Gradients {
    fn order(&self) -> &[u32] {
        &self.flow.order
    }

    fn run<const W: usize>(&self, signal: &mut [[f64; W]]) -> Result<(), DenoiseError> {
        let mass = &self.flow.mass;
        let mean = centre(mass, signal);
        let mut rest = signal.to_vec();
        signal.fill([0.0; W]);
        let mut direction = rest.clone();
        let (mut once, mut image) = (vec![[0.0; W]; rest.len()], vec![[0.0; W]; rest.len()]);
        let mut size = inner(mass, &rest, &rest);
        let goal = size.map(|size| LEFT * LEFT * size);
        let mut left = self.most() / Self::products(self.square);
        while (0..W).any(|lane| size[lane] > goal[lane]) {
            if left == 0 {
                let off = (0..W).map(|lane| (size[lane] / goal[lane]).sqrt() * LEFT).fold(0.0, f64::max);
                return Err(DenoiseError::Unfinished { what: "conjugate gradients", off });
            }
            left -= 1;
            self.product(&direction, &mut once, &mut image);
            let bend = inner(mass, &direction, &image);
            // A lane that is done stands still: its numbers must not depend on the lanes beside it.
            let step: [f64; W] =
                std::array::from_fn(
                    |lane| {
                        if size[lane] > goal[lane] { size[lane] / bend[lane] } else { 0.0 }
                    },
                );
            for place in 0..rest.len() {
                for lane in 0..W {
                    signal[place][lane] += step[lane] * direction[place][lane];
                    rest[place][lane] -= step[lane] * image[place][lane];
                }
            }
            let next = inner(mass, &rest, &rest);
            let keep: [f64; W] =
                std::array::from_fn(
                    |lane| if size[lane] > goal[lane] { next[lane] / size[lane] } else { 0.0 },
                );
            for (direction, rest) in direction.iter_mut().zip(&rest) {
                for lane in 0..W {
                    direction[lane] = rest[lane] + keep[lane] * direction[lane];
                }
            }
            size = next;
        }
        restore(mean, signal);
        Ok(())
    }
}
