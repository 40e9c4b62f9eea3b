//! What single clients got, over repeats: tables and figures with a client on the x axis.

use crate::compare::Comparison;
use crate::figures;
use crate::plan::Plan;
use crate::repeat::Outcome;
use crate::report::{Chart, Point, Scale, Series};
use crate::statistics::moments;
use std::collections::BTreeMap;

/// More clients than this are not told apart.
const MOST: usize = 20;

/// Name of a client's closeness to the consensus graph, (20) of the `FedGL` paper.
const GAMMA: &str = "gamma";

/// By metric, then by client.
pub(crate) type ByClient = BTreeMap<String, Vec<f64>>;

/// Whether the clients of a method are worth a look one by one: few, with a graph each.
pub(crate) fn wanted(plan: &Plan) -> bool {
    plan.row.graphs
}

/// What every client of one repeat got.
pub(crate) fn of(outcome: &Outcome) -> ByClient {
    let mut all = ByClient::new();
    let Some((world, live)) = &outcome.end else { return all };
    if world.train.len() > MOST {
        return all;
    }
    for (column, name) in outcome.columns.iter().enumerate() {
        let values: Vec<f64> = outcome.rows.iter().map(|row| row[column]).collect();
        if !values.is_empty() {
            all.insert(name.clone(), values);
        }
    }
    let gamma = figures::graphs::gammas(live.as_ref());
    if !gamma.is_empty() {
        all.insert(GAMMA.into(), gamma);
    }
    all
}

/// Means over repeats; x is the number of the client, from 1.
pub(crate) fn points(repeats: &[&ByClient]) -> BTreeMap<String, Vec<Point>> {
    let Some(first) = repeats.first() else { return BTreeMap::new() };
    let mean = |name: &String, client: usize| {
        let values: Vec<f64> =
            repeats.iter().filter_map(|each| each.get(name)?.get(client).copied()).collect();
        let estimate = moments(&values);
        Point { x: client as f64 + 1.0, mean: estimate.mean, stderr: estimate.stderr }
    };
    first
        .iter()
        .map(|(name, values)| (name.clone(), (0..values.len()).map(|client| mean(name, client)).collect()))
        .collect()
}

/// The headline metric and gamma by client, where that is known.
pub(crate) fn charts(comparison: &Comparison) -> Vec<Chart> {
    let mut charts = Vec::new();
    for (name, title) in [
        (comparison.metric.as_str(), "What does each client get?"),
        (GAMMA, "How near is each client to the consensus graph?"),
    ] {
        let series: Vec<Series> = comparison
            .curves
            .iter()
            .filter_map(|curve| {
                let points = curve.by_client.get(name)?.clone();
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
        let is_gamma = name == GAMMA;
        charts.push(Chart {
            id: format!("by-client-{}", name.replace('.', "-")),
            title: title.into(),
            x_label: "client".into(),
            y_label: if is_gamma { GAMMA.into() } else { figures::axis(name) },
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn means_are_over_repeats_and_clients_count_from_1() {
        let one = |a: f64, b: f64| ByClient::from([("mcc.client".to_string(), vec![a, b])]);
        let (first, second) = (one(0.2, 0.8), one(0.4, 0.6));
        let found = points(&[&first, &second]);
        let points = &found["mcc.client"];
        assert_eq!(points.iter().map(|point| point.x).collect::<Vec<_>>(), [1.0, 2.0]);
        assert!((points[0].mean - 0.3).abs() < 1e-15 && (points[1].mean - 0.7).abs() < 1e-15);
        // Of two values the standard error is half their distance.
        assert!((points[0].stderr.unwrap() - 0.1).abs() < 1e-15);
        assert!(super::points(&[]).is_empty());
    }
}
