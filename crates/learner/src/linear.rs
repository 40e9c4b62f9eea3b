//! Linear models: one product `x'w`, and a loss of it.

use super::{ACCURACY, Abilities, Failure, Family, Learner, Output, Reached, Regulariser, Share, Terms};
use crate::Dataset;
use crate::hypothesis::Sample;
use crate::model::{Loss, Model, Prox, ProxWork, RegularisedProx, Unsolved, fit, fit_quantile};
use fedkin_numeric::buffers::Buffers;
use fedkin_numeric::{axpy, dot, norm2};
use std::sync::Arc;

/// A linear model of a number, a probability, a count or a quantile, by its loss.
#[derive(Debug, Clone, PartialEq)]
pub struct Linear {
    model: Model,
    regulariser: Regulariser,
}

impl Linear {
    /// This model as a family, regularised by the squared norm.
    pub fn new(model: Model) -> Self {
        Self { model, regulariser: Regulariser::SquaredNorm }
    }

    /// The same with another regulariser.
    pub fn regularised(model: Model, regulariser: Regulariser) -> Self {
        Self { model, regulariser }
    }

    /// The model.
    pub fn model(&self) -> &Model {
        &self.model
    }
}

/// What every linear model can do.
pub(super) const HAS: Abilities = Abilities::PARAMETERS
    .and(Abilities::VALUE)
    .and(Abilities::GRADIENT)
    .and(Abilities::BATCHES)
    .and(Abilities::DESCEND)
    .and(Abilities::RECORDS)
    .and(Abilities::PROX)
    .and(Abilities::MINIMISE)
    .and(Abilities::FIT)
    .and(Abilities::PREDICT);

impl Family for Linear {
    fn name(&self) -> &str {
        match self.model.loss {
            Loss::Squared | Loss::Huber(_) => "ridge",
            Loss::Logistic => "logistic",
            Loss::Poisson => "poisson",
            Loss::Quantile(_) => "quantile",
        }
    }

    fn has(&self) -> Abilities {
        // With kinks a step is made from gradients, to a residual.
        if self.regulariser.is_smooth() { HAS } else { HAS.without(Abilities::PROX.and(Abilities::MINIMISE)) }
    }

    fn output(&self) -> Output {
        match self.model.loss {
            Loss::Logistic => Output::Probability,
            Loss::Squared | Loss::Huber(_) | Loss::Poisson | Loss::Quantile(_) => Output::Number,
        }
    }

    fn dimension(&self, columns: usize) -> usize {
        self.model.dimension(columns)
    }

    fn takes(&self, columns: usize) -> Result<(), String> {
        self.regulariser.check(self.model.dimension(columns))
    }

    fn is_linear(&self) -> bool {
        true
    }

    fn is_determined(&self) -> bool {
        self.model.regularisation > 0.0 && self.regulariser.squared_share() > 0.0
    }

    fn squared_norm(&self) -> f64 {
        self.model.regularisation * self.regulariser.squared_share()
    }

    fn shrink(&self, w: &mut [f64], t: f64) {
        self.regulariser.shrink(w, t * self.model.regularisation);
    }

    fn join(&self, data: &Arc<Dataset>, terms: Terms) -> Result<Box<dyn Learner>, Unsolved> {
        let (data, strength) = (self.model.prepare(data), terms.share.times(self.model.regularisation));
        let squared = strength * self.regulariser.squared_share();
        let kinks = (!self.regulariser.is_smooth()).then(|| (self.regulariser.clone(), strength));
        let mut learner = LinearLearner { model: self.model, data, strength: squared, kinks, prox: None };
        if let Some(weight) = terms.weight {
            learner.prox = Some(learner.factored(weight)?);
        }
        Ok(Box::new(learner))
    }

    fn fit(&self, sample: &Sample<'_>, share: Share) -> Result<Vec<f64>, Unsolved> {
        let data = Dataset::new(sample.columns, sample.features.to_vec(), sample.targets.to_vec())
            .map_err(|_| Unsolved("its records are no finite numbers"))?;
        let data = self.model.prepare(&Arc::new(data));
        let strength = share.times(self.model.regularisation);
        let squared = strength * self.regulariser.squared_share();
        if self.regulariser.is_smooth() {
            return fit(&self.model, &data, sample.weights, squared);
        }
        if let Loss::Quantile(level) = self.model.loss {
            return fit_quantile(level, &data, sample.weights, (&self.regulariser, strength));
        }
        let mut smooth = |w: &[f64], out: &mut [f64]| {
            let mut sum = squared * norm2(w);
            out.fill(0.0);
            axpy(2.0 * squared, w, out);
            for (i, (&y, weight)) in data.targets().iter().zip(sample.weights).enumerate() {
                let z = dot(data.row(i), w);
                sum += weight * self.model.loss.value(z, y);
                axpy(weight * self.model.loss.slope(z, y), data.row(i), out);
            }
            Ok(sum)
        };
        let shrink = |w: &mut [f64], t: f64| self.regulariser.shrink(w, t * strength);
        super::made::minimise(&mut smooth, Some(&shrink), data.columns())
            .map_err(|_| Unsolved("the fit with this regulariser did not come to an end"))
    }

    fn predict(&self, w: &[f64], data: &Dataset, each: &mut dyn FnMut(usize, &[f64])) {
        if w.len() != self.model.dimension(data.columns()) {
            return;
        }
        for i in 0..data.rows() {
            each(i, &[self.model.predict(data.row(i), w)]);
        }
    }

