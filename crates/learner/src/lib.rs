//! What a client fits: the learner, in two halves.
//!
//! - [`Family`] is public: servers and clients know it. It is made from settings and what the data say of themselves, and
//!   says how many parameters a model has, where training begins, what a prediction is.
//! - [`Learner`] is private: it owns a client's records. A family makes one for each client ([`Family::join`]).
//!
//! A family says what its learners can do ([`Family::has`]); a method says what it needs. What a learner does not bring is
//! made from what it has, by the default methods of [`Learner`]: a proximal step from values and gradients, training from
//! gradients. What cannot be made is refused before anything runs, with the names of learners and methods that would do.
//!
//! What a learner returns is plain; only the gate of [`privacy`](fedkin_privacy) lets something out. The same call gives
//! the same bits: randomness is an order of records that is passed in.
//!
//! What the learners are made of: [`model`] (linear models, softmax, nets), [`hypothesis`] (trees, nearest neighbours,
//! forests), [`signals`] (graphs learnt from signals), [`regulariser`] and [`generic`] proximal steps.
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::disallowed_methods))]

mod ability;
mod dataset;
pub mod generic;
mod graph;
mod hypotheses;
pub mod hypothesis;
mod linear;
mod made;
mod metrics;
pub mod model;
mod net;
pub mod proofs;
pub mod registry;
pub mod regulariser;
pub mod signals;
mod softmax;
#[cfg(test)]
mod tests;
mod unsolved;

pub use ability::{Abilities, Known, refusal};
pub use dataset::{Dataset, DatasetError};
pub use generic::{Reached, Unreached};
pub use graph::Graph;
pub use hypotheses::Hypotheses;
pub use linear::Linear;
pub use metrics::{Quality, likeliest, mean_squared_error, probabilities_of_outputs, quality};
pub use net::NetFamily;
pub use registry::{LearnerRow, Learners};
pub use regulariser::{Groups, Regulariser};
pub use softmax::SoftmaxFamily;

use crate::hypothesis::Sample;
use crate::model::neural::Descent;
use crate::signals::Smooth;
use crate::unsolved::Unsolved;
use fedkin_numeric::buffers::Buffers;
use fedkin_numeric::rng::PublicRng;
use fedkin_numeric::{axpy, scale};
use fedkin_privacy::Refusal;
use std::any::Any;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;
use thiserror::Error;

/// What a prediction is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Output {
    /// A number.
    Number,
    /// The probability of label 1; labels are 0 and 1.
    Probability,
    /// A probability for each of so many classes; labels go from 0 to one less.
    Classes(usize),
    /// No prediction of a target: a graph of the columns.
    Graph,
}

impl fmt::Display for Output {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Output::Number => write!(f, "numbers"),
            Output::Probability => write!(f, "labels 0 and 1"),
            Output::Classes(count) => write!(f, "classes from 0 to {}", count - 1),
            Output::Graph => write!(f, "graphs"),
        }
    }
}

impl Output {
    /// Whether a target is one that such predictions are compared with.
    pub fn takes(self, target: f64) -> bool {
        match self {
            Output::Number | Output::Graph => true,
            Output::Probability | Output::Classes(_) => {
                target >= 0.0 && target < self.classes() as f64 && target.fract() == 0.0
            }
        }
    }

    /// How many classes there are; none where a number or a graph is learnt.
    pub fn classes(self) -> usize {
        match self {
            Output::Number | Output::Graph => 0,
            Output::Probability => 2,
            Output::Classes(count) => count,
        }
    }
}

/// What some coordinates of a model are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Scale and shift of batch or group norm.
    Norm,
    /// Running statistics of batch norm: no parameters of the loss.
    Statistics,
}

/// In which precision models are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Precision {
    /// f64.
    Double,
    /// f32, kept in f64: means and mixtures are rounded before anybody is served with them.
    Single,
}

/// What models of two families must have in common to be averaged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Space {
    /// Number of parameters.
    pub parameters: usize,
    /// Their precision.
    pub precision: Precision,
    /// Coordinates with a role.
    pub groups: Vec<(Role, Range<usize>)>,
}

/// A part of the regulariser: this client's is `of / among` of the whole.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Share {
    /// How many parts.
    pub of: f64,
    /// Of how many.
    pub among: f64,
}

impl Share {
    /// One of so many parts.
    pub fn one_of(clients: usize) -> Self {
        Self { of: 1.0, among: clients as f64 }
    }

