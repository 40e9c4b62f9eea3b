//! Linear and logistic models as hypotheses: (6) is then a weighted fit, their proximal step in the space of predictions.

use super::{LINEAR, LOGISTIC, POISSON, Sample};
use crate::Dataset;
use crate::model::{self, Loss, Model};
use crate::unsolved::Unsolved;
use std::sync::Arc;

pub(super) fn fit(sample: &Sample<'_>, model: &Model, clients: usize) -> Result<Vec<f64>, Unsolved> {
    let data = Dataset::new(sample.columns, sample.features.to_vec(), sample.targets.to_vec())
        .map_err(|_| Unsolved("its records are no finite numbers"))?;
    let data = model.prepare(&Arc::new(data));
    let mut total = 0.0;
    for weight in sample.weights {
        total += weight;
    }
    let weights: Vec<f64> = sample.weights.iter().map(|weight| weight / total).collect();
    let w = model::fit(model, &data, &weights, model.regularisation / clients as f64)?;
    Ok(put(sample.columns, model, &w))
}

/// The first number of a model: how it predicts.
pub(super) fn tag(loss: Loss) -> f64 {
    match loss {
        Loss::Squared | Loss::Huber(_) | Loss::Quantile(_) => LINEAR,
        Loss::Logistic => LOGISTIC,
        Loss::Poisson => POISSON,
    }
}

/// A loss whose models predict as a tag says.
pub(super) fn loss(tag: f64) -> Option<Loss> {
    [Loss::Squared, Loss::Logistic, Loss::Poisson].into_iter().find(|loss| self::tag(*loss) == tag)
}

/// Parameters as they are kept.
pub(super) fn put(columns: usize, model: &Model, w: &[f64]) -> Vec<f64> {
    let norm = model.feature_norm.unwrap_or_default();
    let mut flat = vec![tag(model.loss), columns as f64, f64::from(u8::from(model.bias)), norm];
    flat.extend_from_slice(w);
    flat
}

/// Parameters as they are read, with the model that predicts by them.
pub(super) fn take<'a>(list: &mut &'a [f64], columns: usize, loss: Loss) -> Option<(Model, &'a [f64])> {
    let (&[bias, norm], rest) = list.split_first_chunk::<2>()?;
    if !(bias == 0.0 || bias == 1.0) || norm < 0.0 {
        return None;
    }
    let feature_norm = (norm > 0.0).then_some(norm);
    let model = Model { loss, regularisation: 0.0, bias: bias == 1.0, feature_norm };
    let (w, rest) = rest.split_at_checked(model.dimension(columns))?;
    *list = rest;
    Some((model, w))
}
