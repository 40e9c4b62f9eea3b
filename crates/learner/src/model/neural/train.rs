//! Epochs of gradient steps on the records of one client.

use super::lanes::Rows;
use super::net::{Goal, Net};
use super::scratch::NetScratch;
use crate::Dataset;
use std::ops::Range;
use thiserror::Error;

/// Records in 32 bits.
#[derive(Debug, Clone, PartialEq)]
pub struct Narrow {
    /// Features of a record.
    pub columns: usize,
    /// Features by rows.
    pub features: Vec<f32>,
    /// Targets, one after the other.
    pub targets: Vec<f32>,
}

impl Narrow {
    /// The records of a client, rounded.
    pub fn of(data: &Dataset) -> Self {
        let narrow = |values: &[f64]| values.iter().map(|&x| x as f32).collect();
        Self { columns: data.columns(), features: narrow(data.features()), targets: narrow(data.targets()) }
    }

    /// Number of records.
    pub fn rows(&self) -> usize {
        self.features.len() / self.columns.max(1)
    }

    /// Whether a net can be trained on these records; the message says what does not fit.
    pub fn fits(&self, net: &Net) -> Result<(), String> {
        let (rows, [channels, height, width]) = (self.rows(), net.input());
        if self.columns != net.features() || self.features.len() != rows * self.columns {
            return Err(format!(
                "records have {} features, the net takes {channels} x {height} x {width} = {}",
                self.columns,
                net.features()
            ));
        }
        if self.targets.len() != rows * net.targets() {
            return Err(format!(
                "{} targets for {rows} records: the net's loss needs {} for each",
                self.targets.len(),
                net.targets()
            ));
        }
        if rows < net.least_batch() {
            return Err(format!(
                "{rows} records: batch norm needs at least {} in a batch",
                net.least_batch()
            ));
        }
        let strange = |y: &&f32| y.fract() != 0.0 || **y < 0.0 || **y >= net.outputs() as f32;
        match self.targets.iter().find(strange) {
            Some(y) if net.goal() == Goal::CrossEntropy => Err(format!(
                "target {y} is not a class of 0 to {}: the net has that many outputs",
                net.outputs() - 1
            )),
            _ => Ok(()),
        }
    }
}

/// How a client trains.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Descent {
    /// Passes over the records.
    pub epochs: u32,
    /// Records of a batch.
    pub batch: usize,
    /// Step size.
    pub rate: f64,
    /// How much of the last step is repeated: `v = momentum v + gradient`, `w -= rate v`.
    pub momentum: f64,
    /// Factor of the parameters that joins the gradient.
    pub weight_decay: f64,
}

/// A proximal term `(strength / 2) |w - centre|^2`, running statistics left out.
#[derive(Debug, Clone, Copy)]
pub struct Pull<'a> {
    /// Where it pulls to.
    pub centre: &'a [f32],
    /// How much.
    pub strength: f64,
}

/// A loss or a parameter that is no longer finite.
#[derive(Debug, Clone, Copy, PartialEq, Error)]
#[error("training diverged in epoch {epoch}, batch {batch} (loss {loss}): lower the learning rate")]
pub struct Diverged {
    /// From 1.
    pub epoch: u32,
    /// From 1, within the epoch.
    pub batch: usize,
    /// The loss there.
    pub loss: f32,
}

/// The records of batch `number`, or none. A rest too small for batch norm joins the batch before.
fn range(number: usize, batch: usize, rows: usize, least: usize) -> Option<Range<usize>> {
    let (from, to) = (number * batch, (number + 1) * batch);
    if from >= rows || (from > 0 && rows - from < least) {
        None
    } else if to >= rows || rows - to < least {
        Some(from..rows)
    } else {
        Some(from..to)
    }
}

