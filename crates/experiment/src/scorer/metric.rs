//! What can be measured, and how it is shown.

use fedkin_core::numeric::decibel;

/// What is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Metric {
    /// Squared distance to the true model over its squared norm, equation (50) of the PGFL paper.
    Nmsd,
    /// The same against a least-squares model of the cluster's pooled test data, (19) of GFedMtl.
    Reference,
    /// Mean squared error on the client's test records.
    Mse,
    /// Share of right labels on the client's test records.
    Accuracy,
    /// Mean loss on the client's test records.
    LogLoss,
    /// Mean loss on the client's training records, where there are no others.
    TrainLoss,
    /// Share of right labels on the client's training records: what settings may be chosen by.
    TrainAccuracy,
    /// Matthews correlation of the edges with the true ones, (34) of the FedGL paper.
    Mcc,
    /// Relative error of the weights, (35).
    RelativeError,
    /// The same after the best common factor: what is left when the scale of a graph does not matter.
    ScaledError,
    /// Normalised mutual information of a graph's communities with the nodes' labels.
    Nmi,
    /// Rand index of the same.
    Rand,
    /// Fowlkes-Mallows index of the same.
    Fmi,
    /// The objective of a client's graph on records it was not learnt from.
    HeldOut,
    /// Share of pairs of nodes with an edge.
    Density,
}

/// How a metric is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shown {
    /// In decibels, lower is better; averaged before the logarithm is taken.
    Decibel,
    /// In decibels, higher is better.
    Gain,
    /// In percent, higher is better.
    Percent,
    /// As it is, lower is better.
    Plain,
    /// As it is, higher is better; 1 is perfect.
    Score,
    /// As it is; neither more nor less is better.
    Neutral,
}

impl Metric {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Metric::Nmsd => "nmsd",
            Metric::Reference => "reference",
            Metric::Mse => "mse",
            Metric::Accuracy => "accuracy",
            Metric::LogLoss => "log_loss",
            Metric::TrainLoss => "train_loss",
            Metric::TrainAccuracy => "train_accuracy",
            Metric::Mcc => "mcc",
            Metric::RelativeError => "relative_error",
            Metric::ScaledError => "scaled_error",
            Metric::Nmi => "nmi",
            Metric::Rand => "rand",
            Metric::Fmi => "fmi",
            Metric::HeldOut => "held_out",
            Metric::Density => "density",
        }
    }

    pub(super) const ALL: [Metric; 15] = [
        Metric::Nmsd,
        Metric::Reference,
        Metric::Mse,
        Metric::Accuracy,
        Metric::LogLoss,
        Metric::TrainLoss,
        Metric::TrainAccuracy,
        Metric::Mcc,
        Metric::RelativeError,
        Metric::ScaledError,
        Metric::Nmi,
        Metric::Rand,
        Metric::Fmi,
        Metric::HeldOut,
        Metric::Density,
    ];

    /// How the metric of a column is shown.
    pub fn shown(column: &str) -> Shown {
        let name = column.split('.').next().unwrap_or_default();
        if name == "snr" {
            return Shown::Gain;
        }
        match Metric::ALL.into_iter().find(|metric| metric.name() == name) {
            Some(Metric::Nmsd | Metric::Reference) => Shown::Decibel,
            Some(Metric::Accuracy | Metric::TrainAccuracy) => Shown::Percent,
            Some(Metric::Mcc | Metric::Nmi | Metric::Rand | Metric::Fmi) => Shown::Score,
            Some(Metric::Density) => Shown::Neutral,
            _ => Shown::Plain,
        }
    }
}

impl Shown {
    /// A mean as it is shown.
    pub fn value(self, mean: f64) -> f64 {
        match self {
            Shown::Decibel | Shown::Gain => decibel(mean),
            Shown::Percent => 100.0 * mean,
            Shown::Plain | Shown::Score | Shown::Neutral => mean,
        }
    }

    /// Its standard error as it is shown, to first order.
    pub fn error(self, mean: f64, error: f64) -> f64 {
        match self {
            Shown::Decibel | Shown::Gain => 10.0 / std::f64::consts::LN_10 * error / mean,
            Shown::Percent => 100.0 * error,
            Shown::Plain | Shown::Score | Shown::Neutral => error,
        }
    }

    /// The unit, if there is one.
    pub fn unit(self) -> &'static str {
        match self {
            Shown::Decibel | Shown::Gain => "dB",
            Shown::Percent => "%",
            Shown::Plain | Shown::Score | Shown::Neutral => "",
        }
    }

    /// Whether more is better.
    pub fn higher_is_better(self) -> bool {
        matches!(self, Shown::Percent | Shown::Gain | Shown::Score)
    }
}