    /// This share of a whole.
    pub fn times(self, whole: f64) -> f64 {
        whole * self.of / self.among
    }
}

/// What a learner is made for.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Terms {
    /// Its share of the regulariser.
    pub share: Share,
    /// The weight of the proximal steps that will be asked for, so that they are factored once; absent where none will.
    pub weight: Option<f64>,
}

impl Terms {
    /// For a client of a server with so many clients.
    pub fn among(clients: usize) -> Self {
        Self { share: Share::one_of(clients), weight: None }
    }

    /// For proximal steps of this weight.
    #[must_use]
    pub fn weighing(self, weight: f64) -> Self {
        Self { weight: Some(weight), ..self }
    }
}

/// Why a learner gave no answer.
#[derive(Debug, Clone, Copy, PartialEq, Error)]
pub enum Failure {
    /// The learner cannot do this, whatever the records are.
    #[error("the learner has no way to give {0}")]
    Missing(Abilities),
    /// The problem was not solved; this depends on the records.
    #[error(transparent)]
    Unsolved(#[from] Unsolved),
    /// Training gave numbers that are not finite; this depends on the records.
    #[error("the loss of the training grew beyond all bounds")]
    Diverged,
    /// A step that is made from gradients did not come near enough; this depends on the records.
    #[error(transparent)]
    Unreached(#[from] Unreached),
}

impl From<Failure> for Refusal {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Missing(_) | Failure::Unsolved(_) | Failure::Unreached(_) => Refusal::Unsolved,
            Failure::Diverged => Refusal::Diverged,
        }
    }
}

/// A pull towards a centre: `(weight/2) |w - centre|^2` is added to the loss.
#[derive(Debug, Clone, Copy)]
pub struct Pull<'a> {
    /// The centre.
    pub centre: &'a [f64],
    /// Its weight.
    pub weight: f64,
}

/// The public half of a learner. See the module's text.
pub trait Family: Any + fmt::Debug + Send + Sync {
    /// Its name in a config.
    fn name(&self) -> &str;

    /// What its learners can do by themselves.
    fn has(&self) -> Abilities;

    /// What a prediction is: a number, where nothing else is said.
    fn output(&self) -> Output {
        Output::Number
    }

    /// The number of parameters for this many columns: as many, where nothing else is said or where models have no fixed
    /// number of parameters.
    fn dimension(&self, columns: usize) -> usize {
        columns
    }

    /// Whether records of this many columns are what the learner takes.
    fn takes(&self, _columns: usize) -> Result<(), String> {
        Ok(())
    }

    /// In which precision parameters are kept.
    fn precision(&self) -> Precision {
        Precision::Double
    }

    /// Coordinates with a role, in order.
    fn groups(&self) -> Vec<(Role, Range<usize>)> {
        Vec::new()
    }

    /// Whether a client's own records always determine a model; without a regulariser few records may not.
    fn is_determined(&self) -> bool {
        true
    }

    /// The factor of `|w|^2` in the regulariser as a whole; methods that step along released gradients apply it.
    fn squared_norm(&self) -> f64 {
        0.0
    }

    /// The proximal map of `t` times the part of the regulariser that has kinks, in place.
    fn shrink(&self, _w: &mut [f64], _t: f64) {}

    /// Where training begins.
    fn start(&self, dimension: usize, _rng: &mut PublicRng) -> Vec<f64> {
        vec![0.0; dimension]
    }

    /// Rounds a mean or a mixture of models to numbers that a model can have.
    fn round(&self, _w: &mut [f64]) {}

    /// Whether training goes over mini-batches where a config does not say.
    fn prefers_batches(&self) -> bool {
        false
    }

    /// The least number of records in a batch.
    fn least_batch(&self) -> usize {
        1
    }

