//! Figures of what privacy costs: noise, epsilon over rounds, and what accuracy an epsilon buys.

use crate::compare::{Comparison, CurveResult};
use fedkin_measure::{Shown, estimate};
use fedkin_privacy::{Line, epsilon_of_zcdp};
use fedkin_report::{Chart, Distribution, Estimate, Point, Range, Scale, Series};
use fedkin_run::artifacts::metrics::Metrics;
use fedkin_run::spending;
use std::collections::BTreeMap;

/// The curves of one run with noise; nothing for a run without.
pub(super) fn charts(metrics: &Metrics, ledger: &[Line], delta: f64) -> Vec<Chart> {
    [epsilon_chart(metrics, delta), signal_chart(metrics), noise_chart(ledger)]
        .into_iter()
        .flatten()
        .collect()
}

fn line(label: &str, points: Vec<Point>) -> Series {
    Series { label: label.into(), method: label.into(), points, dashed: false, quiet: false }
}

/// Epsilon over rounds in the first repeat: the largest client, and the range of all.
fn epsilon_chart(metrics: &Metrics, delta: f64) -> Option<Chart> {
    let over_rounds = |metric: &str| -> BTreeMap<u32, f64> {
        let rows =
            metrics.rows().filter(|row| row.repeat == 0 && row.node.is_empty() && row.metric == metric);
        rows.map(|row| (row.round, row.value)).collect()
    };
    let points = |values: &BTreeMap<u32, f64>| -> Vec<Point> {
        values.iter().map(|(&round, &mean)| Point { x: f64::from(round), mean, stderr: None }).collect()
    };
    let largest = over_rounds(spending::LARGEST);
    if largest.len() < 2 {
        return None;
    }
    let least = over_rounds(spending::LEAST);
    let mut range: Vec<(f64, f64, f64)> = Vec::new();
    for (round, &high) in &largest {
        range.extend(least.get(round).map(|&low| (f64::from(*round), low, high)));
    }
    let alike = range.iter().all(|(_, low, high)| low == high);
    let head = Series { method: "privacy".into(), ..line("", points(&largest)) };
    let mut chart = Chart {
        id: "epsilon".into(),
        title: "How much privacy has been spent?".into(),
        x_label: "round".into(),
        y_label: format!("epsilon at delta {delta:e}"),
        x_scale: Scale::Linear,
        y_scale: Scale::Linear,
        ranges: Vec::new(),
        series: vec![Series { label: "every client".into(), ..head.clone() }],
        caption: "Every client has spent the same, so this is the guarantee of each.".into(),
    };
    if !alike {
        chart.ranges = vec![Range { method: "privacy".into(), points: range }];
        chart.series = vec![Series { label: "largest client".into(), ..head }];
        let mean = over_rounds(spending::MEAN);
        if !mean.is_empty() {
            chart.series.push(Series { quiet: true, ..line("mean, no guarantee", points(&mean)) });
        }
        chart.caption = "The guarantee is the upper line: the client that has spent most so far. Shaded: from the client \
                         that has spent least to that one. A mean is nobody's guarantee. First repeat."
            .into();
    }
    Some(chart)
}

/// Signal to noise of the uploads over rounds.
fn signal_chart(metrics: &Metrics) -> Option<Chart> {
    let mut rounds: BTreeMap<u32, Vec<f64>> = BTreeMap::new();
    for row in metrics.rows().filter(|row| row.metric == spending::SIGNAL_TO_NOISE) {
        rounds.entry(row.round).or_default().push(row.value);
    }
    if rounds.len() < 2 {
        return None;
    }
    let points: Vec<Point> = rounds
        .iter()
        .map(|(&round, ratios)| {
            let Estimate { mean, stderr } = estimate(ratios, Shown::Gain);
            Point { x: f64::from(round), mean, stderr }
        })
        .collect();
    let ends = [points[0].x, points[points.len() - 1].x];
    let lowest = points.iter().map(|point| point.mean).fold(f64::INFINITY, f64::min);
    let mut series = vec![Series { method: "privacy".into(), ..line("upload", points) }];
    // Far above it the reference would press the curve into a corner.
    if lowest < 10.0 {
        let level = ends.map(|x| Point { x, mean: 0.0, stderr: None });
        series.push(Series { dashed: true, quiet: true, ..line("equal power", level.to_vec()) });
    }
    Some(Chart {
        id: "signal-to-noise".into(),
        title: "Does an upload rise above its noise?".into(),
        x_label: "round".into(),
        y_label: "signal to noise of an upload (dB)".into(),
        x_scale: Scale::Linear,
        y_scale: Scale::Linear,
        ranges: Vec::new(),
        series,
        caption: "Squared norm of a client's model before the noise over the expected squared norm of the noise, mean over \
                  the clients of the round. Below 0 dB one upload is mostly noise; what is learned comes from means over \
                  clients and rounds. Only a simulation knows this: it is in no ledger."
            .into(),
    })
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
        quiet: false,
    };
    Some(Chart {
        id: "noise".into(),
        title: "How much noise covers an upload?".into(),
        x_label: "round".into(),
        y_label: "standard deviation per coordinate".into(),
        x_scale: Scale::Linear,
        y_scale: Scale::Log,
        ranges: Vec::new(),
        series: vec![series("largest over clients", |s| s.1), series("least over clients", |s| s.0)],
        caption: "Clients with more records need less noise for the same budget.".into(),
    })
}

