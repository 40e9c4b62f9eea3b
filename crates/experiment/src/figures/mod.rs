//! From results to a report: which figures, under which titles, and the files they are written to.

mod comparison;
pub(crate) mod graphs;
mod privacy;
mod run;

pub(crate) use comparison::drawn;
pub use comparison::{by_client, table, tuning};
pub(crate) use run::of_run;

use crate::artifacts::{ArtifactError, atomic};
use crate::compare::Comparison;
use crate::error::Error;
use crate::plan::Plan;
use crate::report::{Better, Privacy, Report, ServerGraph, ServerNode, Stacks, png};
use crate::run::{PrivacySummary, make_folder};
use crate::scorer::{Metric, Shown};
use fedkin_core::privacy::Sampler;
use fedkin_data::World;
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
    let report: Report = serde_json::from_slice(&bytes)
        .map_err(|error| ArtifactError::Damaged { path, what: error.to_string() })?;
    write(directory, &report)
}

/// Writes the report of a comparison.
pub fn report_comparison(comparison: &Comparison) -> Result<PathBuf, Error> {
    write(&comparison.run, &comparison::of_comparison(comparison))
}

/// Clients whose labels are drawn, at most.
const MOST_LABELLED: usize = 400;

/// Records of each client by label, where models tell classes apart.
pub(crate) fn labels(plan: &Plan, world: &World) -> Option<Stacks> {
    if plan.row.graphs || !crate::by_client::wanted(plan) || world.train.len() > MOST_LABELLED {
        return None;
    }
    let counts = world.label_counts()?;
    Some(Stacks {
        title: "Which labels has each client?".into(),
        label: "records".into(),
        parts: counts.classes.clone(),
        rows: counts.clients.iter().map(|client| (client.name.clone(), client.all())).collect(),
        caption:
            "Records of each client by label in the first repeat: training, validation and test together."
                .into(),
    })
}

/// The servers with the clusters of their clients.
pub(crate) fn server_graph(world: &World) -> ServerGraph {
    let federation = &world.federation;
    let mut servers: Vec<ServerNode> = federation
        .server_names()
        .iter()
        .map(|name| ServerNode { name: name.clone(), clusters: vec![0; federation.clusters()] })
        .collect();
    for member in federation.members() {
        servers[member.server as usize].clusters[member.cluster as usize] += 1;
    }
    ServerGraph {
        servers,
        edges: federation.topology().edges().map(|(a, b)| (a as usize, b as usize)).collect(),
        clusters: federation.cluster_names().to_vec(),
        positions: None,
    }
}

fn words(metric: &str) -> (&'static str, &'static str) {
    match metric.split('.').next().unwrap_or_default() {
        "nmsd" => ("NMSD", "Which models come closest to the truth?"),
        "reference" => ("test MSE (19)", "Which models come closest to those of the pooled test data?"),
        "msd" => ("squared error per coordinate", "Which models come closest to the truth?"),
        "log_msd" => {
            ("mean log10 of the squared error per coordinate", "Which models come closest to the truth?")
        }
        "distance" => ("distance to the truth", "Which models come closest to the truth?"),
        "accuracy" => ("test accuracy", "Which models tell the classes apart on new records?"),
        "global_accuracy" => {
            ("accuracy on all clients' records", "Which models tell the classes apart on anybody's records?")
        }
        "global_log_loss" => (
            "log loss on all clients' records",
            "Which models give the best probabilities on anybody's records?",
        ),
        "validation_accuracy" => {
            ("validation accuracy", "How many of the records that were set aside do the models get right?")
        }
        "validation_log_loss" => {
            ("validation log loss", "How well do the models fit the records that were set aside?")
        }
        "stopped_accuracy" => {
            ("test accuracy, stopped early", "What if every client stopped at its least validation loss?")
        }
        "mse" => ("test error", "Which models predict new records best?"),
        "train_accuracy" => ("training accuracy", "How many of their own records do the models get right?"),
        "mcc" => ("MCC", "Which graphs have the right edges?"),
        "relative_error" => ("relative error", "Whose weights are closest to the true ones?"),
        "scaled_error" => ("scale-free relative error", "Whose weights are closest, up to a common factor?"),
        "nmi" => ("NMI", "Do the communities of the graphs match the labels?"),
        "rand" => ("Rand index", "How many pairs of nodes are divided as the labels divide them?"),
        "fmi" => ("Fowlkes-Mallows index", "How many pairs of nodes are kept together as by the labels?"),
        "held_out" => ("held-out objective", "Which graphs fit new signals best?"),
        "density" => ("edge density", "How many pairs of nodes have an edge?"),
        "brier" => ("Brier score", "Whose probabilities are closest to what happened?"),
        "calibration" => ("calibration error", "Whose probabilities mean what they say?"),
        "found" => ("found", "How many clients are in the right cluster?"),
        "clusters" => ("clusters", "How many clusters were found?"),
        "merged" => ("merged clusters", "How many found clusters hold two true ones?"),
        "log_loss" => ("test log loss", "Which models give the best probabilities on new records?"),
        _ => ("training loss", "How well do the models fit their own records?"),
    }
}

pub(crate) fn axis(metric: &str) -> String {
    let (name, _) = words(metric);
    let unit = Metric::shown(metric).unit();
    if unit.is_empty() { name.to_string() } else { format!("{name} ({unit})") }
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

fn facts(config: &crate::config::Config) -> Vec<(String, String)> {
    vec![
        ("seed".to_string(), config.run.seed.to_string()),
        ("rounds".to_string(), config.run.rounds.to_string()),
        ("repeats".to_string(), config.run.repeats.to_string()),
        ("data".to_string(), config.data_source.clone()),
        ("model".to_string(), config.model_kind.clone()),
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
