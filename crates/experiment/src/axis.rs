//! What a comparison is drawn over: rounds, or a number that its methods count, such as queries.
//!
//! Methods differ in what a round costs. Over rounds a method that asks everybody looks fast; over queries it shows
//! what it asked.

use fedkin_config::Config;
use fedkin_numeric::statistics::moments;
use fedkin_report::Point;
use fedkin_run::artifacts::metrics::Metrics;
use std::collections::{BTreeMap, BTreeSet};

/// The x axis of curves, and where on it they are read.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Axis {
    /// The number counted; rounds where absent.
    pub against: Option<String>,
    /// Read the last evaluation up to here; the last of all where absent.
    pub at: Option<f64>,
}

/// Evaluated rounds and their metric, by repeat.
type Series = BTreeMap<u32, f64>;

fn series(metrics: &Metrics, name: &str) -> Series {
    let rows = metrics.rows().filter(|row| row.node.is_empty() && row.metric == name);
    rows.map(|row| (row.round, row.value)).collect()
}

fn up_to(series: &Series, round: u32) -> Option<f64> {
    series.range(..=round).next_back().map(|(_, value)| *value)
}

impl Axis {
    pub(crate) fn new(config: &Config) -> Self {
        let against = config.evaluate.against.clone();
        // The round of a sweep is older than this key and says the same.
        let at_round = config.sweep.as_ref().and_then(|sweep| sweep.at_round).filter(|_| against.is_none());
        Self { against, at: config.evaluate.at.or(at_round.map(f64::from)) }
    }

    /// Its name in results.
    pub(crate) fn name(&self) -> &str {
        self.against.as_deref().unwrap_or("round")
    }

    /// Its name in figures.
    pub fn words(&self) -> &str {
        match self.name() {
            "queries" => "queries per client",
            name => name,
        }
    }

    /// Where tables and claims read, in words.
    pub fn reading(&self) -> String {
        match (self.at, &self.against) {
            (None, _) => "after the last round".into(),
            (Some(at), None) => format!("up to round {at}"),
            (Some(at), Some(_)) => format!("up to {at} {}", self.words()),
        }
    }

    /// The last round of a repeat that counts: none where the first evaluation is beyond the limit, or where the method
    /// does not count what the axis shows.
    pub(crate) fn last_round(&self, metrics: &Metrics) -> Option<u32> {
        let Some(at) = self.at else { return Some(u32::MAX) };
        match &self.against {
            None => Some(at as u32),
            Some(name) => {
                let counted = series(metrics, name);
                counted.iter().rev().find(|(_, count)| **count <= at).map(|(round, _)| *round)
            }
        }
    }

    /// The mean count of each round over the repeats of one run; nothing where the axis is rounds, or nobody counts.
    pub(crate) fn counts(&self, metrics: &Metrics) -> Option<BTreeMap<u32, f64>> {
        let name = self.against.as_ref()?;
        let mut by_round: BTreeMap<u32, Vec<f64>> = BTreeMap::new();
        for row in metrics.rows().filter(|row| row.node.is_empty() && row.metric == name) {
            by_round.entry(row.round).or_default().push(row.value);
        }
        let means = by_round.into_iter().map(|(round, counts)| (round, moments(&counts).mean));
        Some(means.collect()).filter(|means: &BTreeMap<u32, f64>| !means.is_empty())
    }

    /// The position of the point that is read: the last up to the limit, or none.
    pub(crate) fn position(&self, points: &[Point]) -> Option<usize> {
        match self.at {
            None => points.len().checked_sub(1),
            Some(at) => points.iter().rposition(|point| point.x <= at),
        }
    }