/// What each client has spent after the last round, where they differ.
pub(super) fn clients(metrics: &Metrics, delta: f64) -> Option<Distribution> {
    let rows = metrics.rows().filter(|row| row.metric == spending::SPENT);
    let values: Vec<f64> = rows.map(|row| epsilon_of_zcdp(row.value, delta)).collect();
    let first = *values.first()?;
    values.iter().any(|value| *value != first).then(|| Distribution {
        id: "epsilon-clients".into(),
        title: "What has each client spent?".into(),
        x_label: format!("epsilon of each client at delta {delta:e}"),
        groups: vec![("all clients".into(), "privacy".into(), values)],
    })
}

/// The headline metric against epsilon: over a swept privacy key, or over curves that differ in their epsilon.
pub(super) fn tradeoff(comparison: &Comparison) -> Option<Chart> {
    let series = match &comparison.config.sweep {
        Some(sweep) if sweep.key.starts_with("privacy.") => swept(&comparison.curves),
        Some(_) => return None,
        None => families(&comparison.curves),
    };
    let spread = |series: &Series| {
        let x = series.points.iter().map(|point| point.x);
        let (least, most) = x.fold((f64::MAX, 0.0f64), |(a, b), x| (a.min(x), b.max(x)));
        most > least
    };
    if !series.iter().any(spread) {
        return None;
    }
    let x: Vec<f64> = series.iter().flat_map(|series| series.points.iter().map(|point| point.x)).collect();
    let (least, most) = x.iter().fold((f64::MAX, 0.0f64), |(a, b), x| (a.min(*x), b.max(*x)));
    let delta = comparison.curves.first().map_or(0.0, |curve| curve.privacy.delta);
    Some(Chart {
        id: format!("{}-epsilon", comparison.name),
        title: "What does privacy cost?".into(),
        x_label: format!("epsilon of the largest client at delta {delta:e}"),
        y_label: comparison.metrics.axis(&comparison.metric),
        x_scale: if least > 0.0 && most > 4.0 * least { Scale::Log } else { Scale::Linear },
        y_scale: Scale::Linear,
        ranges: Vec::new(),
        series,
        caption:
            "Privacy is stronger to the left. Epsilon is that of the client that spent most in any repeat."
                .into(),
    })
}

fn swept(curves: &[CurveResult]) -> Vec<Series> {
    let series = curves.iter().map(|curve| {
        let both = curve.points.iter().zip(&curve.epsilon);
        let points = both.filter_map(|(point, epsilon)| Some(Point { x: (*epsilon)?, ..*point })).collect();
        Series { method: curve.method.clone(), ..line(&curve.label, points) }
    });
    series.filter(|series| !series.points.is_empty()).collect()
}

/// Curves of one method that differ in epsilon become one line; what it reaches without noise is a dashed level.
fn families(curves: &[CurveResult]) -> Vec<Series> {
    let mut methods: Vec<&str> = Vec::new();
    for curve in curves {
        if !methods.contains(&curve.method.as_str()) {
            methods.push(&curve.method);
        }
    }
    let point = |curve: &CurveResult| {
        let (epsilon, end) = (curve.epsilon.first().copied().flatten()?, curve.points.last()?);
        Some(Point { x: epsilon, ..*end })
    };
    let all: Vec<f64> = curves.iter().filter_map(point).map(|point| point.x).collect();
    let (least, most) = all.iter().fold((f64::MAX, 0.0f64), |(a, b), x| (a.min(*x), b.max(*x)));
    let (mut lines, mut levels) = (Vec::new(), Vec::new());
    for method in methods {
        let (noisy, plain): (Vec<&CurveResult>, Vec<&CurveResult>) =
            curves.iter().filter(|curve| curve.method == method).partition(|curve| point(curve).is_some());
        let points: Vec<Point> = noisy.iter().filter_map(|curve| point(curve)).collect();
        if points.len() < 2 {
            continue;
        }
        let labels: Vec<&str> = noisy.iter().map(|curve| curve.label.as_str()).collect();
        let name = shared_words(&labels).unwrap_or_else(|| method.to_string());
        lines.push(Series { method: method.to_string(), ..line(&name, points) });
        for curve in plain {
            let Some(end) = curve.points.last() else { continue };
            let level = [least, most].map(|x| Point { x, mean: end.mean, stderr: None });
            let level = line(&curve.label, level.to_vec());
            levels.push(Series { method: method.to_string(), dashed: true, ..level });
        }
    }
    lines.extend(levels);
    lines
}

