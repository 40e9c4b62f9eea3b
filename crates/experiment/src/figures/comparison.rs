//! The table and the report of several methods on the same worlds.

use super::{better, by_client, facts, model_name, privacy, privacy_box};
use crate::compare::{Comparison, CurveResult};
use fedkin_method::Baseline;
use fedkin_report::{
    Chart, Claim, Column, Distribution, EMPHASISED, Estimate, Report, Scale, Series, Table, TableRow,
};
use fedkin_run::PrivacySummary;
use fedkin_settings::Value;
use std::cmp::Reverse;

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
    let of_models = columns.len();
    // Where clusters were found, how well.
    let found = ["found.kin", "merged.kin"].into_iter().filter(|name| {
        !columns.iter().any(|known| known == name)
            && comparison.curves.iter().any(|curve| curve.r#final.contains_key(*name))
    });
    let found: Vec<String> = found.map(ToString::to_string).collect();
    columns.extend(found);
    let baseline = |curve: &CurveResult| matches!(curve.baseline, Some(Baseline::Alone | Baseline::OneModel));
    let spread = spread_columns(comparison);
    // Curves that show different models have a column for what each of them shows.
    let mixed = comparison.curves.iter().any(|curve| curve.metric != comparison.metric);
    let shown = |name: &str| {
        let end = move |curve: &CurveResult| {
            curve.r#final.get(&curve.metric).map(|p| Estimate { mean: p.mean, stderr: p.stderr })
        };
        (Column { name: name.into(), unit: comparison.unit.into(), better: better(comparison.shown) }, end)
    };
    let first = mixed.then(|| shown("shown"));
    let model = |place: usize, name: &String| Column {
        name: if place < of_models {
            format!("{} model", model_name(name))
        } else {
            comparison.metrics.label(name).into()
        },
        unit: if place < of_models {
            comparison.unit.into()
        } else {
            comparison.metrics.shown(name).unit().into()
        },
        better: better(if place < of_models { comparison.shown } else { comparison.metrics.shown(name) }),
    };
    let split = usize::from(!mixed && !spread.is_empty()).min(columns.len());
    let cell = |curve: &CurveResult, name: &String| {
        curve.r#final.get(name).map(|p| Estimate { mean: p.mean, stderr: p.stderr })
    };
    let heads = columns.iter().enumerate().map(|(place, name)| model(place, name));
    let mut all: Vec<Column> = first.iter().map(|(column, _)| column.clone()).collect();
    all.extend(heads.clone().take(split));
    all.extend(spread.iter().map(|(column, _)| column.clone()));
    all.extend(heads.skip(split));
    Table {
        caption: format!(
            "{} {}, mean ± standard error over {}{}",
            comparison.metrics.axis(&comparison.metric),
            comparison.axis.reading(),
            repeats(comparison),
            if mixed {
                let of = |curve: &CurveResult| format!("{} of {}", model_name(&curve.metric), curve.label);
                format!("; shown: {}", comparison.curves.iter().map(of).collect::<Vec<_>>().join(", "))
            } else {
                String::new()
            }
        ),
        columns: all,
        rows: comparison
            .curves
            .iter()
            .map(|curve| {
                let mut cells: Vec<Option<Estimate>> = first.iter().map(|(_, of)| of(curve)).collect();
                cells.extend(columns[..split].iter().map(|name| cell(curve, name)));
                cells.extend(spread.iter().map(|(_, of)| of(curve)));
                cells.extend(columns[split..].iter().map(|name| cell(curve, name)));
                TableRow { label: curve.label.clone(), baseline: baseline(curve), cells }
            })
            .collect(),
    }
}

/// A column, and what a curve has there.
type SpreadColumn = (Column, fn(&CurveResult) -> Option<Estimate>);

/// How far clients are apart on the headline metric, where that is measured on probabilities.
fn spread_columns(comparison: &Comparison) -> Vec<SpreadColumn> {
    let known = comparison.curves.iter().any(|curve| curve.std.is_some());
    if !known || !comparison.metrics.of_probabilities(&comparison.metric) {
        return Vec::new();
    }
    let column = |name: &str, better| Column { name: name.into(), unit: comparison.unit.into(), better };
    vec![
        (column("std over clients", Some(fedkin_report::Better::Lower)), |curve| {
            curve.std.map(|mean| Estimate { mean, stderr: None })
        }),
        (column("worst decile", better(comparison.shown)), |curve| {
            curve.worst_decile.map(|mean| Estimate { mean, stderr: None })
        }),
    ]
}