    /// The metric by evaluated round and repeat, each round at its place on the axis. Over rounds a method that ends
    /// early keeps its last value. Nothing where the axis is not counted.
    pub(crate) fn curve(
        &self,
        repeats: &[&Metrics],
        metric: &str,
        last_round: u32,
    ) -> (Vec<f64>, Vec<Vec<f64>>) {
        let values: Vec<Series> = repeats.iter().map(|metrics| series(metrics, metric)).collect();
        let mut rounds: BTreeSet<u32> = values.iter().flat_map(BTreeMap::keys).copied().collect();
        if self.against.is_none() && rounds.last().is_some_and(|end| *end < last_round) {
            rounds.insert(last_round);
        }
        let counted: Option<Vec<Series>> =
            self.against.as_ref().map(|name| repeats.iter().map(|metrics| series(metrics, name)).collect());
        let mut found: Vec<(f64, Vec<f64>)> = Vec::new();
        for round in rounds {
            // Repeats may end in different rounds: a round counts where all of them have a value.
            let at = |all: &[Series]| all.iter().map(|one| up_to(one, round)).collect::<Option<Vec<f64>>>();
            let x = match &counted {
                None => Some(f64::from(round)),
                Some(counted) => at(counted).map(|counts| moments(&counts).mean),
            };
            if let (Some(x), Some(values)) = (x, at(&values)) {
                // Rounds that cost nothing: what was reached for the price is what counts.
                if found.last().is_some_and(|(before, _)| *before >= x) {
                    found.pop();
                }
                found.push((x, values));
            }
        }
        found.into_iter().unzip()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fedkin_run::artifacts::metrics::Measurement;

    /// Rows of (round, queries, error).
    fn repeat(rows: &[(u32, f64, f64)]) -> Metrics {
        let mut metrics = Metrics::default();
        for &(round, queries, error) in rows {
            for (metric, value) in [("queries", queries), ("msd.client", error)] {
                metrics.push(Measurement { repeat: 0, round, node: "", metric, value });
            }
        }
        metrics
    }

    fn queries(at: Option<f64>) -> Axis {
        Axis { against: Some("queries".into()), at }
    }

    #[test]
    fn points_stand_at_the_mean_count_of_their_round() {
        let (a, b) = (repeat(&[(1, 20.0, 5.0), (2, 40.0, 3.0)]), repeat(&[(1, 10.0, 4.0), (2, 30.0, 2.0)]));
        let (x, values) = queries(None).curve(&[&a, &b], "msd.client", 9);
        assert_eq!(x, [15.0, 35.0], "a curve over queries ends where its method ended");
        assert_eq!(values, [[5.0, 4.0], [3.0, 2.0]]);
        let (x, values) = Axis::default().curve(&[&a, &b], "msd.client", 9);
        assert_eq!((x.as_slice(), &values[2]), (&[1.0, 2.0, 9.0][..], &vec![3.0, 2.0]));
    }

    #[test]
    fn of_rounds_with_the_same_count_the_last_stays() {
        let metrics = repeat(&[(1, 20.0, 5.0), (2, 20.0, 4.0), (3, 40.0, 3.0), (4, 40.0, 2.5)]);
        let (x, values) = queries(None).curve(&[&metrics], "msd.client", 4);
        assert_eq!((x, values), (vec![20.0, 40.0], vec![vec![4.0], vec![2.5]]));
    }

    #[test]
    fn reading_is_at_the_last_evaluation_up_to_the_limit() {
        let metrics = repeat(&[(5, 100.0, 5.0), (10, 390.0, 4.0), (15, 410.0, 3.0)]);
        assert_eq!(queries(Some(400.0)).last_round(&metrics), Some(10));
        assert_eq!(queries(Some(410.0)).last_round(&metrics), Some(15));
        assert_eq!(queries(Some(99.0)).last_round(&metrics), None);
        assert_eq!(queries(None).last_round(&metrics), Some(u32::MAX));
        assert_eq!(Axis { against: Some("moves".into()), at: Some(9.0) }.last_round(&metrics), None);
        assert_eq!(Axis { against: None, at: Some(7.0) }.last_round(&metrics), Some(7));
        let points: Vec<Point> =
            [100.0, 390.0, 410.0].map(|x| Point { x, mean: 0.0, stderr: None }).into_iter().collect();
        assert_eq!(queries(Some(400.0)).position(&points), Some(1));
        assert_eq!((queries(Some(9.0)).position(&points), queries(None).position(&points)), (None, Some(2)));
    }
}
