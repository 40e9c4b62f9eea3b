//! What single clients got, over repeats.

use crate::pictures;
use fedkin_measure::{Estimate, MetricTable, estimate};
use fedkin_report::Point;
use fedkin_run::Outcome;
use std::collections::BTreeMap;

/// More clients than this are not told apart.
const MOST: usize = 40;
/// Name of a client's closeness to the consensus graph, (20) of the `FedGL` paper.
pub(crate) const GAMMA: &str = "gamma";

/// By metric, then by client.
pub(crate) type ByClient = BTreeMap<String, Vec<f64>>;

/// The names of the clients that `of` tells apart.
pub(crate) fn names(outcome: &Outcome) -> Vec<String> {
    let names = outcome.end.as_ref().map(|(world, _)| world.federation.client_names());
    names.filter(|names| names.len() <= MOST).map(<[String]>::to_vec).unwrap_or_default()
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
    let gamma = pictures::gammas(live.as_ref());
    if !gamma.is_empty() {
        all.insert(GAMMA.into(), gamma);
    }
    all
}

/// Means over repeats as they are shown; x is the number of the client, from 1.
pub(crate) fn points(metrics: &MetricTable, repeats: &[&ByClient]) -> BTreeMap<String, Vec<Point>> {
    let Some(first) = repeats.first() else { return BTreeMap::new() };
    let mean = |name: &String, client: usize| {
        let values: Vec<f64> =
            repeats.iter().filter_map(|each| each.get(name)?.get(client).copied()).collect();
        let Estimate { mean, stderr } = estimate(&values, metrics.shown(name));
        Point { x: client as f64 + 1.0, mean, stderr }
    };
    first
        .iter()
        .map(|(name, values)| (name.clone(), (0..values.len()).map(|client| mean(name, client)).collect()))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn means_are_over_repeats_and_clients_count_from_1() {
        let one = |a: f64, b: f64| ByClient::from([("mcc.client".to_string(), vec![a, b])]);
        let (first, second) = (one(0.2, 0.8), one(0.4, 0.6));
        let metrics = MetricTable::native();
        let found = points(&metrics, &[&first, &second]);
        let points = &found["mcc.client"];
        assert_eq!(points.iter().map(|point| point.x).collect::<Vec<_>>(), [1.0, 2.0]);
        assert!((points[0].mean - 0.3).abs() < 1e-15 && (points[1].mean - 0.7).abs() < 1e-15);
        // Of two values the standard error is half their distance.
        assert!((points[0].stderr.unwrap() - 0.1).abs() < 1e-15);
        assert!(super::points(&metrics, &[]).is_empty());
    }
}
