//! Dense layers: three matrix products on blocks of records.

use super::lanes::{self, HALF, LANES, Lanes, ROWS, by_rows, fused};

/// `out = weights x + bias` for all blocks. A tile of weights is read once and stays in the first-level cache.
pub(super) fn forward(weights: &[f32], bias: &[f32], inputs: usize, x: &[Lanes], out: &mut [Lanes]) {
    for (first, rows) in lanes::tiles(bias.len(), ROWS) {
        let tile = &weights[first * inputs..(first + rows) * inputs];
        by_rows!(rows, forward_tile(tile, &bias[first..], (first, bias.len()), x, out));
    }
}

fn forward_tile<const M: usize>(
    weights: &[f32],
    bias: &[f32],
    (first, units): (usize, usize),
    x: &[Lanes],
    out: &mut [Lanes],
) {
    let inputs = weights.len() / M;
    let rows: [&[f32]; M] = std::array::from_fn(|m| &weights[m * inputs..(m + 1) * inputs]);
    for (x, out) in x.chunks_exact(inputs).zip(out.chunks_exact_mut(units)) {
        let mut sums: [[f32; LANES]; M] = std::array::from_fn(|m| [bias[m]; LANES]);
        for (k, x) in x.iter().enumerate() {
            lanes::grow(&mut sums, &std::array::from_fn(|m| rows[m][k]), &x.0);
        }
        for (out, sum) in out[first..].iter_mut().zip(sums) {
            out.0 = sum;
        }
    }
}

/// Gradient at the output to gradient at the input, all blocks.
pub(super) fn back(weights: &[f32], inputs: usize, g: &[Lanes], out: &mut [Lanes]) {
    for (first, rows) in lanes::tiles(inputs, ROWS) {
        by_rows!(rows, back_tile(weights, (first, inputs), g, out));
    }
}

fn back_tile<const M: usize>(
    weights: &[f32],
    (first, inputs): (usize, usize),
    g: &[Lanes],
    out: &mut [Lanes],
) {
    let units = weights.len() / inputs;
    for (g, out) in g.chunks_exact(units).zip(out.chunks_exact_mut(inputs)) {
        let mut sums = [[0.0; LANES]; M];
        for (row, g) in weights.chunks_exact(inputs).zip(g) {
            if let Some(weights) = row[first..].first_chunk::<M>() {
                lanes::grow(&mut sums, weights, &g.0);
            }
        }
        for (out, sum) in out[first..].iter_mut().zip(sums) {
            out.0 = sum;
        }
    }
}

/// Gradients of weights and bias over all blocks. Lanes run over sixteen inputs at a time and the sum runs over records:
/// `panel` holds sixteen inputs of all of them.
pub(super) fn slope(
    x: &[Lanes],
    g: &[Lanes],
    (weights, bias): (&mut [f32], &mut [f32]),
    panel: &mut [Lanes],
) {
    let units = bias.len();
    let inputs = weights.len() / units;
    for (group, bias) in bias.chunks_mut(HALF).enumerate() {
        let mut sums = [Lanes::ZERO; HALF];
        for g in g.chunks_exact(units) {
            for (sum, g) in sums.iter_mut().zip(&g[group * HALF..]) {
                *sum = Lanes::of(|i| sum.0[i] + g.0[i]);
            }
        }
        bias.copy_from_slice(&lanes::sums(&sums)[..bias.len()]);
    }
    for first in (0..inputs).step_by(LANES) {
        let width = LANES.min(inputs - first);
        for (x, panel) in x.chunks_exact(inputs).zip(panel.as_chunks_mut().0) {
            by_records(&x[first..first + width], panel);
        }
        for (unit, rows) in lanes::tiles(units, ROWS) {
            let out = &mut weights[unit * inputs..(unit + rows) * inputs];
            by_rows!(rows, slope_tile(&*panel, g, (unit, units), (first, width), out));
        }
    }
}

/// Features by records into records by features; what is missing of sixteen features is zero.
fn by_records(features: &[Lanes], records: &mut [Lanes; LANES]) {
    if let Some(features) = features.first_chunk::<LANES>() {
        lanes::turn(features, records);
    } else {
        for (i, record) in records.iter_mut().enumerate() {
            *record = Lanes::of(|f| features.get(f).map_or(0.0, |lanes| lanes.0[i]));
        }
    }
}

fn slope_tile<const M: usize>(
    panel: &[Lanes],
    g: &[Lanes],
    (unit, units): (usize, usize),
    (first, width): (usize, usize),
    out: &mut [f32],
) {
    let sums = slope_sums::<M>(panel, g, (unit, units));
    let inputs = out.len() / M;
    for (row, sum) in out.chunks_exact_mut(inputs).zip(sums) {
        // A copy of known length is two moves, one of unknown length a call.
        match row[first..].first_chunk_mut::<LANES>() {
            Some(row) => *row = sum,
            None => row[first..].copy_from_slice(&sum[..width]),
        }
    }
}

#[inline(never)]
fn slope_sums<const M: usize>(
    panel: &[Lanes],
    g: &[Lanes],
    (unit, units): (usize, usize),
) -> [[f32; LANES]; M] {
    let mut sums = [[0.0; LANES]; M];
    for (g, records) in g.chunks_exact(units).zip(panel.as_chunks::<LANES>().0) {
        if let Some(g) = g[unit..].first_chunk::<M>() {
            for (i, record) in records.iter().enumerate() {
                lanes::grow(&mut sums, &std::array::from_fn(|m| g[m].0[i]), &record.0);
            }
        }
    }
    sums
}

/// One block: adds the squared norm of each record's gradient, which is a product of two vectors and a bias.
pub(super) fn squares(x: &[Lanes], g: &[Lanes], out: &mut Lanes) {
    let norm = |values: &[Lanes]| {
        values.iter().fold(Lanes::ZERO, |sum, x| Lanes::of(|i| fused(x.0[i], x.0[i], sum.0[i])))
    };
    let (x, g) = (norm(x), norm(g));
    *out = Lanes::of(|i| fused(g.0[i], x.0[i] + 1.0, out.0[i]));
}
