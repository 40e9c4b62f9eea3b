//! From results to a report: which figures, under which titles, and the files they are written to.

mod by_client;
mod comparison;
mod privacy;
mod run;

pub(crate) use comparison::drawn;
pub use comparison::{clients, table, tuning};
pub(crate) use run::of_run;

use crate::compare::Comparison;
use fedkin_measure::Shown;
use fedkin_privacy::Sampler;
use fedkin_report::{Better, Privacy, Report, png};
use fedkin_run::artifacts::{ArtifactError, atomic, make_folder};
use fedkin_run::{Error, PrivacySummary, Registry};
use std::fs;
use std::path::{Path, PathBuf};

const DATA: &str = "report.json";
const PNG_WIDTH: u32 = 1200;

/// Writes `report.html`, the figures as SVG and PNG, and the data they are drawn from.
pub(crate) fn write(directory: &Path, report: &Report) -> Result<PathBuf, Error> {
    let data = serde_json::to_vec(report).map_err(|error| Error::Usage(error.to_string()))?;
    atomic::write(&directory.join(DATA), &data)?;
    let folder = directory.join("figures");
    make_folder(&folder)?;
    for figure in report.figures() {
        atomic::write(&folder.join(format!("{}.svg", figure.id)), figure.svg.as_bytes())?;
        let image = png(&figure.svg, PNG_WIDTH).map_err(Error::Usage)?;
        atomic::write(&folder.join(format!("{}.png", figure.id)), &image)?;
    }
    let page = directory.join("report.html");
    atomic::write(&page, report.html().as_bytes())?;
    Ok(page)
}

/// Draws the report of a complete run or comparison again.
pub fn report_run(directory: &Path) -> Result<PathBuf, Error> {
    let path = directory.join(DATA);
    let bytes = fs::read(&path).map_err(|source| match source.kind() {
        std::io::ErrorKind::NotFound => {
            Error::Usage(format!("{} holds no complete run: run it first", directory.display()))
        }
        _ => ArtifactError::File { action: "read", path: path.clone(), source }.into(),
    })?;
    let mut report: Report = serde_json::from_slice(&bytes)
        .map_err(|error| ArtifactError::Damaged { path, what: error.to_string() })?;
    if report.colours.is_empty() {
        // A report of an earlier version, which had these colours.
        report.colours = Registry::native().colours();
    }
    write(directory, &report)
}

/// Writes the report of a comparison.
pub fn report_comparison(comparison: &Comparison) -> Result<PathBuf, Error> {
    write(&comparison.run, &comparison::of_comparison(comparison))
}

/// Which way a metric is better, if either is.
pub(crate) fn better(shown: Shown) -> Option<Better> {
    match shown {
        Shown::Neutral => None,
        _ if shown.higher_is_better() => Some(Better::Higher),
        _ => Some(Better::Lower),
    }
}

fn model_name(metric: &str) -> &str {
    metric.split_once('.').map_or("", |(_, model)| model)
}

/// The kind of model, and beside it those of other learners, each with its name.
fn fitted(config: &fedkin_config::Config) -> String {
    let tables = config.learners.iter().map(|(name, table)| format!("{name}: {}", table.kind));
    std::iter::once(config.model_kind.clone()).chain(tables).collect::<Vec<_>>().join(", ")
}

fn facts(config: &fedkin_config::Config) -> Vec<(String, String)> {
    vec![
        ("seed".to_string(), config.run.seed.to_string()),
        ("rounds".to_string(), config.run.rounds.to_string()),
        ("repeats".to_string(), config.run.repeats.to_string()),
        ("data".to_string(), config.data_source.clone()),
        ("model".to_string(), fitted(config)),
        ("version".to_string(), env!("CARGO_PKG_VERSION").to_string()),
    ]
}

fn privacy_box(privacy: &PrivacySummary) -> Privacy {
    let sampled = !privacy.sampled.is_empty();
    let exact = privacy.epsilon_gaussian.map(|epsilon| {
        let or = if sampled { " or Renyi divergences" } else { "" };
        (format!("epsilon by exact Gaussian composition{or}"), format!("{epsilon:.2} (largest client)"))
    });
    let draws = privacy.sampled.iter().map(|draws| {
        ("sampled releases".to_string(), format!("{}; zCDP counts them as if unsampled", draws.words()))
    });
    let refused = privacy.refused_from.map(|from| {
        ("Clients that refused".to_string(), format!("{}, from round {from} on", privacy.refused_clients))
    });
    let ledger = privacy.ledger.as_ref().map(|ledger| {
        let text =
            format!("{} on the same data, zCDP {:.4} before this one", ledger.runs, ledger.zcdp_before);
        ("Runs in the ledger".to_string(), text)
    });
    Privacy {
        mechanism: match privacy.sampler.as_str() {
            "" => privacy.mechanism.clone(),
            sampler => format!("{}, {sampler}", privacy.mechanism),
        },
        bound: privacy.bound.clone(),
        delta: privacy.delta,
        largest_epsilon: privacy.epsilon.unwrap_or(f64::INFINITY),
        mean_epsilon: privacy.mean_epsilon.unwrap_or(f64::INFINITY),
        largest_zcdp: privacy.zcdp,
        mean_zcdp: privacy.mean_zcdp,
        releases: privacy.releases,
        simulation: if privacy.sampler == Sampler::Float.name() {
            "the noise is drawn in floating point, whose gaps leak; a client host draws whole numbers"
                .to_string()
        } else {
            String::new()
        },
        rows: exact.into_iter().chain(draws).chain(refused).chain(ledger).collect(),
    }
}
