//! Tables and figures with a client on the x axis.

use super::{better, drawn};
use crate::by_client::GAMMA;
use crate::compare::Comparison;
use fedkin_method::Baseline;
use fedkin_numeric::statistics::{Estimate, Flips, sign_flips};
use fedkin_report::{Chart, Column, Point, Scale, Series, Table, TableRow};

/// More clients than this have no table, which would be too wide to read.
const TABLE: usize = 12;

/// The headline metric and gamma by client, where that is known.
pub(crate) fn charts(comparison: &Comparison) -> Vec<Chart> {
    let mut charts = Vec::new();
    for (name, title) in [
        (comparison.metric.as_str(), "What does each client get?"),
        (GAMMA, "How near is each client to the consensus graph?"),
    ] {
        let is_gamma = name == GAMMA;
        let series: Vec<Series> = drawn(comparison)
            .into_iter()
            .filter_map(|curve| {
                // A curve may show another of the models than the others do.
                let points = curve.by_client.get(if is_gamma { name } else { &curve.metric })?.clone();
                Some(Series {
                    label: curve.label.clone(),
                    method: curve.method.clone(),
                    points,
                    dashed: false,
                    quiet: false,
                })
            })
            .collect();
        if series.is_empty() {
            continue;
        }
        charts.push(Chart {
            id: format!("by-client-{}", name.replace('.', "-")),
            title: title.into(),
            x_label: "client".into(),
            y_label: if is_gamma { GAMMA.into() } else { comparison.metrics.axis(name) },
            x_scale: Scale::Linear,
            y_scale: Scale::Linear,
            ranges: Vec::new(),
            series,
            caption: if is_gamma {
                "gamma, equation (20): one over the distance of a client's graph from the consensus graph; mean over repeats."
                    .into()
            } else {
                "After the last round, mean over repeats.".into()
            },
        });
    }
    charts
}

/// Every curve at every client: one table for each of what is measured on probabilities, where clients are few.
pub(crate) fn tables(comparison: &Comparison) -> Vec<Table> {
    let names = &comparison.clients;
    let model_of = |metric: &str| metric.split_once('.').map_or("client", |(_, model)| model).to_string();
    let mut tables = Vec::new();
    for family in comparison.metrics.by_client().filter(|_| names.len() <= TABLE) {
        let metric = format!("{family}.{}", model_of(&comparison.metric));
        let shown = comparison.metrics.shown(&metric);
        let rows: Vec<TableRow> = comparison
            .curves
            .iter()
            .filter_map(|curve| {
                let points = curve.by_client.get(&format!("{family}.{}", model_of(&curve.metric)))?;
                let cell = |point: &Point| Some(Estimate { mean: point.mean, stderr: point.stderr });
                Some(TableRow {
                    label: curve.label.clone(),
                    baseline: curve.baseline == Some(Baseline::Alone),
                    cells: points.iter().map(cell).collect(),
                })
            })
            .collect();
        if rows.is_empty() {
            continue;
        }
        let column = |name: &String| Column {
            name: name.clone(),
            unit: shown.unit().to_string(),
            better: better(shown),
        };
        tables.push(Table {
            caption: format!(
                "{} of each client, mean ± standard error over repeats",
                comparison.metrics.axis(&metric)
            ),
            columns: names.iter().map(column).collect(),
            rows,
        });
    }
    tables
}

/// How the curves differ on the headline metric, client by client: a line for each curve against each baseline.
pub(crate) fn pairs(comparison: &Comparison) -> Vec<String> {
    let shown = comparison.shown;
    let of_family = |metric: &str| {
        let family = metric.split('.').next();
        comparison.metrics.by_client().any(|name| Some(name) == family)
    };
    let known: Vec<_> = comparison
        .curves
        .iter()
        .filter(|curve| of_family(&comparison.metric) && !curve.by_client.is_empty())
        .filter_map(|curve| Some((curve, curve.by_client.get(&curve.metric)?)))
        .collect();
    let mut lines = Vec::new();
    for (b, (reference, theirs)) in known.iter().enumerate() {
        if reference.baseline.is_none() {
            continue;
        }
        for (a, (curve, own)) in known.iter().enumerate() {
            // Of two baselines the later is compared with the earlier one only.
            if a == b || (curve.baseline.is_some() && a < b) {
                continue;
            }
            let gaps: Vec<f64> = own
                .iter()
                .zip(theirs.iter())
                .map(|(own, theirs)| own.mean - theirs.mean)
                .filter(|gap| gap.is_finite())
                .collect();
            let Some(Flips { mean, stderr, p, exact }) = sign_flips(&gaps) else { continue };
            let sign = if shown.higher_is_better() { 1.0 } else { -1.0 };
            let better = gaps.iter().filter(|gap| sign * **gap > 0.0).count();
            let worse = gaps.iter().filter(|gap| sign * **gap < 0.0).count();
            let places = if shown.unit().is_empty() { 4 } else { 2 };
            let unit = if shown.unit().is_empty() { String::new() } else { format!(" {}", shown.unit()) };
            lines.push(format!(
                "{} minus {}: {mean:+.places$} ± {stderr:.places$}{unit} over {} clients, better for {better}, worse for \
                 {worse}; p = {p:.1e} ({}flips of sign of the clients' differences, means over repeats, two-sided)",
                curve.label,
                reference.label,
                gaps.len(),
                if exact { "all " } else { "100,000 random " },
            ));
        }
    }
    lines
}
