//! A net before its first number: shapes, parameters and buffers.

use super::conv::Conv;
use super::layer::Layer;
use super::norm::Extent;
use super::pool::Pool;
use fedkin_numeric::rng::Random;
use std::ops::Range;

/// What is minimised, as a mean over the batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Goal {
    /// Softmax cross-entropy; a target is the number of a class.
    CrossEntropy,
    /// Squared distance of outputs and targets; a record has as many targets as the net has outputs.
    Squared,
}

/// What a stretch of the parameters is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Weights of a convolution or a dense layer.
    Weight,
    /// Its bias.
    Bias,
    /// Scale of a norm.
    Scale,
    /// Shift of a norm.
    Shift,
    /// Mean that batch norm uses outside training.
    RunningMean,
    /// Variance that batch norm uses outside training.
    RunningVariance,
}

impl Role {
    /// Whether gradients, weight decay and proximal terms move it.
    pub fn trained(self) -> bool {
        !matches!(self, Self::RunningMean | Self::RunningVariance)
    }
}

/// A stretch of the parameters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    /// Which layer it belongs to, from 0.
    pub layer: usize,
    /// What it is.
    pub role: Role,
    /// Where it lies.
    pub range: Range<usize>,
}

/// What a layer does, with its sizes.
#[derive(Debug, Clone)]
pub(super) enum Work {
    /// The number of the buffer for its padded input, if it pads.
    Conv(Conv, Option<usize>),
    /// Inputs.
    Dense(usize),
    BatchNorm(Extent),
    GroupNorm(usize, Extent),
    MaxPool(Pool),
    Tanh,
    Relu,
}

/// A layer between two buffers.
#[derive(Debug, Clone)]
pub(super) struct Step {
    pub(super) work: Work,
    /// Buffers; the same for a function of one number that works in place.
    pub(super) from: usize,
    pub(super) to: usize,
    /// Where its parameters begin: the four parts of a norm or the two of a linear layer follow each other.
    pub(super) parts: [Range<usize>; 4],
    /// Whether a layer before has parameters, so that the gradient must go on.
    pub(super) inner: bool,
}

/// A sequence of layers from a shape to outputs. Immutable: parameters and scratch are the caller's.
#[derive(Debug, Clone)]
pub struct Net {
    input: [usize; 3],
    outputs: usize,
    goal: Goal,
    layers: Vec<Layer>,
    parts: Vec<Part>,
    length: usize,
    pub(super) steps: Vec<Step>,
    /// Features of each buffer; the first is the input, the last the output.
    pub(super) buffers: Vec<usize>,
}

/// A shape in words, as messages give it.
fn words([channels, height, width]: [usize; 3]) -> String {
    format!("{channels} x {height} x {width}")
}

/// The largest net and the largest input: beyond, a size was mistyped.
const MOST: usize = 1 << 28;

impl Net {
    /// Fits the layers to each other. The input is channels, height and width; records without a shape are
    /// `[columns, 1, 1]`. The message names the layer and both shapes.
    pub fn new(input: [usize; 3], layers: &[Layer], goal: Goal) -> Result<Self, String> {
        let size = |shape: [usize; 3]| {
            shape.iter().try_fold(1usize, |a, &b| a.checked_mul(b).filter(|&n| n <= MOST))
        };
        let Some(features) = size(input).filter(|&n| n > 0) else {
            return Err(format!(
                "input {}: every side must be positive and the whole at most {MOST}",
                words(input)
            ));
        };
        let mut net = Self {
            input,
            outputs: features,
            goal,
            layers: layers.to_vec(),
            parts: Vec::new(),
            length: 0,
            steps: Vec::new(),
            buffers: vec![features],
        };
        let mut shape = input;
        for (at, layer) in layers.iter().enumerate() {
            let named = |rest: String| format!("layer {} (`{layer}`) gets {}: {rest}", at + 1, words(shape));
            let (work, next) = net.work(*layer, shape).map_err(&named)?;
            let lengths = weights(*layer, shape, next);
            let total = lengths.iter().try_fold(net.length, |sum, &(_, n)| sum.checked_add(n));
            if size(next).is_none() || total.is_none_or(|n| n > MOST) {
                return Err(named(format!("its output {} or its parameters are too large", words(next))));
            }
            net.push(at, work, &lengths, next);
            shape = next;
        }
        net.outputs = shape.iter().product();
        if net.parts.is_empty() {
            return Err("a net needs a layer with parameters: conv, dense or a norm".into());
        }
        if goal == Goal::CrossEntropy && net.outputs < 2 {
            return Err(format!(
                "cross-entropy needs at least two outputs, the last layer gives {}",
                words(shape)
            ));
        }
        Ok(net)
    }

