//! From results to a report: which figures, under which titles, and the files they are written to.

use crate::artifacts::metrics::Metrics;
use crate::artifacts::{ArtifactError, atomic};
use crate::compare::{Comparison, CurveResult};
use crate::error::Error;
use crate::plan::Plan;
use crate::repeat::Outcome;
use crate::report::{
    Better, Chart, Claim, Column, Distribution, Estimate, Point, Privacy, Report, Row, Scale, Series,
    ServerGraph, ServerNode, Table, png,
};
use crate::run::{Finished, PrivacySummary, make_folder};
use crate::scorer::{Metric, Shown};
use crate::statistics::estimate;
use fedkin_core::privacy::Line;
use fedkin_data::World;
use std::collections::BTreeMap;
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
    write(&comparison.run, &of_comparison(comparison))
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
        "accuracy" => ("test accuracy", "Which models tell the classes apart on new records?"),
        "mse" => ("test error", "Which models predict new records best?"),
        "train_accuracy" => ("training accuracy", "How many of their own records do the models get right?"),
        "log_loss" => ("test log loss", "Which models give the best probabilities on new records?"),
        _ => ("training loss", "How well do the models fit their own records?"),
    }
}

fn axis(metric: &str) -> String {
    let (name, _) = words(metric);
    let unit = Metric::shown(metric).unit();
    if unit.is_empty() { name.to_string() } else { format!("{name} ({unit})") }
}

fn model_name(metric: &str) -> &str {
    metric.split_once('.').map_or("", |(_, model)| model)
}

