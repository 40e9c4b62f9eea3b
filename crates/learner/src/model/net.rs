//! A neural net as the model of a run: the kernel of [`neural`](super::neural) behind vectors of f64.
//!
//! Everywhere else a model is a vector of f64. The parameters of a net are f32 numbers kept in one, so nothing is lost on
//! the way in or out; a mean or a filter of such models is rounded to f32 again before anybody is served with it.

use super::neural::{Descent, Diverged, Goal, Layer, Narrow, Net, NetScratch, Pull, Role, train};
use super::settings::{self, NetLoss};
use crate::Dataset;
use fedkin_numeric::rng::Random;
use fedkin_settings::suggest;
use std::ops::Range;
use std::sync::Arc;

/// Records that are looked at together where no batch is asked for.
const TOGETHER: usize = 128;
/// Names of nets that need no description.
pub const NETS: &[&str] = &["mnist-cnn", "cifar", "har-mlp"];

/// A net.
#[derive(Debug, Clone)]
pub struct NetModel {
    net: Arc<Net>,
}

impl PartialEq for NetModel {
    fn eq(&self, other: &Self) -> bool {
        let (a, b) = (&self.net, &other.net);
        (a.input(), a.goal(), a.layers()) == (b.input(), b.goal(), b.layers())
    }
}

impl NetModel {
    /// This net.
    pub fn new(net: Net) -> Self {
        Self { net: Arc::new(net) }
    }

    /// From the keys of its kind; `classes` and `shape` are what the data say of themselves.
    pub fn of(
        keys: &settings::Net,
        classes: Option<usize>,
        shape: Option<[usize; 3]>,
    ) -> Result<Self, String> {
        let goal = match keys.loss {
            NetLoss::Squared => Goal::Squared,
            NetLoss::CrossEntropy => Goal::CrossEntropy,
        };
        let outputs = match goal {
            Goal::Squared => 1,
            Goal::CrossEntropy => keys.classes.or(classes).ok_or(
                "kind = \"net\" with cross-entropy needs `model.classes`: how many classes there are; their labels go \
                 from 0 to one less",
            )?,
        };
        let given = given_shape(&keys.input)?;
        let (input, layers) = match (keys.net.as_deref(), keys.layers.as_slice()) {
            (Some(_), [_, ..]) => {
                return Err("`net` names a whole net and `layers` describes one: keep one of the two".into());
            }
            (Some(name), []) => {
                let unknown = || format!("unknown net {name:?}{}", suggest(name, NETS.iter().copied()));
                let (input, layers) = Net::preset(name, outputs).ok_or_else(unknown)?;
                (given.unwrap_or(input), layers)
            }
            (None, words @ [_, ..]) => {
                let input = given.or(shape).ok_or(
                    "kind = \"net\" needs `model.input`, the shape of a record as [channels, height, width]: the data \
                     source does not know it (records without a shape are [columns, 1, 1])",
                )?;
                let mut layers = Vec::with_capacity(words.len());
                for (number, word) in words.iter().enumerate() {
                    layers
                        .push(Layer::parse(word).map_err(|wrong| format!("layer {}: {wrong}", number + 1))?);
                }
                (input, layers)
            }
            (None, []) => {
                return Err(format!(
                    "kind = \"net\" needs `model.net` (one of {}) or `model.layers`, a list such as [\"dense 32\", \
                     \"relu\", \"dense 10\"]",
                    NETS.join(", ")
                ));
            }
        };
        let net = Net::new(input, &layers, goal)?;
        if net.outputs() != outputs {
            return Err(format!(
                "the last layer gives {} numbers, but {} are needed: {}",
                net.outputs(),
                outputs,
                if goal == Goal::Squared { "one for the target" } else { "one for each class" }
            ));
        }
        Ok(Self::new(net))
    }

    /// The net itself.
    pub fn net(&self) -> &Net {
        &self.net
    }

    /// The number of columns of a record.
    pub fn columns(&self) -> usize {
        self.net.input().iter().product()
    }

    /// How many classes it tells apart; 1 where it predicts a number.
    pub fn outputs(&self) -> usize {
        self.net.outputs()
    }

    /// Whether it predicts classes.
    pub fn classifies(&self) -> bool {
        self.net.goal() == Goal::CrossEntropy
    }

    /// First parameters.
    pub fn start(&self, rng: &mut impl Random) -> Vec<f64> {
        widen(&self.net.start(rng))
    }

    /// The coordinates with one of these roles.
    pub fn ranges(&self, roles: &[Role]) -> Vec<Range<usize>> {
        self.net
            .parts()
            .iter()
            .filter(|part| roles.contains(&part.role))
            .map(|part| part.range.clone())
            .collect()
    }

    /// The mean loss of a model on records, in evaluation mode.
    pub fn objective(&self, data: &Dataset, w: &[f64]) -> f64 {
        let mut sum = 0.0;
        self.outputs_of(data, w, |i, z| sum += loss(self.net.goal(), z, data.targets()[i]));
        sum / data.rows() as f64
    }