    fn work(&mut self, layer: Layer, shape: [usize; 3]) -> Result<(Work, [usize; 3]), String> {
        let [channels, height, width] = shape;
        let extent = Extent { channels, places: height * width };
        Ok(match layer {
            Layer::Conv { channels, size, stride, padding } => {
                if channels == 0 || size == 0 || stride == 0 || padding > MOST || size > MOST {
                    return Err("channels, size and stride must be positive, size and pad below 2^28".into());
                }
                let taller = [shape[0], height + 2 * padding, width + 2 * padding];
                let conv = Conv::new(shape, channels, size, stride, padding).ok_or_else(|| {
                    format!("its kernel {size} x {size} does not fit into {} (with padding)", words(taller))
                })?;
                let output = conv.output;
                let padded = (padding > 0).then(|| {
                    self.buffers.push(conv.padded.iter().product());
                    self.buffers.len() - 1
                });
                (Work::Conv(conv, padded), output)
            }
            Layer::MaxPool { size, stride } => {
                if size == 0 || stride == 0 {
                    return Err("its size and stride must be positive".into());
                }
                let pool = Pool::new(shape, size, stride).ok_or_else(|| {
                    format!("its window {size} x {size} does not fit into {height} x {width}")
                })?;
                let output = pool.output;
                (Work::MaxPool(pool), output)
            }
            Layer::GroupNorm { groups } => {
                if groups == 0 || !channels.is_multiple_of(groups) {
                    return Err(format!("{channels} channels cannot be cut into {groups} equal groups"));
                }
                (Work::GroupNorm(groups, extent), shape)
            }
            Layer::Dense { units } => {
                if units == 0 {
                    return Err("it needs at least one unit".into());
                }
                (Work::Dense(shape.iter().product()), [units, 1, 1])
            }
            Layer::BatchNorm => (Work::BatchNorm(extent), shape),
            Layer::Tanh => (Work::Tanh, shape),
            Layer::Relu => (Work::Relu, shape),
        })
    }

    fn push(&mut self, layer: usize, work: Work, lengths: &[(Role, usize)], next: [usize; 3]) {
        let from = self.steps.last().map_or(0, |step| step.to);
        // Its own output is all that a function of one number needs on the way back. It must not overwrite what the layer
        // before needs: another function its output, a pool the largest numbers.
        let pointwise = matches!(work, Work::Tanh | Work::Relu);
        let free = |step: &Step| !matches!(step.work, Work::Tanh | Work::Relu | Work::MaxPool(_));
        let in_place = pointwise && self.steps.last().is_some_and(free);
        if !in_place {
            self.buffers.push(next.iter().product());
        }
        let mut parts = [0..0, 0..0, 0..0, 0..0];
        let inner = !self.parts.is_empty();
        for (slot, &(role, length)) in parts.iter_mut().zip(lengths) {
            *slot = self.length..self.length + length;
            self.parts.push(Part { layer, role, range: slot.clone() });
            self.length += length;
        }
        let to = if in_place { from } else { self.buffers.len() - 1 };
        self.steps.push(Step { work, from, to, parts, inner });
    }