/// The table of a comparison: curves in rows and the headline metric on every model in columns; for a sweep,
/// its values in rows and the curves in columns.
pub fn table(comparison: &Comparison) -> Table {
    if comparison.config.sweep.is_some() {
        return sweep_table(comparison);
    }
    let family = comparison.metric.split('.').next().unwrap_or_default();
    let mut columns: Vec<String> = comparison
        .curves
        .iter()
        .flat_map(|curve| curve.r#final.keys())
        .filter(|name| name.split('.').next() == Some(family) && name.contains('.'))
        // The participants of the last round alone say little in a table.
        .filter(|name| model_name(name) != "active")
        .cloned()
        .collect();
    // The headline first, the others by name.
    columns.sort_by_key(|name| (*name != comparison.metric, name.clone()));
    columns.dedup();
    let better = if comparison.shown.higher_is_better() { Better::Higher } else { Better::Lower };
    let baseline = |curve: &CurveResult| curve.method == "local" || curve.method == "gfl";
    Table {
        caption: format!(
            "{} after the last round, mean ± standard error over {} repeats",
            axis(&comparison.metric),
            comparison.repeats
        ),
        columns: columns
            .iter()
            .map(|name| Column {
                name: format!("{} model", model_name(name)),
                unit: comparison.unit.to_string(),
                better: Some(better),
            })
            .collect(),
        rows: comparison
            .curves
            .iter()
            .map(|curve| Row {
                label: curve.label.clone(),
                baseline: baseline(curve),
                cells: columns
                    .iter()
                    .map(|name| curve.r#final.get(name).map(|p| Estimate { mean: p.mean, stderr: p.stderr }))
                    .collect(),
            })
            .collect(),
    }
}

fn sweep_table(comparison: &Comparison) -> Table {
    let better = if comparison.shown.higher_is_better() { Better::Higher } else { Better::Lower };
    let column = |curve: &CurveResult| Column {
        name: curve.label.clone(),
        unit: comparison.unit.to_string(),
        better: Some(better),
    };
    let values = comparison.curves.first().map_or(&[][..], |curve| curve.points.as_slice());
    let cell = |curve: &CurveResult, i: usize| {
        curve.points.get(i).map(|point| Estimate { mean: point.mean, stderr: point.stderr })
    };
    Table {
        caption: format!(
            "{} over {}, mean ± standard error over {} repeats",
            axis(&comparison.metric),
            comparison.x,
            comparison.repeats
        ),
        columns: comparison.curves.iter().map(column).collect(),
        rows: values
            .iter()
            .enumerate()
            .map(|(i, point)| Row {
                label: format!("{} = {}", comparison.x, point.x),
                baseline: false,
                cells: comparison.curves.iter().map(|curve| cell(curve, i)).collect(),
            })
            .collect(),
    }
}

fn of_comparison(comparison: &Comparison) -> Report {
    let config = &comparison.config;
    let sweep = config.sweep.as_ref();
    let series = comparison
        .curves
        .iter()
        .map(|curve| Series {
            label: curve.label.clone(),
            method: curve.method.clone(),
            points: curve.points.clone(),
            dashed: matches!(curve.method.as_str(), "local" | "centralized"),
        })
        .collect();
    let (_, question) = words(&comparison.metric);
    let logarithmic = sweep.is_some_and(|_| {
        let x: Vec<f64> = comparison.curves[0].points.iter().map(|point| point.x).collect();
        let (least, most) = x.iter().fold((f64::MAX, f64::MIN), |(a, b), x| (a.min(*x), b.max(*x)));
        least > 0.0 && most / least > 50.0
    });
    let chart = Chart {
        id: comparison.name.clone(),
        title: match sweep {
            Some(sweep) => format!("How much does {} matter?", sweep.key),
            None => question.to_string(),
        },
        x_label: if sweep.is_some() { comparison.x.clone() } else { "round".into() },
        y_label: axis(&comparison.metric),
        x_scale: if logarithmic { Scale::Log } else { Scale::Linear },
        y_scale: Scale::Linear,
        series,
        caption: format!("{} of the {} model.", words(&comparison.metric).0, model_name(&comparison.metric)),
    };
    let groups: Vec<(String, String, Vec<f64>)> = comparison
        .curves
        .iter()
        .filter(|curve| !curve.clients.is_empty() && sweep.is_none())
        .map(|curve| {
            let shown = curve.clients.iter().map(|value| comparison.shown.value(*value)).collect();
            (curve.label.clone(), curve.method.clone(), shown)
        })
        .collect();
    let distributions = if groups.is_empty() {
        Vec::new()
    } else {
        vec![Distribution {
            id: "clients".into(),
            title: "How is it for each client?".into(),
            x_label: format!("{} of each client, first repeat", axis(&comparison.metric)),
            groups,
        }]
    };
    let spent = comparison
        .curves
        .iter()
        .map(|curve| &curve.privacy)
        .max_by(|a, b| a.zcdp.total_cmp(&b.zcdp))
        .filter(|privacy| privacy.epsilon.is_some());
    let mut facts = facts(config);
    facts.push(("seconds".into(), format!("{:.1}", comparison.seconds)));
    let mut charts = vec![chart];
    charts.extend(comparison.theory.charts.iter().cloned());
    let mut notes = comparison.warnings.clone();
    notes.extend(comparison.theory.notes.iter().cloned());
    let title = config.paper.as_ref().map_or_else(|| comparison.name.clone(), |paper| paper.title.clone());
    Report {
        title,
        lead: lead(comparison),
        facts,
        claims: comparison
            .claims
            .iter()
            .map(|claim| Claim {
                text: claim.text.clone(),
                verdict: claim.verdict,
                evidence: claim.evidence.clone(),
            })
            .collect(),
        table: Some(table(comparison)),
        charts,
        distributions,
        graph: comparison.graph.clone(),
        privacy: spent.map(privacy_box),
        notes,
        config: config.resolved(),
    }
}

/// Who came out best, by how much over the next.
fn lead(comparison: &Comparison) -> String {
    let shown = comparison.shown;
    let sign = if shown.higher_is_better() { -1.0 } else { 1.0 };
    let mut ends: Vec<(&str, f64)> = comparison
        .curves
        .iter()
        .filter_map(|curve| curve.points.last().map(|point| (curve.label.as_str(), point.mean)))
        .collect();
    ends.sort_by(|a, b| (sign * a.1).total_cmp(&(sign * b.1)));
    let unit = comparison.unit;
    let all: Vec<String> = ends.iter().map(|(label, value)| format!("{label} {value:.2} {unit}")).collect();
    let source = comparison.config.paper.as_ref().and_then(|paper| paper.source.as_ref());
    format!(
        "{}{} repeats with seeds of their own; every curve sees the same data, graph and participants. \
         At the end, best first: {}.",
        source.map(|source| format!("Source: {source}. ")).unwrap_or_default(),
        comparison.repeats,
        all.join(", ")
    )
}

fn facts(config: &crate::config::Config) -> Vec<(String, String)> {
    let get = |name: &str| config.run.get(name).map(ToString::to_string).unwrap_or_default();
    vec![
        ("seed".to_string(), get("seed")),
        ("rounds".to_string(), get("rounds")),
        ("repeats".to_string(), get("repeats")),
        ("data".to_string(), config.data_source.clone()),
        ("model".to_string(), config.model.text("kind").unwrap_or("ridge").to_string()),
        ("version".to_string(), env!("CARGO_PKG_VERSION").to_string()),
    ]
}

fn privacy_box(privacy: &PrivacySummary) -> Privacy {
    let exact = privacy.epsilon_gaussian.map(|epsilon| {
        ("epsilon by exact Gaussian composition".to_string(), format!("{epsilon:.2} (largest client)"))
    });
    Privacy {
        mechanism: privacy.mechanism.clone(),
        bound: privacy.bound.clone(),
        delta: privacy.delta,
        largest_epsilon: privacy.epsilon.unwrap_or(f64::INFINITY),
        mean_epsilon: privacy.mean_epsilon.unwrap_or(f64::INFINITY),
        largest_zcdp: privacy.zcdp,
        mean_zcdp: privacy.mean_zcdp,
        releases: privacy.releases,
        rows: exact.into_iter().collect(),
    }
}

/// The report of one run.
pub(crate) fn of_run(
    plan: &Plan,
    finished: &Finished,
    metrics: &Metrics,
    outcome: &Outcome,
    world: &World,
) -> Report {
    let mut families: BTreeMap<&str, BTreeMap<&str, BTreeMap<u32, Vec<f64>>>> = BTreeMap::new();
    for row in metrics.rows().filter(|row| row.node.is_empty()) {
        if let Some((family, model)) = row.metric.split_once('.') {
            let rounds = families.entry(family).or_default().entry(model).or_default();
            rounds.entry(row.round).or_default().push(row.value);
        }
    }
    let mut charts = Vec::new();
    let mut distributions = Vec::new();
    for (family, models) in &families {
        let shown = Metric::shown(family);
        let series = models
            .iter()
            .map(|(model, rounds)| Series {
                label: format!("{model} model"),
                method: (*model).to_string(),
                points: rounds
                    .iter()
                    .map(|(round, values)| {
                        let Estimate { mean, stderr } = estimate(values, shown);
                        Point { x: f64::from(*round), mean, stderr }
                    })
                    .collect(),
                dashed: false,
            })
            .collect();
        charts.push(Chart {
            id: (*family).to_string(),
            title: words(family).1.to_string(),
            x_label: "round".into(),
            y_label: axis(family),
            x_scale: Scale::Linear,
            y_scale: Scale::Linear,
            series,
            caption: "client: what each client computed last; served: what it would get now; averaged: a running mean of that; active: clients of this round only.".into(),
        });
        let groups: Vec<(String, String, Vec<f64>)> = outcome
            .columns
            .iter()
            .enumerate()
            .filter(|(_, name)| name.split('.').next() == Some(family) && !name.ends_with(".active"))
            .map(|(c, name)| {
                let values =
                    outcome.rows.iter().map(|row| shown.value(row[c])).filter(|x| x.is_finite()).collect();
                (format!("{} model", model_name(name)), model_name(name).to_string(), values)
            })
            .filter(|(_, _, values): &(_, _, Vec<f64>)| !values.is_empty())
            .collect();
        if !groups.is_empty() {
            distributions.push(Distribution {
                id: format!("{family}-clients"),
                title: "How is it for each client?".into(),
                x_label: format!("{} of each client after the last round", axis(family)),
                groups,
            });
        }
    }
    let noise = noise_chart(&outcome.ledger);
    charts.extend(noise);
    let [clients, servers, clusters] = finished.size;
    let mut facts = facts(&plan.config);
    facts.extend([
        ("algorithm".to_string(), plan.row.name.to_string()),
        ("clients".to_string(), clients.to_string()),
        ("servers".to_string(), servers.to_string()),
        ("clusters".to_string(), clusters.to_string()),
        ("seconds".to_string(), format!("{:.1}", finished.seconds)),
        ("models_sha256".to_string(), finished.models_sha256.clone()),
    ]);
    let mut notes = finished.warnings.clone();
    if finished.privacy.epsilon.is_none() {
        notes.push(
            "No mechanism protects the uploads: the models that left the clients are not private.".into(),
        );
    }
    Report {
        title: plan.name().to_string(),
        lead: format!(
            "{}: {} clients at {} servers in {} clusters, {} rounds. {}.",
            plan.row.name, clients, servers, clusters, finished.rounds, plan.row.summary
        ),
        facts,
        claims: Vec::new(),
        table: Some(run_table(finished)),
        charts,
        distributions,
        graph: Some(server_graph(world)),
        privacy: finished.privacy.epsilon.map(|_| privacy_box(&finished.privacy)),
        notes,
        config: plan.config.resolved(),
    }
}

/// Metrics in rows of one run: what each model reached.
fn run_table(finished: &Finished) -> Table {
    let mut families: Vec<&str> = Vec::new();
    let mut models: Vec<&str> = Vec::new();
    for name in finished.r#final.keys() {
        if let Some((family, model)) = name.split_once('.')
            && !family.ends_with("_db")
        {
            families.push(family);
            models.push(model);
        }
    }
    families.sort_unstable();
    families.dedup();
    models.sort_unstable();
    models.dedup();
    let cell = |model: &str, family: &str| {
        let shown = Metric::shown(family);
        let name = if shown == Shown::Decibel {
            format!("{family}_db.{model}")
        } else {
            format!("{family}.{model}")
        };
        let factor = if shown == Shown::Percent { 100.0 } else { 1.0 };
        finished.r#final.get(&name).map(|mean| Estimate {
            mean: factor * mean,
            stderr: finished.stderr.get(&name).map(|error| factor * error),
        })
    };
    Table {
        caption: format!("After round {}", finished.rounds),
        columns: families
            .iter()
            .map(|family| Column {
                name: words(family).0.to_string(),
                unit: Metric::shown(family).unit().to_string(),
                better: Some(if Metric::shown(family).higher_is_better() {
                    Better::Higher
                } else {
                    Better::Lower
                }),
            })
            .collect(),
        rows: models
            .iter()
            .map(|model| Row {
                label: format!("{model} model"),
                baseline: false,
                cells: families.iter().map(|family| cell(model, family)).collect(),
            })
            .collect(),
    }
}

