//! The scratch of one thread: everything a step writes besides parameters and gradients.

use super::lanes::{self, LANES, Lanes};
use super::net::{Net, Work};
use super::norm::Moments;

/// What a layer keeps from its way forward besides its output.
#[derive(Debug, Clone)]
pub(super) enum ForwardState {
    Nothing,
    /// Batch norm, by channel.
    Moments(Vec<Moments>),
    /// Group norm, by block and group: mean and inverse root.
    Groups(Vec<[Lanes; 2]>),
}

/// Room for batches of a net up to some size. It carries nothing from one call to the next; what is there by default grows
/// to the net that is trained with it.
#[derive(Debug, Clone, Default)]
pub struct NetScratch {
    /// Whole blocks of records that fit.
    pub(super) blocks: usize,
    /// Values of each buffer of the net.
    pub(super) values: Vec<Vec<Lanes>>,
    pub(super) kept: Vec<ForwardState>,
    /// Gradients on the way back, from one to the other.
    pub(super) slopes: [Vec<Lanes>; 2],
    /// Weights as the kernels of a layer want them.
    pub(super) pack: Vec<f32>,
    /// Sixteen features of all records.
    pub(super) panel: Vec<Lanes>,
    /// Squared norms of the gradients of single records.
    pub(super) squares: Vec<Lanes>,
    /// What training needs: the targets of a batch, and vectors of the parameters' length.
    pub(super) targets: Vec<f32>,
    pub(super) gradient: Vec<f32>,
    pub(super) velocity: Vec<f32>,
}

impl Net {
    /// Scratch for batches of up to this many records. One more fits, too, so that training can join a last record to
    /// the batch before.
    pub fn bench(&self, batch: usize) -> NetScratch {
        let blocks = lanes::blocks(batch.max(1) + 1);
        let room = |features: usize| vec![Lanes::ZERO; features * blocks];
        let kept = self.steps.iter().map(|step| match &step.work {
            Work::BatchNorm(extent) => ForwardState::Moments(vec![Moments::default(); extent.channels]),
            Work::GroupNorm(groups, _) => ForwardState::Groups(vec![[Lanes::ZERO; 2]; groups * blocks]),
            _ => ForwardState::Nothing,
        });
        let pack = self.steps.iter().map(|step| match &step.work {
            Work::Conv(..) => step.parts[0].len(),
            _ => 0,
        });
        let widest = self.buffers.iter().copied().max().unwrap_or(0);
        NetScratch {
            blocks,
            values: self.buffers.iter().map(|&features| room(features)).collect(),
            kept: kept.collect(),
            slopes: [room(widest), room(widest)],
            pack: vec![0.0; pack.max().unwrap_or(0)],
            panel: room(LANES),
            squares: room(1),
            targets: Vec::new(),
            gradient: Vec::new(),
            velocity: Vec::new(),
        }
    }
}

impl NetScratch {
    /// Records that fit.
    pub fn batch(&self) -> usize {
        self.blocks * LANES
    }

    /// Makes room for a larger batch, if it must.
    pub(super) fn fit(&mut self, net: &Net, records: usize) {
        let made_for = |(values, features): (&Vec<Lanes>, &usize)| values.len() == features * self.blocks;
        let same =
            self.values.len() == net.buffers.len() && self.values.iter().zip(&net.buffers).all(made_for);
        if records > self.batch() || !same {
            *self = net.bench(records);
        }
    }
}
