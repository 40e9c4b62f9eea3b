//! How a metric is shown: its unit, and which way is better.

use fedkin_numeric::{decibel, log10};

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