/// The noise per coordinate over rounds, least and largest over clients.
fn noise_chart(ledger: &[Line]) -> Option<Chart> {
    let mut rounds: BTreeMap<u32, (f64, f64)> = BTreeMap::new();
    for line in ledger.iter().filter(|line| line.sigma_most > 0.0) {
        let entry = rounds.entry(line.step).or_insert((f64::MAX, 0.0));
        *entry = (entry.0.min(line.sigma_least), entry.1.max(line.sigma_most));
    }
    if rounds.is_empty() {
        return None;
    }
    let series = |label: &str, pick: fn(&(f64, f64)) -> f64| Series {
        label: label.into(),
        method: label.into(),
        points: rounds
            .iter()
            .map(|(round, sigma)| Point { x: f64::from(*round), mean: pick(sigma), stderr: None })
            .collect(),
        dashed: false,
    };
    Some(Chart {
        id: "noise".into(),
        title: "How much noise covers an upload?".into(),
        x_label: "round".into(),
        y_label: "standard deviation per coordinate".into(),
        x_scale: Scale::Linear,
        y_scale: Scale::Log,
        series: vec![series("largest over clients", |s| s.1), series("least over clients", |s| s.0)],
        caption: "Clients with more records need less noise for the same budget.".into(),
    })
}
