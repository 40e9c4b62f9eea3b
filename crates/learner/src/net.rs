//! Neural nets, trained by kernels of our own in single precision.

use super::{Abilities, Failure, Family, Learner, Output, Precision, Pull, Role, Terms};
use crate::Dataset;
use crate::model::neural::{self, Descent, Goal, Narrow, NetScratch};
use crate::model::{NetModel, Unsolved, loss_of_outputs};
use fedkin_numeric::buffers::Buffers;
use fedkin_numeric::rng::PublicRng;
use std::ops::Range;
use std::sync::Arc;

/// A neural net.
#[derive(Debug, Clone, PartialEq)]
pub struct NetFamily {
    model: NetModel,
}

impl NetFamily {
    /// This net as a family.
    pub fn new(model: NetModel) -> Self {
        Self { model }
    }

    /// The net.
    pub fn model(&self) -> &NetModel {
        &self.model
    }
}

/// What a net without batch norm can do.
pub(super) const HAS: Abilities = Abilities::PARAMETERS
    .and(Abilities::VALUE)
    .and(Abilities::BATCHES)
    .and(Abilities::DESCEND)
    .and(Abilities::RECORDS)
    .and(Abilities::PREDICT);

impl Family for NetFamily {
    fn name(&self) -> &'static str {
        "net"
    }

    fn has(&self) -> Abilities {
        if self.model.net().batch_norm() { HAS.without(Abilities::RECORDS) } else { HAS }
    }

    fn output(&self) -> Output {
        if self.model.classifies() { Output::Classes(self.model.outputs()) } else { Output::Number }
    }

    fn dimension(&self, _: usize) -> usize {
        self.model.net().length()
    }

    fn takes(&self, columns: usize) -> Result<(), String> {
        if self.model.columns() == columns {
            return Ok(());
        }
        let [channels, height, width] = self.model.net().input();
        Err(format!(
            "the net takes records of {} numbers ({channels} x {height} x {width}), but the data have {columns} columns: \
             set `model.input` to their shape",
            self.model.columns()
        ))
    }

    fn precision(&self) -> Precision {
        Precision::Single
    }

    fn groups(&self) -> Vec<(Role, Range<usize>)> {
        let role = |part: &neural::Part| match part.role {
            neural::Role::RunningMean | neural::Role::RunningVariance => Some(Role::Statistics),
            neural::Role::Scale | neural::Role::Shift => Some(Role::Norm),
            _ => None,
        };
        let parts = self.model.net().parts();
        parts.iter().filter_map(|part| Some((role(part)?, part.range.clone()))).collect()
    }

    fn start(&self, _: usize, rng: &mut PublicRng) -> Vec<f64> {
        self.model.start(rng)
    }

    fn round(&self, w: &mut [f64]) {
        for value in w {
            *value = f64::from(*value as f32);
        }
    }

    fn prefers_batches(&self) -> bool {
        true
    }

    fn least_batch(&self) -> usize {
        self.model.net().least_batch()
    }

    fn why_not(&self, ability: Abilities) -> Option<&'static str> {
        if ability.contain(Abilities::RECORDS) && self.model.net().batch_norm() {
            return Some(
                "batch norm mixes the records of a batch, so no record's gradient can be clipped on its own: put \
                 \"group-norm\" in its place in `model.layers`",
            );
        }
        let exact = Abilities::PROX.and(Abilities::MINIMISE).and(Abilities::FIT).and(Abilities::GRADIENT);
        (!exact.without(ability).contain(exact)).then_some("a net is trained step by step over mini-batches")
    }

    fn join(&self, data: &Arc<Dataset>, _: Terms) -> Result<Box<dyn Learner>, Unsolved> {
        let (model, narrow) = (self.model.clone(), Narrow::of(data));
        Ok(Box::new(NetLearner { model, data: Arc::clone(data), narrow }))
    }

    fn predict(&self, w: &[f64], data: &Dataset, each: &mut dyn FnMut(usize, &[f64])) {
        if w.len() != self.model.net().length() || data.columns() != self.model.columns() {
            return;
        }
        let mut p = Vec::with_capacity(self.model.outputs());
        self.model.outputs_of(data, w, |i, z| {
            if self.model.classifies() {
                super::probabilities_of_outputs(z, &mut p);
            } else {
                p.clear();
                p.extend(z.iter().map(|z| f64::from(*z)));
            }
            each(i, &p);
        });
    }

    fn mean_loss(&self, w: &[f64], data: &Dataset) -> f64 {
        let goal: Goal = self.model.net().goal();
        let mut sum = 0.0;
        self.model.outputs_of(data, w, |i, z| sum += loss_of_outputs(goal, z, data.targets()[i]));
        sum / data.rows() as f64
    }
}

/// One client's records, as they came and in single precision.
struct NetLearner {
    model: NetModel,
    data: Arc<Dataset>,
    narrow: Narrow,
}

impl Learner for NetLearner {
    fn rows(&self) -> usize {
        self.data.rows()
    }

    fn dimension(&self) -> usize {
        self.model.net().length()
    }

    /// In evaluation mode.
    fn loss(&self, w: &[f64], _: &mut Buffers) -> Result<f64, Failure> {
        Ok(self.model.objective(&self.data, w))
    }

    fn batch_gradient(
        &self,
        rows: &[u32],
        w: &mut [f64],
        out: &mut [f64],
        buffers: &mut Buffers,
    ) -> Result<f64, Failure> {
        out.fill(0.0);
        Ok(self.model.batch_gradient(&self.narrow, rows, w, out, buffers.of::<NetScratch>()))
    }

    fn record_gradient(
        &self,
        row: usize,
        w: &[f64],
        out: &mut [f64],
        buffers: &mut Buffers,
    ) -> Result<(), Failure> {
        let (x, y) = (self.data.row(row), self.data.targets()[row]);
        self.model.add_gradient(x, y, w, out, buffers.of::<NetScratch>());
        Ok(())
    }

    fn descend(
        &self,
        w: &mut [f64],
        descent: &Descent,
        pull: Option<Pull<'_>>,
        shuffle: &mut dyn FnMut(&mut [u32]),
        buffers: &mut Buffers,
    ) -> Result<f64, Failure> {
        let pull = pull.map(|pull| (pull.centre, pull.weight));
        let trained = self.model.train(&self.narrow, descent, pull, shuffle, w, buffers.of::<NetScratch>());
        trained.map_err(|_| Failure::Diverged)
    }
}
