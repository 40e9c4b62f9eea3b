//! Nets in 64 bits as a textbook writes them: one number at a time, no layout, no way back.

use super::super::{Goal, Layer, Net};

type Shape = [usize; 3];

/// Outputs by records, in training or in evaluation mode.
pub(super) fn outputs(net: &Net, w: &[f64], x: &[f64], rows: usize, training: bool) -> Vec<Vec<f64>> {
    let features = net.features();
    let mut all: Vec<Vec<f64>> = (0..rows).map(|r| x[r * features..(r + 1) * features].to_vec()).collect();
    let mut shape = net.input();
    let mut w = w;
    let mut take = |count: usize| {
        let (head, tail) = w.split_at(count);
        w = tail;
        head
    };
    for layer in net.layers() {
        let [channels, height, width] = shape;
        let places = height * width;
        match *layer {
            Layer::Conv { channels: outputs, size, stride, padding } => {
                let weights = take(outputs * channels * size * size);
                let bias = take(outputs);
                let side = |length: usize| (length + 2 * padding - size) / stride + 1;
                let next = [outputs, side(height), side(width)];
                for record in &mut all {
                    *record = conv(record, shape, next, (weights, bias), (size, stride, padding));
                }
                shape = next;
            }
            Layer::Dense { units } => {
                let inputs = channels * places;
                let (weights, bias) = (take(units * inputs), take(units));
                for record in &mut all {
                    let unit = |u: usize| -> f64 {
                        let row = &weights[u * inputs..(u + 1) * inputs];
                        bias[u] + row.iter().zip(&*record).map(|(w, x)| w * x).sum::<f64>()
                    };
                    *record = (0..units).map(unit).collect();
                }
                shape = [units, 1, 1];
            }
            Layer::BatchNorm => {
                let (scale, shift) = (take(channels), take(channels));
                let (mean, variance) = (take(channels), take(channels));
                for c in 0..channels {
                    let range = c * places..(c + 1) * places;
                    let (m, v) = if training {
                        moments(all.iter().flat_map(|record| &record[range.clone()]))
                    } else {
                        (mean[c], variance[c])
                    };
                    for x in all.iter_mut().flat_map(|record| &mut record[range.clone()]) {
                        *x = scale[c] * (*x - m) / (v + 1e-5).sqrt() + shift[c];
                    }
                }
            }
            Layer::GroupNorm { groups } => {
                let (scale, shift) = (take(channels), take(channels));
                let length = channels * places / groups;
                for record in &mut all {
                    for g in 0..groups {
                        let (m, v) = moments(record[g * length..(g + 1) * length].iter());
                        for i in g * length..(g + 1) * length {
                            record[i] =
                                scale[i / places] * (record[i] - m) / (v + 1e-5).sqrt() + shift[i / places];
                        }
                    }
                }
            }
            Layer::MaxPool { size, stride } => {
                let next = [channels, (height - size) / stride + 1, (width - size) / stride + 1];
                for record in &mut all {
                    let mut out = Vec::new();
                    for c in 0..channels {
                        for y in 0..next[1] {
                            for x in 0..next[2] {
                                let at = |i: usize| {
                                    (c * height + y * stride + i / size) * width + x * stride + i % size
                                };
                                let window = (0..size * size).map(|i| record[at(i)]);
                                out.push(window.fold(f64::NEG_INFINITY, f64::max));
                            }
                        }
                    }
                    *record = out;
                }
                shape = next;
            }
            Layer::Tanh => all.iter_mut().flatten().for_each(|x| *x = libm::tanh(*x)),
            Layer::Relu => all.iter_mut().flatten().for_each(|x| *x = x.max(0.0)),
        }
    }
    all
}

fn moments<'a>(values: impl Iterator<Item = &'a f64> + Clone) -> (f64, f64) {
    let count = values.clone().count() as f64;
    let mean = values.clone().sum::<f64>() / count;
    (mean, values.map(|x| (x - mean) * (x - mean)).sum::<f64>() / count)
}

fn conv(
    x: &[f64],
    [channels, height, width]: Shape,
    [outputs, rows, columns]: Shape,
    (weights, bias): (&[f64], &[f64]),
    (size, stride, padding): (usize, usize, usize),
) -> Vec<f64> {
    let mut out = Vec::new();
    for o in 0..outputs {
        for row in 0..rows {
            for column in 0..columns {
                let mut sum = bias[o];
                for c in 0..channels {
                    for u in 0..size {
                        for v in 0..size {
                            let (y, z) = (row * stride + u, column * stride + v);
                            let inside = |at: usize, length: usize| at >= padding && at < length + padding;
                            if inside(y, height) && inside(z, width) {
                                sum += weights[((o * channels + c) * size + u) * size + v]
                                    * x[(c * height + y - padding) * width + z - padding];
                            }
                        }
                    }
                }
                out.push(sum);
            }
        }
    }
    out
}

/// Mean loss in training mode.
pub(super) fn loss(net: &Net, w: &[f64], x: &[f64], y: &[f32]) -> f64 {
    let rows = x.len() / net.features();
    let outputs = outputs(net, w, x, rows, true);
    let each = y.chunks_exact(net.targets());
    let sum: f64 = outputs
        .iter()
        .zip(each)
        .map(|(z, y)| match net.goal() {
            Goal::CrossEntropy => {
                let total: f64 = z.iter().map(|z| libm::exp(*z)).sum();
                libm::log(total) - z[y[0] as usize]
            }
            Goal::Squared => z.iter().zip(y).map(|(z, y)| (z - f64::from(*y)) * (z - f64::from(*y))).sum(),
        })
        .sum();
    sum / rows as f64
}
