//! The table and the report of several methods on the same worlds.

use super::{axis, better, facts, model_name, privacy, privacy_box, words};
use crate::compare::{Comparison, CurveResult};
use crate::report::{Chart, Claim, Column, Distribution, Estimate, Report, Row, Scale, Series, Table};
use crate::run::PrivacySummary;

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
    let better = better(comparison.shown);
    let baseline = |curve: &CurveResult| curve.method == "local" || curve.method == "gfl";
    Table {
        caption: format!(
            "{} after the last round, mean ± standard error over {}",
            axis(&comparison.metric),
            repeats(comparison)
        ),
        columns: columns
            .iter()
            .map(|name| Column {
                name: format!("{} model", model_name(name)),
                unit: comparison.unit.to_string(),
                better,
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
    let better = better(comparison.shown);
    let column =
        |curve: &CurveResult| Column { name: curve.label.clone(), unit: comparison.unit.to_string(), better };
    let values = comparison.curves.first().map_or(&[][..], |curve| curve.points.as_slice());
    let cell = |curve: &CurveResult, i: usize| {
        curve.points.get(i).map(|point| Estimate { mean: point.mean, stderr: point.stderr })
    };
    Table {
        caption: format!(
            "{} over {}, mean ± standard error over {}",
            axis(&comparison.metric),
            comparison.x,
            repeats(comparison)
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

pub(super) fn of_comparison(comparison: &Comparison) -> Report {
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
            quiet: false,
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
        ranges: Vec::new(),
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
        .filter(|privacy| privacy.epsilon.is_some())
        .max_by(|a, b| a.cost().total_cmp(&b.cost()));
    let mut facts = facts(config);
    facts.push(("seconds".into(), format!("{:.1}", comparison.seconds)));
    let mut charts = vec![chart];
    charts.extend(crate::by_client::charts(comparison));
    charts.extend(privacy::tradeoff(comparison));
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
        pictures: comparison.pictures.clone(),
        privacy: spent.map(|spent| {
            // One curve on trust is enough to warn of the page.
            let trusted = comparison.curves.iter().find(|curve| curve.privacy.bound.starts_with("assumed"));
            let bound = trusted.map_or(&spent.bound, |curve| &curve.privacy.bound);
            privacy_box(&PrivacySummary { bound: bound.clone(), ..spent.clone() })
        }),
        notes,
        config: config.resolved(),
    }
}

/// How many repeats, in words.
fn repeats(comparison: &Comparison) -> String {
    let count = comparison.repeats;
    format!("{count} repeat{}", if count == 1 { "" } else { "s" })
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
    let all: Vec<String> = ends
        .iter()
        .map(|(label, value)| format!("{label} {value:.2} {unit}").trim_end().to_string())
        .collect();
    let source = comparison.config.paper.as_ref().and_then(|paper| paper.source.as_ref());
    format!(
        "{}{} with seeds of their own; every curve sees the same data, graph and participants. \
         At the end, best first: {}.",
        source.map(|source| format!("Source: {source}. ")).unwrap_or_default(),
        repeats(comparison),
        all.join(", ")
    )
}
