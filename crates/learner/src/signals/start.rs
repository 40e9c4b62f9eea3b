//! Where Newton's method for a client's block begins when nothing is known.

use super::pairs::lanes;

/// Pairs looked at for a start.
const SAMPLE: usize = 2048;

/// One y for all nodes, as if all had the same distances: `(d - 1) mean of max(0, 2 y - c) = alpha h / y`, with the mean
/// over some of the pairs.
pub(super) fn start(alpha: f64, curvature: f64, nodes: usize, c: &[f64], dual: &mut Vec<f64>) {
    // Steps of an irrational share of all pairs fall evenly on any number of them.
    let step = (0.618_033_988_749_895 * c.len() as f64) as usize | 1;
    let mut sample = Vec::with_capacity(SAMPLE);
    if c.len() <= SAMPLE {
        sample.extend_from_slice(c);
    } else {
        let mut at = 0;
        for _ in 0..SAMPLE {
            sample.push(c[at]);
            at = (at + step) % c.len();
        }
    }
    let most = sample.iter().fold(0.0f64, |most, c| most.max(*c));
    let others = (nodes - 1) as f64;
    let level = alpha * curvature / others;
    let (mut low, mut high) = (0.0, 0.25 * (most + (most * most + 8.0 * level).sqrt()));
    for _ in 0..20 {
        let y = 0.5 * (low + high);
        let mean = lane_sum(&sample, |c| if 2.0 * y > c { 2.0 * y - c } else { 0.0 }) / sample.len() as f64;
        if mean * y > level {
            high = y;
        } else {
            low = y;
        }
    }
    dual.clear();
    dual.resize(nodes, high);
}

/// A node that has no edge with these multipliers is given one to its nearest: `(y + high - c) y = alpha h`.
pub(super) fn lift(
    alpha: f64,
    curvature: f64,
    c: &[f64],
    count: &[f64],
    least: &mut [f64],
    dual: &mut [f64],
) {
    least.fill(f64::INFINITY);
    nearest(c, least);
    for ((y, least), count) in dual.iter_mut().zip(least).zip(count) {
        if *count == 0.0 {
            let gap = *least - *y;
            *y = 0.5 * (gap + (gap * gap + 4.0 * alpha * curvature).sqrt());
        }
    }
}

/// The least c of every node.
fn nearest(c: &[f64], least: &mut [f64]) {
    let lower = |a: f64, b: f64| if a < b { a } else { b };
    let mut rest = c;
    for node in 0..least.len() {
        let (here, least) = least[node..].split_at_mut(1);
        let (row, below) = rest.split_at(least.len());
        rest = below;
        let ((row, row_rest), (least, least_rest)) = (row.as_chunks::<8>(), least.as_chunks_mut::<8>());
        let mut own = [here[0]; 8];
        for (row, least) in row.iter().zip(least) {
            for lane in 0..8 {
                own[lane] = lower(row[lane], own[lane]);
                least[lane] = lower(row[lane], least[lane]);
            }
        }
        let mut own = own.into_iter().fold(f64::INFINITY, lower);
        for (c, least) in row_rest.iter().zip(least_rest) {
            own = lower(*c, own);
            *least = lower(*c, *least);
        }
        here[0] = own;
    }
}

/// The sum of a term over values, in eight lanes.
fn lane_sum(values: &[f64], term: impl Fn(f64) -> f64) -> f64 {
    let (whole, rest) = values.as_chunks::<8>();
    let mut sum = [0.0; 8];
    for values in whole {
        for lane in 0..8 {
            sum[lane] += term(values[lane]);
        }
    }
    rest.iter().fold(lanes(sum), |sum, value| sum + term(*value))
}