    /// Why an ability is missing, where that is not plain from the name of the learner.
    fn why_not(&self, _ability: Abilities) -> Option<&'static str> {
        None
    }

    /// The learner of a client with these records.
    fn join(&self, data: &Arc<Dataset>, terms: Terms) -> Result<Box<dyn Learner>, Unsolved>;

    /// A model fitted to weighted records, whoever's they are.
    fn fit(&self, _sample: &Sample<'_>, _share: Share) -> Result<Vec<f64>, Unsolved> {
        Err(Unsolved("this learner has no fit of weighted records"))
    }

    /// Predictions of a model for records as they came: a number, the probability of label 1, or the probabilities of all
    /// classes. Nothing where the numbers are no model of this family.
    fn predict(&self, w: &[f64], data: &Dataset, each: &mut dyn FnMut(usize, &[f64]));

    /// The mean loss of a model on records as they came, regularisation left out.
    fn mean_loss(&self, w: &[f64], data: &Dataset) -> f64 {
        metrics::plain_loss(self.output(), &mut |each| self.predict(w, data, each), data)
    }

    /// Whether these numbers can be a model that was fitted to at most so many records.
    fn is_model(&self, w: &[f64], columns: usize, _rows: usize) -> bool {
        w.len() == self.dimension(columns)
    }

    /// The model that says the same of every record: 0, or an even chance.
    fn constant(&self, columns: usize) -> Vec<f64> {
        vec![0.0; self.dimension(columns)]
    }

    /// Whether a model holds the records it was fitted to.
    fn holds_records(&self) -> bool {
        false
    }

    /// Whether a model can pass through every record it is fitted to.
    fn interpolates(&self) -> bool {
        false
    }

    /// A bound on the norm of one record's gradient that the learner claims. It is recorded as claimed, and refused where
    /// privacy is demanded: only privacy code certifies a bound.
    fn claimed_bound(&self) -> Option<f64> {
        None
    }

    /// Whether the parameters are those of one product `x'w`, so that they can be compared with a true linear model.
    fn is_linear(&self) -> bool {
        false
    }

    /// How graphs are learnt, where they are.
    fn signals(&self) -> Option<&Smooth> {
        None
    }

    /// What models of another family must have in common with these to be averaged.
    fn space(&self, columns: usize) -> Space {
        Space { parameters: self.dimension(columns), precision: self.precision(), groups: self.groups() }
    }
}

impl dyn Family {
    /// The coordinates with one of these roles.
    pub fn ranges(&self, roles: &[Role]) -> Vec<Range<usize>> {
        self.groups().into_iter().filter(|(role, _)| roles.contains(role)).map(|(_, range)| range).collect()
    }

    /// The family as this type, where it is one.
    pub fn downcast<T: Family>(&self) -> Option<&T> {
        let any: &dyn Any = self;
        any.downcast_ref()
    }
}

/// How long a proximal step that is made from gradients may go on: its residual relative to the weight and the centre.
pub const ACCURACY: f64 = 1e-12;

/// The private half of a learner: a client's records, and what can be done with them. See the module's text.
///
/// Methods with a default are made from the others. `buffers` are those of the thread, and their contents are
/// whatever an earlier client left: write before reading.
#[allow(unused_variables)]
pub trait Learner: Send + Sync {
    /// Number of records.
    fn rows(&self) -> usize;

    /// Number of parameters of a model.
    fn dimension(&self) -> usize;

    /// The mean loss of a model, regularisation left out.
    fn loss(&self, w: &[f64], buffers: &mut Buffers) -> Result<f64, Failure> {
        Err(Failure::Missing(Abilities::VALUE))
    }

    /// The smooth part of the objective: the mean loss, and what of the regulariser has no kinks.
    fn smooth(&self, w: &[f64], buffers: &mut Buffers) -> Result<f64, Failure> {
        self.loss(w, buffers)
    }

    /// The part of this client's regulariser that has kinks, such as a sum of absolute values.
    fn kinks(&self, w: &[f64]) -> f64 {
        0.0
    }

    /// The objective: the mean loss and this client's share of the regulariser.
    fn value(&self, w: &[f64], buffers: &mut Buffers) -> Result<f64, Failure> {
        Ok(self.smooth(w, buffers)? + self.kinks(w))
    }

    /// The objectives of a list of models, one after the other.
    fn values(&self, models: &[f64], out: &mut Vec<f64>, buffers: &mut Buffers) -> Result<(), Failure> {
        out.clear();
        for w in models.chunks_exact(self.dimension()) {
            out.push(self.value(w, buffers)?);
        }
        Ok(())
    }

    /// `factor` times the gradient of the smooth part of the objective.
    fn gradient(
        &self,
        w: &[f64],
        factor: f64,
        out: &mut [f64],
        buffers: &mut Buffers,
    ) -> Result<(), Failure> {
        Err(Failure::Missing(Abilities::GRADIENT))
    }

