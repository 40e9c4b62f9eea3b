//! What every learner has to stand, native or of a program's own: what its family says it can do, it does, and what it does
//! fits together.

use fedkin_learner::model::neural::Descent;
use fedkin_learner::{Abilities, Dataset, Failure, Family, Learner, Output, Share, Terms};
use fedkin_numeric::buffers::Buffers;
use fedkin_numeric::rng::{PublicRng, Random};
use fedkin_numeric::{axpy, distance2, norm2, scale};
use std::sync::Arc;

/// The weight of the proximal steps.
const WEIGHT: f64 = 1.7;

/// Records of so many columns whose targets suit what a family predicts: labels, classes, or counts, which are numbers,
/// too.
pub fn records_for(family: &dyn Family, columns: usize, rows: usize) -> Arc<Dataset> {
    let mut rng = PublicRng::named(3, "learner suite", rows as u32, 0);
    let features: Vec<f64> = (0..rows * columns).map(|_| 0.7 * rng.normal()).collect();
    let most = match family.output() {
        Output::Probability => 2,
        Output::Classes(classes) => classes as u32,
        Output::Number | Output::Graph => 4,
    };
    let targets = (0..rows).map(|_| f64::from(rng.below(most))).collect();
    Arc::new(Dataset::new(columns, features, targets).unwrap())
}

fn point(length: usize, seed: u32) -> Vec<f64> {
    let mut rng = PublicRng::named(5, "point", seed, 0);
    (0..length).map(|_| 0.5 * rng.normal()).collect()
}

/// A family with some records of the suite.
struct Suite<'a> {
    family: &'a dyn Family,
    columns: usize,
}

/// Puts the learners of a family through the suite, on records of so many columns. Which abilities are claimed is compared
/// with what the calls give; gradients with central differences, and with the sum over records; one full batch with a
/// gradient step; a proximal step with its condition of optimality and with itself, to the bit.
///
/// `smooth` says that the loss has a gradient everywhere; where it has kinks, as that of a quantile, a proximal step is
/// compared with points around it alone.
pub fn learner_suite(family: &dyn Family, columns: usize, smooth: bool) -> Result<(), String> {
    let suite = Suite { family, columns };
    suite.abilities()?;
    if family.has().contain(Abilities::GRADIENT) {
        suite.gradients()?;
        suite.full_batch()?;
        suite.proximal_steps(smooth)?;
    }
    Ok(())
}

fn missing<T>(result: &Result<T, Failure>) -> bool {
    matches!(result, Err(Failure::Missing(_)))
}

