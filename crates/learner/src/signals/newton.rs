//! One client's graph, solved exactly: Newton's method on the dual, in one variable per node.
//!
//! The client block with a pull of weight kappa towards a centre v (0 for a client alone) is
//!
//! ```text
//! min over w >= 0 of   c'w + (h/2) |w|^2 - alpha 1'log(S w),     c = 2 zbar - kappa v,   h = 4 beta + kappa.
//! ```
//!
//! With one multiplier `y_j` > 0 per degree the weights follow, `w_jk = max(0, y_j + y_k - c_jk) / h`, and y minimises
//!
//! ```text
//! phi(y) = (1/2h) sum over pairs of max(0, y_j + y_k - c_jk)^2 - alpha sum over nodes of log y_j,
//! ```
//!
//! smooth and strictly convex, once differentiable with a piecewise linear part: semismooth Newton. The gradient is
//! `S w - alpha / y`; the matrix of a step is `diag(alpha / y^2 + n / h) + A / h` with the pairs of positive weight as
//! adjacency A and n their number per node. It is diagonally dominant, and only its positive pairs are stored, so
//! conjugate gradients solve it in a few products of that size: there is no d^3. All pairs are looked at once or twice, to
//! list those that can matter ([`super::near`]); a step then costs what that list costs.
//!
//! All conditions but one hold by construction. What is left is the mismatch `S w - alpha / y`, relative to the degree.

use super::near::{Active, At};
use super::start::{lift, start};
use crate::unsolved::Unsolved;
use fedkin_numeric::{dot, ln};

/// How well a block was solved.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Solved {
    /// Newton steps taken.
    pub steps: u32,
    /// Largest relative mismatch of a degree: abs(S w - alpha / y) y / alpha.
    pub mismatch: f64,
}

/// Relative mismatch at which Newton's method ends. One step further is at rounding.
const ENOUGH: f64 = 1e-11;
/// What must be reached when rounding stops further progress.
const TOLERABLE: f64 = 1e-8;
const MOST_STEPS: u32 = 1000;

/// Solves the block. `graph` holds c when called and w afterwards; `dual` holds y of a similar block or is empty.
///
/// `curvature` is h. The answer is a function of `graph`, `alpha`, `curvature` and `dual` alone.
pub fn solve(
    alpha: f64,
    curvature: f64,
    graph: &mut [f64],
    dual: &mut Vec<f64>,
    work: &mut Vec<f64>,
) -> Result<Solved, Unsolved> {
    let Some(nodes) = super::nodes_of(graph.len()) else {
        return Err(Unsolved("a graph needs at least 2 nodes"));
    };
    if !(curvature > 0.0 && alpha > 0.0) {
        return Err(Unsolved("alpha and beta must be above 0"));
    }
    let share = 1.0 / curvature;
    let cold = dual.len() != nodes || dual.iter().any(|y| !(*y > 0.0 && y.is_finite()));
    if cold {
        start(alpha, curvature, nodes, graph, dual);
    }
    work.clear();
    work.resize(10 * nodes, 0.0);
    let (sums, rest) = work.split_at_mut(nodes);
    let (count, rest) = rest.split_at_mut(nodes);
    let (gradient, rest) = rest.split_at_mut(nodes);
    let (step, rest) = rest.split_at_mut(nodes);
    let (trial, rest) = rest.split_at_mut(nodes);
    let (limit, rest) = rest.split_at_mut(nodes);
    let (diagonal, vectors) = rest.split_at_mut(nodes);
    let mut at = At::new(limit, sums, count);
    let logs = |y: &[f64]| alpha * y.iter().map(|y| ln(*y)).sum::<f64>();
    let mut value = share * at.move_to(graph, dual) - logs(dual);
    if cold && at.count.contains(&0.0) {
        lift(alpha, curvature, graph, at.count, step, dual);
        value = share * at.move_to(graph, dual) - logs(dual);
    }
    let mut solved = Solved { steps: 0, mismatch: f64::INFINITY };
    loop {
        let before = solved.mismatch;
        solved.mismatch = 0.0;
        for ((gradient, sum), y) in gradient.iter_mut().zip(at.sums.iter()).zip(dual.iter()) {
            *gradient = share * sum - alpha / y;
            solved.mismatch = solved.mismatch.max((share * sum * y / alpha - 1.0).abs());
        }
        if !solved.mismatch.is_finite() {
            return Err(Unsolved("the weights of its graph are not finite"));
        }
        let stalled = solved.mismatch <= TOLERABLE && solved.mismatch > 0.5 * before;
        if solved.mismatch <= ENOUGH || stalled {
            break;
        }
        if solved.steps == MOST_STEPS {
            return Err(Unsolved("Newton's method for its graph did not end"));
        }
        solved.steps += 1;
        for ((diagonal, count), y) in diagonal.iter_mut().zip(at.count.iter()).zip(dual.iter()) {
            *diagonal = alpha / (y * y) + share * count;
        }
        conjugate(&at.active, diagonal, share, gradient, solved.mismatch.min(0.1) * 0.1, step, vectors);
        // Nine tenths of the way to the border of y > 0 at most.
        let mut length = 1.0f64;
        for (step, y) in step.iter().zip(dual.iter()) {
            if *step < 0.0 {
                length = length.min(-0.9 * y / step);
            }
        }
        let slope = dot(gradient, step);
        let mut found = false;
        for _ in 0..60 {
            for ((trial, y), step) in trial.iter_mut().zip(dual.iter()).zip(step.iter()) {
                *trial = y + length * step;
            }
            let next = share * at.move_to(graph, trial) - logs(trial);
            // Rounding hides the last decreases.
            if next <= value + 1e-4 * length * slope + 1e-13 * value.abs() {
                value = next;
                found = true;
                break;
            }
            length *= 0.5;
        }
        if !found {
            if solved.mismatch <= TOLERABLE {
                break;
            }
            return Err(Unsolved("Newton's method for its graph found no decrease"));
        }
        dual.copy_from_slice(trial);
    }
    at.near.graph(dual, share, graph);
    Ok(solved)
}