/// How the settings of curves with a grid were chosen; nothing where none has one.
pub fn tuning(comparison: &Comparison) -> Option<Table> {
    let first = comparison.tuning.first()?;
    let family = first.metric.split('.').next().unwrap_or_default();
    let label = |label: &str, tried: &crate::tuning::Tried| {
        let end = match (&tried.failed, tried.taken) {
            (Some(_), _) => " (diverged)",
            (None, true) => " (taken)",
            (None, false) => "",
        };
        format!("{label}: {}{end}", tried.words())
    };
    let row = |curve: &crate::tuning::Tuning, tried: &crate::tuning::Tried| TableRow {
        label: label(&curve.label, tried),
        baseline: false,
        cells: vec![tried.score.map(|mean| Estimate { mean, stderr: tried.stderr })],
    };
    Some(Table {
        caption: format!(
            "Settings that were tried, by {}: mean over clients after {} rounds of {} with the seed{} of the first reported \
             one{}; no test record was looked at",
            comparison.metrics.axis(family),
            first.rounds,
            plural(first.repeats),
            if first.repeats == 1 { "" } else { "s" },
            if first.repeats == 1 { "" } else { "s" },
        ),
        columns: vec![Column {
            name: comparison.metrics.label(family).to_string(),
            unit: comparison.metrics.shown(family).unit().to_string(),
            // Curves are no rivals here.
            better: None,
        }],
        rows: comparison
            .tuning
            .iter()
            .flat_map(|curve| curve.grid.iter().map(move |tried| row(curve, tried)))
            .collect(),
    })
}

/// What each client got, where that is known: tables of few clients, and the differences between curves over clients.
pub fn clients(comparison: &Comparison) -> (Vec<Table>, Vec<String>) {
    (by_client::tables(comparison), by_client::pairs(comparison))
}

fn sweep_table(comparison: &Comparison) -> Table {
    let better = better(comparison.shown);
    let named = comparison.config.sweep.as_ref().map(|sweep| &sweep.values);
    let column =
        |curve: &CurveResult| Column { name: curve.label.clone(), unit: comparison.unit.to_string(), better };
    let values = comparison.curves.first().map_or(&[][..], |curve| curve.points.as_slice());
    // How far clients are apart, one more column for each curve.
    let spread = !spread_columns(comparison).is_empty();
    let apart = |curve: &CurveResult| Column {
        name: format!("{}: std over clients", curve.label),
        unit: comparison.unit.to_string(),
        better: None,
    };
    let spread_of = |curve: &CurveResult, i: usize| {
        let std = curve.spread.get(i).copied().flatten().map(|spread| spread.std);
        std.map(|mean| Estimate { mean, stderr: None })
    };
    let cell = |curve: &CurveResult, i: usize| {
        curve.points.get(i).map(|point| Estimate { mean: point.mean, stderr: point.stderr })
    };
    Table {
        caption: format!(
            "{} over {}{}, mean ± standard error over {}",
            comparison.metrics.axis(&comparison.metric),
            comparison.x,
            comparison
                .axis
                .against
                .as_ref()
                .map(|_| format!(" {}", comparison.axis.reading()))
                .unwrap_or_default(),
            repeats(comparison)
        ),
        columns: {
            let apart = comparison.curves.iter().filter(|_| spread).map(apart);
            comparison.curves.iter().map(column).chain(apart).collect()
        },
        rows: values
            .iter()
            .enumerate()
            .map(|(i, point)| TableRow {
                label: match named.and_then(|values| values.get(i)) {
                    Some(Value::Text(word)) => format!("{} = {word}", comparison.x),
                    _ => format!("{} = {}", comparison.x, point.x),
                },
                baseline: false,
                cells: {
                    let apart = comparison.curves.iter().filter(|_| spread).map(|curve| spread_of(curve, i));
                    comparison.curves.iter().map(|curve| cell(curve, i)).chain(apart).collect()
                },
            })
            .collect(),
    }
}

/// The curves as figures draw them. Where there are more than get a colour, those come first that the claims name most: they
/// are what the comparison is about.
pub(crate) fn drawn(comparison: &Comparison) -> Vec<&CurveResult> {
    let mut curves: Vec<&CurveResult> = comparison.curves.iter().collect();
    if let Some(paper) = comparison.config.paper.as_ref().filter(|_| curves.len() > EMPHASISED) {
        let checks = paper.claims.iter().filter_map(|claim| claim.check.as_deref());
        let sides: Vec<&str> = checks
            .flat_map(|check| check.split(" > "))
            .flat_map(|part| part.split(" < "))
            .map(|side| side.split_once(" @ ").map_or(side, |(label, _)| label).trim())
            .collect();
        curves.sort_by_key(|curve| Reverse(sides.iter().filter(|side| **side == curve.label).count()));
    }
    curves
}