impl Suite<'_> {
    fn join(&self, rows: usize, terms: Terms) -> Result<(Arc<Dataset>, Box<dyn Learner>), String> {
        let data = records_for(self.family, self.columns, rows);
        let learner = self.family.join(&data, terms).map_err(|error| self.broken(&error.to_string()))?;
        Ok((data, learner))
    }

    fn broken(&self, what: &str) -> String {
        format!("learner {:?}: {what} ({:?})", self.family.name(), self.family)
    }

    fn hold(&self, holds: bool, what: impl FnOnce() -> String) -> Result<(), String> {
        if holds { Ok(()) } else { Err(self.broken(&what())) }
    }

    fn known<T>(&self, answer: Result<T, Failure>) -> Result<T, String> {
        answer.map_err(|failure| self.broken(&failure.to_string()))
    }

    /// What is claimed is there, fallbacks counted, and what is not claimed is said to be missing.
    fn abilities(&self) -> Result<(), String> {
        let (data, learner) = self.join(12, Terms::among(2).weighing(WEIGHT))?;
        let buffers = &mut Buffers::default();
        let length = self.family.dimension(self.columns);
        let (w, mut out) = (point(length, 0), vec![0.0; length]);
        let rows: Vec<u32> = (0..4).collect();
        let calls = [
            (Abilities::VALUE, missing(&learner.value(&w, buffers))),
            (Abilities::GRADIENT, missing(&learner.gradient(&w, 1.0, &mut out, buffers))),
            (Abilities::BATCHES, missing(&learner.batch_gradient(&rows, &mut w.clone(), &mut out, buffers))),
            (Abilities::RECORDS, missing(&learner.record_gradient(0, &w, &mut out, buffers))),
            (Abilities::PROX, missing(&learner.prox(&w, WEIGHT, &mut out, buffers))),
        ];
        let can = |ability| self.family.has().with_fallbacks().contain(ability);
        for (ability, missing) in calls {
            self.hold(missing != can(ability), || {
                format!("its family {} have {ability}", if missing { "says to" } else { "does not say to" })
            })?;
        }
        let model = if can(Abilities::PARAMETERS) { w } else { self.family.constant(self.columns) };
        let mut predicted = 0;
        self.family.predict(&model, &data, &mut |_, _| predicted += 1);
        self.hold((predicted == data.rows()) == can(Abilities::PREDICT), || {
            format!("{predicted} predictions for {} records", data.rows())
        })?;
        let is_model = self.family.is_model(&model, self.columns, data.rows());
        self.hold(!can(Abilities::PARAMETERS) || is_model, || "a model is not taken for one".into())?;
        self.hold(learner.rows() == data.rows(), || format!("it has {} records", learner.rows()))
    }

    /// Central differences of the smooth part, and the sum of the gradients of single records.
    fn gradients(&self) -> Result<(), String> {
        let (data, learner) = self.join(9, Terms::among(3))?;
        let buffers = &mut Buffers::default();
        let w = point(learner.dimension(), 1);
        let mut gradient = vec![0.0; w.len()];
        self.known(learner.gradient(&w, 1.0, &mut gradient, buffers))?;
        let h = 1e-6;
        for j in 0..w.len() {
            let mut at = |by: f64| {
                let mut moved = w.clone();
                moved[j] += by;
                learner.smooth(&moved, buffers)
            };
            let slope = (self.known(at(h))? - self.known(at(-h))?) / (2.0 * h);
            self.hold((slope - gradient[j]).abs() < 1e-6, || {
                format!("coordinate {j} of its gradient is {}, and differences give {slope}", gradient[j])
            })?;
        }
        if !self.family.has().contain(Abilities::RECORDS) {
            return Ok(());
        }
        let mut sum = vec![0.0; w.len()];
        for i in 0..data.rows() {
            self.known(learner.record_gradient(i, &w, &mut sum, buffers))?;
        }
        scale(1.0 / data.rows() as f64, &mut sum);
        axpy(2.0 * Share::one_of(3).times(self.family.squared_norm()), &w, &mut sum);
        let apart = distance2(&sum, &gradient).sqrt();
        self.hold(apart < 1e-12 * (1.0 + norm2(&gradient)), || {
            format!("the gradients of its records sum to something else than its gradient: {apart:e} apart")
        })
    }

    fn full_batch(&self) -> Result<(), String> {
        let (_, learner) = self.join(7, Terms::among(3))?;
        let buffers = &mut Buffers::default();
        let w = point(learner.dimension(), 2);
        let mut gradient = vec![0.0; w.len()];
        self.known(learner.gradient(&w, 1.0, &mut gradient, buffers))?;
        let mut stepped = w.clone();
        axpy(-0.05, &gradient, &mut stepped);
        learner.shrink(&mut stepped, 0.05);
        let descent = Descent { epochs: 1, batch: 7, rate: 0.05, momentum: 0.0, weight_decay: 0.0 };
        let mut trained = w;
        self.known(learner.descend(&mut trained, &descent, None, &mut |_| {}, buffers))?;
        let apart = distance2(&trained, &stepped).sqrt();
        self.hold(apart < 1e-13, || format!("one full batch is no gradient step: {apart:e} apart"))
    }

    /// w is the step where `w = shrink(w - h (grad f(w) + rho (w - v)), h)`: no element of the subdifferential is left.
    fn proximal_steps(&self, smooth: bool) -> Result<(), String> {
        for rows in [2, 9] {
            let (_, learner) = self.join(rows, Terms::among(2).weighing(WEIGHT))?;
            let buffers = &mut Buffers::default();
            let centre = point(learner.dimension(), 3);
            let (mut w, mut again) = (centre.clone(), vec![7.0; centre.len()]);
            let reached = self.known(learner.prox(&centre, WEIGHT, &mut w, buffers))?;
            self.known(learner.prox(&centre, WEIGHT, &mut again, &mut Buffers::default()))?;
            self.hold(w.iter().zip(&again).all(|(a, b)| a.to_bits() == b.to_bits()), || {
                "the same proximal step has other bits the second time".into()
            })?;
            let mut whole = |w: &[f64]| {
                let value = learner.value(w, buffers)?;
                Ok(value + 0.5 * WEIGHT * distance2(w, &centre))
            };
            let least = self.known(whole(&w))?;
            for trial in 0..20 {
                let mut moved = w.clone();
                axpy(1e-4, &point(w.len(), 10 + trial), &mut moved);
                let value = self.known(whole(&moved))?;
                self.hold(value >= least - 1e-12, || {
                    format!("a point near its proximal step is better by {:e}", least - value)
                })?;
            }
            if smooth {
                let mut gradient = vec![0.0; w.len()];
                self.known(learner.gradient(&w, 1.0, &mut gradient, buffers))?;
                let mut moved = w.clone();
                for ((moved, (g, w)), c) in moved.iter_mut().zip(gradient.iter().zip(&w)).zip(&centre) {
                    *moved -= 0.1 * (g + WEIGHT * (w - c));
                }
                learner.shrink(&mut moved, 0.1);
                let apart = distance2(&moved, &w).sqrt();
                self.hold(apart < 1e-9 + reached.residual, || {
                    format!(
                        "its proximal step is no fixed point of a proximal gradient step: {apart:e} apart"
                    )
                })?;
            }
        }
        Ok(())
    }
}
