//! What clients tell besides their models: statistics of their records for the graph, losses of others' models.

use super::settings::{SetupStatistics, Source};
use super::{FedPnp, Up};
use crate::algorithm::Ask;
use fedkin_graph::similarity;
use fedkin_learner::{Dataset, Learner};
use fedkin_numeric::buffers::Buffers;
use fedkin_privacy::{Gate, Refusal, Released};

/// What a loss that is not finite is told as.
const HOPELESS: f64 = 1e12;

impl FedPnp {
    /// The answer to the set-up: statistics as they are, or a noisy sum over records.
    pub(super) fn statistics<'g>(
        &self,
        data: &Dataset,
        gate: &mut Gate<'g>,
    ) -> Result<Released<'g, (Vec<f64>, Up)>, Refusal> {
        let training = &self.settings.training;
        let Source::SetupStatistics(told) = self.settings.source else { return Err(Refusal::Unsolved) };
        if !training.is_private() {
            let told = gate.disclose("statistics", Up { told: self.tell(told, data), ..Up::default() })?;
            return Ok(gate.nothing::<Vec<f64>>().zip(told));
        }
        let SetupStatistics::Kernel { features, labels } = told else { return Err(Refusal::NoMechanism) };
        let length = usize::from(features) * data.columns() + usize::from(labels) * self.settings.classes;
        let sum = training.sum(length).ok_or(Refusal::NoMechanism)?;
        let noisy = gate.sampled("statistics", &sum, data.rows(), |i, out| record(told, data, i, out))?;
        Ok(noisy.zip(gate.nothing()))
    }

    /// The answer to a probe: the loss of every client's model on the records here.
    pub(super) fn losses<'g>(
        learner: &dyn Learner,
        ask: &Ask<'_, Self>,
        gate: &mut Gate<'g>,
        buffers: &mut Buffers,
    ) -> Result<Released<'g, (Vec<f64>, Up)>, Refusal> {
        let mut told = Vec::with_capacity(ask.common().models.len());
        for model in &ask.common().models {
            let loss = learner.value(model, buffers)?;
            told.push(if loss.is_finite() { loss } else { HOPELESS });
        }
        let told = gate.disclose("losses", Up { told, ..Up::default() })?;
        Ok(gate.nothing::<Vec<f64>>().zip(told))
    }

    /// What a client tells of its records where nothing is private.
    fn tell(&self, told: SetupStatistics, data: &Dataset) -> Vec<f64> {
        let (features, columns) = (data.features(), data.columns());
        match told {
            SetupStatistics::Printed => similarity::moments(features, columns),
            SetupStatistics::Profile => similarity::profile(features, columns),
            SetupStatistics::Kernel { features: with_features, labels } => {
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
fn record(told: SetupStatistics, data: &Dataset, i: usize, out: &mut [f64]) {
    let SetupStatistics::Kernel { features, labels } = told else { return };
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