    /// Those of a list of models, one after the other.
    fn gradients(
        &self,
        models: &[f64],
        factor: f64,
        out: &mut [f64],
        buffers: &mut Buffers,
    ) -> Result<(), Failure> {
        let length = self.dimension();
        for (w, out) in models.chunks_exact(length).zip(out.chunks_exact_mut(length)) {
            self.gradient(w, factor, out, buffers)?;
        }
        Ok(())
    }

    /// Writes the gradient of the smooth part over some records and returns its value there; running statistics in w move
    /// along. Made from [`Self::gradient`] it goes over all records.
    fn batch_gradient(
        &self,
        rows: &[u32],
        w: &mut [f64],
        out: &mut [f64],
        buffers: &mut Buffers,
    ) -> Result<f64, Failure> {
        self.gradient(w, 1.0, out, buffers)?;
        self.smooth(w, buffers)
    }

    /// Adds the gradient of one record's loss, regularisation left out.
    fn record_gradient(
        &self,
        row: usize,
        w: &[f64],
        out: &mut [f64],
        buffers: &mut Buffers,
    ) -> Result<(), Failure> {
        Err(Failure::Missing(Abilities::RECORDS))
    }

    /// Whether the regulariser has a part with kinks.
    fn has_kinks(&self) -> bool {
        false
    }

    /// The proximal map of `t` times this client's part of the regulariser that has kinks, in place.
    fn shrink(&self, w: &mut [f64], t: f64) {}

    /// Epochs of mini-batch steps from w, in place, with a pull where there is one. Batches come in the order that
    /// `shuffle` gives the record numbers in every epoch. Returns the mean objective of the last epoch, the pull left out.
    fn descend(
        &self,
        w: &mut [f64],
        descent: &Descent,
        pull: Option<Pull<'_>>,
        shuffle: &mut dyn FnMut(&mut [u32]),
        buffers: &mut Buffers,
    ) -> Result<f64, Failure> {
        let mut order: Vec<u32> = (0..self.rows() as u32).collect();
        let (mut gradient, mut speed) = (vec![0.0; w.len()], vec![0.0; w.len()]);
        let mut mean = 0.0;
        for _ in 0..descent.epochs {
            shuffle(&mut order);
            mean = 0.0;
            for batch in order.chunks(descent.batch.max(1)) {
                mean += self.batch_gradient(batch, w, &mut gradient, buffers)? * batch.len() as f64;
                axpy(descent.weight_decay, w, &mut gradient);
                if let Some(Pull { centre, weight }) = pull {
                    for ((g, w), c) in gradient.iter_mut().zip(w.iter()).zip(centre) {
                        *g += weight * (w - c);
                    }
                }
                scale(descent.momentum, &mut speed);
                axpy(1.0, &gradient, &mut speed);
                axpy(-descent.rate, &speed, w);
                self.shrink(w, descent.rate);
            }
            mean /= self.rows() as f64;
            if !(mean.is_finite() && w.iter().all(|w| w.is_finite())) {
                return Err(Failure::Diverged);
            }
        }
        Ok(mean)
    }

    /// Writes the minimiser of the objective plus `(weight/2) |w - centre|^2`. It depends on the records and the centre
    /// alone, never on what was computed before. Made from values and gradients it says which residual it reached.
    fn prox(
        &self,
        centre: &[f64],
        weight: f64,
        out: &mut [f64],
        buffers: &mut Buffers,
    ) -> Result<Reached, Failure> {
        let mut smooth = |w: &[f64], gradient: &mut [f64]| {
            self.gradient(w, 1.0, gradient, buffers)?;
            self.smooth(w, buffers)
        };
        let shrink = |w: &mut [f64], t: f64| self.shrink(w, t);
        made::prox(&mut smooth, self.has_kinks().then_some(&shrink as _), centre, weight, out)
    }

    /// The minimiser of the objective.
    fn minimise(&self, buffers: &mut Buffers) -> Result<Vec<f64>, Failure> {
        let mut smooth = |w: &[f64], gradient: &mut [f64]| {
            self.gradient(w, 1.0, gradient, buffers)?;
            self.smooth(w, buffers)
        };
        let shrink = |w: &mut [f64], t: f64| self.shrink(w, t);
        made::minimise(&mut smooth, self.has_kinks().then_some(&shrink as _), self.dimension())
    }
}