pub(super) fn of_comparison(comparison: &Comparison) -> Report {
    let config = &comparison.config;
    let sweep = config.sweep.as_ref();
    let series = drawn(comparison)
        .into_iter()
        .map(|curve| Series {
            label: curve.label.clone(),
            method: curve.method.clone(),
            points: curve.points.clone(),
            dashed: matches!(curve.baseline, Some(Baseline::Alone | Baseline::Pooled)),
            quiet: false,
        })
        .collect();
    let question = comparison.metrics.question(&comparison.metric);
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
        x_label: if sweep.is_some() { comparison.x.clone() } else { comparison.axis.words().into() },
        y_label: comparison.metrics.axis(&comparison.metric),
        x_scale: if logarithmic { Scale::Log } else { Scale::Linear },
        y_scale: Scale::Linear,
        ranges: Vec::new(),
        series,
        caption: format!(
            "{} of the {} model.",
            comparison.metrics.label(&comparison.metric),
            model_name(&comparison.metric)
        ),
    };
    let groups: Vec<(String, String, Vec<f64>)> = comparison
        .curves
        .iter()
        .filter(|curve| !curve.clients.is_empty() && sweep.is_none())
        .map(|curve| {
            // A client without a model has no score.
            let shown = curve.clients.iter().map(|value| comparison.shown.value(*value));
            (curve.label.clone(), curve.method.clone(), shown.filter(|value| value.is_finite()).collect())
        })
        .filter(|(_, _, values): &(_, _, Vec<f64>)| !values.is_empty())
        .collect();
    let distributions = if groups.is_empty() {
        Vec::new()
    } else {
        vec![Distribution {
            id: "clients".into(),
            title: "How is it for each client?".into(),
            x_label: format!("{} of each client, first repeat", comparison.metrics.axis(&comparison.metric)),
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
    charts.extend(by_client::charts(comparison));
    charts.extend(privacy::tradeoff(comparison));
    charts.extend(comparison.theory.charts.iter().cloned());
    let mut notes: Vec<String> = comparison.warnings.iter().map(ToString::to_string).collect();
    notes.extend(by_client::pairs(comparison));
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
        by_client: by_client::tables(comparison),
        tuning: tuning(comparison),
        charts,
        distributions,
        labels: comparison.labels.clone(),
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
        colours: comparison.colours.clone(),
    }
}

/// How many repeats, in words.
fn repeats(comparison: &Comparison) -> String {
    plural(comparison.repeats)
}

fn plural(repeats: u32) -> String {
    format!("{repeats} repeat{}", if repeats == 1 { "" } else { "s" })
}

/// Who came out best, by how much over the next.
fn lead(comparison: &Comparison) -> String {
    let shown = comparison.shown;
    let sign = if shown.higher_is_better() { -1.0 } else { 1.0 };
    let sweep = &comparison.config.sweep;
    let read = |curve: &CurveResult| match sweep {
        Some(_) => curve.points.len().checked_sub(1),
        None => comparison.axis.position(&curve.points),
    };
    let mut ends: Vec<(&str, f64)> = comparison
        .curves
        .iter()
        .filter_map(|curve| Some((curve.label.as_str(), curve.points.get(read(curve)?)?.mean)))
        .collect();
    ends.sort_by(|a, b| (sign * a.1).total_cmp(&(sign * b.1)));
    let unit = comparison.unit;
    let at = match &comparison.axis.at {
        Some(_) if sweep.is_none() => comparison.axis.reading(),
        _ => "at the end".into(),
    };
    let at = at[..1].to_uppercase() + &at[1..];
    let all: Vec<String> = ends
        .iter()
        .map(|(label, value)| format!("{label} {value:.2} {unit}").trim_end().to_string())
        .collect();
    let source = comparison.config.paper.as_ref().and_then(|paper| paper.source.as_ref());
    format!(
        "{}{} with seeds of their own; every curve sees the same data, graph and participants. \
         {at}, best first: {}.",
        source.map(|source| format!("Source: {source}. ")).unwrap_or_default(),
        repeats(comparison),
        all.join(", ")
    )
}