    /// The outputs of a model for every record, in evaluation mode.
    pub fn outputs_of(&self, data: &Dataset, w: &[f64], mut each: impl FnMut(usize, &[f32])) {
        let w = narrow(w);
        let outputs = self.net.outputs();
        let mut x = Vec::with_capacity(TOGETHER * data.columns());
        let mut z = vec![0.0; TOGETHER * outputs];
        let mut bench = self.net.bench(TOGETHER.min(data.rows()));
        for first in (0..data.rows()).step_by(TOGETHER) {
            let rows = TOGETHER.min(data.rows() - first);
            x.clear();
            for i in first..first + rows {
                x.extend(data.row(i).iter().map(|value| *value as f32));
            }
            self.net.predict(&mut bench, &w, &x, &mut z[..rows * outputs]);
            for (i, z) in z[..rows * outputs].chunks_exact(outputs).enumerate() {
                each(first + i, z);
            }
        }
    }

    /// The gradient of the mean loss over some records in training mode; running statistics of w move along. Returns the loss.
    pub fn batch_gradient(
        &self,
        records: &Narrow,
        rows: &[u32],
        w: &mut [f64],
        out: &mut [f64],
        bench: &mut NetScratch,
    ) -> f64 {
        let (mut narrowed, mut gradient) = (narrow(w), vec![0.0; w.len()]);
        let (mut x, mut y) =
            (Vec::with_capacity(rows.len() * records.columns), Vec::with_capacity(rows.len()));
        for &row in rows {
            let at = row as usize;
            x.extend_from_slice(&records.features[at * records.columns..(at + 1) * records.columns]);
            y.push(records.targets[at]);
        }
        let loss = self.net.gradient(bench, &mut narrowed, &x, &y, &mut gradient);
        for (wide, value) in w.iter_mut().zip(&narrowed) {
            *wide = f64::from(*value);
        }
        for (wide, value) in out.iter_mut().zip(&gradient) {
            *wide = f64::from(*value);
        }
        f64::from(loss)
    }

    /// Adds the gradient of one record's loss; for nets without batch norm.
    pub fn add_gradient(&self, row: &[f64], y: f64, w: &[f64], out: &mut [f64], bench: &mut NetScratch) {
        let (w, row, mut gradient) = (narrow(w), narrow(row), vec![0.0; out.len()]);
        let done = self.net.record_gradient(bench, &w, &row, &[y as f32], &mut gradient);
        if done.is_err() {
            // Batch norm is refused before anything runs; were it not, the answer would be turned away.
            gradient.fill(f32::NAN);
        }
        for (out, gradient) in out.iter_mut().zip(&gradient) {
            *out += f64::from(*gradient);
        }
    }

    /// Mini-batch descent from w, in place; returns the mean loss of the last epoch.
    pub fn train(
        &self,
        records: &Narrow,
        descent: &Descent,
        pull: Option<(&[f64], f64)>,
        shuffle: &mut dyn FnMut(&mut [u32]),
        w: &mut [f64],
        bench: &mut NetScratch,
    ) -> Result<f64, Diverged> {
        let mut narrowed = narrow(w);
        let centre = pull.map(|(centre, strength)| (narrow(centre), strength));
        let pull = centre.as_ref().map(|(centre, strength)| Pull { centre, strength: *strength });
        let loss = train(&self.net, bench, records, descent, pull, shuffle, &mut narrowed)?;
        for (wide, value) in w.iter_mut().zip(&narrowed) {
            *wide = f64::from(*value);
        }
        Ok(f64::from(loss))
    }
}

/// The loss of one record from a net's outputs.
pub fn loss(goal: Goal, z: &[f32], y: f64) -> f64 {
    match goal {
        Goal::Squared => z.first().map_or(0.0, |z| (f64::from(*z) - y) * (f64::from(*z) - y)),
        Goal::CrossEntropy => {
            let most = z.iter().copied().fold(f32::NEG_INFINITY, f32::max);
            let sum: f64 = z.iter().map(|z| fedkin_numeric::exp(f64::from(z - most))).sum();
            let own = z.get(y as usize).copied().unwrap_or(f32::NAN);
            fedkin_numeric::ln(sum) - f64::from(own - most)
        }
    }
}

fn narrow(values: &[f64]) -> Vec<f32> {
    values.iter().map(|value| *value as f32).collect()
}

fn widen(values: &[f32]) -> Vec<f64> {
    values.iter().map(|value| f64::from(*value)).collect()
}

/// `model.input`.
fn given_shape(sizes: &[usize]) -> Result<Option<[usize; 3]>, String> {
    match sizes {
        [] => Ok(None),
        [channels, height, width] => Ok(Some([*channels, *height, *width])),
        _ => Err("`input` is [channels, height, width]: three whole numbers above 0".into()),
    }
}