    /// The nets of the FedPnP paper by name, with their input and layers: `mnist-cnn`, `cifar`, `har-mlp`.
    pub fn preset(name: &str, classes: usize) -> Option<([usize; 3], Vec<Layer>)> {
        let (input, text): ([usize; 3], &[&str]) = match name {
            "mnist-cnn" => (
                [1, 28, 28],
                &[
                    "conv 16 size 8 stride 2 pad 2",
                    "batch-norm",
                    "tanh",
                    "max-pool 2 stride 1",
                    "conv 32 size 4 stride 2",
                    "batch-norm",
                    "tanh",
                    "max-pool 2 stride 1",
                    "dense 32",
                    "batch-norm",
                    "tanh",
                ],
            ),
            "cifar" => (
                [3, 32, 32],
                &[
                    "conv 6 size 5",
                    "batch-norm",
                    "relu",
                    "max-pool 2",
                    "conv 16 size 5",
                    "batch-norm",
                    "relu",
                    "max-pool 2",
                    "dense 120",
                    "batch-norm",
                    "relu",
                    "dense 84",
                    "batch-norm",
                    "relu",
                ],
            ),
            "har-mlp" => ([900, 1, 1], &["dense 400", "batch-norm", "relu"]),
            _ => return None,
        };
        let mut layers: Vec<Layer> = text.iter().filter_map(|text| Layer::parse(text).ok()).collect();
        layers.push(Layer::Dense { units: classes });
        Some((input, layers))
    }

    /// Channels, height and width of a record.
    pub fn input(&self) -> [usize; 3] {
        self.input
    }

    /// Features of a record.
    pub fn features(&self) -> usize {
        self.input.iter().product()
    }

    /// Numbers that come out for a record.
    pub fn outputs(&self) -> usize {
        self.outputs
    }

    /// Numbers that a record's target is: one, or as many as outputs.
    pub fn targets(&self) -> usize {
        match self.goal {
            Goal::CrossEntropy => 1,
            Goal::Squared => self.outputs,
        }
    }

    /// Parameters, running statistics included.
    pub fn length(&self) -> usize {
        self.length
    }

    /// What is minimised.
    pub fn goal(&self) -> Goal {
        self.goal
    }

    /// The layers.
    pub fn layers(&self) -> &[Layer] {
        &self.layers
    }

    /// What the parameters are, in their order.
    pub fn parts(&self) -> &[Part] {
        &self.parts
    }

    /// Whether a record's output in training depends on the other records of its batch.
    pub fn batch_norm(&self) -> bool {
        self.steps.iter().any(|step| matches!(step.work, Work::BatchNorm(_)))
    }

    /// The smallest batch that can be trained on: a batch norm of single numbers needs two records.
    pub fn least_batch(&self) -> usize {
        let single = |step: &Step| matches!(step.work, Work::BatchNorm(Extent { places: 1, .. }));
        if self.steps.iter().any(single) { 2 } else { 1 }
    }

    /// Parameters to start from, by the laws of PyTorch: weights and bias uniform within one over the root of a unit's
    /// inputs; scale and running variance 1, shift and running mean 0.
    pub fn start(&self, rng: &mut impl Random) -> Vec<f32> {
        let mut all = vec![0.0; self.length];
        for step in &self.steps {
            let inputs = match &step.work {
                Work::Conv(conv, _) => conv.taps(),
                Work::Dense(inputs) => *inputs,
                _ => continue,
            };
            let bound = 1.0 / (inputs as f64).sqrt();
            for range in &step.parts {
                all[range.clone()].fill_with(|| rng.between(-bound, bound) as f32);
            }
        }
        for part in &self.parts {
            if matches!(part.role, Role::Scale | Role::RunningVariance) {
                all[part.range.clone()].fill(1.0);
            }
        }
        all
    }
}

/// The parts of a layer's parameters and their lengths.
fn weights(
    layer: Layer,
    [channels, height, width]: [usize; 3],
    [outputs, ..]: [usize; 3],
) -> Vec<(Role, usize)> {
    match layer {
        Layer::Conv { size, .. } => {
            let taps = channels.saturating_mul(size).saturating_mul(size);
            vec![(Role::Weight, outputs.saturating_mul(taps)), (Role::Bias, outputs)]
        }
        Layer::Dense { .. } => {
            vec![(Role::Weight, outputs.saturating_mul(channels * height * width)), (Role::Bias, outputs)]
        }
        Layer::BatchNorm => vec![
            (Role::Scale, channels),
            (Role::Shift, channels),
            (Role::RunningMean, channels),
            (Role::RunningVariance, channels),
        ],
        Layer::GroupNorm { .. } => vec![(Role::Scale, channels), (Role::Shift, channels)],
        Layer::MaxPool { .. } | Layer::Tanh | Layer::Relu => Vec::new(),
    }
}