/// Epochs of mini-batches in the order that `shuffle` gives: it is called once an epoch with the numbers of the records
/// as the epoch before left them. Gives the mean loss over the records of the last epoch, each in training mode before its
/// step. A last batch too small for batch norm joins the one before. Records must fit the net ([`Narrow::fits`]).
pub fn train(
    net: &Net,
    bench: &mut NetScratch,
    records: &Narrow,
    descent: &Descent,
    pull: Option<Pull<'_>>,
    shuffle: &mut dyn FnMut(&mut [u32]),
    w: &mut [f32],
) -> Result<f32, Diverged> {
    let (rows, each) = (records.rows(), net.targets());
    let least = net.least_batch();
    let batch = descent.batch.clamp(least.min(rows.max(1)), rows.max(1));
    bench.fit(net, (batch + least - 1).min(rows));
    let take = |buffer: &mut Vec<f32>| std::mem::take(buffer);
    let (mut targets, mut gradient) = (take(&mut bench.targets), take(&mut bench.gradient));
    let mut velocity = take(&mut bench.velocity);
    gradient.resize(net.length(), 0.0);
    velocity.clear();
    if descent.momentum != 0.0 {
        velocity.resize(net.length(), 0.0);
    }
    let mut order: Vec<u32> = (0..rows as u32).collect();
    let mut result = Ok(f32::NAN);
    'all: for epoch in 0..descent.epochs {
        shuffle(&mut order);
        let mut sum = 0.0;
        for number in 0.. {
            let Some(range) = range(number, batch, rows, least) else { break };
            let chosen = &order[range.clone()];
            targets.clear();
            for &i in chosen {
                targets.extend_from_slice(&records.targets[i as usize * each..(i as usize + 1) * each]);
            }
            let chosen = Rows { features: &records.features, columns: records.columns, order: Some(chosen) };
            let loss = net.gradient_of(bench, w, chosen, &targets, &mut gradient);
            sum += f64::from(loss) * range.len() as f64;
            descend(net, descent, pull, &gradient, &mut velocity, w);
            if !loss.is_finite() {
                result = Err(Diverged { epoch: epoch + 1, batch: number + 1, loss });
                break 'all;
            }
            result = Ok((sum / rows as f64) as f32);
        }
        if !finite(w) {
            result = Err(Diverged { epoch: epoch + 1, batch: rows.div_ceil(batch), loss: f32::NAN });
            break;
        }
    }
    (bench.targets, bench.gradient, bench.velocity) = (targets, gradient, velocity);
    result
}

/// Whether all are; some at a time, without a branch for each.
fn finite(w: &[f32]) -> bool {
    w.chunks(64).all(|w| w.iter().fold(true, |all, w| all & w.is_finite()))
}

/// One step: `w -= rate v` with `v` the gradient of loss, decay and pull, and what momentum keeps of the last one.
fn descend(
    net: &Net,
    descent: &Descent,
    pull: Option<Pull<'_>>,
    gradient: &[f32],
    velocity: &mut [f32],
    w: &mut [f32],
) {
    let (rate, momentum, decay) = (descent.rate as f32, descent.momentum as f32, descent.weight_decay as f32);
    for part in net.parts().iter().filter(|part| part.role.trained()) {
        let range = part.range.clone();
        let (w, gradient) = (&mut w[range.clone()], &gradient[range.clone()]);
        let velocity = if velocity.is_empty() { &mut *velocity } else { &mut velocity[range.clone()] };
        let centre = pull.map(|pull| (&pull.centre[range], pull.strength as f32));
        // The plain step has its own loop, which reads nothing twice.
        match (centre, velocity.is_empty()) {
            (None, true) => {
                for (w, g) in w.iter_mut().zip(gradient) {
                    *w -= rate * (g + decay * *w);
                }
            }
            (Some((centre, strength)), true) => {
                for ((w, g), centre) in w.iter_mut().zip(gradient).zip(centre) {
                    *w -= rate * (g + decay * *w + strength * (*w - centre));
                }
            }
            (centre, false) => {
                for (i, ((w, g), v)) in w.iter_mut().zip(gradient).zip(velocity).enumerate() {
                    let pulled = centre.map_or(0.0, |(centre, strength)| strength * (*w - centre[i]));
                    *v = momentum * *v + (g + decay * *w + pulled);
                    *w -= rate * *v;
                }
            }
        }
    }
}
