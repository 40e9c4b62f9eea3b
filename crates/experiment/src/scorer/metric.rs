//! What can be measured, and how it is shown.

use fedkin_core::numeric::{decibel, log10};

/// What is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Metric {
    /// Squared distance to the true model over its squared norm, equation (50) of the PGFL paper.
    Nmsd,
    /// The same against a least-squares model of the cluster's pooled test data, (19) of GFedMtl.
    Reference,
    /// Squared distance to the true model over the number of coordinates, (13) of the `PersFL` paper by d.
    Msd,
    /// log10 of the same for each client: its mean weighs a client that is a hundred times nearer as two steps.
    LogMsd,
    /// Distance to the true model.
    Distance,
    /// Mean squared error on the client's test records.
    Mse,
    /// Share of right labels on the client's test records.
    Accuracy,
    /// Mean loss on the client's test records.
    LogLoss,
    /// Mean squared error of the probabilities on the client's test records.
    Brier,
    /// Expected calibration error on the client's test records, in ten bins of equal width.
    Calibration,
    /// Mean loss on the client's training records, where there are no others.
    TrainLoss,
    /// Share of right labels on the client's training records: what settings may be chosen by.
    TrainAccuracy,
    /// Share of right labels on the public hold-out, or on the test records of all clients.
    GlobalAccuracy,
    /// Mean loss on the same records.
    GlobalLogLoss,
    /// Share of right labels on the client's validation records.
    ValidationAccuracy,
    /// Mean loss on the client's validation records.
    ValidationLogLoss,
    /// Accuracy on the client's test records in the evaluated round of its least validation loss.
    StoppedAccuracy,
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
    /// As log10, lower is better; averaged before the logarithm is taken.
    Log10,
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
            Metric::Msd => "msd",
            Metric::LogMsd => "log_msd",
            Metric::Distance => "distance",
            Metric::Mse => "mse",
            Metric::Accuracy => "accuracy",
            Metric::LogLoss => "log_loss",
            Metric::Brier => "brier",
            Metric::Calibration => "calibration",
            Metric::TrainLoss => "train_loss",
            Metric::TrainAccuracy => "train_accuracy",
            Metric::GlobalAccuracy => "global_accuracy",
            Metric::GlobalLogLoss => "global_log_loss",
            Metric::ValidationAccuracy => "validation_accuracy",
            Metric::ValidationLogLoss => "validation_log_loss",
            Metric::StoppedAccuracy => "stopped_accuracy",
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

    pub(super) const ALL: [Metric; 25] = [
        Metric::Nmsd,
        Metric::Reference,
        Metric::Msd,
        Metric::LogMsd,
        Metric::Distance,
        Metric::Mse,
        Metric::Accuracy,
        Metric::LogLoss,
        Metric::Brier,
        Metric::Calibration,
        Metric::TrainLoss,
        Metric::TrainAccuracy,
        Metric::GlobalAccuracy,
        Metric::GlobalLogLoss,
        Metric::ValidationAccuracy,
        Metric::ValidationLogLoss,
        Metric::StoppedAccuracy,
        Metric::Mcc,
        Metric::RelativeError,
        Metric::ScaledError,
        Metric::Nmi,
        Metric::Rand,
        Metric::Fmi,
        Metric::HeldOut,
        Metric::Density,
    ];

    /// The metric that a column or a headline names.
    pub(super) fn named(column: &str) -> Option<Metric> {
        let name = column.split('.').next().unwrap_or_default();
        Metric::ALL.into_iter().find(|metric| metric.name() == name)
    }

    /// Whether it is taken only where the headline asks for it: beside others it would say the same in other units,
    /// or cost a look at every training record.
    pub(super) fn on_demand(self) -> bool {
        matches!(self, Metric::TrainAccuracy | Metric::Msd | Metric::LogMsd | Metric::Distance)
    }

    /// Whether it needs the true model.
    pub(super) fn of_truth(self) -> bool {
        matches!(self, Metric::Nmsd | Metric::Msd | Metric::LogMsd | Metric::Distance)
    }

    /// Whether it is measured on the probabilities that a client's model gives: of these the spread over clients is shown.
    pub(crate) fn of_probabilities(column: &str) -> bool {
        matches!(
            Metric::named(column),
            Some(
                Metric::Accuracy
                    | Metric::LogLoss
                    | Metric::Brier
                    | Metric::Calibration
                    | Metric::TrainAccuracy
                    | Metric::GlobalAccuracy
                    | Metric::GlobalLogLoss
                    | Metric::ValidationAccuracy
                    | Metric::ValidationLogLoss
                    | Metric::StoppedAccuracy
            )
        )
    }

    /// How the metric of a column is shown.
    pub fn shown(column: &str) -> Shown {
        let name = column.split('.').next().unwrap_or_default();
        match name {
            "snr" => return Shown::Gain,
            "found" => return Shown::Percent,
            "clusters" => return Shown::Neutral,
            _ => {}
        }
        match Metric::named(name) {
            Some(Metric::Nmsd | Metric::Reference) => Shown::Decibel,
            Some(Metric::Msd) => Shown::Log10,
            Some(
                Metric::Accuracy
                | Metric::TrainAccuracy
                | Metric::GlobalAccuracy
                | Metric::ValidationAccuracy
                | Metric::StoppedAccuracy,
            ) => Shown::Percent,
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
            Shown::Log10 => log10(mean),
            Shown::Percent => 100.0 * mean,
            Shown::Plain | Shown::Score | Shown::Neutral => mean,
        }
    }

    /// Its standard error as it is shown, to first order.
    pub fn error(self, mean: f64, error: f64) -> f64 {
        match self {
            Shown::Decibel | Shown::Gain => 10.0 / std::f64::consts::LN_10 * error / mean,
            Shown::Log10 => error / mean / std::f64::consts::LN_10,
            Shown::Percent => 100.0 * error,
            Shown::Plain | Shown::Score | Shown::Neutral => error,
        }
    }

    /// The unit, if there is one.
    pub fn unit(self) -> &'static str {
        match self {
            Shown::Decibel | Shown::Gain => "dB",
            Shown::Log10 => "log10",
            Shown::Percent => "%",
            Shown::Plain | Shown::Score | Shown::Neutral => "",
        }
    }

    /// Whether more is better.
    pub fn higher_is_better(self) -> bool {
        matches!(self, Shown::Percent | Shown::Gain | Shown::Score)
    }
}
