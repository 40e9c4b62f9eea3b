//! `fedkin privacy`: what noise costs, what a budget buys, and what a config will spend before it runs.

mod plan;
mod price;

use crate::failure::Failure;
use crate::output;
use clap::{Args, Subcommand, ValueEnum};
use fedkin::rooms::privacy::Neighbours;
use fedkin::rooms::run::Registry;
use serde::Serialize;
use std::path::PathBuf;

const SAMPLING: &str = "\
With --sampling every record is in a round's sample with that chance, independently, and nobody learns who was: a \
server that draws the sample itself, or sees it, gets no such discount. --sensitivity is then the clip, the largest \
norm of one record's contribution.";

/// What `fedkin privacy` can do.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Epsilon of Gaussian noise over some rounds
    #[command(after_help = SAMPLING)]
    Epsilon(Epsilon),
    /// The least Gaussian noise that keeps an epsilon over some rounds
    #[command(after_help = SAMPLING)]
    Sigma(Sigma),
    /// From two of zCDP, epsilon and delta to the third
    Convert(Convert),
    /// What a config will cost every client, before anything runs
    Plan(Planned),
}

/// What the releases have in common.
#[derive(Debug, Args)]
pub(crate) struct Releases {
    /// Number of releases
    #[arg(long, value_name = "N", default_value = "1", value_parser = clap::value_parser!(u64).range(1..=1_000_000_000_000))]
    rounds: u64,
    /// Chance of a record to be in the secret sample of a round
    #[arg(long, value_name = "RATE", allow_negative_numbers = true, value_parser = rate)]
    sampling: Option<f64>,
    /// Delta, the chance that the promise fails
    #[arg(long, value_name = "DELTA", allow_negative_numbers = true, value_parser = delta)]
    delta: f64,
    /// How far neighbouring data sets move what is released (L2); with --sampling, the clip of one record
    #[arg(long, value_name = "S", default_value = "1", allow_negative_numbers = true, value_parser = positive)]
    sensitivity: f64,
    /// How neighbouring data sets differ, with --sampling: a record is replaced, or is there or not
    /// [default: replace]
    #[arg(long, value_enum, requires = "sampling")]
    neighbours: Option<Relation>,
    /// Print one JSON object and nothing else
    #[arg(long)]
    json: bool,
}

/// `fedkin privacy epsilon`
#[derive(Debug, Args)]
pub(crate) struct Epsilon {
    /// Standard deviation of the noise per coordinate
    #[arg(long, value_name = "SIGMA", allow_negative_numbers = true, value_parser = positive)]
    sigma: f64,
    #[command(flatten)]
    releases: Releases,
}

/// `fedkin privacy sigma`
#[derive(Debug, Args)]
pub(crate) struct Sigma {
    /// Epsilon over all rounds
    #[arg(long, value_name = "EPSILON", allow_negative_numbers = true, value_parser = positive)]
    epsilon: f64,
    #[command(flatten)]
    releases: Releases,
}

/// `fedkin privacy convert`
#[derive(Debug, Args)]
pub(crate) struct Convert {
    /// zCDP (rho)
    #[arg(long, value_name = "RHO", allow_negative_numbers = true, value_parser = positive)]
    zcdp: Option<f64>,
    /// Epsilon
    #[arg(long, value_name = "EPSILON", allow_negative_numbers = true, value_parser = size)]
    epsilon: Option<f64>,
    /// Delta
    #[arg(long, value_name = "DELTA", allow_negative_numbers = true, value_parser = delta)]
    delta: Option<f64>,
    /// Every release is Gaussian: convert exactly instead of by the bound that holds for any mechanism
    #[arg(long)]
    gaussian: bool,
    /// Print one JSON object and nothing else
    #[arg(long)]
    json: bool,
}

/// `fedkin privacy plan`
#[derive(Debug, Args)]
pub(crate) struct Planned {
    /// The config
    file: PathBuf,
    /// Set a key of the config, such as privacy.budget=0.5; may be repeated
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// Print one JSON object and nothing else
    #[arg(long)]
    json: bool,
}

/// How neighbouring data sets differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Relation {
    /// One record is replaced by another
    Replace,
    /// One record is there or not
    AddRemove,
}