    fn mean_loss(&self, w: &[f64], data: &Dataset) -> f64 {
        super::metrics::linear_loss(&self.model, data, w)
    }
}

/// One client's records, prepared, with its proximal step factored where one will be asked for.
struct LinearLearner {
    model: Model,
    data: Arc<Dataset>,
    /// This client's weight of |w|^2.
    strength: f64,
    /// A regulariser with kinks, and this client's weight of it.
    kinks: Option<(Regulariser, f64)>,
    prox: Option<Factored>,
}

/// A proximal step that is ready for any centre.
enum Factored {
    Smooth(Prox),
    Kinked(f64, Box<RegularisedProx>),
}

impl Factored {
    fn weight(&self) -> f64 {
        match self {
            Factored::Smooth(prox) => prox.weight(),
            Factored::Kinked(weight, _) => *weight,
        }
    }

    fn solve(&self, centre: &[f64], out: &mut [f64], buffers: &mut Buffers) -> Result<Reached, Failure> {
        match self {
            Factored::Smooth(prox) => {
                prox.solve(centre, out, &mut buffers.work)?;
                Ok(Reached::EXACT)
            }
            Factored::Kinked(_, prox) => Ok(prox.solve(centre, ACCURACY, out, buffers.of::<ProxWork>())?),
        }
    }
}

impl LinearLearner {
    fn factored(&self, weight: f64) -> Result<Factored, Unsolved> {
        let data = Arc::clone(&self.data);
        Ok(match &self.kinks {
            None => Factored::Smooth(Prox::new(&self.model, data, self.strength, weight)?),
            Some((regulariser, strength)) => {
                let prox = RegularisedProx::new(&self.model, data, regulariser.clone(), *strength, weight)?;
                Factored::Kinked(weight, Box::new(prox))
            }
        })
    }
}

impl Learner for LinearLearner {
    fn rows(&self) -> usize {
        self.data.rows()
    }

    fn dimension(&self) -> usize {
        self.data.columns()
    }

    fn loss(&self, w: &[f64], _: &mut Buffers) -> Result<f64, Failure> {
        Ok(self.model.objective(&self.data, 0.0, w))
    }

    fn smooth(&self, w: &[f64], _: &mut Buffers) -> Result<f64, Failure> {
        Ok(self.model.objective(&self.data, self.strength, w))
    }

    fn values(&self, models: &[f64], out: &mut Vec<f64>, _: &mut Buffers) -> Result<(), Failure> {
        self.model.objectives(&self.data, self.strength, models, out);
        if self.kinks.is_some() {
            for (value, w) in out.iter_mut().zip(models.chunks_exact(self.dimension())) {
                *value += self.kinks(w);
            }
        }
        Ok(())
    }

    fn has_kinks(&self) -> bool {
        self.kinks.is_some()
    }

    fn kinks(&self, w: &[f64]) -> f64 {
        self.kinks.as_ref().map_or(0.0, |kinks| kinks.0.kinks(w, kinks.1))
    }

    fn shrink(&self, w: &mut [f64], t: f64) {
        if let Some(kinks) = &self.kinks {
            kinks.0.shrink(w, t * kinks.1);
        }
    }

    fn gradient(
        &self,
        w: &[f64],
        factor: f64,
        out: &mut [f64],
        buffers: &mut Buffers,
    ) -> Result<(), Failure> {
        self.model.gradient(&self.data, self.strength, w, factor, out, &mut buffers.work);
        Ok(())
    }

    fn batch_gradient(
        &self,
        rows: &[u32],
        w: &mut [f64],
        out: &mut [f64],
        _: &mut Buffers,
    ) -> Result<f64, Failure> {
        out.fill(0.0);
        let share = 1.0 / rows.len() as f64;
        let mut sum = 0.0;
        for &row in rows {
            let (x, y) = (self.data.row(row as usize), self.data.targets()[row as usize]);
            let z = dot(x, w);
            axpy(share * self.model.loss.slope(z, y), x, out);
            sum += self.model.loss.value(z, y);
        }
        axpy(2.0 * self.strength, w, out);
        Ok(sum * share + self.strength * norm2(w))
    }

    fn record_gradient(
        &self,
        row: usize,
        w: &[f64],
        out: &mut [f64],
        _: &mut Buffers,
    ) -> Result<(), Failure> {
        let (x, y) = (self.data.row(row), self.data.targets()[row]);
        axpy(self.model.loss.slope(dot(x, w), y), x, out);
        Ok(())
    }

    fn prox(
        &self,
        centre: &[f64],
        weight: f64,
        out: &mut [f64],
        buffers: &mut Buffers,
    ) -> Result<Reached, Failure> {
        match &self.prox {
            Some(prox) if prox.weight() == weight => prox.solve(centre, out, buffers),
            // Not what it was made for: solved all the same.
            _ => self.factored(weight)?.solve(centre, out, buffers),
        }
    }

    fn minimise(&self, buffers: &mut Buffers) -> Result<Vec<f64>, Failure> {
        let (centre, mut w) = (vec![0.0; self.dimension()], vec![0.0; self.dimension()]);
        self.prox(&centre, 0.0, &mut w, buffers)?;
        Ok(w)
    }
}
