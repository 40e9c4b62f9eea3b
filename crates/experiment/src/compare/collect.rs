//! From the repeats of all curves to what is told of them.

use super::{Comparison, CurveResult, Done, Job, Prepared};
use crate::axis::Axis;
use crate::by_client::{self, ByClient};
use crate::claims;
use crate::theory::Theory;
use fedkin_config::Config;
use fedkin_measure::{Estimate, Spread, estimate};
use fedkin_report::Point;
use fedkin_run::artifacts::metrics::Metrics;
use fedkin_run::spending::is_spent;
use fedkin_run::{Error, Warning, worth};
use fedkin_settings::Value;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

impl Prepared {
    pub(super) fn collect(&self, out: &Path, jobs: &[Job], done: Vec<Done>) -> Result<Comparison, Error> {
        let metric = done.first().map_or_else(String::new, |first| headline(&self.config, &first.metrics));
        let shown = self.registry.metrics().shown(&metric);
        let last_round = self.config.run.rounds;
        let axis = Axis::new(&self.config);
        let read =
            |done: &Done, metric: &str| at_round(&done.metrics, metric, axis.last_round(&done.metrics)?);
        let mut curves: Vec<CurveResult> = Vec::new();
        for (c, curve) in self.curves.iter().enumerate() {
            let mine: Vec<&Done> = done.iter().filter(|done| done.curve == c).collect();
            // A curve may look at another of the models; it is shown on the axis of the headline.
            let own = jobs.iter().find(|job| job.curve == c).map(|job| &job.plan.config);
            let metric = mine
                .first()
                .zip(own)
                .map_or_else(|| metric.clone(), |(first, config)| headline(config, &first.metrics));
            let (x, values) = match &self.config.sweep {
                None => {
                    let repeats: Vec<&Metrics> = mine.iter().map(|done| &done.metrics).collect();
                    axis.curve(&repeats, &metric, last_round)
                }
                Some(sweep) => {
                    let values = (0..sweep.values.len())
                        .map(|point| {
                            let here = mine.iter().filter(|done| done.point == point);
                            here.filter_map(|done| read(done, &metric)).collect()
                        })
                        .collect();
                    (sweep.values.iter().enumerate().map(|(i, value)| number(value, i)).collect(), values)
                }
            };
            let counted = |name: &str| mine.iter().any(|done| names(&done.metrics).iter().any(|n| n == name));
            if let Some(against) = axis.against.as_deref().filter(|name| !counted(name)) {
                return Err(Error::Usage(format!(
                    "evaluate.against {against:?} is not counted by {:?}; counted: {}",
                    curve.label,
                    mine.first().map_or_else(String::new, |done| {
                        let all = names(&done.metrics).into_iter().filter(|name| !name.contains('.'));
                        all.collect::<Vec<_>>().join(", ")
                    })
                )));
            }
            if values.iter().all(Vec::is_empty) {
                return Err(Error::Usage(format!(
                    "evaluate.metric {metric:?} is not measured for {:?}; measured: {}",
                    curve.label,
                    mine.first().map_or_else(String::new, |done| names(&done.metrics).join(", "))
                )));
            }
            let points: Vec<Point> = x
                .iter()
                .zip(&values)
                .map(|(&x, values): (&f64, &Vec<f64>)| {
                    let Estimate { mean, stderr } = estimate(values, shown);
                    Point { x, mean, stderr }
                })
                .collect();
            if self.config.sweep.is_none() && axis.position(&points).is_none() {
                return Err(Error::Usage(format!(
                    "evaluate.at = {} is before the first evaluation of {:?}, at {} {}: raise it, or lower evaluate.every",
                    axis.at.unwrap_or_default(),
                    curve.label,
                    points.first().map_or(f64::NAN, |point| point.x),
                    axis.words()
                )));
            }
            let mut last: BTreeMap<String, Vec<f64>> = BTreeMap::new();
            let final_point = self.config.sweep.as_ref().map_or(0, |sweep| sweep.values.len() - 1);
            for done in mine.iter().filter(|done| done.point == final_point) {
                for name in names(&done.metrics) {
                    if let Some(value) = read(done, &name) {
                        last.entry(name).or_default().push(value);
                    }
                }
            }
            let r#final = last
                .iter()
                .map(|(name, values)| {
                    let Estimate { mean, stderr } = estimate(values, self.registry.metrics().shown(name));
                    (name.clone(), Point { x: axis.at.unwrap_or(f64::from(last_round)), mean, stderr })
                })
                .collect();
            let row = jobs.iter().find(|job| job.curve == c).map(|job| job.plan.row);
            let algorithm = row.map(|row| row.name.to_string()).unwrap_or_default();
            let method = curve.method.clone().unwrap_or_else(|| algorithm.clone());
            let spread_at = |point: usize, metric: &str| {
                let here = mine.iter().filter(|done| done.point == point);
                Spread::mean(&here.filter_map(|done| done.spreads.get(metric).copied()).collect::<Vec<_>>())
            };
            let spread: Vec<Option<Spread>> =
                (0..=final_point).map(|point| spread_at(point, &metric)).collect();
            let last_spread = spread[final_point];
            let known = mine.iter().flat_map(|done| done.spreads.keys());
            let spreads =
                known.filter_map(|name| Some((name.clone(), spread_at(final_point, name)?))).collect();
            let epsilon = (0..=final_point)
                .map(|point| {
                    let here = mine.iter().filter(|done| done.point == point);
                    here.filter_map(|done| done.privacy.epsilon).max_by(f64::total_cmp)
                })
                .collect();
            // The last repeat of each swept value, and of these the one that cost most.
            let ends = (0..=final_point).filter_map(|p| mine.iter().rfind(|done| done.point == p));
            let end = ends
                .max_by(|a, b| a.privacy.cost().total_cmp(&b.privacy.cost()))
                .unwrap_or(&mine[mine.len() - 1]);
            let privacy = end.privacy.clone();
            let clients = mine[0].clients.clone();
            let each: Vec<&ByClient> = mine.iter().map(|done| &done.by_client).collect();
            curves.push(CurveResult {
                label: curve.label.clone(),
                method,
                algorithm,
                baseline: row.and_then(|row| row.baseline),
                metric,
                points,
                r#final,
                std: last_spread.map(|spread| spread.std),
                worst_decile: last_spread.map(|spread| spread.worst_decile),
                spread: if last_spread.is_some() { spread } else { Vec::new() },
                spreads,
                privacy,
                epsilon,
                values,
                last,
                by_client: by_client::points(self.registry.metrics(), &each),
                clients,
            });
        }
        let claims = match &self.config.paper {
            Some(paper) => {
                claims::judge(&paper.claims, &curves, shown, axis.at.filter(|_| self.config.sweep.is_none()))?
            }
            None => Vec::new(),
        };
        let warnings = done.iter().flat_map(|done| done.warnings.iter().cloned());
        let worth = curves.iter().filter_map(|curve| worth(&curve.privacy.bound));
        let warnings = Warning::distinct(warnings.chain(worth));
        Ok(Comparison {
            name: self.name().to_string(),
            run: out.to_path_buf(),
            metric,
            unit: shown.unit(),
            x: self.config.sweep.as_ref().map_or_else(|| axis.name().to_string(), |sweep| sweep.key.clone()),
            repeats: self.config.run.repeats,
            seconds: 0.0,
            curves,
            clients: done.first().map(|done| done.names.clone()).unwrap_or_default(),
            labels: done.iter().find_map(|done| done.labels.clone()),
            pictures: done.iter().flat_map(|done| done.pictures.iter().cloned()).collect(),
            tuning: Vec::new(),
            claims,
            warnings,
            shown,
            metrics: Arc::clone(self.registry.metrics()),
            colours: self.registry.colours(),
            axis,
            config: self.config.clone(),
            theory: Theory::default(),
            graph: done.into_iter().find_map(|done| done.graph),
        })
    }
}

/// The metric that a config's curve shows.
pub(super) fn headline(config: &Config, metrics: &Metrics) -> String {
    if let Some(metric) = &config.evaluate.metric {
        return metric.clone();
    }
    let first = metrics.rows().find(|row| row.metric.contains('.'));
    first.map_or_else(String::new, |row| row.metric.to_string())
}

/// A metric at a round, or its last value up to there.
fn at_round(metrics: &Metrics, metric: &str, round: u32) -> Option<f64> {
    metrics
        .rows()
        .filter(|row| row.node.is_empty() && row.metric == metric && row.round <= round)
        .max_by_key(|row| row.round)
        .map(|row| row.value)
}

fn names(metrics: &Metrics) -> Vec<String> {
    let of_all = metrics.rows().filter(|row| row.node.is_empty() && !is_spent(row.metric));
    let mut names: Vec<String> = of_all.map(|row| row.metric.to_string()).collect();
    names.sort_unstable();
    names.dedup();
    names
}

/// A swept value as a coordinate: itself where it is a number, else its position.
fn number(value: &Value, position: usize) -> f64 {
    match value {
        Value::Number(x) => *x,
        Value::Integer(x) => *x as f64,
        _ => position as f64,
    }
}
