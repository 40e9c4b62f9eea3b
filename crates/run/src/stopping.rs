//! Early stopping for each client: what its test metric was in the evaluated round of its least validation loss.
//!
//! It is a way to read a run, not to run it: all rounds are run, and the models that are kept are those of the last one.

use crate::error::Error;
use crate::plan::Plan;
use fedkin_measure::Metric;
use fedkin_numeric::record;

record! {
    /// By model, then by client: the least validation loss so far, and the test accuracy in that round.
    pub(crate) struct Stops { loss: Vec<f64>, accuracy: Vec<f64> }
}

/// Watches every client's validation loss.
pub(crate) struct Stopping {
    /// The column that is reported, and where validation loss and test accuracy of the same model stand.
    models: Vec<(String, usize, usize)>,
    clients: usize,
    pub(crate) stops: Stops,
}

impl Stopping {
    /// Nothing where the config does not ask for it.
    pub(crate) fn new(plan: &Plan, columns: &[String], clients: usize) -> Result<Option<Self>, Error> {
        if !plan.config.evaluate.early_stopping {
            return Ok(None);
        }
        let place = |metric: Metric, model: &str| {
            let wanted = format!("{}.{model}", metric.name());
            columns.iter().position(|name| *name == wanted)
        };
        let model = |name: &String| {
            let model = name.strip_prefix(Metric::ValidationLogLoss.name())?.strip_prefix('.')?;
            let (loss, accuracy) =
                (place(Metric::ValidationLogLoss, model)?, place(Metric::Accuracy, model)?);
            Some((format!("{}.{model}", Metric::StoppedAccuracy.name()), loss, accuracy))
        };
        let models: Vec<_> = columns.iter().filter_map(model).collect();
        if models.is_empty() {
            return Err(Error::Conflict {
                place: plan.place().to_string(),
                message: format!("evaluate.early_stopping needs {VALIDATION}"),
            });
        }
        let size = models.len() * clients;
        let stops = Stops { loss: vec![f64::INFINITY; size], accuracy: vec![f64::NAN; size] };
        Ok(Some(Self { models, clients, stops }))
    }

    /// Whether what was kept belongs to these clients and models.
    pub(crate) fn fits(&self, stops: &Stops) -> bool {
        let size = self.models.len() * self.clients;
        stops.loss.len() == size && stops.accuracy.len() == size
    }

    /// Takes the rows of an evaluation, by client id. Of equal losses the first round counts.
    pub(crate) fn see(&mut self, rows: &[Vec<f64>]) {
        for (m, (_, loss, accuracy)) in self.models.iter().enumerate() {
            for (k, row) in rows.iter().enumerate().take(self.clients) {
                let at = m * self.clients + k;
                if row[*loss] < self.stops.loss[at] {
                    self.stops.loss[at] = row[*loss];
                    self.stops.accuracy[at] = row[*accuracy];
                }
            }
        }
    }

    /// Columns and their values by client.
    pub(crate) fn columns(&self) -> impl Iterator<Item = (&str, &[f64])> {
        let values = self.stops.accuracy.chunks(self.clients.max(1));
        self.models.iter().map(|(name, ..)| name.as_str()).zip(values)
    }
}

/// What to do where validation records are missing.
pub const VALIDATION: &str = "validation records of a model of classes, and these data have none: set \
     data.validation_fraction, such as 0.2 (data.validation_samples of synthetic.shifted-classes), where the source has \
     that key";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_client_stops_at_its_own_least_validation_loss() {
        let mut stopping = Stopping {
            models: vec![("stopped_accuracy.client".into(), 0, 1)],
            clients: 3,
            stops: Stops { loss: vec![f64::INFINITY; 3], accuracy: vec![f64::NAN; 3] },
        };
        // Validation loss, test accuracy; the third client has no validation records.
        let rounds = [
            [[2.0, 0.1], [1.0, 0.9], [f64::NAN, 0.3]],
            [[1.0, 0.2], [2.0, 0.5], [f64::NAN, 0.4]],
            [[1.0, 0.8], [3.0, 0.4], [f64::NAN, 0.5]],
        ];
        for rows in rounds {
            stopping.see(&rows.map(|row| row.to_vec()));
        }
        let (name, values) = stopping.columns().next().unwrap();
        assert_eq!((name, &values[..2]), ("stopped_accuracy.client", &[0.2, 0.9][..]));
        assert!(values[2].is_nan());
    }
}