/// Solves `M step = -gradient` to a relative residual, by conjugate gradients scaled by the diagonal.
fn conjugate(
    active: &Active,
    diagonal: &[f64],
    share: f64,
    gradient: &[f64],
    tolerance: f64,
    step: &mut [f64],
    vectors: &mut [f64],
) {
    let nodes = gradient.len();
    let (residual, rest) = vectors.split_at_mut(nodes);
    let (direction, rest) = rest.split_at_mut(nodes);
    let product = &mut rest[..nodes];
    step.fill(0.0);
    for ((residual, direction), (gradient, diagonal)) in
        residual.iter_mut().zip(direction.iter_mut()).zip(gradient.iter().zip(diagonal))
    {
        *residual = -gradient;
        *direction = *residual / diagonal;
    }
    let scaled = |residual: &[f64]| -> f64 {
        residual.iter().zip(diagonal).map(|(residual, diagonal)| residual * residual / diagonal).sum()
    };
    let mut size = scaled(residual);
    let enough = size * tolerance * tolerance;
    for _ in 0..10 * nodes + 50 {
        if size <= enough {
            break;
        }
        active.product(diagonal, share, direction, product);
        let length = size / dot(direction, product);
        for i in 0..nodes {
            step[i] += length * direction[i];
            residual[i] -= length * product[i];
        }
        let before = size;
        size = scaled(residual);
        let keep = size / before;
        for i in 0..nodes {
            direction[i] = residual[i] / diagonal[i] + keep * direction[i];
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::pairs::{degrees, pairs_of};
    use super::*;
    use fedkin_numeric::rng::{PublicRng, Random};

    /// Points in the square, the last of them far outside.
    fn costs(nodes: usize, seed: u64, far: f64) -> Vec<f64> {
        let mut rng = PublicRng::named(seed, "newton", 0, 0);
        let mut points: Vec<[f64; 2]> = (0..nodes).map(|_| [rng.uniform(), rng.uniform()]).collect();
        points[nodes - 1][0] += far;
        let mut c = Vec::with_capacity(pairs_of(nodes));
        for i in 0..nodes {
            for j in i + 1..nodes {
                let [x, y] = [points[i][0] - points[j][0], points[i][1] - points[j][1]];
                c.push(2.0 * (x * x + y * y) + 0.01 * rng.uniform());
            }
        }
        c
    }

    /// The conditions of the block, from all pairs: degrees alpha / y, and w = max(0, `y_j` + `y_k` - c) / h.
    fn check(c: &[f64], w: &[f64], y: &[f64], alpha: f64, h: f64) {
        let mut degree = vec![0.0; y.len()];
        degrees(w, &mut degree);
        for (degree, y) in degree.iter().zip(y) {
            assert!((degree * y / alpha - 1.0).abs() < 1e-8, "degree {degree}, multiplier {y}");
        }
        let mut at = 0;
        for i in 0..y.len() {
            for j in i + 1..y.len() {
                let expected = (y[i] + y[j] - c[at]).max(0.0) / h;
                assert!((w[at] - expected).abs() <= 1e-12 * (1.0 + expected), "pair {i}, {j}");
                at += 1;
            }
        }
    }

    #[test]
    fn every_pair_meets_the_conditions_whatever_was_listed() {
        for (nodes, h, far) in [
            (2, 1.0, 0.0),
            (3, 0.1, 5.0),
            (17, 1e-3, 0.0),
            (40, 1e-2, 30.0),
            (75, 1e-4, 3.0),
            (75, 50.0, 0.0),
        ] {
            let c = costs(nodes, 5, far);
            let (mut w, mut dual, mut work) = (c.clone(), Vec::new(), Vec::new());
            let cold = solve(2.0, h, &mut w, &mut dual, &mut work).unwrap();
            check(&c, &w, &dual, 2.0, h);
            // From the multipliers of another block, some far too small and some far too large.
            let mut other: Vec<f64> =
                dual.iter().enumerate().map(|(i, y)| if i % 2 == 0 { 0.01 * y } else { 20.0 * y }).collect();
            let mut again = c.clone();
            solve(2.0, h, &mut again, &mut other, &mut work).unwrap();
            check(&c, &again, &other, 2.0, h);
            // From the solution there is nothing left to do.
            let (mut same, mut dual) = (c.clone(), dual);
            let warm = solve(2.0, h, &mut same, &mut dual, &mut work).unwrap();
            assert!(warm.steps <= 1 && cold.steps >= warm.steps, "{cold:?} {warm:?}");
        }
    }

    #[test]
    fn a_start_takes_few_steps() {
        for seed in 0..5 {
            let mut graph = costs(120, seed, 0.0);
            let solved = solve(2.0, 0.01, &mut graph, &mut Vec::new(), &mut Vec::new()).unwrap();
            assert!(solved.steps <= 12, "{solved:?}");
            assert!(graph.contains(&0.0));
        }
    }
}
