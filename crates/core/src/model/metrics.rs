//! How good a model is on records.

use super::{Loss, Model};
use crate::dataset::Dataset;

fn mean(data: &Dataset, score: impl Fn(&[f64], f64) -> f64) -> f64 {
    let mut sum = 0.0;
    for (i, &y) in data.targets().iter().enumerate() {
        sum += score(data.row(i), y);
    }
    sum / data.rows() as f64
}

/// Mean squared error of the predictions.
pub fn mean_squared_error(model: &Model, data: &Dataset, w: &[f64]) -> f64 {
    mean(data, |x, y| {
        let gap = model.predict(x, w) - y;
        gap * gap
    })
}

/// Share of records whose label is the likelier one; an even chance counts as label 1.
pub fn accuracy(model: &Model, data: &Dataset, w: &[f64]) -> f64 {
    mean(data, |x, y| f64::from((model.predict(x, w) >= 0.5) == (y >= 0.5)))
}

/// Mean loss of the predictions, regularisation left out.
pub fn log_loss(model: &Model, data: &Dataset, w: &[f64]) -> f64 {
    mean(data, |x, y| {
        let p = model.predict(x, w);
        match model.loss {
            Loss::Logistic => {
                let p = p.clamp(1e-15, 1.0 - 1e-15);
                -(y * crate::numeric::ln(p) + (1.0 - y) * crate::numeric::ln(1.0 - p))
            }
            loss => loss.value(p, y),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metrics_of_a_known_case() {
        let data = Dataset::new(1, vec![1.0, -1.0, 2.0, 0.0], vec![1.0, 0.0, 0.0, 1.0]).unwrap();
        let ridge = Model { loss: Loss::Squared, regularisation: 0.0, bias: false, feature_norm: None };
        assert_eq!(mean_squared_error(&ridge, &data, &[1.0]), (0.0 + 1.0 + 4.0 + 1.0) / 4.0);
        let logistic = Model { loss: Loss::Logistic, ..ridge };
        assert_eq!(accuracy(&logistic, &data, &[1.0]), 0.75);
        let even = Dataset::new(1, vec![0.0], vec![1.0]).unwrap();
        assert!((log_loss(&logistic, &even, &[1.0]) - std::f64::consts::LN_2).abs() < 1e-15);
    }
}