impl Relation {
    fn neighbours(self) -> Neighbours {
        match self {
            Self::Replace => Neighbours::Replace,
            Self::AddRemove => Neighbours::AddRemove,
        }
    }

    fn words(self) -> &'static str {
        match self {
            Self::Replace => "one record is replaced by another",
            Self::AddRemove => "one record is there or not",
        }
    }
}

fn number(text: &str) -> Result<f64, String> {
    match text.trim().parse::<f64>() {
        Ok(value) if value.is_finite() => Ok(value),
        _ => Err("not a finite number".into()),
    }
}

pub(crate) fn positive(text: &str) -> Result<f64, String> {
    number(text).and_then(|x| if x > 0.0 { Ok(x) } else { Err("must be above 0".into()) })
}

pub(crate) fn size(text: &str) -> Result<f64, String> {
    number(text).and_then(|x| if x >= 0.0 { Ok(x) } else { Err("must be 0 or above".into()) })
}

fn delta(text: &str) -> Result<f64, String> {
    let inside = |x: f64| {
        if x > 0.0 && x < 1.0 { Ok(x) } else { Err("must lie between 0 and 1, both left out".into()) }
    };
    number(text).and_then(inside)
}

fn rate(text: &str) -> Result<f64, String> {
    let inside =
        |x: f64| if (0.0..=1.0).contains(&x) { Ok(x) } else { Err("must lie between 0 and 1".into()) };
    number(text).and_then(inside)
}

/// Runs the command.
pub(crate) fn privacy(registry: &Registry, command: &Command) -> Result<(), Failure> {
    match command {
        Command::Epsilon(args) => {
            let priced = args.releases.priced(args.sigma);
            if args.releases.json { output::json(&priced) } else { output::say(&priced.text("epsilon")) }
        }
        Command::Sigma(args) => {
            let sigma = args.releases.sigma(args.epsilon);
            if !sigma.is_finite() {
                let text = "no finite noise keeps that epsilon at this delta: raise either";
                return Err(Failure::Usage(text.into()));
            }
            let priced = args.releases.priced(sigma);
            if args.releases.json { output::json(&priced) } else { output::say(&priced.text("sigma")) }
        }
        Command::Convert(args) => price::convert(args),
        Command::Plan(args) => plan::plan(registry, args),
    }
}

/// Four digits, never below the value.
fn above(value: f64) -> String {
    shown(value, f64::ceil)
}

/// Four digits, never above the value.
fn below(value: f64) -> String {
    shown(value, f64::floor)
}

fn shown(value: f64, round: fn(f64) -> f64) -> String {
    if value <= 0.0 || !value.is_finite() {
        return value.to_string();
    }
    let digits = 3 - value.log10().floor() as i32;
    let text = |value: f64| {
        if (1e-4..1e7).contains(&value) {
            format!("{value:.*}", digits.max(0) as usize)
        } else {
            format!("{value:.3e}")
        }
    };
    // 4 is shown as 4.000, not as 4.001: what the last bits say is not worth a digit.
    let scale = 10f64.powi(digits);
    let nearest = (value * scale).round();
    let whole = if (value * scale - nearest).abs() < 1e-9 * nearest { nearest } else { round(value * scale) };
    text(whole / scale)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shown_numbers_err_on_the_safe_side() {
        assert_eq!((above(0.926_31), below(0.926_39)), ("0.9264".into(), "0.9263".into()));
        assert_eq!(
            (above(4.0 + 1e-12), above(10.531), below(1.0 / 3.0)),
            ("4.000".into(), "10.54".into(), "0.3333".into())
        );
        assert_eq!(
            (above(0.0), above(1e-9), above(123_456.7)),
            ("0".into(), "1.000e-9".into(), "123500".into())
        );
    }

    #[test]
    fn ranges_are_checked() {
        assert!(delta("1e-5").is_ok() && delta("0").is_err() && delta("1").is_err() && delta("nan").is_err());
        assert!(rate("0").is_ok() && rate("1").is_ok() && rate("1.01").is_err() && rate("-0.1").is_err());
        assert!(
            positive("0").is_err() && positive("inf").is_err() && positive("x").is_err() && size("0").is_ok()
        );
    }
}
