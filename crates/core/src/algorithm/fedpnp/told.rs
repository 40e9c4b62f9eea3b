//! What clients tell besides their models: statistics of their records for the graph, losses of others' models.

use super::settings::{Source, Told};
use super::{FedPnp, Up};
use crate::algorithm::Ask;
use crate::dataset::Dataset;
use crate::graph::similarity;
use crate::model::Records;
use crate::numeric::scale;
use crate::privacy::{Gate, Refusal, Released};

/// What a loss that is not finite is told as.
const HOPELESS: f64 = 1e12;

impl FedPnp {
    /// The answer to the set-up: statistics as they are, or a noisy sum over records.
    pub(super) fn statistics(
        &self,
        data: &Dataset,
        ask: &Ask<'_, Self>,
        gate: &mut Gate<'_>,
    ) -> Result<Released<Up>, Refusal> {
        let training = &self.settings.training;
        let Source::Told(told) = self.settings.source else { return Err(Refusal::Unsolved) };
        if !training.is_private() {
            return gate.disclose("statistics", Up { told: self.tell(told, data), ..Up::default() });
        }
        let Told::Kernel { features, labels } = told else { return Err(Refusal::NoMechanism) };
        let length = usize::from(features) * data.columns() + usize::from(labels) * self.settings.classes;
        let sum = training.sum(length).ok_or(Refusal::NoMechanism)?;
        let noisy = gate.sampled("statistics", &sum, data.rows(), |i, out| record(told, data, i, out))?;
        Ok(noisy.post(ask, |mut told, ask| {
            scale(ask.down().share, &mut told);
            Up { told, ..Up::default() }
        }))
    }

    /// The answer to a probe: the loss of every client's model on the records here.
    pub(super) fn losses(
        &self,
        data: &Dataset,
        records: &Records,
        ask: &Ask<'_, Self>,
        gate: &mut Gate<'_>,
    ) -> Result<Released<Up>, Refusal> {
        let strength = if let Records::Wide(_, strength) = records { *strength } else { 0.0 };
        let mut told = Vec::with_capacity(ask.common().models.len());
        let mut loss = Vec::new();
        for model in &ask.common().models {
            self.settings.training.model.objectives(data, strength, model, &mut loss);
            told.push(loss.first().copied().filter(|loss| loss.is_finite()).unwrap_or(HOPELESS));
        }
        gate.disclose("losses", Up { told, ..Up::default() })
    }

    /// What a client tells of its records where nothing is private.
    fn tell(&self, told: Told, data: &Dataset) -> Vec<f64> {
        let (features, columns) = (data.features(), data.columns());
        match told {
            Told::Printed => similarity::moments(features, columns),
            Told::Profile => similarity::profile(features, columns),
            Told::Kernel { features: with_features, labels } => {
                let mut out = if with_features { similarity::moments(features, columns) } else { Vec::new() };
                if labels {
                    let labels = data.targets().iter().map(|label| *label as usize);
                    out.extend(similarity::histogram(labels, self.settings.classes));
                }
                out
            }
        }
    }
}

/// What a record says of itself where only noisy sums may leave: features as they are, and which label it has.
fn record(told: Told, data: &Dataset, i: usize, out: &mut [f64]) {
    let Told::Kernel { features, labels } = told else { return };
    let columns = data.columns();
    if features {
        out[..columns].copy_from_slice(data.row(i));
    }
    if labels {
        let from = if features { columns } else { 0 };
        if let Some(share) = out.get_mut(from + data.targets()[i] as usize) {
            *share = 1.0;
        }
    }
}
