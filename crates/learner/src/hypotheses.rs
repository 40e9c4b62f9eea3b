//! Trees, nearest neighbours and forests: models without parameters to average.

use super::{Abilities, Failure, Family, Learner, Output, Share, Terms};
use crate::Dataset;
use crate::hypothesis::{self, ClassSample, Fitted, Kind, Sample, one_hot};
use crate::unsolved::Unsolved;
use fedkin_numeric::buffers::Buffers;
use std::sync::Arc;

/// A kind of hypothesis, fitted to records and read from a list of numbers.
#[derive(Debug, Clone, PartialEq)]
pub struct Hypotheses {
    kind: Kind,
    output: Output,
}

impl Hypotheses {
    /// This kind as a family; `labels` where targets are labels 0 and 1, and not numbers.
    pub fn new(kind: Kind, labels: bool) -> Self {
        Self::of(kind, if labels { Output::Probability } else { Output::Number })
    }

    /// This kind as a family with such targets.
    pub fn of(kind: Kind, output: Output) -> Self {
        Self { kind, output }
    }
}

/// Fits a kind to weighted records with such targets.
fn fitted(kind: &Kind, output: Output, sample: &Sample<'_>, share: Share) -> Result<Vec<f64>, Unsolved> {
    let Output::Classes(classes) = output else { return kind.fit(sample, share.among as usize) };
    let strange = Unsolved("one of its labels is none of the classes");
    let shares = one_hot(sample.targets, classes).ok_or(strange)?;
    let &Sample { columns, features, weights, .. } = sample;
    kind.fit_classes(&ClassSample { columns, classes, features, shares: &shares, weights })
}

/// What a hypothesis can do.
pub(super) const HAS: Abilities = Abilities::MINIMISE.and(Abilities::FIT).and(Abilities::PREDICT);

impl Family for Hypotheses {
    fn name(&self) -> &'static str {
        self.kind.name()
    }

    fn has(&self) -> Abilities {
        HAS
    }

    fn output(&self) -> Output {
        self.output
    }

    fn dimension(&self, columns: usize) -> usize {
        columns
    }

    fn is_determined(&self) -> bool {
        !self.kind.unregularised()
    }

    fn why_not(&self, ability: Abilities) -> Option<&'static str> {
        ability.contain(Abilities::PARAMETERS).then_some("its models have no parameters in common")
    }

    fn join(&self, data: &Arc<Dataset>, terms: Terms) -> Result<Box<dyn Learner>, Unsolved> {
        Ok(Box::new(Own { kind: self.kind, output: self.output, data: Arc::clone(data), share: terms.share }))
    }

    fn fit(&self, sample: &Sample<'_>, share: Share) -> Result<Vec<f64>, Unsolved> {
        fitted(&self.kind, self.output, sample, share)
    }

    fn predict(&self, w: &[f64], data: &Dataset, each: &mut dyn FnMut(usize, &[f64])) {
        let Ok(fitted) = Fitted::read(w, data.columns()) else { return };
        match (self.output, fitted.classes()) {
            (Output::Classes(classes), Some(count)) if classes == count => {
                let mut p = vec![0.0; classes];
                for i in 0..data.rows() {
                    fitted.probabilities(data.row(i), &mut p);
                    each(i, &p);
                }
            }
            (Output::Number | Output::Probability, None) => {
                for i in 0..data.rows() {
                    each(i, &[fitted.predict(data.row(i))]);
                }
            }
            // A model of other targets.
            _ => {}
        }
    }

    fn is_model(&self, w: &[f64], columns: usize, rows: usize) -> bool {
        match self.output {
            Output::Classes(classes) => self.kind.made_of_classes(w, columns, rows, classes),
            _ => self.kind.made(w, columns, rows),
        }
    }

    fn constant(&self, columns: usize) -> Vec<f64> {
        let Output::Classes(classes) = self.output else {
            return hypothesis::constant(columns, if self.output == Output::Probability { 0.5 } else { 0.0 });
        };
        // One record of each class in one leaf: all are equally likely.
        let targets: Vec<f64> = (0..classes).map(|class| class as f64).collect();
        let (features, weights) = (vec![0.0; classes * columns], vec![1.0; classes]);
        let sample = Sample { columns, features: &features, targets: &targets, weights: &weights };
        let leaf = Kind::Tree { leaf: classes as u32, depth: 1 };
        fitted(&leaf, self.output, &sample, Share::one_of(1)).unwrap_or_default()
    }

    fn holds_records(&self) -> bool {
        self.kind.holds_records()
    }

    fn interpolates(&self) -> bool {
        self.kind.interpolates()
    }
}

/// One client's records.
struct Own {
    kind: Kind,
    output: Output,
    data: Arc<Dataset>,
    share: Share,
}

impl Learner for Own {
    fn rows(&self) -> usize {
        self.data.rows()
    }

    /// There is no fixed number.
    fn dimension(&self) -> usize {
        0
    }

    fn minimise(&self, _: &mut Buffers) -> Result<Vec<f64>, Failure> {
        let (features, targets) = (self.data.features(), self.data.targets());
        let weights = vec![1.0; self.data.rows()];
        let sample = Sample { columns: self.data.columns(), features, targets, weights: &weights };
        Ok(fitted(&self.kind, self.output, &sample, self.share)?)
    }
}