/// The leading parts, between commas, that all labels have in common.
fn shared_words(labels: &[&str]) -> Option<String> {
    let first: Vec<&str> = labels.first()?.split(", ").collect();
    let shared = |count: &usize| {
        labels.iter().all(|label| label.split(", ").take(*count).eq(first.iter().take(*count).copied()))
    };
    let count = (1..=first.len()).take_while(shared).last()?;
    Some(first[..count].join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use fedkin_run::artifacts::metrics::Measurement;

    fn metrics(rows: &[(u32, u32, &str, f64)]) -> Metrics {
        let mut all = Metrics::default();
        for &(repeat, round, metric, value) in rows {
            all.push(Measurement { repeat, round, node: "", metric, value });
        }
        all
    }

    #[test]
    fn the_largest_client_is_the_line_and_the_mean_is_called_no_guarantee() {
        let rows = [
            (0, 1, spending::LARGEST, 1.0),
            (0, 1, spending::LEAST, 0.0),
            (0, 1, spending::MEAN, 0.4),
            (0, 2, spending::LARGEST, 2.0),
            (0, 2, spending::LEAST, 0.5),
            (0, 2, spending::MEAN, 1.0),
            (1, 2, spending::LARGEST, 9.0),
        ];
        let chart = epsilon_chart(&metrics(&rows), 1e-5).unwrap();
        let labels: Vec<&str> = chart.series.iter().map(|series| series.label.as_str()).collect();
        assert_eq!(labels, ["largest client", "mean, no guarantee"]);
        // The first repeat, as the headline.
        assert_eq!(chart.series[0].points[1].mean, 2.0);
        assert!(chart.series[1].quiet && !chart.series[0].quiet);
        assert_eq!(chart.ranges[0].points, [(1.0, 0.0, 1.0), (2.0, 0.5, 2.0)]);
        let same: Vec<_> = rows.map(|(r, n, metric, _)| (r, n, metric, f64::from(n))).to_vec();
        let chart = epsilon_chart(&metrics(&same), 1e-5).unwrap();
        assert_eq!(
            (chart.series[0].label.as_str(), chart.series.len(), chart.ranges.len()),
            ("every client", 1, 0)
        );
        assert!(epsilon_chart(&metrics(&rows[..3]), 1e-5).is_none(), "one round is no curve");
    }

    #[test]
    fn signal_to_noise_is_averaged_before_decibels_are_taken() {
        let name = spending::SIGNAL_TO_NOISE;
        let chart =
            signal_chart(&metrics(&[(0, 1, name, 0.5), (1, 1, name, 1.5), (0, 2, name, 100.0)])).unwrap();
        let means: Vec<f64> = chart.series[0].points.iter().map(|point| point.mean).collect();
        assert!(means[0].abs() < 1e-12 && (means[1] - 20.0).abs() < 1e-12, "{means:?}");
        assert!(chart.series.len() == 2 && chart.series[1].dashed, "the level where both are equal");
        let loud = signal_chart(&metrics(&[(0, 1, name, 1e3), (0, 2, name, 1e4)])).unwrap();
        assert_eq!(loud.series.len(), 1);
    }

    fn curve(label: &str, method: &str, epsilon: Option<f64>, mean: f64) -> CurveResult {
        let summary = serde_json::json!({"mechanism": "zcdp", "bound": "enforced", "epsilon": epsilon,
            "epsilon_gaussian": epsilon, "delta": 1e-5, "zcdp": 0.0, "mean_zcdp": 0.0, "mean_epsilon": epsilon,
            "releases": 1});
        CurveResult {
            label: label.into(),
            method: method.into(),
            algorithm: method.into(),
            baseline: None,
            metric: String::new(),
            std: None,
            worst_decile: None,
            spread: Vec::new(),
            spreads: BTreeMap::new(),
            points: vec![Point { x: 100.0, mean, stderr: Some(0.5) }],
            r#final: BTreeMap::new(),
            privacy: serde_json::from_value(summary).unwrap(),
            epsilon: vec![epsilon],
            values: Vec::new(),
            last: BTreeMap::new(),
            by_client: BTreeMap::new(),
            clients: Vec::new(),
        }
    }

    #[test]
    fn curves_of_one_method_become_a_line_over_epsilon() {
        let curves = [
            curve("tau 0, epsilon 1", "a", Some(1.0), 60.0),
            curve("tau 0, epsilon 10", "a", Some(10.0), 90.0),
            curve("tau 0, no noise", "a", None, 95.0),
            curve("alone", "b", Some(3.0), 70.0),
            curve("local", "c", None, 50.0),
        ];
        let series = families(&curves);
        let labels: Vec<&str> = series.iter().map(|series| series.label.as_str()).collect();
        assert_eq!(labels, ["tau 0", "tau 0, no noise"]);
        assert_eq!(series[0].points[1], Point { x: 10.0, mean: 90.0, stderr: Some(0.5) });
        let level: Vec<(f64, f64)> = series[1].points.iter().map(|point| (point.x, point.mean)).collect();
        assert_eq!(level, [(1.0, 95.0), (10.0, 95.0)]);
        assert_eq!(shared_words(&["a, b, 1", "a, b, 2"]).as_deref(), Some("a, b"));
        assert_eq!(shared_words(&["one", "two"]), None);
    }
}
